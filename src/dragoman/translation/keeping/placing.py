"""Replaces the words that translate a glossary's source terms by its target terms.

A line is first translated without its glossary. If the translation lacks a term, the words that translate the source
term are found by scoring the translation twice: with the whole source, and with the source without the term. Words that
become unlikely without it (erasure, https://arxiv.org/abs/1612.08220) and attended to it are candidates. The term
replaces the candidate that makes the whole translation likeliest. A constrained search, which often puts the term next
to the word that it should replace, is used only for terms without candidates.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from dragoman.decoding.alignment import attention_to
from dragoman.decoding.request import Hypothesis
from dragoman.decoding.scoring import Read
from dragoman.decoding.search import scored
from dragoman.decoding.words import word_numbers, word_spans
from dragoman.languages.words import core, count_word
from dragoman.translation.keeping.glossary import Glossary, Match
from dragoman.translation.plan import Plan
from dragoman.translation.scoring import words_of_tokens
from dragoman.translation.segments import SegmentResult, TextSegment, texts_of

PLACES = 3
"""Number of places tried for a term, each with and without neighbouring words that may belong to it."""

LEAST_SHARE = 0.1
NEIGHBOUR_SHARE = 0.5
"""Least evidence, as a fraction of the best word's, for a place and for a neighbouring word to belong to it."""

MOST_PLACED = 100
"""Largest number of ids of words that a constrained search must place: its time grows with their square."""

WORD_COST = 3.0  # in nats, for each word after the first that a term replaces
EVIDENCE = 2.0  # in nats: weight of the log of the evidence against the log-probability of the translation
CONTENT = 4  # characters: shorter words, often articles and prepositions, have less evidence
ATTENTION_FLOOR = 0.05  # added to the attention of each word, which may be spread over other words


class _Lacking(NamedTuple):
    """A term that a hypothesis lacks."""

    i: int  # index of the segment
    rank: int  # of the hypothesis among the n best
    match: Match


class _Place(NamedTuple):
    """Candidate place of a term: characters of the translation that it replaces."""

    start: int
    end: int
    worth: float  # evidence, in nats

    def changed(self, text: str, term: str) -> str:
        """Return the translation with the term in this place."""
        return text[: self.start] + term + text[self.end :]


def place_terms(results: list[SegmentResult], segments: Sequence[TextSegment], plan: Plan) -> None:
    """Put the glossary's terms into translations that lack them; notes name the remaining ones later.

    Args:
        results: Result of each segment; changed in place.
    """
    if plan.glossary is None:
        return
    _replace_words(results, segments, plan, plan.glossary)
    # terms without candidates: search again, with the terms as lexical constraints
    left = []
    for i, (segment, result) in enumerate(zip(segments, results, strict=True)):
        if segment.constraints is not None and result.texts and segment.constraints.unplaced(result.texts[0]):
            rules = segment.constraints.with_terms
            if rules.room <= MOST_PLACED:  # notes name the terms of the others
                left.append((i, replace(segment.search, rules=rules)))
    again = plan.constrained.engine.search([search for _, search in left], plan.constrained.settings)
    for (i, _), hypotheses in zip(left, again.hypotheses, strict=True):
        if hypotheses:
            texts = texts_of(hypotheses, plan.tgt_tokenizer)
            results[i] = replace(results[i], hypotheses=tuple(hypotheses), texts=tuple(texts))


def _replace_words(
    results: list[SegmentResult], segments: Sequence[TextSegment], plan: Plan, glossary: Glossary
) -> None:
    """Replace words by terms, for terms with candidate places."""
    lacking = [
        _Lacking(i, rank, match)
        for i, (segment, result) in enumerate(zip(segments, results, strict=True))
        for rank, text in enumerate(result.texts)
        for match in absent(glossary, segment.text, text)
    ]
    chosen: dict[tuple[int, int], list[tuple[_Place, str]]] = {}
    for term, places in zip(lacking, _places(lacking, results, segments, plan), strict=True):
        taken = chosen.setdefault((term.i, term.rank), [])
        free = (place for place in sorted(places, key=lambda place: -place.worth)
                if all(place.end <= other.start or other.end <= place.start for other, _ in taken))  # fmt: skip
        taken += [(place, term.match.target) for place in [*free][:1]]
    changed = {}
    for (i, rank), replacements in chosen.items():
        text = results[i].texts[rank]
        for place, target in sorted(replacements, reverse=True):
            text = place.changed(text, target)
        changed[i, rank] = text
    ids = plan.tgt_tokenizer.encode(list(changed.values()))
    read = plan.reader.read(
        [(segments[i].search.ids, new) for (i, _), new in zip(changed, ids, strict=True)],
        plan.search.decode.batch_tokens,
    )
    for ((i, rank), text), new, its_read in zip(changed.items(), ids, read, strict=True):
        if its_read is not None:
            results[i] = _with_text(results[i], rank, text, scored(new, its_read.log_prob, plan.search.penalty))


def _with_text(result: SegmentResult, rank: int, text: str, hypothesis: Hypothesis) -> SegmentResult:
    """Return the result with another text and hypothesis at this rank."""
    texts, hypotheses = list(result.texts), list(result.hypotheses)
    texts[rank], hypotheses[rank] = text, hypothesis
    return replace(result, texts=tuple(texts), hypotheses=tuple(hypotheses))


def absent(glossary: Glossary, src: str, translation: str) -> list[Match]:
    """Return the terms that a translation has less often than its source, the last of equal ones."""
    matches = glossary.find(src)
    there = {target: count_word(translation, target) for target in {match.target for match in matches}}
    lacking = []
    for match in matches:
        there[match.target] -= 1
        if there[match.target] < 0:
            lacking.append(match)
    return lacking


def _places(
    lacking: Sequence[_Lacking], results: Sequence[SegmentResult], segments: Sequence[TextSegment], plan: Plan
) -> list[list[_Place]]:
    """Return the candidate places of each term in its hypothesis, with their evidence."""
    outputs = [results[term.i].texts[term.rank] for term in lacking]
    src, tgt = [segments[term.i].search.ids for term in lacking], plan.tgt_tokenizer.encode(outputs)
    sources = [(segments[term.i].text, term.match) for term in lacking]
    without_term = plan.src_tokenizer.encode(
        [" ".join((text[: m.start] + text[m.start + len(m.source) :]).split()) for text, m in sources]
    )
    batch_tokens = plan.search.decode.batch_tokens
    whole = plan.reader.read(list(zip(src, tgt, strict=True)), batch_tokens, attention=True)
    erased = plan.reader.read(list(zip(without_term, tgt, strict=True)), batch_tokens)
    places: list[list[_Place]] = []
    for term, text, ids, with_term, without in zip(lacking, outputs, tgt, whole, erased, strict=True):
        segment = segments[term.i]
        if with_term is None or without is None:  # out of memory
            places.append([])
            continue
        evidence = _evidence(segment, term.match, _Readings(text, ids, with_term, without), plan)
        places.append(_possible(text, evidence, segment, plan))
    # the model scores the translation with the term in each place
    flat = [(k, place) for k, candidates in enumerate(places) for place in candidates]
    texts = [place.changed(outputs[k], lacking[k].match.target) for k, place in flat]
    pairs = [(src[k], ids) for (k, _), ids in zip(flat, plan.tgt_tokenizer.encode(texts), strict=True)]
    worth: list[list[_Place]] = [[] for _ in lacking]
    for (k, place), read in zip(flat, plan.reader.read(pairs, batch_tokens), strict=True):
        if read is not None:
            worth[k].append(place._replace(worth=place.worth + read.log_prob))
    return worth


class _Readings(NamedTuple):
    """A translation, scored with its source and with the source without a term."""

    text: str
    ids: Sequence[int]
    whole: Read
    erased: Read


def _evidence(segment: TextSegment, match: Match, readings: _Readings, plan: Plan) -> list[float]:
    """Return for each word of a translation the evidence (0 or more) that it translates the term."""
    text, whole = readings.text, readings.whole
    reader = plan.reader
    numbers = word_numbers(text, reader.tgt_unspaced)
    tgt_words = words_of_tokens(plan.tgt_tokenizer, readings.ids, text, numbers)
    src_numbers = [-1] * len(segment.text)
    src_numbers[match.start : match.start + len(match.source)] = [0] * len(match.source)
    of_term = words_of_tokens(plan.src_tokenizer, segment.search.ids, segment.text, src_numbers)
    assert whole.attention is not None  # requested
    attended = attention_to(whole.attention, [bool(words) for words in of_term], tgt_words)
    lost = [0.0] * len(attended)
    for token, words in enumerate(tgt_words):
        for word in words:
            lost[word] += whole.log_probs[token] - readings.erased.log_probs[token]
    sizes = [core(text, *span) for span in word_spans(text, reader.tgt_unspaced)]
    return [
        max(0.0, nats) * (share + ATTENTION_FLOOR) * (1 if reader.tgt_unspaced else min(CONTENT, end - start)) / CONTENT
        for nats, share, (start, end) in zip(lost, attended, sizes, strict=True)
    ]


def _possible(text: str, evidence: Sequence[float], segment: TextSegment, plan: Plan) -> list[_Place]:
    """Return candidate places: one or several words, but not of the prefix, nor of terms that are already there."""
    unspaced = plan.reader.tgt_unspaced
    first = len(segment.constraints.prefix) if segment.constraints is not None else 0
    own = [match.target for match in (plan.glossary.find(segment.text) if plan.glossary is not None else ())]
    own = [term for term in own if count_word(text, term)]
    cores = [core(text, *span) for span in word_spans(text, unspaced)]
    free = []
    for amount, (start, end) in zip(evidence, cores, strict=True):
        word_text = text[start:end]
        taken = start < first or start == end or any(term in word_text or word_text in term for term in own)
        free.append(0.0 if taken else amount)
    top = max(free, default=0.0)
    places: dict[tuple[int, int], _Place] = {}
    for word in sorted(range(len(free)), key=lambda k: -free[k])[:PLACES]:
        if not free[word] or free[word] < LEAST_SHARE * top:
            continue
        low = high = word
        content = _beside(word, free, cores, 0.0, unspaced)
        while content and low > 0 and _beside(low - 1, free, cores, top, unspaced):
            low -= 1
        while content and high + 1 < len(free) and _beside(high + 1, free, cores, top, unspaced):
            high += 1
        for begin, last in {(word, word), (low, high)}:
            share = min(1.0, sum(free[begin : last + 1]) / top)
            cost = 0.0 if unspaced else WORD_COST * (last - begin)
            places[begin, last] = _Place(cores[begin][0], cores[last][1], EVIDENCE * math.log(share) - cost)
    return list(places.values())


def _beside(word: int, free: Sequence[float], cores: Sequence[tuple[int, int]], top: float, unspaced: bool) -> bool:
    """True if a word next to a candidate may belong to it."""
    start, end = cores[word]
    return free[word] >= NEIGHBOUR_SHARE * top and (unspaced or end - start >= CONTENT)
