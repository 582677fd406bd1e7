"""Resumable output: a file made from another one, line by line; after an interruption the same call resumes it.

Until OUT is complete, there are next to it
    OUT.partial     the output for the first lines
    OUT.journal     one JSON object a line: first a mark and the inputs, then, after each window of lines, the number of
                    lines and bytes done, the SHA-256 of these bytes, and the warnings
A window is flushed to the disk before the journal names it; output that the journal does not name is made again. When
all is done, OUT.partial is renamed to OUT. In .gz and .zst files, each window is a member or frame of its own. Windows
always begin at the same lines, so the result has the same bytes with or without a kill. A file OUT.journal without the
mark belongs to another program, as does OUT.partial without a journal, and is left alone.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from dragoman import __version__
from dragoman.data.compression import compressor, refuse_a_pipe
from dragoman.data.corpus import Line, open_corpus, read_lines_leniently
from dragoman.errors import DataError, DragomanError
from dragoman.files import check_name, explained, flush_name, keep_access, refuse_an_input, sha256
from dragoman.locks import acquire, unlock
from dragoman.translation.notes import Note

logger = logging.getLogger(__name__)

FORM = {"journal of dragoman": 2}
MARK = json.dumps(FORM).encode()[:-1] + b","  # first bytes of a journal

Work = Callable[[list[Line], int, Callable[[Note], None]], list[str]]
"""Function of lines, the number of lines before them and a receiver of warnings; returns a text for each."""


class UnfinishedFileError(DragomanError):
    """An unfinished file cannot be resumed: it is damaged, or was started from something else."""

    def __init__(self, partial: Path, journal: Path, what: str) -> None:
        super().__init__(f"{partial}: this unfinished file {what}; restore it, or start over with --restart")
        self.partial, self.journal, self.what = partial, journal, what


class Done(NamedTuple):
    """Progress of a file."""

    lines: int = 0
    bytes: int = 0
    sha256: str = hashlib.sha256().hexdigest()  # of these bytes
    warnings: tuple[Note, ...] = ()  # so far


def make_file(
    src: Path, out: Path, facts: Mapping[str, Any], work: Work, warn: Callable[[Note], object],
    restart: bool = False, window: int = 2048,
) -> int:  # fmt: skip
    """Make ``out`` from the lines of ``src``, or resume it.

    Args:
        src: Text, plain, ``.gz`` or ``.zst``; read leniently.
        out: Created or replaced once complete. Compressed if its name ends in ``.gz`` or ``.zst``.
        facts: All that the result depends on besides ``src``: an unfinished file with other facts is refused.
        work: Called with up to ``window`` lines at a time, in order.
        warn: Called with each warning; those about earlier lines are repeated.
        restart: True discards an unfinished file.

    Returns:
        Number of lines.

    Raises:
        DataError: ``src`` cannot be read, is a pipe, or changed meanwhile; or the extra for ``.zst`` is missing.
        DragomanError: ``out`` cannot be written, is being written by another process, or was started
            from something else.
    """
    check_name(out)
    if out.exists() and not out.is_file():  # asked before links are followed: that of a pipe leads nowhere
        raise DragomanError(f"{out}: not a regular file, so it cannot be replaced atomically; redirect stdout instead")
    out = Path(os.path.realpath(out))
    for path in written_for(out):
        refuse_an_input(path, src)
    refuse_a_pipe(src)
    encode = compressor(out)
    with open_corpus(src) as stream, explained(out), _locked(out) as (partial, journal):
        # inode, size and time of src: they differ at the end if somebody wrote to it meanwhile
        before, output = _stamp(src), _Output(out, partial, journal, encode)
        done = _begin(output, {**FORM, "input": sha256(src), "dragoman": __version__, **facts}, warn, restart)
        # an earlier process was killed between the renaming and the removal of the journal
        if done.lines and not partial.seek(0, os.SEEK_END):
            _remove_beside(out, "partial", "journal")
            return done.lines
        if done.lines:
            logger.info("%s: resuming after line %s", out, f"{done.lines:,}")
        lines = read_lines_leniently(stream, f"{src}")
        for _ in islice(lines, done.lines):
            pass
        n_lines = _make_rest(iter(lambda: list(islice(lines, window)), []), done, output, work, warn)
        if _stamp(src) != before:
            raise DataError(f"{src}: changed while it was being read; rerun with --restart when it no longer changes")
        _sibling(out, "partial").replace(out)
        flush_name(out)
        _remove_beside(out, "journal")
    return n_lines


def written_for(out: Path) -> tuple[Path, ...]:
    """Return the files that ``make_file`` writes for ``out``: itself, the unfinished one, and the journal."""
    out = Path(os.path.realpath(out))
    return out, _sibling(out, "partial"), _sibling(out, "journal")


def _remove_beside(out: Path, *kinds: str) -> None:
    """Remove what is left next to an output that is complete; a warning names what cannot be."""
    for path in (_sibling(out, kind) for kind in kinds):
        try:
            path.unlink()
        except OSError as error:
            logger.warning("%s: cannot be removed (%s); the output is complete", path, error.strerror or error)


def lines_done(out: Path) -> int:
    """Return the number of lines of ``out`` that an interrupted ``make_file`` has made; 0 without a journal."""
    try:
        *_, last, _ = _sibling(Path(os.path.realpath(out)), "journal").read_bytes().split(b"\n")
        return int(json.loads(last).get("lines", 0))
    except (OSError, ValueError):
        return 0


def forget(out: Path) -> None:
    """Remove the partial file and journal of an interrupted ``make_file``, if there are any.

    Raises:
        DragomanError: Another process is writing them, or they belong to another program.
    """
    out = Path(os.path.realpath(out))
    if _sibling(out, "journal").exists():
        with explained(out), _locked(out):
            _sibling(out, "partial").unlink()
            _sibling(out, "journal").unlink()


@dataclass(frozen=True)
class _Output:
    """A file that is being made."""

    path: Path  # final place
    partial: BinaryIO
    journal: BinaryIO
    encode: Callable[[bytes], bytes]  # compresses, if the name asks for it


def _make_rest(
    windows: Iterator[list[Line]], done: Done, output: _Output, work: Work, warn: Callable[[Note], object]
) -> int:
    """Make the remaining lines, window after window; return the number of all lines."""
    partial, journal, encode = output.partial, output.journal, output.encode
    digest, n_lines, n_bytes = _digest(partial, done.bytes), done.lines, done.bytes
    for part in windows:
        warnings: list[Note] = []

        def say(note: Note, warnings: list[Note] = warnings) -> None:
            warnings.append(note)
            warn(note)

        for line in part:
            if line.warning:
                say(Note("input", line.warning))
        output_bytes = encode("".join(f"{text}\n" for text in work(part, n_lines, say)).encode())
        # the journal may name only output that is already on the disk
        append_to_disk(partial, output_bytes)
        digest.update(output_bytes)
        n_lines, n_bytes = n_lines + len(part), n_bytes + len(output_bytes)
        done = Done(n_lines, n_bytes, digest.hexdigest())
        append_to_disk(journal, _record({**done._asdict(), "warnings": [asdict(note) for note in warnings]}))
    if not n_lines:
        append_to_disk(partial, encode(b""))  # an empty compressed file has a header
    return n_lines


def _begin(output: _Output, facts: dict[str, Any], warn: Callable[[Note], object], restart: bool) -> Done:
    """Cut both files where an earlier process stopped and return its progress; else start a journal with ``facts``."""
    out, partial, journal = output.path, output.partial, output.journal
    facts = json.loads(json.dumps(facts, default=repr))  # as they will be read back
    journal.seek(0)
    text = journal.read()
    whole = text[: text.rfind(b"\n") + 1]  # a kill may have torn the last line
    if not restart and whole:
        done = _read(out, whole, facts)
        if _digest(partial, done.bytes).hexdigest() != done.sha256 and not _is_renamed(out, partial, done):
            raise _refusal(out, "was changed or is damaged")
        if done.lines:
            journal.truncate(len(whole))
            if partial.seek(0, os.SEEK_END):
                partial.truncate(done.bytes)
            for warning in done.warnings:
                warn(warning)
            return done
    elif not restart and partial.seek(0, os.SEEK_END):
        raise _refusal(out, "has no journal")
    partial.truncate(0)
    journal.truncate(0)
    append_to_disk(journal, _record(facts))
    return Done()


def _read(out: Path, journal: bytes, facts: dict[str, Any]) -> Done:
    """Return the progress that a journal records; refuse one that was started with other facts."""
    try:
        started, *records = (json.loads(line) for line in journal.split(b"\n")[:-1])
        if not records:  # nothing is done yet, so other facts do no harm
            return Done()
        warnings = tuple(_note(fields) for record in records for fields in record["warnings"])
        last = records[-1]
        done = Done(int(last["lines"]), int(last["bytes"]), str(last["sha256"]), warnings)
        changed = [name for name in started.keys() | facts.keys() if started.get(name) != facts.get(name)]
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise _refusal(out, "has a damaged journal") from None
    if changed:
        raise _refusal(out, f"was started with another {' and another '.join(sorted(changed))}")
    return done


def _note(fields: dict[str, Any]) -> Note:
    """Return a note from its fields in a journal."""
    return Note(**{**fields, "words": tuple(fields.get("words", ()))})


def _is_renamed(out: Path, partial: BinaryIO, done: Done) -> bool:
    """True if a process was killed after it renamed the complete file, but before it removed the journal."""
    return not partial.seek(0, os.SEEK_END) and out.is_file() and sha256(out) == done.sha256


def _refusal(out: Path, what: str) -> UnfinishedFileError:
    return UnfinishedFileError(_sibling(out, "partial"), _sibling(out, "journal"), what)


@contextlib.contextmanager
def _locked(out: Path) -> Iterator[tuple[BinaryIO, BinaryIO]]:
    """Open and lock the partial file and journal of ``out``; after an error, remove them if they are empty."""
    path, unfinished = _sibling(out, "journal"), _sibling(out, "partial")
    was_there = path.exists()
    try:
        descriptor = acquire(path)
    except BlockingIOError:
        raise DragomanError(
            f"{out}: another process is writing this file; wait for it or choose another name"
        ) from None
    with _opened(descriptor) as journal:
        first = journal.read(len(MARK))
        if not MARK.startswith(first):
            raise DragomanError(
                f"{path}: exists and is not a journal of this version of dragoman; if an earlier version left it, "
                "finish the file with that version; otherwise move it away or choose another name"
            )
        keep_access(descriptor, out)  # notes hold words of the text
        try:
            with _opened(acquire(unfinished, wait=True)) as partial:
                if not was_there and not first and partial.seek(0, os.SEEK_END):  # dragoman makes the journal first
                    raise DragomanError(
                        f"{unfinished}: exists and has no journal of dragoman; move it away or choose another name"
                    )
                keep_access(partial.fileno(), out)
                yield partial, journal
        except BaseException:
            # refused, or nothing could be written: leave no empty files
            if not os.fstat(descriptor).st_size:
                with contextlib.suppress(OSError):
                    if not unfinished.lstat().st_size:
                        unfinished.unlink()
                if not (was_there and unfinished.exists()):  # by its journal, even an empty one, it is known as ours
                    path.unlink()
            raise


@contextlib.contextmanager
def _opened(descriptor: int) -> Iterator[BinaryIO]:
    """Open a file by its descriptor, and close it: ``append_to_disk`` has flushed all, so no error then counts."""
    file = os.fdopen(descriptor, "r+b")
    try:
        yield file
    finally:
        with contextlib.suppress(OSError):
            file.flush()  # after a full disk there may be something left to write
        unlock(descriptor)
        with contextlib.suppress(OSError):
            file.close()


def _sibling(out: Path, what: str) -> Path:
    return out.with_name(f"{out.name}.{what}")


def _digest(file: BinaryIO, n_bytes: int) -> hashlib._Hash:
    """Return the SHA-256 of the first ``n_bytes`` bytes of a file, or of all if it has fewer."""
    digest = hashlib.sha256()
    file.seek(0)
    while n_bytes > 0 and (block := file.read(min(n_bytes, 2**20))):
        digest.update(block)
        n_bytes -= len(block)
    return digest


def append_to_disk(file: BinaryIO, content: bytes) -> None:
    file.seek(0, os.SEEK_END)
    file.write(content)
    file.flush()
    os.fsync(file.fileno())


def _record(facts: Mapping[str, Any]) -> bytes:
    return (json.dumps(facts) + "\n").encode()


def _stamp(path: Path) -> tuple[int, int, int]:
    status = path.stat()
    return status.st_ino, status.st_size, status.st_mtime_ns
