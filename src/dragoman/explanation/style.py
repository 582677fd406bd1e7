"""How every figure looks: its colours, letters and files. Drawing needs ``dragoman[plot]``.

Lines and letters begin with blue and orange after Okabe and Ito (https://jfly.uni-koeln.de/color/); all are dark enough
to be read on white, and the first five differ for every kind of colour vision. Cells take the colours of
``pages/colours.py``, where equal steps of a value look equal, lightness alone tells them apart, and nothing is paper.
"""

from __future__ import annotations

import contextlib
import io
import math
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dragoman.errors import ConfigError, not_installed
from dragoman.explanation.svg import SCALE_COLOURS, finished
from dragoman.files import explained, write_bytes
from dragoman.pages.colours import BLUES, ORANGES, blend

INK, QUIET, PALE, PAPER = "#1a1a1a", "#6b6b6b", "#d9d9d9", "#ffffff"
BLUE, ORANGE, GREEN, PURPLE = "#0072b2", "#b84a00", "#0f4d33", "#6a2c91"
SERIES = (BLUE, ORANGE, GREEN, PURPLE, INK, QUIET)
"""The colours of lines and bars, in the order in which they are taken."""

CJK_FONTS = (
    "Noto Sans CJK SC", "Noto Sans SC", "Source Han Sans SC", "WenQuanYi Micro Hei", "WenQuanYi Zen Hei",
    "PingFang SC", "Hiragino Sans GB", "Microsoft YaHei", "SimHei", "Noto Sans CJK JP", "Droid Sans Fallback",
)  # fmt: skip
ENDINGS = (".svg", ".png", ".pdf")
_RAISED = "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"


# --- colours ----------------------------------------------------------------------------------------------------------


@cache
def scale(diverging: bool = False) -> Any:
    """The colours of cells, as matplotlib's: paper to deep blue; or deep blue, paper, deep orange."""
    _need_matplotlib()
    from matplotlib.colors import ListedColormap

    colours = blend(BLUES, SCALE_COLOURS)
    if diverging:
        half = SCALE_COLOURS // 2
        colours = np.concatenate([blend(BLUES, half)[::-1], blend(ORANGES, half)])
    return ListedColormap(colours, name="blue-orange" if diverging else "blues")


# --- letters ----------------------------------------------------------------------------------------------------------


_CJK = (
    ("\u2e80", "\u9fff"),
    ("\uac00", "\ud7af"),
    ("\uf900", "\ufaff"),
    ("\uff00", "\uffef"),
    ("\U00020000", "\U0003ffff"),
)


def is_cjk(character: str) -> bool:
    """Whether a character needs a Chinese, Japanese or Korean font."""
    return any(first <= character <= last for first, last in _CJK)


@cache
def _families() -> tuple[str, ...]:
    """The fonts of figures, in the order in which a character is looked for."""
    from matplotlib import font_manager

    known = {font.name for font in font_manager.fontManager.ttflist}
    return ("DejaVu Sans", *(name for name in CJK_FONTS if name in known))


def no_figures() -> str:
    """Why no figure can be drawn, as matplotlib is missing; "" where it is installed."""
    return "" if find_spec("matplotlib") else not_installed("drawing figures", "matplotlib")


def _need_matplotlib() -> None:
    if missing := no_figures():
        raise ConfigError(missing)


def check_letters(texts: Iterable[str]) -> None:
    """Refuse texts that would be drawn as empty boxes.

    Raises:
        ConfigError: matplotlib, or a Chinese font where one is needed, is not installed.
    """
    _need_matplotlib()
    if len(_families()) == 1 and any(map(is_cjk, "".join(texts))):
        raise ConfigError(
            "no font for Chinese characters is installed: install one (on Debian: apt-get install fonts-noto-cjk), "
            "or draw with a language that needs none"
        )


# --- drawing and saving -----------------------------------------------------------------------------------------------


def _look() -> Any:
    return {
        "font.family": list(_families()), "font.size": 10, "axes.titlesize": 11, "axes.titlelocation": "left",
        "axes.titlepad": 8, "axes.edgecolor": "#555555", "axes.labelcolor": INK, "text.color": INK,
        "xtick.color": "#444444", "ytick.color": "#444444", "xtick.major.size": 3, "ytick.major.size": 3,
        "axes.spines.top": False, "axes.spines.right": False, "axes.linewidth": 0.8, "axes.axisbelow": True,
        "grid.color": "#ececec", "lines.linewidth": 1.8, "figure.facecolor": PAPER, "axes.facecolor": "none",
        "axes.unicode_minus": True, "text.parse_math": False, "svg.fonttype": "none", "svg.hashsalt": "dragoman",
    }  # fmt: skip


@contextlib.contextmanager
def drawing(texts: Iterable[str] = ()) -> Iterator[None]:
    """Within it matplotlib draws as all our figures look.

    Args:
        texts: All that will be written.

    Raises:
        ConfigError: See ``check_letters``.
    """
    check_letters(texts)
    import matplotlib

    with matplotlib.rc_context(_look()):
        yield


def new_figure(n_rows: int, n_columns: int) -> tuple[Any, NDArray[Any]]:
    """An empty figure and its axes ``(n_rows, n_columns)``, without pyplot's global state; see ``fit``."""
    from matplotlib.figure import Figure

    figure = Figure(layout="constrained")
    return figure, figure.subplots(n_rows, n_columns, squeeze=False)


def fit(figure: Any, axes: NDArray[Any], width: float, height: float) -> None:
    """Make the figure as large as it takes for each of its axes to have ``width`` x ``height`` inches.

    Letters around the axes keep their size and get their room, however long they are.
    """
    n_rows, n_columns = axes.shape
    figure.set_size_inches(n_columns * width + 2, n_rows * height + 2)
    for _ in range(3):  # ticks may change with the size, and with them the room they take
        figure.draw_without_rendering()
        box = axes[0, 0].get_window_extent()
        spare = n_columns * (width - box.width / figure.dpi), n_rows * (height - box.height / figure.dpi)
        if max(map(abs, spare)) < 0.01:
            break
        figure.set_size_inches(figure.get_size_inches() + spare)
    figure.draw_without_rendering()


def number(value: float) -> str:
    """At most three digits, or whole with thousands marked: 8,203, 27.4, 0.052, 3×10⁻⁷."""
    if not math.isfinite(value):
        return str(value)
    text = f"{value:,.0f}" if 100 <= abs(value) < 1e6 else f"{value:.3g}"
    return (_power(value) if "e" in text else text).replace("-", "−")


def tick(value: float) -> str:
    """The place of a tick on a linear axis, which is a round number, with all of its digits: 38.25, 1,250."""
    text = f"{value:,.6g}"
    return (_power(value) if "e" in text else text).replace("-", "−")


def _power(value: float) -> str:
    mantissa, exponent = f"{value:.2e}".split("e")
    raised = str(int(exponent)).translate(str.maketrans("-0123456789", _RAISED))
    return f"10{raised}" if float(mantissa) == 1 else f"{float(mantissa):g}×10{raised}"


def ticks(values: Sequence[float]) -> list[str]:
    """Those of a logarithmic axis: each as ``number`` writes it, or if one is a power of ten, all: 10⁻⁶, 10⁻³, 10⁰."""
    texts = [number(value) for value in values]
    return [_power(value) for value in values] if any(text[-1] in _RAISED for text in texts) else texts


def numbers(values: Sequence[float]) -> list[str]:
    """Each as ``number`` writes it; of like size, all with as many decimals: 93.4, 91.0, 85.0."""
    texts, sizes = [number(value) for value in values], [abs(value) for value in values]
    if not sizes or not 1e-3 <= min(sizes) <= max(sizes) < min(10 * min(sizes), 1e6):
        return texts
    decimals = max(len(text.partition(".")[2]) for text in texts)
    return [f"{value:,.{decimals}f}".replace("-", "−") for value in values]


def save(figure: Any, *paths: Path, title: str = "", description: str = "") -> None:
    """Write a figure, as its paths end; the same figure gives the same bytes.

    Args:
        title: What an SVG says that it shows, to those who do not see it; ``description``: what is to be seen.

    Raises:
        ConfigError: A path does not end in .svg, .png or .pdf.
        DragomanError: It cannot be written.
    """
    for path in paths:
        check_ending(path)
        content = drawn(figure, path.suffix, title, description)
        with explained(path, len(content)):
            path.parent.mkdir(parents=True, exist_ok=True)
        write_bytes(path, content)


def check_ending(path: Path) -> None:
    """Refuse a file that is no figure.

    Raises:
        ConfigError: It does not end in .svg, .png or .pdf.
    """
    if path.suffix not in ENDINGS:
        raise ConfigError(f"{path}: a figure ends in {', '.join(ENDINGS[:-1])} or {ENDINGS[-1]}")


def drawn(figure: Any, ending: str, title: str = "", description: str = "") -> bytes:
    """A figure as the bytes of a .svg, .png or .pdf; an SVG has no ground, and colours for light and dark pages."""
    nothing = {
        ".svg": dict.fromkeys(("Date", "Creator", "Format", "Type")), ".png": {"Software": None},
        ".pdf": dict.fromkeys(("CreationDate", "Creator", "Producer")),
    }  # fmt: skip
    out = io.BytesIO()
    ground = "none" if ending == ".svg" else PAPER
    with drawing():
        figure.savefig(out, format=ending[1:], dpi=160, metadata=nothing[ending], facecolor=ground)
    content = out.getvalue()
    return finished(content.decode(), title, description).encode() if ending == ".svg" else content


def matplotlib_for(texts: Iterable[str]) -> Any:
    """pyplot, drawing to files, for those who draw for themselves.

    Raises:
        ConfigError: See ``check_letters``.
    """
    check_letters(texts)
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    pyplot.rcParams.update(
        {"font.family": list(_families()), "svg.fonttype": "path", "svg.hashsalt": "dragoman", "text.parse_math": False}
    )
    return pyplot
