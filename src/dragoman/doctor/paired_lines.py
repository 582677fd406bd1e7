"""Read the sentence pairs of a text in chunks, and draw a sample of them.

Tables and translation memories are read by the rules of training. Two files are read even where their bytes are not
valid text; such bytes are counted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from dragoman.config import PairOfFiles, TextFiles
from dragoman.data.compression import refuse_a_pipe
from dragoman.data.corpus import BOM_BYTES, Line, open_corpus, read_lines_leniently
from dragoman.data.texts import read_one
from dragoman.doctor.findings import Tally
from dragoman.languages.stopwords import words_of

CHUNK_PAIRS = 5_000  # a chunk ends at so many pairs,
CHUNK_CHARACTERS = 2**20  # or at so many characters
SAMPLE_PAIRS = 40_000
SAMPLE_CHARACTERS = 600  # first characters of each side that the sample keeps

KIND_OF_PROBLEM = {"nul": "nul", "not_utf8": "not-utf8", "cut": "too-long-line"}
"""Kind of finding by the reader's name for a problem of a line; the byte order mark is checked here instead."""

Sides = tuple[list[str], list[str]]
"""Sources and targets, line by line."""


class Side:
    """One file, read line by line; lines with invalid or odd bytes are read too, and counted in ``tallies``."""

    def __init__(self, path: Path, tallies: dict[str, Tally] | None = None) -> None:
        refuse_a_pipe(path)  # it is read twice
        self.path, self.tallies = path, {} if tallies is None else tallies
        self.n_lines = 0
        self.raw = b""
        self._stream: BinaryIO

    def readline(self, size: int = -1) -> bytes:
        """Read a line as a binary stream does, and keep its bytes in ``raw``."""
        self.raw = self._stream.readline(size)
        return self.raw

    def __iter__(self) -> Iterator[str]:
        with open_corpus(self.path) as self._stream:
            lines = read_lines_leniently(_as_stream(self), str(self.path))
            for self.n_lines, line in enumerate(lines, start=1):
                self._check(line)
                yield line.text

    def _check(self, line: Line) -> None:
        """Count the problems that the bytes of a line show."""
        raw, number, text = self.raw, self.n_lines, line.text
        if number == 1 and raw.startswith(BOM_BYTES):
            self._add("byte-order-mark", "")
        if raw.endswith(b"\r\n"):
            self._add("carriage-return", text)
        for problem in line.problems:
            if name := KIND_OF_PROBLEM.get(problem):
                self._add(name, text)

    def _add(self, name: str, text: str) -> None:
        self.tallies.setdefault(name, Tally()).add(self.n_lines, f"{self.path.name}: {text[:200]}")


def _as_stream(side: Any) -> BinaryIO:
    """Return the side typed as a stream: ``readline`` is the only method that the line reader calls."""
    return side


class Pairs:
    """The pairs of a text; iterating reads them. The shorter of two files gives None where it has ended.

    Args:
        text: Two files, a table or a translation memory.
        tallies: Counts by kind, to which problems with the bytes of two files are added.

    Raises:
        DataError: A file is a pipe.
    """

    def __init__(self, text: TextFiles, tallies: dict[str, Tally] | None = None) -> None:
        self.text = text
        self._sides: tuple[Side, Side] | None = None
        if isinstance(text, PairOfFiles):
            self._sides = Side(text.src, tallies), Side(text.tgt, tallies)
        else:
            refuse_a_pipe(text.file)
        self._n = 0

    @property
    def n_lines(self) -> tuple[int, int]:
        """Number of source and target lines read so far; they differ only in two files."""
        return (self._n, self._n) if self._sides is None else (self._sides[0].n_lines, self._sides[1].n_lines)

    def __iter__(self) -> Iterator[tuple[str | None, str | None]]:
        if self._sides is not None:
            yield from zip_longest(*self._sides)
            return
        self._n = 0
        for pair in read_one(self.text):
            self._n += 1
            yield pair


def chunks(pairs: Pairs) -> Iterator[tuple[list[str], list[str]]]:
    """Yield the pairs of a text in chunks of bounded size; surplus lines of a longer file are only counted."""
    sides: tuple[list[str], list[str]] = [], []
    size = 0
    for src, tgt in pairs:
        if src is None or tgt is None:
            continue
        sides[0].append(src)
        sides[1].append(tgt)
        size += len(src) + len(tgt)
        if len(sides[0]) >= CHUNK_PAIRS or size >= CHUNK_CHARACTERS:
            yield sides
            sides, size = ([], []), 0
    if sides[0]:
        yield sides


def chunks_with_context(text: TextFiles, reach: int) -> Iterator[tuple[Sides, Sides, Sides]]:
    """Yield the ``reach`` pairs before each chunk, the chunk, and the ``reach`` pairs after it."""
    before: Sides = ([], [])
    chunk: Sides | None = None
    for following in chunks(Pairs(text)):
        if chunk is not None:
            yield before, chunk, (following[0][:reach], following[1][:reach])
            before = chunk[0][-reach:], chunk[1][-reach:]
        chunk = following
    if chunk is not None:
        yield before, chunk, ([], [])


class Sample:
    """A uniform sample of a stream of pairs of unknown length (Vitter's algorithm R, https://doi.org/10.1145/3147.3165)."""

    def __init__(self, seed: int = 1) -> None:
        self._pairs: list[tuple[int, str, str]] = []
        self._rng = np.random.default_rng(seed)
        self._seen = 0

    def add(self, src: Sequence[str], tgt: Sequence[str]) -> None:
        """Let each pair of a chunk enter the sample by chance, in place of an earlier one once the sample is full."""
        numbers = np.arange(self._seen, self._seen + len(src))
        places = self._rng.integers(0, numbers + 1)
        self._seen += len(src)
        for row, place, number in zip(range(len(src)), places.tolist(), numbers.tolist(), strict=True):
            pair = number, src[row][:SAMPLE_CHARACTERS], tgt[row][:SAMPLE_CHARACTERS]
            if len(self._pairs) < SAMPLE_PAIRS:
                self._pairs.append(pair)
            elif place < SAMPLE_PAIRS:
                self._pairs[place] = pair

    def sides(self) -> tuple[list[str], list[str], list[list[str]], list[list[str]]]:
        """Return the sources, the targets, and the words of both, without blank lines.

        The order is random, so that neighbours in the sample are unrelated lines of the corpus.
        """
        order = np.random.default_rng(2).permutation(len(self._pairs))
        drawn = (self._pairs[i] for i in order.tolist())
        pairs = [(src, tgt) for _, src, tgt in drawn if src.strip() and tgt.strip()]
        src, tgt = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
        return src, tgt, [words_of(text) for text in src], [words_of(text) for text in tgt]
