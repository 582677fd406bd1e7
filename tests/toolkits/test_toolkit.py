"""The writers of all toolkits, and the table of what each can hold."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dragoman.toolkits import writers
from dragoman.toolkits.argos import BYTES
from dragoman.toolkits.table import answers, table
from dragoman.toolkits.toolkit import Writer
from dragoman.toolkits.writing import format_of
from terminals import Terminal


@pytest.mark.parametrize("name", writers())
def test_each_format_takes_what_a_format_takes(name: str) -> None:
    for function in ("why_not", "write"):
        wanted = list(inspect.signature(getattr(Writer, function)).parameters)[1:]  # without self
        assert list(inspect.signature(getattr(format_of(name), function)).parameters) == wanted


def test_the_table_is_that_of_the_reference_and_of_the_command(command: Callable[..., Any]) -> None:
    page = (Path(__file__).parents[2] / "docs/reference/formats.md").read_text(encoding="utf-8")
    assert "\n<!-- made: formats -->\n" in page  # where the site puts the table
    assert command("formats").out.decode() == f"{table()}\n"


def test_the_table_says_what_exact_leaves_out() -> None:
    assert f"\n\n`exact` for argos is about numbers. {BYTES}" in table()
    assert "\n\n`exact` for huggingface is about numbers. They need transformers 5 or later if the model is " in table()
    assert list(answers().notes) == ["huggingface", "argos"]


@pytest.mark.parametrize("columns", [60, 100])
def test_on_a_terminal_the_table_fits(columns: int) -> None:
    terminal = Terminal("formats", columns=columns)
    assert terminal.end() == 0
    screen, found = terminal.screen, answers()
    assert screen.wrapped == []
    assert "|" not in terminal.said
    assert screen.lines[0].split() == [*writers()]
    [row] = [line for line in screen.lines if line.startswith("SwiGLU ")]
    assert row.split() == ["SwiGLU", "exact", "no", "1", "exact", "exact", "exact"]
    words = " ".join(" ".join(screen.lines).split())
    assert all(f" {n} {reason}" in words for n, reason in enumerate(found.reasons, 1))
    assert len({reason.partition(": ")[2] for reason in found.reasons}) == len(found.reasons)


def test_each_quantization_begins_with_the_numbers_as_they_are() -> None:
    assert {format_of(name).QUANTIZATIONS[0] for name in writers()} == {"float32"}
