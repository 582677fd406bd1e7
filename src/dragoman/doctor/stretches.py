"""Stretches of pairs with one fault: most of their pairs show it, and those between them have it too.

    marks = np.array([...])     # one of MARKS for each pair, 0 where nothing was seen
    rights = np.array([...])    # RIGHT_... of each pair, added up
    joined(marks, rights)       # the marks, with the gaps of a stretch filled

A block of another language has lines that look like nothing: a name, two words. Viterbi's algorithm finds where such a
block begins and ends. A line that is clearly in its own language is in no such block: pairs with a fault may also stand
one by one between others.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

MARKS = ("", "misaligned", "source-language", "target-language", "swapped-sides")
"""What may be seen of a pair, by number."""

RIGHT_SOURCE, RIGHT_TARGET, RIGHT_WAY_ROUND = 1, 2, 4
"""What may be seen of a pair beside its mark: each side is clearly in its own language; the pair is not exchanged."""

_EVIDENCE = np.array([
    # nothing, misaligned, source-language, target-language, swapped-sides
    [0.0, 0.0, 0.0, 0.0, 0.0],  # an ordinary stretch
    [-0.8, 2.0, 4.0, -0.5, 0.5],  # the source is in another language
    [-0.8, 2.0, -0.5, 4.0, 0.5],  # the target is in another language
    [-1.5, 1.5, 1.5, 1.5, 4.0],  # the sides are exchanged
])  # fmt: skip
"""Evidence in nats of what is seen of a pair for the kinds of stretches."""

_MARK_OF_STRETCH = (0, 2, 3, 4)
_AGAINST = (0, RIGHT_SOURCE, RIGHT_TARGET, RIGHT_SOURCE | RIGHT_TARGET | RIGHT_WAY_ROUND)
"""What speaks against each kind of stretch."""
_RIGHT = -6.0  # evidence in nats of a pair that has what speaks against a stretch
_SWITCH = 14.0  # nats that the begin or end of a stretch costs
_APART = 20  # pairs without a mark that end every stretch
_OWN_SHARE = 0.2
"""Share of the marked pairs of a stretch that must have its own mark: pairs that are merely wrong are no block."""


def joined(marks: NDArray[np.int8], rights: NDArray[np.int8]) -> NDArray[np.int8]:
    """Return the marks of all pairs, in which every pair of a stretch has its mark, but for those that are right.

    Args:
        marks: What was seen of each pair, ``(pairs,)``, numbers of ``MARKS``.
        rights: What is right of it, ``(pairs,)``, sums of ``RIGHT_...``.
    """
    result = marks.copy()
    seen = np.flatnonzero(marks)
    for part in np.split(seen, np.flatnonzero(np.diff(seen) > _APART) + 1):
        if len(part) >= 5:
            rows = slice(int(part[0]), int(part[-1]) + 1)
            states = _states(marks[rows], rights[rows])
            mark_of_stretch = np.array(_MARK_OF_STRETCH)[states]
            _reject_without_own_marks(mark_of_stretch, marks[rows])
            mark_of_stretch[np.array(_AGAINST)[states] & rights[rows] > 0] = 0
            result[rows] = np.where(mark_of_stretch > 0, mark_of_stretch, marks[rows])
    return result


def _reject_without_own_marks(stretch: NDArray[np.int64], marks: NDArray[np.int8]) -> None:
    """Set to 0 the stretches in which too few of the marked pairs have the mark of the stretch."""
    ends = np.flatnonzero(np.diff(stretch)) + 1
    for part in np.split(np.arange(len(stretch)), ends):
        own = int((marks[part] == stretch[part[0]]).sum())
        if stretch[part[0]] and own < _OWN_SHARE * int((marks[part] > 0).sum()):
            stretch[part] = 0


def _states(marks: NDArray[np.int8], rights: NDArray[np.int8]) -> NDArray[np.int64]:
    """Return the most likely kind of stretch of each pair, a row of ``_EVIDENCE``, ``(pairs,)``."""
    evidence = np.where(np.array(_AGAINST)[:, None] & rights > 0, _RIGHT, _EVIDENCE[:, marks])
    n, n_kinds = len(marks), len(_EVIDENCE)
    total = np.full(n_kinds, -_SWITCH)
    total[0] = 0.0
    came_from = np.zeros((n, n_kinds), np.int8)
    stay = np.arange(n_kinds)
    for i in range(n):
        best = int(total.argmax())
        moved = total[best] - _SWITCH / 2
        came_from[i] = np.where(total >= moved, stay, best)
        total = np.maximum(total, moved) + evidence[:, i]
    total[1:] -= _SWITCH / 2
    states, state = np.zeros(n, np.int64), int(total.argmax())
    for i in range(n - 1, -1, -1):
        states[i] = state
        state = int(came_from[i, state])
    return states
