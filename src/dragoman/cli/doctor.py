"""``dragoman doctor``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from dragoman.cli.declared_options import with_options
from dragoman.cli.signs import at_ctrl_c, loading
from dragoman.doctor.options import ExaminedSettings, ExaminedText
from dragoman.errors import ConfigError
from dragoman.progress import say


@with_options(ExaminedText)
@with_options(ExaminedSettings, into="settings")
def doctor(
    options: ExaminedText,
    settings: ExaminedSettings,
    inputs: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="RUN|CONFIG.yaml|TEXT",
            help="Run folder, configuration, or training text in any form that train accepts: train.en train.de, ...",
        ),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Also write a report with figures to DIR/doctor.html.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the findings as one JSON object.")] = False,
    write: Annotated[
        tuple[Path, Path] | None,
        typer.Option(
            metavar="SRC TGT",
            help="Write the text mended to two files, and a log of each line mended or dropped to SRC's name with "
            ".log.tsv.",
        ),
    ] = None,
    listed: Annotated[
        Path | None, typer.Option("--list", help="Write every line of every finding to FILE, as a table.")
    ] = None,
) -> None:
    """``dragoman doctor``; its help is in ``cli/commands.py``."""
    with loading():
        from dragoman.data.texts import files_of, refuse_stray_columns
        from dragoman.doctor.diagnosis import config_and_texts, diagnose_run, diagnose_text
        from dragoman.doctor.findings import listed as listed_lines
        from dragoman.doctor.mending import check_mended, write_mended
        from dragoman.doctor.page import check_page_folder, write_page
        from dragoman.explanation.style import no_figures
        from dragoman.files import check_output, write_text

    if out is not None:
        check_page_folder(out)
    if inputs and (inputs[0] / "config.yaml").is_file():
        if write is not None:
            raise ConfigError(f"{inputs[0]} is a run: --write mends text; give two files, a table or a memory")
        if len(inputs) > 1 or options != ExaminedText() or settings.memory is not None or settings.overrides:
            raise ConfigError(
                f"{inputs[0]} is a run: leave out other files and options, or give text or a configuration instead"
            )
        diagnosis = diagnose_run(inputs[0])
    else:
        columns = options.two_columns
        config, named = config_and_texts(inputs or (), columns)
        refuse_stray_columns(columns, named)
        texts = {**options.sets}
        if named and "train" in texts:
            raise ConfigError("the training text is given twice: give it either as arguments or as --src and --tgt")
        if named:
            texts["train"] = named
        named_files = [path for entries in texts.values() for entry in entries for path in files_of(entry)]
        if listed is not None:
            check_output(listed, *named_files)
        if write is not None and "train" in texts:
            check_mended(texts["train"], write, listed)
        with at_ctrl_c(lambda: "before all text was read: there is no report"):
            diagnosis = diagnose_text(config, texts, settings.overrides, settings.memory, settings.quiet)
    if listed is not None:
        write_text(listed, "".join(listed_lines(diagnosis.findings)))
    if write is not None and diagnosis.text is not None:
        check_mended(diagnosis.entries, write, listed)  # of a configuration, whose texts are known by now
        with at_ctrl_c(lambda: "before all text was mended: nothing is written"):
            say(write_mended(diagnosis.entries[0], diagnosis.text, write).in_words())
    if out is not None:
        say(str(write_page(diagnosis.as_page(), out)))
        if missing := no_figures():
            say(f"the page has no figures: {missing}")
    if as_json:
        print(json.dumps(diagnosis.as_json(), ensure_ascii=False, indent=2))
    else:
        print(diagnosis.as_text())
