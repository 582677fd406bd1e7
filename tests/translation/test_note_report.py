"""Notes on many lines: counted once a line, listed where that is asked for, named by run, held in no memory."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from dragoman.errors import ConfigError
from dragoman.translation.note_report import FEW, NoteReport, WarningOptions, check_list
from dragoman.translation.notes import Note

NOTES = [
    Note("short", "part of the sentence is missing; no better translation was found", "a:1", left=True),
    Note("loop", "text was repeated: translated again", "a:2"),
    Note("number", "7 is missing", "a:2", left=True),  # the same line
    Note("copy", "the source was copied: translated again", "a:3"),
    Note("split", "translated in parts", "a:3"),
    Note("split", "translated in parts", "a:4"),
    Note("constraint", "a required word is missing", "a:5"),
]


def report(
    notes: list[Note], n_lines: int | None = 9, name: str = "", begins_list: bool = False, **options: object
) -> list[str]:
    """Return what a report prints about some notes."""
    printed: list[str] = []
    made = NoteReport(WarningOptions(**options), name=name, say=printed.append, begins_list=begins_list)
    with made:
        for note in notes:
            made.add(note)
        made.n_lines = n_lines
    return printed


def test_many_notes_are_one_line_that_counts_each_faulty_line_once() -> None:
    counted = "4 of 9 lines looked faulty: 1 repaired, 3 left; 2 translated in parts"
    assert report(NOTES) == [f"{counted}; list: -v"]
    assert report(NOTES, name="runs/b") == [f"runs/b: {counted}; list: -v"]
    assert report(NOTES, None)[0].startswith("4 lines looked faulty")
    assert report(NOTES[4:6] * 2) == ["4 lines translated in parts; list: -v"]
    assert report([]) == []


def test_few_notes_are_printed_as_they_are() -> None:
    assert report(NOTES[:FEW]) == [f"warning: {note}" for note in NOTES[:FEW]]


def test_verbose_prints_every_note_and_the_numbers() -> None:
    *each, last = report(NOTES, name="b", verbose=True)
    assert each == [f"warning: b: {note}" for note in NOTES]
    assert last.endswith("2 translated in parts")


def test_lost_translations_are_printed_as_they_come() -> None:
    lost = Note("memory", "out of memory", "a:8")
    printed = report([*NOTES, lost])
    assert printed[0] == "warning: a:8: out of memory"
    assert len(printed) == 2


def test_a_file_has_every_note_of_several_reports(tmp_path: Path) -> None:
    path = tmp_path / "warnings"
    path.write_text("of an earlier command", encoding="utf-8")
    options = WarningOptions(warnings=path)
    check_list(options)
    for name in ("a", "b"):
        printed = report(NOTES[:1], name=name, warnings=path, begins_list=name == "a")
        assert printed[0].endswith(f"; list: {path}")
    assert path.read_text(encoding="utf-8").splitlines() == [f"{name}: {NOTES[0]}" for name in "ab"]
    with pytest.raises(ConfigError, match="is the input"):
        check_list(options, path)
    with pytest.raises(ConfigError, match="cannot be written"):
        check_list(WarningOptions(warnings=tmp_path / "none/warnings"))


def test_what_is_refused_leaves_the_list_of_another_command(tmp_path: Path) -> None:
    path = tmp_path / "warnings"
    path.write_text("of a command that still runs", encoding="utf-8")
    options = WarningOptions(warnings=path)
    check_list(options)
    with pytest.raises(ConfigError), NoteReport(options, begins_list=True):
        raise ConfigError("another process is writing this file")
    assert path.read_text(encoding="utf-8") == "of a command that still runs"
    with NoteReport(options, begins_list=True):
        pass
    assert path.read_text(encoding="utf-8") == ""


def test_two_reports_that_are_open_at_once_keep_each_other_whole(tmp_path: Path) -> None:
    options = WarningOptions(warnings=tmp_path / "warnings")
    with NoteReport(options, name="a", begins_list=True) as a, NoteReport(options, name="b") as b:
        for note in NOTES * 400:  # more than a buffer holds
            a.add(note)
            b.add(note)
    lines = (tmp_path / "warnings").read_bytes().decode().split("\n")
    assert [lines.count(f"{name}: {NOTES[0]}") for name in "ab"] == [400, 400]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes")
def test_a_named_pipe_gets_the_notes_of_one_opening(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with ThreadPoolExecutor(1) as reader:
        notes = reader.submit(pipe.read_text, encoding="utf-8")
        options = WarningOptions(warnings=pipe)
        check_list(options)
        with NoteReport(options, begins_list=True) as made:
            made.add(NOTES[0])
        assert notes.result(10) == f"{NOTES[0]}\n"


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_a_list_that_is_where_the_command_prints_is_refused(stream: str, tmp_path: Path) -> None:
    """It emptied the file of the translations before it."""
    path = tmp_path / "out"
    script = "import sys; from dragoman.translation.note_report import *; "
    script += "check_list(WarningOptions(warnings=Path(sys.argv[1])))"
    with path.open("ab") as file:
        streams: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, stream: file}
        done = subprocess.run([sys.executable, "-c", script, path], **streams)
    assert done.returncode
    assert b"the command prints to this file too" in (done.stderr or path.read_bytes())
