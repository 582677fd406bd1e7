"""Heat maps: a matrix as cells, one or many, on one scale with its legend. Needs ``dragoman[plot]``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from dragoman.explanation.style import INK, PALE, PAPER, QUIET, drawing, fit, is_cjk, new_figure, scale, tick

MAX_EDGED = 40  # cells a side, up to which they are kept apart by white lines; more are drawn as a picture


class HeatMap(NamedTuple):
    """A matrix and what its rows and columns are called."""

    values: Any  # (rows, columns)
    title: str = ""
    rows: Sequence[str] | None = None  # None: numbered from 0
    columns: Sequence[str] | None = None


def heat_maps(
    maps: Sequence[HeatMap],
    row_label: str,
    column_label: str,
    legend: str,
    limits: tuple[float, float] = (0.0, 1.0),
    n_columns: int | None = None,
    cell: float | None = None,
    numbers: str = "",
    framed: bool = False,
    missing: str = "",
) -> Any:
    """Matrices as cells, side by side, with one scale and its legend.

    Args:
        maps: At least one; names of rows and columns are written once where all maps have the same.
        row_label: What the rows are, with its unit if it has one; ``column_label`` likewise.
        legend: What a colour means, with its unit.
        limits: The value that is paper and the one that is deepest; where the first is below 0, the scale has two arms
            and 0 is paper.
        n_columns: Maps in a row; None: up to four.
        cell: Side of a cell in inches; None: chosen from their number. Where ``numbers`` are written, 0.4 is enough.
        numbers: How to write the values into the cells, such as ``.2f``; empty: not.
        framed: Draw a line around every cell, so that one of the lowest value differs from none at all.
        missing: What a value that is not a number means: such cells are grey and the legend says so; empty: they are
            left out.

    Returns:
        The matplotlib Figure.

    Raises:
        ConfigError: matplotlib or a font is missing.
    """
    shapes = [np.shape(m.values) for m in maps]
    n_columns = min(len(maps), n_columns or 4)
    n_rows = -(-len(maps) // n_columns)
    heights, widths = max(shape[0] for shape in shapes), max(shape[1] for shape in shapes)
    tall, wide = _cell(heights, widths, len(maps)) if cell is None else (cell, cell)
    shared = all((m.rows, m.columns) == (maps[0].rows, maps[0].columns) for m in maps)
    names = [text for m in maps for text in (m.title, *(m.rows or ()), *(m.columns or ()))]
    with drawing([row_label, column_label, legend, missing, *names]):
        figure, axes = new_figure(n_rows, n_columns)
        for i, (spot, one) in enumerate(zip(axes.flat, maps, strict=False)):
            first, top = i % n_columns == 0, i < n_columns
            picture = _cells(spot, one, limits, framed, bool(missing))
            _name_cells(spot, one, not shared or first, not shared or top, tall, wide)
            if numbers:
                _write_values(spot, one, numbers, max(map(abs, limits)))
            spot.set_ylabel(row_label if first else "")
            last = i + n_columns >= len(maps)
            spot.set_xlabel(column_label if (top if one.columns is not None else last) else "")
        for spot in axes.flat[len(maps) :]:
            spot.set_visible(False)
        _draw_scale(figure, picture, axes, legend, shrink=min(1.0, 3.2 / (tall * heights)))
        if missing:
            _name_missing(axes[-1, 0], missing)
        fit(figure, axes, wide * widths, tall * heights)
        for spot in axes.flat[: len(maps)]:
            spot.set_aspect(tall / wide, anchor="NW")  # a smaller map among larger ones keeps the size of its cells
    return figure


def _draw_scale(figure: Any, picture: Any, axes: Any, legend: str, shrink: float) -> None:
    """What the colours mean, beside the maps."""
    bar = figure.colorbar(picture, ax=axes, fraction=0.05, pad=0.02, aspect=14, shrink=shrink)
    bar.set_label(legend)
    bar.outline.set_visible(False)
    bar.ax.yaxis.set_major_formatter(lambda value, _: tick(value))


def _cell(heights: int, widths: int, n_maps: int) -> tuple[float, float]:
    """Height and width of a cell in inches: squares, unless the matrix is a strip."""
    room = 3.8 if n_maps == 1 else 2.2
    largest = 0.4 if n_maps < 4 else 0.16  # a page makes a wide figure, and its letters, smaller
    side = min(largest, room / max(heights, widths))
    if max(heights, widths) <= 4 * min(heights, widths):
        return side, side
    short = min(0.4, 1.2 / min(heights, widths))
    return (short, room / widths) if heights < widths else (room / heights, short)


def _cells(axes: Any, one: HeatMap, limits: tuple[float, float], framed: bool, show_missing: bool) -> Any:
    """Draw the matrix; the first row is on top, and cell ``(0, 0)`` has its centre there."""
    values = np.asarray(one.values, dtype=float)
    (height, width), (low, high) = values.shape, limits
    small = max(height, width) <= MAX_EDGED
    edge = {"edgecolor": QUIET if framed else PAPER, "linewidth": 0.6} if small else {"rasterized": True}
    picture = axes.pcolormesh(np.arange(width + 1) - 0.5, np.arange(height + 1) - 0.5, values,
                              cmap=scale(diverging=low < 0), vmin=low, vmax=high, clip_on=not framed,
                              **edge)  # fmt: skip
    if show_missing:
        from matplotlib.patches import Rectangle

        for row, column in np.argwhere(np.isnan(values)):
            axes.add_patch(Rectangle((column - 0.5, row - 0.5), 1, 1, facecolor=PALE, clip_on=False, **edge))
    axes.set_ylim(height - 0.5, -0.5)
    axes.spines[:].set_visible(False)
    axes.set_title(one.title)
    return picture


def _name_cells(axes: Any, one: HeatMap, rows: bool, columns: bool, tall: float, wide: float) -> None:
    """Write the names of rows and columns, in letters that fit the cells; or numbers where there are no names."""
    from matplotlib.ticker import MaxNLocator

    for axis, names, shown in ((axes.yaxis, one.rows, rows), (axes.xaxis, one.columns, columns)):
        if names is None:
            axis.set_major_locator(MaxNLocator(8, integer=True, min_n_ticks=2))
            continue
        size = min(10.0, 72 * (tall if axis is axes.yaxis else wide) * 0.8)
        axis.set_ticks(range(len(names)), names if shown else [""] * len(names))
        axis.set_tick_params(length=0, labelsize=max(size, 4.0))
    if one.columns is not None:
        axes.xaxis.tick_top()
        axes.xaxis.set_label_position("top")
        if any(sum(1 + is_cjk(character) for character in name) > 2 for name in one.columns):
            for label in axes.get_xticklabels():
                label.set(rotation=50, ha="left", rotation_mode="anchor")


def _name_missing(axes: Any, missing: str) -> None:
    """Say below the matrix what a grey cell means."""
    from matplotlib.patches import Patch

    axes.legend(
        handles=[Patch(facecolor=PALE, edgecolor=QUIET, linewidth=0.6, label=missing)], loc="upper left",
        bbox_to_anchor=(0, -0.02), frameon=False, borderaxespad=0, borderpad=0.4, handlelength=1.2, handleheight=1.2,
    )  # fmt: skip


def _write_values(axes: Any, one: HeatMap, numbers: str, most: float) -> None:
    for (row, column), value in np.ndenumerate(np.asarray(one.values, dtype=float)):
        text = "NaN" if np.isnan(value) else format(value, f"z{numbers}").replace("-", "−")  # z: no −0.0
        axes.text(column, row, text, ha="center", va="center", fontsize=8.5,
                  color=PAPER if abs(value) > 0.55 * most else INK)  # fmt: skip
