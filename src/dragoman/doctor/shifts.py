"""Find where two files run apart: lines that are missing on one side, or too many, by lengths, numbers and marks.

    segments = by_lengths(src_marks, tgt_marks)
    segments    # [Segment(src=0, tgt=0, n=1500), Segment(src=1500, tgt=1501, n=1499)]: target line 1501 has no partner

Long lines have long translations. The lengths of a hundred lines tell at which offset the other side goes on, in any
language. Blocks of lines vote for all offsets nearby, and for those far away at which the files as a whole agree most.
Viterbi's algorithm chooses an offset for each block. Where it changes, the line is found by the evidence of each line
before and after: first that of lengths, later that of word translations.
"""

from __future__ import annotations

import re
import zlib
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dragoman.doctor.alignment import last_mark

Floats = NDArray[np.floating[Any]]
Ints = NDArray[np.integer[Any]]

BLOCK = 24  # lines that vote together
REACH = 120  # offsets from -REACH to REACH are tried, more where the files differ more in length
MOST_REACH = 800
N_FAR = 64  # offsets of any size that are tried besides, by lengths and by numbers each
CLEAR = 6.0  # standard deviations of chance by which the files must agree at such an offset
SWITCH = 14.0  # nats that a change of offset costs
CLIP = 4.0  # largest evidence in nats that the surface of one line can give
N_OFFSETS = 40  # offsets that are compared in detail
LEAST_LINES = 60
LEAST_CORRELATION = 0.25  # below, lengths say nothing

_DIGITS = re.compile(r"\d+")


Scores = Callable[[int, int, int], Floats]
"""The evidence of the source lines from one number to another at an offset: ``scores(offset, first, last)``."""


class Segment(NamedTuple):
    """Lines that stand side by side once shifts are mended; numbers are from 0."""

    src: int  # first source line
    tgt: int  # first target line
    n: int

    @property
    def offset(self) -> int:
        """Number of lines that a target line stands further down than its source."""
        return self.tgt - self.src


class Surface:
    """The look of each line of one side: its length, its numbers and its last mark."""

    def __init__(self) -> None:
        self._parts: list[NDArray[np.uint32]] = []

    def add(self, lines: Sequence[str]) -> None:
        """Add the next lines."""
        rows = np.empty((len(lines), 3), np.uint32)
        for i, line in enumerate(lines):
            numbers = 0
            if any(map(str.isdigit, line)):
                numbers = sum(zlib.crc32(number.encode()) for number in _DIGITS.findall(line)) & 0xFFFFFFFF or 1
            rows[i] = min(len(line), 2**32 - 1), numbers, last_mark(line)
        self._parts.append(rows)

    def table(self) -> NDArray[np.uint32]:
        """Return the length, a checksum of the numbers (0: none) and the kind of the last mark, ``(lines, 3)``."""
        return np.concatenate(self._parts) if self._parts else np.zeros((0, 3), np.uint32)


def partner(segments: Sequence[Segment], src_line: int) -> int | None:
    """Return the number of the target line that belongs to a source line, from 0; None if there is none."""
    i = bisect_right(segments, src_line, key=lambda segment: segment.src) - 1
    if i < 0 or src_line >= segments[i].src + segments[i].n:
        return None
    return src_line + segments[i].offset


class _Evidence:
    """The evidence that source line i and target line j are a pair, by the look of both, in nats."""

    def __init__(self, src: NDArray[np.uint32], tgt: NDArray[np.uint32]) -> None:
        self.src, self.tgt = src, tgt
        self.z = tuple(_standardised(side[:, 0]) for side in (src, tgt))
        self.correlation = 0.0
        self.marked = all((side[:, 2] > 1).mean() < 0.5 for side in (src, tgt))

    def at(self, offset: int, first: int = 0, last: int | None = None) -> Floats:
        """Return the evidence of source lines ``first`` to ``last - 1`` at an offset; -CLIP without a partner."""
        last = len(self.src) if last is None else last
        begin = min(max(first, -offset), last)
        end = max(begin, min(last, len(self.tgt) - offset))
        scores = np.full(last - first, -CLIP)
        scores[begin - first : end - first] = self._of(slice(begin, end), slice(begin + offset, end + offset))
        return scores

    def _of(self, i: slice, j: slice) -> Floats:
        """Return the evidence for pairs of lines, ``(n,)``."""
        r = self.correlation
        a, b = self.z[0][i], self.z[1][j]
        gain = -0.5 * np.log(1 - r * r) - ((b - r * a) ** 2 / (1 - r * r) - b * b) / 2
        numbers = self.src[i, 1], self.tgt[j, 1]
        gain += np.where((numbers[0] == 0) & (numbers[1] == 0), 0.0, np.where(numbers[0] == numbers[1], 2.5, -1.0))
        if self.marked:
            asks = self.src[i, 2] > 1, self.tgt[j, 2] > 1
            gain += np.where(asks[0] == asks[1], np.where(asks[0], 1.0, 0.1), -1.0)
        return np.clip(gain, -CLIP, CLIP)


def _standardised(lengths: Ints) -> Floats:
    values = np.log1p(lengths.astype(np.float64))
    low, centre, high = np.quantile(values, (0.16, 0.5, 0.84))
    return np.clip((values - centre) / max((high - low) / 2, 0.05), -3, 3)


def by_lengths(src: NDArray[np.uint32], tgt: NDArray[np.uint32]) -> list[Segment]:
    """Return the segments of two files by the look of their lines; one from the first lines on where nothing is amiss.

    Args:
        src, tgt: Tables of ``Surface``.
    """
    whole = [Segment(0, 0, min(len(src), len(tgt)))]
    if min(len(src), len(tgt)) < LEAST_LINES:
        return whole
    evidence = _Evidence(src, tgt)
    reach = min(max(REACH, 2 * abs(len(src) - len(tgt))), MOST_REACH, len(src) - 1)
    offsets = _candidates(evidence, reach)
    if offsets == [0] and len(src) == len(tgt):
        return whole
    return along(offsets, len(src), len(tgt), evidence.at)


def along(offsets: Sequence[int], n_src: int, n_tgt: int, scores: Scores, near: int = 3 * BLOCK) -> list[Segment]:
    """Return the most likely segments of two files.

    Args:
        offsets: Offsets that may occur; 0 is one.
        n_src, n_tgt: Number of lines of each side.
        scores: The evidence of lines at an offset.
        near: Lines around each change of offset among which its place is looked for.
    """
    path = _path(scores, offsets, n_src, n_tgt)
    changes = _changes(path, n_tgt - n_src)
    return _segments(changes, n_src, n_tgt, scores, near)


def _blocks(values: Floats) -> Floats:
    """Return the sums of blocks of ``BLOCK`` lines; the last block may be shorter."""
    return np.add.reduceat(values, np.arange(0, len(values), BLOCK))


def _candidates(evidence: _Evidence, reach: int) -> list[int]:
    """Return the offsets that are the best of several blocks, 0 among them, and set the correlation of lengths.

    Only 0 is returned where lengths agree everywhere at 0, or say nothing.
    """
    n = len(evidence.src)
    evidence.correlation = max(0.3, min(_correlation(evidence, 0), 0.95))
    smooth = np.ones(3)
    at_zero = np.convolve(_blocks(evidence.at(0)), smooth, "same")
    if (at_zero > 0).mean() > 0.98 and not _is_low_at_ends(at_zero) and abs(len(evidence.tgt) - n) == 0:
        return [0]
    far = _far_offsets(evidence)
    likely = {0, len(evidence.tgt) - n, *far}
    # Of a file with many shifts no offset has all lines; a part of them tells the correlation of true pairs.
    parts = [slice(start, start + 8 * BLOCK) for start in range(0, max(1, n - 8 * BLOCK), max(8 * BLOCK, n // 16))]
    tops = [
        max(_correlation(evidence, offset, part) for offset in likely.union(_spread(min(reach, 150)))) for part in parts
    ]
    strength = float(np.median(tops))
    if strength < LEAST_CORRELATION:
        return [0]
    evidence.correlation = max(0.3, min(strength, 0.95))
    offsets = np.array(sorted(likely.union(_spread(reach)), key=abs))
    numbers, most = winners(np.convolve(_blocks(evidence.at(int(offset))), smooth, "same") for offset in offsets)
    counts = np.bincount(numbers[most > SWITCH / 2], minlength=len(offsets))
    chosen = [int(offsets[k]) for k in np.argsort(-counts, kind="stable")[:N_OFFSETS] if counts[k] >= 2]
    return sorted({0, *chosen}, key=abs)


def _far_offsets(evidence: _Evidence) -> list[int]:
    """Return the offsets, however far, at which most lines agree in their lengths, or in their numbers.

    The sum of products at every offset is a convolution, which takes the Fourier transforms of both sides. Lengths
    count by how they differ from those around: a long chapter beside a long chapter says little. Each number is a
    random value, so that only equal ones add up. At nearly all offsets the lines agree by chance alone, which tells how
    much that is.
    """
    n_src, n_tgt = len(evidence.src), len(evidence.tgt)
    step = 1 << max((n_src + n_tgt).bit_length() - 4, 0)
    size = -(-(n_src + n_tgt) // step) * step  # 8 to 16 times a power of two: fast, and little larger than needed
    around = np.ones(BLOCK) / BLOCK
    lengths = (z - np.convolve(z, around, "same") for z in evidence.z)
    numbers = (_as_random(side[:, 1]) for side in (evidence.src, evidence.tgt))
    offsets: list[int] = []
    for sides in (lengths, numbers):
        src, tgt = (np.fft.rfft(values, size) for values in sides)
        tgt *= np.conj(src, out=src)
        agreement = np.fft.irfft(tgt, size)
        best = np.argpartition(agreement, -N_FAR)[-N_FAR:]
        best = best[agreement[best] > CLEAR * max(float(agreement.std()), 1.0)]  # nor do a few equal numbers tell it
        offsets += np.where(best < n_tgt, best, best - size).tolist()
    return [offset for offset in offsets if -n_src < offset < n_tgt]


def _as_random(numbers: Ints) -> Floats:
    """Return a random value for each number, 0 for none; the more lines have a number, the less each of them counts."""
    _, place, count = np.unique(numbers, return_inverse=True, return_counts=True)
    values: Floats = np.sin(numbers.astype(np.float64)) / np.sqrt(count[place])
    return values


def winners(votes: Iterable[Floats]) -> tuple[Ints, Floats]:
    """Return for each block the number of the offset with the most votes, the first of equal ones, and its votes.

    Args:
        votes: For each offset the votes of all blocks. One at a time is read: together they may be a thousand bytes a
            line.
    """
    votes = iter(votes)
    most = next(votes).copy()
    best = np.zeros(len(most), np.intp)
    for number, row in enumerate(votes, start=1):
        is_better = row > most
        best[is_better], most[is_better] = number, row[is_better]
    return best, most


def _spread(reach: int) -> list[int]:
    """Return the offsets from ``-reach`` to ``reach``, the nearest first."""
    return sorted(range(-reach, reach + 1), key=abs)


def _is_low_at_ends(sums: Floats) -> bool:
    return bool((sums[:2] < 0).all() or (sums[-2:] < 0).all())


def _correlation(evidence: _Evidence, offset: int, part: slice = slice(None)) -> float:
    """Return the correlation of the lengths of both sides at an offset, in a part of the source lines."""
    i = np.arange(len(evidence.src))[part]
    i = i[(i + offset >= 0) & (i + offset < len(evidence.tgt))]
    if len(i) < LEAST_LINES:
        return 0.0
    a, b = evidence.z[0][i], evidence.z[1][i + offset]
    spread = float(a.std() * b.std())
    return float(((a - a.mean()) * (b - b.mean())).mean() / spread) if spread else 0.0


def _path(scores: Scores, offsets: Sequence[int], n_src: int, n_tgt: int) -> list[int]:
    """Return the most likely offset of each block by Viterbi's algorithm; before the first one it is 0.

    Where an offset becomes smaller, as many source lines have no partner. They count as bad pairs do: no path goes
    through them to a third offset that some of them fit by chance, and no bad pairs are skipped to be rid of them.
    """
    gains = np.stack([_blocks(scores(offset, 0, n_src)) for offset in offsets], 1)  # (blocks, offsets)
    n, n_offsets = gains.shape
    places = np.add.outer(np.arange(n) * BLOCK, offsets)
    inside = (places < n_tgt) & (places > -BLOCK)
    of_bad_pairs = np.where(inside, np.minimum(gains, 0), 0).sum(1) / np.maximum(inside.sum(1), 1)
    losses = np.concatenate(([0.0], np.cumsum(of_bad_pairs)))
    fall = np.subtract.outer(offsets, offsets)  # (offset before, offset after)
    skipped = np.maximum(fall, 0) // BLOCK
    cost = np.where(fall == 0, 0.0, SWITCH)
    column = np.arange(n_offsets)
    totals = np.full((n + 1, n_offsets), -np.inf)  # best sum of the first blocks, by the offset of the last
    totals[0, offsets.index(0)] = 0.0
    came_from = np.zeros((n, n_offsets), np.min_scalar_type(-n_offsets))
    for i in range(n):
        row = np.maximum(i - skipped, -1)  # a row below 0 has no path, however far below
        before = np.where(row < 0, -np.inf, totals[row, column[:, None]] + losses[i] - losses[row] - cost)
        came_from[i] = np.where(before.diagonal() >= before.max(0), column, before.argmax(0))
        totals[i + 1] = before[came_from[i], column] + gains[i]
    path = [0] * n
    last, i = int(totals[n].argmax()), n - 1
    while i >= 0:
        previous = int(came_from[i, last])
        n_blocks = 1 + int(skipped[previous, last])
        path[i + 1 - n_blocks : i + 1] = [offsets[last]] * n_blocks
        last, i = previous, i - n_blocks
    return path


class _Change(NamedTuple):
    """A change of offset, and about which source line it is."""

    about: int
    before: int
    after: int


def _changes(path: list[int], at_end: int) -> list[_Change]:
    """Return the changes of offset along the blocks, from 0 before the first line to ``at_end`` behind the last."""
    changes, offset = [], 0
    for block, new in enumerate(path):
        if new != offset:
            changes.append(_Change(block * BLOCK, offset, new))
            offset = new
    if offset != at_end and abs(at_end - offset) <= MOST_REACH:
        changes.append(_Change(len(path) * BLOCK, offset, at_end))
    return changes


def _segments(changes: Sequence[_Change], n_src: int, n_tgt: int, scores: Scores, near: int) -> list[Segment]:
    """Return the segments between changes of offset, each of which is put where the evidence is greatest.

    Args:
        changes: Changes in ascending order.
        n_src, n_tgt: Number of lines of each side.
        scores: The evidence of lines at an offset.
        near: Lines around each change among which it is looked for.
    """
    segments: list[Segment] = []
    start, offset = 0, 0
    for k, change in enumerate(changes):
        following = changes[k + 1].about if k + 1 < len(changes) else n_src
        first = max(start, change.about - near)
        skipped = max(0, change.before - change.after)
        last = min(n_src, change.about + near, max(following - skipped, change.about + 1))
        cut = first + best_cut(change, first, last, n_src, scores)
        if cut > start:
            segments.append(Segment(start, start + change.before, cut - start))
        start, offset = cut + skipped, change.after
    n = min(n_src - start, n_tgt - start - offset)
    if n > 0:
        segments.append(Segment(start, start + offset, n))
    inside = [part for segment in segments if (part := _inside(segment, n_src, n_tgt)).n > 0]
    return inside or [Segment(0, 0, min(n_src, n_tgt))]


def _inside(segment: Segment, n_src: int, n_tgt: int) -> Segment:
    """Return the part of a segment whose lines exist on both sides."""
    skip = max(0, -segment.tgt)
    n = min(segment.n - skip, n_src - segment.src - skip, n_tgt - segment.tgt - skip)
    return Segment(segment.src + skip, segment.tgt + skip, max(n, 0))


def best_cut(change: _Change, first: int, last: int, n_src: int, scores: Scores) -> int:
    """Return after how many of the source lines ``first`` to ``last - 1`` the offset changes.

    Where the source has lines too many, those have no partner, and the new offset holds behind them.
    """
    skipped = max(0, change.before - change.after)
    total = np.concatenate(([0.0], np.cumsum(scores(change.before, first, last))))
    after = scores(change.after, min(first + skipped, n_src), min(last + skipped, n_src))
    total[: len(after)] += np.cumsum(after[::-1])[::-1]
    # Of cuts that are equally good the first is taken.
    return int(np.flatnonzero(total >= total.max() - 1e-9)[0])


def with_runs(segments: Sequence[Segment], runs: Sequence[tuple[int, int, int]]) -> list[Segment]:
    """Return segments in which short runs of pairs have the partners that fit them.

    Args:
        segments: Segments, whose pairs are numbered from 0 throughout.
        runs: First pair, last pair, and how many pairs further on their targets are; in ascending order.
    """
    cuts: list[tuple[int, int, int]] = []  # first source pair, first target pair, number
    n_pairs = sum(segment.n for segment in segments)
    src = tgt = 0
    for first, last, offset in runs:
        first = max(first, src, tgt - offset)
        last = min(last, n_pairs - 1 - max(offset, 0))
        if last < first:
            continue
        start = max(src, tgt)
        end = first if offset > 0 else first + offset
        if end > start:
            cuts.append((start, start, end - start))
        cuts.append((first, first + offset, last - first + 1))
        src, tgt = last + 1, last + 1 + offset
    start = max(src, tgt)
    if n_pairs > start:
        cuts.append((start, start, n_pairs - start))
    return [part for cut in cuts for part in _in_lines(segments, *cut)]


def _in_lines(segments: Sequence[Segment], src: int, tgt: int, n: int) -> list[Segment]:
    """Return pairs of pair numbers as segments of lines, cut where either side goes over to another segment."""
    parts: list[Segment] = []
    starts = np.cumsum([0, *(segment.n for segment in segments)])
    while n > 0:
        i, j = (int(np.searchsorted(starts, pair, "right")) - 1 for pair in (src, tgt))
        count = min(n, int(starts[i + 1]) - src, int(starts[j + 1]) - tgt)
        parts.append(Segment(segments[i].src + src - int(starts[i]), segments[j].tgt + tgt - int(starts[j]), count))
        src, tgt, n = src + count, tgt + count, n - count
    return parts
