"""``dragoman train``."""

from __future__ import annotations

import logging
import os
import sys
from pathlib import Path
from typing import Annotated

import typer


def train(
    config: Annotated[Path | None, typer.Argument(metavar="[CONFIG.yaml]", help="A configuration.")] = None,
    src: Annotated[Path | None, typer.Option(help="Source side of the training text (also .gz, .zst).")] = None,
    tgt: Annotated[Path | None, typer.Option(help="Target side, line by line.")] = None,
    valid_src: Annotated[Path | None, typer.Option(help="Source side of the validation text.")] = None,
    valid_tgt: Annotated[Path | None, typer.Option(help="Target side of the validation text.")] = None,
    out: Annotated[Path | None, typer.Option(help="The run folder (default: runs/NAME-OF-CONFIG).")] = None,
    overrides: Annotated[
        list[str] | None, typer.Option("--set", metavar="A.B=C", help="Change a setting; may be repeated.")
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the run in --out.")] = False,
    from_run: Annotated[
        Path | None, typer.Option("--from", metavar="RUN", help="Fine-tune: start from the weights of this run.")
    ] = None,
    new_subwords: Annotated[
        bool, typer.Option("--new-subwords", help="With --from: learn subwords from the new text.")
    ] = False,
    accept_changed_text: Annotated[
        bool,
        typer.Option(
            "--accept-changed-text", help="Resume with what was prepared, although the text files have changed."
        ),
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Nothing on stderr but errors.")] = False,
) -> None:
    """Train a translator from two text files.

    With --src and --tgt alone, sizes are chosen from the corpus and written to OUT/config.yaml. With --from, sizes,
    subwords and first weights are those of another run.
    """
    from dragoman.training import run as api

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
        from_run=from_run,
        new_subwords=new_subwords,
        accept_changed_text=accept_changed_text,
        overrides=overrides or (),
        quiet=quiet,
    )
    if trained.signal is not None:
        raise typer.Exit(128 + trained.signal)
    if trained.rank == 0:
        sys.stdout.buffer.write(os.fsencode(trained.run) + b"\n")  # which may be no UTF-8
        sys.stdout.flush()
