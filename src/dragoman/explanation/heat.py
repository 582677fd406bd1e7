"""Heat maps: one or several matrices as coloured cells, on one scale with its legend. Needs ``dragoman[plot]``.

heat_maps([HeatMap(weights, "head 1", rows, columns)], "target", "source", "attention weight", numbers=".2f")
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from dragoman.explanation.style import INK, PALE, PAPER, QUIET, drawing, fit, is_cjk, new_figure, scale, tick

MAX_EDGED = 40  # most cells on a side for which white lines separate the cells; a larger matrix is drawn as a picture


class HeatMap(NamedTuple):
    """A matrix with the names of its rows and columns."""

    values: Any  # (rows, columns)
    title: str = ""
    rows: Sequence[str] | None = None  # None: numbered from 0
    columns: Sequence[str] | None = None
    texts: Sequence[Sequence[str]] | None = None  # written into the cells, in place of ``Look.numbers``


@dataclass(frozen=True, kw_only=True)
class Look:
    """The look of heat maps; ``heat_maps`` takes these by name.

    Attributes:
        limits: The lowest and the highest value of the scale. If the lowest is negative, the scale has two arms and 0
            is white; otherwise the lowest value is white.
        n_columns: Maps in a row; None: up to four.
        cell: Side of a cell in inches; None: chosen from the number of cells. With ``numbers``, 0.4 is enough.
        numbers: Format of the values written into the cells, such as ``.2f``; empty: none are written.
        framed: Draw a line around every cell, so that a cell of the lowest value differs from no cell.
        missing: Meaning of NaN, shown in a legend; such cells are grey. Empty: cells with NaN are left out.
    """

    limits: tuple[float, float] = (0.0, 1.0)
    n_columns: int | None = None
    cell: float | None = None
    numbers: str = ""
    framed: bool = False
    missing: str = ""


def heat_maps(maps: Sequence[HeatMap], row_label: str, column_label: str, legend: str, **look: Any) -> Any:
    """Draw matrices as cells, next to each other, with one scale and its legend.

    Args:
        maps: At least one. Names that all maps share are written once.
        row_label: Meaning of the rows, with the unit if they have one; ``column_label`` likewise.
        legend: Meaning of the colours, with the unit.
        look: The fields of ``Look`` that differ from their defaults.

    Returns:
        The matplotlib Figure.

    Raises:
        ConfigError: matplotlib or a font is missing.
    """
    style = Look(**look)
    shapes = [np.shape(m.values) for m in maps]
    n_columns = min(len(maps), style.n_columns or 4)
    n_rows = -(-len(maps) // n_columns)
    heights, widths = max(shape[0] for shape in shapes), max(shape[1] for shape in shapes)
    size = _cell_size(heights, widths, len(maps)) if style.cell is None else (style.cell, style.cell)
    tall, wide = size
    shared = all((m.rows, m.columns) == (maps[0].rows, maps[0].columns) for m in maps)
    names = [text for m in maps for text in (m.title, *(m.rows or ()), *(m.columns or ()))]
    with drawing([row_label, column_label, legend, style.missing, *names]):
        figure, axes = new_figure(n_rows, n_columns)
        for i, (spot, heat_map) in enumerate(zip(axes.flat, maps, strict=False)):
            first, top = i % n_columns == 0, i < n_columns
            picture = _draw_cells(spot, heat_map, style)
            _name_cells(spot, heat_map, (not shared or first, not shared or top), size)
            if style.numbers or heat_map.texts is not None:
                _write_values(spot, heat_map, style)
            spot.set_ylabel(row_label if first else "")
            last = i + n_columns >= len(maps)
            spot.set_xlabel(column_label if (top if heat_map.columns is not None else last) else "")
        for spot in axes.flat[len(maps) :]:
            spot.set_visible(False)
        _draw_scale(figure, picture, axes, legend, shrink=min(1.0, 3.2 / (tall * heights)))
        if style.missing:
            _name_missing(axes[-1, 0], style.missing)
        fit(figure, axes, wide * widths, tall * heights)
        for spot in axes.flat[: len(maps)]:
            spot.set_aspect(tall / wide, anchor="NW")  # a smaller map among larger ones keeps the size of its cells
    return figure


def _draw_scale(figure: Any, picture: Any, axes: Any, legend: str, shrink: float) -> None:
    """Draw the scale of colours with its legend to the right of the maps; ``shrink`` is a share of their height."""
    bar = figure.colorbar(picture, ax=axes, fraction=0.05, pad=0.02, aspect=14, shrink=shrink)
    bar.set_label(legend)
    bar.outline.set_visible(False)
    bar.ax.yaxis.set_major_formatter(lambda value, _: tick(value))


def _cell_size(heights: int, widths: int, n_maps: int) -> tuple[float, float]:
    """Return the height and width of a cell in inches: a square, unless the matrix is a narrow strip."""
    space = 3.8 if n_maps == 1 else 2.2
    largest = 0.4 if n_maps < 4 else 0.16  # a page shrinks a wide figure, and its letters with it
    side = min(largest, space / max(heights, widths))
    if max(heights, widths) <= 4 * min(heights, widths):
        return side, side
    short = min(0.4, 1.2 / min(heights, widths))
    return (short, space / widths) if heights < widths else (space / heights, short)


def _draw_cells(axes: Any, heat_map: HeatMap, style: Look) -> Any:
    """Draw the matrix with row 0 on top; the centre of cell ``(i, j)`` is at x = j, y = i."""
    values = np.asarray(heat_map.values, dtype=float)
    (height, width), (low, high) = values.shape, style.limits
    small = max(height, width) <= MAX_EDGED
    edge = {"edgecolor": QUIET if style.framed else PAPER, "linewidth": 0.6} if small else {"rasterized": True}
    picture = axes.pcolormesh(np.arange(width + 1) - 0.5, np.arange(height + 1) - 0.5, values,
                              cmap=scale(diverging=low < 0), vmin=low, vmax=high, clip_on=not small,
                              **edge)  # fmt: skip
    if style.missing:
        from matplotlib.patches import Rectangle

        for row, column in np.argwhere(np.isnan(values)):
            axes.add_patch(Rectangle((column - 0.5, row - 0.5), 1, 1, facecolor=PALE, clip_on=False, **edge))
    axes.set_ylim(height - 0.5, -0.5)
    axes.spines[:].set_visible(False)
    axes.set_title(heat_map.title)
    return picture


def _name_cells(axes: Any, heat_map: HeatMap, shown: tuple[bool, bool], cell_size: tuple[float, float]) -> None:
    """Write the names of rows and columns in letters that fit the cells; numbers if there are no names.

    Args:
        shown: Write the names of the rows, and of the columns; those of a neighbouring map may serve.
        cell_size: Height and width of a cell in inches.
    """
    from matplotlib.ticker import MaxNLocator

    axis_names = (axes.yaxis, heat_map.rows), (axes.xaxis, heat_map.columns)
    for (axis, names), is_shown, inches in zip(axis_names, shown, cell_size, strict=True):
        if names is None:
            axis.set_major_locator(MaxNLocator(8, integer=True, min_n_ticks=2))
            continue
        axis.set_ticks(range(len(names)), names if is_shown else [""] * len(names))
        axis.set_tick_params(length=0, labelsize=max(min(10.0, 72 * inches * 0.8), 4.0))
    if heat_map.columns is not None:
        axes.xaxis.tick_top()
        axes.xaxis.set_label_position("top")
        if not _fit_side_by_side(heat_map.columns, cell_size[1]):
            for label in axes.get_xticklabels():
                label.set(rotation=50, ha="left", rotation_mode="anchor")


def _fit_side_by_side(names: Sequence[str], inches: float) -> bool:
    """Return True if names of columns can be written without a slope: two letters each, or numbers in wide cells."""
    if all(name.isdigit() for name in names) and inches >= 0.5:
        return max(map(len, names)) <= 4
    return all(sum(1 + is_cjk(character) for character in name) <= 2 for name in names)


def _name_missing(axes: Any, missing: str) -> None:
    """Write below the matrix what a grey cell means."""
    from matplotlib.patches import Patch

    axes.legend(
        handles=[Patch(facecolor=PALE, edgecolor=QUIET, linewidth=0.6, label=missing)], loc="upper left",
        bbox_to_anchor=(0, -0.02), frameon=False, borderaxespad=0, borderpad=0.4, handlelength=1.2, handleheight=1.2,
    )  # fmt: skip


def _write_values(axes: Any, heat_map: HeatMap, style: Look) -> None:
    """Write the text of each cell into it, or its value, in white on deep colours."""
    highest = max(map(abs, style.limits))
    for (row, column), value in np.ndenumerate(np.asarray(heat_map.values, dtype=float)):
        if heat_map.texts is not None:
            text = heat_map.texts[row][column]
        else:
            text = "NaN" if np.isnan(value) else format(value, f"z{style.numbers}").replace("-", "−")  # z: no −0.0
        axes.text(column, row, text, ha="center", va="center", fontsize=8.5,
                  color=PAPER if abs(value) > 0.55 * highest else INK)  # fmt: skip
