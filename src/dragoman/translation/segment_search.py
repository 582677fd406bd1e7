"""Segments to results: the engine searches, and the guard looks at what it found."""

from __future__ import annotations

from collections.abc import Sequence

from dragoman.decoding.batches import OUT_OF_MEMORY
from dragoman.translation.guard import guard
from dragoman.translation.notes import QUIET, Events, Note
from dragoman.translation.plan import Plan
from dragoman.translation.segments import SegmentResult, TextSegment, texts_of


def translate_segments(segments: Sequence[TextSegment], plan: Plan, events: Events = QUIET) -> list[SegmentResult]:
    """Search for segments that are ready, and let the guard look at what was found: the way in for a server's batches.

    Args:
        segments: As ``segment`` makes them, of whichever texts.
        events: Of these ``progress`` and ``alive`` count; the latter is asked with a segment's ``owner``.
    """
    alive = events.alive
    wanted = None if alive is None else lambda i: alive(segments[i].owner)
    found = plan.engine.search([each.search for each in segments], plan.search, wanted, events.progress)
    texts = iter(texts_of([hypothesis for one in found.hypotheses for hypothesis in one], plan.tgt_tokenizer))
    results = [
        SegmentResult(tuple(one), tuple(next(texts) for _ in one), None if one else Note("dropped", "cancelled"))
        for one in found.hypotheses
    ]
    for i in found.out_of_memory:
        results[i] = SegmentResult(note=Note("memory", OUT_OF_MEMORY))
    return guard(results, segments, plan, wanted) if plan.options.guard and not plan.trees else results
