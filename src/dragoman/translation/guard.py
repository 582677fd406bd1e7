"""The guard: where ``faults`` sees something wrong in a translation, it searches again, and a note says what was done.

A sound translation costs a look at its text. One with a fault is searched for again, each time with its neighbours of
the same fate:

1. with a wider beam, of which every hypothesis is looked at: the model may well know a sound translation, and
   nothing has to be forbidden;
2. with that beam and constraints: no 3-gram of subwords comes twice (https://arxiv.org/abs/1705.04304), the end is not
   the first thing to come, a copy may not have two words of its source side by side, and what was short may not end
   before it has the length that nearly all translations in the training text have.

The first sound hypothesis, the best by score, is taken. If there is none, the least bad one is: a copy or one that is
short; or else a loop, with its repetition removed; or else one that is too long. For an empty one the source is copied.
In each case a note says so; nothing is changed without one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import cast

from dragoman.decoding.batches import most_tokens
from dragoman.decoding.constraints import Rules
from dragoman.decoding.search import Hypothesis
from dragoman.toolkits.engine import Alive, Searcher, SearchSettings, Segment
from dragoman.translation.faults import LOST_TOKENS, faults, neighbours, without_loops
from dragoman.translation.notes import Kind, Note
from dragoman.translation.plan import Plan
from dragoman.translation.segments import SegmentResult, TextSegment, texts_of

LEAST_BEAM = 8
NO_REPEAT_NGRAM = 3


@dataclass(frozen=True)
class _Candidate:
    hypothesis: Hypothesis
    text: str
    faults: tuple[str, ...]


def guard(
    results: Sequence[SegmentResult], segments: Sequence[TextSegment], plan: Plan, alive: Alive | None = None
) -> list[SegmentResult]:
    """Look at the best translation of each segment, and search again for those with a fault.

    Returns:
        The results, those of faulty ones with a note, and what was chosen in the first place.
    """
    guarded = list(results)
    there = [i for i, result in enumerate(results) if result.hypotheses]
    first = [(segments[i], results[i].hypotheses[0], results[i].texts[0]) for i in there]
    looked_at = zip(there, _looked_at(first, plan), strict=True)
    bad = {i: [candidate] for i, candidate in looked_at if candidate.faults}
    wide = max(LEAST_BEAM, 2 * plan.search.decode.beam_size)
    for strict in (False, True):
        asked = sorted(bad)
        if not asked:
            break
        wanted = None if alive is None else lambda j, asked=asked: alive(asked[j])
        again = [_stricter(segments[i], bad[i][0], plan) if strict else segments[i].search for i in asked]
        # only constraints are beyond some engines
        by = (plan.second_engine, plan.second_search) if strict else (plan.engine, plan.search)
        found = zip(asked, _search_again(again, wide, *by, wanted), strict=True)
        sound = _best_sound({i: (segments[i], hypotheses) for i, hypotheses in found}, bad, plan)
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
    found: Mapping[int, tuple[TextSegment, Sequence[Hypothesis]]], bad: Mapping[int, list[_Candidate]], plan: Plan
) -> dict[int, _Candidate]:
    """The sound hypothesis with the best score of each segment that has one; those before it go to ``bad``.

    Most often it is the first or the second, so the others are not looked at, which may cost a reading each.
    """
    sound = {}
    waiting = {i: sorted(hypotheses, key=lambda h: -h.score) for i, (_, hypotheses) in found.items() if hypotheses}
    while waiting:
        next_ones = [hypotheses.pop(0) for hypotheses in waiting.values()]
        texts = texts_of(next_ones, plan.tgt_tokenizer)
        asked = [(found[i][0], *each) for i, each in zip(waiting, zip(next_ones, texts, strict=True), strict=True)]
        for i, candidate in zip(list(waiting), _looked_at(asked, plan), strict=True):
            if candidate.faults:
                bad[i].append(candidate)
            else:
                sound[i] = candidate
            if i in sound or not waiting[i]:
                del waiting[i]
    return sound


def _looked_at(found: Sequence[tuple[TextSegment, Hypothesis, str]], plan: Plan) -> list[_Candidate]:
    """Hypotheses of some segments with their faults; whether one is short is seen from what it paid attention to."""
    brief = [
        len(segment.search.ids) >= LOST_TOKENS and len(hypothesis.ids) < plan.least_ratio * len(segment.search.ids)
        for segment, hypothesis, _ in found
    ]
    pairs = [(each[0].search.ids, each[1].ids) for each, suspicious in zip(found, brief, strict=True) if suspicious]
    unread = iter(plan.reader.unread(pairs, plan.search.decode.batch_tokens) if pairs else ())
    candidates = []
    for (segment, hypothesis, text), suspicious in zip(found, brief, strict=True):
        n, n_src = len(hypothesis.ids), len(segment.search.ids)
        limit = most_tokens(n_src, segment.search.rules, plan.search.decode, plan.longest)
        wrong = faults(
            segment.text, text, n_src=n_src, n_tgt=n, ended=n + 1 < limit, lost=next(unread) if suspicious else 0,
            src_lang=plan.src_lang, tgt_lang=plan.tgt_lang,
        )  # fmt: skip
        candidates.append(_Candidate(hypothesis, text, wrong))
    return candidates


def _stricter(segment: TextSegment, first: _Candidate, plan: Plan) -> Segment:
    """The segment with the guard's constraints beside its own."""
    rules = segment.search.rules or Rules(plan.encoder.spelling)
    copied = neighbours(segment.text) if "copy" in first.faults else ()
    least = math.ceil(plan.least_ratio * len(segment.search.ids)) if "short" in first.faults else 1
    return replace(
        segment.search,
        rules=rules._replace(
            no_repeat_ngram=min(NO_REPEAT_NGRAM, rules.no_repeat_ngram or NO_REPEAT_NGRAM),
            min_tokens=max(least, rules.min_tokens),
            exclude=rules.exclude + tuple(words.encode() for words in copied),
        ),
    )


def _search_again(
    segments: Sequence[Segment], beam_size: int, engine: Searcher, search: SearchSettings, alive: Alive | None
) -> list[list[Hypothesis]]:
    """With a wide beam, all of which is returned, and any word; where memory is too short for it, nothing."""
    fewer = max(1, search.decode.batch_tokens * search.decode.beam_size // beam_size)
    decode = replace(search.decode, beam_size=beam_size, batch_tokens=fewer)
    settings: SearchSettings = replace(search, decode=decode, n_best=beam_size, sampling=None, shortlist=False)
    return engine.search(segments, settings, alive).hypotheses


def _put_first(result: SegmentResult, hypothesis: Hypothesis, text: str, note: Note, sound: bool) -> SegmentResult:
    """The result with another best translation; a rest that has the same ids goes."""
    others = [
        each for each in zip(result.hypotheses[1:], result.texts[1:], strict=True) if each[0].ids != hypothesis.ids
    ]
    hypotheses = (hypothesis, *(other for other, _ in others))
    return SegmentResult(hypotheses, (text, *(other for _, other in others)), note, sound)


def _least_bad(src: str, result: SegmentResult, candidates: Sequence[_Candidate], plan: Plan) -> SegmentResult:
    """Of translations that all have a fault, the one to do with, and a note of what is the matter."""
    best = min(candidates, key=lambda c: (_badness(c.faults), -c.hypothesis.score))
    text, left = best.text, f"{' and '.join(candidates[0].faults)} left: no search found a better one; "
    if "empty" in best.faults:
        text, left = src.strip(), left + "the source is copied"
    elif "loop" in best.faults:
        text, left = without_loops(src, best.text), left + "the repetition is removed"
    else:
        what = {"long": "too long", "short": "leaves out a part of the source", "copy": "a copy of the source"}
        rest = " and ".join(what[fault] for fault in best.faults)
        left += f"this is the best hypothesis found, but {rest}"
    hypothesis = best.hypothesis
    if text != best.text:  # its ids are then those of the text, and no longer what the search found
        hypothesis = hypothesis._replace(ids=plan.tgt_tokenizer.encode([text])[0])
    note = Note(cast(Kind, candidates[0].faults[0]), left, left=True)
    return _put_first(result, hypothesis, text, note, False)


def _badness(wrong: tuple[str, ...]) -> tuple[int, bool]:
    """A copy is better than a loop, which can be cut; that than too much, which cannot; and anything than nothing."""
    place = 3 if "empty" in wrong else 1 if "loop" in wrong else 2 if "long" in wrong else 0
    return place, "copy" in wrong or "short" in wrong
