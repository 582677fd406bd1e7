"""What commands show in terminals of several widths: few lines, no broken words, tables, and a prompt with help."""

from __future__ import annotations

import re
import signal
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from rich.cells import cell_len, chop_cells

from dragoman.progress import wrapped
from terminals import Terminal

Command = Callable[..., Any]
WIDTHS = [60, 80, 100]


@pytest.fixture(scope="module")
def faulty(tmp_path_factory: pytest.TempPathFactory, corpus: Any) -> Path:
    """A folder with a test set whose sources are long and unknown, so that most translations look faulty."""
    folder = tmp_path_factory.mktemp("faulty")
    lines = corpus.valid_tgt.read_text(encoding="utf-8").splitlines()
    (folder / "test.en").write_text("".join(f"{line} 4711 {line} {i}\n" for i, line in enumerate(lines)), "utf-8")
    (folder / "test.de").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return folder


@pytest.mark.parametrize("columns", WIDTHS)
def test_evaluate_prints_at_most_ten_lines_and_breaks_no_word(tiny_run: Path, faulty: Path, columns: int) -> None:
    args = ("--src", "test.en", "--ref", "test.de", "--beam-size", "1")
    terminal = Terminal("evaluate", tiny_run, *args, columns=columns, cwd=faulty)
    assert terminal.end() == 0
    text = terminal.said
    assert "of 20 lines looked faulty" in " ".join(terminal.screen.lines)
    shown = [line for line in re.split(r"[\r\n]+", re.sub(r"\x1b\[[\d;?]*[A-Za-z]", "", text)) if line.strip()]
    settled = [line for line in shown if "sentences translated" not in line and "loading" not in line]
    assert len(settled) <= 12  # rows, of which two are the warning on the language
    rows = "\n".join(terminal.screen.lines)
    assert all(part in rows for part in ("c:mixed|e:no|tok:13a|s:exp", "all: nrefs:1|bs:1000|seed:"))
    for row in terminal.screen.wrapped:
        assert row.endswith(" ") or " " not in row.strip()


def test_doctor_breaks_no_word(tiny_run: Path) -> None:
    terminal = Terminal("doctor", tiny_run / "bundle", columns=60)
    assert terminal.end() == 0
    assert any("its files are whole" in line for line in terminal.screen.lines)
    assert all(row.endswith(" ") for row in terminal.screen.wrapped)


def test_warnings_are_in_the_file_or_printed_and_no_translation_changes(
    command: Command, tiny_run: Path, faulty: Path
) -> None:
    plain = command("translate", tiny_run, faulty / "test.en", cwd=faulty)
    verbose = command("translate", tiny_run, faulty / "test.en", "-v", cwd=faulty)
    listed = command("translate", tiny_run, faulty / "test.en", "--warnings", "w", cwd=faulty)
    assert plain.out == verbose.out == listed.out
    warnings = [line.removeprefix("warning: ") for line in verbose.err.splitlines() if line.startswith("warning: ")]
    warnings = [warning for warning in warnings if "looks like" not in warning]  # about the file, no line
    assert (faulty / "w").read_text(encoding="utf-8").splitlines() == warnings
    assert len(warnings) > 3
    assert sum("looked faulty" in line for line in plain.err.splitlines()) == 1
    assert not any(line.startswith("warning: ") and "looks like" not in line for line in plain.err.splitlines())


def test_two_runs_have_their_own_numbers(command: Command, tiny_run: Path, faulty: Path) -> None:
    args = ("--src", "test.en", "--ref", "test.de", "--beam-size", "1", "--warnings", "both")
    done = command("evaluate", tiny_run, tiny_run / "bundle", *args, cwd=faulty)
    assert done.status == 0, done.err
    for name in (tiny_run, tiny_run / "bundle"):
        assert sum(line.startswith(f"{name}: ") and "looked faulty" in line for line in done.err.splitlines()) == 1
        lines = (faulty / "both").read_text(encoding="utf-8").splitlines()
        assert any(line.startswith(f"{name}: test.en:") for line in lines)


def test_a_comparison_at_a_terminal_has_the_signatures_of_its_scores(tiny_run: Path, faulty: Path) -> None:
    args = ("--src", "test.en", "--ref", "test.de", "--beam-size", "1")
    terminal = Terminal("evaluate", tiny_run, tiny_run, *args, columns=60, cwd=faulty)
    assert terminal.end() == 0
    text = "".join(terminal.screen.lines)
    assert all(part in text for part in ("BLEU: nrefs:1|", "tok:13a|", "chrF2: nrefs:1|", "nc:6|", "TER: nrefs:1|"))
    assert all(row.endswith(" ") or " " not in row.strip() for row in terminal.screen.wrapped)


def test_score_has_a_heading_at_a_terminal_alone(command: Command, tiny_run: Path, corpus: Any) -> None:
    args = ("score", tiny_run, "--src", corpus.valid_src, "--ref", corpus.valid_tgt)
    terminal = Terminal(*args, columns=60)
    assert terminal.end() == 0
    lines = [line for line in terminal.screen.lines if "loading" not in line]
    assert lines[0].split() == ["line", "log-probability", "per", "subword", "with", "length", "penalty"]
    assert not terminal.screen.wrapped
    assert all(len(line.split("\t")) == 3 for line in command(*args).out.decode().splitlines())


def test_the_prompt_knows_help_and_quit_and_ctrl_c_leaves_the_line(tiny_run: Path) -> None:
    terminal = Terminal("translate", tiny_run, "-i")
    terminal.wait_for("en> ")
    terminal.type("help\n")
    terminal.wait_for("earlier lines")
    terminal.wait_for(lambda said: said.count("en> ") == 2)
    terminal.type("half a li")
    terminal.wait_for("half a li")
    terminal.process.send_signal(signal.SIGINT)  # as the terminal of a shell does for Ctrl-C
    terminal.wait_for(lambda said: said.count("en> ") == 3)
    terminal.type("the dog\n")
    terminal.wait_for("der hund")
    terminal.wait_for(lambda said: said.count("en> ") == 4)
    terminal.type("quit\n")
    assert terminal.end() == 0


def test_a_translation_at_a_terminal_breaks_no_word(tiny_run: Path, tmp_path: Path) -> None:
    (tmp_path / "test.en").write_text(f"{'the dog sees a cat and ' * 6}the man sleeps here\n", encoding="utf-8")
    terminal = Terminal("translate", tiny_run, "test.en", columns=37, cwd=tmp_path)
    assert terminal.end() == 0
    assert terminal.screen.wrapped
    assert all(row.endswith(" ") for row in terminal.screen.wrapped)


def test_a_wrapped_line_keeps_its_words_and_fills_its_rows() -> None:
    text = (
        "stopped at step 1,200: dragoman train --out runs/" + "long/" * 30 + " --resume; 这是一个很长的中文句子。" * 4
    )
    for width in (1, 7, 20, 60, 79, 80):
        filled = wrapped(text, width)
        assert filled.split() == text.split()
        rows = chop_cells(filled, width)
        for row, following in pairwise(rows):
            assert cell_len(row) >= width - 1
            if row[-1].isalnum() and following[0].isalnum() and row[-1] < "\u2e80":
                word = re.search(r"\S*$", row)[0] + re.match(r"\S*", following)[0]  # type: ignore[index]
                assert len(word) > width - 1
    assert wrapped("short", 60) == "short"
