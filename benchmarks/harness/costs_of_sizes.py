"""Sections of the page about sizes: products of matrices, sweeps, and how cost grows."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from benchmarks.harness import plots
from benchmarks.harness.markdown import UPPER, Record, Records, Section, across, image, sources, table
from benchmarks.harness.plots import Line, number

DRAWN = ("fp32", "bf16", "bf16 prepared", "int8 prepared")
"""The kinds of product that are drawn, those that dragoman uses: with more, lines and names cover one another."""

ONLY_IN_RECORDS = ("written_out_fp32", "written_out", "fused")
"""Ways to compute attention that the page leaves out: what training chooses is one of them."""


def roofline(records: Records) -> Section:
    """Show the speed of products that each processor reaches, and the share of it that a training step reaches."""
    text = "## Roofline\n\nThe fastest of the products of matrices that were timed; the figure has more of them:\n\n"
    fastest = {machine: fastest_of(record) for machine, record in records.items()}
    text += across("GFLOP/s", fastest) + "\n\n"
    text += "A training step; its time includes everything, its operations only matrix products:\n\n"
    shares = {machine: shares_of(record) for machine, record in records.items()}
    text += across("GFLOP/s; share of the fastest product, %", shares)
    text += "\n\n" + image("performance-roofline.svg", "Speed of matrix products against their rows")
    text += "\n\n" + image("performance-roofline-steps.svg", "Share of the fastest product that training steps reach")
    panels = {f"rows x 512 x 2,048, {machine}": product_lines(record) for machine, record in records.items()}
    steps = {
        f"{upper(name)}, {machine}": (step["gflop_per_s"]["median"], step["peak_gflop_per_s"])
        for machine, record in records.items()
        for name, step in record["figures"]["training_steps"].items()
    }
    draw = [
        ("performance-roofline.svg",
         partial(plots.lines, panels, "rows", ["GFLOP/s"] * len(panels), title="Matrix products")),
        ("performance-roofline-steps.svg",
         partial(plots.shares, steps, title="Training steps and the fastest product")),
    ]  # fmt: skip
    return Section(text, draw)


def sweep(records: Records, title: str, unit: str, keys: Mapping[str, str], note: str) -> Section:
    """Show a sweep: a plot with a panel for each figure and machine, and the first figure as a table."""
    tables, panels, units = [], {}, []
    first = next(iter(keys))
    for machine, record in records.items():
        systems = record["figures"]["systems"]
        values = sorted({int(value) for system in systems.values() for value in system})
        rows = [
            [name, *(number(system[str(v)][first]["median"]) if str(v) in system else "" for v in values)]
            for name, system in systems.items()
        ]
        tables.append(table([f"{title.lower()}, {machine}", *(f"{value:,}" for value in values)], rows))
        for key, unit_y in keys.items():
            panels[f"{unit_y.partition(' (')[0]} against {title.lower()}, {machine}"] = [
                Line(name, [int(v) for v in system], [system[v][key]["median"] for v in system])
                for name, system in systems.items()
            ]
            units.append(unit_y)
    name = f"performance-{title.lower()}.svg"
    text = f"## {title}\n\n{note} The table is {next(iter(keys.values()))}.\n\n" + "\n\n".join(tables)
    text += "\n\n" + image(name, f"{' and '.join(keys.values())} against {title.lower()}")
    notes = sources(records, lambda machine, figures: f"{figures['what']}.")
    return Section(
        f"{text}\n\n{notes}", [(name, partial(plots.lines, panels, unit, units, title=f"Cost against {title.lower()}"))]
    )


def growth(records: Records) -> Section:
    """Show cost at both ends of each series and its exponents; plot it against sentence length and corpus."""
    tables, lengths, corpora = [], {}, {}
    for machine, record in records.items():
        figures = record["figures"]
        rows = [
            grown(f"{' '.join(path)} against {part}".replace("_", " "), values, "seconds", "mib")
            for part, measures in figures.items()
            for path, values in series(measures)
            if "seconds" in values and path[-1] not in ONLY_IN_RECORDS
        ]
        corpus, attention = figures.get("corpus"), figures.get("length", {}).get("attention")
        if corpus:
            rows += [grown(f"{what} against corpus", corpus, *keys) for what, keys in OF_A_CORPUS.items()]
        tables.append(table([machine, "sizes", "seconds", "exponent", "MiB", "exponent"], rows))
        for i, (title, key) in enumerate((("Time", "seconds"), ("Memory", "mib"))):
            if attention:
                lengths[f"{title} of attention against length, {machine}"] = [
                    Line(name.replace("_", " "), values["size"], values[key])
                    for name, values in attention.items()
                    if values.get("size")
                ]
            if corpus:
                corpora[f"{title} against the corpus, {machine}"] = [
                    Line(what, corpus["size"], corpus[keys[i]]) for what, keys in OF_A_CORPUS.items()
                ]
    text = "## How cost grows\n\nTime and memory above idle at the smallest and the largest size. The exponent is the "
    text += "slope of a line through the logarithms of the three largest: 1 is linear, 2 quadratic. Lengths are tokens "
    text += "of one sentence, batches sentences of 32 tokens in training and of 15 in a search with beam 5. Corpora "
    text += "are pairs of the phrasebook.\n\n" + "\n\n".join(tables)
    units = ["seconds", "memory above idle (MiB)"]
    draw = []
    for name, panels, axis, shown, title in (
        ("length", lengths, "sentence length (tokens)", "of attention against sentence length", "Cost of attention"),
        ("corpus", corpora, "pairs", "of preparing and opening against the corpus", "Cost of a corpus"),
    ):
        if panels:
            text += "\n\n" + image(f"performance-{name}.svg", f"Time and memory {shown}")
            several = units * (len(panels) // 2)
            draw.append((f"performance-{name}.svg", partial(plots.lines, panels, axis, several, title=title)))
    return Section(text, draw)


OF_A_CORPUS = {
    "preparing": ("prepare_seconds", "prepare_mib"),
    "first batch": ("first_batch_warm_s", "first_batch_warm_mib"),
    "first batch, files not cached": ("first_batch_cold_s", "first_batch_cold_mib"),
}
"""What is measured of a corpus, by its time and its memory in the result."""


def upper(step: str) -> str:
    """Return the name of a training step, ``base bf16``, with the size in capitals."""
    size, precision = step.split()
    return f"{UPPER.get(size, size)} {precision}"


def fastest_of(record: Record) -> dict[str, str]:
    """Return for each precision that training uses the speed of its fastest product."""
    products = [product["gflop_per_s"] for product in record["figures"]["products"]]
    kinds = [kind for kind in DRAWN if not kind.startswith("int8")]
    speeds = {kind: [speed[kind]["median"] for speed in products if kind in speed] for kind in kinds}
    return {kind: number(max(values)) for kind, values in speeds.items() if values}


def shares_of(record: Record) -> dict[str, str]:
    """Return for each training step its speed, and its share of the fastest product in per cent."""
    return {
        upper(name): f"{number(step['gflop_per_s']['median'])}; {step['percent_of_peak']:.1f}"
        for name, step in record["figures"]["training_steps"].items()
    }


def product_lines(record: Record) -> list[Line]:
    """Return a line for each kind of product that is drawn: its speed against the number of rows."""
    products = [p for p in record["figures"]["products"] if (p["inner"], p["columns"]) == (512, 2048)]
    return [
        Line(kind, [p["rows"] for p in products], [p["gflop_per_s"][kind]["median"] for p in products])
        for kind in record["figures"]["products"][0]["gflop_per_s"]
        if kind in DRAWN
    ]


def grown(name: str, values: Record, *keys: str) -> list[str]:
    """Return a row: sizes, then of each key its values at both ends and its exponent, if there is one."""
    row = [name, f"{number(values['size'][0])} to {number(values['size'][-1])}"]
    for key in keys:
        fit = (values["growth"].get(key) or {}).get("last_three")
        ends = f"{number(values[key][0])} to {number(values[key][-1])}"
        row += [ends, "" if fit is None else f"{fit['exponent']:.2f}"]
    return row


def series(figures: Any, path: tuple[str, ...] = ()) -> list[tuple[tuple[str, ...], Record]]:
    """Return every series of sizes below ``figures`` that has any, with the names that lead to it."""
    if not isinstance(figures, dict):
        return []
    here = [(path, figures)] if figures.get("size") else []
    return here + [below for key, value in figures.items() if key != "growth" for below in series(value, (*path, key))]
