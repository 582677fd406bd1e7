"""``dragoman explain``."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from dragoman.cli.completion import runs
from dragoman.cli.declared_options import if_default, with_options
from dragoman.cli.environment import use_threads
from dragoman.cli.signs import loading
from dragoman.errors import ConfigError, as_command, shortened
from dragoman.options import MachineOptions
from dragoman.progress import say
from dragoman.translation.options import TranslateOptions


def _refuse_other_page(out: Path) -> None:
    from dragoman.explanation.outputs import refuse_other_explanation

    refuse_other_explanation(out)


@with_options(TranslateOptions, "to")
@with_options(MachineOptions, into="machine")
def explain(
    options: TranslateOptions,
    machine: MachineOptions,
    run: Annotated[Path, typer.Argument(autocompletion=runs, metavar="RUN", help="Run folder or bundle.")],
    text: Annotated[str, typer.Argument(metavar="TEXT", help="Sentence to translate.")],
    out: Annotated[
        Path,
        typer.Option(
            help="Output: page (.html), figure (.svg, .png, .pdf), or folder for the page and all figures.",
            callback=if_default(_refuse_other_page),
        ),
    ] = Path("explanation.html"),
    show: Annotated[
        str, typer.Option(help="Figure to draw: alignment, cross, encoder, decoder (all heads) or candidates.")
    ] = "alignment",
    translation: Annotated[
        str | None, typer.Option(help="Translation to explain instead of the model's own (forced decoding).")
    ] = None,
    subwords: Annotated[bool, typer.Option("--subwords", help="Draw subwords instead of words.")] = False,
) -> None:
    """``dragoman explain``; its help is in ``cli/commands.py``."""
    if os.path.isfile(text):  # noqa: PTH113  (a text may be too long for a path)
        command, file = as_command("dragoman", "explain", run), as_command(Path(text))
        raise ConfigError(f'{text} is a file, but explain takes a sentence: {command} "$(head -1 {file})"')
    with loading():
        from dragoman.explanation.explain import explain as run_explain
        from dragoman.explanation.outputs import check, write
        from dragoman.languages.sentences import sentences
        from dragoman.translation.translator import Translator

    check(out, show)
    use_threads(machine.threads)
    with loading(run):
        translator = Translator.load(run, machine.device)
    trace = run_explain(translator, text, translation, to=options.to)
    print(trace.translation)
    src_lang, _ = translator.languages.direction(options.to, None)
    n = len(sentences(text, src_lang))
    if n > translator.usual_sentences and not translator.is_parser:
        say(f"note: TEXT has {n} sentences, which translate takes one by one: explain one to see what it does")
    elif translation is None and not translator.is_parser:
        usual = translator.translate(text, to=options.to).text
        if usual != trace.translation:
            say(f"note: translate, which also mends and keeps what must not change, gives: {shortened(usual)}")
    for path in write(trace, out, show, subwords):
        print(path)
