"""Signs of life: what a command says while it loads, and when Ctrl-C ends it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

import typer

from dragoman.cli.environment import importing
from dragoman.progress import Ticker, has_live_line, say, show

CTRL_C = 130


@contextlib.contextmanager
def loading(what: object = "") -> Iterator[None]:
    """Show on a terminal that something is loaded: torch, which takes seconds, and a model."""
    with importing(), Ticker(quiet=not has_live_line()).task(f"loading {what}".rstrip(), keep=False):
        yield


@contextlib.contextmanager
def at_ctrl_c(kept: Callable[[], str]) -> Iterator[None]:
    """If Ctrl-C ends the body, say "stopped", what is kept and how to go on, and exit as shells expect it."""
    try:
        yield
    except KeyboardInterrupt:
        show("")  # over the echo of Ctrl-C
        say(f"stopped {kept()}")
        raise typer.Exit(CTRL_C) from None
