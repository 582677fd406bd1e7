"""The commands: where the code of each is, its help, and three examples to copy. Imports none of them."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup


@dataclass(frozen=True)
class About:
    """What is known of a command without its code."""

    function: str
    """``module:function`` in this package."""
    help: str
    """Its first paragraph stands in ``dragoman --help``."""
    examples: tuple[str, str, str]


COMMANDS = {
    "demo": About(
        "demo:demo",
        "Train a Transformer on the embedded corpus in a few minutes and show what it learns.",
        ("dragoman demo", "dragoman demo --to zh", "dragoman demo --out runs/short --set train.max_minutes=1"),
    ),
    "train": About(
        "train:train",
        "Train a translator from parallel text.\n\n"
        "Without a configuration, sizes are chosen from the corpus and written to OUT/config.yaml. "
        "With --from, sizes, subwords and first weights are those of another run.",
        (
            "dragoman train train.en train.de --minutes 30 --out runs/first",
            "dragoman train my.yaml --set train.max_steps=20000",
            "dragoman train --out runs/first --resume",
        ),
    ),
    "augment": About(
        "augment:augment",
        "Make more training text: trained runs translate text of one language, and what is unfit to learn from is "
        "left out.\n\n"
        "OUT gets the text and a configuration for `dragoman train`. After an interruption the same command resumes.",
        (
            "dragoman augment --forward runs/there --src news.en --out made",
            "dragoman augment --back runs/back --tgt news.de --held-out test.de --out made",
            "dragoman augment --forward runs/there --src news.en --back runs/back --tgt news.de --out made",
        ),
    ),
    "distill": About(
        "distill:distill",
        "Train a small, fast student on what a trained run translates, and measure it beside its teacher.\n\n"
        "Options of search, speed and languages are the teacher's. After an interruption the same command resumes. The "
        "student is an ordinary run; translate and serve it with --fast.",
        (
            "dragoman distill runs/first --src train.en --ref train.de --out runs/student",
            "dragoman distill runs/first --src train.en --mono news.en --minutes 30 --out runs/student",
            "dragoman distill runs/a runs/b --src train.en --ref train.de --best-of 5 --out runs/student",
        ),
    ),
    "translate": About(
        "translate:translate",
        "Translate stdin or FILE to stdout, line by line, or a document into another.",
        (
            'echo "The child sleeps." | dragoman translate runs/first',
            "dragoman translate runs/first book.en --out book.de",
            "dragoman translate runs/first report.docx --out bericht.docx",
        ),
    ),
    "score": About(
        "score:score",
        "Score given translations (forced decoding): log-probability, per token, and length-normalised, per line.",
        (
            "dragoman score runs/first --src test.en --tgt test.de",
            "dragoman score runs/first --src test.en --tgt test.de --json",
            "dragoman score runs/first --src test.en --tgt test.de --alignments links",
        ),
    ),
    "evaluate": About(
        "evaluate:evaluate",
        "Translate a test set and score it: sacreBLEU, chrF and TER with confidence intervals; compare two systems.",
        (
            "dragoman evaluate runs/first --src test.en --ref test.de",
            "dragoman evaluate runs/first other.de --src test.en --ref test.de",
            "dragoman evaluate first other --segment-scores first.comet other.comet",
        ),
    ),
    "explain": About(
        "explain:explain",
        "Visualise a translation: word alignment, attention of every head, candidates at each step.",
        (
            'dragoman explain runs/first "The child sleeps."',
            'dragoman explain runs/first "The child sleeps." --target "Das Kind schläft."',
            'dragoman explain runs/first "The child sleeps." --out figures',
        ),
    ),
    "doctor": About(
        "doctor:doctor",
        "Check a corpus before training, or a run after it: report problems and how to fix them.",
        (
            "dragoman doctor train.en train.de",
            "dragoman doctor my.yaml --out report",
            "dragoman doctor runs/first",
        ),
    ),
    "lab": About(
        "lab:lab",
        "Reproduce the paper's claims: experiments with figures, numbers and verdicts.",
        ("dragoman lab", "dragoman lab scaling", "dragoman lab heads --run runs/first"),
    ),
    "export": About(
        "export:export",
        "Convert the model to another toolkit's format and print the output folder; --check verifies the conversion.",
        (
            "dragoman export runs/first --to ctranslate2",
            "dragoman export runs/first --to ctranslate2 --quantization int8",
            "dragoman export runs/first --to ctranslate2 --check test.en --ref test.de",
        ),
    ),
    "formats": About(
        "export:formats",
        "Print which variants of the model each format of `export` holds exactly, and why not the others.",
        ("dragoman formats", "dragoman formats runs/first", "dragoman formats > formats.md"),
    ),
    "import": About(
        "import_:import_",
        "Make a run of a model of Hugging Face, CTranslate2, Marian or Argos Translate, and print its folder.",
        (
            "dragoman import Helsinki-NLP/opus-mt-en-de --out runs/opus",
            "dragoman import translate-en_de-1_0.argosmodel --out runs/argos",
            "dragoman import opus-mt-en-de --out runs/small --keep-pieces-of train.en --keep-pieces-of train.de",
        ),
    ),
    "serve": About(
        "serve:serve",
        "Serve runs over HTTP: dragoman's API, LibreTranslate's and DeepL's v2.",
        ("dragoman serve runs/first", "dragoman serve runs/first --port 9000", "dragoman serve runs/first runs/back"),
    ),
}


def taken(option: Any) -> str:
    """What an option takes, in a word; nothing of a flag."""
    if option.is_flag or option.metavar is not None:
        return "" if option.is_flag else str(option.metavar)
    kind = option.type_descriptor.annotation
    kind = getattr(kind, "__args__", [kind])[0]  # one of a list
    return {int: "N", float: "NUM", Path: "PATH"}.get(kind, "TEXT")


class _Parameters:
    """A command whose help shows what its options take as people write it, and no types of Python."""

    def get_params(self, ctx: Any) -> list[Any]:
        """What click calls for the parameters of a command, ``--help`` among them."""
        parameters: list[Any] = super().get_params(ctx)  # type: ignore[misc]
        for each in parameters:
            if each.param_type_name == "argument":
                each.display_type = lambda ctx: ""  # its name says it
            elif each.is_flag or hasattr(each, "type_descriptor"):  # older versions of typer show no types of Python
                each.metavar = taken(each)
        return parameters


class Command(_Parameters, TyperCommand):
    """One command."""


class Commands(_Parameters, TyperGroup):
    """The list of commands is printed without their code; that of a command is imported when it is called."""

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        """What click calls before a command and before completing its words."""
        name, _, rest = super().resolve_command(ctx, args)
        return name, name and load(name), rest


def declare(app: typer.Typer, name: str, function: Callable[..., None]) -> None:
    """Add a command to an app, with its help."""
    about = COMMANDS[name]
    examples = "\n\n".join(["Examples:", *(f"  {example}" for example in about.examples)])
    app.command(name, cls=Command, help=about.help, epilog=examples)(function)


def load(name: str) -> Any:
    """A command with its options."""
    module, function = COMMANDS[name].function.split(":")
    alone = typer.Typer(add_completion=False)
    declare(alone, name, getattr(importlib.import_module(f"dragoman.cli.{module}"), function))
    return typer.main.get_command(alone)
