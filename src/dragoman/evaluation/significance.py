"""Test whether the difference of two systems on a test set is significant, by two methods.

    compare(hyps_a, hyps_b, refs, "de")[0].verdict()

Both methods resample the counts of each sentence, and look at the difference of two corpus scores:

* paired bootstrap resampling (Koehn 2004, https://aclanthology.org/W04-3250) draws test sets from the sentences with
  replacement. It also gives the interval of the difference.
* paired approximate randomisation (Riezler and Maxwell 2005, https://aclanthology.org/W05-0908) exchanges the
  translations of random sentences between the systems. It seldom finds a difference where there is none, so it decides
  the verdict.

A p-value is two-sided: the probability that equally good systems differ at least as much, in either direction.
Identical translations have p = 1.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from dragoman.errors import DataError
from dragoman.evaluation.metrics import (
    Metric,
    References,
    Statistics,
    Texts,
    check_parallel,
    chunks,
    resamples,
    scores_of,
    select_metrics,
    sets_of,
)
from dragoman.evaluation.writing import writing_of

N_SAMPLES = 10_000
SEED = 12345
SIGNIFICANT = 0.05

SEGMENTS = "segment scores"

Formula = Callable[[Statistics], float]
"""Function from the summed counts of sentences to a score, such as ``Scorer.score``."""


class Comparison(NamedTuple):
    """Comparison of two systems by one metric."""

    metric: str
    a: float  # per cent
    b: float
    difference: float  # b - a
    low: float  # 95% bootstrap interval of the difference
    high: float
    p_bootstrap: float
    p_randomisation: float
    n_samples: int
    seed: int
    signature: str
    lower_is_better: bool = False

    @property
    def significant(self) -> bool:
        """True if the difference is significant at the level of 5% by approximate randomisation."""
        return self.p_randomisation < SIGNIFICANT

    @property
    def digits(self) -> int:
        """Number of digits to show after the decimal point; scores of sentences often lie between 0 and 1."""
        return 4 if self.metric == SEGMENTS else 2

    def verdict(self, a: str = "A", b: str = "B") -> str:
        """Return the result in one line; ``a`` and ``b`` are the names of the systems."""
        name = self.metric.partition(" (")[0]
        if not self.significant:
            return f"{name}: no difference shown between {a} and {b} (p = {self.p_randomisation:.2g})"
        b_is_better = (self.difference > 0) != self.lower_is_better
        better, worse = (b, a) if b_is_better else (a, b)
        by = f"{abs(self.difference):.{self.digits}f}"
        return f"{name}: {better} is better than {worse} by {by} (p = {self.p_randomisation:.2g})"

    def __str__(self) -> str:
        n = self.digits
        return (
            f"{self.metric}  A {self.a:.{n}f}  B {self.b:.{n}f}  B - A {self.difference:+.{n}f} "
            f"[{self.low:+.{n}f}, {self.high:+.{n}f}]  p = {self.p_randomisation:.4f} (approximate randomisation), "
            f"{self.p_bootstrap:.4f} (bootstrap), of {self.n_samples:,} samples each"
        )


def compare(
    hyps_a: Texts,
    hyps_b: Texts,
    refs: References,
    tgt_lang: str | None = None,
    metrics: Sequence[Metric] | None = None,
    n_samples: int = N_SAMPLES,
    seed: int = SEED,
) -> list[Comparison]:
    """Compare two systems by each metric.

    Args:
        hyps_a, hyps_b: Translations of the same lines.
        refs: Their references; or several such lists.
        metrics: Rows of ``metrics.METRICS``; None: the usual ones.
        n_samples: Number of samples of each method. No p-value is below ``1 / (n_samples + 1)``.
        seed: The same seed draws the same samples.

    Raises:
        DataError: The counts differ or there are none.
    """
    for hyps in (hyps_a, hyps_b):
        check_parallel(hyps, refs)
    comparisons, writing = [], writing_of(tgt_lang, refs)
    for metric in select_metrics() if metrics is None else metrics:
        scorer = metric.scorer(writing)
        a, b = (scorer.statistics(hyps, sets_of(refs)) for hyps in (hyps_a, hyps_b))
        comparison = _compared(metric.name, scorer.score, (a, b), n_samples, seed)
        signature = scorer.signature(None)
        comparisons.append(comparison._replace(signature=signature, lower_is_better=metric.lower_is_better))
    return comparisons


def _compared(
    name: str, score: Formula, systems: tuple[Statistics, Statistics], n_samples: int, seed: int
) -> Comparison:
    """Compare two systems by the counts of their sentences, which ``score`` makes a score of."""
    a, b = systems
    score_a, score_b = score(a.sum(0)), score(b.sum(0))
    low, high, p_bootstrap = bootstrap(score, a, b, n_samples, seed)
    p_randomisation = approximate_randomisation(score, a, b, n_samples, seed)
    return Comparison(
        name, score_a, score_b, score_b - score_a, low, high, p_bootstrap, p_randomisation, n_samples, seed, ""
    )


def compare_segments(
    a: Sequence[float], b: Sequence[float], n_samples: int = N_SAMPLES, seed: int = SEED
) -> Comparison:
    """Compare two systems by scores of their sentences, from any metric or from people; a system's score is the mean.

    Args:
        a, b: Scores of the same sentences in the same order; higher is better.

    Raises:
        DataError: The counts differ or there are none.
    """
    if len(a) != len(b):
        raise DataError(f"{len(a):,} scores but {len(b):,}: both systems must have a score for each sentence")
    if not a:
        raise DataError("there is nothing to compare: no scores")
    rows_a, rows_b = (np.array([[score, 1.0] for score in scores]) for scores in (a, b))
    return _compared(SEGMENTS, _mean, (rows_a, rows_b), n_samples, seed)._replace(signature="mean")


def _mean(sums: Statistics) -> float:
    """Return the mean of scores from their sum and their number."""
    return float(sums[0] / sums[1])


def bootstrap(score: Formula, a: Statistics, b: Statistics, n_samples: int, seed: int) -> tuple[float, float, float]:
    """Return the 95% interval of the difference ``b - a`` over test sets drawn with replacement, and its p-value.

    The p-value is twice the smaller fraction of samples on one side of zero. So it is below 5% where zero lies outside
    the interval.
    """
    drawn = [scores_of(score, n @ b) - scores_of(score, n @ a) for n in resamples(len(a), n_samples, seed)]
    differences = np.concatenate(drawn)
    low, high = np.percentile(differences, [2.5, 97.5]).tolist()
    smaller = min(int((differences <= 0).sum()), int((differences >= 0).sum()))
    return low, high, min(1.0, 2 * (smaller + 1) / (n_samples + 1))


def approximate_randomisation(score: Formula, a: Statistics, b: Statistics, n_samples: int, seed: int) -> float:
    """Return the fraction of random exchanges of translations with a difference at least as large as the real one."""
    rng = np.random.default_rng(seed)
    n, both = len(a), a.sum(0) + b.sum(0)
    of_a, of_b = score(a.sum(0)), score(b.sum(0))
    real, rounding = abs(of_b - of_a), 1e-9 * (abs(of_a) + abs(of_b))  # sums in another order round differently
    as_large = 0
    for size in chunks(n_samples, n):
        exchanged = rng.integers(2, size=(size, n)).astype(np.float64)  # (samples, sentences)
        # Exchanging a sentence adds b - a to the counts of one system and takes it from the other.
        mixed = a.sum(0) + exchanged @ (b - a)
        as_large += int((np.abs(scores_of(score, both - mixed) - scores_of(score, mixed)) >= real - rounding).sum())
    return (as_large + 1) / (n_samples + 1)
