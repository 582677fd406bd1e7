"""Files and folders that are complete or absent, and locks between processes.

    write_text(path, text)                                # after a crash: the old text or the new text
    with sealed_folder(folder, facts) as new:             # a folder with a manifest of checksums
        ...
    with locked(run):                                     # one process at a time
        ...

New content is written to a temporary name next to its place, ``.NAME.XXXXXXXX.tmp``, flushed to disk and renamed. The
temporary name is random and its file is locked while the writer is alive. So two writers of one name do not collide,
and a link that someone placed there is not followed. A temporary file that is not locked was left by a dead process:
the next writer of that name removes it.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import json
import logging
import os
import re
import secrets
import shutil
import socket
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO

from dragoman.errors import BundleError, ConfigError, DragomanError

logger = logging.getLogger(__name__)

MANIFEST = "manifest.json"


def sha256(path: Path) -> str:
    """Return the hexadecimal SHA-256 of a file's bytes."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def write_text(path: Path, text: str) -> None:
    """Replace ``path`` by ``text`` in one step: after a crash it holds the old text or the new one.

    Raises:
        DragomanError: The file cannot be written.
    """
    write_bytes(path, text.encode())


def write_bytes(path: Path, content: bytes) -> None:
    """Replace ``path`` by ``content`` in one step, as ``write_text`` does."""
    with explained(path, len(content)):
        _write_bytes(path, content)


def _write_bytes(path: Path, content: bytes) -> None:
    with whole_file(path) as file:
        file.write(content)


@contextlib.contextmanager
def whole_file(path: Path) -> Iterator[BinaryIO]:
    """Open a file for writing that appears when the body ends; if the body raises, an older file stays.

    Raises:
        OSError: The file cannot be written; see ``explained``.
    """
    with _aside(path) as (aside, descriptor):
        with os.fdopen(descriptor, "wb", closefd=False) as file:
            yield file
            file.flush()
            os.fsync(descriptor)
        aside.replace(path)
    flush_folder(path.parent)


@contextlib.contextmanager
def _aside(path: Path, folder: bool = False) -> Iterator[tuple[Path, int]]:
    """Create a temporary file or folder next to ``path``, locked while the body runs; removed if the body raises.

    Yields:
        Its path and the descriptor that holds the lock.
    """
    remove_leftovers(path.parent, path.name)
    while True:
        aside = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
        if folder:
            aside.mkdir(parents=True)
        try:
            descriptor = acquire(aside, new=not folder, wait=True)
            break
        except FileNotFoundError:  # another writer removed the folder before it was locked
            if not folder:
                raise
    try:
        yield aside, descriptor
    except BaseException:
        _remove(aside)
        raise
    finally:
        os.close(descriptor)


def remove_leftovers(folder: Path, name: str | None = None) -> None:
    """Remove the temporary files that dead writers left in ``folder``: of any file, or of the one called ``name``.

    On a file system without locks no writer is known to be dead, and all of them stay.
    """
    temporary = re.compile(rf"\.{'.+' if name is None else re.escape(name)}\.[0-9a-f]{{8}}\.tmp")
    with contextlib.suppress(OSError):
        for leftover in [entry for entry in folder.iterdir() if temporary.fullmatch(entry.name)]:
            with contextlib.suppress(OSError):  # BlockingIOError: its writer is alive
                descriptor = os.open(leftover, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
                try:
                    if not _flock(descriptor):
                        _remove(leftover)
                finally:
                    os.close(descriptor)


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with contextlib.suppress(OSError):
            path.unlink()


def check_output(out: Path, *inputs: Path | None) -> None:
    """Check, before anything is computed, that ``out`` can be written and is not one of the input files.

    Raises:
        ConfigError: It cannot be written, or it is an input.
    """
    if out.is_dir() or not os.access(out if out.exists() else out.parent, os.W_OK):
        raise ConfigError(f"{out}: cannot be written; choose another name")
    refuse_an_input(out, *inputs)


def refuse_an_input(out: Path, *inputs: Path | None) -> None:
    """Check that ``out`` is not one of the input files, under any name.

    Raises:
        ConfigError: It is.
    """
    if out.is_file() and any(path is not None and path.exists() and out.samefile(path) for path in inputs):
        raise ConfigError(f"{out}: is the input; choose another name")


@contextlib.contextmanager
def explained(path: Path, n_bytes: int | None = None) -> Iterator[None]:
    """Turn an operating-system error in the body into a ``DragomanError`` of one line that says what to do.

    Args:
        n_bytes: Approximate size of what is written, if known; used in the message when the disk is full.
    """
    try:
        yield
    except OSError as error:
        advice = "choose another folder"
        if error.errno in _NO_SPACE or any(os.strerror(number) in str(error) for number in _NO_SPACE):
            needed = f"about {n_bytes:,} bytes are needed, " if n_bytes else ""
            advice = f"{needed}{_free_bytes(path):,} bytes are free; free some space or choose another folder"
        raise DragomanError(f"{path}: cannot be written ({error.strerror or error}); {advice}") from error


_NO_SPACE = (errno.ENOSPC, errno.EDQUOT)


def _free_bytes(path: Path) -> int:
    """Return the bytes available to this user on the disk of ``path``, which need not exist."""
    existing = next(folder for folder in (path, *path.absolute().parents) if folder.is_dir())
    return shutil.disk_usage(existing).free


@contextlib.contextmanager
def sealed_folder(
    folder: Path, facts: dict[str, Any], n_bytes: int | None = None, name: str = MANIFEST,
    unsealed: Sequence[str] = (),
) -> Iterator[Path]:  # fmt: skip
    """Write a folder that appears complete or not at all.

    The body fills the temporary folder that it is given. When it ends, each file is flushed to disk, the manifest is
    written last, and the folder is renamed to its place, where it replaces an older one. If the body raises, the older
    one stays. The manifest contains ``facts``, the size and SHA-256 of every file, and a SHA-256 of all this.

    Args:
        facts: Entries of the manifest; read after the body has ended, so the body may add to them.
        n_bytes: Approximate size of the folder, if known; used in the message when the disk is full.
        name: File name of the manifest.
        unsealed: Files that the manifest leaves out because they may be rewritten later.

    Raises:
        DragomanError: The disk is full or the folder cannot be written.
    """
    with explained(folder, n_bytes), _aside(folder, folder=True) as (aside, _):
        yield aside
        sums = {}
        for path in sorted(aside.iterdir()):
            with path.open("rb") as file:
                os.fsync(file.fileno())
            if path.name in unsealed:
                continue
            sums[path.name] = {"bytes": path.stat().st_size, "sha256": sha256(path)}
        manifest = {**facts, "files": sums}
        manifest["sha256"] = _own_sum(manifest)
        text = json.dumps(manifest, indent=2) + "\n"  # ASCII, as a path may not be UTF-8
        _write_bytes(aside / name, text.encode())
        _replace_folder(aside, folder)


def _own_sum(manifest: dict[str, Any]) -> str:
    """Return the SHA-256 of a manifest without its own ``sha256`` entry."""
    entries = {key: value for key, value in manifest.items() if key != "sha256"}
    return hashlib.sha256(json.dumps(entries, sort_keys=True).encode()).hexdigest()


def _replace_folder(aside: Path, folder: Path) -> None:
    """Rename ``aside`` to ``folder``. Between two renames an older folder is at ``.NAME.old``; see ``standing``."""
    old = _old(folder)
    moved = folder.exists()
    if moved:
        shutil.rmtree(old, ignore_errors=True)
        folder.rename(old)
    try:
        aside.rename(folder)
    except BaseException:
        if moved:
            old.rename(folder)
        raise
    flush_folder(folder.parent)
    shutil.rmtree(old, ignore_errors=True)


def _old(folder: Path) -> Path:
    return folder.with_name(f".{folder.name}.old")


def standing(folder: Path) -> Path:
    """Return ``folder``; or, if a process died while replacing it, the older one that is still at ``.NAME.old``."""
    return folder if folder.exists() or not _old(folder).is_dir() else _old(folder)


def flush_folder(folder: Path) -> None:
    """Flush a folder's list of names to disk; without this a rename may be lost when the power fails."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def check_sealed(folder: Path, what: str, name: str = MANIFEST) -> dict[str, Any]:
    """Read the manifest of a sealed folder and check every file against it.

    Args:
        what: Kind of folder for error messages, such as "bundle".
        name: File name of the manifest.

    Returns:
        The manifest.

    Raises:
        BundleError: The folder or its manifest is missing, or a file is missing or changed.
    """
    manifest = read_manifest(folder, what, name)
    check_files(folder, what, manifest)
    return manifest


def read_manifest(folder: Path, what: str, name: str = MANIFEST) -> dict[str, Any]:
    """Read and check the manifest of a sealed folder, without reading the files: the first half of ``check_sealed``."""
    path = folder / name
    if not folder.is_dir():
        raise BundleError(f"{folder}: no such {what}")
    try:
        manifest: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        _sums(manifest)
        own = _own_sum(manifest)
        if manifest.get("sha256", own) != own:
            raise ValueError
    except FileNotFoundError:
        raise BundleError(f"{folder}: not a {what} of dragoman, or an unfinished one (no {name})") from None
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise BundleError(f"{path}: the manifest is damaged ({type(error).__name__})") from None
    return manifest


def _sums(manifest: dict[str, Any]) -> dict[str, tuple[int, str]]:
    """Return the size and SHA-256 of each file according to the manifest."""
    return {file: (entry["bytes"], entry["sha256"]) for file, entry in manifest["files"].items()}


def check_files(folder: Path, what: str, manifest: dict[str, Any]) -> None:
    """Check every file against the manifest: the second half of ``check_sealed``."""
    for file_name, (size, digest) in _sums(manifest).items():
        file = folder / file_name
        if Path(file_name).name != file_name or not file.is_file():
            raise BundleError(f"{file}: missing from this {what}; copy it again or use another one")
        try:
            whole = file.stat().st_size == size and sha256(file) == digest
        except OSError as error:
            raise BundleError(f"{file}: cannot be read ({error.strerror or error})") from None
        if not whole:
            raise BundleError(f"{file}: damaged (its SHA-256 is not the manifest's); copy it again or use another one")


def acquire(path: Path, wait: bool = False, new: bool = False) -> int:
    """Open a file (created if missing) or a folder, and lock it for this process.

    The lock belongs to the operating system. It ends when the descriptor is closed or the process ends in any way, so
    there are no stale locks. If the file loses its name while it is being locked, the function tries again. Links are
    not followed.

    Args:
        wait: Wait until another process releases the lock.
        new: Create the file, which must not exist.

    Returns:
        The descriptor.

    Raises:
        BlockingIOError: Another process holds the lock, and ``wait`` is False.
        OSError: The file cannot be opened.
    """
    flags = os.O_RDONLY if path.is_dir() else os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | (os.O_EXCL if new else 0)
    while True:
        descriptor = os.open(path, flags, 0o666)
        try:
            reason = _flock(descriptor, wait)
            if reason and not wait:
                logger.warning(
                    "%s: this file system has no locks (%s); make sure no other process writes there", path, reason
                )
            with contextlib.suppress(FileNotFoundError):
                if os.path.samestat(path.stat(), os.fstat(descriptor)):
                    return descriptor
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)


def _flock(descriptor: int, wait: bool = False) -> str:
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
def one_at_a_time(folder: Path) -> Iterator[None]:
    """Run the body while no other process runs such a body for ``folder``; wait for it if necessary."""
    try:
        descriptor = acquire(folder)
    except BlockingIOError:
        logger.info("%s: waiting for another process that is writing there", folder)
        descriptor = acquire(folder, wait=True)
    try:
        yield
    finally:
        os.close(descriptor)


LOCK = "lock"
LOCK_PREFIX = b"process "  # beginning of a lock file of dragoman


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold ``folder/lock`` while the body runs, so that only one process uses a run at a time.

    Raises:
        ConfigError: Another process holds the lock, or the file cannot be created.
    """
    path = folder / LOCK
    try:
        descriptor = acquire(path)
    except BlockingIOError:
        raise _held(path) from None
    except OSError as error:
        raise ConfigError(f"{folder}: cannot write there ({error.strerror or error}); choose another --out") from None
    try:
        if os.pread(descriptor, len(LOCK_PREFIX), 0) not in (b"", LOCK_PREFIX):
            raise ConfigError(f"{path}: exists and is not a dragoman lock file; choose another --out")
        os.ftruncate(descriptor, 0)
        try:
            with contextlib.suppress(OSError):  # on a full disk the lock holds, but names no process
                os.write(descriptor, LOCK_PREFIX + f"{os.getpid()} on {socket.gethostname()}\n".encode())
            yield
        finally:
            with contextlib.suppress(OSError):
                path.unlink()
    finally:
        os.close(descriptor)


def refuse_if_locked(folder: Path) -> None:
    """Check that no process holds ``folder/lock``, without changing anything.

    Raises:
        ConfigError: Another process holds it.
    """
    path = folder / LOCK
    with contextlib.suppress(FileNotFoundError, NotADirectoryError, PermissionError):
        descriptor = os.open(path, os.O_RDONLY)
        try:
            _flock(descriptor)
        except BlockingIOError:
            raise _held(path) from None
        finally:
            os.close(descriptor)


def _held(path: Path) -> ConfigError:
    holder = "another process"
    with contextlib.suppress(OSError):
        holder = path.read_bytes()[:200].decode(errors="replace").strip() or holder
    return ConfigError(f"{path.parent}: {holder} is training there; wait for it, stop it, or choose another --out")
