"""The command line: one file for each command, each a thin skin over the function that does the work.

Results go to stdout, progress and warnings to stderr. Exit status: 0 done; 2 the user's error, in one line that says
what to do; 1 a bug of ours, with its traceback; 128 + n stopped by signal n.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import typer

from dragoman.cli import environment
from dragoman.cli.commands import COMMANDS, Commands, declare
from dragoman.errors import DragomanError
from dragoman.progress import clear, say

app = typer.Typer(
    name="dragoman",
    cls=Commands,
    help='The Transformer of "Attention Is All You Need": train on two text files, translate, evaluate, explain.',
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for _name in COMMANDS:
    declare(app, _name, lambda: None)


@app.callback(invoke_without_command=True)
def _version(version: bool = typer.Option(False, "--version", help="Print the version and exit.")) -> None:
    if version:
        from dragoman import __version__

        print(f"dragoman {__version__}")
        raise typer.Exit


def main() -> None:
    """Run the command line and turn errors into exit statuses."""
    environment.prepare()
    _fill_what_is_closed()
    if sys.stdout is None:
        sys.exit(_refused("stdout is closed: leave it open, or redirect it to /dev/null"))
    sys.stdout.reconfigure(encoding="utf-8")  # type: ignore[union-attr]  # as all text that comes and goes
    handler = _Said()
    handler.addFilter(once())
    logging.getLogger("dragoman").addHandler(handler)
    logging.getLogger("dragoman").setLevel(logging.INFO)
    sys.exit(run(sys.argv[1:] or ["--help"]))


def _fill_what_is_closed() -> None:
    """Put something in the place of stdin, stdout and stderr, where who started us closed them.

    Otherwise the next file opened would be one of them. What goes to a closed stderr is lost, instead of going to
    stdout, as ``print`` would have it; a closed stdin or stdout is refused where it is wanted.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            _CLOSED.append(Path(os.devnull).open(mode))  # noqa: SIM115  (takes the least number that is free, and keeps it)
    if sys.stderr is None:
        sys.stderr = _CLOSED[-1]


_CLOSED: list[Any] = []


def run(arguments: Sequence[str]) -> int:
    """Run one command and return its exit status."""
    usage_error: Any = typer.BadParameter.__base__  # UsageError, wherever this version of typer keeps it
    try:
        status = app(arguments, prog_name="dragoman", standalone_mode=False)
        sys.stdout.flush()
        return status if isinstance(status, int) else 0
    except usage_error as error:
        context = getattr(error, "ctx", None)
        named = [name for name in arguments[:1] if name in COMMANDS]
        command = context.command_path if context else " ".join(["dragoman", *named])
        return _refused(f"{_usage(error, context, arguments)} (see {command} --help)")
    except DragomanError as error:
        return _refused(str(error))
    except (MemoryError, RuntimeError) as error:
        from dragoman.device import is_out_of_memory

        if not is_out_of_memory(error):
            raise
        return _refused(
            "out of memory: lower train.batch_tokens or decode.batch_tokens (--batch-tokens), or take a smaller model"
        )
    except BrokenPipeError:
        _drop_output()
        return 1
    except OSError as error:  # of the world and not of ours, such as a full disk behind stdout
        _drop_output()
        return _refused(f"{error.filename or 'reading or writing'}: {error.strerror or error}")
    except KeyboardInterrupt:
        return 130
    finally:
        clear()


def _usage(error: Any, context: Any, arguments: Sequence[str]) -> str:
    """What is wrong with a command line; for a command or an option that is not there, what was probably meant.

    Of what is missing, what it is.
    """
    option = getattr(error, "option_name", None)
    if context is not None and context.parent is None and arguments:
        from dragoman.cli.habits import command_hint

        if meant := command_hint(arguments[0]):
            return f"No such command {arguments[0]!r}; {meant}"
    if hasattr(error, "param_type") and getattr(error.param, "help", None):  # click's MissingParameter
        what = error.param.help
        return f"{error.format_message().rstrip('.')}: {what[0].lower()}{what[1:].rstrip('.')}"
    if option is None or not hasattr(error, "possibilities") or context is None:
        return str(error.format_message())
    from dragoman.cli.habits import hint

    known = [name for parameter in context.command.params for name in parameter.opts if name.startswith("--")]
    meant = hint(context.info_name or "", option, known)
    return f"No such option: {option}" + (f"; {meant}" if meant else "")


class _Said(logging.Handler):
    """Messages on stderr; warnings are marked as such."""

    def emit(self, record: logging.LogRecord) -> None:
        say(("warning: " if record.levelno >= logging.WARNING else "") + record.getMessage())


def once() -> Callable[[logging.LogRecord], bool]:
    """Let each message through once: a corpus is read several times, and its oddities are noticed each time.

    A server's are all let through: there is no end of them, and two requests may well take as long.
    """
    seen: set[str] = set()

    def first_time(record: logging.LogRecord) -> bool:
        if record.name == "dragoman.serving":
            return True
        is_new = record.getMessage() not in seen
        seen.add(record.getMessage())
        return is_new

    return first_time


def _refused(message: str) -> int:
    say(f"error: {' '.join(message.split())}")
    return 2


def _drop_output() -> None:
    """Keep Python from complaining again when it flushes stdout at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
