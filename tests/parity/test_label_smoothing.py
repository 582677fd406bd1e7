"""Three programs smooth labels in three ways; ours is that of Szegedy et al. and of torch."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from dragoman import reference as ref

V, PAD, RIGHT, EPSILON = 7, 0, 4, 0.1


def smoothed(right: float, other: float, padding: float) -> np.ndarray:
    """A target distribution over seven words."""
    target = np.full(V, other)
    target[PAD] = padding
    target[RIGHT] = right
    return target


SZEGEDY = smoothed(1 - EPSILON + EPSILON / V, EPSILON / V, EPSILON / V)
TENSOR2TENSOR = smoothed(1 - EPSILON, EPSILON / (V - 1), EPSILON / (V - 1))
ANNOTATED = smoothed(1 - EPSILON, EPSILON / (V - 2), 0.0)


def test_the_three_definitions_and_ours() -> None:
    logits = np.random.default_rng(1).normal(size=(1, 1, V)) * 3
    log_p = logits[0, 0] - np.log(np.exp(logits[0, 0]).sum())
    ours = ref.label_smoothed_loss(logits, np.array([[RIGHT]]), PAD, EPSILON)
    by_torch = F.cross_entropy(torch.from_numpy(logits[0]), torch.tensor([RIGHT]), label_smoothing=EPSILON)
    losses = [float(-(target * log_p).sum()) for target in (SZEGEDY, TENSOR2TENSOR, ANNOTATED)]
    assert ours == pytest.approx(losses[0], abs=1e-12) == pytest.approx(by_torch.item(), abs=1e-12)
    assert len({round(loss, 3) for loss in losses}) == 3
    for target in (SZEGEDY, TENSOR2TENSOR, ANNOTATED):
        assert target.sum() == pytest.approx(1)


def test_what_the_course_says_of_seven_words() -> None:
    targets = SZEGEDY, TENSOR2TENSOR, ANNOTATED
    assert [round(float(target[RIGHT]), 3) for target in targets] == [0.914, 0.9, 0.9]
    assert [round(float(target[1]), 4) for target in targets] == [0.0143, 0.0167, 0.02]


def test_the_annotated_transformers_norm_is_smaller_by_a_thousandth() -> None:
    x = torch.randn(5, 512, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    theirs = (x - x.mean(-1, keepdim=True)) / (x.std(-1, keepdim=True) + 1e-6)
    norm = F.layer_norm(x, (512,), eps=1e-6)
    torch.testing.assert_close(theirs / norm, torch.full_like(x, (511 / 512) ** 0.5), rtol=1e-5, atol=0)
