"""Messages of a command while it loads, and when Ctrl-C ends it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

import typer

from dragoman.cli.environment import importing
from dragoman.progress import Ticker, has_live_line, say, show

CTRL_C = 130


@contextlib.contextmanager
def loading(name: object = "") -> Iterator[None]:
    """Show on a terminal that torch or the model ``name`` is being loaded, which can take seconds."""
    with importing(), Ticker(quiet=not has_live_line()).task(f"loading {name}".rstrip(), keep=False):
        yield


@contextlib.contextmanager
def at_ctrl_c(state: Callable[[], str]) -> Iterator[None]:
    """If Ctrl-C ends the block, print "stopped" with ``state`` (what is done, how to resume), and exit with 130."""
    try:
        yield
    except KeyboardInterrupt:
        show("")  # over the echo of Ctrl-C
        say(f"stopped {state()}")
        raise typer.Exit(CTRL_C) from None
