"""``dragoman demo``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def demo(
    tgt_lang: Annotated[str, typer.Option("--to", help="de (German) or zh (Chinese).")] = "de",
    out: Annotated[Path | None, typer.Option(help="The run folder (default: runs/demo, or runs/demo-zh).")] = None,
    overrides: Annotated[
        list[str] | None, typer.Option("--set", metavar="A.B=C", help="Change a setting; may be repeated.")
    ] = None,
) -> None:
    """Watch a Transformer learn to translate the embedded corpus, in minutes."""
    from dragoman.demo import run_demo

    signal = run_demo(tgt_lang, out, overrides or ())
    if signal is not None:
        raise typer.Exit(128 + signal)
