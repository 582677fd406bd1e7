"""Sentence ends of all scripts: two sentences on a line, of Django's and CLDR's texts, are split in two."""

from __future__ import annotations

import pytest

from benchmarks.language_inputs import FOREIGN_ENDS, SENTENCE_LANGUAGES, not_ends, two_sentences
from dragoman.languages.sentences import sentences

RED = {"km", "bo", "dz"}


@pytest.mark.parametrize(
    "lang",
    [pytest.param(lang, marks=pytest.mark.xfail(strict=True, reason="its sentence end is not known")) if lang in RED
     else lang for lang in SENTENCE_LANGUAGES],
)  # fmt: skip
def test_two_sentences_are_split_where_they_were_joined(lang: str) -> None:
    pairs = [pair for pair in two_sentences() if pair.lang == lang]
    assert len(pairs) == 8
    for pair in pairs:
        assert sentences(pair.first + pair.second, lang) == [pair.first, pair.second]


@pytest.mark.xfail(strict=True, reason="some marks are not known")
def test_every_mark_ends_a_sentence_in_text_of_any_language() -> None:
    for mark in FOREIGN_ENDS:
        for lang in (None, "en", "km"):
            assert sentences(f"猫犬鳥{mark} 猫犬鳥{mark}", lang) == [f"猫犬鳥{mark} ", f"猫犬鳥{mark}"], mark


@pytest.mark.xfail(strict=True, reason="the comma of Burmese ends a sentence")
def test_what_ends_no_sentence_splits_nothing() -> None:
    for lang, text in not_ends():
        assert sentences(text, lang) == [text]
