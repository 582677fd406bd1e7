"""Is one system better than another, or was it luck of this test set? Two answers for each metric.

Both work on what each sentence adds to a corpus score, as sacreBLEU counts it, and ask how the difference of two
corpus scores would scatter:

* paired bootstrap resampling (Koehn 2004, https://aclanthology.org/W04-3250): over other test sets like this one, drawn
  from its sentences with replacement. It also gives the interval of the difference.
* paired approximate randomisation (Riezler and Maxwell 2005, https://aclanthology.org/W05-0908): over chance, if the
  systems were equally good and their translations of a sentence could be exchanged. The verdict is by this one, which
  seldom sees a difference where there is none.

A p-value is two-sided: the chance of a difference as large as this, in either direction, between equally good systems.
Identical translations have p = 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dragoman.errors import DataError
from dragoman.evaluation.metrics import (
    OLD_STYLE,
    bleu_metric,
    chrf_metric,
    moses_tokens,
    ter_metric,
    token_metric,
)

N_SAMPLES = 10_000
SEED = 12345
SIGNIFICANT = 0.05
CHUNK_CELLS = 2**24  # of samples x sentences held at once

SEGMENTS = "segment scores"

Statistics = NDArray[np.float64]


class Comparison(NamedTuple):
    """Two systems by one metric: higher is better, but for TER."""

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

    @property
    def significant(self) -> bool:
        """Whether the difference is shown, at the level of 5%, by approximate randomisation."""
        return self.p_randomisation < SIGNIFICANT

    @property
    def digits(self) -> int:
        """How many digits after the point are worth showing: the scores of sentences often lie between 0 and 1."""
        return 4 if self.metric == SEGMENTS else 2

    def verdict(self, a: str = "A", b: str = "B") -> str:
        """One line in plain words; ``a`` and ``b`` are what the systems are called."""
        name = self.metric.partition(" (")[0]
        if not self.significant:
            return f"{name}: no difference shown between {a} and {b} (p = {self.p_randomisation:.2g})"
        b_is_better = (self.difference > 0) != (self.metric == "TER")
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
    hyps_a: Sequence[str],
    hyps_b: Sequence[str],
    refs: Sequence[str],
    tgt_lang: str | None = None,
    old_style: bool = False,
    n_samples: int = N_SAMPLES,
    seed: int = SEED,
) -> list[Comparison]:
    """Compare two systems by BLEU, chrF and TER; with ``old_style`` also by the BLEU of older papers.

    Args:
        hyps_a, hyps_b: Translations of the same lines.
        refs: Their references.
        n_samples: Of each of the two tests. No p-value is below ``1 / (n_samples + 1)``.
        seed: The same seed draws the same samples.

    Raises:
        ConfigError: ``old_style``, and sacremoses is not installed.
        DataError: The counts differ or there are none.
    """
    for hyps in (hyps_a, hyps_b):
        if len(hyps) != len(refs):
            raise DataError(f"{len(hyps):,} translations but {len(refs):,} references: they must be parallel")
    if not refs:
        raise DataError("there is nothing to compare: no lines")
    jobs: list[tuple[str, Any, Sequence[Sequence[str]]]] = [
        ("BLEU", bleu_metric(tgt_lang), (hyps_a, hyps_b, refs)),
        ("chrF2", chrf_metric(), (hyps_a, hyps_b, refs)),
        ("TER", ter_metric(tgt_lang), (hyps_a, hyps_b, refs)),
    ]
    if old_style:
        tokens = [moses_tokens(texts, tgt_lang or "en") for texts in (hyps_a, hyps_b, refs)]
        jobs.append((OLD_STYLE, token_metric(), tokens))
    return [_compared(name, metric, texts, n_samples, seed) for name, metric, texts in jobs]


def _compared(name: str, metric: Any, texts: Sequence[Sequence[str]], n_samples: int, seed: int) -> Comparison:
    a, b = (statistics(metric, hyps, texts[2]) for hyps in texts[:2])
    score_a, score_b = (_score(metric, each.sum(0)) for each in (a, b))
    low, high, p_bootstrap = bootstrap(metric, a, b, n_samples, seed)
    p_randomisation = approximate_randomisation(metric, a, b, n_samples, seed)
    signature = str(metric.get_signature())
    return Comparison(
        name, score_a, score_b, score_b - score_a, low, high, p_bootstrap, p_randomisation, n_samples, seed, signature
    )


def compare_segments(
    a: Sequence[float], b: Sequence[float], n_samples: int = N_SAMPLES, seed: int = SEED
) -> Comparison:
    """Compare two systems by what any metric, or people, say of each sentence; a system's score is the mean.

    Args:
        a, b: A number for each sentence, higher is better; number ``i`` of both is about the same sentence.

    Raises:
        DataError: The counts differ or there are none.
    """
    if len(a) != len(b):
        raise DataError(f"{len(a):,} scores but {len(b):,}: each must be of the same sentences")
    if not a:
        raise DataError("there is nothing to compare: no scores")
    metric = _Mean()
    one, other = (np.array([[score, 1.0] for score in scores]) for scores in (a, b))
    score_a, score_b = (_score(metric, each.sum(0)) for each in (one, other))
    low, high, p_bootstrap = bootstrap(metric, one, other, n_samples, seed)
    p = approximate_randomisation(metric, one, other, n_samples, seed)
    return Comparison(SEGMENTS, score_a, score_b, score_b - score_a, low, high, p_bootstrap, p, n_samples, seed, "mean")


class _Mean:
    """The mean of sentences' scores, of their sum and their number."""


def statistics(metric: Any, hyps: Sequence[str], refs: Sequence[str]) -> Statistics:
    """What each sentence adds to the corpus score, ``(sentences, counts)``: counts of n-grams, lengths, edits."""
    return np.array(metric._extract_corpus_statistics(list(hyps), [list(refs)]), dtype=np.float64)


def bootstrap(metric: Any, a: Statistics, b: Statistics, n_samples: int, seed: int) -> tuple[float, float, float]:
    """The 95% interval of the difference ``b - a`` over test sets drawn with replacement, and its p-value.

    The p-value belongs to the interval: it is below 5% where zero lies outside. Of the samples, the smaller share that
    lies on one side of zero, doubled.
    """
    rng = np.random.default_rng(seed)
    n = len(a)
    differences = np.empty(n_samples)
    for start, count in _chunks(n_samples, n):
        drawn = rng.integers(n, size=(count, n))
        often = np.stack([np.bincount(row, minlength=n) for row in drawn]).astype(np.float64)  # (samples, sentences)
        differences[start : start + count] = _scores(metric, often @ b) - _scores(metric, often @ a)
    low, high = np.percentile(differences, [2.5, 97.5]).tolist()
    smaller = min(int((differences <= 0).sum()), int((differences >= 0).sum()))
    return low, high, min(1.0, 2 * (smaller + 1) / (n_samples + 1))


def approximate_randomisation(metric: Any, a: Statistics, b: Statistics, n_samples: int, seed: int) -> float:
    """The share of random exchanges of the systems' translations that make a difference at least as large as theirs."""
    rng = np.random.default_rng(seed)
    n, both = len(a), a.sum(0) + b.sum(0)
    real = abs(_score(metric, b.sum(0)) - _score(metric, a.sum(0)))
    as_large = 0
    for _, count in _chunks(n_samples, n):
        exchanged = rng.integers(2, size=(count, n)).astype(np.float64)  # (samples, sentences)
        one = a.sum(0) + exchanged @ (b - a)
        as_large += int((np.abs(_scores(metric, both - one) - _scores(metric, one)) >= real).sum())
    return (as_large + 1) / (n_samples + 1)


def _chunks(n_samples: int, n: int) -> list[tuple[int, int]]:
    """Where each chunk of the samples starts, and how many it has."""
    size = max(1, CHUNK_CELLS // n)
    return [(start, min(size, n_samples - start)) for start in range(0, n_samples, size)]


def _scores(metric: Any, sums: Statistics) -> NDArray[np.float64]:
    """The corpus score of each row of summed statistics."""
    return np.array([_score(metric, row) for row in sums])


def _score(metric: Any, sums: NDArray[np.float64]) -> float:
    if isinstance(metric, _Mean):
        return float(sums[0] / sums[1])
    return float(metric._compute_score_from_stats([int(count) for count in sums]).score)
