"""Finds the words of a translation that render a source term.

Three readings of the translation give the evidence: with the whole source, with the source without the term, and with
the term alone. A word of the rendering is likelier with the term alone than with the other words alone
(erasure, https://arxiv.org/abs/1612.08220), and attends to the term. ``WEIGHTS`` turn the evidence into the log-odds
that a word belongs to the rendering. The rendering is a run of words with a great sum, so a weak word between two
strong ones goes with both. ``COHERENCE`` weighs what is left: source and translation without the rendering must still
fit. Articles look at too many words for that, so where the language has them, they go with the term's own article.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, NamedTuple

from dragoman.decoding.alignment import attention_to
from dragoman.decoding.words import word_spans
from dragoman.languages.words import core

if TYPE_CHECKING:
    from dragoman.decoding.scoring import Read

PLACES = 4
"""Largest number of runs of words that are tried for a term."""

LONGEST = 12
"""Longest run in words; four times as many characters in a language without spaces."""

WEIGHTS = (-4.3, 0.7, 3.0, 4.0)
"""Log-odds: constant, nats won with the term alone, attention, attention over the largest."""

COHERENCE = 0.2
"""Weight of the nats of the translation without a run, read with the source without the term.

Both were learned from terms of Multi30k's validation set: see ``benchmarks/questions/glossary_weights.py``. 96 of 100
renderings of 1 to 4 words were found exactly, 80 by the log-odds alone.
"""

MOST_NATS = 6.0  # evidence beyond says no more

NEAR = 4.0  # in nats: runs with less of the sum of the best one are not tried


class Readings(NamedTuple):
    """A translation, read with its source, with the source without a term, and with the term alone."""

    text: str
    words: Sequence[Sequence[int]]  # the words that each token is a part of: see ``owners``
    whole: Read
    without: Read
    alone: Read


class Evidence(NamedTuple):
    """Evidence that one word of a translation belongs to the rendering of a term."""

    won: float  # nats that it has more with the term alone than without the term
    share: float  # of its attention, to the term
    of_top: float  # the same, over the largest share of any word

    @property
    def log_odds(self) -> float:
        """Log-odds that the word belongs to the rendering."""
        constant, *weights = WEIGHTS
        return constant + sum(weight * value for weight, value in zip(weights, self, strict=True))


class Run(NamedTuple):
    """Neighbouring words of a translation, as the characters from the first to the last without the marks around."""

    start: int
    end: int
    log_odds: float  # summed over its words

    def changed(self, text: str, term: str) -> str:
        """Return the translation with the term in this place."""
        return text[: self.start] + term + text[self.end :]


def evidence(readings: Readings, of_term: Sequence[bool], unspaced: bool) -> list[Evidence]:
    """Return the evidence for each word of the translation.

    Args:
        of_term: True for each source token that belongs to the term.
        unspaced: True for a target language without spaces, where each character is a word.
    """
    words, n_words = readings.words, len(cores(readings.text, unspaced))
    assert readings.whole.attention is not None  # requested
    shares = attention_to(readings.whole.attention, of_term, words)
    shares += [0.0] * (n_words - len(shares))
    won = [0.0] * n_words
    for token, its_words in enumerate(words):
        for word in its_words:
            won[word] += readings.alone.log_probs[token] - readings.without.log_probs[token]
    top = max(shares, default=0.0) or 1.0
    return [Evidence(max(-MOST_NATS, min(MOST_NATS, won[k])), share, share / top) for k, share in enumerate(shares)]


def owners(text: str, unspaced: bool) -> list[int]:
    """Return the number of the word of each character of a translation; -1 for spaces and marks.

    The mark at the end of a sentence says little about its last word.
    """
    numbers = [-1] * len(text)
    for number, (start, end) in enumerate(cores(text, unspaced)):
        numbers[start:end] = [number] * (end - start)
    return numbers


def runs(
    log_odds: Sequence[float], spans: Sequence[tuple[int, int]], unspaced: bool, closed: Collection[int] = ()
) -> list[Run]:
    """Return the runs of words with the greatest sums, best first, at most ``PLACES``.

    Args:
        log_odds: Of each word; -inf for one that must stay.
        spans: Start and end of each word.
        closed: Places where no run begins or ends.
    """
    longest = 4 * LONGEST if unspaced else LONGEST
    every = []
    for first in range(len(spans)):
        if spans[first][0] in closed:
            continue
        total = 0.0
        for last in range(first, min(first + longest, len(spans))):
            total += log_odds[last]
            if total == float("-inf") or spans[first][0] == spans[first][1]:
                break
            if spans[last][0] < spans[last][1] and spans[last][1] not in closed:
                every.append(Run(spans[first][0], spans[last][1], total))
    every.sort(key=lambda run: (-run.log_odds, run.start, run.end))
    return [run for run in every[:PLACES] if run.log_odds >= every[0].log_odds - NEAR]


def with_article(run: Run, text: str, free: Sequence[tuple[int, int]], articles: Collection[str], own: bool) -> Run:
    """Return a run with the article before it, or without the article that it begins with.

    Args:
        free: Start and end of each word that may be replaced.
        articles: Articles of the language; with none the run stays as it is.
        own: True if the term has an article too.
    """
    before, inside = [span for span in free if span[1] <= run.start], [span for span in free if span[0] >= run.start]
    has_article = bool(inside) and text[slice(*inside[0])].lower() in articles
    if own and not has_article and before and text[slice(*before[-1])].lower() in articles:
        between = text[before[-1][1] : run.start]
        return run._replace(start=before[-1][0]) if between.isspace() else run
    if not own and has_article and len(inside) > 1 and inside[1][0] < run.end:
        return run._replace(start=inside[1][0])
    return run


def cores(text: str, unspaced: bool) -> list[tuple[int, int]]:
    """Return start and end of each word without the marks around it; empty at its start if it has only marks."""
    return [core(text, *span) for span in word_spans(text, unspaced)]
