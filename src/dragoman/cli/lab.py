"""``dragoman lab``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def lab(
    name: Annotated[
        str | None, typer.Argument(metavar="[NAME|all]", help="An experiment, or all (default: list them).")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="The report's folder (default: lab, or lab-quick).")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="A smoke run of seconds, which claims nothing.")] = False,
    config: Annotated[
        Path | None, typer.Option(metavar="CONFIG.yaml", help="Train on this instead of the embedded corpus.")
    ] = None,
    run: Annotated[
        Path | None, typer.Option(metavar="RUN", help="Examine this trained model instead of a small one of its own.")
    ] = None,
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
    quiet: Annotated[bool, typer.Option("--quiet", help="Nothing on stderr but errors.")] = False,
) -> None:
    """Repeat what the paper claims: experiments with figures, numbers and a verdict."""
    from dragoman.lab import EXPERIMENTS

    if name is None:
        width = max(map(len, EXPERIMENTS))
        print("\n".join(f"{known:{width}}  {claim}" for known, claim in EXPERIMENTS.items()))
        return

    from dragoman.config import Config
    from dragoman.device import resolve_device
    from dragoman.lab.report import Lab, experiment, run_all, run_experiment
    from dragoman.progress import Ticker

    if name != "all":
        experiment(name)
    out = out or Path("lab-quick" if quick else "lab")
    given = Lab(
        out=out,
        quick=quick,
        config=None if config is None else Config.from_yaml(config),
        run=run,
        device=resolve_device(device),
        say=Ticker(quiet).say,
    )
    for record in run_all(out, given) if name == "all" else (run_experiment(name, out, given),):
        for claim in record["verdict"]:
            word = {True: "holds", False: "FAILS", None: "-----"}[claim["holds"]]
            print(f"{word}  {claim['text']}: {claim['figures']}")
        print(out / record["experiment"] / "index.html")
    if name == "all":
        print(out / "index.html")
