"""Measure time, memory and operations of one layer over the length n and the width d (section 4, Table 1)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from dragoman.explanation.figures import Chart, Curve, curves
from dragoman.explanation.style import SERIES
from dragoman.lab.accounts import account_claims, account_section, accounted
from dragoman.lab.costs import KERNEL, LAYERS, NEIGHBOURS, Layer, kept_bytes, operations, seconds
from dragoman.lab.experiment import Claim, Findings, Lab, Section, Table
from dragoman.lab.machine import hardware

TAKES = ("device",)

LONG = 256
"""Length from which exponents of n are fitted: below it, constant costs still matter."""


def exponent(x: Sequence[float], y: Sequence[float]) -> float | None:
    """Return the exponent k of ``y = c x^k``, fitted to the logarithms by least squares; None if a ``y`` is 0."""
    if not all(y):
        return None
    return float(np.polyfit(np.log(x), np.log(y), 1)[0])


def crossing(x: Sequence[float], first: Sequence[float], second: Sequence[float]) -> float | None:
    """Return the ``x`` at which ``first`` first rises above ``second``, interpolated in logarithms.

    None if it never does, also if it is above from the start.
    """
    gaps = [math.log(a / b) for a, b in zip(first, second, strict=True)]
    for i in range(1, len(gaps)):
        if gaps[i - 1] <= 0 < gaps[i]:
            share = -gaps[i - 1] / (gaps[i] - gaps[i - 1])
            return float(math.exp(math.log(x[i - 1]) + share * math.log(x[i] / x[i - 1])))
    return None


# --- the experiment ---------------------------------------------------------------------------------------------------


def run(lab: Lab) -> Findings:
    """Measure each layer; claims: the exponents of Table 1, and where self-attention costs more than recurrence."""
    lengths = [64, 128, 256, 512] if lab.quick else [64, 128, 256, 512, 1024, 2048, 4096, 8192]
    widths = [64, 128] if lab.quick else [64, 128, 256, 512]
    middle, least_s = widths[1], 0.02 if lab.quick else 0.4
    rows = []
    for layer in LAYERS:
        for d in widths:

            def timed(layer: Layer = layer, d: int = d) -> list[float]:
                lab.say(f"timing {layer.name}, d = {d}")
                return [seconds(layer, n, d, lab.device, least_s) for n in lengths]

            times = lab.done(f"{layer.name}-{d}", timed, [lengths, lab.device.type, hardware(lab.device)])
            for n, taken in zip(lengths, times, strict=True):
                row = {"layer": layer.name, "n": n, "d": d, "operations": operations(layer, n, d), "seconds": taken}
                if d == middle and n <= 2048:
                    row |= {"bytes": kept_bytes(layer, False, n, d), "bytes_fused": kept_bytes(layer, True, n, d)}
                rows.append(row)
    numbers = {
        "kernel_width": KERNEL, "neighbours": NEIGHBOURS, "lengths": lengths, "widths": widths, "d": middle,
        "rows": rows,
    }  # fmt: skip
    numbers |= _fitted(numbers) | {"accounts": accounted(widths, min(1024, lengths[-1]), middle)}
    return Findings(numbers, sections(numbers), verdict(numbers))


def series(numbers: dict[str, Any], layer: str, key: str, **at: int) -> tuple[list[float], list[float]]:
    """Return one measured number of a layer over n at a fixed d, or over d at a fixed n: its xs and ys.

    Args:
        numbers: Numbers of a run.
        layer: Name of the layer.
        key: Name of the number, such as "seconds".
        at: The fixed size, ``d=...`` or ``n=...``.
    """
    (fixed, value), over = next(iter(at.items())), "d" if "n" in at else "n"
    rows = [row for row in numbers["rows"] if row["layer"] == layer and row[fixed] == value and key in row]
    return [row[over] for row in rows], [row[key] for row in rows]


def long(x: Sequence[float], y: Sequence[float]) -> tuple[list[float], list[float]]:
    """Return the part of a series over n from ``LONG`` on."""
    start = next(i for i, n in enumerate(x) if n >= LONG)
    return list(x[start:]), list(y[start:])


def _fitted(numbers: dict[str, Any]) -> dict[str, Any]:
    """Return the fitted exponents, and the lengths from which self-attention costs more than recurrence."""
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
        crossings.append({"d": width, **{key: crossing(numbers["lengths"], *pair) for key, pair in pairs.items()}})
    return {"exponents": fits, "crossings": crossings}


def is_faster_up_to_d(numbers: dict[str, Any], width: int) -> bool:
    """Return True if self-attention is no slower than recurrence at each measured length up to the width."""
    times = (series(numbers, layer, "seconds", d=width)[1] for layer in ("self-attention", "recurrent"))
    return all(first <= second for n, first, second in zip(numbers["lengths"], *times, strict=True) if n <= width)


def verdict(numbers: dict[str, Any]) -> list[Claim]:
    """Return the claims of the experiment, each decided by the numbers of a run."""
    fits, d = numbers["exponents"], numbers["d"]

    def listed(key: str) -> str:
        return ", ".join(f"{fits[layer.name][key]:.2f}" for layer in LAYERS)

    def as_in_paper(key: str, of: str) -> bool:
        """Return True if the exponents of all layers are those of the paper, within 0.15."""
        return all(abs(float(fits[layer.name][key]) - getattr(layer, of)) < 0.15 for layer in LAYERS)

    by_count = [(row["d"], row["operations"]) for row in numbers["crossings"]]
    by_time = [(row["d"], row["seconds"]) for row in numbers["crossings"]]
    attention, times = fits["self-attention"], [float(fits[layer.name]["seconds_of_n"]) for layer in LAYERS]
    return [
        Claim(
            "Counted operations grow with the length as Table 1 says: n², n, n, n",
            as_in_paper("operations_of_n", "of_n"),
            f"exponents {listed('operations_of_n')}",
        ),
        Claim(
            "And with the width as it says: d, d², d², d",
            as_in_paper("operations_of_d", "of_d"),
            f"exponents {listed('operations_of_d')}",
        ),
        Claim(
            "So does the time of fused kernels over the length",
            as_in_paper("seconds_of_n", "of_n"),
            f"exponents of n at d = {d}: {min(times):.2f} to {max(times):.2f}",
        ),
        Claim(
            "Counted without its projections, self-attention takes more operations than a plain RNN where n passes d",
            all(n is not None and abs(n / width - 1) < 0.05 for width, n in by_count),
            "as the formulas have it: 4n²d against 4nd²",
        ),
        *account_claims(numbers["accounts"]),
        Claim(
            "Up to n = d it is the faster one (fused, without projections), as one of the five documents says",
            all(map(partial(is_faster_up_to_d, numbers), numbers["widths"])),
            f"slower from n = {min((n / width for width, n in by_time if n), default=math.inf):.1f}d or later",
        ),
        Claim(
            "Written out, self-attention keeps n² numbers for the backward pass; fused it keeps n",
            abs(attention["bytes_of_n"] - 2) < 0.15 and abs(attention["bytes_fused_of_n"] - 1) < 0.15,
            f"exponents of n: {attention['bytes_of_n']:.2f} and {attention['bytes_fused_of_n']:.2f}",
        ),
    ]


def _charts(numbers: dict[str, Any], key: str, label: str, factor: float = 1.0) -> list[Chart]:
    """Draw one measured number of all layers over n, and over d."""
    d, n = numbers["d"], max(m for m in numbers["lengths"] if m <= 1024)

    def over(at: dict[str, int]) -> list[Curve]:
        lines = []
        for layer in LAYERS:
            x, y = series(numbers, layer.name, key, **at)
            # Dashed, because its counted operations over n nearly hide the line of restricted self-attention.
            dashed = layer.name == "convolutional"
            lines.append(Curve(layer.name, x, [factor * value for value in y], points=True, dashed=dashed))
        return lines

    return [
        Chart(over({"d": d}), "length n (log scale)", label, f"d = {d}", x_log=2, y_log=10, marks={d: "n = d"}),
        Chart(over({"n": n}), "width d (log scale)", label, f"n = {n:,}", x_log=2, y_log=10),
    ]


def _memory_chart(numbers: dict[str, Any]) -> Chart:
    """Draw the memory of each layer as its equation is written; of attention also with the fused kernel."""
    lines = []
    for layer, colour in zip(LAYERS, SERIES, strict=False):
        for key, how in (("bytes", ""), ("bytes_fused", ", fused")):
            x, y = series(numbers, layer.name, key, d=numbers["d"])
            if not how or layer.of_d == 1:  # both kinds of attention
                mib = [value / 2**20 for value in y]
                lines.append(Curve(layer.name + how, x, mib, points=True, dashed=bool(how), colour=colour))
    label = "kept for the backward pass (MiB, log scale)"
    return Chart(lines, "length n (log scale)", label, f"d = {numbers['d']}", x_log=2, y_log=10)


def _exponents(fits: Mapping[str, float | None], *keys: str) -> str:
    """Return exponents with two decimals, "2.00, 1.00", without those that were not measured."""
    return ", ".join(f"{fit:.2f}" for key in keys if (fit := fits[key]) is not None)


def sections(numbers: dict[str, Any]) -> list[Section]:
    """Return the sections of the report, with figures and tables made from the numbers of a run."""
    fits = numbers["exponents"]
    steps = {"recurrent": "n"}
    columns = (
        "layer", "operations by the paper", "steps", "exponents of operations: n, d", "of time: n, d",
        "of memory: n, fused",
    )  # fmt: skip
    table = Table(
        columns,
        [
            (layer.name, layer.formula, steps.get(layer.name, "1"),
             *(_exponents(fits[layer.name], f"{what}_of_n", other)
               for what, other in (("operations", "operations_of_d"), ("seconds", "seconds_of_d"),
                                   ("bytes", "bytes_fused_of_n"))))
            for layer in LAYERS
        ],
    )  # fmt: skip
    return [
        Section(
            "Table 1, counted",
            [
                "The work of one layer that mixes n positions of width d. Torch counts the operations while the layer "
                "runs as its equation is written: self-attention without its four projections (8nd² operations), and a "
                "plain RNN with both of its products. Convolutions "
                f"have k = {numbers['kernel_width']}, restricted self-attention r = {numbers['neighbours']}.",
            ],
            curves(_charts(numbers, "operations", "operations (millions, log scale)", 1e-6), width=3.4, height=3.2),
            "operations",
            table,
            "Counted multiplications and additions. On the left convolutional lies on restricted self-attention.",
        ),
        account_section(numbers["accounts"]),
        Section(
            "Table 1, timed",
            "One forward pass of one sequence by torch's fused kernels, with one thread.",
            curves(_charts(numbers, "seconds", "time (ms, log scale)", 1e3), width=3.4, height=3.2),
            "time",
            caption="Time of a forward pass.",
        ),
        Section(
            "Memory",
            "A fused kernel computes the n × n weights again.",
            curves([_memory_chart(numbers)], width=5.6, height=3.8),
            "memory",
            caption="Memory that training needs for one layer and one sequence. Fused self-attention lies on "
            "recurrent.",
        ),
    ]
