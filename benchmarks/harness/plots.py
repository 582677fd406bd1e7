"""Figures of the results: one look, units on every axis, labels at the lines, colours that all eyes can tell apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from dragoman.explanation.figures import matplotlib_for

OURS, QUIET = "#2a5d8f", "#8a8a8a"
FAMILIES = {  # blue, vermilion, green and black of Okabe and Ito, which differ for every kind of colour vision
    "dragoman": OURS,
    "CTranslate2": "#d55e00",
    "Hugging Face": "#009e73",
    "torch.nn": "#1a1a1a",
    "fused": OURS,
    "plain": "#d55e00",
    "written": "#009e73",
    "preparing": OURS,
    "first batch": "#d55e00",
    "bf16": OURS,
    "int8": "#d55e00",
    "fp32": "#1a1a1a",
}
DASHES: dict[str, Any] = {"fp32": "-", "bf16": (0, (5, 2)), "int8": (0, (1.5, 1.5)), "not cached": (0, (1.5, 1.5))}

Spread = Mapping[str, float]


class Line(NamedTuple):
    """One line of a plot."""

    name: str
    x: Sequence[float]
    y: Sequence[float]


def colour(name: str) -> str:
    """Of a system's family."""
    return next((value for family, value in FAMILIES.items() if name.startswith(family)), QUIET)


def dashes(name: str) -> Any:
    """Of a precision: solid fp32, dashed bf16, dotted int8; where names begin with it, of what follows it."""
    if name in DASHES:
        return "-"
    if name.startswith(tuple(DASHES)):
        return DASHES["int8"] if "," in name else DASHES["bf16"]
    return next((value for precision, value in DASHES.items() if precision in name), "-")


def bars(panels: Mapping[str, Mapping[str, Spread]], unit: str, path: Path) -> None:
    """Horizontal bars, a panel for each key: medians as lengths and numbers, least and greatest as whiskers."""
    pyplot = matplotlib_for([])
    tallest = max(len(rows) for rows in panels.values())
    figure, all_axes = pyplot.subplots(
        1, len(panels), figsize=(1.2 + 4.2 * len(panels), 0.9 + 0.34 * tallest), layout="constrained", squeeze=False
    )
    for axes, (title, rows) in zip(all_axes[0], panels.items(), strict=True):
        names = sorted(rows, key=lambda name: rows[name]["median"])
        medians = [rows[name]["median"] for name in names]
        errors = [
            [rows[name]["median"] - rows[name]["min"] for name in names],
            [rows[name]["max"] - rows[name]["median"] for name in names],
        ]
        colours = [OURS if name.startswith("dragoman") else "#b9b9b9" for name in names]
        axes.barh(names, medians, color=colours, height=0.66)
        axes.errorbar(medians, names, xerr=errors, fmt="none", ecolor="#333333", elinewidth=1)
        most = max(rows[name]["max"] for name in names)
        for name in names:
            axes.annotate(
                number(rows[name]["median"]), (rows[name]["max"], name), (4, 0), textcoords="offset points",
                va="center", fontsize=9,
            )  # fmt: skip
        axes.set_xlim(0, 1.18 * most)
        axes.set_xlabel(unit)
        axes.set_title(title, loc="left", fontsize=11)
        axes.tick_params(axis="y", length=0)
        axes.spines[["top", "right", "left"]].set_visible(False)
    _save(pyplot, figure, path)


def lines(panels: Mapping[str, Sequence[Line]], x_unit: str, y_units: Sequence[str], path: Path) -> None:
    """Lines between logarithmic axes, a panel for each key, each line named at its end."""
    pyplot = matplotlib_for([])
    figure, all_axes = pyplot.subplots(
        1, len(panels), figsize=(5.6 * len(panels), 4.2), layout="constrained", squeeze=False
    )
    for axes, (title, drawn), y_unit in zip(all_axes[0], panels.items(), y_units, strict=True):
        _draw_lines(
            axes, drawn, x_unit, y_unit, title, rotation=45 if len({x for one in drawn for x in one.x}) > 6 else 0
        )
    _save(pyplot, figure, path)


def _draw_lines(axes: Any, drawn: Sequence[Line], x_unit: str, y_unit: str, title: str, rotation: int = 0) -> None:
    from matplotlib.ticker import LogLocator

    axes.set(xscale="log", yscale="log")
    for line in drawn:
        axes.plot(
            line.x, line.y, color=colour(line.name), linestyle=dashes(line.name), marker="o", markersize=3.5,
            linewidth=1.7,
        )  # fmt: skip
    xs = sorted({x for line in drawn for x in line.x})
    axes.set_xticks(xs, [number(x) for x in xs], rotation=rotation)
    axes.set_xlim(xs[0] * 0.93, xs[-1] * 1.07)
    low, high = min(min(line.y) for line in drawn), max(max(line.y) for line in drawn)
    axes.set_ylim(low / 1.3, high * 1.3)
    every = (1, 2, 5) if high / low < 1000 else (1,)
    axes.yaxis.set_major_locator(LogLocator(subs=every))
    axes.yaxis.set_major_formatter(lambda y, _: number(y))
    axes.minorticks_off()
    _name_ends(axes, drawn)
    axes.set_xlabel(x_unit)
    axes.set_ylabel(y_unit)
    axes.set_title(title, loc="left", fontsize=11)
    axes.tick_params(length=3)
    axes.spines[["top", "right"]].set_visible(False)


def roofline(products: Sequence[Line], title: str, steps: Mapping[str, tuple[float, float]], path: Path) -> None:
    """Left: the speed of products over their rows. Right: of whole steps, each on a bar of the fastest product.

    Args:
        products: At most four, or their names cover one another.
        title: Of the left panel.
        steps: For each, its own speed and that of the fastest product in its precision, in GFLOP/s.
    """
    pyplot = matplotlib_for([])
    figure, (left, right) = pyplot.subplots(
        1, 2, figsize=(11.5, 3.9), layout="constrained", width_ratios=(1.25, 1), gridspec_kw={"wspace": 0.06}
    )
    _draw_lines(left, products, "rows (log scale)", "GFLOP/s (log scale)", title)
    names = sorted(steps, key=lambda name: steps[name][0])
    thick = 0.12 * max(len(names), 2)  # as thick for two as for four
    right.barh(names, [steps[name][1] for name in names], color="#e2e2e2", height=thick)
    right.barh(names, [steps[name][0] for name in names], color=OURS, height=thick)
    right.set_ylim(-0.6, len(names) - 0.4)
    for name in names:
        step, most = steps[name]
        text = f"{number(step)} of {number(most)}: {100 * step / most:.1f}%"
        right.annotate(text, (most, name), (5, 0), textcoords="offset points", va="center", fontsize=9)
    right.set_xlim(0, 1.6 * max(most for _, most in steps.values()))
    right.xaxis.set_major_formatter(lambda x, _: number(x))
    right.set_xlabel("GFLOP/s")
    right.set_title("Training steps; grey: the fastest product", loc="left", fontsize=11)
    right.tick_params(axis="y", length=0)
    right.spines[["top", "right", "left"]].set_visible(False)
    _save(pyplot, figure, path)


def number(value: float) -> str:
    """Three digits and thousands marked: 8,203, 27.4, 0.52."""
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def _name_ends(axes: Any, drawn: Sequence[Line]) -> None:
    """Write each line's name beside its last point, moved apart where they would overlap."""
    figure = axes.figure
    figure.canvas.draw()
    _, high = axes.transAxes.transform([(0, 0), (0, 1)])[:, 1]
    ends = sorted(drawn, key=lambda line: line.y[-1])
    points = [float(axes.transData.transform((line.x[-1], line.y[-1]))[1]) for line in ends]
    step = 13 * figure.dpi / 100
    places: list[float] = []
    for point in points:
        places.append(max(point, places[-1] + step) if places else point)
    over = places[-1] - high if places else 0
    if over > 0:  # they pile up over the top: push them down again
        places[-1] -= over
        for i in range(len(places) - 2, -1, -1):
            places[i] = min(places[i], places[i + 1] - step)
    for line, point, place in zip(ends, points, places, strict=True):
        axes.annotate(
            line.name, (line.x[-1], line.y[-1]), (6, (place - point) * 72 / figure.dpi), textcoords="offset points",
            color=colour(line.name), va="center", fontsize=8.5, annotation_clip=False,
        )  # fmt: skip


def _save(pyplot: Any, figure: Any, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    for side in figure.axes:
        side.set_axisbelow(True)
    figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None, dpi=150)
    pyplot.close(figure)
