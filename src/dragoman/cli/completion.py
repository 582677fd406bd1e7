"""What the tab key completes beside names of options: runs and settings."""

from __future__ import annotations

from pathlib import Path


def runs(incomplete: str) -> list[str]:
    """The runs and bundles that a name begins, and folders that may hold some."""
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


def settings(incomplete: str) -> list[str]:
    """The settings that a name begins, each up to its value."""
    from dragoman.config import Config, all_settings

    return [f"{name}=" for name in all_settings(Config) if name.startswith(incomplete)]
