"""Reliability of a confidence: predicted against true chrF in bins, and the expected calibration error."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np


class Bin(NamedTuple):
    """Translations of similar confidence."""

    sentences: int
    confidence: float  # their mean
    chrf: float  # the mean of their sentence chrF, over 100
    low: float  # 95% interval of that mean
    high: float


def reliability(confidence: Sequence[float], chrf: Sequence[float], n_bins: int = 10) -> list[Bin]:
    """Sort translations by confidence, cut them into ``n_bins`` equal parts, and compare predicted and true chrF.

    Args:
        confidence: In [0, 1].
        chrf: Sentence chrF, in per cent.
    """
    predicted, true = np.asarray(confidence, dtype=np.float64), np.asarray(chrf, dtype=np.float64) / 100
    bins = []
    for part in np.array_split(np.argsort(predicted, kind="stable"), min(n_bins, len(predicted))):
        mean, n = float(true[part].mean()), len(part)
        half = 1.96 * float(true[part].std(ddof=1)) / math.sqrt(n) if n > 1 else 0.0
        bins.append(Bin(n, float(predicted[part].mean()), mean, mean - half, mean + half))
    return bins


def calibration_error(bins: Sequence[Bin]) -> float:
    """Return the expected calibration error: the mean distance of predicted from true chrF, over bins."""
    return sum(b.sentences * abs(b.confidence - b.chrf) for b in bins) / sum(b.sentences for b in bins)
