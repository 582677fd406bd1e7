"""``dragoman explain``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def explain(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="A run folder, or its bundle.")],
    text: Annotated[str, typer.Argument(help="One sentence to translate.")],
    out: Annotated[
        Path,
        typer.Option(help="A page (.html), a figure (.svg, .png, .pdf), or a folder for the page and all figures."),
    ] = Path("explanation.html"),
    show: Annotated[
        str, typer.Option(help="The figure: alignment, cross, encoder, decoder (every head), candidates.")
    ] = "alignment",
    target: Annotated[str | None, typer.Option(help="A translation to explain instead of the model's own.")] = None,
    subwords: Annotated[bool, typer.Option("--subwords", help="Draw subwords, not words.")] = False,
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
) -> None:
    """Show what a translation looked at: alignment, every head, what each step chose among."""
    from dragoman.explanation.outputs import check, write
    from dragoman.explanation.trace import trace
    from dragoman.translation.translator import Translator

    check(out, show)
    found = trace(Translator.load(run, device), text, target)
    print(found.translation)
    for path in write(found, out, show, subwords):
        print(path)
