"""Measure the gradient that reaches a token k steps back in each kind of layer (section 4, Table 1).

A gradient has a size, and its fall with distance is another thing: both are measured, and for several lengths.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from dragoman.config import ModelConfig
from dragoman.explanation.figures import Chart, Curve, curves
from dragoman.explanation.style import SERIES
from dragoman.lab.experiment import Claim, Findings, Lab, Section, Table
from dragoman.model.baselines.cells import Kind, Recurrence
from dragoman.model.baselines.convolutional import HALF, GatedConvolution
from dragoman.model.layers import DecoderLayer
from dragoman.model.masks import causal_mask

FAR = 50
"""Distance in tokens that is compared with distance 1."""

LENGTHS = (26, 51, 101, 201)
"""Lengths of the sequences in which self-attention is measured; a recurrent layer does not see what comes before."""

RECURRENT = ("plain RNN", "GRU", "LSTM")
"""The recurrent layers as they are initialised."""

Layer = Callable[[Tensor], Tensor]
"""A function from ``(B, n, d)`` to the same shape, in which a position depends on itself and earlier ones."""


class Sizes(NamedTuple):
    """Sizes of the measurement."""

    n: int  # length of a sequence
    d: int  # width
    rows: int  # sequences for each drawing of weights
    seeds: int  # drawings of weights


def reach(make: Callable[[], Layer], sizes: Sizes) -> dict[str, list[float]]:
    """Return the size of the gradient of the last output by the token k steps back, for k = 0 to n - 1.

    The size is ``|J^T v|`` for the Jacobian J and a random ``v``: its mean square is the squared Frobenius norm of J.
    Means over rows and seeds are geometric, so that they describe a typical case and not the largest.

    Args:
        make: Creates a layer with fresh weights.
        sizes: Sizes of the measurement.

    Returns:
        ``mean``, and ``low`` and ``high``, the smallest and the largest of the seeds; each with n numbers.
    """
    logs = []
    for seed in range(sizes.seeds):
        torch.manual_seed(seed)
        layer = make()
        x = torch.randn(sizes.rows, sizes.n, sizes.d, dtype=torch.float64, requires_grad=True)
        v = torch.randn(sizes.rows, sizes.d, dtype=torch.float64)
        (gradient,) = torch.autograd.grad((layer(x)[:, -1] * v).sum(), x)
        logs.append(gradient.norm(dim=-1).log().mean(dim=0).flip(0))
    of_seeds = torch.stack(logs)  # (seeds, n)
    bounds = {"mean": of_seeds.mean(0), "low": of_seeds.amin(0), "high": of_seeds.amax(0)}
    return {name: list(values.exp().tolist()) for name, values in bounds.items()}


def _numbers(values: Sequence[int]) -> str:
    """Return numbers as a list in a sentence."""
    return ", ".join(map(str, values))


# --- the layers -------------------------------------------------------------------------------------------------------


def recurrent(kind: Kind, d: int, forget_bias: float | None = None) -> Layer:
    """Return a fresh layer of our recurrent model; ``forget_bias`` replaces the bias of an LSTM's forget gate."""
    layer = Recurrence(kind, d, d).double()
    if forget_bias is not None:
        nn.init.constant_(layer.w_x.bias[d : 2 * d], forget_bias)
    return lambda x: layer.steps(x, layer.started(x[:, 0] * 0))[0]


def plain_recurrent(d: int, norm: float, orthogonal: bool, squashed: bool) -> Layer:
    """Return the layer ``h_t = tanh(W_xh x_t + W_hh h_{t-1})`` with a random ``W_hh`` of a given spectral norm.

    Args:
        d: Width.
        norm: Spectral norm of ``W_hh``.
        orthogonal: True if all singular values of ``W_hh`` are ``norm``; else it is Gaussian, and ``norm`` the largest.
        squashed: False leaves tanh out.
    """
    w_xh = torch.randn(d, d, dtype=torch.float64) / math.sqrt(d)
    w_hh = torch.randn(d, d, dtype=torch.float64)
    w_hh = nn.init.orthogonal_(w_hh) * norm if orthogonal else w_hh * (norm / torch.linalg.matrix_norm(w_hh, 2))

    def run(x: Tensor) -> Tensor:
        states, h = [], torch.zeros_like(x[:, 0])
        for step in (x @ w_xh.T).unbind(dim=1):
            h = step + h @ w_hh.T
            h = torch.tanh(h) if squashed else h
            states.append(h)
        return torch.stack(states, dim=1)

    return run


def convolutional(d: int, n_layers: int) -> Layer:
    """Return a fresh stack of our causal gated convolutions of width 3, with residuals."""
    config = ModelConfig(architecture="conv", d_model=d, dropout=0.0, src_vocab_size=9, tgt_vocab_size=9)
    layers = [GatedConvolution(config).double() for _ in range(n_layers)]

    def run(x: Tensor) -> Tensor:
        for layer in layers:
            x = (x + layer(F.pad(x, (0, 0, config.kernel_width - 1, 0)))) * HALF
        return x

    return run


def self_attentive(d: int, n_layers: int = 1) -> Layer:
    """Return fresh layers of our Transformer's decoder, without memory."""
    config = ModelConfig(d_model=d, n_heads=4, d_ff=4 * d, dropout=0.0, src_vocab_size=9, tgt_vocab_size=9)
    layers = [DecoderLayer(config, with_memory=False).double() for _ in range(n_layers)]
    for layer in layers:
        for parameter in layer.parameters():
            if parameter.dim() > 1:
                nn.init.xavier_uniform_(parameter)

    def run(x: Tensor) -> Tensor:
        mask = causal_mask(x.size(1))
        for layer in layers:
            x, _ = layer(x, None, None, mask, None, None)
        return x

    return run


LAYERS: dict[str, Callable[[int], Layer]] = {
    "self-attention": self_attentive,
    "plain RNN": lambda d: recurrent("rnn", d),
    "GRU": lambda d: recurrent("gru", d),
    "LSTM": lambda d: recurrent("lstm", d),
    "LSTM, forget bias 4": lambda d: recurrent("lstm", d, 4.0),
    "6 convolutions": lambda d: convolutional(d, 6),
    "25 convolutions": lambda d: convolutional(d, 25),
}

COLOURS = {"self-attention": SERIES[0], "plain RNN": SERIES[1], "GRU": SERIES[1], "LSTM": SERIES[3]}
NAMES = {"plain RNN": "", "GRU": "RNN, GRU"}
"""Names in the figure that differ: two lines that end beside each other have one name."""

SHORT = "6 convolutions"
DASHED = ("LSTM, forget bias 4",)

# --- the experiment ---------------------------------------------------------------------------------------------------


def run(lab: Lab) -> Findings:
    """Measure all layers; claims: self-attention's gradient is small at any distance, a recurrent one fades."""
    sizes = Sizes(n=FAR + 2, d=16, rows=4, seeds=1) if lab.quick else Sizes(n=101, d=128, rows=16, seeds=8)
    lengths = (13, 26) if lab.quick else LENGTHS
    norms = [0.5, 1.0, 2.0] if lab.quick else [2 ** (i / 4) for i in range(-4, 13)]  # 0.5 to 8
    numbers = measured(sizes, lengths) | {"recurrent": [], "sweep": []}
    for squashed in (True, False):
        for orthogonal in (True, False):
            for norm in norms:
                row: dict[str, Any] = {"norm": norm, "squashed": squashed, "orthogonal": orthogonal}
                gradient = reach(functools.partial(plain_recurrent, sizes.d, **row), sizes)["mean"]
                numbers["sweep"].append(row | {"ratio": gradient[FAR] / gradient[1]})
        for norm in (0.5, 1.0, 1.5, 2.0, 3.0):
            row = {"norm": norm, "squashed": squashed, "orthogonal": True}
            gradient = reach(functools.partial(plain_recurrent, sizes.d, **row), sizes)["mean"]
            numbers["recurrent"].append(row | {"gradient": gradient[: FAR + 1]})
    return Findings(numbers, sections(numbers), verdict(numbers))


def measured(sizes: Sizes, lengths: Sequence[int]) -> dict[str, Any]:
    """Return the gradient by distance of every layer, and that of self-attention in sequences of several lengths."""
    make = functools.partial(self_attentive, sizes.d)
    numbers: dict[str, Any] = {
        "sizes": sizes._asdict(),
        "reach": {name: reach(functools.partial(new, sizes.d), sizes) for name, new in LAYERS.items()},
        "lengths": {str(n): reach(make, sizes._replace(n=n)) for n in lengths},
    }
    leads = {how: {name: lead(numbers, name, how == "share") for name in RECURRENT} for how in ("size", "share")}
    by_length = {"here": numbers["reach"]["self-attention"], **numbers["lengths"]}
    return numbers | {
        "leads": leads, "times_weaker": {name: times_weaker(gradient["mean"]) for name, gradient in by_length.items()}
    }  # fmt: skip


def times_weaker(gradient: Sequence[float]) -> float:
    """Return how many times weaker the gradient by another token is than that by the token itself.

    The mean over distances is geometric.
    """
    return gradient[0] / math.exp(sum(map(math.log, gradient[1:])) / (len(gradient) - 1))


def _mean(numbers: Mapping[str, Any], name: str) -> list[float]:
    """Return the gradient of a layer by distance."""
    gradient: list[float] = numbers["reach"][name]["mean"]
    return gradient


def _ratio(numbers: Mapping[str, Any], name: str) -> float:
    """Return a layer's gradient at distance ``FAR`` over that at distance 1."""
    gradient = _mean(numbers, name)
    return gradient[FAR] / gradient[1]


def lead(numbers: Mapping[str, Any], name: str, as_share: bool) -> int:
    """Return the distance up to which a layer passes on more gradient than self-attention; 0 if it never does.

    Args:
        numbers: Numbers of a run.
        name: Name of the layer.
        as_share: True to compare shares of the gradient at distance 0, and not the sizes themselves.
    """
    other, attention = _mean(numbers, name), _mean(numbers, "self-attention")
    factor = attention[0] / other[0] if as_share else 1.0
    behind = (k for k in range(1, len(other)) if other[k] * factor <= attention[k])
    return next(behind, len(other)) - 1


def stable_norms(numbers: Mapping[str, Any], squashed: bool, orthogonal: bool) -> list[float]:
    """Return the spectral norms at which a plain RNN's gradient neither fades below 1/1000 nor grows above 1000."""
    kind = (squashed, orthogonal)
    rows = [row for row in numbers["sweep"] if (row["squashed"], row["orthogonal"]) == kind]
    return [row["norm"] for row in rows if 1e-3 <= row["ratio"] <= 1e3]


def verdict(numbers: Mapping[str, Any]) -> list[Claim]:
    """Return the claims of the experiment, each decided by the numbers of a run."""
    return [*reach_claims(numbers), *_norm_claims(numbers)]


def reach_claims(numbers: Mapping[str, Any]) -> list[Claim]:
    """Return the claims about the layers as they are initialised."""
    attention, plain = _ratio(numbers, "self-attention"), _ratio(numbers, "plain RNN")
    lstm, remembering_lstm = _ratio(numbers, "LSTM"), _ratio(numbers, "LSTM, forget bias 4")
    six, deep = _ratio(numbers, SHORT), _ratio(numbers, "25 convolutions")
    weaker = numbers["times_weaker"]
    here = weaker["here"]
    by_length = [times for n, times in weaker.items() if n != "here"]
    sizes, parts = (list(numbers["leads"][how].values()) for how in ("size", "share"))
    return [
        Claim(
            f"Self-attention's gradient hardly falls with distance: at {FAR} it is that at 1, within a factor of 3",
            1 / 3 <= attention <= 3,
            f"{attention:.2f} times",
        ),
        Claim(
            "But it is small: that by another token is less than a tenth of that by the token itself",
            here > 10,
            f"1/{here:.0f} of it, mean over all distances",
        ),
        Claim(
            "And the longer the sequence, the smaller it is",
            by_length == sorted(by_length),
            "1/" + ", 1/".join(f"{times:.0f}" for times in by_length) + " in sequences of "
            + ", ".join(numbers["lengths"]),
        ),
        Claim(
            "A fresh recurrent layer's is large and fades: near tokens get more from it than from self-attention, "
            "far ones less",
            min(*sizes, *parts) > 0 and max(*sizes, *parts) < FAR,
            f"more up to a distance of {_numbers(sizes)} for a plain RNN, a GRU and an LSTM; as a share of that by the "
            f"token itself, up to {_numbers(parts)}",
        ),
        Claim(
            "A plain RNN's has faded below 1/1000 or grown above 1000, as it is initialised (spectral norm of W_hh: 1)",
            not 1e-3 <= plain <= 1e3,
            f"{plain:.1e} times, at distance {FAR}",
        ),
        Claim(
            "An LSTM forgets more slowly, and hardly at all once its forget gate is open",
            plain < lstm < remembering_lstm,
            f"{lstm:.1e} times with forget bias 1, {remembering_lstm:.2f} times with 4",
        ),
        Claim(
            "Causal convolutions see back as far as their layers add up to, and no further",
            six == 0.0 and deep > 0.0,
            f"6 layers of width 3 (12 back) exactly {six:g}; 25 layers {deep:.1e} times",
        ),
    ]  # fmt: skip


def _norm_claims(numbers: Mapping[str, Any]) -> list[Claim]:
    """Return the claims about the spectral norm of a plain RNN."""
    tanh, linear = (
        {row["norm"]: row["ratio"] for row in numbers["sweep"] if row["squashed"] is kind and row["orthogonal"]}
        for kind in (True, False)
    )
    above = min((norm for norm in tanh if norm > 1), default=1.0)
    stable = stable_norms(numbers, True, True)
    return [
        Claim(
            "A spectral norm of W_hh above 1 makes the gradient explode, as one of the five documents says",
            tanh[above] > 1,
            f"at {above:.2f} it still fades, to {tanh[above]:.1e}; without tanh it would be {linear[above]:.1e}",
        ),
        Claim(
            "There is a spectral norm at which a plain RNN's gradient lasts, but the band is narrow",
            bool(stable) and max(stable) / min(stable) < 2,
            f"between 1/1000 and 1000 only at {', '.join(f'{norm:.2f}' for norm in stable) or 'none'} of the norms "
            "tried",
        ),
    ]


def _by_distance(numbers: Mapping[str, Any], squashed: bool, label: str, title: str) -> Chart:
    """Draw the gradient of plain RNNs over distance, a line for each spectral norm."""
    lines = [
        Curve(f"norm {row['norm']:g}", range(1, FAR + 1), [value / row["gradient"][1] for value in row["gradient"][1:]])
        for row in numbers["recurrent"]
        if row["squashed"] is squashed
    ]
    return Chart(lines, "distance (tokens)", label, title, y_log=10, y_range=(1e-25, 1e25))


SIDE = ("25 convolutions", SHORT)
"""Layers that the table has and the figure leaves out: 25 layers are no single layer, and six end at 12 tokens."""


FLOOR = 1e-6
"""Gradient at which curves end in the figure."""


def _curve(name: str, gradient: Mapping[str, list[float]], divisor: float, **look: Any) -> Curve:
    """Draw a gradient with its band from distance 1 on, down to ``FLOOR``."""
    mean, low, high = ([value / divisor for value in gradient[bound][1:]] for bound in ("mean", "low", "high"))
    visible = next((k for k, value in enumerate(mean) if value < FLOOR), len(mean))
    return Curve(name, range(1, visible + 1), mean[:visible], low[:visible], high[:visible], **look)


def _reach_charts(numbers: Mapping[str, Any]) -> list[Chart]:
    """Draw the gradient over distance: all kinds of layers in absolute size and as a share, and self-attention by n."""
    absolute, shares = [], []
    for name, gradient in numbers["reach"].items():
        if name in SIDE:
            continue
        look = {"colour": COLOURS[name.split(",")[0]], "dashed": name in DASHED}
        at_end = NAMES.get(name, name)
        absolute.append(_curve(at_end, gradient, 1.0, **look))
        shares.append(_curve(at_end, gradient, gradient["mean"][0], **look))
    by_length = [
        _curve(f"n = {n}", gradient, gradient["mean"][0], colour=colour)
        for (n, gradient), colour in zip(numbers["lengths"].items(), SERIES, strict=False)
    ]
    label, share = "distance (tokens)", "share of that by the token itself (log scale)"
    return [
        Chart(absolute, label, "gradient (log scale)", "Size", y_log=10, y_range=(FLOOR, 20)),
        Chart(shares, label, share, "Share", y_log=10, y_range=(FLOOR, 3)),
        Chart(by_length, label, share, "Self-attention, n tokens", y_log=10, y_range=(2e-3, 0.2)),
    ]


def sections(numbers: Mapping[str, Any]) -> list[Section]:
    """Return the sections of the report, with figures and tables made from the numbers of a run."""
    sizes = numbers["sizes"]
    label = "gradient, over that at distance 1 (log scale)"
    by_distance = [
        _by_distance(numbers, squashed, label, title)
        for squashed, title in ((True, "With tanh"), (False, "Without it"))
    ]
    sweeps = [_sweep_chart(numbers, True, "Orthogonal"), _sweep_chart(numbers, False, "Gaussian")]
    near = [k for k in (0, 1, 10, FAR) if k < sizes["n"]]
    table = Table(
        ("layer", *(f"gradient at {k}" if k else "by the token itself" for k in near)),
        [(name, *(_mean(numbers, name)[k] for k in near)) for name in numbers["reach"]],
    )
    return [
        Section(
            "What reaches a token k steps back",
            [
                f"One layer with fresh weights reads {sizes['n']} random tokens of width {sizes['d']}. Lines are "
                "geometric means over "
                f"{sizes['rows']} sequences and {sizes['seeds']} drawings of the weights.",
                "In convolutions the gradient passes about k / 2 windows: many paths lead to tokens at middle "
                "distances, only one to the furthest.",
            ],
            curves(_reach_charts(numbers), n_columns=2, width=3.2, height=3.0),
            "reach",
            table,
            "Gradient of the last output by a token so far back; bands: the lowest and the highest of "
            f"{sizes['seeds']} drawings.",
        ),
        Section(
            "Why recurrence fades",
            [
                "Each step back multiplies the gradient by diag(1 - h²) W_hh. One of the five documents leaves the "
                "first factor out. But where a state is large, 1 - h² is small.",
            ],
            curves(by_distance, width=3.6, height=3.4),
            "recurrent",
            caption="A plain RNN at several spectral norms of W_hh (orthogonal), with tanh and without.",
        ),
        Section(
            "The narrow band between",
            "The same at distance 50, over the spectral norm. The norm of a Gaussian matrix is that of its largest "
            "direction, about twice that of a typical one, so its band lies further right.",
            curves(sweeps, width=3.6, height=3.4),
            "norms",
            caption="Below 1 the gradient has faded at distance 50, above 1 it has grown.",
        ),
    ]


def _sweep_chart(numbers: Mapping[str, Any], orthogonal: bool, title: str) -> Chart:
    """Draw the gradient at distance ``FAR`` over the spectral norm, for one kind of matrix."""
    lines = []
    for squashed, name in ((True, "with tanh"), (False, "without")):
        kind = (squashed, orthogonal)
        rows = [row for row in numbers["sweep"] if (row["squashed"], row["orthogonal"]) == kind]
        ratios = [
            row["ratio"] if 1e-15 <= row["ratio"] <= 1e14 else math.nan for row in rows
        ]  # others are outside the figure
        lines.append(Curve(name, [row["norm"] for row in rows], ratios, points=True))
    return Chart(
        lines, "spectral norm of W_hh (log scale)", f"gradient at {FAR} over that at 1 (log scale)", title, x_log=2,
        y_log=10, y_range=(1e-15, 1e15),
    )  # fmt: skip
