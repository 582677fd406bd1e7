"""Segments to results: the engine searches; then come what must arrive unchanged and what the guard has to say."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from dragoman.data.tokenizer import UNK_ID
from dragoman.decoding.batches import OUT_OF_MEMORY
from dragoman.toolkits.engine import Alive, Progress
from dragoman.translation.guard import guard
from dragoman.translation.keeping.carrying import put_in, search_without
from dragoman.translation.keeping.placing import place_terms
from dragoman.translation.notes import QUIET, Events, Note
from dragoman.translation.plan import Plan
from dragoman.translation.segments import SegmentResult, TextSegment, texts_of


def translate_segments(segments: Sequence[TextSegment], plan: Plan, events: Events = QUIET) -> list[SegmentResult]:
    """Search for segments that are ready, and look at what was found: the way in for a server's batches.

    What lacks something that must arrive unchanged is searched for again (``carrying``), then what has a fault
    (``guard``).

    Args:
        segments: As ``segment`` makes them, of whichever texts.
        events: Of these ``progress`` and ``alive`` count; the latter is asked with a segment's ``owner``.
    """

    def search(some: Sequence[TextSegment], progress: Progress | None = None) -> list[SegmentResult]:
        return _search(some, plan, replace(events, progress=progress)) if some else []

    results = search(segments, events.progress)
    if plan.trees:
        return results
    changed = search_without(results, segments, plan, search) if plan.options.protect else {}
    used = [changed[i].segment if i in changed else segment for i, segment in enumerate(segments)]
    if plan.options.guard:
        results = guard(results, used, plan, _wanted(used, events))
    place_terms(results, used, plan, _wanted(used, events))
    results = [_with_unknown(*each, plan) for each in zip(results, used, strict=True)]
    return put_in(results, segments, changed, plan) if plan.options.protect else results


def _with_unknown(result: SegmentResult, segment: TextSegment, plan: Plan) -> SegmentResult:
    """Add a note if the model read unknown subwords; a span that was carried over unchanged is not among them."""
    if UNK_ID not in segment.search.ids:
        return result
    names = ", ".join(repr(part) for part in plan.src_tokenizer.unknown(segment.text))
    return replace(result, unknown=Note("unknown", f"the model does not know {names} in the source"))


def _search(segments: Sequence[TextSegment], plan: Plan, events: Events) -> list[SegmentResult]:
    found = plan.engine.search(
        [each.search for each in segments], plan.search, _wanted(segments, events), events.progress
    )
    texts = iter(texts_of([hypothesis for one in found.hypotheses for hypothesis in one], plan.tgt_tokenizer))
    results = [
        SegmentResult(tuple(one), tuple(next(texts) for _ in one), None if one else Note("dropped", "cancelled"))
        for one in found.hypotheses
    ]
    for i in found.out_of_memory:
        results[i] = SegmentResult(note=Note("memory", OUT_OF_MEMORY))
    return results


def _wanted(segments: Sequence[TextSegment], events: Events) -> Alive | None:
    """Asked by the engine with the index of a segment; the text that it is of is what others know."""
    alive = events.alive
    return None if alive is None else lambda i: alive(segments[i].owner)
