"""Count the operations of Table 1 under other assumptions: with projections, gates, neighbourhoods and kernel widths.

crossing_over_d("LSTM", counted="both", d=128)        # 2.0: the length, in widths, from which attention takes more
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import torch
from torch import Tensor

from dragoman.explanation.figures import Chart, Curve, curves
from dragoman.explanation.style import ORANGE, QUIET, SERIES
from dragoman.lab.costs import LAYERS, Layer, convolution_of, operations, restricted_to
from dragoman.lab.experiment import Claim, Section, Table
from dragoman.model.attention import attend
from dragoman.model.baselines.cells import GATES, Kind, gru_cell, lstm_cell, rnn_cell

RECURRENT: dict[str, Kind] = {"plain RNN": "rnn", "GRU": "gru", "LSTM": "lstm"}
"""Recurrent layers by the name of their cell."""

COUNTED = {
    "none": "no projections on either side",
    "recurrent": "the recurrent layer's input projection, none of attention",
    "both": "all projections of both",
}
"""Choices of what is counted; ``recurrent`` is that of the other counts of the experiment."""

NEIGHBOURS = (32, 64, 128, 256, 512)
"""Sizes r of the neighbourhood."""

KERNELS = (3, 5, 7, 9)
"""Widths k of the kernel."""


# --- projections and gates --------------------------------------------------------------------------------------------


def projected_attention(x: Tensor, *weights: Tensor, fused: bool = False) -> Tensor:
    """Compute self-attention with one head and its four projections."""
    w_q, w_k, w_v, w_o = weights
    q, k, v = (x[:, None] @ w.T for w in (w_q, w_k, w_v))
    return attend(q, k, v, None)[0][:, 0] @ w_o.T


@cache
def _projected() -> Layer:
    """Return the row of self-attention with its projections."""
    return LAYERS[0]._replace(compute=projected_attention, shapes=lambda d: [(d, d)] * 4)


@cache
def recurrent_layer(kind: Kind, with_input: bool) -> Layer:
    """Return a recurrent layer as its equations are written, with or without the projection of its input."""
    gates = GATES[kind]

    def compute(x: Tensor, *weights: Tensor, fused: bool = False) -> Tensor:
        w_h, states = weights[-1], []
        projected = x @ weights[0].T if with_input else x.repeat(1, 1, gates)
        h = c = torch.zeros_like(x[:, 0])
        for step in projected.unbind(dim=1):
            if kind == "lstm":
                h, c = lstm_cell(step, h, c, w_h)
            else:
                h = (rnn_cell if kind == "rnn" else gru_cell)(step, h, w_h)
            states.append(h)
        return torch.stack(states, dim=1)

    shapes = [1, 1] if with_input else [1]
    return Layer(kind, compute, lambda d: [(gates * d, d) for _ in shapes], 1, 2, "n · d²")


@cache
def polynomial(layer: Layer, d: int) -> tuple[float, float]:
    """Return a and b of a layer's operations ``a n² + b n``, from its counts at two lengths."""
    (n, first), (m, second) = ((n, operations(layer, n, d)) for n in (4, 8))
    a = (second / m - first / n) / (m - n)
    return a, first / n - a * n


def crossing_over_d(cell: str, counted: str, d: int) -> float | None:
    """Return the length, in units of d, from which self-attention takes more operations; None if at any length.

    Args:
        cell: A key of ``RECURRENT``.
        counted: A key of ``COUNTED``.
        d: Width.
    """
    a, b = polynomial(_projected() if counted == "both" else LAYERS[0], d)
    _, c = polynomial(recurrent_layer(RECURRENT[cell], counted != "none"), d)
    return (c - b) / a / d if c > b else None


# --- the experiment ---------------------------------------------------------------------------------------------------


def accounted(widths: Sequence[int], n: int, d: int) -> dict[str, Any]:
    """Return the crossings under every assumption, and operations in millions at one length and width."""
    alone = {layer.name: layer for layer in LAYERS} | {
        "self-attention, projected": _projected(),
        **{cell: recurrent_layer(kind, True) for cell, kind in RECURRENT.items()},
    }
    rows = {
        "by_layer": alone,
        "by_neighbours": {str(r): restricted_to(r) for r in NEIGHBOURS if r <= n},
        "by_kernel": {str(k): convolution_of(k) for k in KERNELS},
    }
    return {
        "at": {"n": n, "d": d},
        "crossings_over_d": {
            cell: {counted: [crossing_over_d(cell, counted, width) for width in widths] for counted in COUNTED}
            for cell in RECURRENT
        },
        "millions": {
            name: {row: _count(layer, n, d) / 1e6 for row, layer in of_rows.items()} for name, of_rows in rows.items()
        },
    }


def _count(layer: Layer, n: int, d: int) -> float:
    """Return the operations of a layer; those of a recurrent one, which grow with n, are counted on a short piece."""
    return polynomial(layer, d)[1] * n if layer.name in GATES else operations(layer, n, d)


def account_claims(accounts: Mapping[str, Any]) -> list[Claim]:
    """Return the claims about what is counted, each decided by ``accounted``."""
    crossings = accounts["crossings_over_d"]
    places = {in_widths(of_width[0]) for by_cell in crossings.values() for of_width in by_cell.values()}
    steady = all(len(set(of_width)) == 1 for by_cell in crossings.values() for of_width in by_cell.values())
    n, d, millions = accounts["at"]["n"], accounts["at"]["d"], accounts["millions"]
    by_r, by_k = ({int(size): count for size, count in millions[key].items()} for key in ("by_neighbours", "by_kernel"))
    share = [1e6 * count / (4 * r * n * d) for r, count in by_r.items()]
    per_k = [count / k for k, count in by_k.items()]
    return [
        Claim(
            "From which length on self-attention takes more than recurrence depends on what is counted",
            steady and len(places) > 1,
            f"{len(places)} different lengths for three cells and three ways to count",
        ),
        Claim(
            "Restricted self-attention takes r n d operations, a convolution k n d²",
            max(share) / min(share) < 1.05 and max(per_k) / min(per_k) < 1.05,
            f"at n = {n:,}, d = {d}, {min(by_r.values()):.0f} to {max(by_r.values()):.0f} million for r = {min(by_r)} "
            f"to {max(by_r)}, {min(by_k.values()):.0f} to {max(by_k.values()):.0f} for k = {min(by_k)} to {max(by_k)}. "
            f"In blocks, restricted self-attention takes {max(share):.1f} times 4rnd, a third of it masked",
        ),
    ]


def in_widths(crossing: float | None) -> str:
    """Return a crossing in words: "n = 2d", or "any n" if self-attention takes more at any length."""
    return "any n" if crossing is None else "n = d" if crossing == 1 else f"n = {crossing:g}d"


def account_section(accounts: Mapping[str, Any]) -> Section:
    """Return the section on what is counted, with a figure over r and a table of crossings."""
    crossings, millions = accounts["crossings_over_d"], accounts["millions"]
    n, d = accounts["at"]["n"], accounts["at"]["d"]
    sizes = [int(r) for r in millions["by_neighbours"]]
    lines = [Curve("restricted", sizes, list(millions["by_neighbours"].values()), points=True)]
    flat = {f"convolution, k = {k}": count for k, count in millions["by_kernel"].items()}
    flat |= {name: millions["by_layer"][name] for name in ("self-attention", "plain RNN")}
    colours = itertools.chain([ORANGE] * len(millions["by_kernel"]), (QUIET, SERIES[2]))
    for (name, count), colour in zip(flat.items(), colours, strict=True):
        lines.append(Curve(name, (sizes[0], sizes[-1]), [count] * 2, colour=colour, dashed=True))
    return Section(
        "What is counted",
        [
            "A recurrent layer projects its input, self-attention its queries, keys, values and output; gates multiply "
            "the products of a recurrent layer by 3 (GRU) or 4 (LSTM). The table has the length from which "
            "self-attention takes more.",
        ],
        curves([Chart(lines, "neighbourhood r (log scale)", "operations (millions, log scale)",
                      f"n = {n:,}, d = {d}", x_log=2, y_log=10)], width=4.6, height=3.4),
        "accounts",
        Table(
            ("recurrent layer", *COUNTED.values()),
            [(cell, *(in_widths(by_cell[counted][0]) for counted in COUNTED)) for cell, by_cell in crossings.items()],
        ),
        "Operations of one layer over the size of the neighbourhood; dashed: layers that have none.",
    )  # fmt: skip
