"""Bracket F1 of a test set of trees, with its interval."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dragoman.evaluation.metrics import BOOTSTRAP_SAMPLES, Score
from dragoman.parsing.brackets import count_all, score
from dragoman.parsing.trees import Tree

SIGNATURE = "as EVALB with COLLINS.prm, punctuation by the gold tags"
PAPER_F1 = 91.3
"""Of the paper's Transformer on section 23 of the Wall Street Journal, trained on that treebank alone (Table 4)."""


def bracket_scores(golds: Sequence[Tree], founds: Sequence[Tree], seed: int = 1) -> list[Score]:
    """F1 with its 95% bootstrap interval, precision, recall and exact match.

    Raises:
        DataError: As ``dragoman.parsing.brackets.count_all``.
    """
    counts = count_all(golds, founds)
    found = score(counts)
    chance, n = np.random.default_rng(seed), len(counts)
    samples = [score(counts[chance.integers(0, n, n)]).f1 for _ in range(BOOTSTRAP_SAMPLES)]
    low, high = (float(value) for value in np.percentile(samples, [2.5, 97.5]))
    return [
        Score("bracket F1", found.f1, SIGNATURE, low, high),
        Score("precision", found.precision, SIGNATURE),
        Score("recall", found.recall, SIGNATURE),
        Score("exact match", found.exact, SIGNATURE),
    ]
