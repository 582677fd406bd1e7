"""Rows of a table in text, cut at separators and line ends outside quotes, in time linear in the text.

for row in rows_of('id,text\\n1,"a, b"\\n', ","):
    row.line, row.cells      # (1, ((0, 2), (3, 7))) ...
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

Cell = tuple[int, int]
"""Start and end of a cell in the text, quotes included; blanks around quotes are not part of it."""

_QUOTES = re.compile('"+')
_BLANKS = re.compile(r"[ ]*")


@dataclass(frozen=True)
class Row:
    """Cells of a row, the number of its first line, and what is wrong with it."""

    line: int
    cells: Sequence[Cell]
    fault: str = ""


def rows_of(text: str, separator: str) -> Iterator[Row]:
    """Yield the rows of a table.

    A quoted cell begins and ends with a quotation mark, beside a separator or a line end; marks inside it are doubled.
    Where one does not end so, its row ends with the line and has a fault. A quotation mark elsewhere is part of a text.
    So are two in a table with tabs that have a line end and a tab between them: they belong to cells of two rows.
    A line ends at LF or CR LF; in a text without LF at CR.
    """
    scan = _Scan(text, separator)
    at, line = 0, 1
    while at < len(text):
        cells, end, fault = scan.row(at)
        yield Row(line, cells, fault)
        line += scan.n_lines(at, end)
        at = end


class _Scan:
    """A text, and where the quotes in it may close."""

    def __init__(self, text: str, separator: str) -> None:
        self.text, self.separator = text, separator
        self.newline = "\n" if "\n" in text or "\r" not in text else "\r"
        sign = re.escape(separator)
        self.plain = re.compile(rf"[^{sign}{self.newline}]*")
        # Of a run of quotation marks inside quotes each pair is one mark of the text; an odd one closes.
        runs = [match.span() for match in _QUOTES.finditer(text)]
        self.odd_ends = [end for start, end in runs if (end - start) % 2]
        self.run_ends = dict(runs)
        self._nexts: dict[str, int] = {}  # by sign

    def n_lines(self, start: int, end: int) -> int:
        """Return the number of line ends in a stretch of the text."""
        return self.text.count(self.newline, start, end)

    def row(self, at: int) -> tuple[list[Cell], int, str]:
        """Return the cells of the row that begins at ``at``, its end behind the line end, and its fault."""
        cells: list[Cell] = []
        while True:
            cell, end, fault = self._cell(at)
            if fault:
                first = cells[0][0] if cells else at
                stop = self._line_end(at)
                return [(first, stop)], min(stop + self._width(stop), len(self.text)), fault
            cells.append(cell)
            if self.text.startswith(self.separator, end):
                at = end + len(self.separator)
                continue
            return cells, min(end + self._width(end), len(self.text)), ""

    def _cell(self, at: int) -> tuple[Cell, int, str]:
        """Return a cell, the place of the separator or line end behind it, and its fault."""
        start = self._behind_blanks(at)
        if start not in self.run_ends:
            end = self.plain.match(self.text, at).end()  # type: ignore[union-attr]
            return (at, self._without_cr(at, end)), end, ""
        close = self._close(start)
        if close is not None and not self._is_over_cells(start, close):
            end = self._behind_blanks(close)
            if end == len(self.text) or self.text.startswith((self.separator, self.newline, "\r\n"), end):
                behind = end + 1 if self.text.startswith("\r\n", end) and self.newline == "\n" else end
                return (start, close), behind, ""
        if self.separator == "\t":  # in a table with tabs most quotation marks are text
            end = self.plain.match(self.text, at).end()  # type: ignore[union-attr]
            return (at, self._without_cr(at, end)), end, ""
        return (at, at), at, "a quote does not end where a cell does"

    def _close(self, start: int) -> int | None:
        """Return the place behind the mark that closes the quotes that open at ``start``; None if none does."""
        first_end = self.run_ends[start]
        if (first_end - start) % 2 == 0:  # the opening mark, and an odd number behind it
            return first_end
        following = bisect_left(self.odd_ends, first_end + 1)
        return self.odd_ends[following] if following < len(self.odd_ends) else None

    def _is_over_cells(self, start: int, end: int) -> bool:
        return self.separator == "\t" and all(self._next(sign, start) < end for sign in ("\t", self.newline))

    def _next(self, sign: str, at: int) -> int:
        """Return the first place of a sign from ``at`` on, or the end of the text; ``at`` never goes back."""
        if self._nexts.get(sign, -1) < at:
            place = self.text.find(sign, at)
            self._nexts[sign] = len(self.text) if place < 0 else place
        return self._nexts[sign]

    def _behind_blanks(self, at: int) -> int:
        return _BLANKS.match(self.text, at).end()  # type: ignore[union-attr]

    def _line_end(self, at: int) -> int:
        end = self.text.find(self.newline, at)
        return self._without_cr(at, len(self.text) if end < 0 else end)

    def _without_cr(self, start: int, end: int) -> int:
        return end - 1 if self.newline == "\n" and end > start and self.text[end - 1] == "\r" else end

    def _width(self, end: int) -> int:
        """Return the number of characters of the line end at ``end``."""
        return 2 if self.newline == "\n" and self.text.startswith("\r\n", end) else 1
