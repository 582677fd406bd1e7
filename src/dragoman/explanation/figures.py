"""The figures of the command line, the laboratory and the documentation: heat maps, curves, bars. Needs matplotlib.

    save(curves([Chart([Curve("loss", steps, losses)], "step", "nats per token")]), Path("loss.svg"))

Each function takes plain values, draws one figure in the look of ``style``, and returns it. A figure of several parts
takes several of ``HeatMap``, ``Chart`` or ``Bars``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from dragoman.explanation.heat import HeatMap, heat_maps
from dragoman.explanation.style import (
    BLUE,
    INK,
    QUIET,
    SERIES,
    drawing,
    fit,
    matplotlib_for,
    new_figure,
    number,
    numbers,
    save,
    tick,
    ticks,
)

__all__ = [
    "Bar", "Bars", "Chart", "Curve", "HeatMap", "bars", "curves", "heat_maps", "matplotlib_for", "number", "save",
]  # fmt: skip

NEAR = 0.5  # inches: names of curves that end within this distance of the last one could overlap


# --- curves -----------------------------------------------------------------------------------------------------------


class Curve(NamedTuple):
    """One line of a chart; values that are not finite leave a gap."""

    name: str  # written at the end of the line; empty: no name
    x: Sequence[float]
    y: Sequence[float]
    low: Sequence[float] | None = None  # limits of an interval around the line, drawn as a band
    high: Sequence[float] | None = None
    colour: str | None = None  # None: the next colour of ``SERIES``
    dashed: bool = False
    points: bool = False  # mark the points, if only these were measured
    line: bool = True


class Chart(NamedTuple):
    """Curves in the same axes."""

    curves: Sequence[Curve]
    x_label: str  # with its unit
    y_label: str
    title: str = ""
    x_log: int = 0  # the base of a logarithmic axis; 0: linear
    y_log: int = 0
    y_range: tuple[float | None, float | None] = (None, None)
    marks: Mapping[float, str] = {}  # x of vertical lines, with their meaning
    x_names: Mapping[float, str] = {}  # x of ticks that have names instead of numbers


def curves(charts: Sequence[Chart], n_columns: int | None = None, width: float = 4.2, height: float = 2.9) -> Any:
    """Draw curves, each with its name at its end in the same colour.

    Args:
        charts: At least one, side by side.
        n_columns: Charts in a row; None: up to two.
        width: Width of the axes of one chart in inches; ``height`` likewise.

    Returns:
        The matplotlib Figure.

    Raises:
        ConfigError: matplotlib or a font is missing.
    """
    names = [text for c in charts for text in (c.x_label, c.y_label, c.title, *c.marks.values(), *c.x_names.values())]
    n_columns = min(len(charts), n_columns or 2)
    with drawing([*names, *(curve.name for chart in charts for curve in chart.curves)]):
        figure, axes = new_figure(-(-len(charts) // n_columns), n_columns)
        ends = [_draw_chart(spot, chart) for spot, chart in zip(axes.flat, charts, strict=False)]
        for spot in axes.flat[len(charts) :]:
            spot.set_visible(False)
        fit(figure, axes, width, height)  # the axes have their final places: now names can be kept apart
        for spot, names_there in zip(axes.flat, ends, strict=False):
            _keep_apart(spot, names_there)
    return figure


class _End(NamedTuple):
    """The end of a curve with the name written there."""

    x: float
    y: float
    label: Any  # matplotlib annotation


def _draw_chart(axes: Any, chart: Chart) -> list[_End]:
    """Draw a chart and return the ends of its curves."""
    ends = []
    colours = iter(SERIES * 4)
    for curve in chart.curves:
        colour = curve.colour or next(colours)
        x, y = np.asarray(curve.x, dtype=float), np.asarray(curve.y, dtype=float)
        axes.plot(x, y, color=colour, linestyle="none" if not curve.line else (0, (4, 2.5)) if curve.dashed else "-",
                  marker="o" if curve.points else "", markersize=4, zorder=2.1 if curve.dashed else 2)  # fmt: skip
        if curve.low is not None and curve.high is not None:
            axes.fill_between(x, curve.low, curve.high, color=colour, alpha=0.16, linewidth=0)
        drawable = np.isfinite(x) & np.isfinite(y) & ((y > 0) | (not chart.y_log))
        if curve.name and drawable.any():
            last = int(np.flatnonzero(drawable)[np.argmax(x[drawable])])
            name = axes.annotate(curve.name, (x[last], y[last]), (7, 0), textcoords="offset points", color=colour,
                                 va="center", annotation_clip=False)  # fmt: skip
            ends.append(_End(float(x[last]), float(y[last]), name))
    if None not in chart.y_range:
        axes.set_ylim(*chart.y_range)  # set here too, because the ticks depend on it
    for axis, base in ((axes.xaxis, chart.x_log), (axes.yaxis, chart.y_log)):
        if base:
            (axes.set_xscale if axis is axes.xaxis else axes.set_yscale)("log", base=base)
            _plain_log(axis, base)
        else:
            axis.set_major_formatter(lambda value, _: tick(value))
    if chart.x_names:
        axes.set_xticks(list(chart.x_names), list(chart.x_names.values()))
    axes.set_ylim(*chart.y_range)
    for at, text in chart.marks.items():
        axes.axvline(at, color=QUIET, linewidth=1, linestyle=(0, (1, 2)))
        axes.annotate(text, (at, 1), (0, 3), xycoords=("data", "axes fraction"), textcoords="offset points",
                      color=QUIET, fontsize=9, ha="center")  # fmt: skip
    axes.set(xlabel=chart.x_label, ylabel=chart.y_label)
    axes.set_title(chart.title, pad=18 if chart.marks else 8)
    axes.grid(True, axis="y")
    axes.margins(x=0.02)
    return ends


def _plain_log(axis: Any, base: int) -> None:
    """Put ticks at powers of ``base``, in one notation; on a short axis of base 10 also at 2 and 5 times a power."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    low, high = axis.get_view_interval()
    spans = math.log(max(high / max(low, 1e-300), 1.0), base)
    axis.set_major_locator(LogLocator(base, subs=(1, 2, 5) if base == 10 and spans < 2 else (1,), numticks=9))
    axis.set_minor_locator(NullLocator())

    def tick_label(value: float, _: int | None) -> str:
        """Return the label of a tick in the notation that all visible ticks share."""
        low, high = axis.get_view_interval()
        return ticks([*(at for at in axis.get_majorticklocs() if low <= at <= high), value])[-1]

    axis.set_major_formatter(FuncFormatter(tick_label))


def _keep_apart(axes: Any, ends: Sequence[_End]) -> None:
    """Move the names of curves up or down until none overlap, each as near the end of its curve as possible."""
    places = [axes.transData.transform((end.x, end.y)) for end in ends]  # pixels
    rightmost = max((float(x) for x, _ in places), default=0.0)
    # Names of curves that end further left have space enough.
    last = [i for i, (x, _) in enumerate(places) if x > rightmost - NEAR * axes.figure.dpi]
    gap = 13.0 * axes.figure.dpi / 72
    low, high = axes.get_window_extent().intervaly
    order = sorted(last, key=lambda i: places[i][1])
    wanted = [min(float(places[i][1]), high) for i in order]
    for i, at in zip(order, _spread(wanted, gap, low + gap / 2), strict=True):
        across = 7 + (rightmost - float(places[i][0])) * 72 / axes.figure.dpi  # align the names on the left
        ends[i].label.set_position((across, (at - float(places[i][1])) * 72 / axes.figure.dpi))


def _spread(wanted: Sequence[float], gap: float, low: float) -> list[float]:
    """Return ascending places at least ``gap`` apart, none below ``low``; those too close move evenly to both sides."""

    def above_low(centre: float, n: int) -> tuple[float, int]:
        """Move a group of ``n`` places up until its lowest place is not below ``low``."""
        return max(centre, low + (n - 1) / 2 * gap), n

    groups: list[tuple[float, int]] = []  # centre and size of each group of places ``gap`` apart
    for at in wanted:
        groups.append(above_low(at, 1))
        while len(groups) > 1 and groups[-1][0] - groups[-2][0] < gap * (groups[-1][1] + groups[-2][1]) / 2:
            (upper, n), (lower, m) = groups.pop(), groups.pop()
            groups.append(above_low((upper * n + lower * m) / (n + m), n + m))
    return [centre + (place - (n - 1) / 2) * gap for centre, n in groups for place in range(n)]


# --- bars -------------------------------------------------------------------------------------------------------------


class Bar(NamedTuple):
    """One bar of length ``value``."""

    name: str
    value: float
    low: float | None = None  # limits of an interval, drawn as a whisker
    high: float | None = None
    colour: str | None = None  # None: blue
    text: str | None = None  # written after the bar; None: its value


class Bars(NamedTuple):
    """Bars on the same axis, the first on top."""

    bars: Sequence[Bar]
    label: str  # meaning of the lengths, with the unit
    title: str = ""
    log: bool = False  # draw points on a logarithmic axis instead of bars
    marks: Mapping[float, str] = {}  # x of vertical lines, with their meaning


def bars(groups: Sequence[Bars], n_columns: int | None = None, width: float = 3.4) -> Any:
    """Draw horizontal bars, each followed by its value.

    Args:
        groups: At least one, side by side.
        n_columns: Groups in a row; None: up to two.
        width: Width of the axes of one group in inches.

    Returns:
        The matplotlib Figure.

    Raises:
        ConfigError: matplotlib or a font is missing.
    """
    texts = [text for g in groups for text in (g.label, g.title, *g.marks.values())]
    n_columns = min(len(groups), n_columns or 2)
    tallest = [max(len(group.bars) for group in groups[i : i + n_columns]) for i in range(0, len(groups), n_columns)]
    heights = [0.1 + 0.3 * n_bars for n_bars in tallest]
    with drawing([*texts, *(f"{bar.name}{bar.text or ''}" for group in groups for bar in group.bars)]):
        figure, axes = new_figure(len(tallest), n_columns, heights)
        for i, (spot, group) in enumerate(zip(axes.flat, groups, strict=False)):
            _draw_bars(spot, group)
            spot.set_title(group.title, pad=16 if any(marked.marks for marked in groups) else 8)
            spot.set_ylim(tallest[i // n_columns] - 0.4, -0.6)
        for spot in axes.flat[len(groups) :]:
            spot.set_visible(False)
        fit(figure, axes, width, heights[0])
    return figure


def _draw_bars(axes: Any, group: Bars) -> None:
    """Draw the bars of a group with their names, values and marks."""
    places = np.arange(len(group.bars))
    values = [bar.value if math.isfinite(bar.value) else 0.0 for bar in group.bars]
    colours = [bar.colour or BLUE for bar in group.bars]
    if group.log:  # points, because the length of a bar would depend on where the axis begins
        axes.set_xscale("log")
        axes.scatter(values, places, color=colours, s=36, zorder=3)
        axes.grid(True, axis="x")
    else:
        axes.barh(places, values, height=0.66, color=colours)
    labels = numbers([bar.value for bar in group.bars])
    for place, bar, value, text in zip(places, group.bars, values, labels, strict=True):
        tip = value
        if bar.low is not None and bar.high is not None:
            axes.plot([bar.low, bar.high], [place, place], color=INK, linewidth=1)
            tip = max(value, bar.high) if bar.high >= 0 else min(value, bar.low)
        back, gap = tip < 0, 8 if group.log and tip == value else 4
        axes.annotate(bar.text if bar.text is not None else text, (tip, place), (-gap if back else gap, 0),
                      textcoords="offset points", va="center", ha="right" if back else "left", fontsize=9)  # fmt: skip
    if any(value < 0 for value in values):
        axes.axvline(0, color=QUIET, linewidth=0.8)
    for at, text in group.marks.items():
        axes.axvline(at, color=QUIET, linewidth=1, linestyle=(0, (1, 2)), zorder=0)
        axes.annotate(text, (at, 1), (3, 2), xycoords=("data", "axes fraction"), textcoords="offset points",
                      color=QUIET, fontsize=9)  # fmt: skip
    axes.set_yticks(places, [bar.name for bar in group.bars])
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    axes.xaxis.set_major_formatter(lambda value, _: tick(value))
    if group.log:
        _plain_log(axes.xaxis, 10)
    else:
        axes.locator_params(axis="x", nbins=6)  # so that long numbers do not touch
    axes.margins(x=0.16)
    if not group.log and min(values) >= 0:
        axes.set_xlim(left=0)
    axes.set_xlabel(group.label)
