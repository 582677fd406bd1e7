"""``dragoman import``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dragoman.cli.signs import loading


def import_(
    source: Annotated[str, typer.Argument(metavar="MODEL", help="Model folder or file, or its name on Hugging Face.")],
    out: Annotated[Path, typer.Option(help="Run folder to write.")],
    keep_pieces_of: Annotated[
        list[Path] | None,
        typer.Option(help="Drop subwords that do not occur in this text (of either language); may be repeated."),
    ] = None,
    src_lang: Annotated[str | None, typer.Option(help="Source language code (default: the model's).")] = None,
    tgt_lang: Annotated[str | None, typer.Option(help="Target language code (default: the model's).")] = None,
    revision: Annotated[
        str | None, typer.Option(help="Branch, tag or commit to download (default: the newest).")
    ] = None,
) -> None:
    """``dragoman import``; its help is in ``cli/commands.py``."""
    with loading():
        from dragoman.toolkits.import_ import import_model

    print(import_model(
        source, out, keep_pieces_of=keep_pieces_of or (), src_lang=src_lang, tgt_lang=tgt_lang, revision=revision,
    ))  # fmt: skip
