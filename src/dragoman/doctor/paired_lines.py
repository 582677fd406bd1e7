"""The pairs of a text, read as training reads them; of two files whatever they hold; and a sample of them."""

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

CHUNK_PAIRS = 5_000
CHUNK_CHARACTERS = 2**20
SAMPLE_PAIRS = 40_000
SAMPLE_CHARACTERS = 600  # of a side that the sample keeps; more teaches nothing

FINDINGS = {"nul": "nul", "not_utf8": "not-utf8", "cut": "too-long-line"}
"""Problems of a line that are findings, and what these are called; the byte order mark is looked for by itself."""

Sides = tuple[list[str], list[str]]


class Side:
    """Reads one file line by line, whatever it holds, and counts what is odd in its bytes."""

    def __init__(self, path: Path, tallies: dict[str, Tally] | None = None) -> None:
        refuse_a_pipe(path)  # the doctor reads twice
        self.path, self.tallies = path, {} if tallies is None else tallies
        self.n_lines = 0
        self.raw = b""
        self._stream: BinaryIO

    def readline(self, size: int = -1) -> bytes:
        """As a stream's; remembers the bytes."""
        self.raw = self._stream.readline(size)
        return self.raw

    def __iter__(self) -> Iterator[str]:
        with open_corpus(self.path) as self._stream:
            lines = read_lines_leniently(_as_stream(self), str(self.path))
            for self.n_lines, line in enumerate(lines, start=1):
                self._note(line)
                yield line.text

    def _note(self, line: Line) -> None:
        raw, number, text = self.raw, self.n_lines, line.text
        if number == 1 and raw.startswith(BOM_BYTES):
            self._add("byte-order-mark", "")
        if raw.endswith(b"\r\n"):
            self._add("carriage-return", text)
        for problem in line.problems:
            if name := FINDINGS.get(problem):
                self._add(name, text)

    def _add(self, name: str, text: str) -> None:
        self.tallies.setdefault(name, Tally()).add(self.n_lines, f"{self.path.name}: {text[:200]}")


def _as_stream(side: Any) -> BinaryIO:
    """``readline`` is all that reading lines needs of a stream."""
    return side


class Pairs:
    """Reads the pairs of a text: two files as ``Side`` does, a table or a memory by the rules of training.

    Args:
        text: What is read.
        tallies: What is odd in the bytes of two files is counted into them.

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
        """How many lines of source and target there were; they differ only in two files."""
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
    """The pairs of a text in pieces of bounded size; the rest of the longer file is only counted."""
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


def with_context(text: TextFiles, reach: int) -> Iterator[tuple[Sides, Sides, Sides]]:
    """Each chunk of pairs with the ``reach`` pairs before and after it."""
    before: Sides = ([], [])
    now: Sides | None = None
    for following in chunks(Pairs(text)):
        if now is not None:
            yield before, now, (following[0][:reach], following[1][:reach])
            before = now[0][-reach:], now[1][-reach:]
        now = following
    if now is not None:
        yield before, now, ([], [])


class Sample:
    """Pairs drawn evenly from a stream of unknown length (Vitter's algorithm R, https://doi.org/10.1145/3147.3165)."""

    def __init__(self) -> None:
        self._pairs: list[tuple[int, str, str]] = []
        self._chance = np.random.default_rng(1)
        self._seen = 0

    def add(self, src: Sequence[str], tgt: Sequence[str]) -> None:
        """Offer a chunk."""
        numbers = np.arange(self._seen, self._seen + len(src))
        places = self._chance.integers(0, numbers + 1)
        self._seen += len(src)
        for at, place, number in zip(range(len(src)), places.tolist(), numbers.tolist(), strict=True):
            pair = number, src[at][:SAMPLE_CHARACTERS], tgt[at][:SAMPLE_CHARACTERS]
            if len(self._pairs) < SAMPLE_PAIRS:
                self._pairs.append(pair)
            elif place < SAMPLE_PAIRS:
                self._pairs[place] = pair

    def sides(self) -> tuple[list[str], list[str], list[list[str]], list[list[str]]]:
        """Texts and words of both sides, blank pairs left out, in an order of their own: neighbours are strangers."""
        order = np.random.default_rng(2).permutation(len(self._pairs))
        kept = [self._pairs[i] for i in order.tolist()]
        src, tgt = (
            [p[1] for p in kept if p[1].strip() and p[2].strip()],
            [p[2] for p in kept if p[1].strip() and p[2].strip()],
        )
        return src, tgt, [words_of(text) for text in src], [words_of(text) for text in tgt]
