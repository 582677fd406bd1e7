"""``dragoman train``."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Annotated

import typer


def train(
    config: Annotated[Path | None, typer.Argument(metavar="[CONFIG.yaml]", help="A configuration.")] = None,
    src: Annotated[Path | None, typer.Option(help="Source side of the training text (also .gz, .zst).")] = None,
    tgt: Annotated[Path | None, typer.Option(help="Target side, line by line.")] = None,
    valid_src: Annotated[Path | None, typer.Option(help="Source side of the validation text.")] = None,
    valid_tgt: Annotated[Path | None, typer.Option(help="Target side of the validation text.")] = None,
    out: Annotated[Path | None, typer.Option(help="The run folder [default: runs/NAME-OF-CONFIG].")] = None,
    overrides: Annotated[
        list[str] | None, typer.Option("--set", metavar="A.B=C", help="Change a setting; may be repeated.")
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the run in --out.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Nothing on stderr but errors.")] = False,
) -> None:
    """Train a translator from two text files.

    With --src and --tgt alone, sizes are chosen from the corpus and written to OUT/config.yaml.
    """
    from dragoman import api

    if quiet:
        logging.getLogger("dragoman").setLevel(logging.ERROR)
    trained = api.train(
        config,
        src=src,
        tgt=tgt,
        valid_src=valid_src,
        valid_tgt=valid_tgt,
        out=out,
        resume=resume,
        overrides=overrides or (),
        quiet=quiet,
    )
    if trained.signal is not None:
        raise typer.Exit(128 + trained.signal)
    print(trained.run)
