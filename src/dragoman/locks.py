"""Locks between processes, held by the operating system: they end with the process that holds them.

with locked(run):                                     # one process at a time; another one is refused
    ...
with one_at_a_time(folder):                           # another one waits
    ...
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import logging
import os
import socket
import stat
import time
from collections.abc import Iterator
from itertools import count
from pathlib import Path

from dragoman.errors import ConfigError

logger = logging.getLogger(__name__)


def acquire(path: Path, wait: bool = False, new: bool = False, mode: int = 0o666) -> int:
    """Open a file (created if missing) or a folder, and lock it for this process.

    The lock belongs to the operating system. It ends when the descriptor is closed or the process ends in any way, so
    there are no stale locks. If the file loses its name while it is being locked, the function tries again. Links are
    not followed.

    Args:
        wait: Wait until another process releases the lock.
        new: Create the file, which must not exist; it is removed again if it cannot be locked.
        mode: Permissions of a file that is created, before the umask.

    Returns:
        The descriptor.

    Raises:
        BlockingIOError: Another process holds the lock, and ``wait`` is False.
        OSError: The file cannot be opened.
    """
    flags = os.O_RDONLY if path.is_dir() else os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | (os.O_EXCL if new else 0)
    for n_tries in count(1):
        descriptor = os.open(path, flags, mode)
        try:
            reason = flock(descriptor, wait)
            with contextlib.suppress(FileNotFoundError):
                is_same = os.path.samestat(path.stat(), os.fstat(descriptor))
                if not is_same and (new or n_tries == MOST_TRIES):  # nobody replaces a new file, or one so often
                    is_same, reason = True, reason or "a file has another inode at each look"
                if is_same:
                    if reason and not wait:
                        logger.warning(
                            "%s: this file system has no locks (%s); make sure no other process writes there",
                            f"{path}", reason,
                        )  # fmt: skip
                    return descriptor
        except BaseException:
            release(descriptor)
            if new:
                with contextlib.suppress(OSError):
                    path.unlink()
            raise
        os.close(descriptor)
    raise AssertionError


MOST_TRIES = 1000
"""Number of times that a file may lose its name while it is locked, before its file system is taken for the reason."""


def release(descriptor: int) -> None:
    """Release a lock and close its file."""
    unlock(descriptor)
    try:  # noqa: SIM105  (without memory ``suppress`` cannot be made, and the lock would stay)
        os.close(descriptor)
    except OSError:  # the lock is free all the same, and what was done under it has taken effect
        pass


def unlock(descriptor: int) -> None:
    """Release a lock before its file is closed: a process that was forked meanwhile has the file open, too."""
    try:  # noqa: SIM105  (see above)
        fcntl.flock(descriptor, fcntl.LOCK_UN)
    except OSError:  # this file system has no locks
        pass


def opened_to_lock(path: Path) -> int:
    """Open a file or folder that is there, and return the descriptor; a pipe is not waited for.

    NFS locks only what is open for writing, so a file is, unless that is forbidden.

    Raises:
        OSError: It cannot be opened, or is a link.
    """
    flags = os.O_NONBLOCK | os.O_NOFOLLOW
    try:
        return os.open(path, os.O_RDWR | flags)
    except OSError as error:
        if error.errno not in (errno.EACCES, errno.EPERM, errno.EROFS, errno.EISDIR):
            raise
        return os.open(path, os.O_RDONLY | flags)


def flock(descriptor: int, wait: bool = False) -> str:
    """Lock an open file; return "", or the reason why this file system has no locks.

    Raises:
        BlockingIOError: Another process holds the lock.
    """
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except OSError as error:
        if error.errno in (errno.EWOULDBLOCK, errno.EAGAIN, errno.EACCES):
            raise BlockingIOError(error.errno, os.strerror(error.errno)) from None
        return os.strerror(error.errno or 0)
    return ""


@contextlib.contextmanager
def one_at_a_time(folder: Path, most_s: float | None = None) -> Iterator[None]:
    """Run the body while no other process runs such a body for ``folder``; wait for it if necessary.

    Args:
        most_s: Longest time to wait in seconds; None: as long as it takes. Any program that may read the folder can
            lock it.

    Raises:
        OSError: The folder is gone, is none, or another program locks it for too long.
    """
    if not stat.S_ISDIR(folder.stat().st_mode):  # a file in its place would keep the folder from coming back
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(folder))
    try:
        descriptor = acquire(folder)
    except BlockingIOError:
        logger.info("%s: waiting for another process that is writing there", f"{folder}")
        descriptor = acquire(folder, wait=True) if most_s is None else _acquired_within(folder, most_s)
    try:
        yield
    finally:
        release(descriptor)


def _acquired_within(folder: Path, most_s: float) -> int:
    until = time.monotonic() + most_s
    while True:
        time.sleep(AGAIN_S)
        try:
            return acquire(folder)
        except BlockingIOError:
            if time.monotonic() > until:
                raise TimeoutError(errno.ETIMEDOUT, "another program has locked it", str(folder)) from None


AGAIN_S = 0.01
"""Time between two tries to lock a folder, in seconds."""

LOCK = "lock"
LOCK_PREFIX = b"process "  # beginning of a lock file of dragoman
NOT_OURS = "exists and is not a dragoman lock file; delete it or move it away, or choose another --out"


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold ``folder/lock`` while the body runs, so that only one process uses a run at a time.

    Raises:
        ConfigError: Another process holds the lock, the file cannot be created, or it may be another program's.
    """
    path = folder / LOCK
    with contextlib.suppress(OSError):  # there is none; or it cannot be created either, which says why
        if not stat.S_ISREG(path.lstat().st_mode):
            raise ConfigError(f"{path}: {NOT_OURS}")
    try:
        descriptor = acquire(path)
    except BlockingIOError:
        raise _held(path) from None
    except OSError as error:
        raise ConfigError(f"{folder}: cannot write there ({error.strerror or error}); choose another --out") from None
    try:
        if os.pread(descriptor, len(LOCK_PREFIX), 0) not in (b"", LOCK_PREFIX):
            raise ConfigError(f"{path}: {NOT_OURS}")
        os.ftruncate(descriptor, 0)
        name = LOCK_PREFIX + f"{os.getpid()} on {socket.gethostname()}\n".encode()
        try:
            with contextlib.suppress(OSError):  # on a full disk the lock holds, but names no process
                os.write(descriptor, name)
            yield
        finally:
            with contextlib.suppress(OSError):
                # the body may have removed it, and another process made its own; inodes may differ at each look
                if os.path.samestat(path.lstat(), os.fstat(descriptor)) or path.read_bytes() == name:
                    path.unlink()
    finally:
        release(descriptor)


def refuse_if_locked(folder: Path) -> None:
    """Check that no process holds ``folder/lock``, without changing anything.

    Raises:
        ConfigError: Another process holds it.
    """
    path = folder / LOCK
    with contextlib.suppress(OSError):  # what cannot be opened is refused by ``locked``
        descriptor = opened_to_lock(path)
        try:
            flock(descriptor)
        except BlockingIOError:
            raise _held(path) from None
        finally:
            release(descriptor)


def _held(path: Path) -> ConfigError:
    holder = "another process"
    with contextlib.suppress(OSError):
        holder = path.read_bytes()[:200].decode(errors="replace").strip() or holder
    return ConfigError(f"{path.parent}: {holder} is training there; wait for it, stop it, or choose another --out")
