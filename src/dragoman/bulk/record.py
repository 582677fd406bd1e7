"""What of a folder is done: ``_dragoman.jsonl`` in it, one JSON object a line.

First a mark and all that the translations depend on (models, options, device); then a line for each shard that is
whole: its name, the SHA-256 of what was translated and of what was made, its lines, and its notes by kind. A line is
written after the shard is in its place. So what the record names is there, and what it does not name is made again.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from dragoman import __version__
from dragoman.errors import ConfigError, DragomanError
from dragoman.files import acquire, explained

NAME = "_dragoman.jsonl"
FORM = {"translations of dragoman": 1}
MARK = json.dumps(FORM).encode()[:-1] + b","  # what a record begins with


@dataclass(frozen=True)
class Done:
    """A shard that is whole."""

    shard: str
    input: str  # SHA-256 of what was translated
    lines: int
    sha256: str  # of the translations
    seconds: float
    notes: Mapping[str, int] = field(default_factory=dict)  # of each kind


class Record:
    """The record of a folder, open for writing by this process alone."""

    def __init__(self, path: Path, descriptor: int, done: dict[str, Done]) -> None:
        self._path, self._descriptor, self.done = path, descriptor, done

    def add(self, one: Done) -> None:
        """Write down that a shard is whole.

        Raises:
            DragomanError: It cannot be written.
        """
        with explained(self._path):
            _append(self._descriptor, asdict(one))
        self.done[one.shard] = one


@contextmanager
def recorded(folder: Path, facts: Mapping[str, Any], restart: bool = False) -> Iterator[Record]:
    """Open the record of a folder, which is made where there is none.

    Args:
        facts: All that the translations depend on beside the shards.
        restart: Forget what is done.

    Raises:
        ConfigError: The folder holds something else; it is being written; or it was translated with other facts.
        DragomanError: It cannot be written.
    """
    path = folder / NAME
    if folder.exists() and not folder.is_dir():
        raise ConfigError(f"{folder}: a file; give --out a folder, for a folder of shards becomes one")
    if folder.is_dir() and not path.exists() and any(folder.iterdir()):
        raise ConfigError(f"{folder}: holds files and no {NAME}, so they are not ours; choose a new or an empty folder")
    with explained(folder):
        folder.mkdir(parents=True, exist_ok=True)
        try:
            descriptor = acquire(path)
        except BlockingIOError:
            raise ConfigError(f"{folder}: another process is translating into it; wait, or choose another") from None
    try:
        with explained(folder):
            said = json.loads(json.dumps({**FORM, "dragoman": __version__, **facts}, default=repr))  # as read back
            done = _begin(path, descriptor, said, restart)
        yield Record(path, descriptor, done)
    finally:
        os.close(descriptor)


def _begin(path: Path, descriptor: int, facts: dict[str, Any], restart: bool) -> dict[str, Done]:
    """What is done; the record is cut after it, or begun."""
    text = b"".join(iter(lambda: os.read(descriptor, 2**20), b""))
    if not MARK.startswith(text[: len(MARK)]):
        raise ConfigError(f"{path}: exists and is not a record of this version of dragoman; choose another folder")
    whole = text[: text.rfind(b"\n") + 1]  # a kill may have torn the last line
    started, done = ({}, {}) if restart or not whole else _read(path, whole)
    changed = sorted(name for name in started.keys() | facts.keys() if started.get(name) != facts.get(name))
    if not changed:
        os.ftruncate(descriptor, len(whole))
        return done
    if done:
        raise ConfigError(
            f"{path.parent}: was translated with another {' and another '.join(changed)}; choose another folder, or "
            "start over with --restart"
        )
    os.ftruncate(descriptor, 0)
    _append(descriptor, facts)
    return {}


def _read(path: Path, text: bytes) -> tuple[dict[str, Any], dict[str, Done]]:
    """The facts of a record, and the shards that it names."""
    try:
        started, *lines = (json.loads(line) for line in text.split(b"\n")[:-1])
        done = [Done(**line) for line in lines]
        return dict(started), {one.shard: one for one in done}
    except (ValueError, TypeError, RecursionError):
        raise DragomanError(f"{path}: damaged; start over with --restart, or choose another folder") from None


def _append(descriptor: int, said: Mapping[str, Any]) -> None:
    """A line at the end, on the disk when this returns."""
    os.lseek(descriptor, 0, os.SEEK_END)
    line = (json.dumps(said) + "\n").encode()
    while line:
        line = line[os.write(descriptor, line) :]
    os.fsync(descriptor)
