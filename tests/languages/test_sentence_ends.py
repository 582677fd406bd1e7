"""Sentence ends of all scripts: two sentences on a line, of Django's and CLDR's texts, are split in two."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

import pytest
import regex

from benchmarks.language_inputs import FOREIGN_ENDS, SENTENCE_LANGUAGES, not_ends, two_sentences
from dragoman.languages.sentence_ends import (
    BRACKETS,
    COMMAS,
    ENDS,
    SPEECH_CLOSERS,
    is_closing,
    is_exclamation,
    is_question,
)
from dragoman.languages.sentences import sentences
from dragoman.translation.segments import split_text


def test_the_table_is_that_of_unicode() -> None:
    """With the shad of Tibetan, the kunddaliya of Sinhala and the Greek question mark, and without commas."""
    unicode = set(regex.findall(r"\p{Sentence_Terminal}", "".join(map(chr, range(0x110000)))))
    assert set(ENDS) - unicode == set("\u037e\u0df4\u0f0d\u0f0e\u0f0f\u0f10\u0f11\u0f14")
    assert {mark for mark in unicode if mark <= "\U000112ff"} - set(ENDS) == {*COMMAS, "\u2024"}
    assert [mark for mark in ENDS[:60] if is_question(mark)] == list("?\u037e\u061f\u1367\u1945\u2047\u2048\u2049")
    assert [mark for mark in ENDS[:60] if is_exclamation(mark)] == list("!\u07f9\u1944\u203c")


def test_the_brackets_are_those_of_unicode() -> None:
    """All of which one opens and the other closes, but ASCII's, and a quotation mark of Japanese with two ends."""
    openers = [chr(code) for code in range(0x80, 0x20000) if unicodedata.category(chr(code)) == "Ps"]
    left = [mark for mark in openers if "LEFT" in unicodedata.name(mark) and "ARC" not in unicodedata.name(mark)]
    pairs = {mark + unicodedata.lookup(unicodedata.name(mark).replace("LEFT", "RIGHT")) for mark in left}
    assert {a + b for a, b in zip(BRACKETS[::2], BRACKETS[1::2], strict=True)} == pairs | {"〝〟", "〝〞"}
    assert all(map(is_closing, BRACKETS[1::2]))
    assert set(SPEECH_CLOSERS) <= set(BRACKETS[1::2])
    assert not any(map(is_closing, "()]“‘«a。"))


def test_ethiopic_is_split_as_it_is_typed() -> None:
    assert sentences("ሰላም ነው፡፡ እሱ ሄደ፡፡", "am") == ["ሰላም ነው፡፡ ", "እሱ ሄደ፡፡"]


def test_khmer_and_burmese_without_a_space_after_the_mark_are_split() -> None:
    assert sentences("គាត់ទៅ។គាត់មក។", "km") == ["គាត់ទៅ។", "គាត់មក។"]
    assert sentences("သူသွား။သူလာ။", "my") == ["သူသွား။", "သူလာ။"]


def test_a_long_text_is_split_at_the_ends_of_any_script() -> None:
    def n_characters(texts: Sequence[str]) -> list[int]:
        return [len(text) for text in texts]

    for first, second in (
        ("គាត់ទៅ។", "គាត់មក។"),
        ("他说“好。”", "然后走了。"),
        ("版本３．５在此。", "好！？"),
        ("यह है।", "वह है।"),
    ):
        longest = max(len(first), len(second)) + 1
        assert split_text(first + second, longest, n_characters) == [first, second]
        assert split_text(f"{first} {second}", longest, n_characters) == [first, second]


@pytest.mark.parametrize("lang", SENTENCE_LANGUAGES)
def test_two_sentences_are_split_where_they_were_joined(lang: str) -> None:
    pairs = [pair for pair in two_sentences() if pair.lang == lang]
    assert len(pairs) == 8
    for pair in pairs:
        assert sentences(pair.first + pair.second, lang) == [pair.first, pair.second]


def test_every_mark_ends_a_sentence_in_text_of_any_language() -> None:
    for mark in FOREIGN_ENDS:
        for lang in (None, "en", "km"):
            assert sentences(f"猫犬鳥{mark} 猫犬鳥{mark}", lang) == [f"猫犬鳥{mark} ", f"猫犬鳥{mark}"], mark


def test_what_ends_no_sentence_splits_nothing() -> None:
    for lang, text in not_ends():
        assert sentences(text, lang) == [text]
