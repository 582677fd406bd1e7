"""The guard translates again where ``faults`` finds a fault in a translation, and adds a note.

A translation without faults costs only the check of its text. For the others these are tried in turn:

1. the other translations that the same search has finished, which cost no search: in trials 60 to 75 of 100 short
   translations, and a third of the loops, had one without faults among them (benchmarks/records/decoding-speed.md);
2. a search with a wider beam, in which every hypothesis is checked: the model may well know one without faults;
3. a search with that beam and constraints: no 3-gram of subwords comes twice (https://arxiv.org/abs/1705.04304), and
   the translation is not empty. A copy may not have two neighbouring words of its source. A short translation may not
   end before it has the length that nearly all translations in the training text have.

A sentence with more than a few forced subwords is not searched again: its search may take a hundred times as long as
that of others, and would mostly end in the same fault, which is in the words.

The hypothesis without faults that has the best score is taken. If there is none, the least bad is taken: a copy or a
short one; else a loop, with its repetition removed; else one that is too long; else the source is copied.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import cast

from dragoman.decoding.batches import most_tokens
from dragoman.decoding.constraints import Rules
from dragoman.decoding.request import Hypothesis, Segment
from dragoman.options import MOST_BEAM
from dragoman.translation.faults import LOST_TOKENS, Sizes, faults, neighbours, without_loops
from dragoman.translation.notes import Kind, Note
from dragoman.translation.plan import Plan
from dragoman.translation.segments import SegmentResult, TextSegment, texts_of

LEAST_BEAM = 8
NO_REPEAT_NGRAM = 3

MOST_FORCED = 20
"""Largest number of forced subwords of a sentence that is searched again."""

BYTES_OF_SUBWORD = 10
"""Number of bytes of a prefix that count as a forced subword: it needs no wider beam, as words to include do."""

_FAULTS = {
    "empty": "the translation {} empty", "loop": "text {} repeated", "long": "the translation {} too long",
    "short": "part of the sentence {} missing", "copy": "the source {} copied",
}  # fmt: skip
"""Notes on faults; "was" for one that was repaired, "is" for one that is still there."""


@dataclass(frozen=True)
class _Candidate:
    hypothesis: Hypothesis
    text: str
    faults: tuple[str, ...]


def guard(results: Sequence[SegmentResult], segments: Sequence[TextSegment], plan: Plan) -> list[SegmentResult]:
    """Check the best translation of each segment, and translate those with a fault again.

    Returns:
        The results; those that had a fault have a note, and the chosen hypothesis comes first.
    """
    guarded = list(results)
    translated = [i for i, result in enumerate(results) if result.hypotheses]
    first = [(segments[i], results[i].hypotheses[0], results[i].texts[0]) for i in translated]
    candidates_of = zip(translated, _checked(first, plan), strict=True)
    bad = {i: [candidate] for i, candidate in candidates_of if candidate.faults}
    others = {i: (segments[i], results[i].spare if _samples(plan) else _others(results[i])) for i in bad}
    for i, candidate in _best_sound(others, bad, plan).items():
        note = _note(bad.pop(i)[0].faults, "the next best translation is taken")
        guarded[i] = _put_first(results[i], candidate, note, True, plan)
    # first with a wider beam alone, then also under constraints
    wide = min(MOST_BEAM, max(LEAST_BEAM, 2 * plan.search.decode.beam_size))
    for strict in (False, True):
        faulty = sorted(i for i in bad if _n_forced(segments[i].search.rules) <= MOST_FORCED)
        if not faulty:
            break
        again = {i: _stricter(segments[i], bad[i][0], plan) if strict else segments[i].search for i in faulty}
        results_again = _search_again(again, wide, plan)
        sound = _best_sound({i: (segments[i], hypotheses) for i, hypotheses in results_again.items()}, bad, plan)
        for i, candidate in sound.items():
            seen = bad.pop(i)[0].faults
            how = f"with a beam of {wide}"
            if strict:
                how = f"without repeated {NO_REPEAT_NGRAM}-grams" + " or word pairs of the source" * ("copy" in seen)
                how += " and without an early end" * ("short" in seen)
            note = _note(seen, f"translated again {how}")
            guarded[i] = _put_first(results[i], candidate, note, True, plan)
    for i, candidates in bad.items():
        guarded[i] = _least_bad(segments[i].text, results[i], candidates, plan)
    return guarded


def _n_forced(rules: Rules | None) -> int:
    """Return about how many subwords are forced into a translation by a prefix and words to include."""
    return 0 if rules is None else sum(map(len, rules.include)) + len(rules.prefix) // BYTES_OF_SUBWORD


def _best_sound(
    searched: Mapping[int, tuple[TextSegment, Sequence[Hypothesis]]], bad: Mapping[int, list[_Candidate]], plan: Plan
) -> dict[int, _Candidate]:
    """Return the best hypothesis without faults of each segment that has one; add the faulty ones to ``bad``.

    Hypotheses are checked one at a time, best first: a check may cost a forward pass, and an early one is mostly sound.
    """
    sound = {}
    waiting = {i: sorted(hypotheses, key=lambda h: -h.score) for i, (_, hypotheses) in searched.items() if hypotheses}
    while waiting:
        best = [hypotheses.pop(0) for hypotheses in waiting.values()]
        pairs = zip(best, texts_of(best, plan.tgt_tokenizer), strict=True)
        candidates = [(searched[i][0], *pair) for i, pair in zip(waiting, pairs, strict=True)]
        for i, candidate in zip(list(waiting), _checked(candidates, plan), strict=True):
            if candidate.faults:
                bad[i].append(candidate)
            else:
                sound[i] = candidate
            if i in sound or not waiting[i]:
                del waiting[i]
    return sound


def _checked(hypotheses: Sequence[tuple[TextSegment, Hypothesis, str]], plan: Plan) -> list[_Candidate]:
    """Return hypotheses of some segments with their faults."""
    # a short translation is a fault only if it paid no attention to a part of its source, which costs a forward pass
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
    unread = iter(plan.aligner.unread(pairs, plan.search.decode.batch_tokens) if pairs else ())
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


def _search_again(segments: Mapping[int, Segment], beam_size: int, plan: Plan) -> dict[int, list[Hypothesis]]:
    """Return all hypotheses of a wide beam over the whole vocabulary; none for a segment that runs out of memory."""
    groups: dict[bool, list[int]] = {}
    for i, segment in segments.items():
        # some engines cannot search under all constraints: only these segments need another one
        needs_other = segment.rules is not None and not plan.can_search(segment.rules)
        groups.setdefault(needs_other, []).append(i)
    hypotheses: dict[int, list[Hypothesis]] = {}
    for needs_other, rows in groups.items():
        other = plan.constrained if needs_other else None
        engine, settings = (plan.engine, plan.search) if other is None else (other.engine, other.settings)
        decode = settings.decode
        fewer = max(1, decode.batch_tokens * decode.beam_size // beam_size)
        settings = settings.with_decode(beam_size=beam_size, batch_tokens=fewer)
        settings = replace(settings, n_best=beam_size, with_spare=False, sampling=None, shortlist=False)
        hypotheses.update(zip(rows, engine.search([segments[i] for i in rows], settings).hypotheses, strict=True))
    return {i: hypotheses[i] for i in segments}


def _samples(plan: Plan) -> bool:
    return plan.search.sampling is not None


def _others(result: SegmentResult) -> list[Hypothesis]:
    """Return all that a search has found but the best."""
    return [*result.hypotheses[1:], *result.spare]


def _put_first(result: SegmentResult, best: _Candidate, note: Note, sound: bool, plan: Plan) -> SegmentResult:
    """Return the result with another best translation, and as many alternatives as it had, if there are so many.

    Those with its ids are dropped, but for samples: each of these was drawn for itself.
    """
    n = len(result.hypotheses) - 1
    others = [other for other in _others(result) if _samples(plan) or other.ids != best.hypothesis.ids][:n]
    texts = (best.text, *texts_of(others, plan.tgt_tokenizer))
    return SegmentResult((best.hypothesis, *others), texts, note, sound)


def _least_bad(src: str, result: SegmentResult, candidates: Sequence[_Candidate], plan: Plan) -> SegmentResult:
    """Return the least bad of translations that all have a fault, with a note on its faults."""
    best = min(candidates, key=lambda c: (_badness(c.faults), -c.hypothesis.score))
    text, tense, action = best.text, "is", ""
    if "empty" in best.faults:
        text, tense, action = src.strip(), "was", ", so the source is copied"
    elif "loop" in best.faults:
        text, tense, action = without_loops(src, best.text), "was", ", so the repetition is removed"
    message = f"{_sentence(best.faults, tense)}; no better translation was found{action}"
    hypothesis = best.hypothesis
    if text != best.text:
        hypothesis = hypothesis._replace(ids=plan.tgt_tokenizer.encode([text])[0])
    note = Note(cast(Kind, best.faults[0]), message, left=True)
    return _put_first(result, replace(best, hypothesis=hypothesis, text=text), note, False, plan)


def _note(seen: Sequence[str], mend: str) -> Note:
    """Return the note on faults that are mended."""
    return Note(cast(Kind, seen[0]), f"{_sentence(seen, 'was')}: {mend}")


def _sentence(wrong: Sequence[str], tense: str) -> str:
    return " and ".join(_FAULTS[fault].format(tense) for fault in wrong)


def _badness(wrong: tuple[str, ...]) -> tuple[int, bool]:
    """Return a rank, lowest for the least bad: copy or short, loop (which can be cut), too long, empty."""
    place = 3 if "empty" in wrong else 1 if "loop" in wrong else 2 if "long" in wrong else 0
    return place, "copy" in wrong or "short" in wrong
