"""The judge of tables: Python's csv with the dialect that fits, and the columns that a translator would choose."""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from pathlib import Path

from benchmarks.real_documents.judging import Block, UnreadableError

SEPARATORS = ",;\t|"
WORDS = re.compile(r"[A-Za-z]{2,}[ '’-]+[A-Za-z]{2,}|^[A-Za-z]{4,}$")
"""A cell with words: two of them, or one long one."""
ADDRESS = re.compile(r"^\S*(?:://|@)\S*$|^\w+\.\w+$")
"""A cell that may stay as it is."""
MOST_FIELD = 10_000_000


def table(data: bytes) -> list[Block]:
    """Read the rows and cells of a ``.csv``; a cell that begins a formula need not be translated."""
    return _blocks(data, "")


def tabbed(data: bytes) -> list[Block]:
    """Read a table with tabs."""
    return _blocks(data, "\t")


def columns_of(path: Path, data: bytes) -> tuple[str, ...]:
    """Return the headings of the columns of which at least half of the cells have words."""
    try:
        rows = _rows(data, "\t" if path.suffix.lower() == ".tsv" else "") or [[]]
    except UnreadableError:
        return ()
    return tuple(rows[0][i] for i in _with_words(rows))


def _with_words(rows: list[list[str]]) -> list[int]:
    """Return the numbers of the columns that have a heading of their own and words in half of their cells."""
    first, *others = rows or [[]]
    chosen = []
    for i, heading in enumerate(first):
        cells = [row[i] for row in others if len(row) == len(first) and row[i].strip()]
        if heading.strip() and first.count(heading) == 1 and sum(map(_has_words, cells)) * 2 >= max(1, len(cells)):
            chosen.append(i)
    return chosen


def _has_words(cell: str) -> bool:
    return WORDS.search(cell) is not None


def _blocks(data: bytes, separator: str) -> list[Block]:
    rows = _rows(data, separator)
    chosen = _with_words(rows)
    is_one = bool(rows) and len(rows[0]) == 1  # the only column is translated, though nobody names it

    def is_chosen(j: int, cell: str) -> bool:
        return (j in chosen or (is_one and j == 0 and _has_words(cell))) and ADDRESS.search(cell) is None

    return [
        Block(f"row {i} cell {j}", [("", cell)], is_text=i > 0 and is_chosen(j, cell))
        for i, row in enumerate(rows) for j, cell in enumerate(row)
    ] + [Block(f"row {i}", marks=[str(len(row))], is_text=False) for i, row in enumerate(rows)]  # fmt: skip


def _rows(data: bytes, separator: str) -> list[list[str]]:
    csv.field_size_limit(MOST_FIELD)
    try:
        text = data.decode("utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig")
    except UnicodeDecodeError:
        text = data.decode("latin-1")
    lines = text.splitlines()
    if lines and re.fullmatch(r'"?sep=(.)"?', lines[0], re.IGNORECASE):
        separator, text = lines[0].strip('"')[4], text.split("\n", 1)[1]
    text = _without_comments(text, separator)
    try:
        return _read(text, separator or max(SEPARATORS, key=lambda candidate: _fit(text, candidate)))
    except csv.Error as error:
        raise UnreadableError(str(error)) from None


def _without_comments(text: str, separator: str) -> str:
    """Return a table without the lines with ``#`` above its headings, if these have more cells."""
    below = text
    while below.startswith("#"):
        line, _, below = below.partition("\n")
        own = separator or max(SEPARATORS, key=lambda candidate: _fit(below, candidate))
        if below and not below.startswith("#"):
            return below if line.count(own) < below.split("\n")[0].count(own) else text
    return text


def _read(text: str, separator: str) -> list[list[str]]:
    return list(csv.reader(io.StringIO(text, newline=""), delimiter=separator, skipinitialspace=True))


def _fit(text: str, separator: str) -> tuple[float, int]:
    try:
        rows = _read(text[:20_000], separator)[:50]
    except csv.Error:
        return 0.0, 0
    widths = Counter(map(len, rows))
    width, n = widths.most_common(1)[0] if widths else (0, 0)
    return (round(n / len(rows), 1), width) if width > 1 else (0.0, 0)
