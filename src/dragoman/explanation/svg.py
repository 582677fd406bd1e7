"""Additions to a figure's SVG: title and description, and colours for dark pages.

Text stays text: it can be searched, read aloud and translated. The background is transparent, and the colours follow
``prefers-color-scheme``. In ``<img>`` that is the setting of the page, so one file serves both themes. A picture in the
drawing, such as the legend of a heat map, is there twice, once in the colours of dark pages.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from functools import cache
from html import escape
from io import BytesIO
from typing import Any

import numpy as np

from dragoman.pages.colours import BLUES, DARK, DARK_ARMS, ORANGES, blend, hexadecimal

SCALE_COLOURS = 256
"""Number of colours in the scale of cells; a scale with two arms has half of them in each."""

DARK_OF = {
    "#1a1a1a": "#e8e8e6", "#6b6b6b": "#a3a3a0", "#d9d9d9": "#44484d", "#ffffff": "#16181b",  # ink, quiet, pale, paper
    "#0072b2": "#5fb4ee", "#b84a00": "#f2935c", "#0f4d33": "#4fbf8f", "#6a2c91": "#c6a0ea",  # the colours of lines
    "#555555": "#9a9a97", "#444444": "#b8b8b5", "#ececec": "#2b2f34", "#8fc3e6": "#1f5f8c",  # axes, ticks, grid, taken
}  # fmt: skip
"""For each colour of a figure, its colour on a dark page."""

FONTS = '"DejaVu Sans", Verdana, "Noto Sans CJK SC", "Noto Sans SC", "PingFang SC", "Microsoft YaHei", sans-serif'
"""Fonts in order of preference. Places are computed for DejaVu Sans; Verdana is as wide."""

_PICTURE = re.compile(r'<image xlink:href="data:image/png;base64,([^"]*+)" id="[^"]*+"([^<>]*+)>')
_PATH = re.compile(r' d="([^"]*+)"')
_LONG = re.compile(r"(?<!\d)\d++\.\d{3,}")  # in a tag: hundredths of a point are enough


def finished(svg: str, title: str = "", description: str = "") -> str:
    """Return matplotlib's SVG from its ``<svg`` on, with title, description, fonts and dark colours added.

    Args:
        svg: matplotlib's output, with text as text.
        title: Subject of the figure in a few words; empty: no title.
        description: Content of the figure for readers who do not see it; empty: no description.
    """
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"(?<!\s)\s*+<metadata>(?:(?!<metadata>).)*?</metadata>", "", svg, flags=re.DOTALL)
    svg = re.sub(r"<[^>]*(?:>|\Z)", lambda tag: _LONG.sub(lambda long: f"{float(long[0]):.2f}", tag[0]), svg)
    svg = _PATH.sub(lambda path: f' d="{_shorter(path[1])}"', svg)
    svg = re.sub(r" transform=\"rotate\(-0 [^\"]*\"", "", svg)
    svg = re.sub(r" ?font-family: [^;\"]*;?", "", re.sub(r"font: ([\d.]+px) [^;\"]*", r"font-size: \1", svg))
    head = "".join(f"\n <{tag}>{escape(text, quote=False)}</{tag}>" for tag, text in
                   (("title", title), ("desc", description)) if text)  # fmt: skip
    start = svg.index(">") + 1
    root = svg[:start].replace("<svg ", '<svg role="img" ', 1)
    dark = _dark_colours(diverging=_has_two_arms(svg))
    body = _PICTURE.sub(lambda picture: _both_pictures(picture[1], picture[2], dark), svg[start:])
    return f"{root}{head}\n <style>{_style(svg, dark)}</style>{body}"


def _shorter(path: str) -> str:
    """Return the data of a path without spaces that it does not need; lines that end where they began are closed."""
    data = " ".join(path.split())
    for letter in "MLHVCQZz":
        data = data.replace(f" {letter}", letter).replace(f"{letter} ", letter)
    first, *others = data.removeprefix("M").split("L")
    is_closed = others and others[-1] == first and not set(data[1:]) & set("MHVCQZz")
    return f"M{'L'.join([first, *others[:-1]])}z" if is_closed else data


def _style(svg: str, dark_colours: Mapping[str, str]) -> str:
    """Return the CSS that replaces this drawing's colours on dark pages and chooses among its pictures."""
    used = set(re.findall(r"#[0-9a-f]{6}", svg))
    rules = [
        f'[style*="{part}: {light}"]{{{part}:{dark}!important}}'
        for light, dark in sorted(dark_colours.items())
        if light in used
        for part in ("fill", "stroke")
        if f"{part}: {light}" in svg
    ]
    hidden = ""
    if _PICTURE.search(svg):
        hidden = "image.dark{display:none}"
        rules.append("image.light{display:none}image.dark{display:inline}")
    dark = f"@media (prefers-color-scheme:dark){{{''.join(rules)}}}" if rules else ""
    return f"text{{font-family:{FONTS}}}{hidden}{dark}"


def _has_two_arms(svg: str) -> bool:
    """Return True if a cell or a picture has a colour of the second arm: then the scale has two."""
    pictures = [_pixels(picture[1]) for picture in _PICTURE.finditer(svg)]
    return bool(set(re.findall(r"#[0-9a-f]{6}", svg)) & _second_arm()) or any(
        bool((pixels[..., 0] > pixels[..., 2] + 0.1).any()) for pixels in pictures  # redder than blue
    )  # fmt: skip


def _pixels(picture: str) -> Any:
    """Return the pixels of a PNG in base64: (height, width, 4), red, green, blue and opacity from 0 to 1."""
    from matplotlib.image import imread

    return imread(BytesIO(base64.b64decode(picture)))


def _both_pictures(picture: str, attributes: str, dark_colours: Mapping[str, str]) -> str:
    """Return an embedded picture for light pages and, with the dark colour of each of its colours, for dark ones."""
    from matplotlib.image import imsave

    pixels = _pixels(picture)
    table = np.array([[int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)] for pair in dark_colours.items()
                      for colour in pair]).reshape(-1, 2, 3)  # fmt: skip
    colours, places = np.unique(pixels[..., :3].reshape(-1, 3), axis=0, return_inverse=True)
    distances = ((colours[:, None] - table[None, :, 0]) ** 2).sum(-1)  # (colours, table): a blend is near one of them
    twin = pixels.copy()
    twin[..., :3] = table[distances.argmin(1), 1][places.reshape(-1)].reshape(pixels[..., :3].shape)
    out = BytesIO()
    no_version: Any = {"Software": None}  # the same picture has the same bytes
    imsave(out, twin, format="png", metadata=no_version)
    both = (("light", "".join(picture.split())), ("dark", base64.b64encode(out.getvalue()).decode()))
    return "".join(
        f'<image class="{theme}" xlink:href="data:image/png;base64,{data}"{attributes}>' for theme, data in both
    )


@cache
def _second_arm() -> frozenset[str]:
    """Return the colours that only cells of a scale with two arms have: those of its second arm."""
    return frozenset(map(hexadecimal, blend(ORANGES, SCALE_COLOURS // 2)[1:]))


@cache
def _dark_colours(diverging: bool) -> Mapping[str, str]:
    """Return the dark colour of every colour that a figure may have, those of cells included.

    A scale with two arms ends in a light blue and a light orange, and not nearly in white, so that its sign is seen.
    """
    arms = ((BLUES, DARK_ARMS[0], SCALE_COLOURS // 2), (ORANGES, DARK_ARMS[1], SCALE_COLOURS // 2))
    cells: dict[str, str] = {}
    for light, dark, n in arms if diverging else ((BLUES, DARK, SCALE_COLOURS),):
        cells |= dict(zip(map(hexadecimal, blend(light, n)), map(hexadecimal, blend(dark, n)), strict=True))
    return {**cells, **DARK_OF}
