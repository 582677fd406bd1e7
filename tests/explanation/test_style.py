"""Colours that look evenly spaced and are told apart by all eyes; letters that are there; files that do not change."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dragoman.errors import ConfigError, DragomanError
from dragoman.explanation import style
from dragoman.explanation.figures import HeatMap, heat_maps
from dragoman.pages import colours
from dragoman.pages.colours import blend, oklab

MACHADO = {  # https://doi.org/10.1109/TVCG.2009.113, severity 1, on linear red, green, blue
    "protan": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deutan": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "tritan": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
}


def linear(colour: str) -> np.ndarray:
    rgb = np.array([int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)])
    return np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)


def as_hex(rgb: np.ndarray) -> str:
    encoded = np.where(rgb <= 0.0031308, 12.92 * rgb, 1.055 * rgb.clip(1e-9) ** (1 / 2.4) - 0.055).clip(0, 1)
    return "#" + "".join(f"{round(255 * part):02x}" for part in encoded)


def as_colour(rgb: np.ndarray) -> str:
    return "#" + "".join(f"{round(255 * part):02x}" for part in rgb)


@pytest.mark.parametrize("stops", [colours.BLUES, colours.ORANGES, colours.DARK, colours.DARK_ORANGES])
def test_equal_steps_of_the_scale_look_equal_and_lightness_tells_them_apart(stops: tuple[str, ...]) -> None:
    lab = np.array([oklab(as_colour(rgb)) for rgb in blend(stops, 65)])
    steps = np.linalg.norm(np.diff(lab[::4], axis=0), axis=1)  # sixteen of them: rounding to 8 bits matters less
    assert steps.max() / steps.min() < 1.15
    assert (np.diff(lab[::4, 0]) < 0).all() or (np.diff(lab[::4, 0]) > 0).all()


def test_oklab_has_white_and_black_at_its_ends() -> None:
    np.testing.assert_allclose(oklab("#ffffff"), [1, 0, 0], atol=1e-4)
    np.testing.assert_allclose(oklab("#000000"), [0, 0, 0], atol=1e-9)
    np.testing.assert_allclose(oklab("#ff0000"), [0.62796, 0.22486, 0.12585], atol=1e-4)  # the author's table


def test_letters_in_the_colours_of_lines_are_readable_on_paper() -> None:
    for colour in style.SERIES:
        luminance = float(linear(colour) @ [0.2126, 0.7152, 0.0722])
        assert 1.05 / (luminance + 0.05) >= 4.5, colour  # WCAG 2, level AA


@pytest.mark.parametrize("vision", ["full", *MACHADO])
def test_the_first_colours_of_lines_differ_for_all_eyes(vision: str) -> None:
    seen = [linear(colour) for colour in style.SERIES[:5]]
    if vision != "full":
        seen = [np.array(MACHADO[vision]) @ colour for colour in seen]
    for one, other in combinations(seen, 2):
        assert np.linalg.norm(oklab(as_hex(one)) - oklab(as_hex(other))) > 0.09


def test_chinese_without_a_font_is_refused_with_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(style, "font_families", lambda: ("DejaVu Sans",))
    style.check_letters(["Mädchen", "naïve", "→"])
    with pytest.raises(ConfigError, match="fonts-noto-cjk"):
        style.check_letters(["girl", "女孩"])
    with pytest.raises(ConfigError, match="font"):
        heat_maps([HeatMap([[1.0]], "", ["女"], ["girl"])], "target", "source", "weight")
    monkeypatch.setattr(style, "font_families", lambda: ("DejaVu Sans", "Noto Sans CJK SC"))
    style.check_letters(["女孩"])


def test_letters_that_no_font_has_leave_the_size_and_are_named_where_they_are_boxes(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def figure(word: str) -> Any:
        return heat_maps([HeatMap(np.eye(2), "", [word, word], [word, word])], "row", "column", "weight")

    known, unknown = figure("word"), figure("रवि\U000118a0")  # Warang Citi
    assert max(abs(unknown.get_size_inches() - known.get_size_inches())) < 1
    style.save(unknown, tmp_path / "a.svg")
    assert "रवि" in (tmp_path / "a.svg").read_text(encoding="utf-8")
    assert not caplog.records
    for ending in (".png", ".pdf"):
        style.save(unknown, tmp_path / f"a{ending}")
        assert f"the {ending} has empty boxes for letters that no installed font has" in caplog.text


def test_the_same_figure_gives_the_same_bytes(tmp_path: Path) -> None:
    def draw(folder: Path) -> list[bytes]:
        paths = [folder / f"a{ending}" for ending in style.ENDINGS]
        style.save(heat_maps([HeatMap(np.eye(3))], "row", "column", "weight"), *paths)
        return [path.read_bytes() for path in paths]

    assert draw(tmp_path / "one") == draw(tmp_path / "other")


def test_a_figure_that_cannot_be_written_leaves_the_older_one(tmp_path: Path) -> None:
    figure = heat_maps([HeatMap(np.eye(2))], "row", "column", "weight")
    with pytest.raises(ConfigError, match=r"\.svg, \.png or \.pdf"):
        style.save(figure, tmp_path / "a.jpeg")
    (tmp_path / "file").write_text("kept", encoding="utf-8")
    with pytest.raises(DragomanError, match="cannot be written"):
        style.save(figure, tmp_path / "file" / "a.svg")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file"]


def test_numbers_side_by_side_have_as_many_decimals() -> None:
    assert style.numbers([93.4, 91, 85.04]) == ["93.4", "91.0", "85.0"]
    assert style.numbers([-1.25, 2, 3.5]) == ["−1.25", "2.00", "3.50"]
    assert style.numbers([0.97, 120, 8203.4]) == ["0.97", "120", "8,203"]  # too unlike for that
    assert style.numbers([float("nan"), 2]) == ["nan", "2"]
    assert style.numbers([8203.4, 9100]) == ["8,203", "9,100"]
    assert style.numbers([3e-7, 1.5e-7]) == ["3×10⁻⁷", "1.5×10⁻⁷"]
    assert style.numbers([0, 0.5]) == ["0", "0.5"]
    assert style.numbers([]) == []


def test_numbers_are_written_as_people_write_them() -> None:
    assert [style.number(value) for value in (0, 0.0521, 27.42, 8203.4, -3, 3e-7, 1e9, float("nan"))] == [
        "0", "0.0521", "27.4", "8,203", "−3", "3×10⁻⁷", "10⁹", "nan",
    ]  # fmt: skip
