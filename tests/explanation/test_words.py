"""Subwords become words without a word or a character being cut, and rows of attention still sum to 1."""

from __future__ import annotations

import numpy as np
import pytest

from dragoman.config import TokenizerConfig
from dragoman.data.tokenizer import Tokenizer
from dragoman.explanation.words import between_words, word_names, word_spans, written_words

GIRL = "女孩".encode()


@pytest.mark.parametrize(
    ("pieces", "words"),
    [
        ([" A", " dog", "s", "."], ["A", "dogs", "."]),
        ([" is", "n", "'", "t", " it", "?", "!"], ["isn't", "it", "?", "!"]),
        ([" well", "-", "known", " -", " yes", "-"], ["well-known", "-", "yes", "-"]),
        ([" ", "Yester", "day"], ["Yesterday"]),  # the space is a token of its own
        ([" don", "'", "t", " '", "quoted", "'"], ["don't", "'", "quoted", "'"]),
        ([" 3", ".", "5", "k", "m"], ["3", ".", "5km"]),
        ([" ", "女孩", "打", "开", "。"], ["女孩", "打", "开", "。"]),  # pieces of Chinese stay what they are
        ([" Zürich", "er"], ["Züricher"]),
        ([" ca", "fe", "\u0301"], ["cafe\u0301"]),
        ([" "], ["·"]),
    ],
)
def test_words_are_what_people_read_as_one(pieces: list[str], words: list[str]) -> None:
    spelled = [piece.encode() for piece in pieces]
    spans = word_spans(spelled)
    assert word_names(spelled, spans) == words
    assert [i for start, stop in spans for i in range(start, stop)] == list(range(len(pieces)))


def test_a_character_spelt_in_bytes_is_one_word() -> None:
    spelled = [b" ", GIRL[:1], GIRL[1:2], GIRL[2:3], GIRL[3:]]
    spans = word_spans(spelled)
    assert word_names(spelled, spans) == ["女", "孩"]
    assert word_names([b" ", b"\xe5\xa5"], word_spans([b" ", b"\xe5\xa5"])) == ["\ufffd"]  # half of one


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("\ufeff two\u00a0old  cafe\u0301s\t", ["two", "old", "cafe\u0301s"]),
        ("ｔｗｏ o\u00adld", ["ｔｗｏ", "o\u00adld"]),
        ("\u1112\u1161\u11ab\u1100\u1173\u11af\u3000x", ["\u1112\u1161\u11ab\u1100\u1173\u11af", "x"]),
        ("रवि\u2028ज\u093c", ["रवि", "ज\u093c"]),
    ],
)
def test_words_are_shown_as_they_are_written(text: str, words: list[str]) -> None:
    tokenizer = Tokenizer.learn(["two old cafés", "रवि है", "한글 x"] * 9, TokenizerConfig(vocab_size=310))
    ids = tokenizer.encode([text])[0]
    spelled = [tokenizer.spelled[i] for i in ids]
    spans = word_spans(spelled)
    assert written_words(text, tokenizer.normalised(text), spelled, spans) == words
    assert written_words(text, tokenizer.normalised(text), [b"other"], [(0, 1)]) == ["other"]


def test_a_token_that_spells_nothing_is_a_word_of_its_own() -> None:
    """The mark of a target language before the first word, or another amid words."""
    assert word_spans([b"", b" The", b" dog", b"", b"s"]) == [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5)]
    assert word_spans([b"", b" The", b" dog"], by_spaces=True) == [(0, 1), (1, 2), (2, 3)]


def test_nothing_has_no_words() -> None:
    assert word_spans([]) == []


def test_a_word_is_paid_the_sum_and_pays_the_mean() -> None:
    weights = np.array([[0.5, 0.3, 0.2], [0.1, 0.1, 0.8]], dtype=np.float32)
    merged = between_words(weights, [(0, 2)], [(0, 1), (1, 3)])
    np.testing.assert_allclose(merged, [[0.3, 0.7]], atol=1e-7)


def test_merging_equals_the_plain_sums() -> None:
    weights = np.random.default_rng(0).random((2, 3, 7, 5)).astype(np.float32)
    queries, keys = [(0, 1), (1, 4), (4, 7)], [(0, 2), (2, 3), (3, 5)]
    merged = between_words(weights, queries, keys)
    for row, (q0, q1) in enumerate(queries):
        for column, (k0, k1) in enumerate(keys):
            plain = weights[:, :, q0:q1, k0:k1].sum(-1).mean(-1)
            np.testing.assert_allclose(merged[:, :, row, column], plain, rtol=1e-5)
