"""Words of the sources that a model was trained on, kept as hashes: they tell which words it never saw.

    seen = learn(store, src_tokenizer)
    seen.unseen("Der Quetzal frisst.")    # ["Quetzal"]

A vocabulary of subwords cannot tell: nearly every word consists of known pieces, also one whose pieces never stood
together. A word is a run of letters and their marks, without regard to case; in scripts without spaces every character
is one. A hash has 32 bits, so of N words one that never occurred passes for one that did with a chance of N / 2^32:
one in 4,000 for a million words. A word that occurred is never reported.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dragoman.data.store import Store
from dragoman.data.tokenizer import Tokenizer
from dragoman.errors import BundleError
from dragoman.languages.composition import compose
from dragoman.languages.words import CLUSTER_OF_WORD, LETTERS, kinds

FILE = "words.hashes"

CHUNK = 4096
"""Number of sources that are decoded together."""

_WORD = re.compile(rf"{LETTERS}|{CLUSTER_OF_WORD}")
"""Pattern, on ``kinds``, of a word of letters, or of a character of a script without spaces."""

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
        first: dict[str, str] = {}
        for word in words_of(text):
            first.setdefault(word.casefold(), word)
        words = list(first.values())
        if not len(self.hashes):
            return words
        own = _hashes(words)
        places = np.searchsorted(self.hashes, own).clip(max=len(self.hashes) - 1)
        return [words[i] for i in np.flatnonzero(self.hashes[places] != own)]

    def union(self, other: SeenWords) -> SeenWords:
        """Return the words of both."""
        return SeenWords(np.union1d(self.hashes, other.hashes))

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
    """Return the words of the sources in a store, as the model reads them.

    Args:
        tokenizer: Tokenizer of the sources.
    """
    starts = range(0, len(store), CHUNK)
    return of_ids(
        ([store.pair(i)[0].tolist() for i in range(n, min(n + CHUNK, len(store)))] for n in starts), tokenizer
    )


def of_ids(chunks: Iterable[Sequence[Sequence[int]]], tokenizer: Tokenizer) -> SeenWords:
    """Return the words of encoded texts, which come in chunks."""
    hashes = np.zeros(0, np.uint32)
    for rows in chunks:
        hashes = np.union1d(hashes, _hashes(set(words_of("\n".join(tokenizer.decode(rows))))))
    return SeenWords(hashes)


def _hashes(words: Iterable[str]) -> Hashes:
    """Return the hash of each word, in any case."""
    digests = (blake2b(word.casefold().encode("utf-8", "surrogatepass"), digest_size=_BYTES).digest() for word in words)
    return np.frombuffer(b"".join(digests), _DTYPE).astype(np.uint32)
