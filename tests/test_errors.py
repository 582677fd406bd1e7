"""What is said where an optional package is missing."""

from __future__ import annotations

import os
import re
import tomllib
from pathlib import Path

from dragoman.cli.serve import PACKAGES
from dragoman.errors import BYTES_OF_NAMES, as_command, not_installed

ROOT = Path(__file__).resolve().parent.parent


def test_a_command_can_be_pasted() -> None:
    words = ["dragoman", "train", Path("-a b.en"), Path("c.de"), "--out", Path("-run"), "-i"]
    assert as_command(*words) == "dragoman train './-a b.en' c.de --out ./-run -i"


def test_bytes_of_a_name_are_written_as_they_are() -> None:
    name, half = os.fsdecode(b"caf\xe9"), "\ud800"
    assert f"{name} {half}".encode(errors=BYTES_OF_NAMES) == b"caf\xe9 \\ud800"
    assert f"é {name}".encode("ascii", errors=BYTES_OF_NAMES) == b"\\xe9 caf\xe9"


def test_a_missing_package_is_named_as_pip_knows_it_wherever_dragoman_came_from() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    known = {re.split(r"[<>=\[]", entry)[0] for entries in extras.values() for entry in entries}
    sources = {path: path.read_text(encoding="utf-8") for path in (ROOT / "src").rglob("*.py")}
    calls = [call for text in sources.values() for call in re.findall(r'not_installed\([^)]*["\'](\w+)["\']\)', text)]
    assert len(calls) >= 6
    assert set(calls) <= known
    assert not_installed("drawing", "x") == "drawing needs x, which is not installed: pip install x"
    assert not_installed("serving", "a", "b", "c") == (
        "serving needs a, b and c, which are not installed: pip install a b c"
    )
    assert set(PACKAGES.values()) <= known
    for path, text in sources.items():
        assert "in the checkout" not in text, path
        assert "pip install" not in text or path.name == "errors.py", path
