"""Lines without a word are copied, and invisible ones are blank; neither is given to the model."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.wordless_lines import lines, wrong
from dragoman.translation.translator import Translator


@pytest.fixture(scope="module")
def translator(tiny_run: Path) -> Translator:
    return Translator.load(tiny_run, "cpu")


@pytest.mark.xfail(strict=True, reason="the model is asked for a translation of lines without a word")
def test_lines_of_all_categories_without_letters_are_copied_or_blank(translator: Translator) -> None:
    drawn = lines()
    assert len({line.kind for line in drawn}) >= 30
    assert wrong(translator, drawn) == []
