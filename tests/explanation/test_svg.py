"""A figure's SVG: text that is text, a title, colours for dark pages, and other languages."""

from __future__ import annotations

import base64
import re
from io import BytesIO
from itertools import combinations

import numpy as np
import pytest
from matplotlib.image import imread

from dragoman.explanation import style
from dragoman.explanation.figures import Chart, Curve, HeatMap, curves, heat_maps
from dragoman.explanation.style import drawn
from dragoman.explanation.svg import DARK_OF, finished
from dragoman.lab.chinese import Words, texts, translated
from dragoman.pages.colours import DARK, oklab


def svg() -> str:
    figure = curves([Chart([Curve("loss & more", [1, 2], [0.001, 3])], "step", "loss (nats)", y_log=10)])
    return drawn(figure, ".svg", "A title", "What <to> see").decode()


def test_text_is_text_and_the_title_comes_first() -> None:
    found = list(texts(svg()))
    assert {"step", "loss (nats)", "loss & more", "0.001"} <= set(found)
    assert found[-2:] == ["A title", "What <to> see"]
    assert re.match(r"<svg role=\"img\"[^>]*>\n <title>A title</title>\n <desc>What &lt;to&gt; see</desc>", svg())


def test_the_ground_is_transparent_and_every_colour_has_a_dark_twin() -> None:
    text = heat_maps([HeatMap(np.linspace(-1, 1, 9).reshape(3, 3))], "row", "column", "x", limits=(-1, 1))
    one = drawn(text, ".svg").decode()
    assert 'fill: #ffffff"/>\n  </g>\n  <g id="axes_1"' not in one
    rules = one[one.index("<style>") : one.index("</style>")]
    body = one[one.index("</style>") :]
    used = set(re.findall(r"(?:fill|stroke): (#[0-9a-f]{6})", body))
    assert used
    assert all(f': {colour}"]' in rules for colour in used)
    assert "filter" not in rules


def test_a_picture_has_a_dark_twin_that_keeps_the_sign() -> None:
    """A legend, and a matrix of many cells, are pictures; inverted, they do not have the colours of cells."""
    values = np.linspace(-1, 1, 60 * 60).reshape(60, 60)
    one = drawn(heat_maps([HeatMap(values)], "row", "column", "x", limits=(-1, 1)), ".svg").decode()
    light, dark = (
        [
            imread(BytesIO(base64.b64decode(data)))
            for data in re.findall(rf'<image class="{theme}" xlink:href="data:image/png;base64,([^"]+)"', one)
        ]
        for theme in ("light", "dark")
    )
    assert len(light) == len(dark) == 2
    assert "image.light{display:none}image.dark{display:inline}" in one
    for picture, twin in zip(light, dark, strict=True):
        below, above = twin[..., 2] > twin[..., 0] + 0.1, twin[..., 0] > twin[..., 2] + 0.1
        assert below.any()
        assert above.any()
        assert (picture[..., 2] >= picture[..., 0])[below].all()
        assert (picture[..., 0] >= picture[..., 2])[above].all()
        assert twin[picture[..., :3].min(-1) > 0.99][:, :3].max() < 0.2  # zero has the colour of the page


def test_a_dark_page_keeps_the_sign_of_a_cell_at_both_ends_of_the_scale() -> None:
    """The ends of two arms once became nearly white, both of them."""
    drawing = drawn(heat_maps([HeatMap([[-1.0, 1.0]])], "row", "column", "x", limits=(-1, 1)), ".svg").decode()
    ends = re.findall(r"fill: (#[0-9a-f]{6}); stroke: #ffffff; stroke-width: 0.6", drawing)
    assert len(ends) == 2
    dark = [re.search(rf'fill: {light}"\]{{fill:(#[0-9a-f]{{6}})', drawing) for light in ends]
    minus, plus = (oklab(found[1]) for found in dark if found)
    assert minus[2] < -0.05 < 0.05 < plus[2]  # bluish, yellowish
    assert abs(minus[0] - plus[0]) < 0.1


def test_texts_take_the_place_of_the_values_in_cells() -> None:
    figure = heat_maps([HeatMap([[0.1, np.nan]], texts=[["few", "never"]])], "row", "column", "x", missing="none")
    assert {"few", "never"} <= set(texts(drawn(figure, ".svg").decode()))


def test_dark_colours_of_lines_are_readable_and_differ() -> None:
    twins = [DARK_OF[colour] for colour in style.SERIES]
    ground = oklab(DARK[0])
    assert all(oklab(twin)[0] - ground[0] > 0.4 for twin in twins)
    for one, other in combinations(twins[:5], 2):
        assert np.linalg.norm(oklab(one) - oklab(other)) > 0.09


def test_long_numbers_are_cut_in_tags_alone() -> None:
    raw = (
        '<?xml?>\n<svg width="1.23456" x="y">\n<text style="font: 10px \'A\', \'B\'; fill: #1a1a1a">0.001</text></svg>'
    )
    out = finished(raw)
    assert 'width="1.23"' in out
    assert ">0.001<" in out
    assert "'A'" not in out


def test_paths_have_no_needless_spaces_and_are_closed() -> None:
    square, line, curve = "M 1 2 \nL 3 2 \nL 3 4 \nL 1 2 \n", "M 1 2 \nL 3 -2 \n", "M 1 2 \nC 1 2 3 4 5 6 \nz\n"
    out = finished("<svg>" + "".join(f'<path d="{data}"/>' for data in (square, line, curve)) + "</svg>")
    assert re.findall(r' d="([^"]+)"', out) == ["M1 2L3 2L3 4z", "M1 2L3 -2", "M1 2C1 2 3 4 5 6z"]


def test_words_are_translated_with_what_is_kept() -> None:
    words = Words({"step": "步", "{} layers": "{} 层", "{}, {} layers": "{}，{} 层", "post-norm": "后归一化"})
    assert words("step") == "步"
    assert words("24 layers") == "24 层"
    assert words("post-norm, 2 layers") == "后归一化，2 层"
    assert words("0.5") == "0.5"
    assert not words.missing
    assert words("unknown label") == "unknown label"
    assert words.missing == {"unknown label"}


def test_a_figure_in_another_language_differs_in_its_texts_alone() -> None:
    words = Words(
        {
            "step": "步",
            "loss (nats)": "损失（nat）",
            "loss & more": "损失",
            "A title": "标题",
            "What <to> see": "看<图>",
        }
    )
    other = translated(svg(), words)
    assert {"步", "损失（nat）", "损失", "标题", "看<图>"} <= set(texts(other))
    strip = r">[^<]*</(text|title|desc)>"
    assert re.sub(strip, "", other) == re.sub(strip, "", svg())


@pytest.mark.parametrize("ending", [".png", ".pdf"])
def test_other_files_keep_their_white_ground(ending: str) -> None:
    content = drawn(curves([Chart([Curve("", [1, 2], [1, 2])], "x", "y")]), ending)
    assert len(content) > 1000
    if ending == ".png":
        from io import BytesIO

        from matplotlib.image import imread

        np.testing.assert_allclose(imread(BytesIO(content))[0, 0], 1)
