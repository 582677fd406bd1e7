"""What is said where an optional package is missing."""

from __future__ import annotations

import copy
import importlib
import inspect
import os
import pickle
import pkgutil
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dragoman
from dragoman.cli.serve import PACKAGES
from dragoman.errors import BYTES_OF_NAMES, DragomanError, as_command, not_installed

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


ARGUMENTS: dict[str, Any] = {
    "partial": Path("o.de.partial"), "journal": Path("o.de.journal"), "what": "was changed", "message": "no such key",
    "status": 403, "retry_after_s": 7.5, "why": OSError(11, "again"), "name": "a.docx", "signal": 15,
}  # fmt: skip
"""A real value of each argument that an error of ours takes."""


def kinds_of(base: type[Exception]) -> Iterator[type[Exception]]:
    for kind in base.__subclasses__():
        yield from (kind, *kinds_of(kind))


def test_every_error_survives_a_pickle_and_a_copy() -> None:
    """A pool of processes that cannot unpickle an error waits for ever."""
    for module in pkgutil.walk_packages(dragoman.__path__, "dragoman."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    kinds = [kind for kind in kinds_of(DragomanError) if kind.__module__.startswith("dragoman.")]
    assert len(kinds) > 25
    own_arguments = 0
    for kind in kinds:
        has_own = "__init__" in vars(kind) or any("__init__" in vars(base) for base in kind.__mro__[1:-4])
        names = list(inspect.signature(kind.__init__).parameters)[1:] if has_own else []
        own_arguments += has_own
        error = kind(*(ARGUMENTS.get(name, "restart it") for name in names)) if has_own else kind("model.bin: damaged")
        error.add_note("This was rank 1 of 2.")
        for again in (copy.copy(error), *(pickle.loads(pickle.dumps(error, number)) for number in range(6))):
            assert type(again) is kind
            assert (str(again), repr(again.__dict__)) == (str(error), repr(error.__dict__))
    assert own_arguments >= 10
