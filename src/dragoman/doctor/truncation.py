"""Lines that were all cut at one length."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dragoman.doctor.findings import Tally
from dragoman.doctor.paired_lines import Reading

SHORTEST = {"characters": 20, "words": 8}
"""Length in each unit below which a text is short by itself: the entries of a dictionary were not cut."""

LEAST_LINES = 20
"""Lines of one length below which a limit may be chance."""

OFTENER = 5.0
"""Factor by which lines of the greatest length must exceed those of each length a little below."""

BELOW = 12
"""Number of lengths below the greatest one that are compared."""


def count_truncated(
    lengths: NDArray[np.uint32], open_ends: NDArray[np.bool_], tallies: dict[str, Tally], reading: Reading
) -> None:
    """Add to ``tallies`` the lines of each side that end at the greatest length, if suspiciously many do.

    Args:
        lengths: Characters of source and target, then words of both, ``(pairs, 4)``.
        open_ends: True for each side that ends without a mark, ``(pairs, 2)``.
        tallies: Counts by kind; "truncated" is added.
        reading: How the text was read.
    """
    for side in (0, 1):
        for unit, column in (("characters", lengths[:, side]), ("words", lengths[:, 2 + side])):
            limit = limit_of(column, open_ends[:, side])
            if limit < SHORTEST[unit]:
                continue
            # A cut behind a space may have lost that space.
            is_cut = (column >= limit - (unit == "characters")) & open_ends[:, side]
            if is_cut.sum() >= LEAST_LINES:
                for i in np.flatnonzero(is_cut).tolist():
                    example = f"cut at {limit:,} {unit}"
                    tallies.setdefault("truncated", Tally()).add(reading.line(i, side), example, side)
                break


def limit_of(lengths: NDArray[np.integer[Any]], open_ends: NDArray[np.bool_]) -> int:
    """Return the length at which lines were cut; 0 if there is none.

    Many more lines have it than lengths a little below, or most of them end without a mark where few others do.

    Args:
        lengths: Length of each line.
        open_ends: True for each line that ends without a mark.
    """
    if len(lengths) < LEAST_LINES:
        return 0
    counts = np.bincount(lengths)
    limit = len(counts) - 1
    usual = max(1.0, float(counts[max(1, limit - BELOW) : limit - 1].max(initial=0)))
    at_limit = lengths == limit
    if counts[limit] < LEAST_LINES or at_limit.all():
        return 0
    is_odd = float(open_ends[at_limit].mean()) > max(0.5, 4 * float(open_ends[~at_limit].mean()))
    return limit if counts[limit] > OFTENER * usual or (is_odd and counts[limit] > 1.2 * usual) else 0
