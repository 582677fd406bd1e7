"""One process at a time in a folder: a lock of the operating system, which ends with its process however that ends."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import logging
import os
import socket
from collections.abc import Iterator
from pathlib import Path

from dragoman.errors import ConfigError

logger = logging.getLogger(__name__)

LOCK = "lock"
OURS = b"process "  # what a lock begins with


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold ``folder/lock`` while the body runs; the file goes when it ends, and one left by a dead process is no lock.

    Raises:
        ConfigError: Another process holds it, or the file cannot be made.
    """
    path = folder / LOCK
    descriptor = _acquire(path)
    try:
        os.ftruncate(descriptor, 0)
        with contextlib.suppress(OSError):  # a full disk: the lock holds without a name
            os.write(descriptor, OURS + f"{os.getpid()} on {socket.gethostname()}\n".encode())
        yield
    finally:
        with contextlib.suppress(OSError):
            path.unlink()
        os.close(descriptor)


def refuse_if_locked(folder: Path) -> None:
    """Look for a holder of ``folder/lock`` and change nothing.

    Raises:
        ConfigError: Another process holds it.
    """
    with contextlib.suppress(FileNotFoundError, NotADirectoryError, PermissionError):
        descriptor = os.open(folder / LOCK, os.O_RDONLY)
        try:
            _try(descriptor, folder / LOCK)
        finally:
            os.close(descriptor)


def _acquire(path: Path) -> int:
    """Open and lock the file that has this name: not one that its holder removed in between."""
    while True:
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        except OSError as error:
            raise ConfigError(
                f"{path.parent}: cannot write there ({error.strerror or error}); choose another --out"
            ) from None
        try:
            _try(descriptor, path)
            if os.pread(descriptor, len(OURS), 0) not in (b"", OURS):
                raise ConfigError(f"{path}: is no lock but a file of somebody; choose another --out")
            with contextlib.suppress(FileNotFoundError):
                if os.path.samestat(path.stat(), os.fstat(descriptor)):
                    return descriptor
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)


def _try(descriptor: int, path: Path) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in (errno.EWOULDBLOCK, errno.EAGAIN, errno.EACCES):
            holder = os.pread(descriptor, 200, 0).decode(errors="replace").strip() or "another process"
            raise ConfigError(
                f"{path.parent}: {holder} is training there; wait for it, stop it, or choose another --out"
            ) from None
        logger.warning("%s: this file system has no locks (%s); let no other process train there", path, error.strerror)
