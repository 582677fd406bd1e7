"""The ready bundles: small trained translators that come with the package and are called by name.

    Translator.load("demo")    # unless a file or folder of that name stands in the current folder

The folders ``en-de`` and ``en-zh`` are ordinary bundles with a model card, ``README.md``, and their measured quality,
``certificate.json``. Their text is from tatoeba.org; ``benchmarks/ready`` made them.
"""

from __future__ import annotations

from pathlib import Path

from dragoman.errors import ConfigError, as_command
from dragoman.files import as_path, pinned, standing

FOLDER = Path(__file__).parent
NAMES = {"demo": "en-de", "demo-zh": "en-zh", "en-de": "en-de", "en-zh": "en-zh"}
"""Folder of each name."""


def run_folder(run: Path | str) -> Path:
    """Return the folder of a ready bundle if ``run`` is its name and nothing here is called so; else ``run``."""
    path = as_path(run)
    return FOLDER / NAMES[str(path)] if is_ready(path) else path


def pinned_run(run: Path | str) -> Path | str:
    """Return the path of a run made absolute, as ``files.pinned`` does; the name of a ready bundle stays."""
    return run if is_ready(run) else pinned(run)


def refuse_to_change(run: Path | str) -> None:
    """Check that a run is no ready bundle, which belongs to the package.

    Raises:
        ConfigError: It is one; the message names the command that copies it.
    """
    folder = run_folder(run).resolve()
    if folder.is_relative_to(FOLDER.resolve()):
        command = as_command("cp", "-r", folder, f"my-{folder.name}")
        raise ConfigError(f"{run} belongs to the package and is not changed: use a copy of it ({command})")


def is_ready(run: Path | str) -> bool:
    """True if ``run`` is the name of a ready bundle, and no file or folder is called so."""
    path = Path(run)
    return str(path) in NAMES and not standing(path).exists()
