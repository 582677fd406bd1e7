"""``dragoman export``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dragoman.cli.completion import among, runs
from dragoman.cli.declared_options import with_options
from dragoman.cli.environment import use_threads
from dragoman.cli.signs import at_ctrl_c, loading
from dragoman.cli.tables import at_terminal, print_tables, table
from dragoman.errors import ConfigError
from dragoman.options import MachineOptions, either, option, option_group
from dragoman.progress import say
from dragoman.toolkits import writers

if TYPE_CHECKING:
    from dragoman.toolkits.table import Answers


@option_group
class Comparison(MachineOptions):
    """Comparison of an export with its run, and the limits it must meet."""

    check: Path | None = option(
        None, "Comparison", "Verify the export: translate this text with both models and compare."
    )
    ref: Path | None = option(None, "Comparison", "With --check: references, aligned with the text line by line.")
    as_json: bool = option(False, "Comparison", "With --check: print the comparison as one JSON object.", flag="--json")
    require: tuple[str, ...] = option(
        (),
        "Comparison",
        "With --check: fail unless the export meets this limit: nats=1e-4, identical=0.99, bleu=0.1, ...",
    )
    to: str | None = option(None, "Comparison", "With --check: target language, such as fr, of a model with several.")


@with_options(Comparison, into="checks")
def export(
    checks: Comparison,
    run: Annotated[Path, typer.Argument(autocompletion=runs, metavar="RUN", help="Run folder or bundle.")],
    form: Annotated[
        str,
        typer.Option(
            "--format",
            autocompletion=among(tuple(writers())),
            help=f"Target format: {either(tuple(writers()))}.",
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option(help="Output folder, or file for formats of one file (default: in RUN/exports)."),
    ] = None,
    quantization: Annotated[
        str,
        typer.Option(help="Quantization: float32, float16, bfloat16, int8, ...; see `dragoman formats`."),
    ] = "float32",
) -> None:
    """``dragoman export``; its help is in ``cli/commands.py``."""
    with loading():
        from dragoman.toolkits import export as exports

    if checks.check is not None:
        use_threads(checks.threads)
        _export_and_compare(run, form, out, quantization, checks)
        return
    if checks.ref is not None or checks.as_json or checks.require or checks.to is not None:
        raise ConfigError("--ref, --json, --require and --to need --check: give the text to compare on as --check FILE")
    if checks.device != Comparison().device or checks.threads is not None:
        raise ConfigError(
            "--device and --threads are for comparing an export: give --check FILE too, or leave them out"
        )
    print(exports.export(run, form, out, quantization))


def _export_and_compare(run: Path, form: str, out: Path | None, quantization: str, checks: Comparison) -> None:
    assert checks.check is not None
    with loading():
        from dragoman.device import resolve_device
        from dragoman.evaluation import certify
        from dragoman.toolkits import export as exports
        from dragoman.toolkits.writing import format_of
        from dragoman.translation.language_pairs import RENAME, check_sides
        from dragoman.translation.options import TranslateOptions
        from dragoman.translation.translator import Translator

    # All that can be refused is refused before the export is written, which can take minutes.
    limits = certify.required(checks.require, checks.ref is not None)
    certify.check_installed(form, resolve_device(checks.device).type)
    if out is not None and exports.is_one_file(out, format_of(form)):
        certify.refuse_other_certificate(out)
    text = certify.compared_text(checks.check, checks.ref)
    translator = Translator.load(run, checks.device)
    certify.check_task(translator)
    options = TranslateOptions(to=checks.to)
    if checks.to is None and translator.languages.targets:
        known = ", ".join(translator.languages.targets)
        raise ConfigError(f"{run} has several target languages: choose one with --to ({known})")
    plan = translator.plan(options)
    files = checks.check, *([] if checks.ref is None else [checks.ref])
    for warning in check_sides(run, (plan.src_lang, plan.tgt_lang), RENAME, *files):
        say(f"warning: {warning}")
    folder = exports.export(run, form, out, quantization)
    with at_ctrl_c(lambda: f"before the comparison was done; the export is complete: {folder}"):
        comparison = certify.compare_export(translator, folder, text, options)
    print(comparison.to_json() if checks.as_json else f"{folder}\n{comparison}")
    comparison.require(limits)


def formats(
    run: Annotated[
        Path | None, typer.Argument(autocompletion=runs, metavar="RUN", help="Run or bundle (default: all variants).")
    ] = None,
) -> None:
    """``dragoman formats``; its help is in ``cli/commands.py``."""
    with loading():
        from dragoman.bundle import load_bundle
        from dragoman.toolkits.table import answers
        from dragoman.toolkits.table import table as markdown

    models = None if run is None else {str(run): load_bundle(run, read=False).sizes}
    if at_terminal():
        _show(answers(models))
    else:
        print(markdown(models))


def _show(answers_of: Answers) -> None:
    """Print the table of formats, fitted to the width of the terminal."""
    from rich.markup import escape

    names = list(writers())
    grid = table(["", *names], fixed=names)
    for model, numbers in answers_of.rows.items():
        cells = (f"[dim]no {n:>2}[/dim]" if n else "exact" for n in numbers)
        grid.add_row(escape(model.replace("`", "")), *cells)
    reasons = table(["no", "because"], right=["no"])
    for n, reason in enumerate(answers_of.reasons, 1):
        reasons.add_row(f"{n}", escape(reason))
    rounded = table(["", "--quantization"])
    for name, quantizations in answers_of.quantizations.items():
        rounded.add_row(name, ", ".join(quantizations))
    noted = table(["exact", "of its numbers; but"])
    for name, note in answers_of.notes.items():
        noted.add_row(name, escape(note))
    print_tables(grid, *[reasons] * bool(answers_of.reasons), rounded, noted)
