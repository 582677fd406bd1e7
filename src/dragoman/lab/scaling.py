"""Measure scores with and without the division by sqrt(d_k): variance, entropy and gradient (section 3.2.1)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch

from dragoman.config import ModelConfig
from dragoman.explanation.figures import Chart, Curve, curves
from dragoman.explanation.style import PALE, SERIES
from dragoman.lab.experiment import Claim, Findings, Lab, Section, Table
from dragoman.model.attention import MultiHeadAttention
from dragoman.reference import Array

N_KEYS = 64
SIGMAS = (0.5, 1.0, 2.0)  # standard deviations of the components of queries and keys


def variances(widths: list[int], sigma: float, n: int, rng: np.random.Generator) -> list[dict[str, float]]:
    """Measure the variance of ``q . k`` over ``n`` random pairs of each width; ``sigma`` is that of a component."""
    rows = []
    for d_k in widths:
        q, k = rng.normal(0, sigma, (2, n, d_k))
        products = (q * k).sum(axis=1)
        squares = products**2  # the variance is their mean, because the mean product is 0
        rows.append({
            "d_k": d_k, "sigma": sigma, "measured": float(squares.mean()),
            "standard_error": float(squares.std() / math.sqrt(n)),
            "d_k sigma^2": d_k * sigma**2, "d_k sigma^4": d_k * sigma**4,
        })  # fmt: skip
    return rows


def softmax_gradients(w: Array, k: Array, factor: float) -> tuple[Array, Array]:
    """Return the Frobenius norms of ``d w / d scores = diag(w) - w w^T`` and of ``d w / d q``, each ``(n,)``.

    Both have a closed form; row ``i`` of ``d w / d q`` is ``factor * w_i (k_i - mean)``.

    Args:
        w: Attention weights ``(n, K)``.
        k: Keys ``(K, d_k)``.
        factor: Factor on the products, ``1/sqrt(d_k)`` or 1.
    """
    second, third = (w**2).sum(axis=1), (w**3).sum(axis=1)
    by_score: Array = np.sqrt(np.maximum(second - 2 * third + second**2, 0))
    mean = w @ k  # (n, d_k)
    distance = (k**2).sum(axis=1) - 2 * mean @ k.T + (mean**2).sum(axis=1, keepdims=True)  # |k_i - mean|^2, (n, K)
    by_query: Array = factor * np.sqrt((w**2 * np.maximum(distance, 0)).sum(axis=1))
    return by_score, by_query


def saturation(d_k: int, scaled: bool, n: int, rng: np.random.Generator) -> dict[str, float]:
    """Measure the softmax over ``N_KEYS`` random keys for ``n`` random queries of unit variance.

    Args:
        d_k: Width of queries and keys.
        scaled: True divides the scores by ``sqrt(d_k)``.
        n: Number of queries.
        rng: Source of random numbers.

    Returns:
        Mean entropy in nats, mean greatest weight, and mean and median of ``softmax_gradients`` over the queries.
    """
    factor = 1 / math.sqrt(d_k) if scaled else 1.0
    q, k = rng.standard_normal((n, d_k)), rng.standard_normal((N_KEYS, d_k))
    scores = q @ k.T * factor
    exps = np.exp(scores - scores.max(axis=1, keepdims=True))
    w: Array = exps / exps.sum(axis=1, keepdims=True)  # (n, N_KEYS)
    entropy = -(w * np.log(np.maximum(w, 1e-300))).sum(axis=1)
    by_score, by_query = softmax_gradients(w, k, factor)
    return {
        "d_k": d_k,
        "entropy": float(entropy.mean()),
        "entropy_standard_error": float(entropy.std() / math.sqrt(n)),
        "greatest_weight": float(w.max(axis=1).mean()),
        "gradient_median": float(np.median(by_score)),
        "gradient_mean": float(by_score.mean()),
        "gradient_by_query_median": float(np.median(by_query)),
        "gradient_by_query_mean": float(by_query.mean()),
    }


@torch.no_grad()
def at_initialisation(d_k: int, d_model: int, seed: int) -> float:
    """Return the standard deviation of the undivided scores of our attention after initialisation.

    The inputs have mean 0 and variance 1, as after a layer norm.
    """
    torch.manual_seed(seed)
    config = ModelConfig(d_model=d_model, n_heads=d_model // d_k, src_vocab_size=10, tgt_vocab_size=10)
    attention = MultiHeadAttention(config)
    for matrix in (attention.w_q, attention.w_k):
        torch.nn.init.xavier_uniform_(matrix.weight)
        torch.nn.init.zeros_(matrix.bias)
    x = torch.nn.functional.layer_norm(torch.randn(1, 64, d_model), (d_model,))
    q, k = (matrix(x).unflatten(-1, (-1, d_k)).transpose(1, 2) for matrix in (attention.w_q, attention.w_k))
    return float((q @ k.mT).std())


def run(lab: Lab) -> Findings:
    """Run the experiment; claims: the variance is ``d_k sigma^4``; without division the softmax saturates."""
    widths = [4, 16, 64] if lab.quick else [4, 8, 16, 32, 64, 128, 256, 512, 1024]
    n, pairs = (500, 2000) if lab.quick else (4000, 10_000)
    rng = np.random.default_rng(1)
    variance = [row for sigma in SIGMAS for row in variances(widths, sigma, pairs, rng)]
    scaled, unscaled = (  # with the same queries and keys, because of the seed
        [saturation(d_k, divided, n, np.random.default_rng(d_k)) for d_k in widths] for divided in (True, False)
    )
    d_model = max(widths[-1], 64)
    fresh = [{"d_k": d_k, "standard_deviation": at_initialisation(d_k, d_model, 1)} for d_k in widths]
    numbers = {
        "n_keys": N_KEYS, "queries": n, "pairs": pairs, "variance": variance, "scaled": scaled, "unscaled": unscaled,
        "at_initialisation": fresh, "d_model": d_model,
    }  # fmt: skip
    return Findings(numbers, sections(numbers), verdict(numbers))


def verdict(numbers: dict[str, Any]) -> list[Claim]:
    """Return the claims of the experiment, each decided by the numbers of a run."""
    worst = max(abs(row["measured"] / row["d_k sigma^4"] - 1) for row in numbers["variance"])
    off = [abs(row["measured"] / row["d_k sigma^2"] - 1) for row in numbers["variance"] if row["sigma"] != 1]
    scaled, unscaled = numbers["scaled"], numbers["unscaled"]
    i_paper = _paper_width(numbers)
    entropies = [row["entropy"] for row in scaled]
    fresh = [row["standard_deviation"] / math.sqrt(row["d_k"]) for row in numbers["at_initialisation"]]

    def remaining(i: int, key: str) -> float:
        """Return a number without the division over the same with it, at the width of index ``i``."""
        return unscaled[i][key] / scaled[i][key]

    return [
        Claim(
            "The variance of q · k is d_k σ⁴, where components have variance σ²",
            worst < 0.1,
            f"measured over {numbers['pairs']:,} pairs: within {worst:.1%} for all {len(numbers['variance'])} cases",
        ),
        Claim(
            "It is d_k σ², as one of the five documents says",
            max(off) < 0.1,
            f"off by {min(off):.0%} to {max(off):.0%} unless σ = 1, where both are the same",
        ),
        Claim(
            "Divided by sqrt(d_k), the softmax is as soft at any width",
            max(entropies) - min(entropies) < 0.15,
            f"entropy {min(entropies):.2f} to {max(entropies):.2f} nats; {math.log(N_KEYS):.2f} would be uniform",
        ),
        Claim(
            "Not divided, it is sure of one key before it has learned anything",
            unscaled[i_paper]["greatest_weight"] > 0.7,
            f"at d_k = {scaled[i_paper]['d_k']} the greatest weight is {unscaled[i_paper]['greatest_weight']:.2f} "
            f"instead of {scaled[i_paper]['greatest_weight']:.2f}, entropy {unscaled[i_paper]['entropy']:.2f} nats",
        ),
        Claim(
            "Not divided, its gradient with respect to the scores vanishes in wide heads, for the median query",
            remaining(-1, "gradient_median") < 0.01,
            "over that of the divided one: "
            + ", ".join(
                f"{remaining(i, 'gradient_median'):.2g} at d_k = {scaled[i]['d_k']}"
                for i in range(i_paper, len(scaled))
            )
            + f"; so not yet at the paper's {scaled[i_paper]['d_k']}",
        ),
        Claim(
            "The gradient with respect to the query vanishes there too for the median query, but not in the mean",
            remaining(-1, "gradient_by_query_median") < 0.1 and remaining(-1, "gradient_by_query_mean") > 1,
            "; ".join(
                f"at d_k = {scaled[i]['d_k']} median {remaining(i, 'gradient_by_query_median'):.2g}, mean "
                f"{remaining(i, 'gradient_by_query_mean'):.2g} times that of the divided one"
                for i in (i_paper, len(scaled) - 1)
            ),
        ),
        Claim(
            "The assumption holds in a fresh model: scores have standard deviation sqrt(d_k)",
            all(abs(ratio - 1) < 0.15 for ratio in fresh),
            f"{min(fresh):.2f} to {max(fresh):.2f} times sqrt(d_k)",
        ),
    ]


def sections(numbers: dict[str, Any]) -> list[Section]:
    """Return the sections of the report, with figures and tables made from the numbers of a run."""
    return [
        Section(
            "Products of long vectors are large",
            [
                "q · k is a sum of d_k products. If components are independent with mean 0 and variance σ², one "
                "product has variance σ² · σ² = σ⁴, and the sum d_k σ⁴. The paper's footnote takes σ = 1 and gets "
                "d_k. One document says d_k σ², which is right for σ = 1 only.",
            ],
            curves([_variance_chart(numbers)], width=7.0, height=4.2),
            "variance",
            _variance_table(numbers),
            "Points: measured. Grey lines: d_k σ⁴. Dashed: d_k σ², which is the same where σ = 1.",
        ),
        Section(
            "Large scores make the softmax sure of itself",
            f"Random queries against {N_KEYS} random keys. Without the division the softmax of a wide head gives "
            "nearly all weight to one key before anything has been learned.",
            curves(
                [
                    _compared(numbers, "entropy", "How soft", f"entropy (nats); uniform: {math.log(N_KEYS):.2f}"),
                    _compared(numbers, "greatest_weight", "How sure", "greatest weight, mean"),
                ],
                width=3.9, height=3.0,
            ),
            "softness",
            caption="Entropy and greatest weight of the softmax. Divided by √d_k, both stay where they are.",
        ),
        _gradient_section(numbers),
        Section(
            "In a fresh model",
            f"Queries and keys of our own attention (d_model = {numbers['d_model']}, Xavier's initialisation, "
            "inputs as after a layer norm) do have unit variance, so its scores have the footnote's variance:",
            table=Table(
                ("d_k", "standard deviation of q · k", "over sqrt(d_k)"),
                [
                    (row["d_k"], row["standard_deviation"], row["standard_deviation"] / math.sqrt(row["d_k"]))
                    for row in numbers["at_initialisation"]
                ],
            ),
        ),
    ]  # fmt: skip


def _gradient_section(numbers: dict[str, Any]) -> Section:
    """Return the section on the gradient of a softmax that is sure of one key."""
    i = _paper_width(numbers)
    more = numbers["unscaled"][i]["gradient_by_query_median"] / numbers["scaled"][i]["gradient_by_query_median"]
    return Section(
        "And one that is sure of itself gets little gradient",
        [
            "The gradient of the weights with respect to the scores is diag(w) − w wᵀ, which is 0 where one weight "
            "is 1. Beyond d_k = 64, the paper's width, its size (Frobenius norm) falls steeply for the median query.",
            "With respect to the query, undivided scores add a factor √d_k: at d_k = "
            f"{numbers['scaled'][i]['d_k']} the undivided gradient of the median query is {more:.2g} times the "
            "divided one. In much wider heads it vanishes, but its mean does not: the few queries whose two best "
            "keys are close receive all of it. So the paper's 'extremely small gradients' are those of typical "
            "queries in wide heads.",
        ],
        curves(
            [
                _compared(numbers, f"gradient{by}_{of}", title, f"gradient w.r.t. {label} (log scale)", y_log=10)
                for by, label in (("", "scores"), ("_by_query", "query"))
                for of, title in (("median", "Median query"), ("mean", "Mean of all queries"))
            ],
            width=3.9, height=2.7,
        ),
        "gradients",
        caption="Size of the gradient of the softmax's weights, over the width of a head.",
    )  # fmt: skip


def _paper_width(numbers: dict[str, Any]) -> int:
    """Return the index of the width that is nearest to the paper's d_k = 64."""
    return min(range(len(numbers["scaled"])), key=lambda i: abs(numbers["scaled"][i]["d_k"] - 64))


def _variance_chart(numbers: dict[str, Any]) -> Chart:
    lines = []
    for sigma, colour in zip(SIGMAS, SERIES, strict=False):
        rows = [row for row in numbers["variance"] if row["sigma"] == sigma]
        widths, measured = [row["d_k"] for row in rows], [row["measured"] for row in rows]
        lines.append(Curve("", widths, [row["d_k sigma^4"] for row in rows], colour=PALE))
        lines.append(Curve(f"σ = {sigma:g}", widths, measured, colour=colour, points=True, line=False))
        if sigma != 1:
            wrong = [row["d_k sigma^2"] for row in rows]
            lines.append(Curve(f"d_k σ² for σ = {sigma:g}", widths, wrong, colour=colour, dashed=True))
    return Chart(lines, "d_k (log scale)", "variance of q · k (log scale)", "", x_log=2, y_log=10)


def _variance_table(numbers: dict[str, Any]) -> Table:
    keys = ("d_k", "sigma", "measured", "standard_error", "d_k sigma^4", "d_k sigma^2")
    return Table(
        ("d_k", "σ", "measured", "± (standard error)", "d_k σ⁴", "d_k σ²"),
        [tuple(row[key] for key in keys) for row in numbers["variance"] if row["d_k"] in (16, 64, 512)],
    )


def _compared(numbers: dict[str, Any], key: str, title: str, label: str, y_log: int = 0) -> Chart:
    """Draw one number with and without the division, over the width."""
    lines = [
        Curve(name, [row["d_k"] for row in numbers[kind]], [row[key] for row in numbers[kind]], points=True)
        for name, kind in (("÷ √d_k", "scaled"), ("not divided", "unscaled"))
    ]
    y_range = (None, None) if y_log else (0, None)
    return Chart(lines, "d_k (log scale)", label, title, x_log=2, y_log=y_log, y_range=y_range)
