"""``dragoman translate``: lines in, lines out, as they come, whatever stands at either end of the pipe."""

from __future__ import annotations

import functools
import gzip
import json
import math
import os
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

import pytest

from dragoman.cli import translate
from dragoman.data import corpus
from dragoman.data.corpus import open_corpus
from dragoman.translation.note_report import NoteReport, WarningOptions
from limits import LONG_S
from terminals import Terminal

Command = Callable[..., Any]

DRAGOMAN = [sys.executable, "-m", "dragoman"]


def start(*args: Any, **options: Any) -> subprocess.Popen[bytes]:
    pipes: dict[str, Any] = dict(stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    return subprocess.Popen([*DRAGOMAN, *map(str, args)], **pipes | options)


@pytest.mark.parametrize("name", ["in.txt", "in.txt.gz"])
def test_the_file_is_closed(
    command: Command, tiny_run: Path, tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = b"a dog\n"
    (tmp_path / name).write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    opened: list[BinaryIO] = []

    def open_and_note(path: Path) -> BinaryIO:
        opened.append(open_corpus(path))
        return opened[-1]

    monkeypatch.setattr(corpus, "open_corpus", open_and_note)
    assert command("translate", tiny_run, tmp_path / name).status == 0
    assert opened
    assert all(stream.closed for stream in opened)


@pytest.mark.parametrize(
    ("content", "count"),
    [
        (b"", 0),
        (b"\n", 1),
        (b"a dog\n", 1),
        (b"a dog", 1),
        (b"a dog\n\n \nthe cat\n", 4),
        (b"a\rdog\x0bsees\x0c\x1c\x1d\x1ea\xc2\x85cat\xe2\x80\xa8here\xe2\x80\xa9today\nthe cat\n", 2),
        (b"\xef\xbb\xbfa dog\r\nthe cat\r\n", 2),
        (b"a\0dog\n\xff\xfe\n\xe2\x82\n", 3),
    ],
    ids=["nothing", "one blank", "one", "no final newline", "blank ones", "other line ends", "BOM, CRLF", "bad bytes"],
)
def test_as_many_lines_come_out_as_go_in(command: Command, tiny_run: Path, content: bytes, count: int) -> None:
    done = command("translate", tiny_run, stdin=content)
    assert (done.status, done.out.count(b"\n")) == (0, count), done.err
    assert done.out == b"" or done.out.endswith(b"\n")
    done.out.decode()
    blank = [not line.strip() for line in content.decode("utf-8", "replace").split("\n")][:count]
    assert [line == b"" for line in done.out.split(b"\n")[:-1]] == blank


def test_a_file_is_translated_like_stdin_and_the_bundle_like_the_run(
    command: Command, tiny_run: Path, corpus: Any
) -> None:
    content = corpus.valid_src.read_bytes()
    from_stdin = command("translate", tiny_run, stdin=content)
    from_file = command("translate", tiny_run / "bundle", corpus.valid_src)
    assert from_stdin.out == from_file.out
    assert (from_stdin.err, from_file.err) == ("", "")
    want = corpus.valid_tgt.read_text(encoding="utf-8").split("\n")
    right = sum(a == b for a, b in zip(from_file.out.decode().split("\n"), want, strict=True))
    assert right > 1  # it is the target language that comes out
    assert command("translate", tiny_run, corpus.valid_src, "--deterministic").out == from_file.out


def test_an_output_whose_name_tells_another_language_is_written_with_a_warning(
    command: Command, tiny_run: Path, tmp_path: Path
) -> None:
    (tmp_path / "text").write_bytes(b"a dog\n")
    for name, n_warnings in (("out.fr", 1), ("out.txt", 0)):
        done = command("translate", tiny_run, "text", "--out", name, cwd=tmp_path)
        assert (done.status, (tmp_path / name).read_bytes().count(b"\n")) == (0, 1), done.err
        assert done.err.count("warning: out.fr: French (fr) by its name, but ") == n_warnings


def test_warnings_name_file_and_line_and_the_exit_status_is_0(command: Command, tiny_run: Path, tmp_path: Path) -> None:
    (tmp_path / "text").write_bytes(b"a dog\na \xfcdog\nthe cat\na\0a\n" + b"the dog sees " * 200 + b"\nthe cat\n")
    done = command("translate", tiny_run, "text", "--beam-size", "1", "--no-guard", cwd=tmp_path)
    assert done.status == 0
    assert done.out.count(b"\n") == 6
    assert [line.split(" ")[:2] for line in done.err.split("\n")[:-1]] == [
        ["warning:", "text:2:3:"], ["warning:", "text:4:2:"], ["warning:", "text:5:"],
    ]  # fmt: skip
    assert "not UTF-8, U+FFFD put in 1 place" in done.err
    assert re.search(r"tokens are more than \d+; split into", done.err)
    alone = command("translate", tiny_run, "--beam-size", "1", "--no-guard", stdin=b"the cat\n").out.rstrip(b"\n")
    assert [done.out.split(b"\n")[i] for i in (2, 5)] == [alone, alone]


@pytest.mark.parametrize("option", ["--warnings", "--alignments"])
def test_the_text_behind_stdin_is_no_output(tiny_run: Path, tmp_path: Path, option: str) -> None:
    """It was emptied before it was read, and the command ended well."""
    text = tmp_path / "text"
    text.write_bytes(b"the dog\n")
    with text.open("rb") as stdin:
        ended = start("translate", tiny_run, option, text, stdin=stdin)
        _, errors = ended.communicate(timeout=LONG_S)
    assert ended.returncode == 2
    assert errors.decode() == f"error: {text}: is the input; choose another name\n"
    assert text.read_bytes() == b"the dog\n"


def test_compressed_text_on_stdin_is_refused(command: Command, tiny_run: Path, tmp_path: Path) -> None:
    """Its bytes were translated as lines."""
    done = command("translate", tiny_run, stdin=gzip.compress(b"the dog\n" * 50))
    assert (done.status, done.out) == (2, b"")
    assert done.error.startswith("error: stdin: compressed with gzip, not text; unpack it")
    (tmp_path / "links").write_text("0-0\n", encoding="utf-8")
    done = command("translate", tiny_run, "--alignments", "links", stdin=gzip.compress(b"the dog\n"), cwd=tmp_path)
    assert done.status == 2
    assert (tmp_path / "links").read_text(encoding="utf-8") == "0-0\n"


def test_a_name_that_is_not_utf8_is_written_as_it_is(command: Command, tiny_run: Path, tmp_path: Path) -> None:
    """It ended in a traceback, after the work."""
    name = b"caf\xe9.txt"
    text = tmp_path / os.fsdecode(name)
    text.write_bytes(b"a \xfcdog\n")
    done = command("translate", tiny_run, text, "--warnings", "list", cwd=tmp_path)
    assert done.status == 0
    assert name + b":1:3: not UTF-8" in (tmp_path / "list").read_bytes()
    page = text.with_suffix(".html")
    done = command("explain", tiny_run, "the dog", "--out", page)
    assert done.status == 0
    assert done.out.endswith(b"\n" + os.fsencode(page) + b"\n")
    assert page.is_file()


def test_json_has_one_object_a_line_with_text_score_and_parts(command: Command, tiny_run: Path) -> None:
    done = command("translate", tiny_run, "--json", stdin=b"the dog\n\n")
    first, blank = [json.loads(line) for line in done.out.decode().split("\n")[:-1]]
    assert first["text"] == command("translate", tiny_run, stdin=b"the dog\n").out.decode().rstrip("\n")
    assert first["parts"] == 1
    assert -50 < first["score"] < 0
    assert math.isfinite(first["score"])
    assert blank == {"text": "", "score": 0.0, "parts": 0}


def test_an_answer_comes_before_the_input_ends_and_an_interrupt_leaves_no_traceback(tiny_run: Path) -> None:
    with start("translate", tiny_run) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        for text in (b"the dog\n", b"\n", b"a cat\n"):
            process.stdin.write(text)
            process.stdin.flush()
            assert select.select([process.stdout], [], [], LONG_S)[0], "no answer while the input is open"
            assert process.stdout.readline().endswith(b"\n")
        process.send_signal(signal.SIGINT)
        assert process.wait(LONG_S) == 130
        assert process.stdout.read() == b""
        assert b"Traceback" not in process.stderr.read()


@pytest.mark.parametrize("is_prompt", [False, True])
def test_a_pause_of_an_input_that_does_not_wait_is_not_its_end(tiny_run: Path, is_prompt: bool) -> None:
    """The pipe is non-blocking, as Node.js and ssh make it; the pauses come first, between lines and in a line."""
    reading, writing = os.pipe()
    os.set_blocking(reading, False)
    with start("translate", tiny_run, *["-i"] * is_prompt, stdin=reading) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        os.close(reading)
        process.stderr.read(1) if is_prompt else time.sleep(3)  # it has begun to read
        for text in (b"the dog\n", b"\nthe ", b"cat\na dog"):
            os.write(writing, text)
            assert process.stdout.readline().endswith(b"\n")
            time.sleep(0.3)
        os.close(writing)
        assert len(process.stdout.readlines()) == 1
        assert process.wait(LONG_S) == 0


@pytest.mark.parametrize("still_open", [False, True], ids=["input at its end", "input still open"])
def test_a_reader_that_goes_away_ends_the_command_without_noise(tiny_run: Path, still_open: bool) -> None:
    """As ``head -1`` does; with an input that stays open a thread is waiting on it."""
    with start("translate", tiny_run) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdin.write(b"the dog\n")
        process.stdin.flush()
        assert process.stdout.readline()
        process.stdout.close()
        process.stdin.write(b"the dog\n" * 5)
        process.stdin.flush()
        if not still_open:
            process.stdin.close()
        assert process.wait(LONG_S) == 1
        assert process.stderr.read() == b""


@pytest.mark.parametrize("still_open", [False, True], ids=["input at its end", "input still open"])
def test_a_full_disk_behind_stdout_is_one_line_and_a_status_that_is_not_0(tiny_run: Path, still_open: bool) -> None:
    with Path("/dev/full").open("wb") as full, start("translate", tiny_run, stdout=full) as process:
        assert process.stdin is not None
        assert process.stderr is not None
        process.stdin.write(b"the dog\n")
        process.stdin.flush()
        if not still_open:
            process.stdin.close()
        assert process.wait(LONG_S) == 2
        assert process.stderr.read() == b"error: reading or writing: No space left on device\n"


def test_the_prompt_goes_to_stderr_in_a_pipe_and_stdout_holds_translations_alone(
    command: Command, tiny_run: Path
) -> None:
    content = b"the dog\nthe\rcat\n\n\xff\n"
    done = command("translate", tiny_run, "-i", stdin=content)
    assert done.status == 0
    assert done.out.count(b"\n") == 4
    assert done.out.split(b"\n")[0] == command("translate", tiny_run, stdin=b"the dog\n").out.rstrip(b"\n")
    assert done.out.split(b"\n")[2] == b""
    assert b"en>" not in done.out
    assert done.err.count("en> ") == 5
    assert "warning: stdin:4:1: not UTF-8" in done.err


def test_the_prompt_works_on_a_terminal(tiny_run: Path) -> None:
    terminal = Terminal("translate", tiny_run, "-i")
    terminal.wait_for("en> ")
    terminal.type("the dog sees a cat\n")
    terminal.wait_for("der hund sieht ein katze")
    terminal.wait_for(
        lambda said: said.count("en> ") == 2
    )  # only a terminal that is being read knows what Ctrl-D means
    terminal.type("\x04")
    assert terminal.end() == 0


def test_a_terminal_without_a_live_line_is_told_how_far_a_file_is_in_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "t").write_text("a\n" * 40, encoding="utf-8")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setattr(translate, "Ticker", functools.partial(translate.Ticker, every_s=0))
    assert (
        translate.events_of(NoteReport(WarningOptions()), tmp_path / "t").progress is None
    )  # stderr is no terminal here
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    translate.events_of(NoteReport(WarningOptions()), tmp_path / "t").progress(10, 40, "lines translated")
    assert "10 of 40 lines translated (25%)" in capsys.readouterr().err.splitlines()
