"""First lines of users of other libraries: each runs, or is refused in one plain line (``benchmarks.first_lines``)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from benchmarks.first_lines import FIRST_EIGHT, LINES, Line, fault, names

TRAINED = {"dragoman.train(df['en']", "dragoman.train(many,", "dragoman.train(wide,"}
"""Beginnings of the trainings that the tests run; the benchmark runs all."""


@pytest.fixture(scope="module")
def given(tiny_run: Path, corpus: Any, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Names that the lines use."""
    folder = tmp_path_factory.mktemp("lines")
    for name, path in (("s.en", corpus.src), ("s.de", corpus.tgt)):
        lines = path.read_text(encoding="utf-8").split("\n")[:150]
        (folder / name).write_text("\n".join(lines) + "\n", encoding="utf-8")
    return names(tiny_run, folder / "s.en", folder / "s.de")


def _is_tried(line: Line) -> bool:
    return not line.trains or any(line.code.startswith(beginning) for beginning in TRAINED)


def test_the_table_has_eight_first_lines_and_twenty_more() -> None:
    assert len(FIRST_EIGHT) == 8
    assert len(LINES) >= 28
    assert len({line.code for line in LINES}) == len(LINES)


def test_each_line_runs_or_is_refused_in_one_plain_line(given: dict[str, Any], tmp_path: Path) -> None:
    tried = [line for line in LINES if _is_tried(line)]
    assert len(tried) > 40
    wrong = [
        f"{line.code}: {what}"
        for number, line in enumerate(tried)
        if (what := fault(line, given, tmp_path / str(number)))
    ]
    assert not wrong, f"{len(wrong)} of {len(tried)}:\n" + "\n".join(wrong)
