"""The experiments attention and scaling: each closed form beside a plain one, each claim able to fail."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from dragoman.lab import attention, scaling
from dragoman.lab.experiment import Lab
from dragoman.reference import attend


def verdict(found: object) -> dict[str, bool | None]:
    return {claim.text: claim.holds for claim in found.verdict}  # type: ignore[attr-defined]


def test_the_steps_are_those_of_the_reference() -> None:
    steps = attention.step_by_step(np.random.default_rng(1))
    everyone = np.ones((1, 1), dtype=np.bool_)
    context, weights = attend(steps.q[None], steps.k[None], steps.v[None], everyone)
    np.testing.assert_allclose(steps.context, context[0], atol=1e-14)
    np.testing.assert_allclose(steps.weights, weights[0], atol=1e-14)


def test_a_short_query_finds_all_alike_and_a_long_one_the_best() -> None:
    steps = attention.step_by_step(np.random.default_rng(1))
    weights = attention.sharpened(steps)
    np.testing.assert_allclose(weights[0], 0.2, atol=0.02)
    assert weights[-1].argmax() == steps.scores[0].argmax()
    assert weights[-1].max() > 0.8


def test_only_an_encoder_without_positions_is_blind_to_order() -> None:
    gaps = {name: attention.order_matters(*variant, n_layers=1) for name, variant in attention.VARIANTS.items()}
    assert gaps["no positions"]["greatest"] < 1e-12
    assert all(gap["mean"] > 0.01 for name, gap in gaps.items() if name != "no positions")


def test_attention_claims_hold(tmp_path: Path) -> None:
    found = attention.run(Lab(tmp_path, quick=True))
    assert all(verdict(found).values())
    assert len(found.verdict) == 6


def test_the_softmax_gradients_are_the_norms_of_the_jacobians() -> None:
    rng = np.random.default_rng(2)
    k, factor = rng.standard_normal((6, 5)), 0.3
    w = rng.dirichlet(np.ones(6), size=4)
    by_score, by_query = scaling.softmax_gradients(w, k, factor)
    stacked = scaling.softmax_gradients(np.stack([w, w]), np.stack([k, k]), factor)
    assert all(np.allclose(both, alone) for both, alone in zip(stacked, (by_score, by_query), strict=True))
    for i, row in enumerate(w):
        jacobian = np.diag(row) - np.outer(row, row)
        assert by_score[i] == pytest.approx(np.linalg.norm(jacobian))
        assert by_query[i] == pytest.approx(np.linalg.norm(jacobian @ k * factor))


@pytest.mark.parametrize("sigma", [0.5, 2.0])
def test_the_variance_of_a_product_is_d_k_times_the_fourth_power(sigma: float) -> None:
    (row,) = scaling.variances([32], sigma, 20_000, np.random.default_rng(3))
    assert abs(row["measured"] - 32 * sigma**4) < 5 * row["standard_error"]
    assert abs(row["measured"] - 32 * sigma**2) > 20 * row["standard_error"]


def test_undivided_scores_saturate_and_divided_ones_do_not() -> None:
    wide, narrow = (scaling.saturation(d_k, 64, True, 600) for d_k in (1024, 4))
    assert abs(wide["entropy"] - narrow["entropy"]) < 0.2
    undivided = scaling.saturation(1024, 64, False, 600)
    assert undivided["entropy"] < 0.3 < math.log(64) / 2 < wide["entropy"]
    assert undivided["gradient_median"] < 0.01 * wide["gradient_median"]
    assert undivided["gradient_by_query_mean"] > wide["gradient_by_query_mean"]  # the claim that it is lost in the mean
    # too would be wrong


def test_scaling_says_which_formula_is_wrong(tmp_path: Path) -> None:
    said = verdict(scaling.run(Lab(tmp_path, quick=True)))
    assert said["The variance of q · k is d_k σ⁴, where components have variance σ²"] is True
    assert said["It is d_k σ², as one of the five documents says"] is False


def test_the_number_of_keys_that_makes_no_difference_is_read_between_two_numbers() -> None:
    rows = {
        n: {"scaled": [{"gradient_median": 1.0}], "unscaled": [{"gradient_median": g}]}
        for n, g in ((4, 0.5), (16, 2.0))
    }
    numbers = {"widths": [64], "keys": [4, 16], "grid": {str(n): row for n, row in rows.items()}}
    assert scaling.even_at(numbers, 64) == pytest.approx(8)
    assert scaling.even_at({**numbers, "keys": [16]}, 64) is None
