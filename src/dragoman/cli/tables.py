"""Tables on a terminal, drawn by rich and fitted to its width; programs that read stdout get plain lines instead.

if at_terminal():
    print_table(["name", "BLEU"], [("runs/first", "23.4")], right=["BLEU"])
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from dragoman.progress import clear, columns, wrapped

if TYPE_CHECKING:
    from rich.table import Table


WIDE = 80
"""Cells of a terminal from which on a table has room for wide gaps and long texts."""


def at_terminal() -> bool:
    """Return True if stdout is a terminal."""
    return sys.stdout.isatty()


def print_line(text: str) -> None:
    """Print a line on stdout; a terminal breaks it between words."""
    clear()
    print(wrapped(text, columns(sys.stdout)) if at_terminal() else text)


def broken_after(text: str, mark: str, width: int) -> list[str]:
    """Return the rows of a text without spaces, broken after a mark such as ``|`` to fit a width."""
    rows = [""]
    *first, last = text.split(mark)
    for piece in [*(part + mark for part in first), last]:
        if rows[-1] and len(rows[-1]) + len(piece) > width:
            rows.append("")
        rows[-1] += piece
    return rows


def table(names: Sequence[str] = (), *, right: Collection[str] = (), fixed: Collection[str] = ()) -> Table:
    """Return an empty table without borders.

    Args:
        names: Heads of the columns; none: no head.
        right: Heads of the columns of numbers.
        fixed: Heads of the columns that are never broken.
    """
    from rich.table import Table

    gap = 2 if columns(sys.stdout) >= WIDE else 1
    made = Table(box=None, padding=(0, gap, 0, 0), pad_edge=False, show_header=bool(names), header_style="bold")
    for name in names:
        is_whole = name in fixed or name in right
        made.add_column(name, justify="right" if name in right else "left", no_wrap=is_whole, overflow="fold")
    return made


def print_tables(*made: Table) -> None:
    """Print tables, with an empty row between them."""
    from rich.console import Console

    clear()
    console = Console(highlight=False, width=columns(sys.stdout))
    for number, one_table in enumerate(made):
        if number:
            console.print()
        console.print(one_table)


def print_table(
    names: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    right: Collection[str] = (),
    fixed: Collection[str] = (),
) -> None:
    """Print a table of texts; see ``table``."""
    from rich.text import Text

    made = table(names, right=right, fixed=fixed)
    for row in rows:
        made.add_row(*(Text(cell) for cell in row))
    print_tables(made)
