"""What is one of the formats: a file that says what a format has to, and a name."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import dragoman
from dragoman import toolkits
from dragoman.bundle import Bundle
from dragoman.config import ModelConfig
from dragoman.errors import ConfigError
from dragoman.toolkits import FORMATS
from dragoman.toolkits.table import answers, table
from dragoman.toolkits.toolkit import Format, check, format_of
from terminals import Terminal


@pytest.mark.parametrize("name", FORMATS)
def test_each_format_takes_what_a_format_takes(name: str) -> None:
    for function in ("why_not", "write"):
        wanted = list(inspect.signature(getattr(Format, function)).parameters)[1:]  # without self
        assert list(inspect.signature(getattr(format_of(name), function)).parameters) == wanted


def test_a_format_is_a_file_and_a_name(tiny_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match=r"to must be ctranslate2, .*, got 'notes'"):
        dragoman.export(tiny_run, "notes", tmp_path / "out")
    assert not (tmp_path / "out").exists()

    notes = ModuleType("dragoman.toolkits.notes.write")

    def why_not(config: ModelConfig) -> str:
        return "" if config.norm == "post" else "notes are of post-norm only"

    def write(bundle: Bundle, folder: Path, quantization: str) -> None:
        (folder / "notes.txt").write_text(f"{bundle.model.config.d_model}\n", encoding="utf-8")

    named = dict(TITLE="Notes", QUANTIZATIONS=("float32",), PACKAGES=(), FILE=".txt", why_not=why_not, write=write)
    vars(notes).update(named)
    monkeypatch.setitem(sys.modules, "dragoman.toolkits.notes", ModuleType("dragoman.toolkits.notes"))
    monkeypatch.setitem(sys.modules, "dragoman.toolkits.notes.write", notes)
    for module in (toolkits, sys.modules["dragoman.toolkits.toolkit"]):
        monkeypatch.setattr(module, "FORMATS", (*FORMATS, "notes"))
    with pytest.raises(ConfigError, match=r"quantization must be float32.*, got 'int8'"):
        dragoman.export(tiny_run, "notes", tmp_path / "out", "int8")
    assert not (tmp_path / "out").exists()
    folder = dragoman.export(tiny_run, "notes", tmp_path / "out")
    assert sorted(path.name for path in folder.iterdir()) == ["manifest.json", "notes.txt"]
    file = dragoman.export(tiny_run, "notes", tmp_path / "new/some.txt")  # a format that is one file
    assert file.read_bytes() == (folder / "notes.txt").read_bytes()
    assert [path.name for path in file.parent.iterdir()] == ["some.txt"]
    with pytest.raises(
        ConfigError, match=r"for Notes: notes are of post-norm only; it can be exported --to ctranslate2"
    ):
        check("notes", ModelConfig(src_vocab_size=9, tgt_vocab_size=9, norm="pre"), "float32")


def test_the_table_is_that_of_the_reference_and_of_the_command(command: Callable[..., Any]) -> None:
    page = (Path(__file__).parents[2] / "docs/reference/formats.md").read_text(encoding="utf-8")
    assert "\n<!-- made: formats -->\n" in page  # where the site puts the table
    assert command("formats").out.decode() == f"{table()}\n"


@pytest.mark.parametrize("columns", [60, 100])
def test_on_a_terminal_the_table_fits(columns: int) -> None:
    terminal = Terminal("formats", columns=columns)
    assert terminal.end() == 0
    screen, found = terminal.screen, answers()
    assert screen.wrapped == []
    assert "|" not in terminal.said
    assert screen.lines[0].split() == [*FORMATS]
    [row] = [line for line in screen.lines if line.startswith("SwiGLU ")]
    assert row.split() == ["SwiGLU", "exact", "no", "1", "exact", "exact", "exact"]
    words = " ".join(" ".join(screen.lines).split())
    assert all(f" {n} {reason}" in words for n, reason in enumerate(found.reasons, 1))
    assert len({reason.partition(": ")[2] for reason in found.reasons}) == len(found.reasons)


def test_each_quantization_begins_with_the_numbers_as_they_are() -> None:
    assert {format_of(name).QUANTIZATIONS[0] for name in FORMATS} == {"float32"}
