"""The judge of tables: csv."""

from __future__ import annotations

import csv
import io

from benchmarks.real_documents.judging import Block, UnreadableError


def table(data: bytes, delimiter: str = ",") -> list[Block]:
    """Read rows and cells."""
    try:
        rows = list(csv.reader(io.StringIO(data.decode("utf-8-sig"), newline=""), delimiter=delimiter))
    except (csv.Error, UnicodeDecodeError) as error:
        raise UnreadableError(str(error)) from None
    return [Block(f"row {i}", [(str(j), cell) for j, cell in enumerate(row)]) for i, row in enumerate(rows)]


def tabbed(data: bytes) -> list[Block]:
    """Read a table with tabs."""
    return table(data, "\t")
