"""Near twins: pairs of text one side of which has nearly the same words as that of another pair.

    twins = Twins([("A dog runs.", "Ein Hund rennt."), ...])
    twins.of(("a dog runs!", "Der Hund rennt schnell."))    # {0}
    Twins([("A dog runs.",)]).of(("a dog runs!",))          # {0}, of texts with one side

Case, punctuation and white space make no difference, nor does the value of a number. Two texts are twins if they share
``SHARED`` of the pairs of neighbouring words that either has: of ten words one may differ, of three none.
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Sequence

from dragoman.languages.stopwords import words_of

SHARED = 0.6
"""Least share of the neighbouring words that twins have in common, of all that either has."""

Neighbours = frozenset[tuple[str, str]]
Pair = tuple[str, str]


def neighbours(text: str) -> Neighbours:
    """Return all pairs of neighbouring words of a text, its beginning and its end among them."""
    words = words_of(text if text.isascii() else unicodedata.normalize("NFKC", text))
    words = ["0" if word.isdecimal() else word for word in words] or [text.strip()]
    return frozenset(zip(["", *words], [*words, ""], strict=True))


class Twins:
    """Finds those of a few pairs that are near twins of a given pair."""

    def __init__(self, pairs: Sequence[tuple[str, ...]]) -> None:
        self._sides = [[neighbours(text) for text in side] for side in zip(*pairs, strict=True)]
        self._indices = [_index(side) for side in self._sides]

    def of(self, pair: tuple[str, ...]) -> set[int]:
        """Return the places of the pairs that have a side in common with ``pair``, or nearly."""
        twins: set[int] = set()
        if not self._sides:
            return twins
        for text, side, index in zip(pair, self._sides, self._indices, strict=True):
            words = neighbours(text)
            candidates = {place for neighbour in words for place in index.get(neighbour, ())}
            twins.update(place for place in candidates if _are_twins(words, side[place]))
        return twins


def _are_twins(one: Neighbours, other: Neighbours) -> bool:
    shared = len(one & other)
    return shared >= SHARED * (len(one) + len(other) - shared)


def _index(side: Sequence[Neighbours]) -> dict[tuple[str, str], list[int]]:
    """Return the texts of a side by their rarest neighbouring words.

    A twin shares at least ``SHARED`` of a text's neighbouring words, so one of any 1 - ``SHARED`` of them and one more.
    """
    counts = Counter(neighbour for words in side for neighbour in words)
    index: dict[tuple[str, str], list[int]] = {}
    for place, words in enumerate(side):
        n = len(words) - int(-(-SHARED * len(words) // 1)) + 1
        for neighbour in sorted(words, key=lambda neighbour: (counts[neighbour], neighbour))[:n]:
            index.setdefault(neighbour, []).append(place)
    return index
