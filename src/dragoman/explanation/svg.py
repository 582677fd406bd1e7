"""Additions to a figure's SVG: title and description, and colours for dark pages.

Text stays text: it can be searched, read aloud and translated. The background is transparent, and the colours follow
``prefers-color-scheme``. In ``<img>`` that is the setting of the page, so one file serves both themes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from html import escape

from dragoman.pages.colours import BLUES, DARK, DARK_ORANGES, ORANGES, blend, hexadecimal

SCALE_COLOURS = 256
"""Number of colours in the scale of cells; a scale with two arms has half of them in each."""

DARK_OF = {
    "#1a1a1a": "#e8e8e6", "#6b6b6b": "#a3a3a0", "#d9d9d9": "#44484d", "#ffffff": "#16181b",  # ink, quiet, pale, paper
    "#0072b2": "#5fb4ee", "#b84a00": "#f2935c", "#0f4d33": "#4fbf8f", "#6a2c91": "#c6a0ea",  # the colours of lines
    "#555555": "#9a9a97", "#444444": "#b8b8b5", "#ececec": "#2b2f34", "#8fc3e6": "#1f5f8c",  # axes, ticks, grid, taken
}  # fmt: skip
"""For each colour of a figure, its colour on a dark page."""

DARK_ARMS = ((*DARK[:2], "#a8d4ff"), (*DARK_ORANGES[:2], "#ffbd96"))
"""Colours of a scale with two arms on a dark page, each from 0 to its end."""

FONTS = '"DejaVu Sans", Verdana, "Noto Sans CJK SC", "Noto Sans SC", "PingFang SC", "Microsoft YaHei", sans-serif'
"""Fonts in order of preference. Places are computed for DejaVu Sans; Verdana is as wide."""

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
    svg = re.sub(r" transform=\"rotate\(-0 [^\"]*\"", "", svg)
    svg = re.sub(r" ?font-family: [^;\"]*;?", "", re.sub(r"font: ([\d.]+px) [^;\"]*", r"font-size: \1", svg))
    head = "".join(f"\n <{tag}>{escape(text, quote=False)}</{tag}>" for tag, text in
                   (("title", title), ("desc", description)) if text)  # fmt: skip
    start = svg.index(">") + 1
    root = svg[:start].replace("<svg ", '<svg role="img" ', 1)
    return f"{root}{head}\n <style>{_style(svg)}</style>{svg[start:]}"


def _style(svg: str) -> str:
    """Return the CSS that replaces this drawing's colours on dark pages; embedded pictures are inverted."""
    used = set(re.findall(r"#[0-9a-f]{6}", svg))
    rules = [
        f'[style*="{part}: {light}"]{{{part}:{dark}!important}}'
        for light, dark in sorted(_dark_colours(diverging=bool(used & _second_arm())).items())
        if light in used
        for part in ("fill", "stroke")
        if f"{part}: {light}" in svg
    ]
    if "<image " in svg:
        rules.append("image{filter:invert(1) hue-rotate(180deg)}")
    dark = f"@media (prefers-color-scheme:dark){{{''.join(rules)}}}" if rules else ""
    return f"text{{font-family:{FONTS}}}{dark}"


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
