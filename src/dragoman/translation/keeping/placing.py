"""Replaces the words that render a glossary's source terms by its target terms.

A line is first translated without its glossary. If the translation lacks a term, ``rendering`` names the runs of words
that may render the source term, and the term replaces the best. Then the words around are scored: if they are much less
probable than before, a search with the terms as lexical constraints may do better. It is taken if it has all terms,
leaves none of the replaced words, loses no others, and is more probable. Such a search also places terms that no run of
words renders.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import replace
from itertools import compress
from typing import TYPE_CHECKING, NamedTuple

from dragoman.decoding.request import Hypothesis, scored
from dragoman.languages.known import known
from dragoman.languages.words import count_word, whole_places
from dragoman.translation.keeping.glossary import Glossary, Match, count_term
from dragoman.translation.keeping.places import closed_places, in_subwords
from dragoman.translation.keeping.rendering import COHERENCE, Readings, Run, cores, evidence, owners, runs, with_article
from dragoman.translation.plan import Plan
from dragoman.translation.scoring import words_of_tokens
from dragoman.translation.segments import SegmentResult, TextSegment, texts_of

if TYPE_CHECKING:
    from dragoman.decoding.scoring import Read

MOST_FALL = 15.0
"""Nats that the words around a placed term may lose: right placings lose less in 98 of 100 cases.

See ``benchmarks/questions/glossary_weights.py``.
"""

MOST_PLACED = 100
"""Largest number of ids of words that a constrained search must place: its time grows with their square."""

MOST_REPLACING = 1_500
"""Largest number of bytes of terms that replace words of one translation.

The model reads the new text in one piece, in memory that grows with the square of its tokens. Notes name other terms.
"""


class _Lacking(NamedTuple):
    """A term that a hypothesis lacks."""

    i: int  # index of the segment
    rank: int  # of the hypothesis among the n best
    match: Match


class _Placed(NamedTuple):
    """A hypothesis with terms in the places of the words that rendered them."""

    text: str
    hypothesis: Hypothesis
    replaced: tuple[Run, ...]  # in the old text
    fall: float  # nats that the other words lost, for each term


def place_terms(results: list[SegmentResult], segments: Sequence[TextSegment], plan: Plan) -> None:
    """Put the glossary's terms into translations that lack them; notes name the remaining ones later.

    Args:
        results: Result of each segment; changed in place.
    """
    if plan.glossary is None:
        return
    before = list(results)
    placed = _replace_words(results, segments, plan, plan.glossary)
    for (i, rank), new in placed.items():
        results[i] = _with_text(results[i], rank, new)
    doubtful = [i for (i, rank), new in placed.items() if rank == 0 and new.fall > MOST_FALL]
    without_place = [
        i for i, (segment, result) in enumerate(zip(segments, results, strict=True))
        if segment.constraints is not None and result.texts and segment.constraints.unplaced(result.texts[0])
    ]  # fmt: skip
    for i, searched in _searched(sorted({*doubtful, *without_place}), segments, plan).items():
        if i in without_place or _is_better(searched, placed[i, 0], before[i].texts[0], segments[i]):
            results[i] = replace(results[i], hypotheses=searched.hypotheses, texts=searched.texts)


def _searched(indices: Sequence[int], segments: Sequence[TextSegment], plan: Plan) -> dict[int, SegmentResult]:
    """Translate segments again with their terms as lexical constraints, unless there are too many."""
    again = {}
    for i in indices:
        constraints = segments[i].constraints
        if constraints is not None and constraints.with_terms.room <= MOST_PLACED:  # notes name the other terms
            again[i] = replace(segments[i].search, rules=constraints.with_terms)
    if not again:
        return {}
    searched = plan.constrained.engine.search(list(again.values()), plan.constrained.settings)
    return {
        i: SegmentResult(tuple(hypotheses), tuple(texts_of(hypotheses, plan.tgt_tokenizer)))
        for i, hypotheses in zip(again, searched.hypotheses, strict=True)
        if hypotheses
    }


def _is_better(searched: SegmentResult, placed: _Placed, before: str, segment: TextSegment) -> bool:
    """True if a searched translation is more probable than the placed one, has all terms, and neither leaves nor loses.

    A replaced word must not stand in it oftener than in the placed one. Of the other words, one for each term may be
    missing, for it may be a word that the placed one left.
    """
    text, best = searched.texts[0], searched.hypotheses[0]
    if segment.constraints is None or segment.constraints.unplaced(text) or best.score <= placed.hypothesis.score:
        return False
    replaced = {word for run in placed.replaced for word in before[run.start : run.end].split()}
    if any(count_word(text, word) > count_word(placed.text, word) for word in replaced):
        return False
    missing = Counter(_words(placed.text)) - Counter(_words(text))
    return missing.total() <= len(placed.replaced)


def _words(text: str) -> list[str]:
    """Return the words of a text without the marks around them, or its characters, as ``cores`` cuts it."""
    return [text[start:end] for start, end in cores(text, unspaced=" " not in text)]


def _replace_words(
    results: Sequence[SegmentResult], segments: Sequence[TextSegment], plan: Plan, glossary: Glossary
) -> dict[tuple[int, int], _Placed]:
    """Replace words by terms, for terms that words render; return the changed hypotheses by segment and rank."""
    lacking = [
        _Lacking(i, rank, match)
        for i, (segment, result) in enumerate(zip(segments, results, strict=True))
        for rank, text in enumerate(result.texts)
        for match in absent(glossary, segment.text, text)
    ]
    chosen: dict[tuple[int, int], list[tuple[Run, str]]] = {}
    whole, places = _places(lacking, results, segments, plan)
    for term, possible in zip(lacking, places, strict=True):
        taken = chosen.setdefault((term.i, term.rank), [])
        if sum(len(target.encode()) for target in (term.match.target, *(other for _, other in taken))) > MOST_REPLACING:
            continue
        free = (run for run in sorted(possible, key=lambda run: -run.log_odds)
                if all(run.end <= other.start or other.end <= run.start for other, _ in taken))  # fmt: skip
        taken += [(run, term.match.target) for run in [*free][:1]]
    chosen = {key: sorted(replacements) for key, replacements in chosen.items() if replacements}
    texts = [_changed(results[i].texts[rank], chosen[i, rank]) for i, rank in chosen]
    ids = plan.tgt_tokenizer.encode([text for text, _ in texts])
    if (longest := plan.search.longest) is not None:
        fits = [len(new) < longest for new in ids]
        chosen, texts, ids = dict(compress(chosen.items(), fits)), [*compress(texts, fits)], [*compress(ids, fits)]
    reads = plan.reader.read(
        [(segments[i].search.ids, new) for (i, _), new in zip(chosen, ids, strict=True)],
        plan.search.decode.batch_tokens,
        [segments[i].search for i, _ in chosen],
    )
    placed = {}
    for key, (text, spans), new, read in zip(chosen, texts, ids, reads, strict=True):
        if read is not None:
            replaced = tuple(run for run, _ in chosen[key])
            nats = around(results[key[0]].texts[key[1]], [(run.start, run.end) for run in replaced], *whole[key], plan)
            fall = (nats - around(text, spans, new, read, plan)) / len(replaced)
            placed[key] = _Placed(text, scored(new, read.log_prob, plan.search.penalty), replaced, fall)
    return placed


def _changed(text: str, replacements: Sequence[tuple[Run, str]]) -> tuple[str, list[tuple[int, int]]]:
    """Return a text with terms in the places of runs, and start and end of each term in it."""
    spans, shift = [], 0
    changed = text
    for run, target in replacements:
        start = run.start + shift
        changed = changed[:start] + target + changed[run.end + shift :]
        spans.append((start, start + len(target)))
        shift += len(target) - (run.end - run.start)
    return changed, spans


def around(text: str, spans: Sequence[tuple[int, int]], ids: Sequence[int], read: Read, plan: Plan) -> float:
    """Return the log-probability of the tokens outside some spans of a translation, eos included."""
    numbers = [0] * len(text)
    for start, end in spans:
        numbers[start:end] = [1] * (end - start)
    words = words_of_tokens(plan.tgt_tokenizer, ids, text, numbers)
    inside = [1 in its_words for its_words in words]
    return sum(log_prob for log_prob, within in zip(read.log_probs, [*inside, False], strict=True) if not within)


def _with_text(result: SegmentResult, rank: int, new: _Placed) -> SegmentResult:
    """Return the result with another text and hypothesis at this rank."""
    texts, hypotheses = list(result.texts), list(result.hypotheses)
    texts[rank], hypotheses[rank] = new.text, new.hypothesis
    return replace(result, texts=tuple(texts), hypotheses=tuple(hypotheses))


def absent(glossary: Glossary, src: str, translation: str) -> list[Match]:
    """Return the terms that a translation has less often than its source, the last of equal ones."""
    matches = glossary.find(src)
    there = {target: count_term(translation, target) for target in {match.target for match in matches}}
    lacking = []
    for match in matches:
        there[match.target] -= 1
        if there[match.target] < 0:
            lacking.append(match)
    return lacking


def _places(
    lacking: Sequence[_Lacking], results: Sequence[SegmentResult], segments: Sequence[TextSegment], plan: Plan
) -> tuple[dict[tuple[int, int], tuple[Sequence[int], Read]], list[list[Run]]]:
    """Return the reading of each hypothesis with its source, and the runs of words that may render each term.

    The log-odds of a run include how well the translation without it fits the source without the term.
    """
    keys = list(dict.fromkeys((term.i, term.rank) for term in lacking))
    ids = dict(zip(keys, plan.tgt_tokenizer.encode([results[i].texts[rank] for i, rank in keys]), strict=True))
    src, batch_tokens = {i: segments[i].search.ids for i, _ in keys}, plan.search.decode.batch_tokens
    searches = {i: segments[i].search for i, _ in keys}
    reads = plan.reader.read(
        [(src[i], ids[i, rank]) for i, rank in keys], batch_tokens, [searches[i] for i, _ in keys], attention=True
    )
    whole: dict[tuple[int, int], tuple[Sequence[int], Read]]
    whole = {key: (ids[key], read) for key, read in zip(keys, reads, strict=True) if read is not None}
    texts = [part for term in lacking for part in parts(segments[term.i].text, term.match)]
    pairs = zip(plan.src_tokenizer.encode(texts), [term for term in lacking for _ in range(2)], strict=True)
    split = plan.reader.read(
        [(part, ids[term.i, term.rank]) for part, term in pairs], batch_tokens,
        [searches[term.i] for term in lacking for _ in range(2)],
    )  # fmt: skip
    possible: list[list[Run]] = []
    for term, erased, alone in zip(lacking, split[::2], split[1::2], strict=True):
        key = term.i, term.rank
        if key not in whole or erased is None or alone is None:  # out of memory, or cancelled
            possible.append([])
            continue
        text = results[term.i].texts[term.rank]
        words = words_of_tokens(plan.tgt_tokenizer, ids[key], text, owners(text, plan.direction.tgt_unspaced))
        possible.append(_runs(term, segments[term.i], Readings(text, words, whole[key][1], erased, alone), plan))
    # the model reads what is left without each run, if there are several
    flat = [(k, run) for k, some in enumerate(possible) for run in some if len(some) > 1]
    left = [without(results[lacking[k].i].texts[lacking[k].rank], run.start, run.end) for k, run in flat]
    sources = plan.src_tokenizer.encode(texts[::2])
    rest = [(sources[k], own) for (k, _), own in zip(flat, plan.tgt_tokenizer.encode(left), strict=True)]
    weighed: list[list[Run]] = [some if len(some) == 1 else [] for some in possible]
    own_searches = [searches[lacking[k].i] for k, _ in flat]
    for (k, run), read in zip(flat, plan.reader.read(rest, batch_tokens, own_searches), strict=True):
        if read is not None:
            key = lacking[k].i, lacking[k].rank
            nats = around(results[key[0]].texts[key[1]], [(run.start, run.end)], *whole[key], plan)
            weighed[k].append(run._replace(log_odds=run.log_odds + COHERENCE * (read.log_prob - nats)))
    return whole, weighed


def parts(text: str, match: Match) -> tuple[str, str]:
    """Return a source without a term, and the term alone."""
    return without(text, match.start, match.start + len(match.source)), match.source


def without(text: str, start: int, end: int) -> str:
    """Return a text without some of its characters, and without the spaces that would be too many."""
    return " ".join((text[:start] + text[end:]).split())


def _runs(term: _Lacking, segment: TextSegment, readings: Readings, plan: Plan) -> list[Run]:
    """Return runs of words that may render a term, but none of the prefix, nor of terms that are already there."""
    match, text, unspaced = term.match, readings.text, plan.direction.tgt_unspaced
    numbers = [-1] * len(segment.text)
    numbers[match.start : match.start + len(match.source)] = [0] * len(match.source)
    of_term = [bool(words) for words in words_of_tokens(plan.src_tokenizer, segment.search.ids, segment.text, numbers)]
    by_word = evidence(readings, of_term, unspaced)
    first = len(segment.constraints.prefix) if segment.constraints is not None else 0
    targets = {other.target for other in (plan.glossary.find(segment.text) if plan.glossary is not None else ())}
    held = [span for target in targets for span in occurrences(text, target)]
    spans = cores(text, unspaced)
    log_odds = [
        float("-inf") if start < first or any(start < stop and begin < end for begin, stop in held) else word.log_odds
        for word, (start, end) in zip(by_word, spans, strict=True)
    ]
    articles, free = _articles(plan.tgt_lang), [span for span, odds in zip(spans, log_odds, strict=True)
                                                if span[0] < span[1] and odds > float("-inf")]  # fmt: skip
    own_article = _begins_with(match.source, _articles(plan.src_lang)) or _begins_with(match.target, articles)
    possible: dict[tuple[int, int], Run] = {}
    closed = closed_places(text, held) | in_subwords(text, plan.tgt_tokenizer.encode([text])[0], plan.tgt_tokenizer)
    for run in runs(log_odds, spans, unspaced, closed if unspaced else ()):
        run = with_article(run, text, free, articles, own_article)
        possible.setdefault((run.start, run.end), run)  # the best comes first
    return list(possible.values())


def _articles(lang: str | None) -> frozenset[str]:
    """Return the articles of a language, as far as they are known."""
    return frozenset(known(lang).articles.split())


def _begins_with(term: str, articles: Collection[str]) -> bool:
    """True if a term of several words begins with an article."""
    first, *others = term.lower().split() or [""]
    return bool(others) and first in articles


def occurrences(text: str, term: str) -> list[tuple[int, int]]:
    """Return start and end of each place where a term stands by itself."""
    return [(start, start + len(term)) for start in whole_places(text, term)]
