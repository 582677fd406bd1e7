"""Subword regularisation: each time a text is cut into subwords in a randomly drawn way.

    Sampler(vocabulary, rate=0.1).cut(["▁A▁dog▁runs."], seed=1)

SentencePiece can do this too, but its random generator differs from process to process whatever its seed, so a resumed
run could not see the same text as an uninterrupted one. Therefore its two algorithms are written here again, with our
own generator. With rate 0 byte pairs are cut as SentencePiece cuts them.

Pieces hold a space only as their first character, so each word is cut on its own. Each word has ``VARIANTS`` cuts, and
one is drawn; a cut is a function of the word, the rate and the number of the variant. Cuts of short words are cached.
"""

from __future__ import annotations

import functools
import heapq
import math
import random
import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

VARIANTS = 64
"""Number of cuts of each word to draw from."""

MAX_REMEMBERED = 2**17
"""Largest number of cached cuts."""

LONGEST_REMEMBERED = 24
"""Longest word whose cuts are cached, in characters."""

SPACE = "\u2581"
_WORD = re.compile(f"{SPACE}[^{SPACE}]*|[^{SPACE}]+")


class Vocabulary(NamedTuple):
    """The parts of a SentencePiece model that decide how a text is cut."""

    ids: Mapping[str, int]  # ids of the pieces of text, without special ones
    scores: Mapping[str, float]  # byte pairs: the highest is merged first; unigram: log-probability
    bytes: Sequence[int]  # ids of the 256 single bytes; empty without byte fallback
    unk_id: int
    is_unigram: bool


class Sampler:
    """Cuts texts into subwords at random.

    Byte pairs: each merge is left out with probability ``rate`` (BPE-dropout, https://arxiv.org/abs/1910.13267).
    Unigram: one of all segmentations is drawn with its probability to the power ``rate``
    (https://arxiv.org/abs/1804.10959).
    """

    def __init__(self, vocabulary: Vocabulary, rate: float) -> None:
        self.vocabulary = vocabulary
        self.rate = rate
        self._splits = not any(SPACE in piece[1:] for piece in vocabulary.ids)
        self._longest = max(map(len, vocabulary.ids), default=1)
        self._unknown_score = min(vocabulary.scores.values(), default=0.0) - 10  # as SentencePiece has it
        self.remembered = functools.lru_cache(MAX_REMEMBERED)(self.variant_of)

    def cut(self, texts: Sequence[str], seed: int) -> list[list[int]]:
        """Return the ids of each text; the same arguments give the same ids in every process and on every machine.

        Args:
            texts: Texts as SentencePiece normalises them, with spaces as U+2581, also before the first word if the
                model puts one there.
            seed: At least 0.
        """
        chance = random.Random(seed).random
        rows = []
        for text in texts:
            row: list[int] = []
            for word in _WORD.findall(text) if self._splits else [text]:
                variant = self.remembered if len(word) <= LONGEST_REMEMBERED else self.variant_of
                row += variant(word, int(chance() * VARIANTS))
            rows.append(row if self.vocabulary.bytes else self._without_repeated_unknowns(row))
        return rows

    def variant_of(self, word: str, number: int) -> tuple[int, ...]:
        """Return the ids of one cut of a word; the number of the variant seeds the random generator."""
        chance = random.Random(f"{number} {word}")
        pieces = self._drawn(word, chance) if self.vocabulary.is_unigram else self._merged(word, chance)
        return tuple(i for piece in pieces for i in self._ids(piece))

    def _ids(self, piece: str) -> Sequence[int]:
        """Return the id of a piece; an unknown character becomes bytes or unk."""
        ids, _, byte_ids, unk_id, _ = self.vocabulary
        if piece in ids:
            return (ids[piece],)
        return [byte_ids[byte] for byte in piece.encode()] if byte_ids else (unk_id,)

    def _without_repeated_unknowns(self, row: Sequence[int]) -> list[int]:
        """Return the ids with runs of unk reduced to one, as SentencePiece does."""
        unk_id = self.vocabulary.unk_id
        return [i for place, i in enumerate(row) if i != unk_id or place == 0 or row[place - 1] != unk_id]

    def _merged(self, word: str, chance: random.Random) -> list[str]:
        """Return a word cut by byte pairs: neighbours are merged, best score first, each with probability 1 - rate.

        A pair that was left unmerged is considered again only if one of its symbols grows.
        """
        scores, rate = self.vocabulary.scores, self.rate
        symbols, n = list(word), len(word)
        before, after = list(range(-1, n - 1)), list(range(1, n + 1))
        heap: list[tuple[float, int, int, int]] = []

        def offer(left: int, right: int) -> None:
            """Put a pair of neighbours on the heap if it can be merged."""
            piece = symbols[left] + symbols[right]
            if piece in scores:
                heapq.heappush(heap, (-scores[piece], left, right, len(piece)))

        for left in range(n - 1):
            offer(left, left + 1)
        while heap:
            _, left, right, size = heapq.heappop(heap)
            stale = not (symbols[left] and symbols[right]) or len(symbols[left]) + len(symbols[right]) != size
            if stale or chance.random() < rate:
                continue
            symbols[left] += symbols[right]
            symbols[right] = ""
            after[left] = after[right]
            if after[left] < n:
                before[after[left]] = left
                offer(left, after[left])
            if before[left] >= 0:
                offer(before[left], left)
        return [symbol for symbol in symbols if symbol]

    def _drawn(self, word: str, chance: random.Random) -> list[str]:
        """Return a word cut by a unigram model.

        The forward pass sums the probabilities of all segmentations up to each place; then pieces are drawn backwards
        from the end (forward filtering, backward sampling).
        """
        scores = self.vocabulary.scores
        ways: list[list[tuple[float, int]]] = [[]]  # for each place: log-weight and start of each piece that ends there
        total = [0.0]  # log of the sum of these weights, for each place
        for end in range(1, len(word) + 1):
            ending_here = []
            for start in range(max(0, end - self._longest), end):
                score = scores.get(word[start:end], self._unknown_score if start == end - 1 else None)
                if score is not None:
                    ending_here.append((total[start] + self.rate * score, start))
            top = max(weight for weight, _ in ending_here)
            ways.append(ending_here)
            total.append(top + math.log(sum(math.exp(weight - top) for weight, _ in ending_here)))
        pieces, end = [], len(word)
        while end:
            weights = [math.exp(weight - total[end]) for weight, _ in ways[end]]
            ((_, start),) = chance.choices(ways[end], weights)
            pieces.append(word[start:end])
            end = start
        return pieces[::-1]
