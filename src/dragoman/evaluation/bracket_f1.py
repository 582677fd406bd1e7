"""Bracket F1 of a test set of trees, with its interval."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dragoman.evaluation.metrics import BOOTSTRAP_SAMPLES, Score
from dragoman.parsing.brackets import count_all, score
from dragoman.parsing.trees import Tree

SIGNATURE = "as EVALB with COLLINS.prm, punctuation by the gold tags"
PAPER_F1 = 91.3
"""Bracket F1 in per cent of the paper's Transformer on section 23 of the Wall Street Journal (Table 4, WSJ only)."""


def bracket_scores(golds: Sequence[Tree], parses: Sequence[Tree], seed: int = 1) -> list[Score]:
    """Return F1 with its 95% bootstrap interval, precision, recall and exact match.

    Raises:
        DataError: See ``dragoman.parsing.brackets.count_all``.
    """
    counts = count_all(golds, parses)
    brackets = score(counts)
    chance, n = np.random.default_rng(seed), len(counts)
    samples = [score(counts[chance.integers(0, n, n)]).f1 for _ in range(BOOTSTRAP_SAMPLES)]
    low, high = (float(value) for value in np.percentile(samples, [2.5, 97.5]))
    return [
        Score("bracket F1", brackets.f1, SIGNATURE, low, high),
        Score("precision", brackets.precision, SIGNATURE),
        Score("recall", brackets.recall, SIGNATURE),
        Score("exact match", brackets.exact, SIGNATURE),
    ]
