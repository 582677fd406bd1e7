"""Quality of a translation in a word: good, doubtful or poor, from its confidence and its length.

quality_of(0.8, n_words=4)     # "doubtful": where one word of four is wrong, the sentence is wrong
of_text(["good", "poor"])      # "poor": a text is as good as its lines let it be

The confidence is an expected chrF. A reader sees a wrong word, whose weight in chrF falls with the length of the
sentence: so a short sentence needs a higher confidence than a long one. Text without spaces between its words has lower
chrF for the same quality (see benchmarks/results/newcomer/confidence_shares.json).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Literal, get_args

Quality = Literal["good", "doubtful", "poor"]
QUALITIES: tuple[Quality, ...] = get_args(Quality)

GOOD, POOR = 0.6, 0.4
"""A long sentence is good from the first confidence on, and poor below the second."""
SHORT_GOOD, SHORT_POOR = 0.5, 0.25
"""Added to ``GOOD`` and ``POOR`` for a sentence of one word; less for longer ones."""
MOST = 0.95
"""Highest confidence that is ever needed."""
SHORT_WORDS = 5
"""Number of words over which what is added falls to 1/e."""
UNSPACED = 0.55
"""Factor of both limits for languages without spaces between words, and characters of a word there."""
UNSPACED_WORD = 2

MOST_DOUBTFUL, MOST_POOR, POOR_TEXT = 0.2, 0.05, 0.25
"""A good text has at most these shares of doubtful or poor, and of poor lines; a poor one has more than the third."""


def quality_of(confidence: float, n_words: int, unspaced: bool = False) -> Quality:
    """Return the quality of a translation.

    Args:
        confidence: Expected chrF over 100; 0 where a fault is left.
        n_words: Words of the translation.
        unspaced: True if its language has no spaces between words.
    """
    short = math.exp(-(max(1, n_words) - 1) / SHORT_WORDS)
    factor = UNSPACED if unspaced else 1.0
    if confidence >= factor * min(MOST, GOOD + SHORT_GOOD * short):
        return "good"
    return "doubtful" if confidence >= factor * (POOR + SHORT_POOR * short) else "poor"


def lowered(quality: Quality) -> Quality:
    """Return the next lower quality, that of a translation whose source has words that the model never saw.

    Their translation is a guess, which the confidence does not know: see benchmarks/results/newcomer/ready.json.
    """
    return QUALITIES[min(QUALITIES.index(quality) + 1, len(QUALITIES) - 1)]


def n_words_of(text: str, unspaced: bool = False) -> int:
    """Return the number of words of a text, estimated from its characters where there are no spaces."""
    return -(-len("".join(text.split())) // UNSPACED_WORD) if unspaced else len(text.split())


def of_text(qualities: Iterable[Quality | None]) -> Quality | None:
    """Return the quality of a text, document or file from that of its lines; None if none is known."""
    known = [quality for quality in qualities if quality is not None]
    return known[0] if len(known) == 1 else of_counts(Counter(known))


def of_counts(counts: Mapping[Quality, int]) -> Quality | None:
    """Return the quality of a text whose lines were counted."""
    total = sum(counts.values())
    if not total:
        return None
    poor, doubtful = counts.get("poor", 0) / total, counts.get("doubtful", 0) / total
    if poor > POOR_TEXT:
        return "poor"
    return "good" if poor <= MOST_POOR and poor + doubtful <= MOST_DOUBTFUL else "doubtful"


def in_words(counts: Mapping[Quality, int]) -> str:
    """Return how many lines are of which quality, and the quality of all: one line; "" if none is known."""
    whole = of_counts(counts)
    if whole is None:
        return ""
    parts = ", ".join(f"{counts.get(quality, 0):,} {quality}" for quality in QUALITIES)
    return f"quality: {parts} (estimated); {whole} on the whole"
