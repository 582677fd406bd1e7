"""What is drawn is what was given: cells, lines, bars, and their names where they belong."""

from __future__ import annotations

import itertools
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dragoman.errors import ConfigError
from dragoman.explanation.figures import Bar, Bars, Chart, Curve, HeatMap, bars, curves, heat_maps, save
from dragoman.explanation.style import BLUE, refuse_other_figures, scale


def test_a_heat_map_holds_the_matrix_first_row_on_top_and_its_legend() -> None:
    values = np.array([[0.1, 0.9], [0.6, 0.4], [0.0, 1.0]])
    figure = heat_maps([HeatMap(values, "one", list("abc"), ["x", "long name"])], "query", "key", "weight", cell=0.3)
    axes, legend = figure.axes
    (cells,) = axes.collections
    np.testing.assert_array_equal(cells.get_array(), values)
    assert cells.get_clim() == (0.0, 1.0)
    assert [label.get_text() for label in axes.get_yticklabels()] == ["a", "b", "c"]
    assert axes.yaxis_inverted()
    assert (axes.get_ylabel(), axes.get_xlabel(), axes.get_title(loc="left")) == ("query", "key", "one")
    assert legend.get_ylabel() == "weight"
    box = axes.get_window_extent()
    assert box.width / figure.dpi == pytest.approx(0.6, abs=0.02)  # two cells of 0.3 inches
    assert box.height / figure.dpi == pytest.approx(0.9, abs=0.02)


def test_maps_share_one_scale_and_names_stand_once() -> None:
    maps = [HeatMap(np.full((2, 2), -1 + i), f"map {i}", ["a", "b"], ["c", "d"]) for i in range(3)]
    figure = heat_maps(maps, "row", "column", "value", limits=(-1, 1), n_columns=2)
    spots = [axes for axes in figure.axes[:4] if axes.get_visible()]
    assert len(spots) == 3
    assert {axes.collections[0].get_clim() for axes in spots} == {(-1, 1.0)}
    assert spots[0].collections[0].get_cmap() == scale(diverging=True)
    assert [axes.get_ylabel() for axes in spots] == ["row", "", "row"]
    assert [axes.get_yticklabels()[0].get_text() for axes in spots] == ["a", "", "a"]
    assert [axes.get_xticklabels()[0].get_text() for axes in spots] == ["c", "c", ""]


def test_values_are_written_into_cells() -> None:
    figure = heat_maps([HeatMap([[0.25, 0.75]])], "row", "column", "weight", numbers=".2f")
    assert [text.get_text() for text in figure.axes[0].texts] == ["0.25", "0.75"]


def test_curves_carry_their_names_at_their_ends_and_none_covers_another() -> None:
    x = np.arange(10.0)
    lines = [Curve(f"line {i}", x, x + 0.01 * i) for i in range(5)]
    figure = curves([Chart([*lines, Curve("stops", x, [*x[:4], *[math.nan] * 6])], "step", "loss (nats)")])
    (axes,) = figure.axes
    names = {text.get_text(): text for text in axes.texts}
    assert names["stops"].xy == (3, 3)
    assert names["line 0"].get_color() == BLUE
    boxes = sorted((names[f"line {i}"].get_window_extent() for i in range(5)), key=lambda box: box.y0)
    assert all(high.y0 > low.y0 + 10 for low, high in itertools.pairwise(boxes))
    centre = np.mean([(box.y0 + box.y1) / 2 for box in boxes])
    ends = np.mean([axes.transData.transform((9, 9 + 0.01 * i))[1] for i in range(5)])
    assert centre == pytest.approx(ends, abs=3)  # they moved apart evenly
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("step", "loss (nats)")


def test_names_of_curves_that_end_low_stay_above_the_axis() -> None:
    x = np.arange(10.0)
    figure = curves([Chart([Curve(f"line {i}", x, 9 - x + 0.01 * i) for i in range(4)], "step", "loss (nats)")])
    (axes,) = figure.axes
    boxes = sorted((text.get_window_extent() for text in axes.texts), key=lambda box: box.y0)
    assert boxes[0].y0 > axes.get_window_extent().y0 - 3
    assert all(high.y0 > low.y0 + 10 for low, high in itertools.pairwise(boxes))


def test_logarithmic_axes_have_plain_numbers() -> None:
    x = [4, 64, 1024]
    figure = curves(
        [Chart([Curve("", x, x, points=True)], "width", "variance", x_log=2, y_log=10, marks={64: "paper"})]
    )
    (axes,) = figure.axes
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
    assert [text.get_text() for text in axes.texts] == ["paper"]
    assert {"4", "64", "1,024"} <= set(ticks_of(axes.xaxis))


@pytest.mark.parametrize(("low", "high"), [(37.0, 39.0), (100.0, 140.0), (0.0, 0.01), (-1.0, 1.0), (0.0, 40000.0)])
def test_ticks_say_where_they_are(low: float, high: float) -> None:
    figure = curves([Chart([Curve("", [1, 2], [low, high])], "step", "BLEU", y_range=(low, high))])
    axis = figure.axes[0].yaxis
    places = [at for at in axis.get_ticklocs() if low <= at <= high]
    assert [float(text.replace("−", "-").replace(",", "")) for text in ticks_of(axis)] == pytest.approx(places)


def ticks_of(axis: Any) -> list[str]:
    """The ticks that are to be seen, as they are written."""
    low, high = axis.get_view_interval()
    written = [label.get_text() for label in axis.get_ticklabels()]
    return [text for at, text in zip(axis.get_ticklocs(), written, strict=True) if low <= at <= high]


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (1e-3, 1e4, ["0.001", "0.01", "0.1", "1", "10", "100", "1,000", "10,000"]),
        (1e-6, 1.0, ["10⁻⁶", "10⁻⁵", "10⁻⁴", "10⁻³", "10⁻²", "10⁻¹", "10⁰"]),
        (2e-5, 5e-4, ["2×10⁻⁵", "5×10⁻⁵", "10⁻⁴", "2×10⁻⁴", "5×10⁻⁴"]),
        (10.0, 1e6, ["10¹", "10²", "10³", "10⁴", "10⁵", "10⁶"]),
    ],
)
def test_ticks_of_a_logarithmic_axis_are_written_alike(low: float, high: float, expected: list[str]) -> None:
    chart = Chart([Curve("", [1, 2], [low, high])], "x", "y", y_log=10, y_range=(low, high))
    assert ticks_of(curves([chart]).axes[0].yaxis) == expected


def test_bars_are_as_long_as_their_values_and_say_them() -> None:
    figure = bars([Bars([Bar("ours", 34.2, 33.0, 35.5), Bar("theirs", 28.4, text="28.4 (paper)")], "BLEU", "Quality")])
    (axes,) = figure.axes
    assert [patch.get_width() for patch in axes.patches] == [34.2, 28.4]
    assert [text.get_text() for text in axes.texts] == ["34.2", "28.4 (paper)"]
    assert axes.texts[0].xy[0] == 35.5  # behind the whisker
    assert [label.get_text() for label in axes.get_yticklabels()] == ["ours", "theirs"]
    assert axes.yaxis_inverted()
    assert axes.get_xlim()[0] == 0


def test_dollar_signs_are_letters(tmp_path: Path) -> None:
    names = ["$$", "$x_$", "$a$b"]
    save(heat_maps([HeatMap(np.eye(3), "", names, names)], "query", "key", "weight"), tmp_path / "map.svg")
    assert (tmp_path / "map.svg").stat().st_size > 1000


def test_a_cell_without_a_number_does_not_look_like_zero() -> None:
    values = np.array([[0.0, np.nan], [1.0, 0.0]])
    figure = heat_maps([HeatMap(values)], "row", "column", "share", numbers=".2f", framed=True, missing="NaN: noticed")
    axes = figure.axes[0]
    assert [text.get_text() for text in axes.texts] == ["0.00", "NaN", "1.00", "0.00"]
    (grey,) = axes.patches
    assert (grey.get_x(), grey.get_y()) == (0.5, -0.5)
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["NaN: noticed"]
    assert not heat_maps([HeatMap(values)], "row", "column", "share").axes[0].patches


def test_ticks_follow_the_range_that_charts_share() -> None:
    charts = [Chart([Curve("", [1, 2], y)], "x", "y", y_log=10, y_range=(1e-4, 10.0)) for y in ([1e-3, 5], [1, 2])]
    one, other = (axes.get_yticks().tolist() for axes in curves(charts).axes)
    assert one == other


@pytest.mark.parametrize("ending", [".svg", ".png"])
def test_figures_of_others_are_told_from_those_that_save_wrote(tmp_path: Path, ending: str) -> None:
    """Another program may draw with matplotlib too, in the same resolution."""
    figure = curves([Chart([Curve("up", [0, 1], [1, 2])], "x", "y")])
    own, other, missing = (tmp_path / f"{name}{ending}" for name in ("own", "other", "missing"))
    save(figure, own, title="Rise", description="From one to two. " * 100)
    refuse_other_figures(own, missing)
    figure.savefig(other, dpi=160)
    for path in (other, tmp_path / f"text{ending}", tmp_path / f"folder{ending}"):
        if "text" in path.name:
            path.write_text("", encoding="utf-8")
        elif "folder" in path.name:
            path.mkdir()
        with pytest.raises(ConfigError, match=rf"{path.name}: a figure may replace this file, which dragoman did not"):
            refuse_other_figures(own, path)


def test_figures_of_earlier_versions_are_known(tmp_path: Path) -> None:
    """Their beginnings, written out: fonts may be added, and the resolution may change."""
    (tmp_path / "old.svg").write_text(
        '<svg role="img" xmlns:xlink="http://www.w3.org/1999/xlink" width="324pt" height="242pt" '
        'xmlns="http://www.w3.org/2000/svg" version="1.1">\n <title>Loss</title>\n '
        '<style>text{font-family:"DejaVu Sans", Verdana, sans-serif}</style>\n',
        encoding="utf-8",
    )
    (tmp_path / "old.png").write_bytes(
        b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\x03\x08\0\0\x02\x4e\x08\6\0\0\0\x12\x34\x56\x78"
        b"\0\0\0\tpHYs\0\0\x18\x9b\0\0\x18\x9b\1\x12\x34\x56\x78\0\0\x20\0IDAT"
    )
    refuse_other_figures(tmp_path / "old.svg", tmp_path / "old.png")
