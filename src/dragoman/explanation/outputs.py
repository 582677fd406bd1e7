"""Where an explanation goes: a page, one figure, or a folder with the page and all figures."""

from __future__ import annotations

from pathlib import Path

from dragoman.errors import ConfigError, DecodeError
from dragoman.explanation.attention import FIGURES, figure
from dragoman.explanation.page import save_page
from dragoman.explanation.style import ENDINGS, check_letters, save
from dragoman.explanation.trace import Trace

PAGE = "explanation.html"


def check(out: Path, show: str) -> None:
    """Refuse now what could only fail after the translation.

    Raises:
        ConfigError: ``out`` ends in something else than a page, a figure or a folder does; there is no such figure;
            matplotlib is missing.
    """
    if show not in FIGURES:
        raise ConfigError(f"no figure is called {show!r}: choose {', '.join(FIGURES)}")
    if out.suffix in (".html", ".htm"):
        return
    if out.suffix and out.suffix not in ENDINGS and not out.is_dir():
        raise ConfigError(
            f"{out}: nothing can be written as {out.suffix}: give a page (.html), a figure ({', '.join(ENDINGS)}) or a "
            "folder"
        )
    check_letters([])


def write(trace: Trace, out: Path, show: str = "alignment", subwords: bool = False) -> list[Path]:
    """Write the page, the figure, or into a folder the page and each figure as SVG and PNG.

    Args:
        show: Which of ``FIGURES``, where ``out`` is one.
        subwords: Draw tokens as the model has them; the page has both.

    Returns:
        What was written. In a folder, attention that a model has none of is left out.

    Raises:
        ConfigError: As ``check``; or a font is missing.
        DecodeError: The model has no such attention.
        DragomanError: A file cannot be written.
    """
    check(out, show)
    if out.suffix in (".html", ".htm"):
        save_page(trace, out)
        return [out]
    drawn = trace if subwords else trace.by_words()
    if out.suffix in ENDINGS and not out.is_dir():
        save(figure(drawn, show), out)
        return [out]
    save_page(trace, out / PAGE)
    written = [out / PAGE]
    for name in FIGURES:
        try:
            one = figure(drawn, name)
        except DecodeError:
            continue
        paths = [out / f"{name}{ending}" for ending in (".svg", ".png")]
        save(one, *paths)
        written += paths
    return written
