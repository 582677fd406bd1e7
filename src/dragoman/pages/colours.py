"""The colours of attention weights, evenly spaced in OKLab, where equal distances look equally large.

Source: https://bottosson.github.io/posts/oklab/
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

BLUES = ("#ffffff", "#5fa8d8", "#08306b")
"""Colours of the scale on a light page, from 0 (white) to 1."""

DARK = ("#16181b", "#2f7fb8", "#eaf5ff")
"""Colours of the scale on a dark page, from 0 (the page's colour) to 1 (nearly white)."""

ORANGES = ("#ffffff", "#e8955a", "#6e2200")
"""Colours of the second arm of a scale with negative values; as dark at its end as ``BLUES``."""

DARK_ORANGES = ("#16181b", "#b0622a", "#ffeee2")
"""Colours of the second arm on a dark page, whose first arm is ``DARK``."""

DARK_ARMS = ((*DARK[:2], "#a8d4ff"), (*DARK_ORANGES[:2], "#ffbd96"))
"""Arms of a scale with two arms on a dark page, blue and orange: both end in a light colour, but keep their hue."""

SHADES = 64
"""Number of colours sent to a page, which interpolates between them."""

_TO_LMS = np.array([[0.4122214708, 0.5363325363, 0.0514459929],
                    [0.2119034982, 0.6806995451, 0.1073969566],
                    [0.0883024619, 0.2817188376, 0.6299787005]])  # fmt: skip
_TO_LAB = np.array([[0.2104542553, 0.7936177850, -0.0040720468],
                    [1.9779984951, -2.4285922050, 0.4505937099],
                    [0.0259040371, 0.7827717662, -0.8086757660]])  # fmt: skip


def oklab(colour: str) -> NDArray[np.float64]:
    """Return the OKLab lightness and two colour axes of ``#rrggbb``: ``(3,)``."""
    rgb = np.array([int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)])
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    lab: NDArray[np.float64] = _TO_LAB @ np.cbrt(_TO_LMS @ linear)
    return lab


def blend(stops: Sequence[str], n: int) -> NDArray[np.float64]:
    """Return ``n`` colours along the stops, evenly spaced in OKLab: ``(n, 3)``, red, green and blue in [0, 1]."""
    corners = np.array([oklab(stop) for stop in stops])
    distances = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(corners, axis=0), axis=1))])
    places = np.linspace(0, distances[-1], n)
    lab = np.stack([np.interp(places, distances, axis) for axis in corners.T])
    linear = (np.linalg.solve(_TO_LMS, np.linalg.solve(_TO_LAB, lab) ** 3)).T.clip(0, 1)
    return np.where(linear <= 0.0031308, 12.92 * linear, 1.055 * linear ** (1 / 2.4) - 0.055)


def scale() -> dict[str, list[str]]:
    """Return the colours of weights from 0 to 1 as ``#rrggbb``, for the themes ``light`` and ``dark``."""
    return {theme: [hexadecimal(colour) for colour in blend(stops, SHADES)] for theme, stops in
            (("light", BLUES), ("dark", DARK))}  # fmt: skip


def signed_scale() -> dict[str, list[str]]:
    """Return the colours of values from -1 to 1 as ``#rrggbb``: blue below zero, orange above, at zero the page's.

    A theme has twice ``SHADES`` and one more, so that zero has a colour of its own.
    """
    arms = {"light": (BLUES, ORANGES), "dark": DARK_ARMS}
    colours = {}
    for theme, (below, above) in arms.items():
        blues, oranges = (blend(stops, SHADES + 1) for stops in (below, above))
        colours[theme] = [hexadecimal(colour) for colour in (*blues[:0:-1], *oranges)]
    return colours


def hexadecimal(colour: Any) -> str:
    """Return red, green and blue in [0, 1] as ``#rrggbb``."""
    return "#" + "".join(f"{round(255 * float(part)):02x}" for part in colour)
