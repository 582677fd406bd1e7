"""Reads the entries of a glossary: one a line, in the same forms for a file, a text, the page and the API.

    dog<TAB>Hund       source term, target term; also  dog = Hund  and  dog -> Hund
    GeForce            a source term alone: it is copied
    # animals          a comment; blank lines are skipped

A line with a tab is split at the tab only. In others, a sign with spaces around it separates before one without.
A first line such as ``English<TAB>German`` is a heading. A .csv has its cells in place of a tab (``lines_of_csv``).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from dragoman.data.tables import are_headings, rows_of
from dragoman.errors import DataError

Terms = tuple[str, str | None]
"""Source and target term; a target of None copies the source."""

_SIGN = re.compile(r"->|(?<![<>=!])=(?!=)>?")
"""What separates source and target: ``->``, ``=`` or ``=>``, but no comparison."""

_UNNAMED_CSV = re.compile(r"(?!.*\d[;,]\d)[^;,]+(?:;\s*|,)\S[^;,]*")
"""A line of a .csv of two columns."""

FORMS = "'source = target', 'source -> target', or source, a tab and target"


class Entry(NamedTuple):
    """One entry, with the name of its line for messages."""

    source: str
    target: str | None
    where: str


def read_entries(lines: Iterable[str], name: str) -> tuple[Entry | None, list[Entry]]:
    """Return the heading of the lines of a glossary, None if they have none, and their entries, in order.

    Args:
        name: Name of the file or text, for messages.

    Raises:
        DataError: A line is no entry; the message names it.
    """
    entries = []
    for number, line in enumerate(lines, 1):
        fields, where = _fields(line), f"{name}:{number}"
        if not fields:
            continue
        if len(fields) > 2:
            what = "columns" if "\t" in line else "parts between signs"
            raise DataError(f"{where}: {len(fields)} {what}, but a glossary line must be {FORMS}")
        if fields[-1] == "" and len(fields) > 1 and fields[0]:
            sign = "tab" if "\t" in line else "sign"
            raise DataError(f"{where}: a {sign} but no target term: add one, or remove the {sign} to copy the source")
        entries.append(Entry(fields[0], fields[1] if len(fields) > 1 else None, where))
    heading = None
    if entries and entries[0].target is not None and are_headings(entries[0].source, entries[0].target):
        heading = entries.pop(0)
    _refuse_an_unnamed_csv(entries)
    return heading, entries


def lines_of_csv(path: Path) -> Iterator[str]:
    """Yield the rows of a .csv as lines with tabs, without empty cells at their end."""
    for _, row in rows_of(path):
        yield "\t".join(" ".join(cell.split()) for cell in row).rstrip("\t")


def _refuse_an_unnamed_csv(entries: Sequence[Entry]) -> None:
    """Check that the terms alone are no lines of a .csv, which would be looked for with their commas.

    Raises:
        DataError: All terms are such lines.
    """
    if entries and all(entry.target is None and _UNNAMED_CSV.fullmatch(entry.source) for entry in entries):
        first = entries[0]
        raise DataError(
            f"{first.where}: {first.source!r} has no sign between its terms: write {FORMS}, or name the file .csv"
        )


def _fields(line: str) -> list[str]:
    """Return the terms of a line without the spaces around them; none of a blank line or a comment."""
    text = line.strip()
    if not text or text == "#" or text.startswith("# "):
        return []
    if "\t" in line:
        return [field.strip() for field in line.split("\t")]
    signs, spaced = _signs(text)
    fields, last = [], 0
    for start, end in spaced or signs[:1]:
        fields.append(text[last:start].strip())
        last = end
    return [*fields, text[last:].strip()]


def _signs(text: str) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """Return start and end of each separating sign, and of each with spaces around it."""
    signs = [match.span() for match in _SIGN.finditer(text)]
    return signs, [(start, end) for start, end in signs if _is_space(text, start - 1) and _is_space(text, end)]


def _is_space(text: str, place: int) -> bool:
    """True at a space, and beyond the ends of the text."""
    return not 0 <= place < len(text) or text[place].isspace()


def is_text(source: str) -> bool:
    """True if a string holds entries, not the name of a file: several lines, a tab, or a sign between spaces."""
    return "\n" in source or "\t" in source or bool(_signs(source)[1])
