"""Files that a server stores for its clients, on a disk that may be full.

with storing(), one_at_a_time(folder):                # a full disk becomes a ``FullError``, whose text names no path
    reserve(folder / "result.room", 2 * n_bytes)      # before the work, so that its result fits
...
fill(folder / "result.room", folder / "result", content)
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import os
import shutil
import stat
import tempfile
import time
from collections.abc import Callable, Collection, Hashable, Iterator
from concurrent.futures import Executor, Future
from functools import partial
from pathlib import Path
from typing import BinaryIO, Generic, TypeVar

from dragoman.errors import DragomanError
from dragoman.files import flush_name
from dragoman.serving.helpers import started
from dragoman.serving.refusals import BusyError, FullError, RefusalError, UnstorableError
from dragoman.serving.turns import Turns

logger = logging.getLogger("dragoman.serving")

V = TypeVar("V")

NO_SPACE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""Errors of a disk without room: the disk is full, the quota is used up, or files may not be so large."""

BLOCK = 1024 * 1024
"""Size of the writes that occupy a disk where the system cannot allocate, in bytes."""

TRIED = 64 * 1024
"""Size of the file that is written to try a disk, in bytes."""

AGAIN_S = (0.02, 0.1, 0.3)
"""Times between the tries of what would be lost otherwise, in seconds: the process may have too many files open."""

UNSETTLED_S = 3.0
"""Time in seconds in which another change may give a file the same time of whole seconds: those of FAT are even."""

LOCK_S = 5.0
"""Longest time for which a change waits while another program locks the folder, in seconds."""

AT_ONCE = 4
"""Number of threads that read and write the files of one store."""

MOST_CHANGES = 32
"""Largest number of changes of one key that wait for their turn."""


class Disk:
    """Threads for the files of one store: a slow disk, or a folder that another program locks, delays nothing else."""

    def __init__(self) -> None:
        """Start the threads."""
        self._changes, self.turns = started(1, "disk-change"), Turns(1)
        self._others, self._other_turns = started(AT_ONCE, "disk"), Turns(AT_ONCE, AT_ONCE - 1)

    async def change(self, owner: str, work: Callable[..., V], *arguments: object) -> V:
        """Return ``work(*arguments)``, which locks the folder: one such call at a time, of each key in turn.

        Raises:
            BusyError: Too many changes of this key wait.
        """
        if self.turns.n_waiting(owner) >= MOST_CHANGES:
            raise BusyError(LOCK_S)
        async with self.turns.of(owner):
            return await _in_thread(self._changes, work, *arguments)

    async def run(self, owner: str, work: Callable[..., V], *arguments: object) -> V:
        """Return ``work(*arguments)``, which reads or writes files and locks nothing; keys take turns.

        Args:
            owner: Name of the key for which it is done, which has all threads but one at most; "" for the server.
        """
        async with self._other_turns.of(owner):
            return await _in_thread(self._others, work, *arguments)

    def begin(self, work: Callable[..., V], *arguments: object) -> Future[V]:
        """Call ``work(*arguments)`` in a thread, without a turn and without waiting for its end."""
        return self._others.submit(work, *arguments)


async def _in_thread(threads: Executor, work: Callable[..., V], *arguments: object) -> V:
    """Return ``work(*arguments)`` of a thread.

    A caller that is cancelled waits for work that has begun: it writes nothing more when the next call looks at the
    files. Work that has not begun never does.
    """
    called = threads.submit(partial(work, *arguments))
    result = asyncio.wrap_future(called)
    try:
        return await asyncio.shield(result)
    except asyncio.CancelledError:
        if not called.cancel():
            await asyncio.wait({result})
        raise


def refusal_of(error: OSError) -> RefusalError:
    """Return what a client is told of an error of the server's disk; the error itself goes to the log."""
    logger.error("the disk of this server: %s", error)
    return FullError() if error.errno in NO_SPACE else UnstorableError()


def is_full(error: BaseException) -> bool:
    """Return True if ``error`` says that a disk has no room, as the system does or as ``files.explained`` does.

    Not if a file is larger than any may be: nothing that is removed makes room for it.
    """
    cause = error if isinstance(error, OSError) else error.__cause__
    return isinstance(cause, OSError) and cause.errno in NO_SPACE and cause.errno != errno.EFBIG


@contextlib.contextmanager
def storing() -> Iterator[None]:
    """Turn an error of the disk in the body into a refusal that tells the client nothing about this machine.

    Raises:
        FullError: The disk is full.
        UnstorableError: It cannot be written or read for another reason.
    """
    try:
        yield
    except OSError as error:
        raise refusal_of(error) from error
    except DragomanError as error:  # as ``files.explained`` makes of one
        if isinstance(error, RefusalError) or not isinstance(error.__cause__, OSError):
            raise
        logger.error("%s", error)
        raise refusal_of(error.__cause__) from error.__cause__


def several_times(work: Callable[..., V], *arguments: object) -> V:
    """Return ``work(*arguments)``; after an error that may pass it is tried again, a little later.

    Raises:
        FullError: The disk is full, at once: a little later it still is.
        UnstorableError: No try succeeded.
    """
    for pause_s in AGAIN_S:
        try:
            return work(*arguments)
        except UnstorableError:
            time.sleep(pause_s)
    return work(*arguments)


def make_private(folder: Path) -> None:
    """Make a folder for what clients store, unless it is there; other users of the machine may not read it.

    Raises:
        OSError: It cannot be made, or nothing can be stored there.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        tempfile.TemporaryFile(dir=folder).close()
    except OSError as error:
        if error.errno not in NO_SPACE:  # a full disk may have room later
            raise
    if folder.stat().st_mode & stat.S_IWOTH:
        logger.warning(
            "%s: every user of this machine may write there, and remove what clients store: take that right away "
            "(chmod o-w)", folder,
        )  # fmt: skip


def opened(path: Path, *, to_change: bool = False) -> BinaryIO:
    """Open a stored file. A link, a pipe or a device in its place counts as no file, and nothing waits for it.

    Raises:
        FileNotFoundError: There is no such file.
        OSError: It cannot be opened.
    """
    missing = FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))
    flags = (os.O_RDWR if to_change else os.O_RDONLY) | os.O_NOFOLLOW | os.O_NONBLOCK
    try:
        descriptor = os.open(path, flags)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENXIO):  # a link; a socket
            raise missing from None
        raise
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise missing
        return os.fdopen(descriptor, "r+b" if to_change else "rb")
    except BaseException:
        os.close(descriptor)
        raise


def text_of(path: Path) -> str:
    """Return the text of a stored file; see ``opened``.

    Raises:
        OSError: It cannot be read.
        UnicodeDecodeError: It is no UTF-8.
    """
    with opened(path) as file:
        return file.read().decode()


def version_of(path: Path) -> Hashable | None:
    """Return what tells the versions of a file apart; None if it is gone.

    A file system with times of whole seconds gives two changes in one second the same time, and perhaps the same inode.
    So a time of whole seconds is trusted only when it is old; until then the file counts as changed at each look.

    Raises:
        OSError: It cannot be looked at for another reason.
    """
    try:
        state = path.lstat()
    except FileNotFoundError:
        return None
    if state.st_mtime_ns % 10**9 == 0 and abs(time.time() - state.st_mtime) < UNSETTLED_S:
        return object()  # no other version equals it
    return state.st_mtime_ns, state.st_ino, state.st_size


class Outlines(Generic[V]):
    """Short values made of files; only a file that has changed is read again. Any thread may use it."""

    def __init__(self) -> None:
        self._values: dict[Path, tuple[Hashable, V]] = {}

    def get(self, path: Path, make: Callable[[], V | None]) -> V | None:
        """Return the value of a file, which ``make`` reads; None if the file is gone, or ``make`` returns None."""
        try:
            version = version_of(path)
        except OSError:
            version = None
        known = self._values.get(path)
        if version is None or known is None or known[0] != version:
            value = make() if version is not None else None
            if version is None or value is None:
                return None
            known = self._values[path] = version, value
        return known[1]

    def forget(self, path: Path) -> None:
        """Forget the value of a file: this process has changed it."""
        self._values.pop(path, None)

    def keep(self, paths: Collection[Path]) -> None:
        """Forget the values of all other files."""
        for path in self._values.keys() - set(paths):
            self._values.pop(path, None)


def reserve(path: Path, n_bytes: int) -> None:
    """Make a file that occupies ``n_bytes``; nothing is left if there is no room.

    Raises:
        OSError: The disk is full, or the file cannot be made.
    """
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o666)
    try:
        try:
            _allocate(descriptor, n_bytes)
        finally:
            os.close(descriptor)
    except BaseException:
        path.unlink()
        raise


def _allocate(descriptor: int, n_bytes: int) -> None:
    """Let an empty file occupy ``n_bytes``.

    Raises:
        OSError: The disk is full.
    """
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(descriptor, 0, n_bytes)
        return
    while n_bytes > 0:  # macOS
        n_bytes -= os.write(descriptor, bytes(min(n_bytes, BLOCK)))


def fill(room: Path, path: Path, content: bytes) -> None:
    """Write ``content`` into the reserved file ``room``, and rename it to ``path``, which is complete or absent.

    Raises:
        OSError: The content is longer than what was reserved, and the disk is full.
    """
    with opened(room, to_change=True) as file:
        file.write(content)
        file.truncate()
        file.flush()
        os.fsync(file.fileno())
    room.replace(path)
    flush_name(path)


def has_room(folder: Path, n_bytes: int) -> bool:
    """Return True if ``n_bytes`` are free on the disk of ``folder``, and a small file can be written there.

    The log has another reason than a full disk.
    """
    try:
        with tempfile.TemporaryFile(dir=folder) as file:  # without a name: nothing is left of it after a kill
            _allocate(file.fileno(), TRIED)
        return shutil.disk_usage(folder).free >= n_bytes
    except OSError as error:
        if error.errno not in NO_SPACE:
            logger.warning("%s: nothing can be stored there now: %s", folder, error.strerror or error)
        return False
