"""Completion by the tab key for values: runs, settings, and short lists of names."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from dragoman.ready import NAMES, is_ready


def runs(incomplete: str) -> list[str]:
    """Return the runs and bundles whose path begins with ``incomplete``, folders that may hold some, ready bundles."""
    ready = [name for name in NAMES if name.startswith(incomplete) and is_ready(name)]
    # A shell puts a space after a single answer. After a folder that would be wrong: the content is offered instead.
    paths = _in_folder(incomplete)
    while len(paths) == 1 and paths[0].endswith("/") and (inside := _in_folder(paths[0])):
        paths = inside
    return [*paths, *ready]


def _in_folder(incomplete: str) -> list[str]:
    path = Path(incomplete)
    folder = path if incomplete.endswith("/") else path.parent
    try:
        inside = [path for path in sorted(folder.iterdir()) if path.is_dir() and not path.name.startswith(".")]
    except OSError:
        return []
    names = []
    for path in inside:
        is_run = (path / "config.yaml").is_file() or (path / "manifest.json").is_file()
        names.append(str(path) if is_run else f"{path}/")
    return [name for name in names if name.startswith(incomplete.removeprefix("./"))]


def among(names: Iterable[str]) -> Callable[[str], list[str]]:
    """Return a completion function for ``names``."""
    return lambda incomplete: [name for name in names if name.startswith(incomplete)]


def settings(incomplete: str) -> list[str]:
    """Return the settings whose name begins with ``incomplete``, each up to its value."""
    from dragoman.config import Config, all_settings

    return [f"{name}=" for name in all_settings(Config) if name.startswith(incomplete)]
