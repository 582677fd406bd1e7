"""Rules for tables that training and documents share; nothing is imported, so that workers start fast."""

from __future__ import annotations


def separator_line(line: str) -> str:
    """Return the separator that a first line of Excel's names, such as ``sep=;``; "" for any other line."""
    text = line.strip("\r\n").removeprefix('"').removesuffix('"')
    return text[4:] if len(text) == 5 and text.lower().startswith("sep=") else ""


def cells(n: int) -> str:
    """Return a number of cells in words."""
    return f"{n} cell" + ("" if n == 1 else "s")
