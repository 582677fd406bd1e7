"""Figures of attention: one scale, one look. Needs ``dragoman[plot]``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from dragoman.errors import ConfigError
from dragoman.explanation.trace import Trace
from dragoman.files import explained

COLOURS = "viridis"  # perceptually even, and readable without colour vision
CJK_FONTS = ("Noto Sans CJK SC", "Noto Sans SC", "WenQuanYi Zen Hei", "WenQuanYi Micro Hei", "Source Han Sans SC")


def matplotlib_for(texts: list[str]) -> Any:
    """pyplot, drawing to files, with a font for every character of ``texts``.

    Raises:
        ConfigError: matplotlib, or a Chinese font where one is needed, is not installed.
    """
    try:
        import matplotlib

        matplotlib.use("Agg")
        from matplotlib import font_manager, pyplot
    except ImportError:
        raise ConfigError("figures need an extra: pip install 'dragoman[plot]'") from None
    families = ["DejaVu Sans"]
    if any("\u2e80" <= character <= "\u9fff" for text in texts for character in text):
        known = {font.name for font in font_manager.fontManager.ttflist}
        found = [name for name in CJK_FONTS if name in known]
        if not found:
            raise ConfigError(
                "no font for Chinese characters is installed: install one (on Debian: apt-get install fonts-noto-cjk), "
                "or draw with a language that needs none"
            )
        families = [*families, *found]
    pyplot.rcParams.update({"font.family": families, "svg.fonttype": "path", "svg.hashsalt": "dragoman"})
    return pyplot


def readable_pieces(pieces: list[str]) -> list[str]:
    """Subwords as people read them: ``·`` stands for a space, and the last one is the end of the sentence."""
    return ["(end)" if piece == "</s>" else piece.replace("▁", "·") for piece in pieces]


def save_cross_attention(trace: Trace, path: Path) -> None:
    """Draw the last layer's cross-attention, the mean of its heads: target down, source across.

    Args:
        path: Ends in ``.svg``, ``.png`` or ``.pdf``.

    Raises:
        ConfigError: Another ending, or matplotlib or a font is missing.
    """
    if path.suffix not in (".svg", ".png", ".pdf"):
        raise ConfigError(f"{path}: a figure ends in .svg, .png or .pdf")
    src, tgt = readable_pieces(trace.src_pieces), readable_pieces(trace.tgt_pieces)
    pyplot = matplotlib_for([*src, *tgt])
    weights = trace.cross_attention()  # (T, S)
    figure, axes = pyplot.subplots(figsize=(1.6 + 0.42 * len(src), 1.5 + 0.34 * len(tgt)), layout="constrained")
    image = axes.imshow(weights, cmap=COLOURS, vmin=0.0, vmax=1.0, aspect="auto")
    axes.set_xticks(range(len(src)), src, rotation=50, ha="left", rotation_mode="anchor")
    axes.set_yticks(range(len(tgt)), tgt)
    axes.xaxis.tick_top()
    axes.xaxis.set_label_position("top")
    axes.tick_params(length=0)
    axes.set_xlabel("source subwords")
    axes.set_ylabel("target subwords, first to last")
    for side in axes.spines.values():
        side.set_visible(False)
    bar = figure.colorbar(image, ax=axes, fraction=0.035, pad=0.02)
    bar.set_label("attention weight (each row sums to 1)")
    bar.outline.set_visible(False)
    with explained(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=160, metadata={"Date": None} if path.suffix == ".svg" else None)
    pyplot.close(figure)
