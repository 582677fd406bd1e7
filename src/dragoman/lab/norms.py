"""Layer norm: where it stands, what it averages over, its epsilon; and what the residual path is worth (3.1, 5.4)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch

from dragoman.explanation.figures import Chart, Curve, curves
from dragoman.explanation.style import SERIES
from dragoman.lab.epsilon import FORMULAS, constant_row, dependence_on_others, spread_of_output
from dragoman.lab.report import Claim, Findings, Lab, Section, Table
from dragoman.lab.stacks import (
    VARIANTS,
    gradient_by_layer,
    residual_shares,
    train_variant,
    trained_claims,
    trained_sections,
)


def run(lab: Lab) -> Findings:
    """Claims: a post-norm decoder's gradients sit on top; warm-up; norms see one token only; epsilon is no detail."""
    depths = (2, 4) if lab.quick else (2, 6, 12, 24)
    seeds = (1,) if lab.quick else (1, 2, 3)
    gradients = {
        norm: {
            str(depth): lab.done(
                f"gradient-{norm}-{depth}",
                partial(_gradients, norm, depth, seeds),
                {"seeds": seeds},
            )
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
            trained[name].append(lab.done(key, partial(train_variant, **settings), settings))
            lab.say(f"{name}, seed {seed}: loss {trained[name][-1]['last']:.3f}")
    generator = torch.Generator().manual_seed(1)
    others = (1, 3) if lab.quick else (1, 3, 7, 15, 31, 63)
    spreads = np.geomspace(1e-8, 10, 61)
    numbers: dict[str, Any] = {
        "gradients": gradients,
        "depths": depths,
        "residual_shares": {norm: np.mean([residual_shares(norm, 6, s) for s in seeds], 0) for norm in ("post", "pre")},
        "trained": trained,
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


def gradients(numbers: Mapping[str, Any], norm: str, depth: int, side: str = "decoder") -> np.ndarray[Any, Any]:
    """Mean over seeds of the gradient norm of each layer of one side: ``(depth,)``."""
    mean: np.ndarray[Any, Any] = np.mean([one[side] for one in numbers["gradients"][norm][str(depth)]], axis=0)
    return mean


def _last_over_first(numbers: Mapping[str, Any], norm: str, side: str) -> float:
    """How much larger the last layer's gradient is than the first one's, in the deepest stack."""
    found = gradients(numbers, norm, numbers["depths"][-1], side)
    return float(found[-1] / found[0])


def verdict(numbers: Mapping[str, Any]) -> list[Claim]:
    """What a full run decides, from the numbers that it keeps."""
    deepest = numbers["depths"][-1]
    sides = ("decoder", "encoder")
    post, pre = ({side: _last_over_first(numbers, norm, side) for side in sides} for norm in ("post", "pre"))
    last = {norm: [gradients(numbers, norm, d)[-1] for d in numbers["depths"]] for norm in ("post", "pre")}
    slope = {norm: float(np.polyfit(np.log(numbers["depths"]), np.log(last[norm]), 1)[0]) for norm in last}
    dependence = numbers["dependence"]
    return [
        Claim(
            "In a fresh post-norm decoder the last layers have the largest gradients; in a pre-norm one all are alike",
            bool(post["decoder"] > 3 and 1 / 3 < pre["decoder"] < 3),
            f"{deepest} layers, last over first: post-norm {post['decoder']:,.{0 if post['decoder'] > 100 else 2}f}, "
            f"pre-norm {pre['decoder']:.2f}",
        ),
        Claim(
            "So it is in the encoder",
            bool(post["encoder"] > 3),
            f"{deepest} layers, last over first: post-norm {post['encoder']:.2f}, pre-norm {pre['encoder']:.2f}. As in "
            "https://arxiv.org/abs/2004.08249, which concludes that unbalanced gradients are not what makes post-norm "
            "hard to train",
        ),
        Claim(
            "In the decoder the last layer's gradient hardly depends on depth with post-norm, and falls about as "
            "1/sqrt(L) with pre-norm",
            abs(slope["post"]) < 0.25 and abs(slope["pre"] + 0.5) < 0.25,
            f"exponents of depth: post-norm {slope['post']:.2f}, pre-norm {slope['pre']:.2f} "
            "(https://arxiv.org/abs/2002.04745 derives 0 and −0.5)",
        ),
        Claim(
            "In a fresh encoder more than half of what a sub-layer hands on is its input, by the residual path",
            min(min(shares) for shares in numbers["residual_shares"].values()) > 0.5,
            "share of the input over 6 layers: "
            + ", ".join(f"{norm}-norm {min(s):.0%} to {max(s):.0%}" for norm, s in numbers["residual_shares"].items()),
        ),
        *trained_claims(numbers),
        Claim(
            "A layer norm's output for a sentence depends on that sentence alone, a batch norm's on its neighbours",
            dependence[0]["layer norm"] < 1e-6 < dependence[0]["batch norm"],
            f"with {numbers['others'][0]} companion it moves by {dependence[0]['batch norm']:.0%} under batch norm, "
            f"with {numbers['others'][-1]} still by {dependence[-1]['batch norm']:.1%}; layer norm "
            f"{dependence[0]['layer norm']:.0e}",
        ),
        *_epsilon_claims(numbers),
    ]


def _epsilon_claims(numbers: Mapping[str, Any]) -> list[Claim]:
    """What is decided of the places where epsilon stands."""
    constant = numbers["constant_row"]
    in_half = constant["(x − mean) / sqrt(var + eps), eps = 1e-10"]["float16"]["output"]
    of_equal = {name: found["float32"]["gradient"] for name, found in constant.items() if "1e-06" in name}
    small, large = numbers["of_spread"]["0.0001"], numbers["of_spread"]["1"]
    return [
        Claim(
            "std + eps and sqrt(var + eps) are the same but for rounding",
            abs(small[0] - small[1]) < 0.01,
            f"with eps = 1e-6 a row of spread 1e-4 comes out with {small[0]:.2f} and {small[1]:.2f}; of spread 1, with "
            f"{large[0]:.6f} and {large[1]:.6f}",
        ),
        Claim(
            "A row of equal numbers has a finite gradient whichever way std is written",
            "nan" not in of_equal.values(),
            ", ".join(f"{name}: {gradient}" for name, gradient in of_equal.items()),
        ),
        Claim(
            "eps = 1e-10 is safe in half precision",
            in_half != "nan",
            f"1e-10 is 0 in float16 (least number 6e-8): a row of equal numbers gives {in_half}; torch's own layer "
            "norm computes in float32 inside",
        ),
    ]


# --- the account ------------------------------------------------------------------------------------------------------


def _gradient_charts(numbers: Mapping[str, Any]) -> list[Chart]:
    """Decoder and encoder, post- and pre-norm, on one scale; layers by their place, so that depths can be compared."""
    found = {
        (side, norm): {n: gradients(numbers, norm, n, side) for n in numbers["depths"]}
        for side in ("decoder", "encoder")
        for norm in ("post", "pre")
    }
    least = min(float(each.min()) for by_depth in found.values() for each in by_depth.values())
    most = max(float(each.max()) for by_depth in found.values() for each in by_depth.values())
    return [
        Chart(
            [
                Curve(f"{n} layers", [i / n for i in range(1, n + 1)], list(each), points=True)
                for n, each in by_depth.items()
            ],
            "layer / number of layers", "gradient of w_2 (log scale)", f"{side}, {norm}-norm", y_log=10,
            y_range=(least / 1.5, 1.5 * most),
        )
        for (side, norm), by_depth in found.items()
    ]  # fmt: skip


def sections(numbers: Mapping[str, Any]) -> list[Section]:
    """What a full run tells and draws, from the numbers that it keeps."""
    by_layer = _gradient_charts(numbers)
    layers = list(range(1, 7))
    shares = Chart(
        [
            Curve(f"{norm}-norm, {name}", layers, list(s)[first::2], points=True, colour=colour, dashed=first == 1)
            for (norm, s), colour in zip(numbers["residual_shares"].items(), SERIES, strict=False)
            for first, name in enumerate(("attention", "feed-forward"))
        ],
        "layer of the encoder", "share of the input", y_range=(0, 1.05),
    )  # fmt: skip
    return [
        Section(
            "Where the gradient is",
            "Fresh models, the loss of the first batch. In a decoder with the paper's post-norm, norm(x + f(x)), the "
            "gradient sits in the last layers and does not shrink there however deep the stack. In the encoder it "
            "does not: there all layers get about as much. With pre-norm, x + f(norm(x)), the decoder's layers get "
            "about as much each and less the deeper the stack, and the encoder's first layers get somewhat more than "
            "its last. Xiong et al. (https://arxiv.org/abs/2002.04745) explain the need of warm-up by large gradients "
            "near the output; Liu et al. (https://arxiv.org/abs/2004.08249) find, as here, that only the decoder's "
            "gradients are unbalanced, and that balancing them is not enough: they blame how strongly post-norm "
            "layers depend on f(x), which amplifies small changes of the weights.",
            curves(by_layer, width=3.5, height=2.5),
            "gradients",
            caption="Gradient norm of the feed-forward network's second matrix, mean of three seeds, on one scale: "
            "a slope is an imbalance between layers. Only the post-norm decoder's is steep.",
        ),
        Section(
            "The residual path's share",
            "Of the sum x + f(x) a share is x itself. In a fresh stack that is more than half. With post-norm every "
            "norm makes the stream small again and the share stays; with pre-norm the stream grows, and what a layer "
            "adds weighs less the higher it stands.",
            curves([shares], width=6.4),
            "shares",
            caption="Share of x in x + f(x), fresh encoders of 6 layers, mean of the seeds.",
        ),
        *trained_sections(numbers),
        *_layer_norm_sections(numbers),
    ]  # fmt: skip


def _layer_norm_sections(numbers: Mapping[str, Any]) -> list[Section]:
    """What a layer norm averages over, and where its epsilon stands."""
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
            "A layer norm averages over the channels of one token, a batch norm over the tokens of a batch. Then "
            "what a sentence becomes depends on which sentences it was batched with and on how much padding they "
            "brought, and a translator that gets one sentence at a time has no batch to average over.",
            curves([dependence], width=6.4),
            "dependence",
            caption="How far one sentence's output moves when its companions are exchanged.",
        ),
        Section(
            "Where epsilon stands",
            "The same eps = 1e-6 is not the same: beside the standard deviation it acts on rows that spread less "
            "than a millionth, under the root on those that spread less than a thousandth. For rows of equal "
            "numbers the derivative of a standard deviation is 0/0.",
            curves([spread], width=6.4),
            "epsilon",
            Table(
                ("a row of equal numbers", "float32: output, gradient", "bfloat16", "float16"),
                [
                    (name, *(f"{kinds['output']}, {kinds['gradient']}" for kinds in found.values()))
                    for name, found in numbers["constant_row"].items()
                ],
            ),
            "How much of a row's spread is left by each formula; 1 is a full norm.",
        ),
    ]  # fmt: skip
