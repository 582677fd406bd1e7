"""The HTML pages of the laboratory: one self-contained file for each experiment, and an index; no scripts."""

from __future__ import annotations

import base64
import functools
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dragoman.files import write_text
from dragoman.lab import EXPERIMENTS
from dragoman.lab.chinese import in_chinese, said
from dragoman.lab.experiment import Section, Table
from dragoman.pages.render import refuse_other_page, render

WORDS = {True: "holds", False: "does not hold", None: "open"}
"""Words for the decision on a claim."""

PAGE = "index.html"


def refuse_other_report(folder: Path) -> None:
    """Check that the page of a folder replaces no other file than a page of the laboratory.

    Raises:
        ConfigError: It would.
    """
    refuse_other_page(folder / PAGE, "the laboratory", "dragoman lab</title>")


def write_page(folder: Path, record: dict[str, Any], language: str = "en") -> None:
    """Write ``folder/index.html``, with the figures inside.

    Args:
        folder: Folder of the experiment, which has the figures as SVG files already.
        record: The content of its ``numbers.json``.
        language: Language of the page: "en" or "zh".
    """
    shown = record if language == "en" else in_chinese(record)
    text = render(
        "lab_experiment.html", **_spoken(language), title=_title(record["experiment"], language),
        claim=said(f"{record['claim']}.", language), quick=record["quick"], verdict=shown["verdict"],
        sections=[{**section, "image": _image(folder, section)} for section in shown["sections"]],
        facts=said(_facts(record), language),
    )  # fmt: skip
    write_text(folder / PAGE, text)


def write_index(out: Path, records: Mapping[str, dict[str, Any] | None], language: str = "en") -> None:
    """Write ``out/index.html``: each experiment's verdict from its record, None for those not run yet."""
    decided = [claim["holds"] for record in records.values() if record is not None for claim in record["verdict"]]
    counts = (
        f"{decided.count(True)} of {len(decided)} statements hold, {decided.count(False)} do not, "
        f"{decided.count(None)} are open."
    )
    experiments = [
        (name, _title(name, language), said(f"{claim}.", language), _verdict(records[name], language))
        for name, claim in EXPERIMENTS.items()
    ]
    text = render("lab_index.html", **_spoken(language), counts=said(counts, language), experiments=experiments)
    write_text(out / PAGE, text)


def _spoken(language: str) -> dict[str, Any]:
    """Return what every page of the laboratory needs to speak a language."""
    return {
        "language": "en" if language == "en" else "zh-Hans",
        "said": functools.partial(said, language=language),
        "holds": {holds: said(word, language) for holds, word in WORDS.items()},
    }


def _title(name: str, language: str) -> str:
    """Return the title of an experiment's page."""
    return name.capitalize() if language == "en" else said(f"# {name}", language).removeprefix("# ")


def _verdict(record: dict[str, Any] | None, language: str) -> dict[str, Any] | None:
    """Return what the index shows of a record, if there is one."""
    if record is None or language == "en":
        return record
    return in_chinese({**record, "sections": []})


def _image(folder: Path, section: Mapping[str, Any]) -> str | None:
    """Return the figure of a section in base64; None if it has none."""
    return base64.b64encode((folder / section["figure"]).read_bytes()).decode() if section["figure"] else None


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
    """Return a line on when, how long and on which machines the experiment ran."""
    first, *others = map(_machine, record["machines"])
    parts = "".join(f" Parts are from {other}." for other in others)
    options = "".join(f" Made with --{option}." for option in ("config", "run") if record[option] is not None)
    return f"{record['date']}: {record['seconds']:,.0f} s on {first}.{parts}{options}"


def _machine(machine: Mapping[str, Any] | None) -> str:
    """Return a machine in words; None: results of earlier versions do not tell it."""
    if machine is None:
        return "a machine that an earlier version did not record"
    where = machine.get("gpu") or machine["cpu"]
    return (
        f"{where}, {machine['threads']} of {machine['cores']} threads, torch {machine['torch']}, "
        f"Python {machine['python']}"
    )
