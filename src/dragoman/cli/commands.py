"""List of the commands: module, help and three examples of each. Imports none of them, so `--help` is fast."""

from __future__ import annotations

import importlib
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from dragoman.progress import say


@dataclass(frozen=True)
class About:
    """Facts about a command that its help needs before the command is imported."""

    function: str
    """Place of the command, as ``module:function`` in this package."""
    help: str
    """Help text; ``dragoman --help`` shows its first paragraph."""
    examples: tuple[str, str, str]


COMMANDS = {
    "demo": About(
        "demo:demo",
        "Train a Transformer on the embedded corpus in a few minutes and show what it learns.\n\n"
        "It stops once about 97 of 100 unseen sentences are translated exactly right (a validation BLEU of 99.3). "
        "The run is written to runs/demo; the name demo alone means the translator that comes with the package.",
        ("dragoman demo", "dragoman demo --to zh", "dragoman demo --resume --minutes 20"),
    ),
    "train": About(
        "train:train",
        "Train a translator from parallel text.\n\n"
        "Without a configuration, sizes are chosen from the corpus and written to OUT/config.yaml. "
        "With --from-run, training starts from the sizes, subwords and weights of another run.",
        (
            "dragoman train train.en train.de --minutes 30 --out runs/first",
            "dragoman train my.yaml --set train.max_steps=20000",
            "dragoman train --out runs/first --resume",
        ),
    ),
    "augment": About(
        "augment:augment",
        "Make synthetic training data: trained runs translate monolingual text, and bad pairs are filtered out.\n\n"
        "OUT receives the data and a configuration for `dragoman train`. After an interruption, the same command "
        "resumes.",
        (
            "dragoman augment --forward runs/there --src news.en --out made",
            "dragoman augment --back runs/back --tgt news.de --held-out test.de --out made",
            "dragoman augment --forward runs/there --src news.en --back runs/back --tgt news.de --out made",
        ),
    ),
    "distill": About(
        "distill:distill",
        "Train a small, fast student on the translations of a trained run, and compare it with its teacher.\n\n"
        "Options for search, speed and languages apply to the teacher. After an interruption, the same command "
        "resumes. The student is an ordinary run; translate and serve it with --fast.",
        (
            "dragoman distill runs/first --src train.en --ref train.de --out runs/student",
            "dragoman distill runs/first --src train.en --ref train.de --mono news.en --minutes 30 --out runs/student",
            "dragoman distill runs/a runs/b --src train.en --ref train.de --best-of 5 --out runs/student",
        ),
    ),
    "translate": About(
        "translate:translate",
        "Translate stdin or FILE to stdout, line by line, or a document into another.\n\n"
        "RUN is a run folder, a bundle, or a translator that comes with the package: demo (English to German) or "
        "demo-zh (English to Chinese).",
        (
            'echo "The child sleeps." | dragoman translate demo',
            "dragoman translate runs/first book.en --out book.de",
            "dragoman translate runs/first report.docx --out bericht.docx",
        ),
    ),
    "score": About(
        "score:score",
        "Score given translations line by line (forced decoding): log-probability, per token, and length-normalised.",
        (
            "dragoman score runs/first --src test.en --ref test.de",
            "dragoman score runs/first --src test.en --ref test.de --json",
            "dragoman score runs/first --src test.en --ref test.de --alignments links",
        ),
    ),
    "calibrate": About(
        "calibrate:calibrate",
        "Learn from parallel text how sure a run is of its translations, and keep that in its bundle.\n\n"
        "An imported model does not know it, a trained one for text like its validation set. 500 lines are enough.",
        (
            "dragoman calibrate runs/imported --src dev.en --ref dev.de",
            "dragoman calibrate runs/first --src emails.en --ref emails.de",
            "dragoman calibrate runs/first/bundle --src dev.en --ref dev.de --device cpu",
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
    "runs": About(
        "runs:runs",
        "List trained and unfinished runs: languages, state, steps, time, best scores, size and last change.",
        ("dragoman runs", "dragoman runs runs/old", "dragoman runs --json"),
    ),
    "report": About(
        "report:report",
        "Write a page with the learning curves, settings and translations of one run, or of several side by side.\n\n"
        "The page works offline, and CSV files next to it hold its numbers. With --ref it also compares translations.",
        (
            "dragoman report runs/first",
            "dragoman report runs/first runs/second --out comparison.html",
            "dragoman report runs/first runs/second --src test.en --ref test.de --out comparison.html",
        ),
    ),
    "explain": About(
        "explain:explain",
        "Visualise a translation: word alignment, attention of every head, candidates at each step.",
        (
            'dragoman explain runs/first "The child sleeps."',
            'dragoman explain runs/first "The child sleeps." --translation "Das Kind schläft."',
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
            "dragoman export runs/first --format ctranslate2",
            "dragoman export runs/first --format ctranslate2 --quantization int8",
            "dragoman export runs/first --format ctranslate2 --check test.en --ref test.de",
        ),
    ),
    "formats": About(
        "export:formats",
        "Print which model variants each format of `export` supports exactly, and why not the others.",
        ("dragoman formats", "dragoman formats runs/first", "dragoman formats > formats.md"),
    ),
    "import": About(
        "import_:import_",
        "Convert a model of Hugging Face, CTranslate2, Marian or Argos Translate into a run, and print its folder.",
        (
            "dragoman import Helsinki-NLP/opus-mt-en-de --out runs/opus",
            "dragoman import translate-en_de-1_0.argosmodel --out runs/argos",
            "dragoman import opus-mt-en-de --out runs/small --keep-pieces-of train.en --keep-pieces-of train.de",
        ),
    ),
    "serve": About(
        "serve:serve",
        "Serve runs over HTTP: dragoman's API, LibreTranslate's, and DeepL's v2 and v3.",
        ("dragoman serve runs/first", "dragoman serve runs/first --port 9000", "dragoman serve runs/first runs/back"),
    ),
}


def value_name(option: Any) -> str:
    """Return the placeholder of an option's value in the help, such as PATH; "" for a flag."""
    if option.is_flag or option.metavar is not None:
        return "" if option.is_flag else str(option.metavar)
    kind = option.type_descriptor.annotation
    kind = getattr(kind, "__args__", [kind])[0]  # the type of a list's elements
    return {int: "N", float: "NUM", Path: "PATH"}.get(kind, "TEXT")


def names_files(parameter: Any) -> bool:
    """True if the value of a parameter is the name of a file or folder, which the help shows by its placeholder."""
    words = ("PATH", "FILE", "DIR", "FOLDER", "RUN", "SRC", "CONFIG", "MODEL")
    return any(word in (parameter.metavar or "") for word in words)


class _Parameters:
    """Command whose help names the values of options as N, NUM, PATH and TEXT, not as types of Python."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Return all parameters of a command, ``--help`` included, as click asks for them."""
        parameters: list[Any] = super().get_params(ctx)  # type: ignore[misc]
        for parameter in parameters:
            if parameter.param_type_name == "argument":
                parameter.display_type = lambda ctx: ""  # the name is enough
            elif parameter.is_flag or hasattr(parameter, "type_descriptor"):  # older versions of typer show no types
                parameter.metavar = value_name(parameter)
        return parameters


class Command(_Parameters, TyperCommand):
    """Single command of ``dragoman``."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the arguments, as click asks for it; former names of options work with a warning."""
        from dragoman.cli.habits import with_present_names

        present, warnings = with_present_names(ctx.info_name, args)
        if not ctx.resilient_parsing:
            for warning in warnings:
                say(f"warning: {warning}")
            self._refuse_slips(ctx, present)
        return super().parse_args(ctx, present)

    def _refuse_slips(self, ctx: Any, args: list[str]) -> None:
        """Refuse a file for an option of one value that has one already, and an empty name, before anything is read.

        Of the other options the last value counts, as aliases and makefiles expect.
        """
        values, _, order = self.make_parser(ctx).parse_args(list(args))
        if any(parameter.is_eager for parameter in order):  # --help
            return
        times: Counter[Any] = Counter(order)
        for parameter, n_times in times.items():
            if not names_files(parameter):
                continue
            is_option = parameter.param_type_name == "option"
            if n_times > 1 and is_option and not parameter.multiple:
                takes = "one value" if parameter.nargs == 1 else f"{parameter.nargs} values"
                ctx.fail(f"{parameter.opts[-1]} is given twice; it takes {takes}")
            value = values[parameter.name]
            if "" in (value if isinstance(value, list | tuple) else [value]):
                ctx.fail(f"{parameter.opts[-1] if is_option else parameter.metavar} is empty; give a name")


class Commands(_Parameters, TyperGroup):
    """Group of all commands; the code of a command is imported when the command is called."""

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        """Find and import a command, as click asks for it before calling it or completing its words."""
        name, _, remaining = super().resolve_command(ctx, args)
        return name, name and load(name), remaining


def declare(app: typer.Typer, name: str, function: Callable[..., None]) -> None:
    """Add a command to an app, with its help."""
    about = COMMANDS[name]
    examples = "\n\n".join(["Examples:", *(f"  {example}" for example in about.examples)])
    app.command(name, cls=Command, help=about.help, epilog=examples)(function)


def load(name: str) -> Any:
    """Import a command and return it with its options."""
    module, function = COMMANDS[name].function.split(":")
    alone = typer.Typer(add_completion=False)
    declare(alone, name, getattr(importlib.import_module(f"dragoman.cli.{module}"), function))
    return typer.main.get_command(alone)
