"""Rules for tables that training, documents and glossaries share; little is imported, so that workers start fast."""

from __future__ import annotations

import csv
from collections.abc import Iterable


def separator_line(line: str) -> str:
    """Return the separator that a first line of Excel's names, such as ``sep=;``; "" for any other line."""
    text = line.strip("\r\n").removeprefix('"').removesuffix('"')
    return text[4:] if len(text) == 5 and text.lower().startswith("sep=") else ""


def has_spaces_before_quotes(lines: Iterable[str], separator: str) -> bool:
    """Return True if cells in quotes stand behind a space, as in ``"a", "b"``.

    In ``a, "b" c`` they are text, so what they open must end its cell, in the same line.
    """
    spaced = [line for line in lines if any(cell.lstrip(" ")[:1] == '"' != cell[:1] for cell in line.split(separator))]
    try:
        return bool(
            [
                row
                for line in spaced
                for row in csv.reader([line], delimiter=separator, strict=True, skipinitialspace=True)
            ]
        )
    except csv.Error:
        return False


def is_position(column: str, first: list[str], columns: tuple[str, ...] | list[str]) -> bool:
    """Return True if ``column``, one of the chosen ``columns``, is the number of a column from 1, and no heading.

    A table without headings may begin with a cell "1". The first row has headings only if it names all chosen columns.
    """
    if not (column.isdecimal() and len(column) < 10 and 1 <= int(column) <= len(first)):
        return False
    return not columns or not {name.strip() for name in columns} <= {cell.strip() for cell in first}


def cells(n: int) -> str:
    """Return a number of cells in words."""
    return f"{n} cell" + ("" if n == 1 else "s")
