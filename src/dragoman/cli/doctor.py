"""``dragoman doctor``."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import typer


def doctor(
    what: Annotated[
        Path | None, typer.Argument(metavar="[RUN|CONFIG.yaml]", help="Run folder or configuration.")
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
        list[str] | None, typer.Option("--set", metavar="A.B=C", help="Override a setting; may be repeated.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the findings as one JSON object.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print only errors on stderr.")] = False,
) -> None:
    """Check a corpus before training, or a run after it: report problems and how to fix them."""
    from dragoman.doctor.diagnosis import of_run, of_text
    from dragoman.doctor.page import check_page, write_page
    from dragoman.errors import ConfigError
    from dragoman.explanation.style import no_figures

    if out is not None:
        check_page(out)
    if what is not None and what.is_dir():
        if any(given is not None for given in (src, tgt, valid_src, valid_tgt, test_src, test_ref, memory, overrides)):
            raise ConfigError(f"{what} is a run: name it alone, or give text files or a configuration without it")
        diagnosis = of_run(what)
    else:
        files = {"train": (src, tgt), "valid": (valid_src, valid_tgt), "test": (test_src, test_ref)}
        diagnosis = of_text(what, files, overrides or (), memory, quiet)
    if out is not None:
        print(write_page(diagnosis, out), file=sys.stderr)
        if missing := no_figures():
            print(f"the page has no figures: {missing}", file=sys.stderr)
    if as_json:
        print(json.dumps(diagnosis.as_json(), ensure_ascii=False, indent=2))
    else:
        print(diagnosis.as_text())
