"""Quality estimation: the expected sentence chrF of a translation, over 100.

The log-probability of a translation is no measure of quality: it falls with length, and models are overconfident
(https://arxiv.org/abs/1706.04599). So, at the end of training, a linear regression learns the chrF of the validation
sentences from features that need no reference, such as those of https://arxiv.org/abs/2005.10608. A monotone curve
(isotonic regression) then maps its prediction to the mean chrF of such sentences. The curve is fitted by 5-fold
cross-validation, so that it is not overconfident itself. Applying both costs nothing.

If two sentences reach the model as one, it may drop the second and be as confident as before. Single validation
sentences do not show that, so they are also joined two by two. The loss in chrF of translations shorter than
nearly all of single sentences is subtracted. Hardly any single sentence is so short, so their confidence stays.

The numbers hold for text like the validation set, with the run's own search; on other text their order is still useful.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Self

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
"""Sign that each weight must have (0: any): likelier is never worse, more rare subwords are never better."""

MIN_SENTENCES = 100
"""Minimum number of translations to learn from."""

BIN_SENTENCES = 40
"""Minimum number of sentences for a point of the curve."""

_SHORT_SHARE = 0.05
"""Fraction of single sentences that are shorter for their source than ``usual_ratio``."""

_FOLDS = 5
_RIDGE = 1.0  # in sentences: shrinks the weights a little, as the features are correlated


def confidence_features(log_prob: float, n_tokens: int, n_src: int, n_rare: int) -> list[float]:
    """Return the ``FEATURES`` of a translation, which need no reference.

    Args:
        log_prob: Of the translation, in nats, eos included.
        n_tokens: Its subwords, eos counted; at least 1.
        n_src: Subwords of the source; at least 1.
        n_rare: Source subwords that are bytes or unknown: characters that were rare in training.
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
    said: tuple[float, ...] = Field(min_length=1)  # predictions of the regression, rising
    found: tuple[float, ...] = Field(min_length=1)  # mean chrF / 100 of sentences with these predictions, rising
    sentences: int = Field(ge=1)  # number that it was fitted to
    rank_correlation: float = Field(ge=-1, le=1)  # Spearman's, of chrF and cross-validated predictions
    usual_ratio: float = 0.0  # log_ratio that nearly all of these sentences reach
    shortfall: float = Field(default=0.0, ge=0)  # loss in chrF / 100 for each nat below ``usual_ratio``; 0: not learned

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
            BundleError: A number is missing or impossible; ``where`` names the bundle in the message.
        """
        try:
            return cls.model_validate(data)
        except ValidationError as error:
            wrong = refusals(error.errors(include_url=False), lambda path: f"{path[-1]} is unknown")
            raise BundleError(f"{where} cannot be used ({wrong}); train the run again") from None

    def of(self, rows: Sequence[Sequence[float]]) -> list[float]:
        """Return the confidence of translations, each in [0, 1], from their ``confidence_features``.

        Beyond its ends, the curve continues with the slope of the regression.
        """
        if not rows:
            return []
        x = np.asarray(rows)
        predicted = (x - self.centres) @ np.asarray(self.weights) + self.bias
        inside = predicted.clip(self.said[0], self.said[-1])
        expected = np.interp(inside, self.said, self.found) + predicted - inside
        expected -= self.shortfall * _below(x, self.usual_ratio)
        return [float(value) for value in expected.clip(0.0, 1.0)]


def fit(rows: Sequence[Sequence[float]], chrf: Sequence[float]) -> Confidence:
    """Fit a confidence to translations with references.

    Args:
        rows: Their ``confidence_features``.
        chrf: Their sentence chrF, in per cent.

    Raises:
        DataError: There are fewer than ``MIN_SENTENCES``.
    """
    if len(rows) < MIN_SENTENCES:
        raise DataError(f"a confidence needs at least {MIN_SENTENCES} translations, got {len(rows)}")
    x, y = np.asarray(rows, dtype=np.float64), np.asarray(chrf, dtype=np.float64) / 100
    # predictions for each fold come from a regression on the other folds: otherwise the curve would be too steep
    unseen = np.empty_like(y)
    for fold in range(_FOLDS):
        held = np.arange(len(y)) % _FOLDS == fold
        centres, weights, bias = _regression(x[~held], y[~held])
        unseen[held] = (x[held] - centres) @ weights + bias
    centres, weights, bias = _regression(x, y)
    predicted, observed = isotonic(unseen, y, max(1, len(y) // BIN_SENTENCES))
    return Confidence(
        centres=tuple(centres.tolist()),
        weights=tuple(weights.tolist()),
        bias=bias,
        said=tuple(predicted),
        found=tuple(observed),
        sentences=len(y),
        rank_correlation=spearman(unseen, y),
    )


def with_shortfall(
    confidence: Confidence, rows: Sequence[Sequence[float]], joined: Sequence[Sequence[float]], chrf: Sequence[float]
) -> Confidence:
    """Return the confidence with ``shortfall``, learned from translations that lost a part of their source.

    Args:
        confidence: Result of ``fit``.
        rows: Features that it was fitted to.
        joined: Features of translations of several sentences that were translated as one.
        chrf: Their sentence chrF, in per cent.
    """
    usual = float(np.quantile(np.asarray(rows)[:, FEATURES.index("log_ratio")], _SHORT_SHARE))
    below = _below(np.asarray(joined, dtype=np.float64).reshape(-1, len(FEATURES)), usual)
    excess = np.asarray(confidence.of(joined)) - np.asarray(chrf, dtype=np.float64) / 100
    slope = float(below @ excess) / (float(below @ below) + _RIDGE / len(rows))  # least squares through the origin
    return confidence.model_copy(update={"usual_ratio": usual, "shortfall": max(0.0, slope)})


def _below(x: Floats, usual: float) -> Floats:
    """Return how much shorter translations are than usual for their source, in nats of the ratio; at least 0."""
    return np.maximum(0.0, usual - x[:, FEATURES.index("log_ratio")])


def _regression(x: Floats, y: Floats) -> tuple[Floats, Floats, float]:
    """Return centres, weights and bias of a ridge regression; constant features and wrong signs get weight 0."""
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
    """Return the points of a rising curve through ``y`` over ``x``: means of ``n_bins`` parts, pooled if they fall.

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


def pearson(x: Sequence[float] | Floats, y: Sequence[float] | Floats) -> float:
    """Return the linear correlation; 0 if one side is constant."""
    a, b = (np.asarray(values, dtype=np.float64) for values in (x, y))
    a, b = a - a.mean(), b - b.mean()
    size = math.sqrt(float(a @ a) * float(b @ b))
    return float(np.clip(a @ b / size, -1.0, 1.0)) if size > 0 else 0.0


def spearman(x: Sequence[float] | Floats, y: Sequence[float] | Floats) -> float:
    """Return the correlation of ranks; equal values share their mean rank."""
    return pearson(_ranks(x), _ranks(y))


def _ranks(values: Sequence[float] | Floats) -> Floats:
    _, where, counts = np.unique(np.asarray(values, dtype=np.float64), return_inverse=True, return_counts=True)
    ends = np.cumsum(counts).astype(np.float64)
    return (ends - (counts - 1) / 2)[where.ravel()]
