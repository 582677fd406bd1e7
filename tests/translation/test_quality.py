"""Quality in a word: what readers see, not what chrF counts."""

from __future__ import annotations

import pytest

from dragoman.translation.quality import QUALITIES, in_words, n_words_of, of_text, quality_of


@pytest.mark.parametrize(
    ("confidence", "n_words", "unspaced", "quality"),
    [
        (0.80, 3, False, "doubtful"), (0.82, 4, False, "doubtful"), (0.96, 1, False, "good"), (0.97, 4, False, "good"),
        (0.65, 20, False, "good"), (0.50, 20, False, "doubtful"), (0.35, 20, False, "poor"), (0.5, 2, False, "poor"),
        (0.0, 5, False, "poor"), (0.0, 0, False, "poor"), (1.0, 1, False, "good"), (0.40, 12, True, "good"),
        (0.30, 12, True, "doubtful"), (0.1, 12, True, "poor"),
    ],
)  # fmt: skip
def test_a_wrong_word_in_a_short_sentence_is_no_good_translation(
    confidence: float, n_words: int, unspaced: bool, quality: str
) -> None:
    assert quality_of(confidence, n_words, unspaced) == quality


def test_more_confidence_is_never_worse_and_a_longer_sentence_needs_less() -> None:
    order = {quality: -i for i, quality in enumerate(QUALITIES)}
    for unspaced in (False, True):
        for n in range(30):
            row = [order[quality_of(share / 100, n, unspaced)] for share in range(101)]
            assert row == sorted(row)
            assert all(order[quality_of(s / 100, n + 1, unspaced)] >= row[s] for s in range(101))


def test_a_text_is_judged_by_its_lines() -> None:
    assert of_text([]) is None
    assert of_text([None]) is None
    assert of_text(["good", None]) == "good"
    assert of_text(["good", "poor"]) == "poor"
    assert of_text(["good"] * 9 + ["poor"]) == "doubtful"
    assert of_text(["good"] * 19 + ["poor"]) == "good"
    assert (
        in_words({"good": 1200, "poor": 3}) == "quality: 1,200 good, 0 doubtful, 3 poor (estimated); good on the whole"
    )
    assert in_words({}) == ""


def test_words_are_counted_by_spaces_or_by_characters() -> None:
    assert n_words_of("der Hund wartet") == 3
    assert n_words_of("狗在等 待。", unspaced=True) == 3
