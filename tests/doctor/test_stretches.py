"""Stretches of pairs with one fault."""

from __future__ import annotations

import numpy as np

from dragoman.doctor.stretches import MARKS, joined

WRONG, SOURCE, TARGET, SWAPPED = (
    MARKS.index(name) for name in ("misaligned", "source-language", "target-language", "swapped-sides")
)


def test_the_gaps_of_a_stretch_get_its_mark() -> None:
    marks = np.array([0] * 50 + [SOURCE, 0, WRONG] * 20 + [SOURCE] + [0] * 50, np.int8)
    expected = np.array([0] * 50 + [SOURCE] * 61 + [0] * 50)
    assert joined(marks).tolist() == expected.tolist()


def test_wrong_pairs_alone_are_no_stretch_in_another_language() -> None:
    for period in (2, 3):
        marks = np.array(([WRONG] + [0] * (period - 1)) * 300, np.int8)
        marks[[30, 600 // period]] = SOURCE, TARGET  # two lines of another language make none of them either
        assert joined(marks).tolist() == marks.tolist()


def test_a_stretch_between_wrong_pairs_is_found() -> None:
    marks = np.array([WRONG, 0, 0] * 30 + [SWAPPED] * 40 + [WRONG, 0, 0] * 30, np.int8)
    result = joined(marks)
    assert result[90:130].tolist() == [SWAPPED] * 40
    assert np.count_nonzero(result == SWAPPED) < 50
