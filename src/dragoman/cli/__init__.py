"""The command line: one file for each command, each a thin layer over a public function.

Results go to stdout, progress and warnings to stderr. Exit status: 0 success; 2 an error of the user, reported in one
line that says what to do; 1 a bug of dragoman, with its traceback; 128 + n stopped by signal n.
"""

from __future__ import annotations

import io
import logging
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TextIO, cast

import typer

from dragoman.cli import environment
from dragoman.cli.commands import COMMANDS, Commands, declare
from dragoman.errors import BYTES_OF_NAMES, DragomanError, shortened
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
    environment.prepare(sys.argv[1] if len(sys.argv) > 1 else "")
    _replace_closed_streams()
    if sys.stdout is None:
        sys.exit(_report_error("stdout is closed: leave it open, or redirect it to /dev/null"))
    sys.stdout = _complete(sys.stdout, "utf-8")  # as all input and output
    sys.stderr = _complete(sys.stderr, sys.stderr.encoding)
    handler = _StderrHandler()
    handler.addFilter(no_repeats())
    logging.getLogger("dragoman").addHandler(handler)
    logging.getLogger("dragoman").setLevel(logging.INFO)
    status = run(sys.argv[1:] or ["--help"])
    try:
        sys.stderr.flush()
    except OSError:
        _drop(sys.stderr)
    sys.exit(status)


def _replace_closed_streams() -> None:
    """Open /dev/null for each of stdin, stdout and stderr that the caller closed."""
    # Otherwise the next opened file would get that number, and be taken for the stream. Messages to a closed stderr are
    # dropped: ``print`` would send them to stdout. A closed stdin or stdout is refused by the commands that need it.
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            _CLOSED.append(Path(os.devnull).open(mode))  # noqa: SIM115  (open for the whole process)
    if sys.stderr is None:
        sys.stderr = _CLOSED[-1]


_CLOSED: list[Any] = []


class _Unbuffered(io.BufferedWriter):
    """Writes at once, as PYTHONUNBUFFERED asks, and everything: Python's own stream drops what one call leaves over."""

    def write(self, data: Any) -> int:
        n = super().write(data)
        self.flush()
        return n


def _complete(stream: Any, encoding: str) -> TextIO:
    """Return stdout or stderr as a stream that loses nothing, the bytes of names included."""
    # Node.js, ssh and others make a pipe or terminal non-blocking for all programs that share it. What does not fit
    # into a full pipe would be lost.
    os.set_blocking(stream.fileno(), True)
    if stream.write_through:
        file = io.FileIO(stream.fileno(), "w", closefd=False)
        return io.TextIOWrapper(_Unbuffered(file), encoding, BYTES_OF_NAMES, write_through=True)
    stream.reconfigure(encoding=encoding, errors=BYTES_OF_NAMES)
    return cast(TextIO, stream)


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
        return _report_error(f"{_usage_message(error, context, arguments)} (see {command} --help)")
    except DragomanError as error:
        return _report_error(str(error))
    except (MemoryError, RuntimeError) as error:
        from dragoman.device import is_out_of_memory

        if not is_out_of_memory(error):
            raise
        return _report_error(
            "out of memory: lower train.batch_tokens or decode.batch_tokens (--batch-tokens), or use a smaller model"
        )
    except BrokenPipeError:
        _drop(sys.stdout)
        return 1
    except OSError as error:  # from the system, such as a full disk behind stdout
        _drop(sys.stdout)
        return _report_error(f"{error.filename or 'reading or writing'}: {error.strerror or error}")
    except KeyboardInterrupt:
        return 130
    finally:
        clear()


def _usage_message(error: Any, context: Any, arguments: Sequence[str]) -> str:
    """Return the message of click's usage error, with a suggestion for a wrong name or the help of a missing option."""
    option = getattr(error, "option_name", None)
    if context is not None and context.parent is None and arguments:
        from dragoman.cli.habits import command_hint

        if suggestion := command_hint(arguments[0]):
            return f"No such command {arguments[0]!r}; {suggestion}"
    if hasattr(error, "param_type") and getattr(error.param, "help", None):  # click's MissingParameter
        text = error.param.help
        return f"{error.format_message().rstrip('.')}: {text[0].lower()}{text[1:].rstrip('.')}"
    if option is None or not hasattr(error, "possibilities") or context is None:
        return str(error.format_message())
    from dragoman.cli.habits import option_hint

    known = [name for parameter in context.command.params for name in parameter.opts if name.startswith("--")]
    suggestion = option_hint(context.info_name or "", option, known)
    return f"No such option: {option}" + (f"; {suggestion}" if suggestion else "")


class _StderrHandler(logging.Handler):
    """Prints log messages on stderr, with the traceback of an error; warnings begin with "warning: "."""

    def emit(self, record: logging.LogRecord) -> None:
        message = ("warning: " if record.levelno >= logging.WARNING else "") + shortened(record.getMessage())
        trace = "" if not record.exc_info else "\n" + logging.Formatter().formatException(record.exc_info)
        say(message + trace)


def no_repeats() -> Callable[[logging.LogRecord], bool]:
    """Return a log filter that lets each message through once, except a server's.

    A corpus is read several times, and would give the same warnings each time.
    """
    seen: set[str] = set()

    def first_time(record: logging.LogRecord) -> bool:
        if record.name == "dragoman.serving":
            return True
        is_new = record.getMessage() not in seen
        seen.add(record.getMessage())
        return is_new

    return first_time


def _report_error(message: str) -> int:
    """Print an error in one line on stderr; return the exit status."""
    say(f"error: {shortened(' '.join(message.split()))}")
    return 2


def _drop(stream: TextIO) -> None:
    """Redirect stdout or stderr to /dev/null, so that flushing it at exit does not fail again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
