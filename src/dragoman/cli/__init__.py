"""The command line: one file for each command, each a thin skin over ``dragoman.api``.

Results go to stdout, progress and warnings to stderr. Exit status: 0 done; 2 the user's error, in one line that says
what to do; 1 a bug of ours, with its traceback; 128 + n stopped by signal n.
"""

from __future__ import annotations

import logging
import os
import sys

import typer

from dragoman.cli import demo, evaluate, explain, train, translate
from dragoman.errors import DragomanError

app = typer.Typer(
    name="dragoman",
    help='The Transformer of "Attention Is All You Need": train on two text files, translate, evaluate, explain.',
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("demo")(demo.demo)
app.command("train")(train.train)
app.command("translate")(translate.translate)
app.command("evaluate")(evaluate.evaluate)
app.command("explain")(explain.explain)


@app.callback(invoke_without_command=True)
def _version(version: bool = typer.Option(False, "--version", help="Print the version and exit.")) -> None:
    if version:
        from dragoman import __version__

        print(f"dragoman {__version__}")
        raise typer.Exit


def main() -> None:
    """Run the command line and turn errors into exit statuses."""
    logging.basicConfig(level=logging.WARNING, format="%(message)s", stream=sys.stderr)
    try:
        app()
    except DragomanError as error:
        print(f"error: {' '.join(str(error).split())}", file=sys.stderr)
        sys.exit(2)
    except BrokenPipeError:
        # the reader has gone; keep Python from complaining again when it flushes at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)
