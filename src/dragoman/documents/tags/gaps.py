"""The places of tags among the spaces and punctuation between two pieces of a translation."""

from __future__ import annotations

import unicodedata
from bisect import bisect_left
from collections.abc import Sequence
from functools import cached_property

from dragoman.documents.tags.pieces import Pieces
from dragoman.documents.tags.tree import Mark
from dragoman.languages.words import places_of

_BRACKETS = dict(zip("([{（［【〔《〈「『", ")]}）］】〕》〉」』", strict=True))


class Gaps:
    """Spaces and punctuation of a unit and its translation."""

    def __init__(self, src: str, tgt: str, pieces: Pieces) -> None:
        self.src, self.tgt = src, tgt
        self._src_signs = [i for i, character in enumerate(src) if not character.isspace()]
        self._tgt_signs = [i for i, character in enumerate(tgt) if not character.isspace()]
        self._starts, self._ends = ([span[i] for span in pieces.src] for i in (0, 1))
        self._pieces = pieces
        self._places: dict[str, tuple[list[int], list[int]]] = {}

    def range(self, count: int) -> tuple[int, int]:
        """Return the characters of the translation between two pieces, of which the second has this number."""
        tgt = self._pieces.tgt
        return tgt[count - 1][1] if count else 0, tgt[count][0] if count < len(tgt) else len(self.tgt)

    def place(self, tag: Mark, count: int) -> int:
        """Return the character of the translation that a tag stands before.

        As much punctuation as in the source is on the side of a tag where its own words are: before a closing tag,
        after an opening one.

        Args:
            tag: The tag.
            count: Number of pieces before it.
        """
        start, end = self.range(count)
        own = bisect_left(self._tgt_signs, start)
        total = bisect_left(self._tgt_signs, end) - own
        before, after = self.signs_beside(tag.place)
        kind = tag.kind
        if kind == "point":
            kind = "close" if self.piece_before(tag.place) >= 0 else "open"
        if not before and not count and self._n_before(tag.place) == 0:
            n = 0
        elif not after and end == len(self.tgt) and self._n_before(tag.place) == len(self._starts):
            n = total
        elif total == before + after:
            n = before
        else:
            n = min(before, total) if kind == "close" else total - min(after, total)
        first = self._tgt_signs[own + n - 1] + 1 if n else start
        last = self._tgt_signs[own + n] if n < total else end
        return last if self._follows_space(tag, kind) else first

    @cached_property
    def brackets(self) -> dict[int, int]:
        """Place of the other bracket for that of each bracket in the translation that has one."""
        return _brackets(self.tgt, self._tgt_signs)

    @cached_property
    def src_brackets(self) -> dict[int, int]:
        """The same of the source."""
        return _brackets(self.src, self._src_signs)

    def _n_before(self, place: int) -> int:
        """Return the number of the source's pieces before a place."""
        return bisect_left(self._starts, place)

    def signs_beside(self, place: int) -> tuple[int, int]:
        """Return the numbers of signs in the source between a place and the pieces before and behind it."""
        behind = self._n_before(place)
        start = self._ends[behind - 1] if behind else 0
        end = self._starts[behind] if behind < len(self._starts) else len(self.src)
        first, at, last = (bisect_left(self._src_signs, edge) for edge in (start, place, end))
        return max(0, at - first), max(0, last - at)

    def piece_before(self, place: int) -> int:
        """Return the number of the source's piece that a place follows without a space between; -1 if there is none."""
        number = self._n_before(place) - 1
        if number < 0:
            return -1
        return number if place - self._ends[number] <= self.signs_beside(place)[0] else -1

    def neighbour_before(self, place: int) -> int:
        """Return the piece of the source that a point belongs to, since it follows it or closes its clause; else -1."""
        behind = self.src[place : place + 1]
        if behind and unicodedata.category(behind) in ("Pe", "Pf", "Po"):
            return self._n_before(place) - 1
        return self.piece_before(place)

    def _follows_space(self, tag: Mark, kind: str) -> bool:
        """True if a tag stands behind the space at its place, and not before it."""
        left, right = self.src[tag.place - 1 : tag.place], self.src[tag.place : tag.place + 1]
        before, behind = not left or left.isspace(), not right or right.isspace()
        return before if before != behind else kind == "open"

    def same_signs(self, start: int, end: int) -> int:
        """Return the place in the translation of a part of the source without pieces, such as ``|``; -1 if unknown.

        It is known if the translation has these signs as often as the source.
        """
        signs = self.src[start:end]
        if signs not in self._places:
            self._places[signs] = places_of(self.src, signs), places_of(self.tgt, signs)
        src, tgt = self._places[signs]
        number = bisect_left(src, start)
        return tgt[number] if len(src) == len(tgt) and number < len(src) and src[number] == start else -1

    def spaces(self, at: int, step: int, most: int) -> int:
        """Return the number of spaces in the translation from a place on, forwards (1) or backwards (-1)."""
        n = 0
        while n < most and 0 <= at < len(self.tgt) and self.tgt[at].isspace():
            n, at = n + 1, at + step
        return n


def _brackets(text: str, signs: Sequence[int]) -> dict[int, int]:
    """Return for the place of each bracket that of its other one, if it has one."""
    partner: dict[int, int] = {}
    opened: list[int] = []
    for i in signs:
        if text[i] in _BRACKETS:
            opened.append(i)
        elif opened and text[i] == _BRACKETS[text[opened[-1]]]:
            first = opened.pop()
            partner[first], partner[i] = i, first
    return partner
