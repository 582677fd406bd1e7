"""``dragoman doctor``."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Annotated

import typer

from dragoman.cli.declared_options import with_options
from dragoman.cli.signs import at_ctrl_c, loading
from dragoman.cli.tables import print_line
from dragoman.doctor.options import ExaminationOutput, ExaminedSettings, ExaminedText
from dragoman.errors import BYTES_OF_NAMES, ConfigError
from dragoman.progress import Ticker


@with_options(ExaminedText)
@with_options(ExaminedSettings, into="settings")
@with_options(ExaminationOutput, into="output")
def doctor(
    options: ExaminedText,
    settings: ExaminedSettings,
    output: ExaminationOutput,
    inputs: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="RUN|CONFIG.yaml|TEXT",
            help="Run folder, configuration, or training text in any form that train accepts: train.en train.de, ...",
        ),
    ] = None,
) -> None:
    """``dragoman doctor``; its help is in ``cli/commands.py``."""
    out, listed, write, say = output.out, output.listed, output.write, Ticker(settings.quiet).say
    if settings.quiet:
        logging.getLogger("dragoman").setLevel(logging.ERROR)
    with loading():
        from dragoman.data.compression import refuse_compressed
        from dragoman.data.texts import files_of, refuse_stray_columns
        from dragoman.doctor.diagnosis import (
            config_and_texts,
            diagnose_model,
            diagnose_text,
            examined_texts,
            model_folder,
        )
        from dragoman.doctor.findings import listed as listed_lines
        from dragoman.doctor.mending import check_mended, log_of, write_mended
        from dragoman.doctor.page import check_page_folder, write_page
        from dragoman.explanation.style import no_figures
        from dragoman.files import below, check_output, explained, output_file

    refuse_compressed(listed)
    if out is not None:
        check_page_folder(out, listed, *(() if write is None else (*write, log_of(write))))
    if inputs and model_folder(inputs[0]) is not None:
        if write is not None:
            raise ConfigError(f"{inputs[0]} is a run: --write mends text; give two files, a table or a memory")
        if len(inputs) > 1 or options != ExaminedText() or settings.memory is not None or settings.overrides:
            raise ConfigError(
                f"{inputs[0]} is a run: leave out other files and options, or give text or a configuration instead"
            )
        if listed is not None:
            check_output(listed, *([inputs[0]] if inputs[0].is_file() else below(inputs[0])))
        diagnosis = diagnose_model(inputs[0])
    else:
        columns = options.two_columns
        config, named = config_and_texts(inputs or (), columns)
        refuse_stray_columns(columns, named)
        texts = {**options.sets}
        if named and "train" in texts:
            raise ConfigError("the training text is given twice: give it either as arguments or as --src and --tgt")
        if named:
            texts["train"] = named
        examined = examined_texts(config, texts, settings.overrides)
        files = [] if config is None else [config]
        files += [path for entries in examined.values() for entry in entries for path in files_of(entry)]
        if listed is not None:
            check_output(listed, *files)
        if write is not None:
            check_mended(examined["train"], write, files, listed)
        with at_ctrl_c(lambda: "before all text was read: there is no report"):
            diagnosis = diagnose_text(config, texts, settings.overrides, settings.memory, settings.quiet)
    if listed is not None:
        with explained(listed), output_file(listed) as file:
            file.writelines(line.encode("utf-8", BYTES_OF_NAMES) for line in listed_lines(diagnosis.findings))
    if write is not None and diagnosis.text is not None:
        with at_ctrl_c(lambda: "before all text was mended: nothing is written"):
            mended = write_mended(diagnosis.entries[0], diagnosis.text, write)
            say(mended.in_words())
            diagnosis = diagnosis._replace(mended=mended)
    if out is not None:
        say(str(write_page(diagnosis.as_page(), out)))
        if missing := no_figures():
            say(f"the page has no figures: {missing}")
    if output.as_json:
        print(json.dumps(diagnosis.as_json(), ensure_ascii=False, indent=2))
    else:
        print_line(diagnosis.as_text())
