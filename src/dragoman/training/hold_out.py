"""Hold-out: pairs of the training text that are taken for validation where there is no validation text.

    pool = draw(texts, read, limit)                  # twice as many pairs as needed, and their near twins
    held_out = pool.choose(tokenizers, config.data)  # those that cleaning keeps; with few near twins first

A held-out pair has no near twin in the training text: where it has some (``data.twins``), they are left out of it.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import numpy as np

from dragoman.config import DataConfig, TextFiles
from dragoman.data.corpus import Cleaner
from dragoman.data.texts import paths_of
from dragoman.data.tokenizer import Tokenizer
from dragoman.data.twins import Pair, Twins
from dragoman.errors import DataError
from dragoman.languages.scripts import is_blank

LEAST_EVERY, MOST_HELD_OUT = 100, 2000
"""One pair of so many is held out, and at most so many pairs."""

GIVE_ONE = "give a validation set (--valid FILE --valid FILE, or --valid with a table)"
"""End of a refusal to hold out pairs."""

MOST_LEFT_OUT = 0.1
"""Largest share of the pairs that may be near twins of held-out pairs; more only for the first of these."""

MOST_TWINS = 1000
"""Number of near twins above which a pair is not held out, unless all have more."""

MOST_REPEATED = 8
"""Number of pairs, those with the fewest near twins, that may be held out where all have more than ``MOST_TWINS``."""

Read = Callable[[TextFiles], Iterator[Pair]]


@dataclass(frozen=True)
class HeldOut:
    """Pairs that are held out, and the places of those that are left out of the training text for them."""

    pairs: dict[int, Pair]  # by their places among all pairs of all texts, from 0
    twins: frozenset[int]

    def remaining(self, read: Read, text: TextFiles, first: int) -> Iterator[Pair]:
        """Yield the other pairs of a text, whose first pair has the place ``first``."""
        for place, pair in enumerate(read(text), first):
            if place not in self.pairs and place not in self.twins:
                yield pair

    def of(self, first: int, n: int) -> list[Pair]:
        """Return the held-out pairs among ``n`` pairs from the place ``first`` on."""
        return [pair for place, pair in self.pairs.items() if first <= place < first + n]


@dataclass(frozen=True)
class Pool:
    """Pairs that may be held out: twice as many as will be."""

    pairs: dict[int, Pair]  # by place
    twins: dict[int, array[int]]  # places of the near twins of each
    n_wanted: int
    n_pairs: int
    file: Path  # for messages

    def choose(self, tokenizers: tuple[Tokenizer, Tokenizer], data: DataConfig) -> HeldOut:
        """Choose the pairs to hold out: those that cleaning keeps, first those without near twins.

        Raises:
            DataError: No pair can be held out.
        """
        places = list(self.pairs)
        sides = zip(*self.pairs.values(), strict=True)
        lengths = [
            np.fromiter(map(len, tokenizer.encode(list(side))), np.int64, len(places))
            for tokenizer, side in zip(tokenizers, sides, strict=True)
        ]
        is_clean = Cleaner(data).keep(list(self.pairs.values()), *lengths)
        # Every second pair is a reserve, so that the pairs come from the whole text.
        order = sorted(np.flatnonzero(is_clean).tolist(), key=lambda i: (len(self.twins[places[i]]), i % 2, i))
        chosen: dict[int, Pair] = {}
        left_out: set[int] = set()
        for place in (places[i] for i in order):
            limit = self.n_pairs * (MOST_LEFT_OUT if chosen else 0.5)
            if len(self.twins[place]) > limit:
                continue
            twins = left_out | set(self.twins[place])
            if len(chosen) < self.n_wanted and place not in left_out and len(twins) <= limit:
                chosen[place], left_out = self.pairs[place], twins
        if not chosen:
            why = (
                f"none of the {len(places):,} pairs drawn for validation is kept by cleaning (data.max_tokens, "
                "data.max_ratio)"
                if not is_clean.any()
                else "nearly every pair is repeated in it"
            )
            raise DataError(f"{self.file}: nothing can be held out for validation, as {why}: {GIVE_ONE}")
        return HeldOut(dict(sorted(chosen.items())), frozenset(left_out))


def draw(texts: Sequence[TextFiles], divided: Sequence[TextFiles], read: Read, one_side: bool = False) -> Pool:
    """Draw the pairs that may be held out, and look for their near twins in all texts.

    Args:
        texts: All training text.
        divided: Those texts of which pairs are held out.
        read: Returns the pairs of a text.
        one_side: Compare the sources alone.

    Raises:
        DataError: The text is too short.
    """
    n_usable = sum(_is_usable(pair) for text in divided for pair in read(text))
    every = max(LEAST_EVERY, -(-n_usable // MOST_HELD_OUT))
    if n_usable == 0:
        raise DataError(f"{paths_of(divided)[0]}: no pair of this text has words on both sides; check the files")
    if n_usable < every:
        raise DataError(
            f"{paths_of(divided)[0]}: {n_usable:,} {'pair is' if n_usable == 1 else 'pairs are'} too few to hold out "
            f"1% for validation, which takes {every}: {GIVE_ONE}"
        )
    pairs: dict[int, Pair] = {}
    numbers, places = count(), count()
    for text in texts:
        for pair in read(text):
            place = next(places)
            if text in divided and _is_usable(pair) and _is_drawn(next(numbers), every // 2):
                pairs[place] = pair

    def compared() -> Iterator[Pair]:
        return (_compared(pair, one_side) for text in texts for pair in read(text))

    n_pairs = next(places)
    candidates = {place: _compared(pair, one_side) for place, pair in pairs.items()}
    twins, counts = _twins(candidates, compared(), MOST_TWINS)
    few = {place: pair for place, pair in pairs.items() if counts[place] <= MOST_TWINS}
    if not few:
        different = {pair: place for place, pair in pairs.items()}.values()
        few = {place: pairs[place] for place in sorted(different, key=lambda place: counts[place])[:MOST_REPEATED]}
        # No pair with more is held out.
        twins, _ = _twins({place: candidates[place] for place in few}, compared(), n_pairs // 2 + 1)
    return Pool(few, twins, n_usable // every, n_pairs, paths_of(divided)[0])


def _twins(chosen: dict[int, Pair], pairs: Iterable[Pair], most: int) -> tuple[dict[int, array[int]], Counter[int]]:
    """Return the places among ``pairs`` of each chosen pair's near twins, ``most`` at most, and the number of all."""
    drawn, finder = list(chosen), Twins(list(chosen.values()))
    twins, counts = {place: array("q") for place in chosen}, Counter[int]()
    for place, pair in enumerate(pairs):
        for twin in (drawn[i] for i in finder.of(pair) if drawn[i] != place):
            counts[twin] += 1
            if counts[twin] <= most:
                twins[twin].append(place)
    return twins, counts


def _compared(pair: Pair, one_side: bool) -> Pair:
    return (pair[0], pair[0]) if one_side else pair


def _is_usable(pair: Pair) -> bool:
    """Return False for a pair that cleaning drops whatever its subwords are."""
    return not any(is_blank(text) or "\n" in text for text in pair)


def _is_drawn(number: int, size: int) -> bool:
    """Return True for one pair of each ``size``, at a place that follows no pattern of the text."""
    block, place = divmod(number, size)
    return place == (block * 2654435761 % 2**32) * size >> 32
