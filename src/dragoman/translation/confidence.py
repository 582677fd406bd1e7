"""How good a translation is likely to be: the chrF that its sentence may be expected to have, over 100.

A search knows how likely the model thinks its translation. That is no measure of quality yet: it falls with length, and
models are surer than they should be (https://arxiv.org/abs/1706.04599). So, at the end of training, a linear
regression learns the chrF of the sentences of the validation set from what is known without a reference, such as the
indicators of https://arxiv.org/abs/2005.10608; and a monotone curve (isotonic regression) turns what it says into what
sentences like these had on average. The curve is fitted to what each fifth of the sentences is given by a regression
that has not seen it, so that it is not too sure of itself. All is plain numbers, and applying them costs nothing.

Where two sentences reach the model as one, it may drop the second and be as sure as ever. Validation sentences do not
show that, so they are also joined two by two: what a translation that is shorter than nearly all of single sentences
lacked there is taken off here. Of single sentences hardly one is so short, so theirs stays as it is.

It holds for text like the validation set's, with the run's own search; on other text the order is still of use.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from dragoman.errors import BundleError, DataError
from dragoman.options import refusals

Floats = NDArray[np.float64]

FEATURES = (
    "log_prob_per_token", "token_probability", "log_prob_per_root", "log_length", "log_ratio", "rare_share",
)  # fmt: skip

_SIGNS = np.array([1, 1, 1, 0, 0, -1])
"""More likely is never worse, more rare pieces never better: that holds on text unlike any that was learned from."""

MIN_SENTENCES = 100
"""Minimum number of translations to learn from."""

BIN_SENTENCES = 40
"""Minimum number of sentences for a point of the curve."""

_SHORT_SHARE = 0.05
"""Of single sentences, how many are shorter for their source than ``usual_ratio``."""

_FOLDS = 5
_RIDGE = 1.0  # in sentences: shrinks the weights a little, for the features say much the same


def confidence_features(log_prob: float, n_tokens: int, n_src: int, n_rare: int) -> list[float]:
    """What is known of a translation without a reference, in the order of ``FEATURES``.

    Args:
        log_prob: Of the translation, in nats, eos included.
        n_tokens: Its subwords, eos counted; at least 1.
        n_src: Subwords of the source; at least 1.
        n_rare: How many of these are bytes or unknown: characters that were hardly ever seen in training.
    """
    mean = log_prob / n_tokens
    root = log_prob / math.sqrt(n_tokens)
    return [mean, math.exp(mean), root, math.log(n_tokens), math.log(n_tokens / (n_src + 1)), n_rare / n_src]


class Confidence(BaseModel):
    """A fitted regression and its curve."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    centres: tuple[float, ...] = Field(min_length=len(FEATURES), max_length=len(FEATURES))
    weights: tuple[float, ...] = Field(min_length=len(FEATURES), max_length=len(FEATURES))
    bias: float
    said: tuple[float, ...] = Field(min_length=1)  # what the regression says, rising
    found: tuple[float, ...] = Field(min_length=1)  # the mean chrF / 100 of such sentences, rising
    sentences: int = Field(ge=1)  # that it was fitted to
    rank_correlation: float = Field(ge=-1, le=1)  # Spearman's, of sentences with a regression that had not seen them
    usual_ratio: float = 0.0  # the log_ratio that nearly all of these sentences reach
    shortfall: float = Field(default=0.0, ge=0)  # what each nat below it takes off; 0: not learned

    @model_validator(mode="after")
    def _rising(self) -> Self:
        if len(self.said) != len(self.found):
            raise ValueError("said and found must be as many")
        if np.any(np.diff(self.said) <= 0) or np.any(np.diff(self.found) < 0):
            raise ValueError("said and found must rise")
        return self

    @classmethod
    def from_mapping(cls, data: Any, where: str) -> Self:
        """Check the numbers of a bundle.

        Raises:
            BundleError: They are none that ``fit`` makes; ``where`` is what they are called.
        """
        try:
            return cls.model_validate(data)
        except ValidationError as error:
            wrong = refusals(error.errors(include_url=False), lambda path: f"{path[-1]} is unknown")
            raise BundleError(f"{where} cannot be used ({wrong}); train the run again") from None

    def of(self, rows: Sequence[Sequence[float]]) -> list[float]:
        """The confidence of translations, each in [0, 1], from their ``confidence_features``.

        Beyond the ends of the curve it continues with the slope of the regression.
        """
        if not rows:
            return []
        x = np.asarray(rows)
        said = (x - self.centres) @ np.asarray(self.weights) + self.bias
        inside = said.clip(self.said[0], self.said[-1])
        expected = np.interp(inside, self.said, self.found) + said - inside
        expected -= self.shortfall * _below(x, self.usual_ratio)
        return [float(value) for value in expected.clip(0.0, 1.0)]


def fit(rows: Sequence[Sequence[float]], chrf: Sequence[float]) -> Confidence:
    """Learn from translations whose references are known.

    Args:
        rows: Their ``features``.
        chrf: Their sentence chrF, in per cent.

    Raises:
        DataError: There are fewer than ``MIN_SENTENCES``.
    """
    if len(rows) < MIN_SENTENCES:
        raise DataError(f"a confidence is learned from {MIN_SENTENCES} translations or more, and here are {len(rows)}")
    x, y = np.asarray(rows, dtype=np.float64), np.asarray(chrf, dtype=np.float64) / 100
    unseen = np.empty_like(y)
    for fold in range(_FOLDS):
        held = np.arange(len(y)) % _FOLDS == fold
        centres, weights, bias = _regression(x[~held], y[~held])
        unseen[held] = (x[held] - centres) @ weights + bias
    centres, weights, bias = _regression(x, y)
    said, found = isotonic(unseen, y, max(1, len(y) // BIN_SENTENCES))
    return Confidence(
        centres=tuple(centres.tolist()),
        weights=tuple(weights.tolist()),
        bias=bias,
        said=tuple(said),
        found=tuple(found),
        sentences=len(y),
        rank_correlation=spearman(unseen, y),
    )


def with_shortfall(
    confidence: Confidence, rows: Sequence[Sequence[float]], joined: Sequence[Sequence[float]], chrf: Sequence[float]
) -> Confidence:
    """The same, having learned what a translation lacks that is short for its source.

    Args:
        confidence: As ``fit`` makes it.
        rows: What it was fitted to.
        joined: The features of translations of several sentences that were searched as one.
        chrf: Their sentence chrF, in per cent.
    """
    usual = float(np.quantile(np.asarray(rows)[:, FEATURES.index("log_ratio")], _SHORT_SHARE))
    below = _below(np.asarray(joined, dtype=np.float64).reshape(-1, len(FEATURES)), usual)
    excess = np.asarray(confidence.of(joined)) - np.asarray(chrf, dtype=np.float64) / 100
    slope = float(below @ excess) / (float(below @ below) + _RIDGE / len(rows))  # least squares through the origin
    return confidence.model_copy(update={"usual_ratio": usual, "shortfall": max(0.0, slope)})


def _below(x: Floats, usual: float) -> Floats:
    """How much shorter translations are than usual for their source, in nats of the ratio; 0 where they are not."""
    return np.maximum(0.0, usual - x[:, FEATURES.index("log_ratio")])


def _regression(x: Floats, y: Floats) -> tuple[Floats, Floats, float]:
    """Ridge regression on features of equal spread; one that does not vary, or has the wrong sign, gets no weight."""
    centres, scales = x.mean(axis=0), x.std(axis=0)
    used = scales > 1e-9
    weights = np.zeros(x.shape[1])
    while used.any():
        z = (x[:, used] - centres[used]) / scales[used]
        weights[:] = 0.0
        weights[used] = np.linalg.solve(z.T @ z + _RIDGE * np.eye(z.shape[1]), z.T @ (y - y.mean())) / scales[used]
        wrong = weights * _SIGNS < 0
        if not wrong.any():
            break
        used &= ~wrong
    return centres, np.where(used, weights, 0.0), float(y.mean())


def isotonic(x: Floats, y: Floats, n_bins: int) -> tuple[list[float], list[float]]:
    """Points of a rising curve through ``y`` over ``x``: means of ``n_bins`` equal parts, pooled where they fall.

    Pool adjacent violators, for calibration as in Zadrozny and Elkan 2002 (https://doi.org/10.1145/775047.775151).
    """
    order = np.argsort(x, kind="stable")
    points: list[tuple[float, float, int]] = []  # mean x, mean y, how many
    for part in np.array_split(order, n_bins):
        point = (float(x[part].mean()), float(y[part].mean()), len(part))
        while points and (point[1] <= points[-1][1] or point[0] <= points[-1][0]):
            before = points.pop()
            n = before[2] + point[2]
            mean_x, mean_y = ((before[i] * before[2] + point[i] * point[2]) / n for i in (0, 1))
            point = (mean_x, mean_y, n)
        points.append(point)
    return [point[0] for point in points], [point[1] for point in points]


class Bin(NamedTuple):
    """Translations of like confidence."""

    sentences: int
    confidence: float  # their mean
    chrf: float  # the mean of their sentence chrF, over 100
    low: float  # 95% interval of that mean
    high: float


def reliability(confidence: Sequence[float], chrf: Sequence[float], n_bins: int = 10) -> list[Bin]:
    """Sort translations by confidence, cut them into ``n_bins`` equal parts, and compare what was said and found.

    Args:
        confidence: In [0, 1].
        chrf: Sentence chrF, in per cent.
    """
    said, found = np.asarray(confidence, dtype=np.float64), np.asarray(chrf, dtype=np.float64) / 100
    bins = []
    for part in np.array_split(np.argsort(said, kind="stable"), min(n_bins, len(said))):
        mean, n = float(found[part].mean()), len(part)
        half = 1.96 * float(found[part].std(ddof=1)) / math.sqrt(n) if n > 1 else 0.0
        bins.append(Bin(n, float(said[part].mean()), mean, mean - half, mean + half))
    return bins


def calibration_error(bins: Sequence[Bin]) -> float:
    """The mean distance of what was said from what was found, over equal bins: expected calibration error."""
    return sum(b.sentences * abs(b.confidence - b.chrf) for b in bins) / sum(b.sentences for b in bins)


def pearson(x: Sequence[float] | Floats, y: Sequence[float] | Floats) -> float:
    """Linear correlation; 0 where one of the two does not vary."""
    a, b = (np.asarray(values, dtype=np.float64) for values in (x, y))
    a, b = a - a.mean(), b - b.mean()
    size = math.sqrt(float(a @ a) * float(b @ b))
    return float(np.clip(a @ b / size, -1.0, 1.0)) if size > 0 else 0.0


def spearman(x: Sequence[float] | Floats, y: Sequence[float] | Floats) -> float:
    """Correlation of ranks; equal values share the mean of theirs."""
    return pearson(_ranks(x), _ranks(y))


def _ranks(values: Sequence[float] | Floats) -> Floats:
    _, where, counts = np.unique(np.asarray(values, dtype=np.float64), return_inverse=True, return_counts=True)
    ends = np.cumsum(counts).astype(np.float64)
    return (ends - (counts - 1) / 2)[where.ravel()]
