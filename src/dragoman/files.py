"""Files that are whole or absent: written aside, flushed, renamed; folders sealed by a manifest; the one lock.

What is written aside has a name that nobody can guess, ``.NAME.XXXXXXXX.tmp``, and is locked while its writer lives. So
two writers of one name do not meet, a link that somebody placed is not followed, and what a dead process left is known
by its not being locked: the next writer of that name removes it.
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
    """Hexadecimal SHA-256 of a file's bytes."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def write_text(path: Path, text: str) -> None:
    """Replace ``path`` by ``text`` in one step: after a crash it holds the old text or the new one.

    Raises:
        DragomanError: It cannot be written.
    """
    write_bytes(path, text.encode())


def write_bytes(path: Path, content: bytes) -> None:
    """Replace ``path`` by ``content`` in one step; as ``write_text``."""
    with explained(path, len(content)):
        _write_bytes(path, content)


def _write_bytes(path: Path, content: bytes) -> None:
    with whole_file(path) as file:
        file.write(content)


@contextlib.contextmanager
def whole_file(path: Path) -> Iterator[BinaryIO]:
    """Write a file that appears when the body ends; if the body raises, an older one stays and nothing else.

    Raises:
        OSError: It cannot be written; ``explained`` makes one line of that.
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
    """Make a file or folder beside ``path``, and lock it while the body runs, by which it is known to be in use.

    If the body raises, it is removed.
    """
    _clear_away(path)
    while True:
        aside = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
        if folder:
            aside.mkdir(parents=True)
        try:
            descriptor = acquire(aside, new=not folder, wait=True)
            break
        except FileNotFoundError:  # cleared away before it was locked
            if not folder:
                raise
    try:
        yield aside, descriptor
    except BaseException:
        _remove(aside)
        raise
    finally:
        os.close(descriptor)


def _clear_away(path: Path) -> None:
    """Remove what processes that died while they wrote ``path`` left beside it.

    On a file system without locks nothing is known to be dead, and it stays.
    """
    ours = re.compile(re.escape(f".{path.name}.") + r"[0-9a-f]{8}\.tmp")
    with contextlib.suppress(OSError):
        for left in [entry for entry in path.parent.iterdir() if ours.fullmatch(entry.name)]:
            with contextlib.suppress(OSError):  # a BlockingIOError: its writer is alive
                descriptor = os.open(left, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
                try:
                    if not _flock(descriptor):
                        _remove(left)
                finally:
                    os.close(descriptor)


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with contextlib.suppress(OSError):
            path.unlink()


def check_output(out: Path, *inputs: Path | None) -> None:
    """See, before there is anything to write, that ``out`` can be written and is none of the files that are read.

    Raises:
        ConfigError: It cannot be, or it is.
    """
    if out.is_dir() or not os.access(out if out.exists() else out.parent, os.W_OK):
        raise ConfigError(f"{out}: cannot be written; choose another name")
    refuse_an_input(out, *inputs)


def refuse_an_input(out: Path, *inputs: Path | None) -> None:
    """Refuse to write over what is read.

    Raises:
        ConfigError: ``out`` is one of the inputs, by whatever name.
    """
    if out.is_file() and any(one is not None and one.exists() and out.samefile(one) for one in inputs):
        raise ConfigError(f"{out}: is the input; choose another name")


@contextlib.contextmanager
def explained(path: Path, n_bytes: int | None = None) -> Iterator[None]:
    """Turn an operating-system error about ``path`` into one line with what to do.

    Args:
        n_bytes: About how much is to be written, if that is known: said where the disk is full.
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
    """What is left for us on the disk of ``path``, which need not exist."""
    there = next(folder for folder in (path, *path.absolute().parents) if folder.is_dir())
    return shutil.disk_usage(there).free


@contextlib.contextmanager
def sealed_folder(
    folder: Path, facts: dict[str, Any], n_bytes: int | None = None, name: str = MANIFEST,
    unsealed: Sequence[str] = (),
) -> Iterator[Path]:  # fmt: skip
    """Write a folder that appears whole or not at all.

    The body fills the folder it is given, which lies beside ``folder``. When it ends, each file is flushed, the
    manifest (``facts``, the SHA-256 and size of every file, and a SHA-256 of all this) is written last, and the folder
    takes its place; an older one of that name is replaced. If the body raises, the older one stays and nothing else.

    Args:
        facts: Read when the body has ended, so the body may add to it.
        n_bytes: About how large the folder will be, if that is known: said where the disk is full.
        name: Of the manifest.
        unsealed: Files that the manifest leaves out, since they may be written again.

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
        text = json.dumps(manifest, indent=2) + "\n"  # in ASCII: a path may be no UTF-8
        _write_bytes(aside / name, text.encode())
        _replace_folder(aside, folder)


def _own_sum(manifest: dict[str, Any]) -> str:
    """SHA-256 of what a manifest says, its own sum left out."""
    said = {key: value for key, value in manifest.items() if key != "sha256"}
    return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()


def _replace_folder(aside: Path, folder: Path) -> None:
    """Put ``aside`` in its place. Between two renames an older folder stands at ``.NAME.old``: see ``standing``."""
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
    """``folder``; or, if a process died while it replaced it, the older one, which then stands beside its place."""
    return folder if folder.exists() or not _old(folder).is_dir() else _old(folder)


def flush_folder(folder: Path) -> None:
    """Have the names in a folder written to the disk: a renaming survives a loss of power only then."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def check_sealed(folder: Path, what: str, name: str = MANIFEST) -> dict[str, Any]:
    """Read the manifest of a sealed folder and check every file against it.

    Args:
        what: How to call the folder in an error, such as "bundle".
        name: Of the manifest.

    Returns:
        The manifest.

    Raises:
        BundleError: There is no such folder, no manifest, or a file is missing or changed.
    """
    manifest = read_manifest(folder, what, name)
    check_files(folder, what, manifest)
    return manifest


def read_manifest(folder: Path, what: str, name: str = MANIFEST) -> dict[str, Any]:
    """Read the manifest of a sealed folder and check it, but not yet the files: the first half of ``check_sealed``."""
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
    """Size and SHA-256 of each file, as the manifest has them."""
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
    """Open a file (made, if it is missing) or a folder, and lock it for this process.

    The lock is the operating system's. It ends when the descriptor is closed or the process ends, however that ends, so
    none is ever stale. Whoever locked a file that lost its name meanwhile tries again. A link is not followed.

    Args:
        wait: Until another process lets it go.
        new: Make the file, which must not be there.

    Returns:
        The descriptor.

    Raises:
        BlockingIOError: Another process holds it.
        OSError: It cannot be opened.
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
    """Lock what is open; returns why this file system has no locks, or nothing if it has.

    Raises:
        BlockingIOError: Another process holds it.
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
    """Wait until no other process is in a body like this for ``folder``, and run the body."""
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
OURS = b"process "  # what a lock begins with


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """One process at a time in a run: hold ``folder/lock`` while the body runs.

    Raises:
        ConfigError: Another process holds it, or the file cannot be made.
    """
    path = folder / LOCK
    try:
        descriptor = acquire(path)
    except BlockingIOError:
        raise _held(path) from None
    except OSError as error:
        raise ConfigError(f"{folder}: cannot write there ({error.strerror or error}); choose another --out") from None
    try:
        if os.pread(descriptor, len(OURS), 0) not in (b"", OURS):
            raise ConfigError(f"{path}: exists and is not a dragoman lock file; choose another --out")
        os.ftruncate(descriptor, 0)
        try:
            with contextlib.suppress(OSError):  # a full disk: the lock holds without a name
                os.write(descriptor, OURS + f"{os.getpid()} on {socket.gethostname()}\n".encode())
            yield
        finally:
            with contextlib.suppress(OSError):
                path.unlink()
    finally:
        os.close(descriptor)


def refuse_if_locked(folder: Path) -> None:
    """Look for a holder of ``folder/lock`` and change nothing.

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
