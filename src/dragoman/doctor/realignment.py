"""Put the lines of two files side by side again: first by the look of their lines, then by word translations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dragoman.config import TextFiles
from dragoman.doctor.alignment import CLIP, Lexicon
from dragoman.doctor.paired_lines import Reading
from dragoman.doctor.second_pass import MOST_CONTEXT, MOST_EVIDENCE, block_offsets, scores_at
from dragoman.doctor.shifts import BLOCK, Scores, Segment, along, by_lengths

ROUNDS = 2
"""Times that the lines are put side by side and word translations are learned again."""

N_BLOCKS = 40
"""Blocks of lines that are compared with lines far away; bounds the time that large files take."""

REACH = 80
"""Lines up to which a partner is looked for, more where the files differ more in length."""

CLEARLY_BETTER = 60.0
"""Nats by which a block must fit better at another offset."""

BY_CHANCE = 1.5 * MOST_EVIDENCE
"""Nats, times the root of the number of pairs, up to which pairs side by side may agree by chance.

It is three standard deviations: the score of a pair differs by up to half of ``MOST_EVIDENCE`` from the mean.
"""

BY_LEARNING = 3.0
"""Nats that wrong pairs may have each because word translations were learned from them; right ones have ten or so."""

MOST_OFFSETS = 16


class Gap(NamedTuple):
    """Lines of one side without a partner."""

    side: int  # 0 source, 1 target
    first: int  # from 1
    last: int
    before: int  # the line of the other side, from 1, before which there is nothing for them


def by_surface(src: NDArray[np.uint32], tgt: NDArray[np.uint32]) -> tuple[Segment, ...]:
    """Return the segments that the look of the lines shows; none where every line is in place.

    Args:
        src, tgt: Tables of ``shifts.Surface``.
    """
    segments = by_lengths(src, tgt)
    return tuple(segments) if len(segments) > 1 or segments[0].offset else ()


def by_words(
    corpus: TextFiles, reading: Reading, lexicon: Lexicon, scores: NDArray[np.float32], n_lines: tuple[int, int]
) -> tuple[Segment, ...]:
    """Return the segments that word translations show; none where every line is in place.

    Args:
        corpus, reading: The text, and how it was read.
        lexicon: Word translations learned from it.
        scores: The score of each pair.
        n_lines: Lines of source and target.
    """
    n_src, n_tgt = n_lines
    weak = weak_blocks(scores, lexicon.median_score)
    if not weak and not reading.segments and n_src == n_tgt:
        return ()
    reach = min(max(REACH, 2 * abs(n_tgt - n_src) + 10), MOST_CONTEXT)
    starts = sorted({reading.line(block * BLOCK) - 1 for block in _spread_over(weak, N_BLOCKS)})
    votes: dict[int, float] = {}
    for offset, gain in block_offsets(corpus, reading, lexicon, starts, reach):
        if gain > CLEARLY_BETTER:
            votes[offset] = votes.get(offset, 0.0) + gain
    likely = sorted(votes, key=votes.__getitem__, reverse=True)[:MOST_OFFSETS]
    offsets = sorted({0, n_tgt - n_src, *likely, *(segment.offset for segment in reading.segments)}, key=abs)
    if offsets == [0]:
        return ()
    table = np.clip(scores_at(corpus, reading, lexicon, offsets, n_src), -CLIP, MOST_EVIDENCE)
    columns = dict(zip(offsets, table.T, strict=True))

    def evidence(offset: int, first: int, last: int) -> NDArray[np.floating[Any]]:
        if offset in columns:
            return columns[offset][first:last].astype(np.float64)
        return np.full(last - first, -2 * CLIP)  # worse than any pair

    while True:
        segments = along([*columns], n_src, n_tgt, evidence)
        by_chance = _by_chance(segments, evidence, {segment.offset for segment in reading.segments}) & columns.keys()
        if not by_chance:
            return tuple(segments) if len(segments) > 1 or segments[0].offset else ()
        for offset in by_chance:
            del columns[offset]


def _by_chance(segments: Sequence[Segment], evidence: Scores, learned: set[int]) -> set[int]:
    """Return the offsets, but 0, at which the words of all pairs together do not clearly agree better than chance.

    Args:
        segments: Segments that may hold by chance.
        evidence: The evidence of lines at an offset.
        learned: Offsets at which the text was read when the word translations were learned.
    """
    scores: dict[int, list[NDArray[np.floating[Any]]]] = {}
    for segment in segments:
        if segment.offset and segment.n:
            scores.setdefault(segment.offset, []).append(evidence(segment.offset, segment.src, segment.src + segment.n))
    pairs = {offset: np.concatenate(parts) for offset, parts in scores.items()}
    return {
        offset
        for offset, each in pairs.items()
        if each.sum() < BY_CHANCE * len(each) ** 0.5 or (offset in learned and each.mean() < BY_LEARNING)
    }


def weak_blocks(scores: NDArray[np.float32], median: float) -> list[int]:
    """Return the numbers of the blocks whose pairs score far below the median, from 0."""
    clipped = np.clip(scores, -CLIP, max(median, CLIP))
    means = [float(clipped[start : start + BLOCK].mean()) for start in range(0, len(scores) - BLOCK // 2, BLOCK)]
    return [block for block, mean in enumerate(means) if mean < 0.5 * max(median, 2.0)]


def _spread_over(blocks: Sequence[int], n: int) -> list[int]:
    """Return up to ``n`` of the blocks, spread evenly."""
    if len(blocks) <= n:
        return list(blocks)
    return [blocks[i] for i in np.linspace(0, len(blocks) - 1, n).round().astype(int).tolist()]


def gaps(segments: Sequence[Segment], n_lines: tuple[int, int]) -> list[Gap]:
    """Return the lines between segments, before the first one and behind the last one."""
    if not segments:
        return []
    result, src, tgt = [], 0, 0
    for segment in (*segments, Segment(n_lines[0], n_lines[1], 0)):
        if segment.src > src:
            result.append(Gap(0, src + 1, segment.src, tgt + 1))
        if segment.tgt > tgt:
            result.append(Gap(1, tgt + 1, segment.tgt, src + 1))
        src, tgt = segment.src + segment.n, segment.tgt + segment.n
    return result


def in_words(gap: Gap, files: tuple[str, str]) -> str:
    """Return what a gap means, in words."""
    n = gap.last - gap.first + 1
    lines = "one line" if n == 1 else f"{n:,} lines"
    return f"{lines} too many here, or missing in {files[1 - gap.side]} before line {gap.before}"
