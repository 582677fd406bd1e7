"""The look of every figure: colours, letters, size and files. Drawing needs ``dragoman[plot]``.

    with drawing(["epoch", "loss"]):
        figure, axes = new_figure(1, 1)
        ...
        fit(figure, axes, 4.2, 2.9)
    save(figure, Path("loss.svg"), title="Loss by epoch")

The colours of lines begin with blue and orange after Okabe and Ito (https://jfly.uni-koeln.de/color/). All are dark
enough to be read on white, and the first five differ for every kind of colour vision. Cells take the colours of
``pages/colours.py``: equal steps of a value look equal, lightness alone tells values apart, and zero is white.
"""

from __future__ import annotations

import contextlib
import io
import logging
import math
import re
import warnings
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dragoman.errors import ConfigError, not_installed
from dragoman.explanation.svg import SCALE_COLOURS, finished
from dragoman.files import explained, refuse_others, write_bytes
from dragoman.pages.colours import BLUES, ORANGES, blend

logger = logging.getLogger(__name__)

INK, QUIET, PALE, PAPER = "#1a1a1a", "#6b6b6b", "#d9d9d9", "#ffffff"
BLUE, ORANGE, GREEN, PURPLE = "#0072b2", "#b84a00", "#0f4d33", "#6a2c91"
SERIES = (BLUE, ORANGE, GREEN, PURPLE, INK, QUIET)
"""Colours of lines and bars, in the order of use."""

CJK_FONTS = (
    "Noto Sans CJK SC", "Noto Sans SC", "Source Han Sans SC", "WenQuanYi Micro Hei", "WenQuanYi Zen Hei",
    "PingFang SC", "Hiragino Sans GB", "Microsoft YaHei", "SimHei", "Noto Sans CJK JP", "Droid Sans Fallback",
)  # fmt: skip
ENDINGS = (".svg", ".png", ".pdf")
DPI = 160
"""Pixels an inch of a .png."""
_RAISED = "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"


# --- colours ----------------------------------------------------------------------------------------------------------


@cache
def scale(diverging: bool = False) -> Any:
    """Return the matplotlib colour map of cells: white to deep blue, or deep blue over white to deep orange."""
    _need_matplotlib()
    from matplotlib.colors import ListedColormap

    colours = blend(BLUES, SCALE_COLOURS)
    if diverging:
        half = SCALE_COLOURS // 2
        colours = np.concatenate([blend(BLUES, half)[::-1], blend(ORANGES, half)])
    return ListedColormap(colours, name="blue-orange" if diverging else "blues")


# --- letters ----------------------------------------------------------------------------------------------------------


_CJK = re.compile("[\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\uff00-\uffef\U00020000-\U0003ffff]")


def is_cjk(character: str) -> bool:
    """True if a character needs a Chinese, Japanese or Korean font."""
    return _CJK.fullmatch(character) is not None


@cache
def font_families() -> tuple[str, ...]:
    """Return the installed fonts for figures, in the order in which a character is looked up."""
    from matplotlib import font_manager

    known = {font.name for font in font_manager.fontManager.ttflist}
    return ("DejaVu Sans", *(name for name in CJK_FONTS if name in known))


def no_figures() -> str:
    """Return a message that matplotlib is missing and how to install it; "" if it is installed."""
    return "" if find_spec("matplotlib") else not_installed("drawing figures", "matplotlib")


def _need_matplotlib() -> None:
    """Raise ConfigError if matplotlib is missing."""
    if missing := no_figures():
        raise ConfigError(missing)


def check_letters(texts: Iterable[str]) -> None:
    """Check that matplotlib and the fonts for these texts are installed; otherwise letters would be empty boxes.

    Raises:
        ConfigError: matplotlib, or a Chinese font where one is needed, is not installed.
    """
    _need_matplotlib()
    if len(font_families()) == 1 and any(map(is_cjk, "".join(texts))):
        raise ConfigError(
            "no font for Chinese characters is installed: install one (on Debian: apt-get install fonts-noto-cjk), "
            "or draw with a language that needs none"
        )


# --- drawing and saving -----------------------------------------------------------------------------------------------


def _look() -> Any:
    """Return the matplotlib settings of all figures."""
    return {
        "font.family": list(font_families()), "font.size": 10, "axes.titlesize": 11, "axes.titlelocation": "left",
        "axes.titlepad": 8, "axes.edgecolor": "#555555", "axes.labelcolor": INK, "text.color": INK,
        "xtick.color": "#444444", "ytick.color": "#444444", "xtick.major.size": 3, "ytick.major.size": 3,
        "axes.spines.top": False, "axes.spines.right": False, "axes.linewidth": 0.8, "axes.axisbelow": True,
        "grid.color": "#ececec", "lines.linewidth": 1.8, "figure.facecolor": PAPER, "axes.facecolor": "none",
        "axes.unicode_minus": True, "text.parse_math": False, "svg.fonttype": "none", "svg.hashsalt": "dragoman",
    }  # fmt: skip


_NO_GLYPH = r"Glyph .* missing from font"
"""Beginning of matplotlib's warning about a letter that no font has; it has no category of its own."""


@contextlib.contextmanager
def drawing(texts: Iterable[str] = ()) -> Iterator[None]:
    """Give matplotlib the look of all figures inside the ``with`` block.

    Args:
        texts: All texts that will be written, to check their fonts.

    Raises:
        ConfigError: See ``check_letters``.
    """
    check_letters(texts)
    import matplotlib

    with matplotlib.rc_context(_look()):
        yield


def new_figure(n_rows: int, n_columns: int, heights: Sequence[float] | None = None) -> tuple[Any, NDArray[Any]]:
    """Return an empty figure and its axes ``(n_rows, n_columns)``, without pyplot's global state; see ``fit``.

    Args:
        n_rows: Number of rows of axes.
        n_columns: Number of axes in a row.
        heights: How high each row is beside the others; None: all alike.
    """
    from matplotlib.figure import Figure

    figure = Figure(layout="constrained")
    return figure, figure.subplots(n_rows, n_columns, squeeze=False, height_ratios=heights)


def fit(figure: Any, axes: NDArray[Any], width: float, height: float) -> None:
    """Resize the figure until each axes of its first row has ``width`` x ``height`` inches, with space for all letters.

    Letters keep their size, so the figure grows with its labels.
    """
    n_columns = axes.shape[1]
    ratios = axes[0, 0].get_gridspec().get_height_ratios()
    n_rows = sum(ratios) / ratios[0]
    figure.set_size_inches(n_columns * width + 2, n_rows * height + 2)
    for _ in range(3):  # ticks may change with the size, and with them the room they take
        _give_places(figure)
        box = axes[0, 0].get_window_extent()
        spare = n_columns * (width - box.width / figure.dpi), n_rows * (height - box.height / figure.dpi)
        if max(map(abs, spare)) < 0.01:
            return
        figure.set_size_inches(figure.get_size_inches() + spare)
    _give_places(figure)


def _give_places(figure: Any) -> None:
    """Give the axes their places without drawing; enlarge a figure whose letters leave no room for them."""
    for _ in range(5):
        with warnings.catch_warnings(record=True) as collapsed:
            warnings.simplefilter("always")
            warnings.filterwarnings("ignore", _NO_GLYPH)  # says nothing about places
            figure.get_layout_engine().execute(figure)
        if not collapsed:
            return
        figure.set_size_inches(figure.get_size_inches() + 2)


def number(value: float) -> str:
    """Return a number with three digits, or as an integer with thousands separators: 8,203, 27.4, 0.052, 3×10⁻⁷."""
    if not math.isfinite(value):
        return str(value)
    text = f"{value:,.0f}" if 100 <= abs(value) < 1e6 else f"{value:.3g}"
    return (_power(value) if "e" in text else text).replace("-", "−")


def tick(value: float) -> str:
    """Return the number at a tick of a linear axis with all its digits: 38.25, 1,250. Such numbers are round."""
    text = f"{value:,.6g}"
    return (_power(value) if "e" in text else text).replace("-", "−")


def _power(value: float) -> str:
    """Return a number as a power of ten with its factor: 10⁻⁶, 3×10⁵."""
    mantissa, exponent = f"{value:.2e}".split("e")
    raised = str(int(exponent)).translate(str.maketrans("-0123456789", _RAISED))
    return f"10{raised}" if float(mantissa) == 1 else f"{float(mantissa):g}×10{raised}"


def ticks(values: Sequence[float]) -> list[str]:
    """Return the ticks of a logarithmic axis as ``number`` writes them; all as powers if one is: 10⁻⁶, 10⁻³, 10⁰."""
    texts = [number(value) for value in values]
    return [_power(value) for value in values] if any(text[-1] in _RAISED for text in texts) else texts


def numbers(values: Sequence[float]) -> list[str]:
    """Return each value as ``number`` writes it; values of similar size get equally many decimals: 93.4, 91.0, 85.0."""
    texts, sizes = [number(value) for value in values], [abs(value) for value in values]
    if not sizes or not 1e-3 <= min(sizes) <= max(sizes) < min(10 * min(sizes), 1e6):
        return texts
    decimals = max(len(text.partition(".")[2]) for text in texts)
    return [f"{value:,.{decimals}f}".replace("-", "−") for value in values]


def save(figure: Any, *paths: Path, title: str = "", description: str = "") -> None:
    """Write a figure in the format of each path's suffix; the same figure gives the same bytes.

    Args:
        title: Subject of the figure, stored in an SVG; ``description``: its content, for readers who do not see it.

    Raises:
        ConfigError: A path does not end in .svg, .png or .pdf.
        DragomanError: A file cannot be written.
    """
    for path in paths:
        check_ending(path)
        content = drawn(figure, path.suffix, title, description)
        with explained(path, len(content)):
            path.parent.mkdir(parents=True, exist_ok=True)
        write_bytes(path, content)


def refuse_other_figures(*paths: Path) -> None:
    """Check, before anything is drawn, that figures under names that no user gave replace figures of ``save`` only.

    Args:
        paths: Names that end in .svg or .png.

    Raises:
        ConfigError: Another file has such a name.
    """
    why = "a figure may replace this file, which dragoman did not draw"
    # Other programs name themselves, where a PNG of every version has its resolution: behind the signature and the
    # size, 6,299 pixels a metre (160 an inch) across and down.
    resolution = b"\0\0\0\tpHYs\0\0\x18\x9b\0\0\x18\x9b\1"
    for path in paths:
        if path.suffix == ".png":
            refuse_others(path, why, resolution, at=33)
        else:
            refuse_others(path, why, b'<svg role="img" ', b"<style>text{font-family:")


def check_ending(path: Path) -> None:
    """Check the suffix of a figure.

    Raises:
        ConfigError: The path does not end in .svg, .png or .pdf.
    """
    if path.suffix not in ENDINGS:
        raise ConfigError(f"{path}: a figure ends in {', '.join(ENDINGS[:-1])} or {ENDINGS[-1]}")


def drawn(figure: Any, ending: str, title: str = "", description: str = "") -> bytes:
    """Return a figure as the bytes of a .svg, .png or .pdf; an SVG is transparent and has colours for dark pages."""
    no_metadata = {
        ".svg": dict.fromkeys(("Date", "Creator", "Format", "Type")), ".png": {"Software": None},
        ".pdf": dict.fromkeys(("CreationDate", "Creator", "Producer")),
    }  # fmt: skip
    out = io.BytesIO()
    ground = "none" if ending == ".svg" else PAPER
    with drawing(), warnings.catch_warnings(record=True) as said:
        warnings.filterwarnings("always", _NO_GLYPH)
        figure.savefig(out, format=ending[1:], dpi=DPI, metadata=no_metadata[ending], facecolor=ground)
    if said and ending != ".svg":  # whose letters the reader's own fonts have
        logger.warning("the %s has empty boxes for letters that no installed font has; a .svg shows them", ending)
    content = out.getvalue()
    return finished(content.decode(), title, description).encode() if ending == ".svg" else content


def matplotlib_for(texts: Iterable[str]) -> Any:
    """Return pyplot, set to draw to files, for figures that ``figures`` does not offer.

    Raises:
        ConfigError: See ``check_letters``.
    """
    check_letters(texts)
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    pyplot.rcParams.update(
        {
            "font.family": list(font_families()),
            "svg.fonttype": "path",
            "svg.hashsalt": "dragoman",
            "text.parse_math": False,
        }
    )
    return pyplot
