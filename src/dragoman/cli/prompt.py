"""The prompt of ``dragoman translate -i``, and standard input."""

from __future__ import annotations

import contextlib
import io
import select
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from dragoman.errors import ConfigError, shortened
from dragoman.progress import say, show

if TYPE_CHECKING:
    from dragoman.translation.notes import Note
    from dragoman.translation.plan import Plan
    from dragoman.translation.translator import Translation, Translator

QUIT = (":q", "quit", "exit", ":quit", ":exit")
"""Lines that end the prompt of ``-i``."""
HELP = (":h", "help", "?", ":help")
"""Lines that ask for help at the prompt of ``-i``; a space before such a line translates it instead."""
PROMPT_HELP = f"""Each line is translated when you press Enter.
  Up and Down     earlier lines, to change and translate again
  Ctrl-C          leaves the line that you are typing, or stops its translation
  {QUIT[0]}, quit, exit  or Ctrl-D end the prompt
  {HELP[0]}, help, ?     this list
A space before one of these words translates it. Options such as --n-best 5 are given when the prompt is started."""


def typed(translator: Translator, plan: Plan, expected_by: str) -> Iterator[Translation]:
    """Yield the translation of each typed line; a line in another language than that of ``plan`` gets a warning.

    Args:
        expected_by: Words for who expects the language, up to its name: ``runs/x translates from``.
    """
    from dragoman.data.sides import doubt
    from dragoman.translation.notes import Events

    prompt = f"{plan.src_lang or 'source'}> "
    for number, text in enumerate(lines_typed(prompt), 1):
        if other := doubt(f"line {number}", [text], plan.src_lang, expected_by):
            warn(other)
        of_line = Events(warn=warn, failed=warn, label=_named(f"line {number}"))
        try:
            translation = translator.translate_planned([text], plan, of_line, number - 1)[0]
        except KeyboardInterrupt:
            if not both_at_terminal():
                raise
            show("")  # over the echo of Ctrl-C
            say("stopped before it was translated")
            continue
        yield translation


def _named(name: str) -> Callable[[int], str]:
    """Return a function that gives every text the same name."""
    return lambda _: name


def lines_typed(prompt: str) -> Iterator[str]:
    """Yield lines typed at a prompt; with a pipe the prompt goes to stderr, so that stdout has translations only."""
    if both_at_terminal():
        with contextlib.suppress(ImportError):
            import readline  # noqa: F401  (gives input() history and line editing)
        sys.stdin.reconfigure(errors="replace")  # type: ignore[union-attr]
        say(f"Type a sentence and Enter; {QUIT[0]} or Ctrl-D ends, {HELP[0]} helps.")
        while True:
            try:
                text = input(prompt)
            except EOFError:
                break
            except KeyboardInterrupt:
                print(file=sys.stderr)  # the line that was typed so far stays above
                continue
            if text.rstrip() in QUIT:
                return
            if text.rstrip() in HELP:
                say(PROMPT_HELP)
            else:
                yield text
    else:
        from dragoman.data.corpus import read_lines_leniently

        print(prompt, end="", file=sys.stderr, flush=True)
        for line in read_lines_leniently(open_stdin(), "stdin"):
            if line.warning:
                warn(line.warning)
            yield line.text
            print(prompt, end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)


def both_at_terminal() -> bool:
    """Return True if stdin and stdout are both a terminal."""
    return sys.stdin is not None and sys.stdin.isatty() and sys.stdout.isatty()


class _WaitingFile(io.FileIO):
    """Standard input that waits for bytes also where it is non-blocking.

    Node.js, ssh and others make a pipe or terminal non-blocking for all programs that share it, at any time. Then a
    pause of the input would look like its end.
    """

    read, readall = io.RawIOBase.read, io.RawIOBase.readall  # type: ignore[assignment]  # by ``readinto``

    def readinto(self, buffer: Any) -> int:
        """Read some bytes, as soon as there are any; return 0 at the end."""
        while (n := super().readinto(buffer)) is None:
            select.select([self], [], [])
        return n


def open_stdin() -> BinaryIO:
    """Open the text of standard input, with a reader of its own.

    Raises:
        ConfigError: The caller closed stdin.
        DataError: It is an archive, or compressed.
    """
    from dragoman.data.compression import text_of

    # A thread may still wait for input when the program ends. If it waited on ``sys.stdin``, Python's exit would abort.
    if sys.stdin is None:
        raise ConfigError("stdin is closed: give a FILE, or redirect input to stdin")
    stream = io.BufferedReader(_WaitingFile(0, closefd=False))
    # At a terminal each further look at an end that was typed would ask for it again.
    return text_of(stream, Path("stdin")) if stream.peek(1) else io.BytesIO()


def warn(note: Note | str) -> None:
    """Print a warning."""
    say(f"warning: {shortened(str(note))}")
