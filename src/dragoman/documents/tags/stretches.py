"""One stretch of a translation for each of several elements beside each other: disjoint, and none too short.

    pieces = [(0, 1, True), (0, 1, True), (NO_ONE, 1, True), (OTHERS, 1, True), (1, 1, True)]
    stretches(pieces, [Child(1), Child(1)], hint)     # [(0, 2), (4, 5)]

A label says for each piece of the translation which element its words are from. Each element gets the heaviest run of
its pieces, what it can win beside it, and as many pieces as the elements in it need. One that had words gets a word,
if a free one is near. The time is linear.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

WORDLESS, NO_ONE, OTHERS = -3, -2, -1
"""Labels of code and signs of no element, of pieces that translate nothing, and of words around the elements."""

REACH = 40
"""Number of pieces that an element without links looks through for one that translates nothing."""

Stretch = tuple[int, int]
Piece = tuple[int, int, bool]
"""A label, a weight, and whether it is a word, no code or sign.

The label is the number of an element or one of those above. A part of a word weighs less than a word.
"""


@dataclass
class Child:
    """An element to place."""

    n_needed: int
    end: Literal["", "start", "end"] = ""
    """The end of all pieces that it must touch, as an element does that goes through a barrier."""
    has_words: bool = True


@dataclass
class _Placed:
    """The stretch of an element, while it is sought."""

    child: int
    start: int
    end: int


def stretches(
    pieces: Sequence[Piece], children: Sequence[Child], hint: Callable[[int], int], *, covers: bool = False
) -> list[Stretch]:
    """Return the stretch of each element.

    Args:
        pieces: At least as many as are needed.
        children: The elements, in the order of the source.
        hint: Returns where an element without any piece would stand.
        covers: The elements are to cover all pieces: no words stand around them in the source.
    """
    labels = [label for label, _, _ in pieces]
    placed = _runs(pieces, len(children))
    _place_unlinked(placed, labels, hint)
    for own in placed:
        if children[own.child].end:  # at most one at each end
            _touch_end(own, placed, labels, children[own.child].end)
    rank = {"start": 0, "": 1, "end": 2}
    placed.sort(key=lambda own: (rank[children[own.child].end], own.start, own.end, own.child))
    _widen(placed, pieces)
    _fill(placed, labels, children)
    _give_words(placed, pieces, children)
    _make_room(placed, len(labels), children)
    if covers:
        _cover(placed, len(labels), children)
    result = [(0, 0)] * len(children)
    for own in placed:
        result[own.child] = own.start, own.end
    return result


def _cover(placed: Sequence[_Placed], size: int, children: Sequence[Child]) -> None:
    """Widen the stretches up to each other and to both ends; one of code or an address takes no words."""
    if placed and children[placed[0].child].has_words:
        placed[0].start = 0
    if placed and children[placed[-1].child].has_words:
        placed[-1].end = size
    for left, right in pairwise(placed):
        if children[left.child].has_words:
            left.end = right.start
        elif children[right.child].has_words:
            right.start = left.end


def _runs(pieces: Sequence[Piece], n: int) -> list[_Placed]:
    """Return the heaviest run of each element's pieces; an element without any starts at -1."""
    best = [0] * n
    placed = [_Placed(child, -1, -1) for child in range(n)]
    last, start, size = NO_ONE, 0, 0
    for at, (label, weight, _) in enumerate(pieces):
        if label == NO_ONE:
            continue
        if label != last:
            last, start, size = label, at, 0
        size += weight
        if label >= 0 and size > best[label]:
            best[label] = size
            placed[label].start, placed[label].end = start, at + 1
    return placed


def _place_unlinked(placed: Sequence[_Placed], labels: Sequence[int], hint: Callable[[int], int]) -> None:
    """Give each element without any piece one near its hint: that translates nothing, or that no run has."""
    missing = [own for own in placed if own.start < 0]
    if not missing:
        return
    inside = [-1] * (len(labels) + 1)  # for each piece in a run: its end
    for own in placed:
        if own.start >= 0:
            inside[own.start : own.end] = [own.end] * (own.end - own.start)
    for own in missing:
        wanted = hint(own.child)
        at = _nearest(wanted, lambda i: labels[i] == NO_ONE and inside[i] < 0, len(labels))
        if at < 0:
            if 0 < wanted < len(labels) and inside[wanted] == inside[wanted - 1]:
                wanted = max(wanted, inside[wanted])
            at = _nearest(wanted, lambda i: inside[i] < 0 and labels[i] != WORDLESS, len(labels))
        if at < 0:
            at = _nearest(wanted, lambda i: inside[i] < 0, len(labels))
        if at < 0:
            own.start = own.end = wanted
        else:
            own.start, own.end = at, at + 1
            inside[at] = at + 1


def _nearest(wanted: int, is_free: Callable[[int], bool], size: int) -> int:
    """Return the free piece nearest to a place, of those that it can see; -1 if there is none."""
    near = (wanted + step for n in range(REACH) for step in (n, -1 - n))
    return next((at for at in near if 0 <= at < size and is_free(at)), -1)


def _touch_end(own: _Placed, placed: Sequence[_Placed], labels: Sequence[int], end: str) -> None:
    """Stretch an element to the end that it must touch, from its piece nearest to it that no other lies before."""
    others = [other for other in placed if other is not own and other.end > other.start]
    if end == "start":
        limit = min((other.start for other in others), default=len(labels))
        own.start, own.end = 0, max((at + 1 for at in range(limit) if labels[at] == own.child), default=0)
    else:
        limit = max((other.end for other in others), default=0)
        own.start = min((at for at in range(limit, len(labels)) if labels[at] == own.child), default=len(labels))
        own.end = len(labels)


def _widen(placed: Sequence[_Placed], pieces: Sequence[Piece]) -> None:
    """Widen each run up to its neighbours where that wins at least as much of its own as of others."""
    for i, own in enumerate(placed):
        left = placed[i - 1].end if i else 0
        right = placed[i + 1].start if i + 1 < len(placed) else len(pieces)
        total = best = 0
        for at in range(own.start - 1, left - 1, -1):
            total += _gain(*pieces[at][:2], own.child)
            if pieces[at][0] == own.child and total >= best:
                best, own.start = total, at
        total = best = 0
        for at in range(own.end, right):
            total += _gain(*pieces[at][:2], own.child)
            if pieces[at][0] == own.child and total >= best:
                best, own.end = total, at + 1


def _gain(label: int, weight: int, child: int) -> int:
    return 0 if label == NO_ONE else weight if label == child else -weight


def _fill(placed: Sequence[_Placed], labels: Sequence[int], children: Sequence[Child]) -> None:
    """Widen each stretch that is too short into the free pieces beside it, first those that translate nothing."""
    for i, own in enumerate(placed):
        left = max(placed[i - 1].end, 0) if i else 0
        right = placed[i + 1].start if i + 1 < len(placed) else len(labels)
        while own.end - own.start < children[own.child].n_needed:
            is_left, is_right = own.start > left, own.end < right
            if not is_left and not is_right:
                break
            prefers_left = is_left and labels[own.start - 1] == NO_ONE and labels[min(own.end, right - 1)] != NO_ONE
            if is_left and (prefers_left or not is_right):
                own.start -= 1
            else:
                own.end += 1


def _give_words(placed: Sequence[_Placed], pieces: Sequence[Piece], children: Sequence[Child]) -> None:
    """Widen each stretch that has only code or signs of its own, up to the nearest word that no other has."""
    for i, own in enumerate(placed):
        if not children[own.child].has_words or any(piece[2] for piece in pieces[own.start : own.end]):
            continue
        left = max(placed[i - 1].end, 0) if i else 0
        right = placed[i + 1].start if i + 1 < len(placed) else len(pieces)
        before = _first_word(pieces, range(own.start - 1, left - 1, -1))
        behind = _first_word(pieces, range(own.end, right))
        if before >= 0 and (behind < 0 or own.start - before < behind + 1 - own.end):
            own.start = before
        elif behind >= 0:
            own.end = behind + 1


def _first_word(pieces: Sequence[Piece], numbers: range) -> int:
    """Return the first of some pieces that is a word; -1 if there is none, or code of others comes before it."""
    for i in numbers[:REACH]:
        if pieces[i][2]:
            return i
        if pieces[i][0] == WORDLESS:
            break
    return -1


def _make_room(placed: Sequence[_Placed], size: int, children: Sequence[Child]) -> None:
    """Move stretches aside until none overlap and each is long enough."""
    at = 0
    for own in placed:
        own.start = max(own.start, at)
        own.end = at = max(own.end, own.start + children[own.child].n_needed)
    at = size
    for own in reversed(placed):
        own.end = min(own.end, at)
        own.start = at = min(own.start, own.end - children[own.child].n_needed)
