"""``dragoman calibrate``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dragoman.cli.completion import runs
from dragoman.cli.declared_options import with_options
from dragoman.cli.environment import use_threads
from dragoman.cli.signs import loading
from dragoman.options import MachineOptions


@with_options(MachineOptions, into="machine")
def calibrate(
    machine: MachineOptions,
    run: Annotated[Path, typer.Argument(autocompletion=runs, metavar="RUN", help="Run folder or bundle.")],
    src: Annotated[Path, typer.Option(help="Source text that the model was not trained on: 100 lines or more.")],
    ref: Annotated[Path, typer.Option(help="Its translations, line by line.")],
    to: Annotated[str | None, typer.Option(help="Target language, for a run of several.")] = None,
) -> None:
    """``dragoman calibrate``; its help is in ``cli/commands.py``."""
    with loading():
        from dragoman.evaluation.calibration import calibrate as run_calibrate
        from dragoman.evaluation.calibration import guide

    use_threads(machine.threads)
    learned = run_calibrate(run, src, ref, machine.device, to=to)
    print(
        f"{run}: confidence learned from {learned.sentences:,} lines; {guide(learned)} guide to quality "
        f"(rank correlation {learned.rank_correlation:.2f} with their chrF)"
    )
