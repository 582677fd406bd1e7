"""Resumable output: complete or absent, and resumed where it was left."""

from __future__ import annotations

import errno
import gzip
import json
import os
import shutil
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dragoman.data.corpus import Line, open_corpus
from dragoman.errors import ConfigError, DataError, DragomanError
from dragoman.translation.notes import Note
from dragoman.translation.resumable import MARK, forget, make_file

FACTS = {"model": "m"}


class StoppedError(Exception):
    """What stands for a kill."""


class Upper:
    """Makes lines upper case, notes where each window began, and stops when told."""

    def __init__(self, stop_at: int | None = None) -> None:
        self.stop_at, self.begun = stop_at, list[int]()

    def __call__(self, lines: list[Line], before: int, say: Callable[[Note], None]) -> list[str]:
        self.begun.append(before)
        if before == self.stop_at:
            raise StoppedError
        if any(line.text == "odd" for line in lines):
            say(Note("split", f"odd after {before}", "src"))
        return [line.text.upper() for line in lines]


@pytest.fixture
def src(tmp_path: Path) -> Path:
    path = tmp_path / "src"
    path.write_bytes(b"a\nodd\nb\n\nc\xff\nd\ne\nf\ng")
    return path


def make(src: Path, work: Upper, facts: dict[str, Any] = FACTS, **options: Any) -> tuple[int, list[Note]]:
    warnings: list[Note] = []
    count = make_file(src, src.with_name("out"), facts, work, warnings.append, window=2, **options)
    return count, warnings


WHOLE = "A\nODD\nB\n\nC\ufffd\nD\nE\nF\nG\n".encode()


def test_a_whole_file_takes_its_place_and_leaves_nothing_beside_it(src: Path, listing: Any) -> None:
    (src.parent / "out").write_bytes(b"an older one")
    work = Upper()
    count, warnings = make(src, work)
    assert count == 9
    assert list(map(str, warnings)) == ["src: odd after 0", f"{src}:5:2: not UTF-8, U+FFFD put in 1 place"]
    assert [note.kind for note in warnings] == ["split", "input"]
    assert (src.parent / "out").read_bytes() == WHOLE
    assert work.begun == [0, 2, 4, 6, 8]
    assert listing(src.parent) == ["out", "src"]


@pytest.mark.parametrize("stop_at", [0, 2, 4, 8])
def test_a_stopped_file_resumes_with_the_same_windows_and_warnings(src: Path, listing: Any, stop_at: int) -> None:
    whole = make(src, Upper())[1]
    (src.parent / "out").unlink()
    with pytest.raises(StoppedError):
        make(src, Upper(stop_at))
    assert listing(src.parent) == ["out.journal", "out.partial", "src"]
    work = Upper()
    count, warnings = make(src, work)
    assert count == 9
    assert work.begun == list(range(stop_at, 9, 2))
    assert warnings == whole
    assert (src.parent / "out").read_bytes() == WHOLE


def test_X9_a_private_file_stays_private_from_the_first_line_on(src: Path, figure: Callable[[str, str], None]) -> None:
    out, partial = src.with_name("out"), src.with_name("out.partial")
    out.write_text("old")
    out.chmod(0o600)
    with pytest.raises(StoppedError):
        make(src, Upper(stop_at=4), restart=True)
    assert partial.stat().st_mode & 0o777 == 0o600
    make(src, Upper())
    assert (out.read_bytes(), out.stat().st_mode & 0o777) == (WHOLE, 0o600)
    figure("X9", "a translation that stops and goes on over a private file is private throughout")


@pytest.mark.parametrize("torn", [b"{", b'{"lines": 6, "bytes": 12, "sha'])
def test_what_a_kill_tore_is_made_again(src: Path, torn: bytes) -> None:
    with pytest.raises(StoppedError):
        make(src, Upper(4))
    with (src.parent / "out.journal").open("ab") as journal, (src.parent / "out.partial").open("ab") as partial:
        journal.write(torn)
        partial.write(b"half a win")
    work = Upper()
    make(src, work)
    assert work.begun == [4, 6, 8]
    assert (src.parent / "out").read_bytes() == WHOLE


def test_a_kill_between_renaming_and_the_journals_end_does_no_harm(
    src: Path, listing: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    unlink = Path.unlink
    monkeypatch.setattr(Path, "unlink", lambda path: (_ for _ in ()).throw(StoppedError))
    with pytest.raises(StoppedError):
        make(src, Upper())
    monkeypatch.setattr(Path, "unlink", unlink)
    assert listing(src.parent) == ["out", "out.journal", "src"]
    work = Upper()
    count, warnings = make(src, work)
    assert (count, work.begun) == (9, [])
    assert len(warnings) == 2
    assert listing(src.parent) == ["out", "src"]
    assert (src.parent / "out").read_bytes() == WHOLE


def broken(*_: object) -> None:
    raise OSError(errno.EIO, "Input/output error")


class ClosedBadly:
    """A file that says, once it is closed, that it could not be."""

    def __init__(self, file: Any) -> None:
        self.file = file

    def __getattr__(self, name: str) -> Any:
        return getattr(self.file, name)

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self.file.close()
        broken()


@pytest.mark.parametrize("call", ["flush", "unlink", "close"])
def test_a_file_that_is_complete_is_not_said_to_be_unwritten(
    src: Path, listing: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, call: str
) -> None:
    """The folder cannot be flushed, the journal cannot be removed, or a file cannot be closed: that was an error."""
    os_open, fdopen = os.open, os.fdopen
    patches: dict[str, tuple[Any, str, Any]] = {
        "flush": (os, "open", lambda path, *rest: broken() if path == src.parent else os_open(path, *rest)),
        "unlink": (Path, "unlink", broken),
        "close": (os, "fdopen", lambda *rest: ClosedBadly(fdopen(*rest))),
    }
    with monkeypatch.context() as patch:
        patch.setattr(*patches[call])
        assert make(src, Upper())[0] == 9
    assert (src.parent / "out").read_bytes() == WHOLE
    says = {
        "flush": [f"{src.parent}/out: written, but perhaps not safe from a power failure: Input/output error"],
        "unlink": [f"{src.parent}/out.journal: cannot be removed (Input/output error); the output is complete"],
    }
    assert caplog.messages == says.get(call, [])
    work = Upper()
    assert make(src, work)[0] == 9
    assert work.begun == ([] if call == "unlink" else [0, 2, 4, 6, 8])
    assert listing(src.parent) == ["out", "src"]


def test_a_partial_file_that_was_changed_or_is_gone_is_refused(src: Path) -> None:
    with pytest.raises(StoppedError):
        make(src, Upper(4))
    partial = src.parent / "out.partial"
    for content in (b"a" + partial.read_bytes()[1:], partial.read_bytes()[:-1], b""):
        partial.write_bytes(content)
        with pytest.raises(DragomanError, match=r"out\.partial: this unfinished file was changed or is damaged"):
            make(src, Upper())
    assert not (src.parent / "out").exists()


@pytest.mark.parametrize(
    ("facts", "says"),
    [
        ({"model": "other"}, "another model"),
        ({}, "another model"),
        ({**FACTS, "beam_size": 3}, "another beam_size"),
    ],
)
def test_other_facts_are_refused_once_something_is_done(src: Path, facts: dict[str, Any], says: str) -> None:
    with pytest.raises(StoppedError):
        make(src, Upper(2))
    with pytest.raises(DragomanError, match=f"was started with {says}; restore it"):
        make(src, Upper(), facts)
    make(src, Upper(), facts, restart=True)
    assert (src.parent / "out").read_bytes() == WHOLE


def test_other_facts_are_taken_where_nothing_is_done_yet(src: Path) -> None:
    with pytest.raises(StoppedError):
        make(src, Upper(0))
    assert make(src, Upper(), {"model": "other"})[0] == 9


def test_facts_of_any_kind_are_compared_as_they_are_written(src: Path) -> None:
    facts = {"terms": ("a", "b"), "seed": None, "path": Path("x")}
    with pytest.raises(StoppedError):
        make(src, Upper(2), facts)
    first = json.loads((src.parent / "out.journal").read_bytes().split(b"\n")[0])
    assert first["terms"] == ["a", "b"]
    assert make(src, Upper(), facts)[0] == 9


def test_a_text_that_changes_meanwhile_is_noticed(src: Path) -> None:
    def change(lines: list[Line], before: int, say: Callable[[Note], None]) -> list[str]:
        src.write_bytes(src.read_bytes() + b"h")
        return [line.text for line in lines]

    with pytest.raises(DataError, match="src: changed while it was being read"):
        make(src, change)  # type: ignore[arg-type]
    assert not (src.parent / "out").exists()


def test_what_is_read_is_not_one_of_the_files_that_are_made(tmp_path: Path) -> None:
    for name in ("out", "out.partial", "out.journal"):
        src = tmp_path / name
        src.write_text("a line\n", encoding="utf-8")
        for restart in (False, True):
            with pytest.raises(ConfigError, match="is the input; choose another name"):
                make_file(src, tmp_path / "out", {}, lambda lines, before, say: [], lambda text: None, restart)
        assert src.read_text(encoding="utf-8") == "a line\n"
        src.unlink()
        for left in tmp_path.iterdir():
            left.unlink()


@pytest.mark.parametrize("restart", [False, True])
@pytest.mark.parametrize(
    "content", [b"my diary, one line, no newline", b'{"my": "json file"}\n', b'{"input": "0", "dragoman": "0.1.0"}\n']
)
def test_a_journal_that_is_not_ours_is_refused_and_kept(src: Path, listing: Any, content: bytes, restart: bool) -> None:
    (src.parent / "out.journal").write_bytes(content)
    with pytest.raises(DragomanError, match=r"out\.journal: exists and is not a journal of this version of dragoman"):
        make(src, Upper(), restart=restart)
    assert (src.parent / "out.journal").read_bytes() == content
    assert listing(src.parent) == ["out.journal", "src"]


def test_a_journal_begins_with_its_mark_and_may_be_torn_within_it(src: Path) -> None:
    with pytest.raises(StoppedError):
        make(src, Upper(0))
    journal = src.parent / "out.journal"
    assert journal.read_bytes().startswith(MARK)
    for n in (0, 1, len(MARK) - 1, len(MARK), len(MARK) + 7):
        journal.write_bytes(journal.read_bytes()[:n])
        with pytest.raises(StoppedError):
            make(src, Upper(0))
    make(src, Upper())
    assert (src.parent / "out").read_bytes() == WHOLE


@pytest.mark.parametrize("restart", [False, True])
def test_an_unfinished_file_that_is_not_ours_is_refused_and_kept(src: Path, listing: Any, restart: bool) -> None:
    (src.parent / "out.partial").write_text("somebody's")
    with pytest.raises(DragomanError, match=r"out\.partial: exists and has no journal of dragoman; move it away"):
        make(src, Upper(), restart=restart)
    assert listing(src.parent) == ["out.partial", "src"]
    assert (src.parent / "out.partial").read_text() == "somebody's"


def test_an_unfinished_file_with_an_empty_journal_is_made_again_with_restart(src: Path, listing: Any) -> None:
    """The refusal advises --restart."""
    with pytest.raises(StoppedError):
        make(src, Upper(4))
    (src.parent / "out.journal").write_bytes(b"")
    for _ in range(2):
        with pytest.raises(DragomanError, match="unfinished file has no journal; restore it, or start over with --res"):
            make(src, Upper())
    assert listing(src.parent) == ["out.journal", "out.partial", "src"]
    make(src, Upper(), restart=True)
    assert (src.parent / "out").read_bytes() == WHOLE
    assert listing(src.parent) == ["out", "src"]


def test_links_that_lie_in_wait_are_not_followed(src: Path) -> None:
    victim = src.parent / "victim"
    victim.write_bytes(b"")
    for name in ("out.partial", "out.journal"):
        (src.parent / name).symlink_to(victim)
        with pytest.raises(DragomanError, match="cannot be written"):
            make(src, Upper())
        (src.parent / name).unlink()
    assert victim.read_bytes() == b""


def test_of_two_processes_one_is_refused(src: Path) -> None:
    statuses = []

    def work(lines: list[Line], before: int, say: Callable[[str], None]) -> list[str]:
        if not before:
            child = os.fork()
            if not child:
                try:
                    make(src, Upper(), restart=True)
                except DragomanError as error:
                    os._exit(7 if "another process is writing this file" in str(error) else 1)
                os._exit(0)
            statuses.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        return [line.text.upper() for line in lines]

    make(src, work)  # type: ignore[arg-type]
    assert statuses == [7]
    assert (src.parent / "out").read_bytes() == WHOLE


def test_a_process_that_is_forked_meanwhile_does_not_keep_the_file(src: Path) -> None:
    children = []

    class Forking(Upper):
        def __call__(self, lines: list[Line], before: int, say: Callable[[Note], None]) -> list[str]:
            children.append(os.fork())
            if not children[0]:
                signal.pause()
                os._exit(0)
            return super().__call__(lines, before, say)

    try:
        with pytest.raises(StoppedError):
            make(src, Forking(stop_at=0))
        assert make(src, Upper())[0] == 9
    finally:
        os.kill(children[0], signal.SIGKILL)
        os.waitpid(children[0], 0)


def test_an_empty_text_gives_an_empty_file_and_a_compressed_one_is_read(tmp_path: Path) -> None:
    (tmp_path / "src").write_bytes(b"")
    work = Upper()
    assert make(tmp_path / "src", work) == (0, [])
    assert work.begun == []
    assert (tmp_path / "out").read_bytes() == b""
    (tmp_path / "src.gz").write_bytes(gzip.compress(b"a\n"))
    make(tmp_path / "src.gz", work)
    assert (tmp_path / "out").read_bytes() == b"A\n"


def test_places_that_cannot_be_written_are_refused(src: Path, listing: Any) -> None:
    def refused(out: Path, says: str) -> None:
        with pytest.raises(DragomanError, match=says):
            make_file(src, out, FACTS, Upper(), print)

    refused(src.parent, "not a regular file")
    refused(src, "is the input; choose another name")
    (src.parent / "link").symlink_to(src)
    refused(src.parent / "link", "is the input")
    refused(src.parent / "no/such/folder", "cannot be written")
    refused(Path("/dev/full"), "not a regular file")
    assert [name for name in listing(src.parent) if "partial" in name] == []
    with pytest.raises(DataError, match="no such file"):
        make_file(src.parent / "nowhere", src.parent / "out", FACTS, Upper(), print)


def test_a_pipe_is_refused_for_it_gives_its_lines_only_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(DataError, match="pipe: a pipe, but it is read more than once"):
        make_file(tmp_path / "pipe", tmp_path / "out", FACTS, Upper(), print)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("suffix", [".gz", ".zst"])
@pytest.mark.parametrize("stop_at", [None, 4])
def test_a_name_that_ends_in_gz_or_zst_is_compressed_and_resumed_to_the_same_bytes(
    src: Path, suffix: str, stop_at: int | None
) -> None:
    out = src.with_name(f"out{suffix}")
    make_file(src, out, FACTS, Upper(), lambda note: None, window=2)
    at_once = out.read_bytes()
    if stop_at is not None:
        out.unlink()
        with pytest.raises(StoppedError):
            make_file(src, out, FACTS, Upper(stop_at), lambda note: None, window=2)
        make_file(src, out, FACTS, Upper(), lambda note: None, window=2)
    assert out.read_bytes() == at_once
    with open_corpus(out) as stream:
        assert stream.read() == WHOLE
    tool = {".gz": "gzip", ".zst": "zstd"}[suffix]
    if shutil.which(tool):
        assert subprocess.run([tool, "-dc", str(out)], check=True, capture_output=True).stdout == WHOLE


@pytest.mark.parametrize("suffix", [".gz", ".zst"])
def test_no_text_is_a_compressed_file_of_no_lines(tmp_path: Path, suffix: str) -> None:
    (tmp_path / "src").write_bytes(b"")
    out = tmp_path / f"out{suffix}"
    assert make_file(tmp_path / "src", out, FACTS, Upper(), lambda note: None) == 0
    with open_corpus(out) as stream:
        assert stream.read() == b""


def test_what_an_interrupted_file_left_is_forgotten(src: Path, listing: Any) -> None:
    forget(src.parent / "out")
    with pytest.raises(StoppedError):
        make(src, Upper(2))
    forget(src.parent / "out")
    assert listing(src.parent) == ["src"]
    (src.parent / "out.journal").write_bytes(b"somebody's diary")
    with pytest.raises(DragomanError, match="is not a journal"):
        forget(src.parent / "out")
    assert listing(src.parent) == ["out.journal", "src"]
