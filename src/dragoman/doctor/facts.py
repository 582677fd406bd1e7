"""Counts and lengths of a corpus or a run, as a table for the terminal and for the page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dragoman.doctor.text_checks import Examination


def corpus_facts(examination: Examination) -> dict[str, Any]:
    """Return the number of pairs of a corpus, and the lengths of its sides in characters and in words."""
    facts: dict[str, Any] = {"pairs": examination.pairs}
    for unit, lengths in (("characters", examination.characters), ("words", examination.words)):
        for side, name in enumerate(("source", "target")):
            facts[f"{name}_{unit}"] = quantiles(lengths[:, side])
    return facts


def quantiles(lengths: NDArray[np.integer[Any]]) -> dict[str, int]:
    """Return the sum (``all``), the median, two high percentiles and the maximum of some lengths."""
    median, p95, p99 = (int(q) for q in np.quantile(lengths, (0.5, 0.95, 0.99)))
    return {"all": int(lengths.sum()), "median": median, "p95": p95, "p99": p99, "longest": int(lengths.max())}


def fact_rows(facts: Mapping[str, Any]) -> tuple[list[str], list[tuple[str, list[str]]]]:
    """Return facts as a table: the names of its columns, and its rows, each a name and one text per column.

    Args:
        facts: By name either a number, which goes into the first column, or several numbers by column.
    """
    columns = list(dict.fromkeys(c for fact in facts.values() if isinstance(fact, dict) for c in fact)) or [""]
    rows = []
    for name, fact in facts.items():
        numbers = fact if isinstance(fact, dict) else {columns[0]: fact}
        cells = [f"{numbers[c]:,}" if numbers.get(c) is not None else "" for c in columns]
        rows.append((name.replace("_", " ") if name.isidentifier() else name, cells))
    return columns, rows


def fact_lines(facts: Mapping[str, Any]) -> list[str]:
    """Return the table of ``fact_rows`` as aligned lines of text."""
    columns, rows = fact_rows(facts)
    table = [["", *columns], *([name, *cells] for name, cells in rows)]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    lines = [
        "  ".join(["", name.ljust(widths[0]), *(cell.rjust(w) for cell, w in zip(cells, widths[1:], strict=True))])
        for name, *cells in table
    ]
    return [line.rstrip() for line in lines if line.strip()]
