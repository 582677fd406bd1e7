"""Parallel text in two columns of a table: ``.tsv`` and ``.csv``, each plain, ``.gz`` or ``.zst``.

A ``.tsv`` has no quotes: a tab ends a cell and LF a row. A ``.csv`` has commas, quotes as in RFC 4180, and line breaks
inside quotes; cleaning later drops a pair with a line break. The file is read like any text (``read_lines``), and every
row must have as many cells as the first.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from dragoman.data.corpus import read_lines
from dragoman.errors import DataError
from dragoman.languages.codes import variety
from dragoman.languages.known import is_known

SIDES = ({"src", "source"}, {"tgt", "target", "trg"})
"""Headings of the source and the target column that are not language codes."""

_CSV_ERRORS = {
    "unexpected end of data": "a quotation mark that opens a cell is never closed",
    "',' expected after '\"'": "text behind the quotation mark that closes a cell; write one inside a cell twice",
}

Columns = tuple[str, str]


def read_table(path: Path, columns: Columns | None) -> Iterator[tuple[str, str]]:
    """Yield source and target of each row.

    Args:
        columns: Source and target column by heading, or by number from 1. None: the first two; in a table of more than
            two columns the first row must name them as source and target.

    Raises:
        DataError: As ``read_lines``; or a row has more or fewer cells than the first, a quote does not end, or a column
            does not exist or must be chosen. The message names file and line.
    """
    rows = _rows(path)
    first_line, first = next(rows)
    src, tgt = _places(path, first, columns)
    data_rows: Iterator[tuple[int, list[str]]] = rows
    if not _has_headings(first, src, tgt, columns):
        data_rows = chain([(first_line, first)], rows)
    for line, row in data_rows:
        if not any(row):  # a blank line
            yield "", ""
            continue
        if len(row) != len(first):
            raise DataError(
                f"{path}:{line}: {_cells(row)}, but the first row has {len(first)}; each row needs all its cells"
            )
        yield row[src], row[tgt]


def table_languages(path: Path, columns: Columns | None) -> tuple[str | None, str | None]:
    """Return the languages that the headings of the columns name, None for a heading that is not a language code.

    Raises:
        DataError: As ``read_table``, for the first row.
    """
    first = next(_rows(path))[1]
    src, tgt = _places(path, first, columns)
    if not _has_headings(first, src, tgt, columns):
        return None, None
    named = [first[place].strip() for place in (src, tgt)]
    return tuple(name if is_known(name) else None for name in named)  # type: ignore[return-value]  # two


def _rows(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Yield the line number at which each row ends, and its cells."""
    lines = read_lines(path)
    if ".tsv" in path.suffixes:
        for number, line in enumerate(lines, start=1):
            yield number, line.split("\t")
        return
    reader = csv.reader((f"{line}\n" for line in lines), strict=True)
    while True:
        first_line = reader.line_num + 1
        try:
            row = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            reason = _CSV_ERRORS.get(str(error), str(error))
            raise DataError(f"{path}:{first_line}: not a row of a .csv: {reason}") from None
        yield reader.line_num, row


def _places(path: Path, first: list[str], columns: Columns | None) -> tuple[int, int]:
    """Return the numbers of the source and the target column, from 0."""
    if columns is None and len(first) > 2 and not _has_headings(first, 0, 1, None):
        raise DataError(f"{path}:1: {_cells(first)} ({_shown(first)}); choose source and target, for example "
                        "--columns 1,2")  # fmt: skip
    if not first:
        raise DataError(f"{path}:1: the first row has no cell; begin with headings or with the first pair")
    places = []
    for column in columns or ("1", "2"):
        if column in first:
            places.append(first.index(column))
        elif column.isdecimal() and 1 <= int(column) <= len(first):
            places.append(int(column) - 1)
        elif column.isdecimal():
            raise DataError(f"{path}:1: {_cells(first)}, so there is no column {column}; tabs part those of a .tsv, "
                            f"commas those of a .csv{', and here are semicolons' * (';' in first[0])}")  # fmt: skip
        else:
            raise DataError(f"{path}:1: no column has the heading {column!r}; the first row is: {_shown(first)}")
    return places[0], places[1]


def _has_headings(first: list[str], src: int, tgt: int, columns: Columns | None) -> bool:
    """True if the first row holds headings: the columns were chosen by heading, or it names two languages or sides."""
    cells = first[src].strip(), first[tgt].strip()
    by_name = any(column in cells for column in columns or ())
    two_languages = all(map(is_known, cells)) and variety(cells[0]) != variety(cells[1])
    return by_name or two_languages or all(cell.lower() in side for cell, side in zip(cells, SIDES, strict=True))


def _cells(row: list[str]) -> str:
    """Return the number of cells in words."""
    return f"{len(row)} cell" + ("" if len(row) == 1 else "s")


def _shown(row: list[str]) -> str:
    """Return the beginning of a row for a message."""
    return ", ".join(cell[:40] for cell in row[:10])
