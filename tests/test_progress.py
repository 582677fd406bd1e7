"""Progress as people see it: in a real terminal of 60 and of 100 columns, and without one."""

from __future__ import annotations

import contextlib
import io
import os
import pty
import re
import shutil
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from dragoman import progress
from dragoman.progress import Ticker, duration, fitted
from limits import wait_until
from terminals import Screen, Terminal


@contextlib.contextmanager
def terminal() -> Iterator[Callable[[], Screen]]:
    """Makes stderr a terminal of 60 columns; a function that gives what its screen shows, and what made it so."""
    master, slave = pty.openpty()
    os.set_blocking(master, False)
    screen = Screen(60)
    with (
        os.fdopen(slave, "w", 1, "utf-8") as stderr,
        mock.patch.object(sys, "stderr", stderr),
        mock.patch.object(progress, "columns", return_value=60),
        mock.patch.dict(os.environ, {"TERM": "xterm", "NO_COLOR": ""}),
    ):

        def shown() -> Screen:
            said = b""
            with contextlib.suppress(BlockingIOError):
                while block := os.read(master, 2**16):
                    said += block
            screen.feed(said.decode())
            return screen

        yield shown
    os.close(master)


def test_a_live_line_rewrites_itself_and_nothing_is_glued_to_it() -> None:
    with terminal() as shown:
        for done in range(0, 100, 10):
            progress.show(f"{done} of 100", "left")
        progress.say("warning: a word is missing")
        progress.show("90 of 100")
        progress.clear()
        screen = shown()
    assert screen.lines == ["warning: a word is missing"]
    assert not screen.wrapped


def test_a_live_line_is_cut_to_the_terminal_and_chinese_counts_double() -> None:
    with terminal() as shown:
        progress.show("翻译" * 40, "never seen")
        assert shown().lines == ["翻译" * 14]
        progress.show("word " * 40)
        screen = shown()
        progress.clear()
    assert not screen.wrapped
    assert screen.lines[0].startswith("word word")


def test_parts_that_do_not_fit_are_left_out_from_the_end() -> None:
    parts = ["12%  step 10", "perplexity 3.50", "1:00 left"]
    assert fitted(parts, 100) == "12%  step 10  perplexity 3.50  1:00 left"
    assert fitted(parts, 30) == "12%  step 10  perplexity 3.50"
    assert fitted(parts, 5) == "12%"
    assert fitted(["一二三四", "五"], 7) == "一二三"
    assert fitted(["two\nlines"], 80) == "two lines"


def test_a_task_counts_its_seconds_and_leaves_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    with terminal() as shown:
        with Ticker().task("learning subwords"):
            now += 1.2
            wait_until(lambda: shown().lines[0] == "learning subwords ... 1 s")
            progress.say("a note meanwhile")
        assert shown().lines == ["a note meanwhile", "learning subwords: 1.2 s"]


def test_counting_says_how_fast_and_how_long(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    with terminal() as shown:
        ticker = Ticker()
        for done in (0, 50, 100):
            now += 10
            ticker(done, 200, "lines")
        assert shown().lines == ["100 of 200 lines (50%)  0:20 left  5 a second"]
        ticker(200, 200, "lines")
        assert shown().lines == ["200 of 200 lines (100%)  10 a second"]
        now += 10
        ticker(996, 1000, "more lines")  # 100% is the end
        assert shown().lines[-1] == "996 of 1,000 more lines (99%)"
        ticker(1000, 1000, "more lines")


@pytest.mark.parametrize("plain", [{"TERM": "dumb"}, {"NO_COLOR": "1"}, {}])
def test_elsewhere_progress_is_plain_lines(plain: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.StringIO()
    stream.isatty = lambda: bool(plain)  # type: ignore[method-assign]
    for name, value in {"TERM": "xterm", "NO_COLOR": "", **plain}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr(time, "monotonic", lambda: 100.0)
    ticker = Ticker(every_s=0.0)
    for done in range(3):
        ticker(done, 2, "lines")
    with Ticker(every_s=0.01).task("validating"):
        wait_until(lambda: "validating" in stream.getvalue())
    progress.show("nothing")
    text = stream.getvalue()
    assert "\r" not in text
    assert "\x1b" not in text
    assert text.startswith("0 of 2 lines (0%)\n1 of 2 lines (50%)\n2 of 2 lines (100%)\nvalidating ... 0 s\n")


def test_durations_are_short() -> None:
    assert [duration(s) for s in (0, 0.4, 59.6, 75, 3675)] == ["0:00", "0:00", "1:00", "1:15", "1:01:15"]


@pytest.mark.parametrize("columns", [60, 100])
def test_training_in_a_terminal(columns: int, tiny: Callable[..., dict[str, Any]], tmp_path: Path) -> None:
    import dragoman

    mapping = tiny(max_steps=10_000_000, max_minutes=6000, validate_every=40, save_every=100_000, average=0)
    (tmp_path / "x.yaml").write_text(dragoman.Config.from_mapping(mapping).to_yaml(), encoding="utf-8")
    terminal = Terminal("train", tmp_path / "x.yaml", "--out", tmp_path / "x", columns=columns)
    terminal.wait_for(lambda said: said.count("tokens/s" if columns == 100 else "left") > 3)
    terminal.wait_for("validation:")
    terminal.wait_for(lambda said: re.search(r" {2}0%  step [^\r\n]*\r\n", said) is not None)  # a line that stays
    terminal.process.send_signal(signal.SIGINT)
    assert terminal.end() == 128 + signal.SIGINT
    lines = terminal.screen.lines
    assert "\r\x1b[2K" in terminal.said
    assert "lr " not in terminal.said
    assert any(line.startswith("  0%  step ") for line in lines), terminal.said
    assert all(line.count("step ") < 2 for line in lines)
    live = [line for line in terminal.screen.wrapped if line.startswith(("  0%", "validating"))]
    assert not live
    assert any(line.startswith("stopped at step") for line in lines)


@pytest.mark.parametrize("columns", [60, 100])
def test_translating_a_file_in_a_terminal(columns: int, tiny_run: Path, tmp_path: Path) -> None:
    (tmp_path / "in.en").write_text("the dog sees a small cat\n" * 3000, encoding="utf-8")
    terminal = Terminal(
        "translate", tiny_run, tmp_path / "in.en", "--out", tmp_path / "out.de", columns=columns, cwd=tmp_path
    )
    assert terminal.end() == 0
    assert "of 3,000 lines translated" in terminal.said
    assert not [line for line in terminal.screen.wrapped if "lines translated" in line]
    assert [line for line in terminal.screen.lines if "lines translated" in line] == []
    assert "out.de: 3,000 lines" in "".join(terminal.screen.lines)


def test_ctrl_c_says_after_which_line_it_goes_on(tiny_run: Path, tmp_path: Path) -> None:
    (tmp_path / "in.en").write_text("the dog sees a small cat\n" * 40_000, encoding="utf-8")
    arguments = ("translate", tiny_run, tmp_path / "in.en", "--out", "o.de")
    terminal = Terminal(*arguments, cwd=tmp_path)
    terminal.wait_for(lambda _: (tmp_path / "o.de.journal").is_file())
    terminal.wait_for(lambda _: (tmp_path / "o.de.journal").read_bytes().count(b"\n") > 1)
    terminal.process.send_signal(signal.SIGINT)
    assert terminal.end() == 130
    [line] = [line for line in terminal.screen.lines if line.startswith("stopped")]
    assert line.endswith("of o.de; the same command resumes")
    assert int(line.split()[3].replace(",", "")) % 2048 == 0
    assert int(line.split()[3].replace(",", "")) > 0


def test_ctrl_c_in_an_evaluation_says_that_nothing_is_kept(tiny_run: Path, tmp_path: Path) -> None:
    for name in ("s", "r"):
        (tmp_path / name).write_text("the dog sees a small cat\n" * 40_000, encoding="utf-8")
    terminal = Terminal("evaluate", tiny_run, "--src", "s", "--ref", "r", cwd=tmp_path)
    terminal.wait_for("sentences translated")
    terminal.process.send_signal(signal.SIGINT)
    assert terminal.end() == 130
    assert "stopped before the scores were computed" in terminal.screen.lines[-2] + terminal.screen.lines[-1]


def test_the_prompt_says_how_it_ends(tiny_run: Path, tmp_path: Path) -> None:
    terminal = Terminal("translate", tiny_run, "-i", cwd=tmp_path)
    terminal.wait_for("> ")
    terminal.type("the dog sleeps\n")
    terminal.wait_for("hund")
    terminal.type(":q\n")
    assert terminal.end() == 0
    assert ":q or Ctrl-D ends" in terminal.said


def test_loading_is_shown_at_once(tiny_run: Path, tmp_path: Path) -> None:
    shutil.copytree(tiny_run / "bundle", tmp_path / "b")
    (tmp_path / "in").write_text("the dog\n", encoding="utf-8")
    terminal = Terminal("translate", "b", "in", cwd=tmp_path)
    terminal.wait_for(lambda said: "loading" in said or "hund" in said)
    assert terminal.end() == 0
    assert terminal.screen.lines[0].startswith("der hund")


def test_no_line_controls_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    """The name of a file or the text of a stranger can have escape sequences."""
    progress.say("error: a\x1b[31m\x07\r\x9b.txt: 猫 é\u3000x")
    assert capsys.readouterr().err == "error: a\\x1b[31m\\x07\\r\\x9b.txt: 猫 é\u3000x\n"


def closed() -> io.StringIO:
    stream = io.StringIO()
    stream.close()
    return stream


@pytest.mark.parametrize("stderr", [None, closed()], ids=["none", "closed"])
def test_a_host_without_stderr_gets_no_error_and_nothing_on_stdout(
    stderr: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stderr", stderr)
    ticker = Ticker()
    with ticker.task("counting the pairs"):
        ticker(1, 2, "sentences")
        ticker.say("train: 29,000 pairs", "in a minute")
        progress.show("1 of 2")
    assert progress.columns() == 80
    assert capsys.readouterr().out == ""
