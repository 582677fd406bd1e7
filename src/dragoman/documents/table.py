"""Tables: ``.csv`` (commas, semicolons, tabs or bars; quotes as in RFC 4180) and ``.tsv`` (tabs).

The chosen columns are translated, or the only column of a table that has one. A cell of several lines is translated
line by line, and a line by its columns, as in plain text. The first row has the headings. If no column is named by its
heading, a sentence there is translated, and other text is named. Everything else keeps its bytes: a row with more or
fewer cells than the first, which is named, a formula, comments before the headings, and the line ``sep=;`` with which
Excel begins.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

from dragoman.data.rows import cells, is_position, separator_line
from dragoman.documents.document import Document, DocumentInfo, Untranslated, decode, text_document
from dragoman.documents.plain import columns
from dragoman.documents.table_rows import Row, rows_of
from dragoman.documents.units import Part, Unit
from dragoman.errors import DataError
from dragoman.translation.keeping.protected import has_letters

SUFFIXES = (".csv", ".tsv")
OPTIONS = ("columns",)

SEPARATORS = ",;\t|"
SAMPLE_ROWS = 100
"""Number of rows by which the separator is recognised."""

MOST_WORDS = 6
"""Number of words above which a cell of the first row is no heading."""

_HEADING = "line 1: taken for the heading of its column; name the column by it, or put headings above"
_SENTENCE_END = re.compile(r"[.!?\u2026\u3002\uff01\uff1f][\"')\]\u201d\u2019]*\s*\Z")
_COMMENTS = re.compile(r"(?:#[^\r\n]*(?:\r\n?|\n))+")
_FORMULA = re.compile(r"\s*[=+@-]\s*(?:\$?[A-Za-z]{1,3}\$?\d|[A-Za-z.]+\(|\(|\d+\s*[-+*/^])")
"""Begin of a formula: a reference, a function, or a calculation behind its sign."""


def read(data: bytes, info: DocumentInfo) -> Document:
    """Cut a table into the cells of the chosen columns; see ``document.Format``."""
    text = decode(data, info)
    separator, n_before = _separator(text.text, info)
    rows = rows_of(text.text, separator)
    for _ in range(n_before):
        next(rows)
    first = next(rows, None)
    if first is None:
        return text_document([text.text], text)
    headings = [_value(text.text[start:end]) for start, end in first.cells]
    wanted, has_headings = _wanted_columns(headings, info)
    table = _Table(text.text, separator, len(headings), wanted)
    chosen = [headings[i] for i in wanted]
    is_text = not has_headings and any(map(_is_sentence, chosen))
    pieces, left = table.pieces(chain([first], rows) if is_text else rows)
    if not has_headings and not is_text:
        left = [*(Untranslated(cell, _HEADING) for cell in chosen if has_letters(cell)), *left]
    parts = [part for piece in pieces for part in (piece.parts if isinstance(piece, _Bare) else [piece])]
    can_quote = not info.name.lower().endswith(".tsv")

    def save(render: Callable[[Sequence[Part]], str]) -> bytes:
        own = (
            piece.written(render, separator, can_quote) if isinstance(piece, _Bare) else render([piece])
            for piece in pieces
        )
        return text.encode("".join(own))

    return Document(parts, save, tuple(left), read_as=text.read_as)


@dataclass(frozen=True)
class _Bare:
    """A cell without quotes, which gets them if its translation needs them."""

    raw: str
    parts: Sequence[Part]

    def written(self, render: Callable[[Sequence[Part]], str], separator: str, can_quote: bool) -> str:
        """Return the translated cell."""
        text, source = render(self.parts), self.raw
        if text == source:
            return source
        opens, source_opens = (string.lstrip().startswith('"') for string in (text, source))
        if separator == "\t":  # here a quotation mark may be text, also at the beginning
            text = text.replace("\t", " ")
            needs_quotes = can_quote and opens and (not source_opens or text.rstrip().endswith('"'))
        else:
            needs_quotes = separator in text or opens or ('"' in text and '"' not in source)
        return f'"{_doubled(text)}"' if needs_quotes else text


_Piece = Part | _Bare


@dataclass(frozen=True)
class _Table:
    """The text of a table, and the columns to translate."""

    text: str
    separator: str
    n_columns: int
    wanted: list[int]

    def pieces(self, rows: Iterator[Row]) -> tuple[list[_Piece], list[Untranslated]]:
        """Return the source of all rows with the wanted cells as units, and the rows and cells that are left."""
        pieces: list[_Piece] = []
        left: list[Untranslated] = []
        copied_to = 0  # the source up to here is in ``pieces``
        for row in rows:
            if why := self._why_left(row):
                left.append(Untranslated(self.text[row.cells[0][0] : row.cells[-1][1]], f"line {row.line:,}: {why}"))
                continue
            if len(row.cells) == 1 < self.n_columns:  # a blank line
                continue
            for start, end in (row.cells[column] for column in self.wanted):
                source = self.text[start:end]
                if _FORMULA.match(_value(source)):
                    left.append(Untranslated(_value(source), f"line {row.line:,}: a formula"))
                    continue
                pieces += [self.text[copied_to:start], *_cell(source)]
                copied_to = end
        return [*pieces, self.text[copied_to:]], left

    def _why_left(self, row: Row) -> str:
        """Return why a row stays as it is; "" for a row of the table, or a blank line."""
        if row.fault:
            return row.fault
        is_blank = len(row.cells) == 1 and row.cells[0][0] == row.cells[0][1]
        if len(row.cells) == self.n_columns or is_blank:
            return ""
        return f"the row has {cells(len(row.cells))}, but the first one has {self.n_columns}"


def _is_sentence(cell: str) -> bool:
    """True for a cell of the first row that is plainly no heading: a sentence with its end, or a long one."""
    n_words = len(cell.split())
    return n_words > MOST_WORDS or (n_words > 1 and _SENTENCE_END.search(cell) is not None)


def _wanted_columns(headings: list[str], info: DocumentInfo) -> tuple[list[int], bool]:
    """Return the numbers of the columns to translate, from 0 and ascending, and whether one is named by its heading.

    A column is named by its heading or its number, see ``is_position``.
    """
    columns = info.columns or (headings if len(headings) == 1 else ())
    available = ", ".join(headings[:20])
    if not columns:
        raise DataError(f"{info.name}: which column is translated? Name one (column, --column); there are {available}")
    places: dict[str, list[int]] = {}
    for i, heading in enumerate(headings):
        for name in {heading, heading.strip()}:
            places.setdefault(name, []).append(i)
    numbers = set()
    has_headings = False
    for name in columns:
        of_name = places.get(name, [])
        if is_position(name, headings, columns):
            of_name = [int(name) - 1]
        else:
            has_headings = bool(info.columns)
        if len(of_name) != 1:
            advice = ": name it by its number" if of_name else ""
            raise DataError(
                f"{info.name}: {len(of_name) or 'no'} columns have the heading {name!r}{advice}; there are {available}"
            )
        numbers.update(of_name)
    return sorted(numbers), has_headings


def _separator(text: str, info: DocumentInfo) -> tuple[str, int]:
    """Return the separator, and the number of lines before the headings.

    Lines that begin with ``#`` and have fewer cells than the next line are comments.
    The separator is the one that the line ``sep=`` names, else the one by which most rows have as many cells as the
    first; one that yields the chosen headings comes before all others.
    """
    if info.name.lower().endswith(".tsv"):
        return "\t", 0
    if separator := separator_line(re.split(r"[\r\n]", text, maxsplit=1)[0]):
        return separator, 1
    comments = _COMMENTS.match(text)
    if comments:
        table = text[comments.end() :]
        best = max(SEPARATORS, key=lambda candidate: _fit(table, candidate, info.columns))
        *_, last = rows_of(comments[0], best)
        headings = next(rows_of(table, best), None)
        if headings is not None and len(last.cells) < len(headings.cells):
            return best, sum(1 for _ in rows_of(comments[0], best))
    return max(SEPARATORS, key=lambda candidate: _fit(text, candidate, info.columns)), 0


def _fit(text: str, separator: str, columns: tuple[str, ...]) -> tuple[bool, float, int]:
    """Return how well a separator fits: by the chosen headings, the share of equal rows, and the number of cells."""
    rows = [row for row, _ in zip(rows_of(text, separator), range(SAMPLE_ROWS), strict=False)]
    if not rows:
        return False, 0.0, 0
    headings = {_value(text[start:end]).strip() for start, end in rows[0].cells}
    n = len(rows[0].cells)
    equal = sum(len(row.cells) == n and not row.fault for row in rows) / len(rows) if n > 1 else 0.0
    return bool(columns) and {name.strip() for name in columns} <= headings, round(equal, 1), n


def _value(raw: str) -> str:
    """Return the text of a cell without the quotes around it."""
    return raw[1:-1].replace('""', '"') if len(raw) > 1 and raw[0] == raw[-1] == '"' else raw


def _cell(raw: str) -> list[_Piece]:
    """Return a unit for each column of each line of a cell, quoted as the cell is or as its translation needs."""
    if not (len(raw) > 1 and raw[0] == raw[-1] == '"'):
        return [_Bare(raw, columns(raw, lambda text: Unit(text, raw=[text], escape=str)))]
    parts: list[_Piece] = ['"']
    for number, line in enumerate(re.split(r"(\r?\n|\r)", raw[1:-1])):
        parts += [line] if number % 2 else columns(line, _unit_in_quotes)
    return [*parts, '"']


def _unit_in_quotes(raw: str) -> Unit:
    return Unit(raw.replace('""', '"'), raw=[raw], escape=_doubled)


def _doubled(text: str) -> str:
    """Return text with its quotation marks as they stand in quotes."""
    return text.replace('"', '""')
