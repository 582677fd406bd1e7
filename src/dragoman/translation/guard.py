"""The guard: if ``faults`` sees something wrong in a translation, it searches again, and a note says what was done.

A sound translation costs a look at its text. Translations with a fault are searched for again, together:

1. with a wider beam, of which every hypothesis is looked at: the model may well know a sound translation, and
   nothing has to be forbidden;
2. with that beam and constraints: no 3-gram of subwords comes twice (https://arxiv.org/abs/1705.04304), and the
   translation is not empty. A copy may not have two words of its source side by side. A short translation may not end
   before it has the length that nearly all translations in the training text have.

The sound hypothesis with the best score is taken. If there is none, the least bad one is: a copy or a short one; or
else a loop, with its repetition removed; or else one that is too long. For an empty one the source is copied. In each
case a note says so; nothing is changed without one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import cast

from dragoman.decoding.batches import most_tokens
from dragoman.decoding.constraints import Rules
from dragoman.decoding.request import Hypothesis, Segment
from dragoman.translation.faults import LOST_TOKENS, Sizes, faults, neighbours, without_loops
from dragoman.translation.notes import Kind, Note
from dragoman.translation.plan import EngineSearch, Plan
from dragoman.translation.segments import SegmentResult, TextSegment, texts_of

LEAST_BEAM = 8
NO_REPEAT_NGRAM = 3


@dataclass(frozen=True)
class _Candidate:
    hypothesis: Hypothesis
    text: str
    faults: tuple[str, ...]


def guard(results: Sequence[SegmentResult], segments: Sequence[TextSegment], plan: Plan) -> list[SegmentResult]:
    """Look at the best translation of each segment, and search again for those with a fault.

    Returns:
        The results; those that had a fault have a note, and the hypothesis that was chosen comes first.
    """
    guarded = list(results)
    translated = [i for i, result in enumerate(results) if result.hypotheses]
    first = [(segments[i], results[i].hypotheses[0], results[i].texts[0]) for i in translated]
    candidates_of = zip(translated, _looked_at(first, plan), strict=True)
    bad = {i: [candidate] for i, candidate in candidates_of if candidate.faults}
    wide = max(LEAST_BEAM, 2 * plan.search.decode.beam_size)
    for strict in (False, True):
        faulty = sorted(bad)
        if not faulty:
            break
        again = [_stricter(segments[i], bad[i][0], plan) if strict else segments[i].search for i in faulty]
        # some engines cannot search under constraints: only the second search needs another one
        search = plan.constrained if strict else EngineSearch(plan.engine, plan.search)
        results_again = zip(faulty, _search_again(again, wide, search), strict=True)
        sound = _best_sound({i: (segments[i], hypotheses) for i, hypotheses in results_again}, bad, plan)
        for i, candidate in sound.items():
            seen = bad.pop(i)[0].faults
            how = f"with a beam of {wide}"
            if strict:
                how = f"without repeated {NO_REPEAT_NGRAM}-grams" + " or word pairs of the source" * ("copy" in seen)
                how += ", and with no early end" * ("short" in seen)
            note = Note(cast(Kind, seen[0]), f"{' and '.join(seen)}: searched again {how}")
            guarded[i] = _put_first(results[i], candidate.hypothesis, candidate.text, note, True)
    for i, candidates in bad.items():
        guarded[i] = _least_bad(segments[i].text, results[i], candidates, plan)
    return guarded


def _best_sound(
    searched: Mapping[int, tuple[TextSegment, Sequence[Hypothesis]]], bad: Mapping[int, list[_Candidate]], plan: Plan
) -> dict[int, _Candidate]:
    """Return the sound hypothesis with the best score of each segment that has one; the faulty ones go to ``bad``.

    Most often it is the first or the second. So the others are not looked at, which may cost a reading each.
    """
    sound = {}
    waiting = {i: sorted(hypotheses, key=lambda h: -h.score) for i, (_, hypotheses) in searched.items() if hypotheses}
    while waiting:
        next_ones = [hypotheses.pop(0) for hypotheses in waiting.values()]
        texts = texts_of(next_ones, plan.tgt_tokenizer)
        pairs = zip(next_ones, texts, strict=True)
        candidates = [(searched[i][0], *pair) for i, pair in zip(waiting, pairs, strict=True)]
        for i, candidate in zip(list(waiting), _looked_at(candidates, plan), strict=True):
            if candidate.faults:
                bad[i].append(candidate)
            else:
                sound[i] = candidate
            if i in sound or not waiting[i]:
                del waiting[i]
    return sound


def _looked_at(hypotheses: Sequence[tuple[TextSegment, Hypothesis, str]], plan: Plan) -> list[_Candidate]:
    """Return hypotheses of some segments with their faults; attention tells if one leaves out a part of the source."""
    brief = [
        len(segment.search.ids) >= LOST_TOKENS
        and len(hypothesis.ids) < plan.facts.least_ratio * len(segment.search.ids)
        for segment, hypothesis, _ in hypotheses
    ]
    pairs = [
        (segment.search.ids, hypothesis.ids)
        for (segment, hypothesis, _), suspicious in zip(hypotheses, brief, strict=True)
        if suspicious
    ]
    unread = iter(plan.reader.unread(pairs, plan.search.decode.batch_tokens) if pairs else ())
    candidates = []
    for (segment, hypothesis, text), suspicious in zip(hypotheses, brief, strict=True):
        n, n_src = len(hypothesis.ids), len(segment.search.ids)
        limit = most_tokens(segment.search, plan.search)
        sizes = Sizes(n_src, n, n + 1 < limit, next(unread) if suspicious else 0)
        wrong = faults(segment.text, text, sizes, plan.src_lang, plan.tgt_lang)
        candidates.append(_Candidate(hypothesis, text, wrong))
    return candidates


def _stricter(segment: TextSegment, first: _Candidate, plan: Plan) -> Segment:
    """Return the segment with the guard's constraints added to its own."""
    rules = segment.search.rules or Rules(plan.encoder.spelling)
    copied = neighbours(segment.text) if "copy" in first.faults else ()
    least = math.ceil(plan.facts.least_ratio * len(segment.search.ids)) if "short" in first.faults else 1
    return replace(
        segment.search,
        rules=rules._replace(
            no_repeat_ngram=min(NO_REPEAT_NGRAM, rules.no_repeat_ngram or NO_REPEAT_NGRAM),
            min_tokens=max(least, rules.min_tokens),
            exclude=rules.exclude + tuple(words.encode() for words in copied),
        ),
    )


def _search_again(segments: Sequence[Segment], beam_size: int, search: EngineSearch) -> list[list[Hypothesis]]:
    """Search with a wide beam, all of which is returned, and any word; nothing where memory is too short for it."""
    decode = search.settings.decode
    fewer = max(1, decode.batch_tokens * decode.beam_size // beam_size)
    settings = search.settings.with_decode(beam_size=beam_size, batch_tokens=fewer)
    settings = replace(settings, n_best=beam_size, sampling=None, shortlist=False)
    return search.engine.search(segments, settings).hypotheses


def _put_first(result: SegmentResult, hypothesis: Hypothesis, text: str, note: Note, sound: bool) -> SegmentResult:
    """Return the result with another best translation; an alternative with the same ids is dropped."""
    alternatives = zip(result.hypotheses[1:], result.texts[1:], strict=True)
    others = [(other, its_text) for other, its_text in alternatives if other.ids != hypothesis.ids]
    hypotheses = (hypothesis, *(other for other, _ in others))
    return SegmentResult(hypotheses, (text, *(its_text for _, its_text in others)), note, sound)


def _least_bad(src: str, result: SegmentResult, candidates: Sequence[_Candidate], plan: Plan) -> SegmentResult:
    """Return the least bad of translations that all have a fault, with a note that names the fault."""
    best = min(candidates, key=lambda c: (_badness(c.faults), -c.hypothesis.score))
    text, left = best.text, f"{' and '.join(candidates[0].faults)} left: no search found a better one; "
    if "empty" in best.faults:
        text, left = src.strip(), left + "the source is copied"
    elif "loop" in best.faults:
        text, left = without_loops(src, best.text), left + "the repetition is removed"
    else:
        what = {"long": "too long", "short": "leaves out a part of the source", "copy": "a copy of the source"}
        left += f"this is the best hypothesis found, but {' and '.join(what[fault] for fault in best.faults)}"
    hypothesis = best.hypothesis
    if text != best.text:  # its ids are then those of the text, and no longer what the search found
        hypothesis = hypothesis._replace(ids=plan.tgt_tokenizer.encode([text])[0])
    note = Note(cast(Kind, candidates[0].faults[0]), left, left=True)
    return _put_first(result, hypothesis, text, note, False)


def _badness(wrong: tuple[str, ...]) -> tuple[int, bool]:
    """Return a rank, best first: a copy or a short one, a loop (it can be cut), one that is too long, an empty one."""
    place = 3 if "empty" in wrong else 1 if "loop" in wrong else 2 if "long" in wrong else 0
    return place, "copy" in wrong or "short" in wrong
