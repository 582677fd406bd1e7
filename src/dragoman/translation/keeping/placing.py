"""Puts a glossary's terms where the words stand that they replace.

A line is translated without its glossary. Where the translation lacks a term, the words are looked for that render the
source term: the model reads the translation once more beside the whole source, and beside the source without the
term. What becomes unlikely without it (erasure, https://arxiv.org/abs/1612.08220), and attended to it, renders it. The
term takes the place of the likeliest such words; of several places the one is taken with which the model finds the
whole translation likeliest. So a term stands once, in its place, and not beside the word that it is to replace, as it
often does when a constrained search has to fit it in; that is left for terms for which no such word is found.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from dragoman.decoding.alignment import attention_to, token_words, word_numbers, word_spans
from dragoman.decoding.request import Hypothesis
from dragoman.decoding.scoring import Read
from dragoman.decoding.search import scored
from dragoman.languages.words import count_word
from dragoman.translation.keeping.glossary import Glossary, Match
from dragoman.translation.plan import Plan
from dragoman.translation.segments import SegmentResult, TextSegment, texts_of

PLACES = 3
"""Places that are tried for a term, each with and without the words beside it that may render it too."""

LEAST_SHARE = 0.1
NEIGHBOUR_SHARE = 0.5
"""A place is tried if it has this share of the best one's evidence, a word beside it if it has that of the best."""

WORD_COST = 3.0  # in nats: of each word more than one that a term replaces
EVIDENCE = 2.0  # in nats: what the logarithm of this share counts beside the log-probability of the translation
CONTENT = 4  # characters: shorter words, which are often articles and prepositions, count less as a rendering
ATTENTION_FLOOR = 0.05  # of a word that attends to other words all the same


class _Lacking(NamedTuple):
    """A term that a hypothesis lacks."""

    i: int  # of the segment
    rank: int  # of the hypothesis
    match: Match


class _Place(NamedTuple):
    """A place for a term: characters of the translation that it replaces."""

    start: int
    end: int
    worth: float  # what speaks for it, in nats

    def changed(self, text: str, term: str) -> str:
        """The translation with the term there."""
        return text[: self.start] + term + text[self.end :]


def place_terms(results: list[SegmentResult], segments: Sequence[TextSegment], plan: Plan) -> None:
    """Put the glossary's terms into the translations that lack them; changed in place. What fails, a note names later.

    Args:
        results: Of each of the ``segments``.
    """
    if plan.glossary is None:
        return
    _replace_words(results, segments, plan, plan.glossary)
    left = []
    for i, (segment, result) in enumerate(zip(segments, results, strict=True)):
        if segment.constraints is not None and result.texts and segment.constraints.unplaced(result.texts[0]):
            left.append((i, replace(segment.search, rules=segment.constraints.with_terms)))
    again = plan.constrained.engine.search([search for _, search in left], plan.constrained.settings)
    for (i, _), hypotheses in zip(left, again.hypotheses, strict=True):
        if hypotheses:
            texts = texts_of(hypotheses, plan.tgt_tokenizer)
            results[i] = replace(results[i], hypotheses=tuple(hypotheses), texts=tuple(texts))


def _replace_words(
    results: list[SegmentResult], segments: Sequence[TextSegment], plan: Plan, glossary: Glossary
) -> None:
    """Put terms in the places of words that render them, where such words are found."""
    lacking = [
        _Lacking(i, rank, match)
        for i, (segment, result) in enumerate(zip(segments, results, strict=True))
        for rank, text in enumerate(result.texts)
        for match in absent(glossary, segment.text, text)
    ]
    chosen: dict[tuple[int, int], list[tuple[_Place, str]]] = {}
    for one, places in zip(lacking, _places(lacking, results, segments, plan), strict=True):
        taken = chosen.setdefault((one.i, one.rank), [])
        free = (place for place in sorted(places, key=lambda place: -place.worth)
                if all(place.end <= other.start or other.end <= place.start for other, _ in taken))  # fmt: skip
        taken += [(place, one.match.target) for place in [*free][:1]]
    changed = {}
    for (i, rank), some in chosen.items():
        text = results[i].texts[rank]
        for place, term in sorted(some, reverse=True):
            text = place.changed(text, term)
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
    """The terms of a text that its translation has not got as often as the text, the last of equal ones."""
    matches = glossary.find(src)
    there = {match.target: count_word(translation, match.target) for match in matches}
    lacking = []
    for match in matches:
        there[match.target] -= 1
        if there[match.target] < 0:
            lacking.append(match)
    return lacking


def _places(
    lacking: Sequence[_Lacking], results: Sequence[SegmentResult], segments: Sequence[TextSegment], plan: Plan
) -> list[list[_Place]]:
    """The places that each term may take in its hypothesis, with what speaks for each."""
    said = [results[one.i].texts[one.rank] for one in lacking]
    src, tgt = [segments[one.i].search.ids for one in lacking], plan.tgt_tokenizer.encode(said)
    rests = [(segments[one.i].text, one.match) for one in lacking]
    rests_ids = plan.src_tokenizer.encode(
        [" ".join((text[: m.start] + text[m.start + len(m.source) :]).split()) for text, m in rests]
    )
    batch_tokens = plan.search.decode.batch_tokens
    whole = plan.reader.read(list(zip(src, tgt, strict=True)), batch_tokens, attention=True)
    erased = plan.reader.read(list(zip(rests_ids, tgt, strict=True)), batch_tokens)
    places: list[list[_Place]] = []
    for one, text, ids, with_term, without in zip(lacking, said, tgt, whole, erased, strict=True):
        segment = segments[one.i]
        if with_term is None or without is None:  # out of memory
            places.append([])
            continue
        evidence = _evidence(segment, one.match, _Readings(text, ids, with_term, without), plan)
        places.append(_possible(text, evidence, segment, plan))
    flat = [(k, place) for k, some in enumerate(places) for place in some]
    texts = [place.changed(said[k], lacking[k].match.target) for k, place in flat]
    pairs = [(src[k], ids) for (k, _), ids in zip(flat, plan.tgt_tokenizer.encode(texts), strict=True)]
    worth: list[list[_Place]] = [[] for _ in lacking]
    for (k, place), found in zip(flat, plan.reader.read(pairs, batch_tokens), strict=True):
        if found is not None:
            worth[k].append(place._replace(worth=place.worth + found.log_prob))
    return worth


class _Readings(NamedTuple):
    """A translation as the model reads it beside its source, and beside the source without a term."""

    text: str
    ids: Sequence[int]
    whole: Read
    erased: Read


def _evidence(segment: TextSegment, match: Match, readings: _Readings, plan: Plan) -> list[float]:
    """Return for each word of a translation how much speaks for its being a rendering of the term; 0 or more."""
    text, whole = readings.text, readings.whole
    reader = plan.reader
    numbers = word_numbers(text, reader.tgt_unspaced)
    tgt_words = token_words([plan.tgt_tokenizer.spelled[i] for i in readings.ids], text, numbers)
    src_numbers = [-1] * len(segment.text)
    src_numbers[match.start : match.start + len(match.source)] = [0] * len(match.source)
    of_term = token_words(reader.src_pieces(segment.search.ids), segment.text, src_numbers)
    assert whole.attention is not None  # it was asked for
    attended = attention_to(whole.attention, [bool(words) for words in of_term], tgt_words)
    lost = [0.0] * len(attended)
    for token, words in enumerate(tgt_words):
        for word in words:
            lost[word] += whole.log_probs[token] - readings.erased.log_probs[token]
    sizes = [_core(text, *span) for span in word_spans(text, reader.tgt_unspaced)]
    return [
        max(0.0, nats) * (share + ATTENTION_FLOOR) * (1 if reader.tgt_unspaced else min(CONTENT, end - start)) / CONTENT
        for nats, share, (start, end) in zip(lost, attended, sizes, strict=True)
    ]


def _possible(text: str, evidence: Sequence[float], segment: TextSegment, plan: Plan) -> list[_Place]:
    """One word or several of a translation that may render a term: not its prefix, nor terms that it has already."""
    unspaced = plan.reader.tgt_unspaced
    first = len(segment.constraints.prefix) if segment.constraints is not None else 0
    own = [match.target for match in (plan.glossary.find(segment.text) if plan.glossary is not None else ())]
    own = [term for term in own if count_word(text, term)]
    cores = [_core(text, *span) for span in word_spans(text, unspaced)]
    free = []
    for amount, (start, end) in zip(evidence, cores, strict=True):
        core = text[start:end]
        taken = start < first or start == end or any(term in core or core in term for term in own)
        free.append(0.0 if taken else amount)
    top = max(free, default=0.0)
    found: dict[tuple[int, int], _Place] = {}
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
            found[begin, last] = _Place(cores[begin][0], cores[last][1], EVIDENCE * math.log(share) - cost)
    return list(found.values())


def _beside(word: int, free: Sequence[float], cores: Sequence[tuple[int, int]], top: float, unspaced: bool) -> bool:
    """May a word beside a rendering be a part of it?"""
    start, end = cores[word]
    return free[word] >= NEIGHBOUR_SHARE * top and (unspaced or end - start >= CONTENT)


def _core(text: str, start: int, end: int) -> tuple[int, int]:
    """A word without the marks around it; nothing of one that is only marks."""
    inside = [k for k in range(start, end) if text[k].isalnum()]
    return (inside[0], inside[-1] + 1) if inside else (start, start)
