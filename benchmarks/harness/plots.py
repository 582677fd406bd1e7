"""Figures of the results, in the one look of all figures: a colour for each system, a dash for each precision."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from dragoman.explanation import figures
from dragoman.explanation.figures import Bar, Bars, Chart, Curve
from dragoman.explanation.style import BLUE, GREEN, INK, ORANGE, PURPLE, QUIET, save

__all__ = ["Line", "bars", "lines", "number", "shares"]

FAMILIES = {
    "dragoman": BLUE,
    "CTranslate2": ORANGE,
    "Hugging Face": GREEN,
    "torch.nn": PURPLE,
    "Marian": ORANGE,
    "JoeyNMT": INK,
    "Eole": PURPLE,
    "fused": BLUE,
    "plain": ORANGE,
    "written": GREEN,
    "preparing": BLUE,
    "first batch": ORANGE,
    "bf16": BLUE,
    "int8": ORANGE,
    "fp32": INK,
}
DASHED = ("bf16", "int8", "not cached")
"""Words of names whose lines are dashed, unless the name begins with them: there the colour tells them apart."""

Spread = Mapping[str, float]


class Line(NamedTuple):
    """One line of a plot."""

    name: str
    x: Sequence[float]
    y: Sequence[float]


def bars(panels: Mapping[str, Mapping[str, Spread]], unit: str, path: Path, title: str) -> None:
    """Horizontal bars, a panel for each key, ours in colour: medians, with the least and the greatest as whiskers."""
    groups = []
    for name, rows in panels.items():
        order = sorted(rows, key=lambda row: -rows[row]["median"])
        found = [
            Bar(row, rows[row]["median"], rows[row]["min"], rows[row]["max"],
                BLUE if row.startswith("dragoman") else QUIET, number(rows[row]["median"]))
            for row in order
        ]  # fmt: skip
        groups.append(Bars(found, unit, name))
    _save(figures.bars(groups), path, title)


def lines(panels: Mapping[str, Sequence[Line]], x_unit: str, y_units: Sequence[str], path: Path, title: str) -> None:
    """Lines between logarithmic axes, a panel for each key, each line named at its end."""
    charts = []
    for (name, drawn), y_unit in zip(panels.items(), y_units, strict=True):
        curves = [_curve(line) for line in drawn]
        charts.append(Chart(curves, f"{x_unit} (log scale)", f"{y_unit} (log scale)", name, x_log=10, y_log=10))
    _save(figures.curves(charts, width=3.9, height=3.2), path, title)


def by_clock(panels: Mapping[str, Sequence[Line]], path: Path, title: str) -> None:
    """Lines over minutes, which grow by a factor, a panel for each key, each line named at its end."""
    charts = [
        Chart([_curve(line) for line in drawn], "minutes, from the raw text (log scale)", "BLEU", name, x_log=10,
              x_names={x: f"{x:g}" for line in drawn for x in line.x}, y_range=(0, None))
        for name, drawn in panels.items()
    ]  # fmt: skip
    _save(figures.curves(charts, width=3.9, height=3.2), path, title)


def shares(steps: Mapping[str, tuple[float, float]], path: Path, title: str) -> None:
    """Bars of the share of the fastest product that whole steps reach.

    Args:
        steps: For each, its own speed and that of the fastest product in its precision, in GFLOP/s.
    """
    order = sorted(steps, key=lambda name: -steps[name][0] / steps[name][1])
    found = [
        Bar(
            name,
            100 * step / most,
            colour=BLUE,
            text=f"{100 * step / most:.1f}%: {number(step)} of {number(most)} GFLOP/s",
        )
        for name, (step, most) in ((name, steps[name]) for name in order)
    ]
    _save(figures.bars([Bars(found, "share of the fastest product (%)")], width=6.0), path, title)


def number(value: float) -> str:
    """Three digits and thousands marked: 8,203, 27.4, 0.52."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def _curve(line: Line) -> Curve:
    colour = next((value for family, value in FAMILIES.items() if line.name.startswith(family)), QUIET)
    dashed = any(word in line.name for word in DASHED) and not line.name.startswith(DASHED)
    return Curve(line.name, line.x, line.y, colour=colour, dashed=dashed, points=True)


def _save(figure: Any, path: Path, title: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    save(figure, path, title=title)
