"""Rules for tables that training and documents share; nothing is imported, so that workers start fast."""

from __future__ import annotations


def separator_line(line: str) -> str:
    """Return the separator that a first line of Excel's names, such as ``sep=;``; "" for any other line."""
    text = line.strip("\r\n").removeprefix('"').removesuffix('"')
    return text[4:] if len(text) == 5 and text.lower().startswith("sep=") else ""


def is_position(column: str, first: list[str], columns: tuple[str, ...] | list[str]) -> bool:
    """Return True if ``column``, one of the chosen ``columns``, is the number of a column from 1, and no heading.

    A table without headings may begin with a cell "1". The first row has headings only if it names all chosen columns.
    """
    if not (column.isdecimal() and 1 <= int(column) <= len(first)):
        return False
    return not columns or not {name.strip() for name in columns} <= {cell.strip() for cell in first}


def cells(n: int) -> str:
    """Return a number of cells in words."""
    return f"{n} cell" + ("" if n == 1 else "s")
