"""Subword regularisation: a text cut into subwords in one of many ways, sampled each time.

SentencePiece can do this too, but from a generator of its own that differs from process to process, whatever seed it
is given; a run that is resumed could not see what an uninterrupted one sees. So its two ways to cut are written here
once more, with a generator that is ours. With rate 0 byte pairs are cut as SentencePiece cuts them.

No piece holds a space but as its first character, so each word is cut by itself. For each word there are ``VARIANTS``
cuts, each a function of word, rate and number alone; which of them comes is drawn. Those of short words are remembered.
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
MAX_REMEMBERED = 2**17  # words times variants
LONGEST_REMEMBERED = 24  # characters

SPACE = "\u2581"
_WORD = re.compile(f"{SPACE}[^{SPACE}]*")


class Vocabulary(NamedTuple):
    """What of a SentencePiece model decides how a text is cut."""

    ids: Mapping[str, int]  # of the pieces that are text
    scores: Mapping[str, float]  # byte pairs: the higher, the earlier they are merged; unigram: log-probability
    bytes: Sequence[int]  # the ids of the 256 bytes, or nothing
    unk_id: int
    is_unigram: bool


class Sampler:
    """Cuts texts at random.

    Byte pairs: each merge is left out with probability ``rate`` (BPE-dropout, https://arxiv.org/abs/1910.13267).
    Unigram: a segmentation is drawn with its probability to the power ``rate``, out of all
    (https://arxiv.org/abs/1804.10959).
    """

    def __init__(self, vocabulary: Vocabulary, rate: float) -> None:
        self.vocabulary = vocabulary
        self.rate = rate
        self._splits = not any(SPACE in piece[1:] for piece in vocabulary.ids)
        self._longest = max(map(len, vocabulary.ids), default=1)
        self._unknown_score = min(vocabulary.scores.values(), default=0.0) - 10  # as SentencePiece has it
        self._remembered = functools.lru_cache(MAX_REMEMBERED)(self._variant)

    def cut(self, texts: Sequence[str], seed: int) -> list[list[int]]:
        """The ids of each text; a function of the arguments, in any process and on any machine."""
        chance = random.Random(seed).random
        rows = []
        for text in texts:
            spelled = f" {text}".replace(" ", SPACE) if text else ""
            row: list[int] = []
            for word in _WORD.findall(spelled) if self._splits else [spelled]:
                variant = self._remembered if len(word) <= LONGEST_REMEMBERED else self._variant
                row += variant(word, int(chance() * VARIANTS))
            rows.append(row if self.vocabulary.bytes else self._without_repeated_unknowns(row))
        return rows

    def _variant(self, word: str, number: int) -> tuple[int, ...]:
        """One of the cuts of a word."""
        chance = random.Random(f"{number} {word}")
        pieces = self._drawn(word, chance) if self.vocabulary.is_unigram else self._merged(word, chance)
        return tuple(i for piece in pieces for i in self._ids(piece))

    def _ids(self, piece: str) -> Sequence[int]:
        ids, _, byte_ids, unk_id, _ = self.vocabulary
        if piece in ids:
            return (ids[piece],)
        return [byte_ids[byte] for byte in piece.encode()] if byte_ids else (unk_id,)

    def _without_repeated_unknowns(self, row: Sequence[int]) -> list[int]:
        """What is unknown comes once for any number of characters, as from SentencePiece."""
        unk_id = self.vocabulary.unk_id
        return [i for place, i in enumerate(row) if i != unk_id or place == 0 or row[place - 1] != unk_id]

    def _merged(self, word: str, chance: random.Random) -> list[str]:
        """Merge neighbours, best score first; one that is passed over comes again only if a neighbour changes."""
        scores, rate = self.vocabulary.scores, self.rate
        symbols, n = list(word), len(word)
        before, after = list(range(-1, n - 1)), list(range(1, n + 1))
        heap: list[tuple[float, int, int, int]] = []

        def offer(left: int, right: int) -> None:
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
        """Sum the probabilities of all ways to each place, then draw pieces from the end to the start."""
        scores = self.vocabulary.scores
        ways: list[list[tuple[float, int]]] = [[]]  # at each place: log-weights of the pieces that end there, starts
        total = [0.0]  # log of their sum
        for end in range(1, len(word) + 1):
            here = []
            for start in range(max(0, end - self._longest), end):
                score = scores.get(word[start:end], self._unknown_score if start == end - 1 else None)
                if score is not None:
                    here.append((total[start] + self.rate * score, start))
            top = max(weight for weight, _ in here)
            ways.append(here)
            total.append(top + math.log(sum(math.exp(weight - top) for weight, _ in here)))
        pieces, end = [], len(word)
        while end:
            weights = [math.exp(weight - total[end]) for weight, _ in ways[end]]
            ((_, start),) = chance.choices(ways[end], weights)
            pieces.append(word[start:end])
            end = start
        return pieces[::-1]
