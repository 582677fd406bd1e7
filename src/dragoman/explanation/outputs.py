"""Write a trace: as a page, as one figure, or into a folder as the page and all figures."""

from __future__ import annotations

from pathlib import Path

from dragoman.errors import ConfigError, DecodeError
from dragoman.explanation.attention import FIGURES, figure
from dragoman.explanation.page import save_page
from dragoman.explanation.style import ENDINGS, check_letters, refuse_other_figures, save
from dragoman.explanation.trace import Trace
from dragoman.options import not_among
from dragoman.pages.render import refuse_other_page

PAGE = "explanation.html"


def check(out: Path, show: str) -> None:
    """Check where and what to write, before the work of translating.

    Raises:
        ConfigError: ``out`` is not a page, a figure or a folder by its suffix; the figure ``show`` is unknown, or
            ``out`` is not one figure; matplotlib is missing; a file in the folder ``out`` would be replaced that is not
            of an explanation.
    """
    if show not in FIGURES:
        raise not_among("show", show, FIGURES)
    if show != FIGURES[0] and (out.suffix not in ENDINGS or out.is_dir()):
        raise ConfigError(f"--show chooses one figure: give --out {show}.svg too (a page or folder has all)")
    if out.suffix in (".html", ".htm"):
        return
    if out.suffix and out.suffix not in ENDINGS and not out.is_dir():
        raise ConfigError(
            f"{out}: nothing can be written as {out.suffix}: give a page (.html), a figure ({', '.join(ENDINGS)}) or a "
            "folder"
        )
    check_letters([])
    if not out.suffix or out.is_dir():
        refuse_other_explanation(out / PAGE)
        refuse_other_figures(*(path for name in FIGURES for path in _files(out, name)))


def refuse_other_explanation(path: Path) -> None:
    """Check that a page under its default name replaces no other file than a page of an explanation.

    Raises:
        ConfigError: It would.
    """
    refuse_other_page(path, "an explanation", "<title>dragoman: ")


def _files(folder: Path, name: str) -> list[Path]:
    """Return the files of a figure in a folder."""
    return [folder / f"{name}{ending}" for ending in (".svg", ".png")]


def write(trace: Trace, out: Path, show: str = "alignment", subwords: bool = False) -> list[Path]:
    """Write the page, one figure, or into a folder the page and each figure as SVG and PNG.

    Args:
        show: One of ``FIGURES``, if ``out`` is a figure.
        subwords: Draw the model's subwords instead of words; the page shows both.

    Returns:
        The paths of the files written. A folder gets no figure of attention that the model does not have.

    Raises:
        ConfigError: As ``check``; or a font is missing.
        DecodeError: The model has no such attention.
        DragomanError: A file cannot be written.
    """
    check(out, show)
    if out.suffix in (".html", ".htm"):
        save_page(trace, out)
        return [out]
    shown = trace if subwords else trace.by_words()
    if out.suffix in ENDINGS and not out.is_dir():
        save(figure(shown, show), out)
        return [out]
    save_page(trace, out / PAGE)
    written = [out / PAGE]
    for name in FIGURES:
        try:
            drawing = figure(shown, name)
        except DecodeError:
            continue
        paths = _files(out, name)
        save(drawing, *paths)
        written += paths
    return written
