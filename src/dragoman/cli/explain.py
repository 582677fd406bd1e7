"""``dragoman explain``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def explain(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="A run folder, or its bundle.")],
    text: Annotated[str, typer.Argument(help="One sentence to translate.")],
    out: Annotated[Path, typer.Option(help="Where the figure goes: .svg or .png.")] = Path("attention.svg"),
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
) -> None:
    """Draw which source words each target word attended to."""
    from dragoman.explanation.figures import save_cross_attention
    from dragoman.explanation.trace import trace
    from dragoman.translator import Translator

    found = trace(Translator.load(run, device), text)
    save_cross_attention(found, out)
    print(found.translation)
    print(out)
