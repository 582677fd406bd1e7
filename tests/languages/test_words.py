"""No function of the product cuts a word where its script does not, in 84 scripts."""

from __future__ import annotations

import pytest

from script_texts import places_inside, places_inside_clusters, words_by_script
from word_functions import CLUSTERS_ONLY, FUNCTIONS

RED = set(FUNCTIONS) - {"alignment: words", "guard: a repeated letter"}
EVERY = 3
"""Of each script each third word is tried here; ``benchmarks.questions.words_of_scripts`` tries all."""


def test_there_are_words_of_many_scripts() -> None:
    words = words_by_script()
    assert len(words) >= 80
    assert sum(bool(places_inside_clusters(word)) for some in words.values() for word in some) > 800


_RED = pytest.mark.xfail(strict=True, reason="cuts words of some scripts")


@pytest.mark.parametrize("name", [pytest.param(name, marks=[_RED] if name in RED else []) for name in FUNCTIONS])
def test_no_function_cuts_a_word(name: str) -> None:
    inside = places_inside_clusters if name in CLUSTERS_ONLY else places_inside
    cut = [
        (script, word, sorted(places))
        for script, words in words_by_script().items()
        for word in words[::EVERY]
        if (places := FUNCTIONS[name](word) & inside(word))
    ]
    assert not cut, f"{len({script for script, _, _ in cut})} scripts, such as {cut[:5]}"
