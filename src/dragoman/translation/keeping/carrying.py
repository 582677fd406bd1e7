"""Carries over what must arrive unchanged (see ``protected``) where the model did not do so by itself.

A translation that has all of it stays as it is. Of another one the source is translated again without the spans that
are missing, and each is put in its place by the word alignment of both (``cutting``). So the model never reads what it
cannot know, and the rest of the line is translated as if it had not been there. A model that has learned masks
(``data.noise.inserts``; its manifest says so) also translates the line with a mask for each span; where these come
back once each, and it is surer of that translation, as of "Press [1] to [2]." beside "Press to.", that one is taken. A
line of nothing else is copied. What is missing even so is named in a note.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple, cast

from dragoman.data.noise import N_MASKS
from dragoman.decoding.alignment import word_numbers
from dragoman.decoding.request import Hypothesis
from dragoman.translation.keeping.cutting import Cut, put_back, without
from dragoman.translation.keeping.protected import Span, find, missing
from dragoman.translation.notes import Kind, Note
from dragoman.translation.plan import Plan
from dragoman.translation.scoring import TextPart
from dragoman.translation.segments import SegmentResult, TextSegment, one_line

ROUNDS = 2
"""The source is searched for without what was missing first; once more without what is missing then."""


class Without(NamedTuple):
    """A segment that is searched for without some of its spans."""

    segment: TextSegment
    out: list[Span]  # what is cut out, in the order of the text
    cuts: list[Cut]
    masks: dict[str, str]  # or what stands in its place, and for what


Search = Callable[[Sequence[TextSegment]], list[SegmentResult]]


def search_without(
    results: list[SegmentResult], segments: Sequence[TextSegment], plan: Plan, search: Search
) -> dict[int, Without]:
    """Search again for each segment whose best translation lacks what must arrive, without what it lacks.

    Args:
        results: Of each segment; those that were found without their spans take their place.

    Returns:
        What was searched for in the end, by the index of the segment; those of which nothing was missing are not in it.
    """
    masked = _search_with_masks(results, segments, plan, search) if plan.facts.masks else {}
    changed: dict[int, Without] = {}
    asked = [i for i, result in enumerate(results) if result.hypotheses]
    for _ in range(ROUNDS):
        again: dict[int, Without] = {}
        for i in asked:
            out = changed[i].out if i in changed else []
            if lost := _lost(segments[i], results[i], plan, out):
                again[i] = _without(segments[i], sorted([*out, *lost], key=lambda span: span.start), plan)
        changed.update(again)
        asked = [i for i, one in again.items() if any(character.isalpha() for character in one.segment.text)]
        for i in again.keys() - set(asked):  # nothing is left to translate
            results[i], changed[i] = _copied(segments[i], plan), Without(segments[i], [], [], {})
        for i, result in zip(asked, search([again[i].segment for i in asked]), strict=True):
            results[i] = result
        asked = [i for i in asked if results[i].hypotheses]
    for i, (one, result) in masked.items():
        of_masks = sum(map(len, plan.tgt_tokenizer.encode(list(one.masks))))
        if not results[i].hypotheses or _sureness(result, of_masks) > _sureness(results[i]):
            results[i], changed[i] = result, one
    return changed


def _search_with_masks(
    results: Sequence[SegmentResult], segments: Sequence[TextSegment], plan: Plan, search: Search
) -> dict[int, tuple[Without, SegmentResult]]:
    """Search with masks for spans that are missing; return results with each mask once and nothing else lost."""
    tried: dict[int, Without] = {}
    for i, (segment, result) in enumerate(zip(segments, results, strict=True)):
        lost = _lost(segment, result, plan, []) if result.hypotheses else []
        if lost and (masked := _masked(segment, lost, plan)) is not None:
            tried[i] = masked
    with_masks = zip(tried.items(), search([masked.segment for masked in tried.values()]), strict=True)
    return {
        i: (masked, result)
        for (i, masked), result in with_masks
        if result.hypotheses
        and _has_each_once(result.texts[0], masked.masks)
        and not _lost(segments[i], result, plan, masked.out)
    }


def _lost(segment: TextSegment, result: SegmentResult, plan: Plan, out: Sequence[Span]) -> list[Span]:
    """Return the spans that the best translation lacks; those that were taken out of the source are left out."""
    spans = [span for span in _spans(segment.text, plan) if span not in out]
    return missing(spans, result.texts[0], segment.text, plan.tgt_lang) if spans else []


def _sureness(result: SegmentResult, of_masks: int = 0) -> float:
    """Return the mean log-probability of a token: a sentence without a part that it needs leaves the model unsure.

    Args:
        of_masks: Number of tokens that are masks; they are nearly certain and do not count.
    """
    best = result.hypotheses[0]
    return best.log_prob / max(1, len(best.ids) + 1 - of_masks)


def _has_each_once(text: str, masks: Iterable[str]) -> bool:
    return all(text.count(mask) == 1 for mask in masks)


def _spans(text: str, plan: Plan) -> list[Span]:
    """Return the spans that must arrive unchanged; those that the glossary has a term for are left out."""
    spans = find(text)
    terms = plan.glossary.find(text) if spans and plan.glossary is not None else []
    ends = [(match.start, match.start + len(match.source)) for match in terms]
    return [span for span in spans if not any(start < span.end and span.start < end for start, end in ends)]


def _without(segment: TextSegment, out: list[Span], plan: Plan) -> Without:
    text, cuts = without(segment.text, out)
    return Without(_with_text(segment, text, plan), out, cuts, {})


def _masked(segment: TextSegment, out: list[Span], plan: Plan) -> Without | None:
    """The segment with masks in the place of some spans; None if they are more than the model knows, or touch words."""
    masks = ((plan.facts.masks or "").replace("{}", str(n)) for n in range(1, N_MASKS + 1))
    free = [mask for mask in masks if mask not in segment.text]
    if len(out) > len(free) or any(_touches_word(segment.text, span) for span in out):
        return None
    text, pairs = segment.text, list(zip(free, out, strict=False))
    for mask, span in reversed(pairs):
        text = text[: span.start] + mask + text[span.end :]
    if not any(character.isalpha() for character in text):
        return None
    return Without(_with_text(segment, text, plan), out, [], {mask: span.text for mask, span in pairs})


def _with_text(segment: TextSegment, text: str, plan: Plan) -> TextSegment:
    search = replace(segment.search, ids=plan.src_tokenizer.encode([text])[0])
    return replace(segment, text=text, search=search)


def _touches_word(text: str, span: Span) -> bool:
    """Return True if a word continues at either end of a span: a mask would then belong to it, as in "<b>big</b>"."""
    return text[max(0, span.start - 1) : span.start].isalnum() or text[span.end : span.end + 1].isalnum()


def _copied(segment: TextSegment, plan: Plan) -> SegmentResult:
    text = one_line(segment.text.strip())
    return SegmentResult((Hypothesis(plan.tgt_tokenizer.encode([text])[0], 0.0, 0.0),), (text,))


def put_in(
    results: Sequence[SegmentResult], segments: Sequence[TextSegment], changed: Mapping[int, Without], plan: Plan
) -> list[SegmentResult]:
    """Put what was cut out of each segment into each of its translations, and name what is missing even so."""
    whole = list(results)
    flat = [(i, k) for i, one in changed.items() if one.cuts for k in range(len(results[i].hypotheses))]
    how = plan.reader.src_unspaced, plan.reader.tgt_unspaced
    parts = []
    for i, k in flat:
        segment, said = changed[i].segment, plan.tgt_tokenizer.encode([results[i].texts[k]])[0]
        parts.append([TextPart(segment.text, word_numbers(segment.text, how[0]), segment.search.ids, said)])
    texts = {i: [_unmasked(text, one.masks) for text in results[i].texts] for i, one in changed.items() if one.out}
    for (i, k), links in zip(flat, plan.reader.align(parts, plan.search.decode.batch_tokens), strict=True):
        constraints = segments[i].constraints
        first = len(constraints.prefix) if constraints is not None else 0
        texts[i][k] = put_back(changed[i].segment.text, changed[i].cuts, texts[i][k], links, how, first)
    for i, some in texts.items():
        ids = plan.tgt_tokenizer.encode(some)
        hypotheses = [one._replace(ids=new) for one, new in zip(results[i].hypotheses, ids, strict=True)]
        whole[i] = replace(results[i], hypotheses=tuple(hypotheses), texts=tuple(some))
    return [_named(*each, plan) for each in zip(whole, segments, strict=True)]


def _unmasked(text: str, masks: Mapping[str, str]) -> str:
    for mask, what in masks.items():
        text = text.replace(mask, what)
    return text


def _named(result: SegmentResult, segment: TextSegment, plan: Plan) -> SegmentResult:
    """The result, with a note of what it lacks."""
    spans = _spans(segment.text, plan) if result.texts else []
    lost = missing(spans, result.texts[0], segment.text, plan.tgt_lang) if spans else []
    if not lost:
        return result
    said = ", ".join(f"the {span.kind} {span.text!r}" for span in lost)
    return replace(result, lost=Note(cast(Kind, lost[0].note), f"missing in the translation: {said}", left=True))
