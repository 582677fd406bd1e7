"""``dragoman lab``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dragoman.cli.completion import among, runs
from dragoman.cli.declared_options import with_options
from dragoman.cli.environment import use_threads
from dragoman.cli.signs import at_ctrl_c, loading
from dragoman.cli.tables import at_terminal, print_line, print_table
from dragoman.lab import EXPERIMENTS, MINUTES
from dragoman.options import MachineOptions, QuietOptions
from dragoman.progress import Ticker, clear, has_live_line


@with_options(MachineOptions, into="machine")
@with_options(QuietOptions, into="output")
def lab(
    machine: MachineOptions,
    output: QuietOptions,
    name: Annotated[
        str | None,
        typer.Argument(
            autocompletion=among([*EXPERIMENTS, "all"]),
            metavar="NAME|all",
            help="Experiment to run, or all (default: list them).",
        ),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Folder for the report (default: lab or lab-quick).")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Smoke test: run in seconds, without a verdict.")] = False,
    config: Annotated[
        Path | None,
        typer.Option(
            metavar="CONFIG.yaml", help="Configuration of the corpus to train on (default: the embedded corpus)."
        ),
    ] = None,
    run: Annotated[
        Path | None,
        typer.Option(
            autocompletion=runs,
            metavar="RUN",
            help="Trained model to examine (default: a small one trained for the experiment).",
        ),
    ] = None,
) -> None:
    """``dragoman lab``; its help is in ``cli/commands.py``."""
    if name is None:
        _list_experiments()
        return

    with loading():
        from dragoman.config import Config
        from dragoman.device import resolve_device
        from dragoman.lab.experiment import Lab, experiment_module
        from dragoman.lab.report import run_all, run_experiment

    use_threads(machine.threads)
    if name != "all":
        experiment_module(name)  # refuses unknown names before anything is loaded
    out = out or Path("lab-quick" if quick else "lab")
    settings = Lab(
        out=out,
        quick=quick,
        config=None if config is None else Config.from_yaml(config),
        run=run,
        device=resolve_device(machine.device),
        say=Ticker(output.quiet).say,
    )
    seconds = Ticker(output.quiet or not has_live_line()).task("running", keep=False)
    with at_ctrl_c(lambda: f"before the end: finished parts are in {out}; the same command resumes"), seconds:
        for record in run_all(out, settings) if name == "all" else (run_experiment(name, out, settings),):
            clear()
            for claim in record["verdict"]:
                word = {True: "holds", False: "FAILS", None: "-----"}[claim["holds"]]
                print_line(f"{word}  {claim['text']}: {claim['figures']}")
            print(out / record["experiment"] / "index.html")
    if name == "all":
        print(out / "index.html")


def _list_experiments() -> None:
    """Print each experiment with its claim and what it costs."""
    if at_terminal():
        rows = [(name, claim, f"{MINUTES[name]:.1f}") for name, claim in EXPERIMENTS.items()]
        print_table(["experiment", "claim", "minutes"], rows, right=["minutes"], fixed=["experiment"])
        print_line(
            f"Minutes are those of two cores; all take {sum(MINUTES.values()) / 60:.1f} hours. --quick tries an "
            "experiment in seconds."
        )
        return
    width = max(map(len, EXPERIMENTS))
    for name, claim in EXPERIMENTS.items():
        print(f"{name:{width}}  {claim} ({MINUTES[name]:.1f} minutes)")
