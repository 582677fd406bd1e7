"""``dragoman doctor``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from dragoman.cli.completion import settings
from dragoman.cli.signs import at_ctrl_c, loading
from dragoman.errors import ConfigError
from dragoman.progress import say


def doctor(
    what: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[RUN|CONFIG.yaml|TEXT...]",
            help="Run folder, configuration, or training text, as train.en train.de, or train en de.",
        ),
    ] = None,
    src: Annotated[Path | None, typer.Option(help="Source side of the training text (also .gz, .zst).")] = None,
    tgt: Annotated[
        Path | None, typer.Option(help="Target side of the training text, aligned with --src line by line.")
    ] = None,
    valid_src: Annotated[Path | None, typer.Option(help="Source side of the validation set.")] = None,
    valid_tgt: Annotated[Path | None, typer.Option(help="Target side of the validation set.")] = None,
    test_src: Annotated[Path | None, typer.Option(help="Source side of the test set.")] = None,
    test_ref: Annotated[Path | None, typer.Option(help="References of the test set.")] = None,
    out: Annotated[Path | None, typer.Option(help="Also write a report with figures to DIR/doctor.html.")] = None,
    memory: Annotated[
        float | None,
        typer.Option(min=0.01, help="Memory available for training, in GiB (default: all of the GPU or machine)."),
    ] = None,
    overrides: Annotated[
        list[str] | None,
        typer.Option("--set", autocompletion=settings, metavar="A.B=C", help="Override a setting; may be repeated."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the findings as one JSON object.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print only errors on stderr.")] = False,
) -> None:
    """Check a corpus before training, or a run after it: report problems and how to fix them."""
    with loading():
        from dragoman.doctor.diagnosis import of_run, of_text, text_named
        from dragoman.doctor.page import check_page, write_page
        from dragoman.explanation.style import no_figures

    if out is not None:
        check_page(out)
    if what and what[0].is_dir():
        others = (*what[1:], src, tgt, valid_src, valid_tgt, test_src, test_ref, memory, overrides)
        if any(given is not None for given in others):
            raise ConfigError(f"{what[0]} is a run: name it alone, or give text files or a configuration without it")
        diagnosis = of_run(what[0])
    else:
        config, named = text_named(what or ())
        if named is not None and src is not None:
            raise ConfigError("name the training text once, so or by --src and --tgt")
        files = {"train": named or (src, tgt), "valid": (valid_src, valid_tgt), "test": (test_src, test_ref)}
        with at_ctrl_c(lambda: "before all text was read: nothing is reported"):
            diagnosis = of_text(config, files, overrides or (), memory, quiet)
    if out is not None:
        say(str(write_page(diagnosis, out)))
        if missing := no_figures():
            say(f"the page has no figures: {missing}")
    if as_json:
        print(json.dumps(diagnosis.as_json(), ensure_ascii=False, indent=2))
    else:
        print(diagnosis.as_text())
