"""``dragoman lab``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from dragoman.cli.completion import among, runs
from dragoman.cli.declared_options import with_options
from dragoman.cli.environment import use_threads
from dragoman.cli.signs import at_ctrl_c, loading
from dragoman.cli.tables import at_terminal, print_line, print_table
from dragoman.errors import ConfigError
from dragoman.lab import EXPERIMENTS, MINUTES
from dragoman.options import MachineOptions, QuietOptions, option, option_group
from dragoman.progress import Ticker, clear, has_live_line, say


@option_group
class Report(QuietOptions):
    """Language of a report, and amount of progress."""

    lang: Literal["en", "zh"] = option(
        "en",
        "Output",
        "Language of the list, verdicts, pages and SVG figures: en or zh; PNG figures and records are in English.",
    )


@with_options(MachineOptions, into="machine")
@with_options(Report, into="report")
def lab(
    machine: MachineOptions,
    report: Report,
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
        if quick or machine != MachineOptions() or (out, config, run) != (None, None, None):
            raise ConfigError("only --lang has an effect on the list of experiments: name one to run, or all")
        _list_experiments(report.lang)
        return

    with loading():
        from dragoman.config import Config
        from dragoman.device import resolve_device
        from dragoman.lab.chinese import untranslated
        from dragoman.lab.experiment import Lab, StoppedError, experiment_module
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
        say=Ticker(report.quiet).say,
        language=report.lang,
    )
    seconds = Ticker(report.quiet or not has_live_line()).task("running", keep=False)
    try:
        with at_ctrl_c(lambda: f"before the end: finished parts are in {out}; the same command resumes"), seconds:
            for record in run_all(out, settings) if name == "all" else (run_experiment(name, out, settings),):
                clear()
                _print_verdict(record, report.lang)
                print(out / record["experiment"] / "index.html")
    except StoppedError as stopped:
        say(str(stopped))
        raise typer.Exit(128 + stopped.signal) from None
    if name == "all":
        print(out / "index.html")
    if report.lang != "en" and (lacking := untranslated()):
        settings.say(f"{len(lacking)} texts have no Chinese and are in English, such as: {min(lacking)}")


def _print_verdict(record: dict[str, Any], lang: str) -> None:
    """Print each claim of an experiment, whether it holds, and its figures."""
    from dragoman.lab.chinese import said

    for claim in record["verdict"]:
        word = {True: "holds", False: "FAILS", None: "-----"}[claim["holds"]]
        measured = f"{claim['text']}: {claim['figures']}"
        print_line(f"{said(word, lang)}  {said(measured, lang)}")


def _list_experiments(lang: str) -> None:
    """Print each experiment with its claim and what it costs."""
    from dragoman.lab.chinese import said

    if at_terminal():
        rows = [(name, said(claim, lang), f"{MINUTES[name]:.1f}") for name, claim in EXPERIMENTS.items()]
        heads = {name: said(name, lang) for name in ("experiment", "claim", "minutes")}
        print_table([*heads.values()], rows, right=[heads["minutes"]], fixed=[heads["experiment"]])
        hours = f"{sum(MINUTES.values()) / 60:.1f}"
        print_line(
            said(f"Minutes are those of two cores; all take {hours} hours.", lang)
            + " "
            + said("--quick tries an experiment in seconds.", lang)
        )
        return
    width = max(map(len, EXPERIMENTS))
    for name, claim in EXPERIMENTS.items():
        print(f"{name:{width}}  {said(f'{claim} ({MINUTES[name]:.1f} minutes)', lang)}")
