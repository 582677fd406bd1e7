"""What argparse lacks: names of which none, one or several may be given; the command again, for the record."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path


def one_of(names: Sequence[str]) -> Callable[[str], str]:
    """A ``type`` that refuses other names (``choices`` would refuse that none is given)."""

    def checked(name: str) -> str:
        if name not in names:
            raise argparse.ArgumentTypeError(f"{name!r} is none of {', '.join(names)}")
        return name

    return checked


def command(name: str, parser: argparse.ArgumentParser, args: argparse.Namespace) -> str:
    """The command that measures so again: what is not default, and DATA or RUN in the place of a folder."""
    words = [f"python -m benchmarks.{name}"]
    for action in parser._actions:
        value = getattr(args, action.dest, None)
        if action.dest == "help" or value == action.default or (value == [] and not action.option_strings):
            continue
        words += [action.option_strings[-1]] if action.option_strings else []
        if action.nargs != 0:
            several = value if isinstance(value, list) else [value]
            words += [action.dest.upper() if isinstance(one, Path) else str(one) for one in several]
    return " ".join(words)
