"""API keys: random, shown once, stored as SHA-256 in a file.

A line of the file is ``name sha256``. A key has 256 random bits: guessing is hopeless, so a fast hash is enough. A key
is looked up by its hash, in a time that does not grow with the number of keys. That time can show parts of a stored
hash at most, from which no key follows.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import re
import secrets
from collections.abc import Callable, Iterator
from io import FileIO
from pathlib import Path

from dragoman.errors import ConfigError
from dragoman.files import explained, missing_line_end
from dragoman.locks import acquire

logger = logging.getLogger(__name__)

_LINE = re.compile(r"([A-Za-z0-9._-]{1,64}) ([0-9a-f]{64})")

MOST_BYTES = 2**26
"""A larger file is no file of keys: some 600,000 of them fit in."""


def make_key(path: Path, name: str, show: Callable[[str], object] = lambda key: None) -> str:
    """Make a key, append its hash to a file that only its owner may read, and return the key.

    Args:
        show: Shows the key to its owner. If it raises, nobody has the key, and the file loses it again.

    Raises:
        ConfigError: The name is taken or has other characters than letters, digits and ``._-``, or the file is damaged.
    """
    if not re.fullmatch(r"[A-Za-z0-9._-]{1,64}", name):
        raise ConfigError(f"the name of a key must be 1 to 64 letters, digits, '.', '_' or '-', got {name!r}")
    if path.exists() and not path.is_file():
        raise ConfigError(f"{path}: a key can only be added to a file: give one as --keys FILE")
    key = secrets.token_urlsafe(32)
    with explained(path):
        while not _added(path, name, _hash(key)):
            pass
    try:
        show(key)
    except BaseException:
        with explained(path):
            _remove(path, f"{name} {_hash(key)}\n".encode())
        raise
    return key


def _remove(path: Path, line: bytes) -> None:
    """Remove a line from a file, which needs no room on the disk."""
    with _alone(path) as file:
        before, found, after = file.read().partition(line)
        if found:
            file.seek(len(before))
            _write_whole(file, after)
            file.truncate()


def _added(path: Path, name: str, hash_: str) -> bool:
    """Add a line to a file; return False if an editor has put another file in its place meanwhile."""
    with _alone(path) as file:
        hashes, n_cut = _parsed(file.read(MOST_BYTES + 1), path)
        known = hashes.get(name)
        if known not in (None, hash_):  # the same, if the editor has saved a copy with the new line
            raise ConfigError(f"{path} already has a key named {name}: choose another name, or delete its line")
        if known is None:
            size = file.seek(0, os.SEEK_END) - n_cut
            if n_cut:
                file.truncate(size)
            line_end = missing_line_end(file)  # an editor may have left it out
            try:
                _write_whole(file, line_end + f"{name} {hash_}\n".encode())
            except OSError:
                file.truncate(size)  # half a line would make the whole file invalid
                raise
        with contextlib.suppress(FileNotFoundError):
            return os.path.samestat(path.stat(), os.fstat(file.fileno()))
    return False


@contextlib.contextmanager
def _alone(path: Path) -> Iterator[FileIO]:
    """Open a file to change it while no other process does, which may want the same name."""
    descriptor = acquire(Path(os.path.realpath(path)), wait=True, mode=0o600)
    try:
        with os.fdopen(descriptor, "r+b", buffering=0, closefd=False) as file:
            file.seek(0)
            yield file
    finally:
        with contextlib.suppress(OSError):  # as from a quota on NFS: what was written has been flushed
            os.close(descriptor)


def _write_whole(file: FileIO, line: bytes) -> None:
    """Write ``line`` and flush it to disk; a full disk may take only the beginning at the first call."""
    while line:
        line = line[file.write(line) :]
    os.fsync(file.fileno())


def _parsed(data: bytes, path: Path) -> tuple[dict[str, str], int]:
    """Return the hash of each key in a file, by name, and the bytes of a last line that was cut off, which has no key.

    An empty file, and one of comments alone, has no keys.

    Raises:
        ConfigError: The file cannot be read, or has an invalid line or a name twice: the message names the line.
    """
    try:
        if len(data) > MOST_BYTES:
            raise ValueError(f"it has more than {MOST_BYTES:,} bytes")
        lines = data.decode("utf-8-sig").split("\n")
    except ValueError as error:
        raise ConfigError(f"{path}: not a file of keys ({error}); make one with --make-key NAME") from None
    hashes: dict[str, str] = {}
    for number, line in enumerate(lines, 1):
        if not line.strip() or line.startswith("#"):
            continue
        parts = _LINE.fullmatch(line.strip())
        if parts is None and number == len(lines) and _is_cut(line, bool(hashes)):
            logger.warning("%s:%d: cut off, so this key is not accepted; make it again", path, number)
            return hashes, len(line)
        if parts is None:
            raise ConfigError(f"{path}:{number}: the line must be 'NAME SHA256', as --make-key writes it")
        # Nobody could tell whether the second key is to replace the first one.
        if parts[1] in hashes:
            raise ConfigError(
                f"{path}:{number}: the name {parts[1]} is there twice: delete the line of the key that is no longer in "
                "use, or give the other one another name"
            )
        hashes[parts[1]] = parts[2]
    return hashes, 0


def _is_cut(line: str, after_keys: bool) -> bool:
    """Return True for what may be the beginning of a line, as an interrupted ``make_key`` leaves it."""
    name, _, hash_ = line.partition(" ")
    is_beginning = len(hash_) < 64 and _LINE.fullmatch(f"{name} {hash_.ljust(64, '0')}") is not None
    return is_beginning and (after_keys or len(hash_) >= SURE)


SURE = 16
"""Digits of a hash by which its line is known in a file without keys, which may be no file of keys."""


class Keys:
    """Accepted API keys of a server."""

    def __init__(self, hashes: dict[str, str]) -> None:
        """Accept the keys with these hashes, by name."""
        self.names = list(hashes)
        """Names of the keys."""
        self._owners = {hash_: name for name, hash_ in hashes.items()}

    @classmethod
    def load(cls, path: Path) -> Keys:
        """Read a file of keys.

        Raises:
            ConfigError: See ``_parsed``; or it has no key at all.
        """
        try:
            with path.open("rb") as file:
                data = file.read(MOST_BYTES + 1)
        except OSError as error:
            raise ConfigError(f"{path}: not a file of keys ({error}); make one with --make-key NAME") from None
        hashes, _ = _parsed(data, path)
        if not hashes:
            raise ConfigError(f"{path} has no keys: make one with --make-key NAME")
        return cls(hashes)

    def owner(self, key: str) -> str | None:
        """Return the name of a key; None if it is not accepted."""
        return self._owners.get(_hash(key))


def _hash(key: str) -> str:
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()
