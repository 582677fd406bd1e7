"""``dragoman train``."""

from __future__ import annotations

import logging
import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from dragoman.cli.declared_options import with_options
from dragoman.cli.signs import loading
from dragoman.errors import as_command
from dragoman.progress import say
from dragoman.training.options import TrainOptions


@with_options(TrainOptions)
def train(
    options: TrainOptions,
    inputs: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="CONFIG.yaml|TEXT",
            help="Configuration, or text: train.en train.de, or train en de, or .tsv, .csv or .tmx files.",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(help="Run folder (default: runs/NAME of the first file).", rich_help_panel="Output"),
    ] = None,
) -> None:
    """``dragoman train``; its help is in ``cli/commands.py``."""
    with loading():
        from dragoman.training import run as api

    if options.quiet:
        logging.getLogger("dragoman").setLevel(logging.ERROR)
    trained = api.train(inputs, out=out, options=options)
    if trained.signal is not None:
        raise typer.Exit(128 + trained.signal)
    if trained.rank == 0:
        sys.stdout.buffer.write(os.fsencode(trained.run) + b"\n")  # a path may not be UTF-8
        sys.stdout.flush()
        if trained.diverged is not None:  # which training has reported
            raise typer.Exit(2)
        if not options.quiet:
            say(f"Try it:  {as_command('dragoman', 'translate', trained.run, '-i')}")
