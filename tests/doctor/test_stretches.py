"""Stretches of pairs with one fault."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from dragoman.doctor import stretches
from dragoman.doctor.stretches import MARKS, RIGHT_SOURCE, RIGHT_TARGET, RIGHT_WAY_ROUND

WRONG, SOURCE, TARGET, SWAPPED = (
    MARKS.index(name) for name in ("misaligned", "source-language", "target-language", "swapped-sides")
)


def joined(marks: NDArray[np.int8], rights: NDArray[np.int8] | None = None) -> NDArray[np.int8]:
    """Stretches joined where nothing is known to be right, unless it is given."""
    return stretches.joined(marks, np.zeros(len(marks), np.int8) if rights is None else rights)


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


@pytest.mark.parametrize(
    ("mark", "right"),
    [(SOURCE, RIGHT_SOURCE), (TARGET, RIGHT_TARGET), (SWAPPED, RIGHT_WAY_ROUND), (SWAPPED, RIGHT_SOURCE)],
)
def test_pairs_one_by_one_between_right_ones_are_no_stretch(mark: int, right: int) -> None:
    """The pairs between them were exchanged, or dropped, too."""
    marks = np.array(([mark, mark, 0, 0] * 3 + [mark, 0, 0, 0, 0]) * 20, np.int8)
    assert joined(marks, np.where(marks, 0, right).astype(np.int8)).tolist() == marks.tolist()
    # What is right of the other side speaks against no block in another language.
    if mark == SOURCE:
        other = np.where(marks, 0, RIGHT_TARGET).astype(np.int8)
        assert joined(marks, other).tolist() == joined(marks).tolist() != marks.tolist()


def test_a_right_pair_within_a_stretch_keeps_its_own_mark() -> None:
    marks = np.array([0] * 50 + [SWAPPED] * 20 + [0, WRONG] + [SWAPPED] * 20 + [0] * 50, np.int8)
    rights = np.zeros(len(marks), np.int8)
    rights[[70, 71]] = RIGHT_WAY_ROUND
    assert joined(marks, rights).tolist() == marks.tolist()
