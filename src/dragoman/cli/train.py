"""``dragoman train``."""

from __future__ import annotations

import logging
import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from dragoman.cli.declared_options import with_options
from dragoman.training.options import TrainOptions


@with_options(TrainOptions)
def train(
    options: TrainOptions,
    config: Annotated[Path | None, typer.Argument(metavar="[CONFIG.yaml]", help="A configuration.")] = None,
    out: Annotated[Path | None, typer.Option(help="The run folder (default: runs/NAME-OF-CONFIG).")] = None,
) -> None:
    """Train a translator from two text files.

    With --src and --tgt alone, sizes are chosen from the corpus and written to OUT/config.yaml. With --from, sizes,
    subwords and first weights are those of another run.
    """
    from dragoman.training import run as api

    if options.quiet:
        logging.getLogger("dragoman").setLevel(logging.ERROR)
    trained = api.train(config, out=out, options=options)
    if trained.signal is not None:
        raise typer.Exit(128 + trained.signal)
    if trained.rank == 0:
        sys.stdout.buffer.write(os.fsencode(trained.run) + b"\n")  # which may be no UTF-8
        sys.stdout.flush()
