"""Compute attention step by step on five words, and show that it ignores their order (sections 3.2.1 and 3.5)."""

from __future__ import annotations

import itertools
import math
from typing import Any, NamedTuple

import numpy as np
import torch
from torch.nn import functional as F

from dragoman.explanation.figures import Bar, Bars, Chart, Curve, HeatMap, bars, curves, heat_maps, number
from dragoman.lab.experiment import Claim, Findings, Lab, Section, Table
from dragoman.reference import (
    Array,
    attend,
    causal_mask,
    child,
    encoder_layer,
    initialise,
    sinusoidal_positions,
)

WORDS = ("Tom", "hit", "Jerry", "very", "hard")
D_MODEL, D_K = 32, 8
SHARPNESS = np.geomspace(0.05, 6, 61)  # factors on the length of a query
VARIANTS = {  # encoders: kind of positions, and True for a causal mask
    "no positions": ("none", False),
    "no positions, causal mask": ("none", True),
    "rotary positions": ("rotary", False),
    "sinusoidal positions": ("sinusoidal", False),
}


class Steps(NamedTuple):
    """All values on the way from five words to five new vectors."""

    x: Array  # (5, d_model)
    q: Array  # (5, d_k)
    k: Array
    v: Array
    products: Array  # (5, 5), queries down, keys across
    scores: Array  # products / sqrt(d_k)
    weights: Array  # rows sum to 1
    context: Array  # (5, d_k)


def step_by_step(rng: np.random.Generator) -> Steps:
    """Compute one head on random word vectors, each step of Eq. (1) apart."""
    n = len(WORDS)
    x = rng.standard_normal((n, D_MODEL))
    w_q, w_k, w_v = rng.standard_normal((3, D_K, D_MODEL)) / math.sqrt(D_MODEL)
    q, k, v = x @ w_q.T, x @ w_k.T, x @ w_v.T
    products = q @ k.T
    scores = products / math.sqrt(D_K)
    exps = np.exp(scores - scores.max(axis=1, keepdims=True))
    weights = exps / exps.sum(axis=1, keepdims=True)
    return Steps(x, q, k, v, products, scores, weights, weights @ v)


def sharpened(steps: Steps) -> Array:
    """Return the weights of the first query when it is multiplied by each of ``SHARPNESS``: ``(len(SHARPNESS), 5)``."""
    q = SHARPNESS[:, None, None] * steps.q[:1]  # (N, 1, d_k)
    allowed = np.ones((1, 1), dtype=np.bool_)
    return attend(q, steps.k[None], steps.v[None], allowed)[1][:, 0]


def order_matters(positions: str, causal: bool, n_layers: int, seed: int = 0) -> dict[str, float]:
    """Measure how much the outputs of an encoder change when its five input words are reordered.

    Args:
        positions: "none", "rotary" or "sinusoidal".
        causal: True for a causal mask.
        n_layers: Number of encoder layers, with random weights.
        seed: Seed of the weights and words.

    Returns:
        The greatest and the mean of ``|f(permuted x) - permuted f(x)| / |f(x)|`` over all orders but the first.
    """
    config = dict(
        d_model=64, d_ff=256, n_heads=4, n_encoder_layers=n_layers, n_decoder_layers=0, src_vocab_size=10,
        tgt_vocab_size=10, share_embeddings="none", attention_bias=True, generator_bias=False, activation="relu",
        norm="post", norm_eps=1e-5, positions=positions, pad_id=0,
    )  # fmt: skip
    rng = np.random.default_rng(seed)
    params = initialise(config, rng)
    n = len(WORDS)
    words = rng.standard_normal((n, 64))
    orders = np.array(list(itertools.permutations(range(n))))  # (n!, n), the first one unchanged
    places = sinusoidal_positions(n, 64) if positions == "sinusoidal" else 0.0
    mask = causal_mask(n) if causal else np.ones((1, 1, 1, n), dtype=np.bool_)
    x: Array = words[orders] + places  # (n!, n, d_model)
    for i in range(n_layers):
        x, _ = encoder_layer(child(params, f"encoder.layers.{i}"), config, x, mask)
    expected = x[0][orders]
    gaps = np.linalg.norm(x - expected, axis=(1, 2))[1:] / np.linalg.norm(x[0])
    return {"greatest": float(gaps.max()), "mean": float(gaps.mean())}


def torch_gap(steps: Steps) -> float:
    """Return the greatest difference between our result and that of PyTorch's attention."""
    q, k, v = (torch.from_numpy(part)[None] for part in (steps.q, steps.k, steps.v))
    return float((F.scaled_dot_product_attention(q, k, v)[0] - torch.from_numpy(steps.context)).abs().max())


def run(lab: Lab) -> Findings:
    """Run the experiment; claims: weights are a distribution, outputs are means of values, attention ignores order."""
    steps = step_by_step(np.random.default_rng(1))
    lookup = sharpened(steps)
    n_layers = 1 if lab.quick else 6
    order = {name: order_matters(*variant, n_layers) for name, variant in VARIANTS.items()}
    outside = np.maximum(steps.context - steps.v.max(axis=0), steps.v.min(axis=0) - steps.context).max()
    numbers: dict[str, Any] = {
        "words": WORDS,
        "products": steps.products,
        "scores": steps.scores,
        "weights": steps.weights,
        "context": steps.context,
        "largest_error_of_a_row_sum": np.abs(steps.weights.sum(axis=1) - 1).max(),
        "furthest_outside_the_values": outside,
        "torch_gap": torch_gap(steps),
        "sharpness": SHARPNESS,
        "sharpened_weights": lookup,
        "order": order,
        "n_layers": n_layers,
    }
    return Findings(numbers, sections(numbers), verdict(numbers))


def verdict(numbers: dict[str, Any]) -> list[Claim]:
    """Return the claims of the experiment, each decided by the numbers of a run."""
    order = numbers["order"]
    blind, seeing = order["no positions"]["greatest"], order["sinusoidal positions"]["mean"]
    sums, outside = numbers["largest_error_of_a_row_sum"], numbers["furthest_outside_the_values"]
    causal = order["no positions, causal mask"]["mean"]
    return [
        Claim("Each row of weights sums to 1", bool(sums < 1e-12), f"largest error {sums:.1e}"),
        Claim(
            "Each output is a mean of values: it never leaves their range",
            bool(outside <= 0),
            f"furthest outside {max(outside, 0.0):.1e}",
        ),
        Claim(
            "Eq. (1) in NumPy and torch's `scaled_dot_product_attention` agree",
            numbers["torch_gap"] < 1e-12,
            f"greatest difference {numbers['torch_gap']:.1e} in float64",
        ),
        Claim(
            "Without positions a permuted sentence gives permuted outputs, to rounding",
            blind < 1e-12,
            f"greatest relative difference over all 119 other orders {blind:.1e}",
        ),
        Claim(
            "With positions added the order counts",
            seeing > 0.01,
            f"the outputs move by {seeing:.0%} of their length in the mean",
        ),
        Claim(
            "A causal mask tells the order too, without any positions",
            causal > 0.01,
            f"the outputs move by {causal:.0%} in the mean",
        ),
    ]


def _steps_table() -> Table:
    """Return a table of the steps of attention with the shape of each result."""
    n = len(WORDS)
    return Table(
        ("step", "shape"),
        [
            ("five words, each a vector X", f"{n} × {D_MODEL}"),
            ("queries Q = X W_Q: what each word looks for", f"{n} × {D_K}"),
            ("keys K = X W_K: what each word can be found by", f"{n} × {D_K}"),
            ("values V = X W_V: what each word has to give", f"{n} × {D_K}"),
            ("products Q K^T: each query with each key", f"{n} × {n}"),
            ("divided by sqrt(d_k) = sqrt(8) = 2.83", f"{n} × {n}"),
            ("softmax of each row: weights that sum to 1", f"{n} × {n}"),
            ("weights times V: for each word a mean of all values", f"{n} × {D_K}"),
        ],
    )


def sections(numbers: dict[str, Any]) -> list[Section]:
    """Return the sections of the report, with figures and tables made from the numbers of a run."""
    names = list(numbers["words"])
    peak = float(np.ceil(np.abs(numbers["products"]).max()))
    scores = heat_maps(
        [
            HeatMap(numbers["products"], "products  Q Kᵀ", names, names),
            HeatMap(numbers["scores"], "÷ √8", names, names),
        ],
        "query of", "key of", "score", limits=(-peak, peak), numbers=".1f",
    )  # fmt: skip
    weights = heat_maps(
        [HeatMap(numbers["weights"], "", names, names)],
        "query of",
        "key of",
        "weight (each row sums to 1)",
        numbers=".2f",
    )
    sharpened = np.asarray(numbers["sharpened_weights"]).T
    chart = Chart(
        [Curve(word, numbers["sharpness"], list(column)) for word, column in zip(names, sharpened, strict=True)],
        "factor on the query (log scale)", "attention weight", x_log=10, y_range=(-0.02, 1.02),
        marks={1.0: "as it is"},
    )  # fmt: skip
    return [
        Section(
            "One head, step by step",
            "Eq. (1) of the paper, softmax(Q K^T / sqrt(d_k)) V, on five words with random vectors of 32 numbers and "
            "one head of 8.",
            table=_steps_table(),
        ),
        Section("Scores", figure=scores, name="scores", caption="Every query against every key, and over √d_k."),
        Section(
            "Weights",
            figure=weights,
            name="weights",
            caption="Row and column are not alike: that one word attends to another says nothing about the way back.",
        ),
        Section(
            "Between an average and a lookup",
            "A query near zero gives all keys the same weight, and "
            "the output is the mean of the values. A long query selects the value with the best key, like a "
            "dictionary.",
            curves([chart], width=6.4),
            "lookup",
            caption="Weights of one query on the five words, over its length.",
        ),
        _bag_of_words(numbers["order"], numbers["n_layers"]),
    ]  # fmt: skip


def _bag_of_words(order: dict[str, dict[str, float]], n_layers: int) -> Section:
    """Return the section on reordered words, from the changes that ``order_matters`` measured."""
    gaps = [
        Bar(
            name,
            max(gap["mean"], 1e-17),
            text=number(float(f"{gap['mean']:.1e}")) if gap["mean"] < 1e-3 else f"{gap['mean']:.2f}",
        )
        for name, gap in order.items()
    ]
    return Section(
        "A bag of words",
        [
            "For attention `Tom hit Jerry` and `Jerry hit Tom` are the same set. An encoder with random "
            f"weights ({n_layers} {'layer' if n_layers == 1 else 'layers'}) reads its five words in all 120 "
            "orders. Without positions each word gets the same vector in every order, so no later layer can know "
            "who hit whom.",
        ],
        bars([Bars(gaps, "relative change of the outputs (log scale)", log=True)], width=6.4),
        "order",
        caption="How far outputs move beyond being reordered themselves: the mean over the 119 other orders.",
    )  # fmt: skip
