"""``dragoman augment``."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Annotated, Any

import typer

from dragoman.cli.completion import runs
from dragoman.cli.declared_options import with_options
from dragoman.cli.environment import use_threads
from dragoman.cli.signs import at_ctrl_c, loading
from dragoman.distillation.options import AugmentOptions
from dragoman.errors import as_command
from dragoman.options import MachineOptions
from dragoman.progress import say


def _models(text: str) -> Any:
    return typer.Option(autocompletion=runs, metavar="RUN", rich_help_panel="Models", help=text)


def _texts(text: str) -> Any:
    return typer.Option(metavar="FILE", rich_help_panel="Data", help=text)


@with_options(AugmentOptions)
@with_options(MachineOptions, "threads", into="machine")
def augment(
    options: AugmentOptions,
    machine: MachineOptions,
    out: Annotated[Path, typer.Option(help="Folder for the synthetic data.", rich_help_panel="Output")],
    forward: Annotated[
        list[Path] | None, _models("Run that translates the text of --src; several form an ensemble.")
    ] = None,
    src: Annotated[list[Path] | None, _texts("Source text for --forward; may be repeated.")] = None,
    back: Annotated[
        list[Path] | None, _models("Run of the opposite direction, for the text of --tgt; several form an ensemble.")
    ] = None,
    tgt: Annotated[list[Path] | None, _texts("Target text for --back; may be repeated.")] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print entries and counts as one JSON object.", rich_help_panel="Output")
    ] = False,
) -> None:  # fmt: skip
    """``dragoman augment``; its help is in ``cli/commands.py``."""
    with loading():
        from dragoman.distillation import augment as api
        from dragoman.distillation.mixing import dumped

    use_threads(machine.threads)
    if options.quiet:
        logging.getLogger("dragoman").setLevel(logging.ERROR)
    with at_ctrl_c(lambda: f"before {out} was complete; the same command resumes"):
        data = api.augment(out, forward=forward or (), src=src or (), back=back or (), tgt=tgt or (), options=options)
    if as_json:
        counts = {name: count._asdict() for name, count in data.counts.items()}
        print(json.dumps({"config": str(data.config), "entries": data.entries, **counts}, indent=2))
    else:
        print(f"{data.config}\n{dumped({'data': {'train': list(data.entries)}})}", end="")
    if not options.quiet:
        say(f"Train on it:  {as_command('dragoman', 'train', data.config, '--out', 'runs/NAME')}")
