"""What the parts of the page are made of: tables, spreads, ratios, and where figures come from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.harness.plots import number

Record = dict[str, Any]


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Markdown; numbers, in all columns but the first, to the right."""
    marks = ["---", *["--:"] * (len(head) - 1)]
    return "\n".join(f"| {' | '.join(row)} |" for row in (head, marks, *rows))


def spread(values: Mapping[str, float]) -> str:
    """``8,203 (8,100-8,250)``."""
    if values["runs"] == 1:
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


def source(record: Record) -> str:
    """Where figures come from: command, machine, versions, day."""
    machine, versions = record["machine"], dict(record["versions"])
    systems = record["figures"].get("systems", {})
    for preset in record["figures"].get("presets", {}).values():
        systems = {**systems, **preset.get("systems", {})}
    for system in systems.values():
        versions |= system.get("versions", {}) if isinstance(system.get("versions"), dict) else {}
    said = ", ".join(f"{name} {version}" for name, version in versions.items() if name not in ("numpy", "dragoman"))
    corpus = record["figures"].get("corpus")
    text = f" Text: {corpus}." if isinstance(corpus, str) else ""
    preloaded = f", {machine['preloaded']} preloaded" if "preloaded" in machine else ""
    return (
        f"`{record['command']}`, {record['date']}: {machine['cores']} cores, {machine['cpu']}, "
        f"{machine['memory_gib']} GiB{preloaded}.{text} Versions: {said}."
    )


def left_out(figures: Record) -> str:
    """Which systems refused, in their own words: a paragraph for each reason."""
    refused: dict[str, str] = figures.get("left_out", {})
    names = {why: ", ".join(name for name in refused if refused[name] == why) for why in refused.values()}
    return "".join(f"\n\nLeft out: {who}: {why}." for why, who in names.items())
