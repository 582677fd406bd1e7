"""Tables: ``.csv`` (commas, semicolons or tabs; quotes as in RFC 4180) and ``.tsv`` (tabs, no quotes).

The columns that were named are translated, or the only one there is, line by line where a cell has several; all else
keeps its bytes.
"""

from __future__ import annotations

import re

from dragoman.documents.document import Asked, Document, decode, of_text
from dragoman.documents.units import Part, Unit
from dragoman.errors import DataError

SUFFIXES = (".csv", ".tsv")

Cell = tuple[int, int]  # where it begins and ends, quotes included


def read(data: bytes, asked: Asked) -> Document:
    """See ``document.Format``."""
    text = decode(data, asked)
    is_tsv = asked.name.lower().endswith(".tsv")
    separator, rows = _rows(text.text, is_tsv, asked)
    if not rows:
        return of_text([text.text], text)
    headings = [_value(text.text, cell) for cell in rows[0]]
    columns = asked.columns or (headings if len(headings) == 1 else ())
    if not columns:
        raise DataError(
            f"{asked.name}: which column is translated? Name one (column, --column); there are "
            f"{', '.join(headings[:20])}"
        )
    for name in columns:
        if headings.count(name) != 1:
            raise DataError(
                f"{asked.name}: {headings.count(name) or 'no'} columns have the heading {name!r}; there are "
                f"{', '.join(headings[:20])}"
            )
    wanted = sorted(headings.index(name) for name in columns)
    parts: list[Part] = []
    at = 0
    for number, row in enumerate(rows[1:], 2):
        if len(row) == 1 and row[0][0] == row[0][1]:  # a blank line
            continue
        if len(row) != len(headings):
            raise DataError(f"{asked.name}: row {number:,} has {len(row)} cells, but the first one has {len(headings)}")
        for start, end in (row[place] for place in wanted):
            parts += [text.text[at:start], *_cell(text.text[start:end], separator, is_tsv)]
            at = end
    return of_text([*parts, text.text[at:]], text)


def _rows(text: str, is_tsv: bool, asked: Asked) -> tuple[str, list[list[Cell]]]:
    """The separator, and the cells of each row; it is the one that parts the named headings."""
    found: list[tuple[str, list[list[Cell]]]] = []
    first = text.split("\n", 1)[0]
    for separator in "\t" if is_tsv else sorted(",;\t", key=lambda each: -first.count(each)):
        rows = _cut(text, separator, is_tsv, asked)
        found.append((separator, rows))
        if rows and set(asked.columns) <= {_value(text, cell) for cell in rows[0]}:
            return separator, rows
    return found[0]


def _cut(text: str, separator: str, is_tsv: bool, asked: Asked) -> list[list[Cell]]:
    quoted = "" if is_tsv else r'"(?:[^"]|"")*"|'
    cell = re.compile(rf"({quoted}[^{separator}\n]*?)({separator}|\r?\n|\r?\Z)")
    rows: list[list[Cell]] = [[]]
    at = 0
    while at < len(text) or rows[-1]:
        match = cell.match(text, at)
        if match is None or (not is_tsv and match[1].startswith('"') and not match[1].endswith('"')) or match[1] == '"':
            raise DataError(f"{asked.name}:{text.count(chr(10), 0, at) + 1}: a quote does not end where a cell does")
        rows[-1].append(match.span(1))
        at = match.end()
        if match[2] != separator:
            if at >= len(text):
                break
            rows.append([])
    return rows if rows[-1] else rows[:-1]


def _value(text: str, cell: Cell) -> str:
    return _unquoted(text[cell[0] : cell[1]])


def _unquoted(raw: str) -> str:
    return raw[1:-1].replace('""', '"') if len(raw) > 1 and raw[0] == raw[-1] == '"' else raw


def _cell(raw: str, separator: str, is_tsv: bool) -> list[Part]:
    """A unit for each line of a cell."""
    if is_tsv:
        return [Unit(raw, raw=[raw], escape=str)]
    if raw.startswith('"'):
        inner = raw[1:-1]
        parts: list[Part] = ['"']
        for number, line in enumerate(inner.split("\n")):
            parts += ["\n"] * (number > 0)
            parts.append(Unit(line.replace('""', '"'), raw=[line], escape=lambda text: text.replace('"', '""')))
        return [*parts, '"']
    return [Unit(raw, raw=[raw], escape=lambda text: _quoted_if_needed(text, separator))]


def _quoted_if_needed(text: str, separator: str) -> str:
    if separator in text or '"' in text:
        return '"' + text.replace('"', '""') + '"'
    return text
