"""The pages of the laboratory: one self-contained HTML file for each experiment, and an index; no script."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dragoman.files import write_text
from dragoman.lab import EXPERIMENTS
from dragoman.lab.report import Section, Table, read_record
from dragoman.pages.render import render

WORDS = {True: "holds", False: "does not hold", None: "open"}


def write_page(folder: Path, record: dict[str, Any], sections: Sequence[Section]) -> None:
    """Write ``folder/index.html``; the figures' SVG files lie there already, and are put inside."""
    text = render(
        "lab_experiment.html", name=record["experiment"], claim=record["claim"], quick=record["quick"],
        verdict=record["verdict"], holds=WORDS, sections=[_section(folder, section) for section in sections],
        facts=_facts(record),
    )  # fmt: skip
    write_text(folder / "index.html", text)


def write_index(out: Path) -> None:
    """Write ``out/index.html`` from the numbers that lie below ``out``."""
    records = {name: read_record(out / name) for name in EXPERIMENTS}
    decided = [claim["holds"] for record in records.values() if record is not None for claim in record["verdict"]]
    experiments = [(name, claim, records[name]) for name, claim in EXPERIMENTS.items()]
    write_text(out / "index.html", render("lab_index.html", decided=decided, experiments=experiments, holds=WORDS))


def _section(folder: Path, section: Section) -> dict[str, Any]:
    texts = [section.text] if isinstance(section.text, str) else section.text
    image = None
    if section.figure is not None:
        image = base64.b64encode((folder / f"{section.name}.svg").read_bytes()).decode()
    return {
        "heading": section.heading, "texts": [text for text in texts if text], "caption": section.caption,
        "image": image, "table": None if section.table is None else _table(section.table),
    }  # fmt: skip


def _table(table: Table) -> dict[str, Any]:
    """Its cells as text, and of each column whether it is ``text`` or numbers."""
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
    """Text as it is; whole numbers with commas; others with three digits that count."""
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
    machine = record["machine"]
    where = machine.get("gpu") or machine["cpu"]
    given = "".join(f" Made with --{option}." for option in ("config", "run") if record[option] is not None)
    return (
        f"{record['date']}: {record['seconds']:,.0f} s on {where}, {machine['threads']} of {machine['cores']} threads, "
        f"torch {machine['torch']}, Python {machine['python']}.{given}"
    )
