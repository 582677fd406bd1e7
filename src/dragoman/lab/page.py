"""The HTML pages of the laboratory: one self-contained file for each experiment, and an index; no scripts."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from dragoman.files import write_text
from dragoman.lab import EXPERIMENTS
from dragoman.lab.experiment import Section, Table
from dragoman.pages.render import render

WORDS = {True: "holds", False: "does not hold", None: "open"}
"""Words for the decision on a claim."""


def write_page(folder: Path, record: dict[str, Any], sections: Sequence[Section]) -> None:
    """Write ``folder/index.html``, with the figures inside.

    Args:
        folder: Folder of the experiment, which has the figures as SVG files already.
        record: The content of its ``numbers.json``.
        sections: The sections of its report.
    """
    text = render(
        "lab_experiment.html", name=record["experiment"], claim=record["claim"], quick=record["quick"],
        verdict=record["verdict"], holds=WORDS, sections=[_section(folder, section) for section in sections],
        facts=_facts(record),
    )  # fmt: skip
    write_text(folder / "index.html", text)


def write_index(out: Path, records: Mapping[str, dict[str, Any] | None]) -> None:
    """Write ``out/index.html``: each experiment's verdict from its record, None for those not run yet."""
    decided = [claim["holds"] for record in records.values() if record is not None for claim in record["verdict"]]
    experiments = [(name, claim, records[name]) for name, claim in EXPERIMENTS.items()]
    write_text(out / "index.html", render("lab_index.html", decided=decided, experiments=experiments, holds=WORDS))


def _section(folder: Path, section: Section) -> dict[str, Any]:
    """Return a section as the template shows it: paragraphs, the figure in base64, the table's cells as text."""
    image = None
    if section.figure is not None:
        image = base64.b64encode((folder / f"{section.name}.svg").read_bytes()).decode()
    return {**plain_section(section), "image": image}


def plain_section(section: Section) -> dict[str, Any]:
    """Return a section's words and table as plain values, and the file name of its figure; empty ones are None."""
    texts = [section.text] if isinstance(section.text, str) else section.text
    return {
        "heading": section.heading, "texts": [text for text in texts if text], "caption": section.caption,
        "table": None if section.table is None else _table(section.table),
        "figure": None if section.figure is None else f"{section.name}.svg",
    }  # fmt: skip


def _table(table: Table) -> dict[str, Any]:
    """Return a table with its cells as text, and the kind of each column: "text", or "" for numbers."""
    numeric = [
        all(isinstance(row[i], int | float | None) for row in table.rows) if table.rows else False
        for i in range(len(table.columns))
    ]
    return {
        "columns": [str(name) for name in table.columns],
        "kinds": ["" if is_number else "text" for is_number in numeric],
        "rows": [[_cell(cell) for cell in row] for row in table.rows],
    }


def _cell(value: Any) -> str:
    """Return a cell as text: whole numbers with commas, other numbers with three significant digits."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.0f}" if 1000 <= abs(value) < 1e6 else f"{value:.3g}"
    return str(value)


def _facts(record: dict[str, Any]) -> str:
    """Return a line on when, how long and on which machine the experiment ran."""
    machine = record["machine"]
    where = machine.get("gpu") or machine["cpu"]
    options = "".join(f" Made with --{option}." for option in ("config", "run") if record[option] is not None)
    return (
        f"{record['date']}: {record['seconds']:,.0f} s on {where}, {machine['threads']} of {machine['cores']} threads, "
        f"torch {machine['torch']}, Python {machine['python']}.{options}"
    )
