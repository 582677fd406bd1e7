"""Files that are whole or absent: written aside, flushed, renamed; folders sealed by a manifest; a lock."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import json
import logging
import os
import shutil
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from dragoman.errors import BundleError, ConfigError, DragomanError

logger = logging.getLogger(__name__)

MANIFEST = "manifest.json"


def sha256(path: Path) -> str:
    """Hexadecimal SHA-256 of a file's bytes."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def write_text(path: Path, text: str) -> None:
    """Replace ``path`` by ``text`` in one step: after a crash it holds the old text or the new one."""
    with explained(path, len(text.encode())):
        _write_text(path, text)


def _write_text(path: Path, text: str) -> None:
    aside = path.with_name(f".{path.name}.tmp")
    try:
        with aside.open("w", encoding="utf-8", newline="\n") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        aside.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            aside.unlink()
        raise
    flush_folder(path.parent)


def check_output(out: Path, *inputs: Path | None) -> None:
    """See, before there is anything to write, that ``out`` can be written and is none of the files that are read.

    Raises:
        ConfigError: It cannot be, or it is.
    """
    if out.is_dir() or not os.access(out if out.exists() else out.parent, os.W_OK):
        raise ConfigError(f"{out}: cannot be written; give another name")
    refuse_an_input(out, *inputs)


def refuse_an_input(out: Path, *inputs: Path | None) -> None:
    """Refuse to write over what is read.

    Raises:
        ConfigError: ``out`` is one of the inputs, by whatever name.
    """
    if out.is_file() and any(one is not None and one.exists() and out.samefile(one) for one in inputs):
        raise ConfigError(f"{out}: is the input; give another name")


@contextlib.contextmanager
def explained(path: Path, n_bytes: int | None = None) -> Iterator[None]:
    """Turn an operating-system error about ``path`` into one line with what to do.

    Args:
        n_bytes: About how much is to be written, if that is known: said where the disk is full.
    """
    try:
        yield
    except OSError as error:
        size = ""
        if error.errno in _NO_SPACE or any(os.strerror(number) in str(error) for number in _NO_SPACE):
            needed = f"about {n_bytes:,} bytes are needed, " if n_bytes else ""
            size = f"; {needed}{_free_bytes(path):,} bytes are free"
        raise DragomanError(
            f"{path}: cannot be written ({error.strerror or error}){size}; free some space or choose another folder"
        ) from error


_NO_SPACE = (errno.ENOSPC, errno.EDQUOT)


def _free_bytes(path: Path) -> int:
    """What is left for us on the disk of ``path``, which need not exist."""
    there = next(folder for folder in (path, *path.absolute().parents) if folder.is_dir())
    return shutil.disk_usage(there).free


@contextlib.contextmanager
def sealed_folder(
    folder: Path, facts: dict[str, Any], n_bytes: int | None = None, name: str = MANIFEST
) -> Iterator[Path]:
    """Write a folder that appears whole or not at all.

    The body fills the folder it is given, which lies beside ``folder``. When it ends, each file is flushed, the
    manifest (``facts``, the SHA-256 and size of every file, and a SHA-256 of all this) is written last, and the folder
    takes its place; an older one of that name is replaced. If the body raises, the older one stays and nothing else.

    Args:
        facts: Read when the body has ended, so the body may add to it.
        n_bytes: About how large the folder will be, if that is known: said where the disk is full.
        name: Of the manifest.

    Raises:
        DragomanError: The disk is full or the folder cannot be written.
    """
    aside = folder.with_name(f".{folder.name}.tmp")
    with explained(folder, n_bytes):
        shutil.rmtree(aside, ignore_errors=True)
        aside.mkdir(parents=True)
        try:
            yield aside
            sums = {}
            for path in sorted(aside.iterdir()):
                with path.open("rb") as file:
                    os.fsync(file.fileno())
                sums[path.name] = {"bytes": path.stat().st_size, "sha256": sha256(path)}
            manifest = {**facts, "files": sums}
            manifest["sha256"] = _own_sum(manifest)
            _write_text(aside / name, json.dumps(manifest, indent=2) + "\n")  # in ASCII: a path may be no UTF-8
            _replace_folder(aside, folder)
        except BaseException:
            shutil.rmtree(aside, ignore_errors=True)
            raise


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
            raise BundleError(f"{file}: missing from this {what}; copy it again or take another one")
        try:
            whole = file.stat().st_size == size and sha256(file) == digest
        except OSError as error:
            raise BundleError(f"{file}: cannot be read ({error.strerror or error})") from None
        if not whole:
            raise BundleError(f"{file}: damaged (its SHA-256 is not the manifest's); copy it again or take another one")


LOCK = "lock"
OURS = b"process "  # what a lock begins with


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """One process at a time in a folder: hold ``folder/lock`` while the body runs.

    It is a lock of the operating system, which ends with its process, however that ends; a file left by a dead process
    is no lock.

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
