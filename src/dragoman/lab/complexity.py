"""What one layer costs over the length n and the width d: time, memory, counted operations (section 4, Table 1)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from dragoman.explanation.figures import Chart, Curve, curves
from dragoman.explanation.style import SERIES
from dragoman.lab.costs import KERNEL, LAYERS, NEIGHBOURS, Layer, kept_bytes, operations, seconds
from dragoman.lab.report import Claim, Findings, Lab, Section, Table

TAKES = ("device",)

LONG = 256
"""Exponents of n are fitted from here on: below, what is constant still counts."""


def exponent(x: Sequence[float], y: Sequence[float]) -> float | None:
    """The slope of a line through the logarithms, by least squares; None where there is nothing to fit."""
    if not all(y):
        return None
    return float(np.polyfit(np.log(x), np.log(y), 1)[0])


def crossing(x: Sequence[float], one: Sequence[float], other: Sequence[float]) -> float | None:
    """Where ``one`` begins to be more than ``other``, by a line between logarithms; None where it never does."""
    gaps = [math.log(a / b) for a, b in zip(one, other, strict=True)]
    for i in range(1, len(gaps)):
        if gaps[i - 1] <= 0 < gaps[i]:
            share = -gaps[i - 1] / (gaps[i] - gaps[i - 1])
            return float(math.exp(math.log(x[i - 1]) + share * math.log(x[i] / x[i - 1])))
    return None


# --- the experiment ---------------------------------------------------------------------------------------------------


def run(lab: Lab) -> Findings:
    """Claims: exponents of n are 2, 1, 1, 1; operations of self-attention pass those of recurrence where n passes d."""
    lengths = [64, 128, 256, 512] if lab.quick else [64, 128, 256, 512, 1024, 2048, 4096, 8192]
    widths = [64, 128] if lab.quick else [64, 128, 256, 512]
    middle, least = widths[1], 0.02 if lab.quick else 0.4
    rows = []
    for layer in LAYERS:
        for d in widths:

            def timed(layer: Layer = layer, d: int = d) -> list[float]:
                lab.say(f"timing {layer.name}, d = {d}")
                return [seconds(layer, n, d, lab.device, least) for n in lengths]

            times = lab.done(f"{layer.name}-{d}", timed, [lengths, lab.device.type])
            for n, taken in zip(lengths, times, strict=True):
                row = {"layer": layer.name, "n": n, "d": d, "operations": operations(layer, n, d), "seconds": taken}
                if d == middle and n <= 2048:
                    row |= {"bytes": kept_bytes(layer, False, n, d), "bytes_fused": kept_bytes(layer, True, n, d)}
                rows.append(row)
    numbers = {
        "kernel_width": KERNEL, "neighbours": NEIGHBOURS, "lengths": lengths, "widths": widths, "d": middle,
        "rows": rows,
    }  # fmt: skip
    numbers |= _fitted(numbers)
    return Findings(numbers, sections(numbers), verdict(numbers))


def series(numbers: dict[str, Any], layer: str, key: str, **at: int) -> tuple[list[float], list[float]]:
    """One figure of a layer over n at a given d, or over d at a given n; where it was measured."""
    (fixed, value), over = next(iter(at.items())), "d" if "n" in at else "n"
    rows = [row for row in numbers["rows"] if row["layer"] == layer and row[fixed] == value and key in row]
    return [row[over] for row in rows], [row[key] for row in rows]


def long(x: Sequence[float], y: Sequence[float]) -> tuple[list[float], list[float]]:
    """The part of a series over n where what is constant no longer counts."""
    start = next(i for i, n in enumerate(x) if n >= LONG)
    return list(x[start:]), list(y[start:])


def _fitted(numbers: dict[str, Any]) -> dict[str, Any]:
    """Exponents, and where self-attention becomes dearer than recurrence."""
    d, n = numbers["d"], max(m for m in numbers["lengths"] if m <= 1024)
    fits = {}
    for layer in LAYERS:
        memory = series(numbers, layer.name, "bytes", d=d), series(numbers, layer.name, "bytes_fused", d=d)
        fits[layer.name] = {
            "operations_of_n": exponent(*long(*series(numbers, layer.name, "operations", d=d))),
            "seconds_of_n": exponent(*long(*series(numbers, layer.name, "seconds", d=d))),
            "operations_of_d": exponent(*series(numbers, layer.name, "operations", n=n)),
            "seconds_of_d": exponent(*series(numbers, layer.name, "seconds", n=n)),
            "bytes_of_n": exponent(*long(*memory[0])),
            "bytes_fused_of_n": exponent(*long(*memory[1])),
        }
    crossings = []
    for width in numbers["widths"]:
        pairs = {key: [series(numbers, layer, key, d=width)[1] for layer in ("self-attention", "recurrent")]
                 for key in ("operations", "seconds")}  # fmt: skip
        at = {key: crossing(numbers["lengths"], *pair) for key, pair in pairs.items()}
        crossings.append({"d": width, **at})
    return {"exponents": fits, "crossings": crossings}


def verdict(numbers: dict[str, Any]) -> list[Claim]:
    """What a full run decides, from the numbers that it keeps."""
    fits, d = numbers["exponents"], numbers["d"]

    def listed(key: str) -> str:
        return ", ".join(f"{layer.name} {fits[layer.name][key]:.2f}" for layer in LAYERS)

    def as_said(key: str, of: str) -> bool:
        return all(abs(float(fits[layer.name][key]) - getattr(layer, of)) < 0.15 for layer in LAYERS)

    by_count = [(row["d"], row["operations"]) for row in numbers["crossings"]]
    by_time = [(row["d"], row["seconds"]) for row in numbers["crossings"]]
    attention = fits["self-attention"]
    return [
        Claim(
            "Counted operations grow with the length as Table 1 says: n², n, n, n",
            as_said("operations_of_n", "of_n"),
            f"exponents of n: {listed('operations_of_n')}",
        ),
        Claim(
            "And with the width as it says: d, d², d², d",
            as_said("operations_of_d", "of_d"),
            f"exponents of d: {listed('operations_of_d')}",
        ),
        Claim(
            "So does the time of fused kernels over the length",
            as_said("seconds_of_n", "of_n"),
            f"exponents of n at d = {d}: {listed('seconds_of_n')}",
        ),
        Claim(
            "Counted as in Table 1, self-attention takes more operations than a recurrent layer where n passes d",
            all(n is not None and abs(n / width - 1) < 0.05 for width, n in by_count),
            "; ".join(f"d = {width}: n = {n:,.0f}" if n else f"d = {width}: nowhere" for width, n in by_count)
            + ". So the formulas have it: 4n²d against 4nd², self-attention without its projections. These are 8nd² "
            "more, and with them it takes more at any n",
        ),
        Claim(
            "Up to n = d it is the faster one (fused, without projections), as one of the five documents says",
            all(n is None or n >= width for width, n in by_time),
            "slower from "
            + "; ".join(f"d = {width}: {f'n = {n:,.0f}' if n else 'no n measured'}" for width, n in by_time),
        ),
        Claim(
            "Written out, self-attention keeps n² numbers for the backward pass; fused it keeps n",
            abs(attention["bytes_of_n"] - 2) < 0.15 and abs(attention["bytes_fused_of_n"] - 1) < 0.15,
            f"exponents of n: {attention['bytes_of_n']:.2f} and {attention['bytes_fused_of_n']:.2f}",
        ),
    ]


def _charts(numbers: dict[str, Any], key: str, label: str, factor: float = 1.0) -> list[Chart]:
    """One figure over n, and over d."""
    d, n = numbers["d"], max(m for m in numbers["lengths"] if m <= 1024)

    def over(at: dict[str, int]) -> list[Curve]:
        found = [(layer.name, *series(numbers, layer.name, key, **at)) for layer in LAYERS]
        return [  # counted, convolutional and restricted are nearly one line over n: dashed, it shows what lies below
            Curve(name, x, [factor * value for value in y], points=True, dashed=name == "convolutional")
            for name, x, y in found
        ]

    return [
        Chart(over({"d": d}), "length n (log scale)", label, f"d = {d}", x_log=2, y_log=10, marks={d: "n = d"}),
        Chart(over({"n": n}), "width d (log scale)", label, f"n = {n:,}", x_log=2, y_log=10),
    ]


def _memory_chart(numbers: dict[str, Any]) -> Chart:
    """As written; of attention, where it matters, also as the fused kernel keeps it."""
    lines = []
    for layer, colour in zip(LAYERS, SERIES, strict=False):
        for key, how in (("bytes", ""), ("bytes_fused", ", fused")):
            x, y = series(numbers, layer.name, key, d=numbers["d"])
            if not how or layer.of_d == 1:  # both kinds of attention
                mib = [value / 2**20 for value in y]
                lines.append(Curve(layer.name + how, x, mib, points=True, dashed=bool(how), colour=colour))
    label = "kept for the backward pass (MiB, log scale)"
    return Chart(lines, "length n (log scale)", label, f"d = {numbers['d']}", x_log=2, y_log=10)


def sections(numbers: dict[str, Any]) -> list[Section]:
    """What a full run tells and draws, from the numbers that it keeps."""
    fits = numbers["exponents"]
    steps = {"recurrent": "n"}
    columns = (
        "layer", "operations by the paper", "steps one after another", "operations: exponent of n", "of d",
        "time: exponent of n", "of d", "memory: exponent of n", "fused",
    )  # fmt: skip
    table = Table(
        columns,
        [
            (layer.name, layer.formula, steps.get(layer.name, "1"), f["operations_of_n"], f["operations_of_d"],
             f["seconds_of_n"], f["seconds_of_d"], f["bytes_of_n"], f["bytes_fused_of_n"])
            for layer in LAYERS for f in [fits[layer.name]]
        ],
    )  # fmt: skip
    crossings = Table(
        ("d", "n by operations", "n by time"),
        [(row["d"], row["operations"], row["seconds"] or "beyond the longest") for row in numbers["crossings"]],
    )
    return [
        Section(
            "Table 1, counted",
            [
                "What one layer computes to mix its n positions of width d. Operations are counted by torch while the "
                "layer runs as its equation is written. As in the paper's Table 1 the projections are left out, "
                "though self-attention always has four of them (8nd² operations) while the recurrent layer's two "
                "products are all it needs: that both cross at n = d follows from this choice. "
                f"k = {numbers['kernel_width']} is the width of the "
                f"convolution, r = {numbers['neighbours']} the neighbourhood of restricted self-attention.",
            ],
            curves(_charts(numbers, "operations", "operations (millions, log scale)", 1e-6), width=3.4, height=3.2),
            "operations",
            table,
            "Counted multiplications and additions, projections left out. Counted so, self-attention crosses "
            "recurrence at "
            "n = d. On the left convolutional lies on restricted self-attention.",
        ),
        Section(
            "Table 1, timed",
            "One forward pass of one sequence by torch's fused kernels, with one thread. A recurrent layer's steps "
            "wait for one another and are products of a matrix and a single vector, which a processor does slowly; so "
            "in time self-attention stays ahead for longer than operations say.",
            curves(_charts(numbers, "seconds", "time (ms, log scale)", 1e3), width=3.4, height=3.2),
            "time",
            crossings,
            "Time of a forward pass. The table: from which n on self-attention takes more than recurrence.",
        ),
        Section(
            "Memory",
            "What the forward pass keeps for the backward pass. Written out, attention keeps its n × n weights. A "
            "fused kernel computes them again, and keeps only what is n long.",
            curves([_memory_chart(numbers)], width=5.6, height=3.8),
            "memory",
            caption="Memory that training needs for one layer and one sequence. Fused self-attention lies on "
            "recurrent: "
            "both keep only what is n long. A fused convolution keeps nothing but its input.",
        ),
    ]
