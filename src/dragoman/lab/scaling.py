"""Measure scores with and without the division by sqrt(d_k): variance, entropy and gradient (section 3.2.1)."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch

from dragoman.config import ModelConfig
from dragoman.explanation.figures import Chart, Curve, HeatMap, curves, heat_maps
from dragoman.explanation.style import PALE, SERIES
from dragoman.lab.experiment import Claim, Findings, Lab, Section, Table
from dragoman.model.attention import MultiHeadAttention
from dragoman.reference import Array

WIDTHS = (4, 8, 16, 32, 64, 128, 256, 512, 1024)
"""Widths of a head."""

KEYS = (5, 12, 25, 64, 256)
"""Numbers of keys: a phrase, a caption of Multi30k, a sentence of WMT, a paragraph, a page."""

SIGMAS = (0.5, 1.0, 2.0)
"""Standard deviations of the components of queries and keys."""

N_SETS = 20
"""Sets of random keys for each width, so that no result rests on one set."""


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
    """Return the Frobenius norms of ``d w / d scores = diag(w) - w w^T`` and of ``d w / d q``, each ``(..., n)``.

    Both have a closed form; row ``i`` of ``d w / d q`` is ``factor * w_i (k_i - mean)``.

    Args:
        w: Attention weights ``(..., n, K)``.
        k: Keys ``(..., K, d_k)``.
        factor: Factor on the products, ``1/sqrt(d_k)`` or 1.
    """
    second, third = (w**2).sum(axis=-1), (w**3).sum(axis=-1)
    by_score: Array = np.sqrt(np.maximum(second - 2 * third + second**2, 0))
    mean = w @ k  # (..., n, d_k)
    squares = (k**2).sum(axis=-1)[..., None, :]  # (..., 1, K)
    distance = squares - 2 * mean @ k.swapaxes(-1, -2) + (mean**2).sum(axis=-1, keepdims=True)  # |k_i - mean|^2
    by_query: Array = factor * np.sqrt((w**2 * np.maximum(distance, 0)).sum(axis=-1))
    return by_score, by_query


def saturation(d_k: int, n_keys: int, scaled: bool, n: int, seed: int = 0) -> dict[str, float]:
    """Measure the softmax over ``n_keys`` random keys for ``n`` random queries of unit variance.

    Args:
        d_k: Width of queries and keys.
        n_keys: Number of keys.
        scaled: True divides the scores by ``sqrt(d_k)``.
        n: Number of queries, spread over ``N_SETS`` sets of keys.
        seed: Seed of queries and keys; they are the same whether the scores are divided or not.

    Returns:
        Mean entropy in nats, mean greatest weight, and mean and median of ``softmax_gradients`` over the queries.
    """
    rng = np.random.default_rng([seed, d_k, n_keys])
    factor = 1 / math.sqrt(d_k) if scaled else 1.0
    q, k = rng.standard_normal((N_SETS, n // N_SETS, d_k)), rng.standard_normal((N_SETS, n_keys, d_k))
    scores = q @ k.swapaxes(-1, -2) * factor
    exps = np.exp(scores - scores.max(axis=-1, keepdims=True))
    w: Array = exps / exps.sum(axis=-1, keepdims=True)  # (N_SETS, n / N_SETS, n_keys)
    entropy = -(w * np.log(np.maximum(w, 1e-300))).sum(axis=-1)
    by_score, by_query = softmax_gradients(w, k, factor)
    return {
        "d_k": d_k,
        "entropy": float(entropy.mean()),
        "entropy_standard_error": float(entropy.mean(axis=1).std() / math.sqrt(N_SETS)),
        "greatest_weight": float(w.max(axis=-1).mean()),
        "gradient_median": float(np.median(by_score)),
        "gradient_mean": float(by_score.mean()),
        "gradient_by_query_median": float(np.median(by_query)),
        "gradient_by_query_mean": float(by_query.mean()),
    }


class Grid(NamedTuple):
    """The widths and numbers of keys at which the softmax is measured."""

    widths: Sequence[int] = WIDTHS
    keys: Sequence[int] = KEYS
    queries: int = 4000
    seed: int = 0


def measured(grid: Grid) -> dict[str, Any]:
    """Return ``saturation`` for each number of keys and width of a grid, divided ("scaled") and not ("unscaled")."""
    return {
        str(n_keys): {
            name: [saturation(d_k, n_keys, name == "scaled", grid.queries, grid.seed) for d_k in grid.widths]
            for name in ("scaled", "unscaled")
        }
        for n_keys in grid.keys
    }


def remaining(numbers: Mapping[str, Any], n_keys: int, d_k: int, gradient: str = "gradient_median") -> float:
    """Return a gradient without the division over the same with it."""
    place, of_keys = list(numbers["widths"]).index(d_k), numbers["grid"][str(n_keys)]
    return float(of_keys["unscaled"][place][gradient] / of_keys["scaled"][place][gradient])


def even_at(numbers: Mapping[str, Any], d_k: int) -> float | None:
    """Return the number of keys at which the division does not change the median query's gradient by the scores.

    It is interpolated in logarithms; None if the gradient is larger, or smaller, at all numbers of keys.
    """
    points = [(math.log(n_keys), math.log(max(remaining(numbers, n_keys, d_k), 1e-300))) for n_keys in numbers["keys"]]
    for (x, below), (x_next, above) in itertools.pairwise(points):
        if below < 0 <= above:
            return math.exp(x - below * (x_next - x) / (above - below))
    return None


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
    grid = Grid(widths=(4, 16, 64), keys=(5, 25, 64), queries=500) if lab.quick else Grid()
    pairs = 2000 if lab.quick else 10_000
    rng = np.random.default_rng(1)
    variance = [row for sigma in SIGMAS for row in variances(list(grid.widths), sigma, pairs, rng)]
    d_model = max(grid.widths[-1], 64)
    fresh = [{"d_k": d_k, "standard_deviation": at_initialisation(d_k, d_model, 1)} for d_k in grid.widths]
    numbers: dict[str, Any] = {
        "widths": grid.widths, "keys": grid.keys, "queries": grid.queries, "pairs": pairs, "variance": variance,
        "grid": measured(grid), "at_initialisation": fresh, "d_model": d_model,
    }  # fmt: skip
    numbers["even_at"] = {str(d_k): even_at(numbers, d_k) for d_k in grid.widths}
    return Findings(numbers, sections(numbers), verdict(numbers))


def verdict(numbers: Mapping[str, Any]) -> list[Claim]:
    """Return the claims of the experiment, each decided by the numbers of a run."""
    fresh = [row["standard_deviation"] / math.sqrt(row["d_k"]) for row in numbers["at_initialisation"]]
    return [
        *_variance_claims(numbers),
        *_softness_claims(numbers),
        *_gradient_claims(numbers),
        Claim(
            "The assumption holds in a fresh model: scores have standard deviation sqrt(d_k)",
            all(abs(ratio - 1) < 0.15 for ratio in fresh),
            f"{min(fresh):.2f} to {max(fresh):.2f} times sqrt(d_k)",
        ),
    ]


def _variance_claims(numbers: Mapping[str, Any]) -> list[Claim]:
    """Return the claims about the variance of ``q . k``."""
    worst = max(abs(row["measured"] / row["d_k sigma^4"] - 1) for row in numbers["variance"])
    off = [abs(row["measured"] / row["d_k sigma^2"] - 1) for row in numbers["variance"] if row["sigma"] != 1]
    return [
        Claim(
            "The variance of q · k is d_k σ⁴, where components have variance σ²",
            worst < 0.15,
            f"measured within {worst:.1%} in all {len(numbers['variance'])} cases",
        ),
        Claim(
            "It is d_k σ², as one of the five documents says",
            min(off) < 0.1,
            f"off by {min(off):.0%} to {max(off):.0%} unless σ = 1",
        ),
    ]


def _softness_claims(numbers: Mapping[str, Any]) -> list[Claim]:
    """Return the claims about entropy and greatest weight."""
    widest, paper, keys = numbers["widths"][-1], _paper_width(numbers), numbers["keys"]

    def at(kind: str, key: str) -> list[float]:
        """Return a number at the paper's width, for each number of keys."""
        place = list(numbers["widths"]).index(paper)
        return [numbers["grid"][str(n_keys)][kind][place][key] for n_keys in keys]

    spans = [
        max(entropies) - min(entropies)
        for n_keys in keys
        for entropies in [[row["entropy"] for row in numbers["grid"][str(n_keys)]["scaled"]]]
    ]
    sharp = at("unscaled", "greatest_weight")
    return [
        Claim(
            "Divided by sqrt(d_k), the softmax is as soft at any width",
            max(spans) < 0.15,
            f"from d_k = {numbers['widths'][0]} to {widest} the entropy differs by at most {max(spans):.2f} nats",
        ),
        Claim(
            "Not divided, it gives most of the weight to one key before it has learned anything",
            min(sharp) > 0.5,
            f"at d_k = {paper} the greatest weight is at least {min(sharp):.2f}, with any number of keys",
        ),
    ]


def _gradient_claims(numbers: Mapping[str, Any]) -> list[Claim]:
    """Return the claims about the gradient, which depends on the number of keys as much as on the width."""
    widest, paper, keys = numbers["widths"][-1], _paper_width(numbers), numbers["keys"]
    by_score = {d_k: [remaining(numbers, n_keys, d_k) for n_keys in keys] for d_k in (paper, widest)}
    by_query = {
        of: [remaining(numbers, n_keys, widest, f"gradient_by_query_{of}") for n_keys in keys]
        for of in ("median", "mean")
    }
    even = {d_k: n_keys for d_k in numbers["widths"] if (n_keys := even_at(numbers, d_k)) is not None}
    return [
        Claim(
            "Not divided, the gradient by the scores vanishes in wide heads, for the median query",
            max(by_score[widest]) < 0.05,
            f"at d_k = {widest} it is at most {max(by_score[widest]):.1g} times that of divided scores",
        ),
        Claim(
            f"At the paper's d_k = {paper} the number of keys decides: with few it shrinks, with many it grows",
            by_score[paper][0] < 0.5 and by_score[paper] == sorted(by_score[paper]) and by_score[paper][-1] > 1,
            f"{by_score[paper][0]:.2g} times that of divided scores with {keys[0]} keys, {by_score[paper][-1]:.2g} "
            f"times with {keys[-1]}",
        ),
        Claim(
            "The wider the head, the more keys it takes until the division no longer raises that gradient",
            len(even) > 1 and list(even.values()) == sorted(even.values()),
            _in_order(even),
        ),
        Claim(
            "Of the gradient by the query the mean stays in wide heads, while the median query's falls far below it",
            min(by_query["mean"]) > 1
            and all(median < mean / 10 for median, mean in zip(*by_query.values(), strict=True)),
            f"at d_k = {widest} the mean is {min(by_query['mean']):.2g} times that of divided scores or more, the "
            f"median {max(by_query['median']):.1g} or less",
        ),
    ]


def _in_order(even: Mapping[int, float]) -> str:
    """Return the numbers of keys of the narrowest and the widest head where both gradients are alike."""
    ends = list(even.items())
    return ", ".join(f"{n:.0f} keys at d_k = {d_k}" for d_k, n in (ends[:1] + ends[-1:])) or "at none of the widths"


def _paper_width(numbers: Mapping[str, Any]) -> int:
    """Return the width that is nearest to the paper's d_k = 64."""
    return min(numbers["widths"], key=lambda d_k: abs(int(d_k) - 64))


# --- the report -------------------------------------------------------------------------------------------------------

COLOUR_RANGE = 1.5
"""Powers of ten at which the colours of the map of gradients end."""


def sections(numbers: Mapping[str, Any]) -> list[Section]:
    """Return the sections of the report, with figures and tables made from the numbers of a run."""
    return [
        Section(
            "Products of long vectors are large",
            "",
            curves([_variance_chart(numbers)], width=7.0, height=4.2),
            "variance",
            _variance_table(numbers),
            f"Points: measured over {numbers['pairs']:,} pairs. Grey lines: d_k σ⁴. Dashed: d_k σ².",
        ),
        Section(
            "A sharp softmax",
            "",
            curves([_softness(numbers, "scaled", "Divided by √d_k"), _softness(numbers, "unscaled", "Not divided")],
                   width=3.6, height=3.0),
            "softness",
            caption="Greatest weight of the softmax, mean over random queries.",
        ),
        _gradient_section(numbers),
        Section(
            "By the number of keys",
            "",
            table=_by_keys(numbers),
            caption="Ratios: without the division over with it.",
        ),
    ]  # fmt: skip


def _gradient_section(numbers: Mapping[str, Any]) -> Section:
    """Return the section on the gradient of a softmax that is sure of one key."""
    return Section(
        "And its gradient",
        [
            "The gradient of the weights with respect to the scores is diag(w) − w wᵀ, which is 0 where one weight "
            "is 1. But it is also small where all weights are: divided scores over many keys give such weights.",
            "With respect to the query, in wide heads the few queries whose two "
            "best keys are close receive nearly all of the gradient. So the paper's 'extremely small gradients' are "
            "those of typical queries.",
        ],
        heat_maps(
            [
                _gradient_map(numbers, "gradient_median", "by the scores, median query"),
                _gradient_map(numbers, "gradient_by_query_median", "by the query, median query"),
            ],
            "keys", "d_k", "gradient, not divided / divided (power of ten)", limits=(-COLOUR_RANGE, COLOUR_RANGE),
            n_columns=1, cell=0.55, framed=True,
        ),
        "gradients",
        caption="Size of the softmax's gradient without the division, over that with it. Blue: the division raises it.",
    )  # fmt: skip


def _gradient_map(numbers: Mapping[str, Any], gradient: str, title: str) -> HeatMap:
    """Draw a ratio of gradients over keys and widths, coloured by its logarithm."""
    ratios = [[remaining(numbers, n_keys, d_k, gradient) for d_k in numbers["widths"]] for n_keys in numbers["keys"]]
    return HeatMap(
        np.clip(np.log10(ratios), -COLOUR_RANGE, COLOUR_RANGE), title, [str(n) for n in numbers["keys"]],
        [str(d_k) for d_k in numbers["widths"]], [[_short(ratio) for ratio in row] for row in ratios],
    )  # fmt: skip


def _short(ratio: float) -> str:
    """Return a ratio in at most five letters: 22, 2.8, .63, .013, <.001."""
    if ratio < 0.0005:
        return "<.001"
    form = ".3f" if ratio < 0.095 else ".2f" if ratio < 0.995 else ".1f" if ratio < 9.95 else ".0f"
    return format(ratio, form).removeprefix("0")


def _variance_chart(numbers: Mapping[str, Any]) -> Chart:
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


def _variance_table(numbers: Mapping[str, Any]) -> Table:
    keys = ("sigma", "measured", "d_k sigma^4", "d_k sigma^2")
    return Table(
        (f"σ, with d_k = {_paper_width(numbers)}", "measured", "d_k σ⁴", "d_k σ²"),
        [tuple(row[key] for key in keys) for row in numbers["variance"] if row["d_k"] == _paper_width(numbers)],
    )


def _by_keys(numbers: Mapping[str, Any]) -> Table:
    """Return greatest weights and ratios of gradients: a column for each number of keys."""
    keys, paper, widest = numbers["keys"], _paper_width(numbers), numbers["widths"][-1]
    place = list(numbers["widths"]).index(paper)
    weights = {
        f"greatest weight, d_k = {paper}, {name}": [
            f"{numbers['grid'][str(n_keys)][kind][place]['greatest_weight']:.2f}" for n_keys in keys
        ]
        for kind, name in (("scaled", "divided"), ("unscaled", "not divided"))
    }
    ratios = {
        f"gradient by the {name}, d_k = {d_k}": [_short(remaining(numbers, n, d_k, gradient)) for n in keys]
        for name, gradient, d_k in (
            ("scores", "gradient_median", paper),
            ("scores", "gradient_median", widest),
            ("query, median", "gradient_by_query_median", widest),
            ("query, mean", "gradient_by_query_mean", widest),
        )
    }
    return Table(("keys", *map(str, keys)), [(name, *row) for name, row in {**weights, **ratios}.items()])


def _softness(numbers: Mapping[str, Any], kind: str, title: str) -> Chart:
    """Draw the greatest weight over the width, a line for each number of keys."""
    lines = [
        Curve(f"{n_keys} keys", list(numbers["widths"]),
              [row["greatest_weight"] for row in numbers["grid"][str(n_keys)][kind]], points=True)
        for n_keys in numbers["keys"]
    ]  # fmt: skip
    return Chart(lines, "d_k (log scale)", "greatest weight", title, x_log=2, y_range=(0, 1.02))
