"""``dragoman export``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dragoman.cli.completion import among, runs
from dragoman.cli.declared_options import with_options
from dragoman.cli.signs import at_ctrl_c, loading
from dragoman.errors import ConfigError
from dragoman.options import DeviceOptions, either, option, option_group
from dragoman.toolkits import writers

if TYPE_CHECKING:
    from dragoman.toolkits.table import Answers


@option_group
class Comparison(DeviceOptions):
    """Comparison of an export with its run."""

    check: Path | None = option(
        None, "Comparison", "Verify the export: translate this text with both models and compare."
    )
    ref: Path | None = option(None, "Comparison", "With --check: references, aligned with the text line by line.")
    as_json: bool = option(False, "Comparison", "With --check: print the comparison as one JSON object.", flag="--json")
    require: tuple[str, ...] = option(
        (), "Comparison", "With --check: fail unless the export reaches this: nats=1e-4, identical=0.99, bleu=0.1, ..."
    )
    target: str | None = option(
        None, "Comparison", "With --check: target language, of a model with several, such as fr."
    )


@with_options(Comparison, into="asked")
def export(
    asked: Comparison,
    run: Annotated[Path, typer.Argument(autocompletion=runs, metavar="RUN", help="Run folder or bundle.")],
    to: Annotated[
        str,
        typer.Option(
            autocompletion=among(tuple(writers())),
            help=f"Target format: {either(tuple(writers()))}.",
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option(help="Output folder, or file of a format that is one (default: a folder in RUN/exports)."),
    ] = None,
    quantization: Annotated[
        str,
        typer.Option(help="Quantization: float32, float16, bfloat16, int8, ...; see `dragoman formats`."),
    ] = "float32",
) -> None:
    """``dragoman export``; its help is in ``cli/commands.py``."""
    with loading():
        from dragoman.toolkits import export as exports

    if asked.check is not None:
        _export_and_compare(run, to, out, quantization, asked, asked.check)
        return
    if asked.ref is not None or asked.as_json or asked.require or asked.target is not None:
        raise ConfigError("--ref, --json, --require and --target need --check: give the text to compare on with it")
    print(exports.export(run, to, out, quantization))


def _export_and_compare(
    run: Path, to: str, out: Path | None, quantization: str, asked: Comparison, check: Path
) -> None:  # fmt: skip
    with loading():
        from dragoman.device import resolve_device
        from dragoman.evaluation import certify
        from dragoman.toolkits import export as exports
        from dragoman.translation.options import TranslateOptions
        from dragoman.translation.translator import Translator

    # better known now than after writing: is the package installed, the device here, the text whole, the model one that
    # can be compared?
    limits = certify.required(asked.require, asked.ref is not None)
    certify.check_installed(to, resolve_device(asked.device).type)
    text = certify.compared_text(check, asked.ref)
    translator = Translator.load(run, asked.device)
    certify.check_task(translator)
    options = TranslateOptions(to=asked.target)
    if asked.target is None and translator.languages.targets:
        known = ", ".join(translator.languages.targets)
        raise ConfigError(f"{run} translates into several languages: say with --target which to compare ({known})")
    translator.plan(options)
    folder = exports.export(run, to, out, quantization)
    with at_ctrl_c(lambda: f"before the comparison was done; the export is whole: {folder}"):
        found = certify.compare_export(translator, folder, text, options)
    print(found.to_json() if asked.as_json else f"{folder}\n{found}")
    found.require(limits)


def formats(
    run: Annotated[
        Path | None, typer.Argument(autocompletion=runs, metavar="RUN", help="Of this run or bundle alone.")
    ] = None,
) -> None:
    """``dragoman formats``; its help is in ``cli/commands.py``."""
    with loading():
        from dragoman.bundle import load_bundle
        from dragoman.toolkits.table import answers, table

    models = None if run is None else {str(run): load_bundle(run).model.config}
    if sys.stdout.isatty():
        _show(answers(models))
    else:
        print(table(models))


def _show(found: Answers) -> None:
    """The answers on a terminal, as wide as it is."""
    from rich.console import Console
    from rich.markup import escape
    from rich.padding import Padding
    from rich.table import Table

    console = Console(highlight=False)
    grid = Table(box=None, padding=(0, 1, 0, 0), header_style="bold", pad_edge=False)
    grid.add_column("", overflow="fold")
    for name in writers():
        grid.add_column(name, no_wrap=True)
    for model, numbers in found.rows.items():
        cells = (f"[dim]no {n:>2}[/dim]" if n else "exact" for n in numbers)
        grid.add_row(escape(model.replace("`", "")), *cells)
    console.print(grid)
    lists = Table(box=None, padding=(0, 1, 0, 0), show_header=False, pad_edge=False)
    lists.add_column(no_wrap=True, justify="right")
    lists.add_column(overflow="fold")
    for n, reason in enumerate(found.reasons, 1):
        lists.add_row(f"{n}", escape(reason))
    if found.reasons:
        console.print(Padding(lists, (1, 0, 0, 0)))
    rounded = Table("", "--quantization", box=None, padding=(0, 1, 0, 0), header_style="bold", pad_edge=False)
    for name, quantizations in found.quantizations.items():
        rounded.add_row(name, ", ".join(quantizations))
    console.print(Padding(rounded, (1, 0, 0, 0)))
