"""Carries over what must arrive unchanged (see ``protected``) where the model did not do so by itself.

A translation that has all of it stays as it is. Of another one the source is translated again without the spans that
are missing, and each is put in its place: into the gap between two words of the translation that, by the word
alignment of both, corresponds to the one it was cut out of (as "detag and project" for markup,
https://aclanthology.org/2020.wmt-1.110). So the model never reads what it cannot know, and the rest of the line is
translated as if it had not been there. A model that has learned masks (``data.noise.inserts``; its manifest says so)
also translates the line with a mask for each span; where these come back once each, and it is surer of that
translation, as of "Press [1] to [2]." beside "Press to.", that one is taken. A line of nothing else is copied. What is
missing even so is named in a note.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, cast

from dragoman.data.noise import N_MASKS
from dragoman.decoding.alignment import Links, word_numbers, word_spans
from dragoman.decoding.search import Hypothesis
from dragoman.translation.notes import Kind, Note
from dragoman.translation.plan import Plan
from dragoman.translation.protected import Span, find, missing
from dragoman.translation.scoring import TextPart
from dragoman.translation.segments import SegmentResult, TextSegment, one_line

ROUNDS = 2
"""The source is searched for without what was missing first; once more without what is missing then."""

_PAIRS = {"(": ")", "[": "]", "{": "}", '"': '"', "'": "'", "“": "”", "„": "“", "‘": "’", "«": "»", "»": "«"}
_CLOSING = ".,;:!?…)]}”“’»。，、；：！？）"
_LIST_MARK = re.compile(r"[.)]\s")
_TRAILING = re.compile(rf"[{re.escape(_CLOSING)}'\"]*$")


@dataclass(frozen=True)
class Cut:
    """A span that was cut out of a text, with the brackets right around it."""

    text: str
    kind: str
    place: int  # where it was, in characters of the text without it
    joined: tuple[bool, bool]  # whether it touched what is before, and what is after


def without(text: str, spans: Sequence[Span]) -> tuple[str, list[Cut]]:
    """``text`` without ``spans``, which are in order, nor the spaces and brackets they leave; and what was cut out."""
    bare, cuts, last = "", [], 0
    for span in spans:
        start, end = span.start, span.end
        while last < start and text[start - 1] in _PAIRS and text[end : end + 1] == _PAIRS[text[start - 1]]:
            start, end = start - 1, end + 1
        bare += text[last:start]
        if not bare.strip() and _LIST_MARK.match(text, end):  # "1. Go.": the mark is the number's
            end += 1
        last = end
        joined = bool(bare[-1:].strip()), bool(text[end : end + 1].strip()) and text[end] not in _CLOSING
        if span.kind == "number" and re.match(r"-[^\W\d]", text[end:]):  # "21-year-old": the number stands by itself
            last, joined = end + 1, (joined[0], False)
        follows = text[last : last + 1]
        if not bare.strip():
            bare, last = "", len(text) - len(text[last:].lstrip())
        elif bare[-1].isspace() and (not follows or follows.isspace() or follows in _CLOSING):
            bare = bare[:-1]
        cuts.append(Cut(text[start:end], span.kind, len(bare), joined))
    return (bare + text[last:]).rstrip(), cuts


def put_back(src: str, cuts: Sequence[Cut], tgt: str, links: Links, unspaced: tuple[bool, bool], first: int = 0) -> str:
    """The translation ``tgt`` of ``src`` with what was cut out of the latter, each in its place.

    Args:
        links: Between the words of both.
        unspaced: Whether the source language, and the target language, puts no spaces between words.
        first: Nothing is put before this character of the translation: its prefix.
    """
    src_words, tgt_words = (word_spans(text, how) for text, how in zip((src, tgt), unspaced, strict=True))
    starts = [start for start, _ in src_words]
    placed: list[tuple[int, int, Cut]] = []
    gaps = []
    for cut in cuts:
        before = bisect_right(starts, cut.place - 1) if cut.place else 0  # words of the source before it
        gap = _gap(before, links, len(src_words), len(tgt_words), nearest=cut.kind == "number")
        gaps.append(gap)
        place = max(first, _place(src, cut.place, tgt, tgt_words, gap))
        placed.append((place, len(placed), cut))
    for k in range(len(placed) - 1, 0, -1):  # those of one gap keep their order
        (place, _, cut), (following, _, _) = placed[k - 1], placed[k]
        if gaps[k - 1] == gaps[k]:
            placed[k - 1] = min(place, following), k - 1, cut
    for place, _, cut in sorted(placed, key=lambda one: one[:2], reverse=True):
        left, right = tgt[:place], tgt[place:]
        touches = (False, False) if unspaced[0] and cut.kind != "markup" else cut.joined
        space = "" if unspaced[1] else " "
        left = left.rstrip() + ("" if touches[0] or not left.strip() else space)
        closes = right[:1] in _CLOSING and right[:1]
        right = ("" if touches[1] or closes or not right.strip() else space) + right.lstrip()
        tgt = left + cut.text + right
    return tgt


def _gap(before: int, links: Links, n_src: int, n_tgt: int, nearest: bool) -> int:
    """How many words of the translation come before the gap that corresponds to that after ``before`` source words.

    Each link that would cross from one side to the other costs the more the nearer its source word is to the gap.

    Args:
        nearest: It belongs to the word that follows, as a number does: it is put before that one if it is known.
    """
    if nearest and (following := [tgt for src, tgt in links if src == before]):
        return min(following)
    costs = [0.0] * (n_tgt + 1)
    for src, tgt in links:
        weight = 0.5 ** (before - 1 - src if src < before else src - before)
        for gap in range(tgt + 1) if src < before else range(tgt + 1, n_tgt + 1):
            costs[gap] += weight
    usual = before * n_tgt / max(1, n_src)
    return min(range(n_tgt + 1), key=lambda gap: (round(costs[gap], 9), abs(gap - usual)))


def _place(src: str, place: int, tgt: str, words: Sequence[tuple[int, int]], gap: int) -> int:
    """The character of a gap; before the marks that end a word, unless it comes after such marks in the source."""
    if gap == 0:
        return 0
    start, end = words[gap - 1]
    marks = _TRAILING.search(tgt, start, end)
    before = src[:place].rstrip()[-1:]
    if marks is not None and start < marks.start():
        comes_after = before and (before in marks[0] or (before in _CLOSING and not src[place:].strip()))
        return end if comes_after else marks.start()
    return end


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
    masked = _search_with_masks(results, segments, plan, search) if plan.masks else {}
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
    """What was found with masks in the place of what is missing, where each came back once and nothing else is lost."""
    tried: dict[int, Without] = {}
    for i, (segment, result) in enumerate(zip(segments, results, strict=True)):
        lost = _lost(segment, result, plan, []) if result.hypotheses else []
        if lost and (one := _masked(segment, lost, plan)) is not None:
            tried[i] = one
    found = zip(tried.items(), search([one.segment for one in tried.values()]), strict=True)
    return {
        i: (one, result)
        for (i, one), result in found
        if result.hypotheses
        and _has_each_once(result.texts[0], one.masks)
        and not _lost(segments[i], result, plan, one.out)
    }


def _lost(segment: TextSegment, result: SegmentResult, plan: Plan, out: Sequence[Span]) -> list[Span]:
    """What the best translation lacks, beside what was taken out of the source."""
    spans = [span for span in _spans(segment.text, plan) if span not in out]
    return missing(spans, result.texts[0], segment.text, plan.tgt_lang) if spans else []


def _sureness(result: SegmentResult, of_masks: int = 0) -> float:
    """The mean log-probability of a token: what was cut out of a sentence that needs it leaves the model unsure.

    Args:
        of_masks: The number of tokens that are masks, which are as good as certain and do not count.
    """
    best = result.hypotheses[0]
    return best.log_prob / max(1, len(best.ids) + 1 - of_masks)


def _has_each_once(text: str, masks: Iterable[str]) -> bool:
    return all(text.count(mask) == 1 for mask in masks)


def _spans(text: str, plan: Plan) -> list[Span]:
    """What must arrive unchanged; not what the glossary has a term for."""
    spans = find(text)
    terms = plan.glossary.find(text) if spans and plan.glossary is not None else []
    ends = [(match.start, match.start + len(match.source)) for match in terms]
    return [span for span in spans if not any(start < span.end and span.start < end for start, end in ends)]


def _without(segment: TextSegment, out: list[Span], plan: Plan) -> Without:
    text, cuts = without(segment.text, out)
    return Without(_with_text(segment, text, plan), out, cuts, {})


def _masked(segment: TextSegment, out: list[Span], plan: Plan) -> Without | None:
    """The segment with masks in the place of some spans; None if they are more than the model knows, or touch words."""
    free = [
        mask for n in range(1, N_MASKS + 1) if (mask := (plan.masks or "").replace("{}", str(n))) not in segment.text
    ]
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
    """Whether a word continues at either end: as a mask such a span would belong to it, as "<b>big</b>" would."""
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
