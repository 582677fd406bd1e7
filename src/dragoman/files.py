"""Files and folders that are complete or absent.

    write_text(path, text)                                # after a crash: the old text or the new text
    with sealed_folder(folder, facts) as new:             # a folder with a manifest of checksums
        ...
    with whole_files((src, tgt), report) as files:        # several files that belong together, and a report on them
        ...
    write_report(report, facts, (src, tgt))

New content is written to a temporary name next to its place, ``.NAME.XXXXXXXX.tmp``, flushed to disk and renamed. The
temporary name is random and its file is locked while the writer is alive. So two writers of one name do not collide,
and a link that someone placed there is not followed. A temporary file that is not locked was left by a dead process:
the next writer of that name removes it, in a folder of thousands perhaps a later one, and ``remove_leftovers`` all that
are in a folder.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import logging
import os
import re
import secrets
import shutil
import stat
import tempfile
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import combinations, count
from pathlib import Path, PosixPath
from typing import Any, BinaryIO

from dragoman.errors import BYTES_OF_NAMES, BundleError, ConfigError, DragomanError, UnreadableError
from dragoman.locks import acquire, flock, opened_to_lock, release

logger = logging.getLogger(__name__)

MANIFEST = "manifest.json"
MOST_NAME_BYTES = 255 - len("..12345678.tmp")
"""Longest name of an output in bytes: that of its temporary file is longer, and a name has at most 255."""
HEAD_BYTES = 2**14
"""Length of the beginning of a file in which the marks of its writer are looked for."""
FEW_NAMES = 100
"""A folder is listed again after one file for each so many of its names."""


STDIN = Path("/dev/stdin")
"""Input of a command that was given no file: an output may be the file that is redirected to it."""


class _Pinned(PosixPath):
    """An absolute path that f-strings, and so messages, show as it was given: relative to the current folder."""

    __slots__ = ()

    def __format__(self, spec: str) -> str:
        try:
            here = str(Path.cwd())
        except OSError:  # it was removed
            return format(str(self), spec)
        return format("." if str(self) == here else str(self).removeprefix(f"{here}/"), spec)


def pinned(path: Path | str) -> Path:
    """Return a path made absolute, for a file that is used more than once: the caller may change its current folder.

    Messages show it as it was given, unless the current folder is another one by then.
    """
    path = as_path(path)
    return path if path.is_absolute() else _Pinned(path.absolute())


def as_path(path: Path | str) -> Path:
    """Return a path that may be text. Messages would show a ``pinned`` one absolute after ``Path(path)``."""
    return path if isinstance(path, Path) else Path(path)


def below(folder: Path, hidden: tuple[str, ...] = ()) -> list[Path]:
    """Return all that is below a folder but folders, sorted: files, and links, which are not followed.

    Args:
        hidden: How the names of files and folders begin that are left out.

    Raises:
        UnreadableError: A folder cannot be read.
    """
    paths, kind = [], type(folder)  # ``pinned`` or not

    def refuse(error: OSError) -> None:
        where = kind(error.filename)
        raise UnreadableError(f"{where}: cannot be read ({error.strerror}); check its permissions") from error

    for at, folders, names in os.walk(folder, onerror=refuse):
        folders[:] = [name for name in folders if not name.startswith(hidden)]
        paths += [kind(at, name) for name in names if not name.startswith(hidden)]
        paths += [path for path in (kind(at, name) for name in folders) if path.is_symlink()]
    return sorted(paths)


def names_in(folder: Path) -> list[str]:
    """Return the names in a folder, sorted; none where there is no folder.

    ``Path.glob`` takes a folder that cannot be read for an empty one.

    Raises:
        UnreadableError: The folder is there, but cannot be read.
    """
    try:
        return sorted(path.name for path in folder.iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise unreadable(folder, error) from error


def unreadable(path: Path, error: OSError) -> DragomanError:
    """Return the error of a file or folder that cannot be read: it is missing, or is there and cannot be read now."""
    is_missing = isinstance(error, FileNotFoundError | NotADirectoryError | IsADirectoryError)
    return (BundleError if is_missing else UnreadableError)(f"{path}: cannot be read ({error.strerror or error})")


def sha256(path: Path) -> str:
    """Return the hexadecimal SHA-256 of a file's bytes."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def write_text(path: Path, text: str) -> None:
    """Replace ``path`` by ``text`` in one step: after a crash it holds the old text or the new one.

    Raises:
        DragomanError: The file cannot be written.
    """
    write_bytes(path, text.encode(errors=BYTES_OF_NAMES))


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
    with _renamed_file(path) as file:
        yield file
    flush_name(path)


@contextlib.contextmanager
def _renamed_file(path: Path) -> Iterator[BinaryIO]:
    """Open a file as ``whole_file`` does; its new name is not flushed to disk."""
    with _aside(path) as (aside, descriptor):
        with os.fdopen(descriptor, "wb", closefd=False) as file:
            yield file
            file.flush()
            os.fsync(descriptor)
        aside.replace(path)


@contextlib.contextmanager
def whole_files(paths: Sequence[Path], report: Path) -> Iterator[list[BinaryIO]]:
    """Open several files for writing that belong together, and that a report vouches for (``write_report``).

    When the body ends, the report and the older files are moved away before the first new file appears. So after a
    crash old and new files never stand next to each other, and no report stands next to files that it was not made for.
    If the body raises, or a file cannot be written, the older files and their report stay.

    Raises:
        OSError: A file cannot be written; see ``explained``.
        DragomanError: An older file cannot be replaced.
    """
    with contextlib.ExitStack() as open_files:
        files = [open_files.enter_context(whole_file(path)) for path in paths]
        yield files
        for file in files:
            file.flush()
            os.fsync(file.fileno())
        with _moved_away((report, *paths)):
            flush_name(report)
            open_files.close()  # here the new files appear


@contextlib.contextmanager
def _moved_away(paths: Sequence[Path]) -> Iterator[None]:
    """Move files away while the body puts new ones in their places; if it raises, all of the older ones come back.

    After a kill they are under temporary names, as leftovers. Another process that removes leftovers there meanwhile
    takes them for such.

    Raises:
        IsADirectoryError: One of them is a folder.
        DragomanError: One of them cannot be moved, such as a mount point.
    """
    older = {path: _temporary_name(path) for path in paths if os.path.lexists(path)}
    for path in older:  # which would be moved, but not replaced
        if stat.S_ISDIR(path.lstat().st_mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    try:
        for path, aside in older.items():
            with explained(path):
                path.rename(aside)
        yield
    except BaseException:
        for path in paths:  # all new files go first: none may stand next to an older one
            if path not in older or os.path.lexists(older[path]):
                with contextlib.suppress(OSError):
                    path.unlink()
        for path, aside in reversed(older.items()):
            if os.path.lexists(aside):
                try:
                    aside.rename(path)
                except OSError as error:
                    logger.error(
                        "%s: cannot come back (%s): its content is in %s", f"{path}", error.strerror, f"{aside}"
                    )
        raise
    for aside in older.values():
        _remove(aside)


def write_report(report: Path, facts: Mapping[str, Any], files: Sequence[Path]) -> None:
    """Write a report on files that belong together: ``facts``, and the size and SHA-256 of each file.

    Raises:
        DragomanError: The report cannot be written.
    """
    write_text(report, json.dumps({**facts, "files": sums_of(files)}, indent=2) + "\n")


def missing_line_end(file: BinaryIO) -> bytes:
    """Return the LF that the last line of a file lacks; ``b""`` if nothing is missing. The end may be read next."""
    size = file.seek(0, os.SEEK_END)
    file.seek(max(0, size - 1))
    return b"" if file.read(1) in (b"", b"\n") else b"\n"


def read_report(report: Path, files: Sequence[Path]) -> dict[str, Any] | None:
    """Return a report if exactly these files are as they were when it was written; else None."""
    try:
        facts: dict[str, Any] = json.loads(report.read_text(encoding="utf-8"))
        return facts if facts["files"] == sums_of(files) else None
    except (OSError, ValueError, TypeError, KeyError, RecursionError):
        return None


def sums_of(paths: Iterable[Path]) -> dict[str, dict[str, Any]]:
    """Return the size and SHA-256 of each file, by its name."""
    return {path.name: {"bytes": path.stat().st_size, "sha256": sha256(path)} for path in paths}


@contextlib.contextmanager
def _aside(path: Path, folder: bool = False) -> Iterator[tuple[Path, int]]:
    """Create a temporary file or folder next to ``path``, locked while the body runs; removed if the body raises.

    Yields:
        Its path and the descriptor that holds the lock.
    """
    remove_leftovers_of(path)
    while True:
        aside = _temporary_name(path)
        if folder:
            aside.mkdir(parents=True)
        try:
            descriptor = acquire(aside, new=not folder, wait=True)
            break
        except FileNotFoundError:  # another writer removed the folder before it was locked
            if not folder:
                raise
        except BaseException:
            if folder:  # a file was removed by ``acquire``, unless it is another program's
                _remove(aside)
            raise
    try:
        keep_access(descriptor, path)
        yield aside, descriptor
    except BaseException:
        _remove(aside)
        raise
    finally:
        release(descriptor)  # all that counts was flushed, and may stand in its place


def keep_access(descriptor: int, path: Path) -> None:
    """Give a file or folder that will replace ``path`` its permissions, and its owner and group as far as one may.

    Else a text that was private would become readable to others. Its owner can always use it.
    """
    try:
        older = path.stat()
    except OSError:  # nothing is replaced
        return
    mode = stat.S_IMODE(older.st_mode) & 0o2777 | (0o700 if stat.S_ISDIR(older.st_mode) else 0o600)
    try:
        os.fchown(descriptor, -1, older.st_gid)
    except OSError:  # another group may do what all others may
        mode = mode & ~0o2070 | (mode & 0o007) << 3
    with contextlib.suppress(OSError):
        os.fchown(descriptor, older.st_uid, -1)
    with contextlib.suppress(OSError):  # as on a file system without permissions
        os.fchmod(descriptor, mode)


def _temporary_name(path: Path) -> Path:
    return path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")


_TEMPORARY = re.compile(r"\.(?P<name>.+)\.[0-9a-f]{8}\.tmp")


def final_name(path: Path) -> str:
    """Return the name of a file, or the name that a temporary file of this module is to get."""
    temporary = _TEMPORARY.fullmatch(path.name)
    return temporary["name"] if temporary else path.name


def remove_leftovers(folder: Path) -> None:
    """Remove the temporary files and folders that dead writers left in a folder, below which all files are ours.

    On a file system without locks no writer is known to be dead, and all of them stay.
    """
    with contextlib.suppress(OSError):
        for leftover in [path for path in folder.iterdir() if _TEMPORARY.fullmatch(path.name)]:
            _remove_if_dead(leftover)


class _Listing:
    """Leftovers in a folder, by the names that they were to get, as they were when it was listed."""

    def __init__(self) -> None:
        self.leftovers: dict[str, list[Path]] = {}
        self.n_files = 0  # to be written before the folder is listed again


@lru_cache(maxsize=64)
def _listing_of(folder: Path) -> _Listing:
    return _Listing()


def remove_leftovers_of(path: Path) -> None:
    """Remove what dead writers of one file left, as ``remove_leftovers`` does, but do not always list its folder.

    Else a command that writes 100,000 documents into one folder would take quadratic time. A folder of few names is
    listed each time, another one after as many files as pay for its listing.
    """
    listing = _listing_of(path.parent.absolute())
    listing.n_files -= 1
    if listing.n_files < 0:
        with contextlib.suppress(OSError):
            paths = list(path.parent.iterdir())
            listing.n_files, listing.leftovers = len(paths) // FEW_NAMES, {}
            for leftover in [one for one in paths if _TEMPORARY.fullmatch(one.name)]:
                listing.leftovers.setdefault(final_name(leftover), []).append(leftover)
    for leftover in listing.leftovers.pop(path.name, ()):
        _remove_if_dead(leftover)


def _remove_if_dead(leftover: Path) -> None:
    with contextlib.suppress(OSError):  # BlockingIOError: its writer is alive
        descriptor = opened_to_lock(leftover)
        try:
            if not flock(descriptor):
                _remove(leftover)
        finally:
            release(descriptor)


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with contextlib.suppress(OSError):
            path.unlink()


def write_output(path: Path, content: bytes) -> None:
    """Write what a user named a file for: a pipe or a device as it is, else as ``write_bytes``; links are followed."""
    with explained(path, len(content)), output_file(path) as file:
        file.write(content)


@contextlib.contextmanager
def output_file(path: Path) -> Iterator[BinaryIO]:
    """Open what a user named a file for, as ``write_output`` does, to write it in pieces.

    Raises:
        OSError: It cannot be written; see ``explained``.
    """
    if path.exists() and not path.is_file():
        with path.open("wb") as file:
            yield file
    else:
        with whole_file(Path(os.path.realpath(path))) as file:
            yield file


def free_name(path: Path) -> Path:
    """Return the first of PATH-2, PATH-3, ... that nothing has, for advice on a command that may be pasted twice."""
    return next(free for number in count(2) if not (free := Path(f"{path}-{number}")).exists())


def remove_folder(folder: Path) -> None:
    """Remove a folder: after a kill it is whole, or a leftover under a temporary name."""
    with contextlib.suppress(OSError):  # on a disk too full for another name it is removed where it stands
        folder = folder.rename(_temporary_name(folder))
    shutil.rmtree(folder)


@contextlib.contextmanager
def temporary_folder(path: Path | None = None) -> Iterator[Path]:
    """Create a folder that is removed when the body ends; one that a killed process left is removed by the next call.

    Args:
        path: The folder is made next to this path; None: where the system has its temporary files.
    """
    path = Path(tempfile.gettempdir(), "dragoman") if path is None else path
    with _aside(path, folder=True) as (folder, _):
        yield folder
        _remove(folder)


def check_name(out: Path) -> None:
    """Check, before anything is computed, that a temporary file or folder can be renamed to the name of an output.

    Raises:
        ConfigError: The name leaves no room for that of a temporary file, or it is a mount point.
    """
    length = len(os.fsencode(out.name))
    if length > MOST_NAME_BYTES:
        raise ConfigError(
            f"{out.name[:30]}...: a name of an output must have at most {MOST_NAME_BYTES} bytes, got {length}; "
            "choose a shorter name"
        )
    if out.name and (out.is_file() or out.is_dir()) and os.path.ismount(out):
        advice = "a folder in it" if out.is_dir() else "another name"
        raise ConfigError(f"{out}: is a mount point, which cannot be replaced; choose {advice}")


def check_output(out: Path, *inputs: Path | None) -> None:
    """Check, before anything is computed, that ``out`` can be written and is not one of the input files.

    Raises:
        ConfigError: It cannot be written, its name is too long, or it is an input.
    """
    _check_place(out, out if out.exists() else out.parent, inputs)


def check_output_in_new_folder(out: Path, *inputs: Path | None) -> None:
    """Check an output as ``check_output`` does; its folder is made later if there is none."""
    _check_place(out, next(path for path in (out, *out.absolute().parents) if path.exists()), inputs)


def _check_place(out: Path, place: Path, inputs: Sequence[Path | None]) -> None:
    check_name(out)
    if out.is_dir() or (place != out and not place.is_dir()) or not os.access(place, os.W_OK):
        raise ConfigError(f"{out}: cannot be written; choose another name")
    refuse_an_input(out, *inputs)


def refuse_twice(*outs: Path | None) -> None:
    """Check that no two outputs are one file, under any names; a pipe or a device may be several.

    Raises:
        ConfigError: Two are.
    """
    files = [(out, out.resolve()) for out in outs if out is not None and (out.is_file() or not out.exists())]
    for (_, one), (out, other) in combinations(files, 2):
        if one == other or (one.exists() and other.exists() and one.samefile(other)):
            raise ConfigError(f"{out}: is named for two outputs; choose another name")
    refuse_alike(file for _, file in files)


def refuse_alike(outs: Iterable[Path]) -> None:
    """Check that the file system of some outputs tells all their names apart: ``Read.md``, and ``READ.md`` on macOS.

    Raises:
        ConfigError: It takes two of them for one.
    """
    groups: dict[str, list[Path]] = {}
    for out in outs:
        groups.setdefault(_folded(out), []).append(out)
    alike = [out for group in groups.values() if len(group) > 1 for out in group]
    if alike and (pair := taken_for_one(alike)):
        raise ConfigError(
            f"{pair[0]}, {pair[1]}: must be two files, but their file system takes both names for one; rename one, "
            "or choose a folder on another file system"
        )


def _folded(path: Path) -> str:
    """Return an absolute path as a file system reads it that ignores case and the normal form of Unicode."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", str(path.absolute())).casefold())


def taken_for_one(paths: Sequence[Path]) -> tuple[Path, Path] | None:
    """Return two paths that their file system takes for one, or None: all names are tried in a temporary folder."""
    top = Path(os.path.commonpath([path.absolute() for path in paths]))
    place = next(folder for folder in (top, *top.parents) if folder.is_dir())
    with contextlib.suppress(OSError), temporary_folder(place / "names") as folder:  # a disk that is full says so later
        for path in paths:
            name = folder / path.absolute().relative_to(top)
            name.parent.mkdir(parents=True, exist_ok=True)
            try:
                with name.open("xb") as file:
                    file.write(os.fsencode(path))
            except FileExistsError:
                with name.open("rb") as file:
                    return Path(os.fsdecode(file.read())), path
    return None


def lies_in(path: Path, folder: Path) -> bool:
    """Return True if a path leads into a folder under any name; ``folder`` must be resolved, and need not be there."""
    top = Path(*path.resolve().parts[: len(folder.parts)])
    return top == folder or (_folded(top) == _folded(folder) and top.exists() and top.samefile(folder))


def refuse_an_input(out: Path, *inputs: Path | None) -> None:
    """Check that ``out`` is not one of the input files, under any name.

    Raises:
        ConfigError: It is.
    """
    if out.is_file() and any(path is not None and path.exists() and out.samefile(path) for path in inputs):
        raise ConfigError(f"{out}: is the input; choose another name")


def refuse_others(path: Path, why: str, *marks: bytes, at: int = 0) -> None:
    """Check, before anything is computed, that a file under a name that no user gave is one that dragoman wrote.

    Args:
        path: The default name of an output, or a name that a command derives from another.
        why: What the command does to this file, and what the file is not.
        marks: Bytes near the beginning of such a file in every version; the first stand at its start.
        at: Where the first mark stands instead, in bytes.

    Raises:
        ConfigError: It is another file, or no file.
        UnreadableError: It cannot be read now.
    """
    try:
        if not path.exists():
            return
        head = b""
        if path.is_file():  # a pipe can be read only once
            with path.open("rb") as file:
                head = file.read(HEAD_BYTES)
    except OSError as error:
        raise unreadable(path, error) from error
    if not (head.startswith(marks[0], at) and all(mark in head for mark in marks)):
        raise ConfigError(f"{path}: {why}; move it away, or choose another name")


@contextlib.contextmanager
def explained(path: Path, n_bytes: int | None = None) -> Iterator[None]:
    """Turn an operating-system error in the body into a ``DragomanError`` of one line that says what to do.

    Args:
        n_bytes: Approximate size of what is written, if known; used in the message when the disk is full.
    """
    try:
        yield
    except OSError as error:
        advice = "choose a shorter name" if error.errno == errno.ENAMETOOLONG else "choose another folder"
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
    one stays. The manifest contains ``facts``, the size and SHA-256 of every file, and a SHA-256 of all this. What an
    older folder has beside the files of its manifest goes into the new one: exports, files of a user.

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
        paths = sorted(aside.iterdir())
        for path in paths:
            flush(path)
        manifest = {**facts, "files": sums_of([path for path in paths if path.name not in unsealed])}
        manifest["sha256"] = _own_sum(manifest)
        text = json.dumps(manifest, indent=2) + "\n"  # ASCII, as a path may not be UTF-8
        with _renamed_file(aside / name) as file:
            file.write(text.encode())
        _keep_others(standing(folder), aside, name, unsealed)
        flush(aside)  # before it replaces a folder, not after: a power failure leaves the one or the other whole
        _replace_folder(aside, folder)


def _keep_others(folder: Path, aside: Path, name: str, unsealed: Collection[str]) -> None:
    """Link what a folder has beside the files of its manifest into the one that replaces it.

    Raises:
        UnreadableError, OSError: What the folder has cannot be read now: it may not be replaced.
        BundleError: A file has the folder's name.
    """
    own = {name, *unsealed}
    try:
        own.update(_sums(_manifest_of(folder, name)))
    except FileNotFoundError:  # there is no folder, or nothing is known of it
        return
    except NotADirectoryError:
        raise BundleError(f"{folder}: a file, not a folder: move it away, or choose another place") from None
    except OSError as error:
        raise unreadable(folder / name, error) from error
    except _DAMAGE:  # which of the files are a user's is not known: all stay that the new folder has not
        logger.warning(
            "%s: damaged, so nothing of this folder is removed that the new one does not replace", f"{folder}"
        )
    for path in folder.iterdir():
        if path.name not in own and not _TEMPORARY.fullmatch(path.name):
            _keep(path, aside / path.name)


def _keep(path: Path, new: Path) -> None:
    """Link a file, or all files of a folder, to a new name, unless a file has it."""
    if os.path.lexists(new):
        return
    # ``is_dir`` takes a failing disk for no.
    if stat.S_ISDIR(path.lstat().st_mode):
        shutil.copytree(path, new, symlinks=True, copy_function=_link)
        for at, _, _ in os.walk(new):
            flush(Path(at))
    else:
        with contextlib.suppress(FileExistsError):
            _link(path, new)


def _link(path: Path | str, new: Path | str) -> None:
    """Give a file a second name, or copy it where the file system has no such names.

    Raises:
        FileExistsError: Another file has the name.
    """
    try:
        os.link(path, new, follow_symlinks=False)
    except FileExistsError:
        raise
    except OSError:
        shutil.copy2(path, new, follow_symlinks=False)


def _own_sum(manifest: dict[str, Any], own: str = "sha256") -> str:
    """Return the SHA-256 of a manifest without the entry that holds it, whose name is ``own``."""
    entries = {key: value for key, value in manifest.items() if key != own}
    return hashlib.sha256(json.dumps(entries, sort_keys=True).encode()).hexdigest()


def _replace_folder(aside: Path, folder: Path) -> None:
    """Rename ``aside`` to ``folder``. Between two renames an older folder is at ``.NAME.old``; see ``standing``."""
    old = _old(folder)
    moved = folder.exists()
    try:
        if moved:
            shutil.rmtree(old, ignore_errors=True)
            folder.rename(old)
        aside.rename(folder)
    except BaseException:  # Ctrl-C may come behind each of the renames
        if moved and not folder.exists():
            old.rename(folder)
        raise
    try:
        flush(folder.parent)
    except OSError as error:  # what it replaces stays: a power failure might bring back its name
        if error.errno in _NO_SPACE:
            raise
        raise DragomanError(f"{folder}: {_UNSAFE}: {error.strerror or error}") from None
    shutil.rmtree(old, ignore_errors=True)
    if os.path.lexists(old):
        logger.warning("%s: the folder that was replaced cannot be removed: remove it", f"{old}")


def _old(folder: Path) -> Path:
    return folder.with_name(f".{folder.name}.old")


def standing(folder: Path) -> Path:
    """Return ``folder``; or, if a process died while replacing it, the older one that is still at ``.NAME.old``."""
    return folder if folder.exists() or not _old(folder).is_dir() else _old(folder)


def own_place(path: Path) -> Path:
    """Return where a folder belongs that ``standing`` has returned: there its replacement is written."""
    name = re.fullmatch(r"\.(.+)\.old", path.name)
    own = path.with_name(name[1]) if name else path
    return own if standing(own) == path else path


def flush(path: Path) -> None:
    """Flush a file, or a folder's list of names, to disk; without this a rename may be lost when the power fails.

    On a file system that cannot flush folders, a warning says so once.
    """
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in _NO_FLUSH or not stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise
        _warn_of_no_flush(path, os.fstat(descriptor).st_dev, error)
    finally:
        os.close(descriptor)


def flush_name(path: Path) -> None:
    """Flush the name that a file has just got, as ``flush`` does; where that fails, a warning says so.

    It stands in its place, whole, so an error would say of what was written that it was not.
    """
    try:
        flush(path.parent)
    except OSError as error:
        logger.warning("%s: %s: %s", f"{path}", _UNSAFE, error.strerror or error)


_NO_FLUSH = (errno.EINVAL, errno.EBADF, errno.ENOSYS, errno.EOPNOTSUPP)
"""Errors of a file system that has no flush for folders, such as shared folders of VirtualBox."""


devices_without_flush: set[int] = set()
"""Devices of which a warning was given."""


def _warn_of_no_flush(folder: Path, device: int, error: OSError) -> None:
    if device not in devices_without_flush:
        devices_without_flush.add(device)
        logger.warning(
            "%s: this file system cannot flush folders (%s): a power failure may undo what is written there",
            f"{folder.with_name(final_name(folder))}", error.strerror,
        )  # fmt: skip


_UNSAFE = "written, but perhaps not safe from a power failure"


def check_sealed(folder: Path, what: str, name: str = MANIFEST) -> dict[str, Any]:
    """Read the manifest of a sealed folder and check every file against it.

    Args:
        what: Kind of folder for error messages, such as "bundle".
        name: File name of the manifest.

    Returns:
        The manifest.

    Raises:
        BundleError: The folder or its manifest is missing, or a file is missing or changed.
        UnreadableError: A file cannot be read now.
    """
    manifest = read_manifest(folder, what, name)
    check_files(folder, what, manifest)
    return manifest


def read_manifest(folder: Path, what: str, name: str = MANIFEST) -> dict[str, Any]:
    """Read and check the manifest of a sealed folder, without reading the files: the first half of ``check_sealed``."""
    path = folder / name
    try:
        return _manifest_of(folder, name)
    except (FileNotFoundError, NotADirectoryError):
        if not folder.is_dir():
            raise BundleError(f"{folder}: no such {what}") from None
        raise BundleError(f"{folder}: not a {what} of dragoman, or an unfinished one (no {name})") from None
    except OSError as error:
        raise unreadable(path, error) from error
    except _DAMAGE as error:
        raise BundleError(f"{path}: the manifest is damaged ({type(error).__name__})") from None


_DAMAGE = (ValueError, KeyError, TypeError, AttributeError, RecursionError)
"""Errors of a manifest that was read, but is not as it was written."""


def _manifest_of(folder: Path, name: str) -> dict[str, Any]:
    """Return the manifest of a folder; it can raise OSError and ``_DAMAGE``."""
    manifest: dict[str, Any] = json.loads((folder / name).read_text(encoding="utf-8"))
    _sums(manifest)
    # Manifests of former versions have no sum of their own. Under another name it is one whose name was damaged.
    own = {name: fact == _own_sum(manifest, name) for name, fact in manifest.items() if isinstance(fact, str)}
    if not own.pop("sha256", "sha256" not in manifest) or any(own.values()):
        raise ValueError("its sum is another one")
    return manifest


def _sums(manifest: dict[str, Any]) -> dict[str, tuple[int, str]]:
    """Return the size and SHA-256 of each file according to the manifest."""
    return {file: (entry["bytes"], entry["sha256"]) for file, entry in manifest["files"].items()}


def check_files(folder: Path, what: str, manifest: dict[str, Any]) -> None:
    """Check every file against the manifest: the second half of ``check_sealed``."""
    for file_name, (size, digest) in _sums(manifest).items():
        file = folder / file_name
        try:
            if Path(file_name).name != file_name or not file.is_file():
                raise BundleError(f"{file}: missing from this {what}; copy it again or use another one")
            whole = file.stat().st_size == size and sha256(file) == digest
        except OSError as error:
            raise unreadable(file, error) from error
        if not whole:
            raise BundleError(f"{file}: damaged (its SHA-256 is not the manifest's); copy it again or use another one")
