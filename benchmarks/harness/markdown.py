"""What the parts of the page are made of: tables, spreads, ratios, and where figures come from."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.harness.plots import number

Record = dict[str, Any]

Records = Mapping[str, Record]
"""The results of one measurement, by the name of the machine."""

USUAL_TEXT = "multi30k en-de"
"""The text that the page names once, at its top."""

UPPER = {"small": "SMALL", "base": "BASE", "tiny": "TINY", "big": "BIG"}


class Section(NamedTuple):
    """A part of the page: its text, and the plots it shows."""

    text: str
    draw: Sequence[tuple[str, Callable[[Path], None]]] = ()  # file name, what draws it


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Markdown; numbers, in all columns but the first, to the right."""
    marks = ["---", *["--:"] * (len(head) - 1)]
    return "\n".join(f"| {' | '.join(row)} |" for row in (head, marks, *rows))


def across(what: str, columns: Mapping[str, Mapping[str, str]]) -> str:
    """Return a table with a column for each machine that has any cell, and a row for each name with any.

    Args:
        what: What the cells are, at the head of the names.
        columns: For each machine the cells by name; an empty cell was not measured.
    """
    machines = [machine for machine, cells in columns.items() if any(cells.values())]
    names = dict.fromkeys(name for machine in machines for name in columns[machine])
    rows = [[name, *(columns[machine].get(name, "") for machine in machines)] for name in names]
    return table([what, *machines], [row for row in rows if any(row[1:])])


def spread(values: Mapping[str, float]) -> str:
    """``8,203 (8,100-8,250)``."""
    if values.get("runs", 1) == 1:
        return number(values["median"])
    return f"{number(values['median'])} ({number(values['min'])}-{number(values['max'])})"


def ratio(found: Mapping[str, Mapping[str, float]], ours: str, peer: str) -> str:
    """``4.50 (4.21-4.63)``, of all rounds, or nothing where they were not compared."""
    key = f"{ours} / {peer}"
    if key not in found:
        return ""
    values = found[key]
    told = f"{values['median']:.2f}"
    return told if values["runs"] == 1 else f"{told} ({values['min']:.2f}-{values['max']:.2f})"


def image(name: str, what: str) -> str:
    """A plot of this page."""
    return f"![{what}](../images/{name})"


def machine_of(machine: Mapping[str, Any]) -> str:
    """``2 cores, AMD EPYC (family 23, model 1), 23.5 GiB``."""
    return f"{machine['cores']} cores, {machine['cpu']}, {machine['memory_gib']} GiB"


def versions_of(record: Record) -> dict[str, str]:
    """Return the versions of the programs that a record was measured with, those of its systems among them."""
    versions = dict(record["versions"])
    systems = record["figures"].get("systems", {})
    for preset in record["figures"].get("presets", {}).values():
        systems = {**systems, **preset.get("systems", {})}
    for system in systems.values():
        versions |= system.get("versions", {}) if isinstance(system.get("versions"), dict) else {}
    return {name: version for name, version in versions.items() if name not in ("numpy", "dragoman")}


def sources(records: Records, note: Callable[[str, Record], str]) -> str:
    """Return a list with an entry for each machine: what was measured on it; the records have day and command."""
    return "\n".join(
        f"- *{machine}*: {note(machine, record['figures'])}{source(record)}" for machine, record in records.items()
    )


def source(record: Record) -> str:
    """Return the text that a record was measured with, if it is not the usual one, and what was preloaded."""
    corpus, machine = record["figures"].get("corpus"), record["machine"]
    text = f" Text: {corpus}." if isinstance(corpus, str) and corpus != USUAL_TEXT else ""
    return text + (f" Preloaded: {machine['preloaded']}." if "preloaded" in machine else "")
