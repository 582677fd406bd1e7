"""``dragoman augment``."""

from __future__ import annotations

import json
import logging
import shlex
from pathlib import Path
from typing import Annotated

import typer

from dragoman.cli.completion import runs
from dragoman.cli.declared_options import with_options
from dragoman.cli.signs import at_ctrl_c, loading
from dragoman.distillation.options import AugmentOptions
from dragoman.progress import say


@with_options(AugmentOptions)
def augment(
    options: AugmentOptions,
    out: Annotated[Path, typer.Option(help="The folder for the text that is made.", rich_help_panel="Output")],
    forward: Annotated[
        list[Path] | None,
        typer.Option(
            autocompletion=runs, metavar="RUN", rich_help_panel="Models",
            help="Run that translates the text of --src; several are an ensemble.",
        ),
    ] = None,
    src: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE", rich_help_panel="Data", help="Text of the source language, for --forward; may be repeated."
        ),
    ] = None,
    back: Annotated[
        list[Path] | None,
        typer.Option(
            autocompletion=runs, metavar="RUN", rich_help_panel="Models",
            help="Run of the other direction, which translates the text of --tgt; several are an ensemble.",
        ),
    ] = None,
    tgt: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE", rich_help_panel="Data", help="Text of the target language, for --back; may be repeated."
        ),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print entries and counts as one JSON object.", rich_help_panel="Output")
    ] = False,
) -> None:  # fmt: skip
    """``dragoman augment``; its help is in ``cli/commands.py``."""
    with loading():
        from dragoman.distillation import augment as api
        from dragoman.distillation.mixing import dumped

    if options.quiet:
        logging.getLogger("dragoman").setLevel(logging.ERROR)
    with at_ctrl_c(lambda: f"before {out} was whole; the same command resumes"):
        found = api.augment(out, forward=forward or (), src=src or (), back=back or (), tgt=tgt or (), options=options)
    if as_json:
        counts = {name: one._asdict() for name, one in found.counts.items()}
        print(json.dumps({"config": str(found.config), "entries": found.entries, **counts}, indent=2))
    else:
        print(f"{found.config}\n{dumped({'data': {'train': list(found.entries)}})}", end="")
    if not options.quiet:
        say(f"Train on it:  dragoman train {shlex.quote(str(found.config))} --out runs/NAME")
