"""Test layer norm and residuals: place of the norm, warm-up, batch norm, epsilon (sections 3.1 and 5.4)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch

from dragoman.explanation.figures import Chart, Curve, curves
from dragoman.explanation.style import SERIES
from dragoman.lab.epsilon import FORMULAS, constant_row, dependence_on_others, spread_of_output
from dragoman.lab.experiment import Claim, Findings, Lab, Section, Table
from dragoman.lab.rates import rate_claims, rate_section, rate_trials
from dragoman.lab.stacks import (
    VARIANTS,
    gradient_by_layer,
    residual_path,
    residual_shares,
    train_variant,
    trained_claims,
    trained_sections,
)


def run(lab: Lab) -> Findings:
    """Run the experiment; claims: post-norm gradients are unbalanced, warm-up, residuals, batch norm, epsilon."""
    depths = (2, 4) if lab.quick else (2, 6, 12, 24)
    seeds = (1,) if lab.quick else (1, 2, 3)
    gradients = {
        norm: {
            str(depth): lab.done(f"gradient-{norm}-{depth}", partial(_gradients, norm, depth, seeds), {"seeds": seeds})
            for depth in depths
        }
        for norm in ("post", "pre")
    }
    steps = 20 if lab.quick else 600
    names = list(VARIANTS)[::4] if lab.quick else list(VARIANTS)
    trained: dict[str, list[Any]] = {name: [] for name in names}
    for name in names:
        for seed in seeds:
            settings = {**VARIANTS[name], "seed": seed, "steps": steps}
            key = f"{name.replace(', ', '-').replace(' ', '-')}-{seed}"
            trained[name].append(lab.done(key, partial(train_variant, VARIANTS[name], seed, steps), settings))
            lab.say(f"{name}, seed {seed}: loss {trained[name][-1]['last']:.3f}")
    generator = torch.Generator().manual_seed(1)
    others = (1, 3) if lab.quick else (1, 3, 7, 15, 31, 63)
    spreads = np.geomspace(1e-8, 10, 61)
    numbers: dict[str, Any] = {
        "gradients": gradients,
        "depths": depths,
        "residual_shares": {norm: np.mean([residual_shares(norm, 6, s) for s in seeds], 0) for norm in ("post", "pre")},
        "residual_path": {
            norm: {str(depth): [residual_path(norm, depth, s)[0] for s in seeds] for depth in depths}
            for norm in ("post", "pre")
        },
        "trained": trained,
        "rates": rate_trials(lab, seeds[:2], steps, trained),
        "steps": steps,
        "others": others,
        "dependence": [dependence_on_others(n, 20 if lab.quick else 100, generator) for n in others],
        "spreads": spreads,
        "spread_of_output": {
            name: [spread_of_output(name, spread, 1e-6) for spread in spreads] for name in list(FORMULAS)[:2]
        },
        "of_spread": {
            f"{spread:g}": [spread_of_output(name, spread, 1e-6) for name in list(FORMULAS)[:2]]
            for spread in (1e-4, 1.0)
        },
        "constant_row": {
            f"{name}, eps = {eps:g}": {
                str(dtype).removeprefix("torch."): constant_row(name, eps, dtype)
                for dtype in (torch.float32, torch.bfloat16, torch.float16)
            }
            for eps in (1e-6, 1e-10)
            for name in FORMULAS
        },
    }  # fmt: skip
    return Findings(numbers, sections(numbers), verdict(numbers))


def _gradients(norm: str, depth: int, seeds: Sequence[int]) -> list[dict[str, list[float]]]:
    return [gradient_by_layer(norm, depth, seed) for seed in seeds]


def mean_gradients(numbers: Mapping[str, Any], norm: str, depth: int, side: str = "decoder") -> np.ndarray[Any, Any]:
    """Return the gradient norm of each layer of encoder or decoder, ``(depth,)``, as a mean over seeds."""
    of_seeds = [by_side[side] for by_side in numbers["gradients"][norm][str(depth)]]
    mean: np.ndarray[Any, Any] = np.mean(of_seeds, axis=0)
    return mean


def _last_over_first(numbers: Mapping[str, Any], norm: str, side: str) -> float:
    """Return the gradient of the last layer over that of the first one, in the deepest stack."""
    by_layer = mean_gradients(numbers, norm, numbers["depths"][-1], side)
    return float(by_layer[-1] / by_layer[0])


def verdict(numbers: Mapping[str, Any]) -> list[Claim]:
    """Return the claims of the experiment, each decided by the numbers of a run."""
    dependence = numbers["dependence"]
    return [
        *fresh_claims(numbers),
        *trained_claims(numbers),
        *rate_claims(numbers["rates"]),
        Claim(
            "A layer norm's output for a sentence depends on that sentence alone, a batch norm's on its neighbours",
            dependence[0]["layer norm"] < 1e-6 < dependence[0]["batch norm"],
            f"with {numbers['others'][0]} companion it moves by {dependence[0]['batch norm']:.0%} under batch norm, "
            f"with {numbers['others'][-1]} still by {dependence[-1]['batch norm']:.1%}",
        ),
        *_epsilon_claims(numbers),
    ]


def fresh_claims(numbers: Mapping[str, Any]) -> list[Claim]:
    """Return the claims about gradients and residuals before any training."""
    deepest = str(numbers["depths"][-1])
    sides = ("decoder", "encoder")
    post, pre = ({side: _last_over_first(numbers, norm, side) for side in sides} for norm in ("post", "pre"))
    last = {norm: [mean_gradients(numbers, norm, d)[-1] for d in numbers["depths"]] for norm in ("post", "pre")}
    slope = {norm: float(np.polyfit(np.log(numbers["depths"]), np.log(last[norm]), 1)[0]) for norm in last}
    least = {norm: min(shares) for norm, shares in numbers["residual_shares"].items()}
    path = {norm: [float(np.mean(of_seeds)) for of_seeds in paths.values()]
            for norm, paths in numbers["residual_path"].items()}  # fmt: skip
    by_seed = [trial["decoder"][-1] / trial["decoder"][0] for trial in numbers["gradients"]["post"][deepest]]
    return [
        Claim(
            "In a fresh post-norm decoder the last layers have the largest gradients; in a pre-norm one first and last "
            "differ by less than 5 times",
            bool(min(by_seed) > 5 and 1 / 5 < pre["decoder"] < 5),
            f"{deepest} layers, last over first: post-norm {min(by_seed):,.0f} to {max(by_seed):,.0f}, pre-norm "
            f"{pre['decoder']:.2f}",
        ),
        Claim(
            "The imbalance is the decoder's: in the encoder it is a fifth of that at most",
            bool(post["encoder"] < post["decoder"] / 5),
            f"post-norm {post['encoder']:.2f}, pre-norm {pre['encoder']:.2f}",
        ),
        Claim(
            "In the decoder the last layer's gradient falls with depth with pre-norm, with post-norm it hardly does",
            abs(slope["post"]) < 0.3 and slope["pre"] < -0.2,
            f"exponents of depth: post-norm {slope['post']:.2f}, pre-norm {slope['pre']:.2f} "
            "(https://arxiv.org/abs/2002.04745 derives 0 and −0.5)",
        ),
        Claim(
            "In a fresh encoder the residual path has a third or more of what a sub-layer hands on, two thirds or more "
            "with pre-norm",
            least["post"] > 1 / 3 and least["pre"] > 2 / 3,
            "share over 6 layers: "
            + ", ".join(f"{norm}-norm {min(s):.0%} to {max(s):.0%}" for norm, s in numbers["residual_shares"].items()),
        ),
        Claim(
            "By the residual path alone the gradient passes a pre-norm stack unchanged, and shrinks at every post-norm",
            min(path["pre"]) > 0.999 and path["post"] == sorted(path["post"], reverse=True) and path["post"][-1] < 0.1,
            f"left at the first of {numbers['depths'][-1]} layers: post-norm {path['post'][-1]:.2g}, pre-norm "
            f"{min(path['pre']):.0f}",
        ),
    ]


def _epsilon_claims(numbers: Mapping[str, Any]) -> list[Claim]:
    """Return the claims about the place of epsilon."""
    constant = numbers["constant_row"]
    in_half = constant["(x − mean) / sqrt(var + eps), eps = 1e-10"]["float16"]["output"]
    gradients = {name: by_dtype["float32"]["gradient"] for name, by_dtype in constant.items() if "1e-06" in name}
    small = numbers["of_spread"]["0.0001"]
    return [
        Claim(
            "std + eps and sqrt(var + eps) are the same but for rounding",
            abs(small[0] - small[1]) < 0.01,
            f"with eps = 1e-6 a row of spread 1e-4 comes out with {small[0]:.2f} and {small[1]:.2f}",
        ),
        Claim(
            "A row of equal numbers has a finite gradient whichever way std is written",
            "nan" not in gradients.values(),
            f"with eps beside sqrt(var) it is {gradients['(x − mean) / (sqrt(var) + eps), eps = 1e-06']}",
        ),
        Claim(
            "eps = 1e-10 is safe in half precision",
            in_half != "nan",
            f"it is 0 in float16 (least number 6e-8): a row of equal numbers gives {in_half}",
        ),
    ]


# --- the report -------------------------------------------------------------------------------------------------------


def _gradient_charts(numbers: Mapping[str, Any]) -> list[Chart]:
    """Draw the gradients of decoder and encoder, post- and pre-norm, on one scale.

    Layers are placed by their share of the depth, so that stacks of different depths can be compared.
    """
    gradients = {
        (side, norm): {n: mean_gradients(numbers, norm, n, side) for n in numbers["depths"]}
        for side in ("decoder", "encoder")
        for norm in ("post", "pre")
    }
    sizes = [float(size) for by_depth in gradients.values() for by_layer in by_depth.values() for size in by_layer]
    return [
        Chart(
            [
                Curve(f"{n} layers", [i / n for i in range(1, n + 1)], list(by_layer), points=True)
                for n, by_layer in by_depth.items()
            ],
            "layer / number of layers", "gradient of w_2 (log scale)", f"{side}, {norm}-norm", y_log=10,
            y_range=(min(sizes) / 1.5, 1.5 * max(sizes)),
        )
        for (side, norm), by_depth in gradients.items()
    ]  # fmt: skip


def sections(numbers: Mapping[str, Any]) -> list[Section]:
    """Return the sections of the report, with figures and tables made from the numbers of a run."""
    by_layer = _gradient_charts(numbers)
    layers = list(range(1, 7))
    shares = Chart(
        [
            Curve(f"{norm}-norm, {name}", layers, list(s)[first::2], points=True, colour=colour, dashed=first == 1)
            for (norm, s), colour in zip(numbers["residual_shares"].items(), SERIES, strict=False)
            for first, name in enumerate(("attention", "feed-forward"))
        ],
        "layer of the encoder", "share of the input", "Share of x in x + f(x)", y_range=(0, 1.05),
    )  # fmt: skip
    path = Chart(
        [
            Curve(f"{norm}-norm", list(numbers["depths"]), *_with_band(list(by_depth.values())), points=True,
                  colour=colour)
            for (norm, by_depth), colour in zip(numbers["residual_path"].items(), SERIES, strict=False)
        ],
        "layers of the encoder", "gradient left at the first (log scale)", "Gradient by that path alone", y_log=10,
        y_range=(None, 2), x_names={depth: str(depth) for depth in numbers["depths"]},
    )  # fmt: skip
    return [
        Section(
            "Where the gradient is",
            "Fresh models, the loss of the first batch. Liu et al. (https://arxiv.org/abs/2004.08249) find, as here, "
            "that only the decoder's gradients are unbalanced, and that balancing them is not enough.",
            curves(by_layer, width=3.5, height=2.5),
            "gradients",
            caption="Gradient norm of the feed-forward network's second matrix, mean of three seeds: a slope is an "
            "imbalance between layers.",
        ),
        Section(
            "The residual path",
            [
                "On its way back through post-norm the gradient passes two norms a layer, and each divides it by the "
                "standard deviation of the sum.",
            ],
            curves([shares, path], n_columns=1, width=5.6, height=2.6),
            "shares",
            caption="Fresh encoders, mean of the seeds. Below: the gradient at the first layer's output over that at "
            "the last one's, with what sub-layers add held constant.",
        ),
        *trained_sections(numbers),
        rate_section(numbers["rates"]),
        *_layer_norm_sections(numbers),
    ]  # fmt: skip


def _with_band(of_seeds: Sequence[Sequence[float]]) -> tuple[list[float], list[float], list[float]]:
    """Return mean, lowest and highest over the seeds, at each place."""
    return [float(np.mean(values)) for values in of_seeds], list(map(min, of_seeds)), list(map(max, of_seeds))


def _layer_norm_sections(numbers: Mapping[str, Any]) -> list[Section]:
    """Return the sections on layer norm against batch norm, and on the place of epsilon."""
    dependence = Chart(
        [
            Curve(name, list(numbers["others"]), [row[name] for row in numbers["dependence"]], points=True)
            for name in numbers["dependence"][0]
        ],
        "other sentences in the batch (log scale)", "change of the output, over its length", x_log=2,
        y_range=(-0.01, None),
    )  # fmt: skip
    spread = Chart(
        [Curve(name, list(numbers["spreads"]), values) for name, values in numbers["spread_of_output"].items()],
        "standard deviation of the row (log scale)", "standard deviation of the output", x_log=10,
        marks={1e-6: "eps = 1e-6", 1e-3: "√eps"},
    )  # fmt: skip
    return [
        Section(
            "What is averaged over",
            "",
            curves([dependence], width=6.4),
            "dependence",
            caption="How far one sentence's output moves when its companions are exchanged.",
        ),
        Section(
            "Where epsilon stands",
            "Added to the standard deviation, eps = 1e-6 matters for rows with a deviation below a millionth; under "
            "the root, below a thousandth.",
            curves([spread], width=6.4),
            "epsilon",
            _constant_rows(numbers["constant_row"]),
            "How much of a row's spread is left by each formula; 1 is a full norm. The table: output and gradient of "
            "a row of equal numbers.",
        ),
    ]  # fmt: skip


def _constant_rows(rows: Mapping[str, Mapping[str, Mapping[str, str]]]) -> Table:
    """Return a table of output and gradient of a row of equal numbers: formulas down, epsilon and precision across."""
    cells: dict[tuple[str, str], dict[str, str]] = {
        (eps, dtype): {} for eps in ("1e-06", "1e-10") for dtype in ("float32", "float16")
    }
    for name, by_dtype in rows.items():
        formula, _, eps = name.rpartition(", eps = ")
        for dtype in ("float32", "float16"):
            cells[eps, dtype][formula] = f"{by_dtype[dtype]['output']}, {by_dtype[dtype]['gradient']}"
    formulas = list(cells["1e-06", "float32"])
    return Table(
        ("formula", *(f"{eps}, {dtype}" for eps, dtype in cells)),
        [(formula, *(column[formula] for column in cells.values())) for formula in formulas],
    )
