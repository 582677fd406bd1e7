"""Words of the sources that a model was trained on, kept as hashes: they tell which words it never saw.

    seen = learn(store, src_tokenizer)
    seen.unseen("Der Quetzal frisst.")    # ["Quetzal"]

A vocabulary of subwords cannot tell: nearly every word consists of known pieces, also one whose pieces never stood
together. A word is a run of letters and their marks, without regard to case; in scripts without spaces every character
is one. A hash has 32 bits, so of N words one that never occurred passes for one that did with a chance of N / 2^32:
one in 4,000 for a million words. A word that occurred is never reported.

Chinese has no spaces, and its new words consist of known characters. So the pairs of neighbouring characters are kept
too: all; those that stand together much more often than by chance, which bind both; and characters that are mostly
bound to none, which are words of their own. Characters that never stood together are part of a new word if neither is
bound to another neighbour nor a word of its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dragoman.data.store import Store
from dragoman.data.tokenizer import Tokenizer
from dragoman.errors import BundleError
from dragoman.languages.composition import compose
from dragoman.languages.words import CLUSTER_OF_WORD, HAN, LETTERS, kinds

FILE = "words.hashes"

CHUNK = 4096
"""Number of sources that are decoded together."""

_WORD = re.compile(rf"{LETTERS}|{CLUSTER_OF_WORD}")
"""Pattern, on ``kinds``, of a word of letters, or of a character of a script without spaces."""

HAN_RUN = re.compile(f"[{HAN}]{{2,}}")
BINDS = "\1"
"""Stands before a pair that binds its characters, before a character that is a word of its own, and alone: a file that
has it knows pairs."""
LEAST_PAIRS, TIMES_CHANCE = 2, 20
"""A pair binds its characters if it occurs as often as the first, and as often as by chance times the second."""
LEAST_FREE, FREE_SHARE = 20, 0.4
"""A character is a word of its own if it occurs as often as the first, and no pair binds this share of it."""
SAMPLE = 4_000_000
"""Number of Chinese characters of the training text in which those are sought that are words of their own."""

_BYTES = 4
_DTYPE = np.dtype("<u4")

Hashes = NDArray[np.uint32]


def words_of(text: str) -> Iterator[str]:
    """Yield the words of a text in order; digits and signs are none."""
    text = compose(text)
    return (text[match.start() : match.end()] for match in _WORD.finditer(kinds(text)))


@dataclass(frozen=True, eq=False)
class SeenWords:
    """Hashes of words."""

    hashes: Hashes  # ascending, each once

    def __len__(self) -> int:
        """Return the number of different words, but for those that share a hash."""
        return len(self.hashes)

    def unseen(self, text: str) -> list[str]:
        """Return the words of a text that are not among these, each once in the case in which it comes first."""
        return self.unseen_of([text])[0]

    def unseen_of(self, texts: Sequence[str]) -> list[list[str]]:
        """Return ``unseen`` of each text: a word that several have is looked up once."""
        words_of_texts: list[dict[str, str]] = []
        for text in texts:
            first: dict[str, str] = {}
            for word in words_of(text):
                first.setdefault(word.casefold(), word)
            words_of_texts.append(first)
        distinct = list({word: None for first in words_of_texts for word in first})
        seen = {word for word, is_seen in zip(distinct, self._are_seen(distinct), strict=True) if is_seen}
        unseen_words = []
        for text, first in zip(texts, words_of_texts, strict=True):
            unseen = [word for folded, word in first.items() if folded not in seen]
            new = self._unseen_of_pairs(compose(text)) if HAN_RUN.search(text) else []
            unseen_words.append([word for word in unseen if not any(word in longer for longer in new)] + new)
        return unseen_words

    def _are_seen(self, words: Sequence[str]) -> list[bool]:
        if not len(self.hashes):
            return [False] * len(words)
        own = _hashes(words)
        places = np.searchsorted(self.hashes, own).clip(max=len(self.hashes) - 1)
        return (self.hashes[places] == own).tolist()

    @cached_property
    def _knows_pairs(self) -> bool:
        return self._are_seen([BINDS])[0]

    def _unseen_of_pairs(self, text: str) -> list[str]:
        """Return the new words of known Chinese characters, each once; none of a file that knows no pairs."""
        new_words: dict[str, None] = {}
        for run in dict.fromkeys(HAN_RUN.findall(text)) if self._knows_pairs else ():
            pairs = [run[i : i + 2] for i in range(len(run) - 1)]
            seen = self._are_seen(pairs)
            if all(seen):
                continue
            known = self._are_seen([BINDS + word for word in (*pairs, *run)])
            binds, own = [False, *known[: len(pairs)], False], known[len(pairs) :]
            loose = [not (binds[i] or binds[i + 1] or own[i]) for i in range(len(run))]
            new = [not seen[i] and loose[i] and loose[i + 1] for i in range(len(pairs))]
            new_words |= {run[start : end + 1]: None for start, end in _stretches(new)}
        return list(new_words)

    def union(self, other: SeenWords) -> SeenWords:
        """Return the words of both; they know pairs of Chinese characters if both do."""
        words = np.union1d(self.hashes, other.hashes)
        if self._knows_pairs == other._knows_pairs:
            return SeenWords(words)
        return SeenWords(np.setdiff1d(words, _hashes([BINDS])))

    def write(self, path: Path) -> None:
        """Write a file of little-endian integers of 32 bits, ascending.

        Raises:
            OSError: The file cannot be written.
        """
        path.write_bytes(self.to_bytes())

    def to_bytes(self) -> bytes:
        """Return the contents of a file of ``write``."""
        return self.hashes.astype(_DTYPE).tobytes()

    @classmethod
    def read(cls, path: Path) -> SeenWords:
        """Read a file of ``write``.

        Raises:
            BundleError: The file is damaged.
        """
        raw = path.read_bytes()
        hashes = np.frombuffer(raw[: len(raw) // _BYTES * _BYTES], _DTYPE).astype(np.uint32)
        if len(raw) % _BYTES or (hashes[1:] <= hashes[:-1]).any():
            raise BundleError(f"{path}: not a list of the training text's words; copy it again or use another bundle")
        return cls(hashes)


def learn(store: Store, tokenizer: Tokenizer) -> SeenWords:
    """Return the words of the sources that an epoch of a store may draw, as the model reads them.

    Args:
        tokenizer: Tokenizer of the sources.
    """
    drawn = np.flatnonzero(store.drawn())
    chunks = (drawn[start : start + CHUNK].tolist() for start in range(0, len(drawn), CHUNK))
    return of_ids(([store.pair(i)[0].tolist() for i in chunk] for chunk in chunks), tokenizer)


def of_ids(chunks: Iterable[Sequence[Sequence[int]]], tokenizer: Tokenizer) -> SeenWords:
    """Return the words of encoded texts, which come in chunks."""
    hashes, pairs = np.zeros(0, np.uint32), _Pairs()
    for rows in chunks:
        text = "\n".join(tokenizer.decode(rows))
        hashes = np.union1d(hashes, _hashes(set(words_of(text))))
        if HAN_RUN.search(text):
            pairs.add(compose(text))
    return SeenWords(np.union1d(hashes, _hashes(pairs.words())))


class _Pairs:
    """Counts of Chinese characters and of pairs of neighbours, as integers: of a pair the code points of both."""

    def __init__(self) -> None:
        self._keys, self._counts = np.zeros(0, np.int64), np.zeros(0, np.int64)
        self._added: list[NDArray[np.int64]] = []
        self._sample: list[NDArray[np.int64]] = []
        self._n_added = self._n_sample = 0

    def add(self, text: str) -> None:
        """Count those of a text."""
        runs = "\n".join(HAN_RUN.findall(text)) + "\n"
        codes = np.frombuffer(runs.encode("utf-32-le"), "<u4").astype(np.int64)
        if self._n_sample < SAMPLE:
            self._sample.append(codes)
            self._n_sample += len(codes)
        self._added.append(codes[:-1] << 32 | codes[1:])
        self._n_added += len(codes)
        if self._n_added > SAMPLE:
            self._merge()

    def _merge(self) -> None:
        keys, places = np.unique(np.concatenate([self._keys, *self._added]), return_inverse=True)
        weights = np.concatenate([self._counts, *(np.ones(len(added), np.int64) for added in self._added)])
        self._keys, self._counts = keys, np.bincount(places, weights, len(keys)).astype(np.int64)
        self._added, self._n_added = [], 0

    def words(self) -> list[str]:
        """Return the pairs, and what ``BINDS`` stands before; nothing without Chinese text."""
        if not self._n_sample:
            return []
        self._merge()
        left, right = self._keys >> 32, self._keys & 0xFFFF_FFFF
        characters, places = np.unique(left, return_inverse=True)
        totals = np.bincount(
            places, self._counts
        )  # float; each character is the left one of a pair, if with a line's end
        is_pair = (left != ord("\n")) & (right != ord("\n"))
        keys, counts = self._keys[is_pair], self._counts[is_pair]
        of_left, of_right = (totals[np.searchsorted(characters, side[is_pair])] for side in (left, right))
        by_chance = of_left * of_right / totals[characters != ord("\n")].sum()
        binding = keys[(counts >= LEAST_PAIRS) & (counts >= TIMES_CHANCE * by_chance)]
        marked = [*map(_pair, binding.tolist()), *map(chr, self._own_words(binding)), ""]
        return [*map(_pair, keys.tolist()), *(BINDS + word for word in marked)]

    def _own_words(self, binding: NDArray[np.int64]) -> list[int]:
        """Return the code points of characters that are words of their own, in the sample."""
        codes = np.concatenate(self._sample)
        binds = np.isin(codes[:-1] << 32 | codes[1:], binding)
        is_free = ~(np.append(binds, False) | np.append(False, binds))
        characters, places = np.unique(codes, return_inverse=True)
        counts, free = np.bincount(places), np.bincount(places, is_free)
        own = characters[(counts >= LEAST_FREE) & (free >= FREE_SHARE * counts) & (characters != ord("\n"))]
        return own.tolist()


def _pair(key: int) -> str:
    return chr(key >> 32) + chr(key & 0xFFFF_FFFF)


def _stretches(marks: Sequence[bool]) -> list[tuple[int, int]]:
    """Return start and end of each stretch of marks."""
    edges = np.flatnonzero(np.diff([False, *marks, False])).tolist()
    return list(zip(edges[::2], edges[1::2], strict=True))


def _hashes(words: Iterable[str]) -> Hashes:
    """Return the hash of each word, in any case."""
    digests = (blake2b(word.casefold().encode("utf-8", "surrogatepass"), digest_size=_BYTES).digest() for word in words)
    return np.frombuffer(b"".join(digests), _DTYPE).astype(np.uint32)
