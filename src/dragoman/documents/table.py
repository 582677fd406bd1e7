"""Tables: ``.csv`` (commas, semicolons or tabs; quotes as in RFC 4180) and ``.tsv`` (tabs, no quotes).

The chosen columns are translated, or the only column of a table that has one. A cell of several lines is translated
line by line. Everything else keeps its bytes: a row with more or fewer cells than the first, which is named, and the
line ``sep=;`` with which Excel begins.
"""

from __future__ import annotations

import re

from dragoman.data.rows import cells, separator_line
from dragoman.documents.document import Document, DocumentInfo, Untranslated, decode, text_document
from dragoman.documents.units import Part, Unit
from dragoman.errors import DataError

SUFFIXES = (".csv", ".tsv")
OPTIONS = ("columns",)

Cell = tuple[int, int]
"""Start and end of a cell in the text, quotes included."""


def read(data: bytes, info: DocumentInfo) -> Document:
    """Cut a table into the cells of the chosen columns; see ``document.Format``."""
    text = decode(data, info)
    is_tsv = info.name.lower().endswith(".tsv")
    separator, rows = _rows(text.text, is_tsv, info)
    n_before = 1 if rows and separator_line(text.text[: rows[0][-1][1]]) else 0
    rows = rows[n_before:]
    if not rows:
        return text_document([text.text], text)
    headings = [_value(text.text, cell) for cell in rows[0]]
    wanted = _wanted_columns(headings, info)
    parts: list[Part] = []
    copied_to = 0  # the source up to here is in ``parts``
    left: list[Untranslated] = []
    for number, row in enumerate(rows[1:], 2 + n_before):
        if len(row) == 1 and row[0][0] == row[0][1]:  # a blank line
            continue
        if len(row) != len(headings):
            why = f"row {number:,} has {cells(len(row))}, but the first one has {len(headings)}"
            left.append(Untranslated(text.text[row[0][0] : row[-1][1]], why))
            continue
        for start, end in (row[column] for column in wanted):
            parts += [text.text[copied_to:start], *_cell(text.text[start:end], separator, is_tsv)]
            copied_to = end
    return text_document([*parts, text.text[copied_to:]], text, left)


def _wanted_columns(headings: list[str], info: DocumentInfo) -> list[int]:
    """Return the numbers of the columns to translate, from 0 and ascending."""
    columns = info.columns or (headings if len(headings) == 1 else ())
    available = ", ".join(headings[:20])
    if not columns:
        raise DataError(f"{info.name}: which column is translated? Name one (column, --column); there are {available}")
    for name in columns:
        if headings.count(name) != 1:
            raise DataError(
                f"{info.name}: {headings.count(name) or 'no'} columns have the heading {name!r}; there are {available}"
            )
    return sorted(headings.index(name) for name in columns)


def _rows(text: str, is_tsv: bool, info: DocumentInfo) -> tuple[str, list[list[Cell]]]:
    """Return the separator and the cells of each row.

    The separator is the one that the line ``sep=`` names, else the most frequent one in the first line, unless only
    another one yields the chosen headings.
    """
    attempts: list[tuple[str, list[list[Cell]]]] = []
    first_line = text.split("\n", 1)[0]
    if not is_tsv and (separator := separator_line(first_line)):
        return separator, _cut(text, separator, is_tsv, info)
    for separator in "\t" if is_tsv else sorted(",;\t", key=lambda candidate: -first_line.count(candidate)):
        rows = _cut(text, separator, is_tsv, info)
        attempts.append((separator, rows))
        if rows and set(info.columns) <= {_value(text, cell) for cell in rows[0]}:
            return separator, rows
    return attempts[0]


def _cut(text: str, separator: str, is_tsv: bool, info: DocumentInfo) -> list[list[Cell]]:
    """Return the cells of each row for one separator."""
    quoted = "" if is_tsv else r'"(?:[^"]|"")*"|'
    sign = re.escape(separator)
    cell = re.compile(rf"({quoted}[^{sign}\n]*?)({sign}|\r?\n|\r?\Z)")
    rows: list[list[Cell]] = [[]]
    at = 0
    while at < len(text) or rows[-1]:
        match = cell.match(text, at)
        if match is None or (not is_tsv and match[1].startswith('"') and not match[1].endswith('"')) or match[1] == '"':
            raise DataError(f"{info.name}:{text.count(chr(10), 0, at) + 1}: a quote does not end where a cell does")
        rows[-1].append(match.span(1))
        at = match.end()
        if match[2] != separator:
            if at >= len(text):
                break
            rows.append([])
    return rows if rows[-1] else rows[:-1]


def _value(text: str, cell: Cell) -> str:
    """Return the text of a cell without the quotes around it."""
    raw = text[cell[0] : cell[1]]
    return raw[1:-1].replace('""', '"') if len(raw) > 1 and raw[0] == raw[-1] == '"' else raw


def _cell(raw: str, separator: str, is_tsv: bool) -> list[Part]:
    """Return a unit for each line of a cell, quoted as the cell is or as its translation needs."""
    if is_tsv:
        return [Unit(raw, raw=[raw], escape=str)]
    if raw.startswith('"'):
        parts: list[Part] = ['"']
        for number, line in enumerate(raw[1:-1].split("\n")):
            parts += ["\n"] * (number > 0)
            parts.append(Unit(line.replace('""', '"'), raw=[line], escape=lambda text: text.replace('"', '""')))
        return [*parts, '"']
    return [Unit(raw, raw=[raw], escape=lambda text: _quoted_if_needed(text, separator))]


def _quoted_if_needed(text: str, separator: str) -> str:
    """Return text in quotes if it holds a quotation mark or the separator, which would end its cell."""
    if separator in text or '"' in text:
        return '"' + text.replace('"', '""') + '"'
    return text
