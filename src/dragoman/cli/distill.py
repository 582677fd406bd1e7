"""``dragoman distill``."""

from __future__ import annotations

import logging
import shlex
from pathlib import Path
from typing import Annotated

import typer

from dragoman.cli.completion import runs
from dragoman.cli.declared_options import with_options
from dragoman.cli.signs import at_ctrl_c, loading
from dragoman.distillation.options import DistillOptions
from dragoman.progress import say


@with_options(DistillOptions)
def distill(
    teachers: Annotated[
        list[Path],
        typer.Argument(autocompletion=runs, metavar="RUN", help="The teacher; several runs are an ensemble."),
    ],
    options: DistillOptions,
    src: Annotated[
        Path, typer.Option(help="Text of the source language for the teacher to translate.", rich_help_panel="Data")
    ],
    out: Annotated[Path, typer.Option(help="The student's run folder.", rich_help_panel="Output")],
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the certificate as one JSON object.", rich_help_panel="Output")
    ] = False,
) -> None:
    """``dragoman distill``; its help is in ``cli/commands.py``."""
    with loading():
        from dragoman.distillation import distill as api

    if options.quiet:
        logging.getLogger("dragoman").setLevel(logging.ERROR)
    with at_ctrl_c(lambda: f"before {out} was whole; the same command resumes"):
        found = api.distill(list(teachers), src=src, out=out, options=options)
    if found.signal is not None:
        say("The same command resumes.")
        raise typer.Exit(128 + found.signal)
    assert found.certificate is not None
    print(found.certificate.to_json() if as_json else f"{found.run}\n{found.certificate}")
    if not options.quiet:
        say(f"Try it:  dragoman translate {shlex.quote(str(out))} -i --fast")
