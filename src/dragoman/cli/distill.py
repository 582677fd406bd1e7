"""``dragoman distill``."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Annotated

import typer

from dragoman.cli.completion import runs
from dragoman.cli.declared_options import with_options
from dragoman.cli.environment import use_threads
from dragoman.cli.signs import at_ctrl_c, loading
from dragoman.distillation.options import DistillOptions
from dragoman.errors import as_command
from dragoman.progress import say


@with_options(DistillOptions)
def distill(
    teachers: Annotated[
        list[Path],
        typer.Argument(autocompletion=runs, metavar="RUN", help="Teacher; several runs form an ensemble."),
    ],
    options: DistillOptions,
    src: Annotated[Path, typer.Option(help="Source text for the teacher to translate.", rich_help_panel="Data")],
    out: Annotated[Path, typer.Option(help="Run folder of the student.", rich_help_panel="Output")],
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the certificate as one JSON object.", rich_help_panel="Output")
    ] = False,
) -> None:
    """``dragoman distill``; its help is in ``cli/commands.py``."""
    with loading():
        from dragoman.distillation import distill as api

    use_threads(options.threads)
    if options.quiet:
        logging.getLogger("dragoman").setLevel(logging.ERROR)
    with at_ctrl_c(lambda: f"before {out} was complete; the same command resumes"):
        distilled = api.distill(list(teachers), src=src, out=out, options=options)
    if distilled.signal is not None:
        say("The same command resumes.")
        raise typer.Exit(128 + distilled.signal)
    assert distilled.certificate is not None
    print(distilled.certificate.to_json() if as_json else f"{distilled.run}\n{distilled.certificate}")
    if distilled.diverged is not None:  # which training has reported
        raise typer.Exit(2)
    if not options.quiet:
        say(f"Try it:  {as_command('dragoman', 'translate', out, '-i', '--fast')}")
