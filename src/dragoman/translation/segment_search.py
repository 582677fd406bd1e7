"""Translates segments with the engine, then checks them: protected spans, faults, glossary, unknown characters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from dragoman.data.tokenizer import UNK_ID
from dragoman.decoding.request import OUT_OF_MEMORY, Progress
from dragoman.translation.guard import guard
from dragoman.translation.keeping.carrying import asks_for_words, copied, put_in, search_without
from dragoman.translation.keeping.placing import place_terms
from dragoman.translation.notes import Note
from dragoman.translation.plan import Plan
from dragoman.translation.second_reading import in_source_case, search_both
from dragoman.translation.segments import SegmentResult, TextSegment, is_wordless, texts_of
from dragoman.translation.unseen_scripts import note_on_script


def translate_segments(
    segments: Sequence[TextSegment], plan: Plan, progress: Progress | None = None
) -> list[SegmentResult]:
    """Translate segments and check the results; the batches of a server enter here.

    A segment without a word is copied, unless the request asks for words in it.

    Args:
        segments: As ``segment`` makes them, of any texts; the results of cancelled ones have only a note.
    """
    results = {i: copied(each, plan) for i, each in enumerate(segments) if not plan.trees and _is_copied(each, plan)}
    with_words = [i for i in range(len(segments)) if i not in results]
    translated = _translate([segments[i] for i in with_words], plan, progress) if with_words else []
    results.update(zip(with_words, translated, strict=True))
    return [results[i] for i in range(len(segments))]


def _is_copied(segment: TextSegment, plan: Plan) -> bool:
    return not asks_for_words(segment) and not segment.search.is_cancelled and is_wordless(segment.text, plan)


def _translate(segments: Sequence[TextSegment], plan: Plan, progress: Progress | None) -> list[SegmentResult]:
    """Translate segments with the engine, and check the results.

    A translation that lacks a protected span is made again (``carrying``), then one with a fault (``guard``).
    """

    def search(some: Sequence[TextSegment], progress: Progress | None = None) -> list[SegmentResult]:
        return _search(some, plan, progress) if some else []

    if plan.trees:
        return search(segments, progress)
    original = segments
    if plan.options.truecase:
        segments, results = search_both(segments, plan, lambda both: search(both, progress))
    else:
        results = search(segments, progress)
    # from here on, guard and glossary see each segment without the spans that were cut out; ``put_in`` puts them back
    changed = search_without(results, segments, plan, search) if plan.options.protect else {}
    used = [changed[i].segment if i in changed else segment for i, segment in enumerate(segments)]
    if plan.options.guard:
        results = guard(results, used, plan)
    place_terms(results, used, plan)
    results = [_with_unknown(*each, plan) for each in zip(results, used, strict=True)]
    results = [_with_script(*each, plan) for each in zip(results, used, strict=True)]
    if plan.options.protect:
        results = put_in(results, segments, changed, plan)
    if plan.options.truecase:
        results = in_source_case(results, original, plan)
    return [
        result if segment is before else replace(result, read=segment)
        for result, segment, before in zip(results, segments, original, strict=True)
    ]


def _with_unknown(result: SegmentResult, segment: TextSegment, plan: Plan) -> SegmentResult:
    """Add a note if the model read unknown characters; those of spans that were cut out do not count."""
    if UNK_ID not in segment.search.ids:
        return result
    names = ", ".join(repr(part) for part in plan.src_tokenizer.unknown(segment.text))
    return replace(result, unknown=Note("unknown", f"the model does not know {names} in the source"))


def _with_script(result: SegmentResult, segment: TextSegment, plan: Plan) -> SegmentResult:
    """Add a note if the model never saw the letters of the source; then no search of the guard has made it right."""
    note = note_on_script(segment.text, plan.src_tokenizer) if result.hypotheses else None
    if note is None or not note.left:
        return result if note is None else replace(result, script=note)
    of_guard = result.note if result.note is not None and result.note.left else None
    return replace(result, note=of_guard, script=note, sound=False)


def _search(segments: Sequence[TextSegment], plan: Plan, progress: Progress | None) -> list[SegmentResult]:
    result = plan.engine.search([segment.search for segment in segments], plan.search, progress)
    n_best = plan.search.n_best
    every = [hypothesis for hypotheses in result.hypotheses for hypothesis in hypotheses[:n_best]]
    texts = iter(texts_of(every, plan.tgt_tokenizer))
    results = [
        SegmentResult(
            tuple(own[:n_best]), tuple(next(texts) for _ in own[:n_best]),
            None if own else Note("dropped", "cancelled"), spare=tuple(own[n_best:]),
        )
        for own in result.hypotheses
    ]  # fmt: skip
    for i in result.out_of_memory:
        results[i] = SegmentResult(note=Note("memory", OUT_OF_MEMORY))
    return results
