"""The record of a translated folder: ``_dragoman.jsonl`` in it, one JSON object a line.

The first line identifies the format and holds all that the translations depend on (models, options, device). Each
further line names a finished shard with the SHA-256 of its source and of its translation, its number of lines, and its
notes by kind. A line is written after the shard is in its place: a shard in the record exists, and any other shard is
translated again.

    with open_record(folder, facts) as record:
        record.add(FinishedShard("a.txt", ...))
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
from dragoman.files import explained, sha256
from dragoman.locks import acquire, release

NAME = "_dragoman.jsonl"
FORM = {"translations of dragoman": 1}
MARK = json.dumps(FORM).encode()[:-1] + b","
"""First bytes of every record."""


@dataclass(frozen=True)
class FinishedShard:
    """A shard whose translation is complete; the fields are the keys in the file."""

    shard: str  # its name
    input: str  # SHA-256 of the source
    lines: int
    sha256: str  # of the translation
    seconds: float
    notes: Mapping[str, int] = field(default_factory=dict)  # number of notes of each kind

    def unlike(self, src: Path, sha256_now: str, out: Path) -> str:
        """Return which of its files is not the one that was read or written, and what to do; "" if both are.

        Args:
            src: The source, whose SHA-256 is now ``sha256_now``.
            out: The translation, which is read.
        """
        if self.input != sha256_now:
            return f"{src}: not the file that was translated; restore it, or give --restart"
        try:
            if sha256(out) == self.sha256:
                return ""
        except OSError as error:
            return f"{out}: cannot be read ({error.strerror}); check its permissions"
        return f"{out}: has changed since it was written; restore it, or move it away to translate it again"


class Record:
    """The record of a folder, open for writing by this process alone."""

    def __init__(self, path: Path, descriptor: int, finished: dict[str, FinishedShard]) -> None:
        self._path, self._descriptor, self.finished = path, descriptor, finished

    def add(self, shard: FinishedShard) -> None:
        """Write a line for a finished shard.

        Raises:
            DragomanError: The record cannot be written.
        """
        with explained(self._path):
            _append(self._descriptor, asdict(shard))
        self.finished[shard.shard] = shard


@contextmanager
def open_record(folder: Path, facts: Mapping[str, Any], restart: bool = False) -> Iterator[Record]:
    """Open the record of a folder; the folder is made if it does not exist.

    Args:
        facts: All that the translations depend on besides the shards.
        restart: Forget the finished shards.

    Raises:
        ConfigError: The folder holds other files, is being written by another process, or was translated with other
            facts.
        DragomanError: The record is damaged or cannot be written.
    """
    path = folder / NAME
    if folder.exists() and not folder.is_dir():
        raise ConfigError(f"{folder}: a file; give --out a folder, for a folder of shards becomes one")
    if folder.is_dir() and not path.exists() and any(folder.iterdir()):
        raise ConfigError(
            f"{folder}: holds files and no {NAME}, so it is not a folder of translations; choose a new or an empty one"
        )
    with explained(folder):
        folder.mkdir(parents=True, exist_ok=True)
        try:
            descriptor = acquire(path)
        except BlockingIOError:
            raise ConfigError(f"{folder}: another process is translating into it; wait, or choose another") from None
    try:
        with explained(folder):
            # Through JSON and back, to compare equal with the facts that a record holds.
            header = json.loads(json.dumps({**FORM, "dragoman": __version__, **facts}, default=repr))
            finished = _begin(path, descriptor, header, restart)
        yield Record(path, descriptor, finished)
    finally:
        release(descriptor)


def _begin(path: Path, descriptor: int, header: dict[str, Any], restart: bool) -> dict[str, FinishedShard]:
    """Check the record against the header of this run, or begin it; return the finished shards."""
    content = b"".join(iter(lambda: os.read(descriptor, 2**20), b""))
    if not MARK.startswith(content[: len(MARK)]):
        raise ConfigError(f"{path}: exists and is not a record of this version of dragoman; choose another folder")
    complete = content[: content.rfind(b"\n") + 1]  # a killed process may have left half a line
    old_header, finished = ({}, {}) if restart or not complete else _read(path, complete)
    changed = sorted(name for name in old_header.keys() | header.keys() if old_header.get(name) != header.get(name))
    if not changed:
        os.ftruncate(descriptor, len(complete))
        return finished
    if finished:
        raise ConfigError(
            f"{path.parent}: was translated with another {' and another '.join(changed)}; choose another folder, or "
            "start over with --restart"
        )
    os.ftruncate(descriptor, 0)
    _append(descriptor, header)
    return {}


def _read(path: Path, content: bytes) -> tuple[dict[str, Any], dict[str, FinishedShard]]:
    """Return the header of a record, and its finished shards by name."""
    try:
        header, *lines = (json.loads(line) for line in content.split(b"\n")[:-1])
        shards = [FinishedShard(**line) for line in lines]
        return dict(header), {shard.shard: shard for shard in shards}
    except (ValueError, TypeError, RecursionError):
        raise DragomanError(f"{path}: damaged; start over with --restart, or choose another folder") from None


def _append(descriptor: int, fields: Mapping[str, Any]) -> None:
    """Add a line to the record; it is on the disk when this returns."""
    os.lseek(descriptor, 0, os.SEEK_END)
    line = (json.dumps(fields) + "\n").encode()
    while line:
        line = line[os.write(descriptor, line) :]
    os.fsync(descriptor)
