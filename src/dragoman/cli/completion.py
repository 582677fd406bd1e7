"""What the tab key completes beside names of options: runs, settings, and names of which there are a few."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path


def runs(incomplete: str) -> list[str]:
    """The runs and bundles that a name begins, and folders that may hold some; of a single folder what is in it.

    A shell puts a space behind a single answer, and nobody wants one behind a folder.
    """
    found = _in_folder(incomplete)
    while len(found) == 1 and found[0].endswith("/") and (inside := _in_folder(found[0])):
        found = inside
    return found


def _in_folder(incomplete: str) -> list[str]:
    begun = Path(incomplete)
    folder = begun if incomplete.endswith("/") else begun.parent
    try:
        inside = [path for path in sorted(folder.iterdir()) if path.is_dir() and not path.name.startswith(".")]
    except OSError:
        return []
    found = []
    for path in inside:
        is_run = (path / "config.yaml").is_file() or (path / "manifest.json").is_file()
        found.append(str(path) if is_run else f"{path}/")
    return [name for name in found if name.startswith(incomplete.removeprefix("./"))]


def among(names: Iterable[str]) -> Callable[[str], list[str]]:
    """A function that gives those of ``names`` that are begun."""
    return lambda incomplete: [name for name in names if name.startswith(incomplete)]


def settings(incomplete: str) -> list[str]:
    """The settings that a name begins, each up to its value."""
    from dragoman.config import Config, all_settings

    return [f"{name}=" for name in all_settings(Config) if name.startswith(incomplete)]
