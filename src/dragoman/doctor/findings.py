"""Findings: how many lines, which ones, how bad it is, and what to do about it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal, NamedTuple

Level = Literal["error", "warning", "note"]
LEVELS: tuple[Level, ...] = ("error", "warning", "note")
"""Levels from worst: training refuses the data or fails on it; quality suffers; good to know."""

N_EXAMPLES = 5
"""Number of lines that a finding shows."""

EXAMPLE_CHARACTERS = 100
"""Length of an example in characters; longer text is cut."""


class Finding(NamedTuple):
    """One thing worth knowing about a corpus or a run."""

    level: Level
    name: str  # stable, for programs
    what: str  # a clause that continues the count, or a whole sentence where nothing is counted
    advice: str
    n: int = 0  # lines or pairs it is about
    total: int = 0  # lines or pairs that were looked at; 0: nothing is counted
    unit: str = "pairs"
    lines: tuple[int, ...] = ()  # numbers of the first lines, from 1
    examples: tuple[str, ...] = ()
    text: str = ""  # name of the text it is about, where there are several

    @property
    def share(self) -> float:
        """Fraction of lines or pairs it is about, ``n / total``; 0 where nothing is counted."""
        return self.n / self.total if self.total else 0.0

    def headline(self) -> str:
        """Return the finding in one line, with its count."""
        where = f"{self.text}: " if self.text else ""
        if not self.total:
            return f"{where}{self.what}"
        return f"{where}{self.n:,} of {self.total:,} {self.unit} ({percent(self.share)}) {self.what}"

    def as_json(self) -> dict[str, Any]:
        """Return the fields and the share as plain values for JSON."""
        return {**self._asdict(), "share": round(self.share, 6)}


class Kind(NamedTuple):
    """A kind of finding: its words, and the shares from which it is a warning or an error."""

    what: str
    advice: str
    warning: float = 0.0  # a warning from this share on; below, a note
    error: float = 2.0  # an error from this share on; above 1: never
    unit: str = "pairs"
    silent: float = 0.0  # not reported below this share


class Tally:
    """The count of one kind of problem, with the numbers and texts of its first lines."""

    def __init__(self) -> None:
        self.count = 0
        self.lines: list[int] = []
        self.examples: list[str] = []

    def add(self, line: int, example: str = "") -> None:
        """Count line number ``line`` (from 1), and keep it as an example if few have been kept."""
        self.count += 1
        if len(self.lines) < N_EXAMPLES:
            self.lines.append(line)
            self.examples.append(shortened(example))


def shortened(text: str, limit: int = EXAMPLE_CHARACTERS) -> str:
    """Return the text cut to ``limit`` characters, with invisible characters written as escapes."""
    text = text if len(text) <= limit else text[: limit - 1] + "…"
    return "".join(
        c if c.isprintable() else f"\\u{ord(c):04x}" if ord(c) < 0x10000 else f"\\U{ord(c):08x}" for c in text
    )


def pair_text(src: str, tgt: str) -> str:
    """Return source and target, both shortened, in one line."""
    return f"{shortened(src)} | {shortened(tgt)}"


def findings_of(tallies: Mapping[str, Tally], kinds: Mapping[str, Kind], total: int) -> Iterator[Finding]:
    """Yield a finding for each tally whose share of ``total`` is worth reporting.

    Args:
        tallies: Counts by kind.
        kinds: Words and limits by kind.
        total: Lines or pairs that were looked at.
    """
    for name, tally in tallies.items():
        kind, share = kinds[name], tally.count / max(total, 1)
        if tally.count and share >= kind.silent:
            level: Level = "error" if share >= kind.error else "warning" if share >= kind.warning else "note"
            examples = tuple(tally.lines), tuple(tally.examples)
            yield Finding(level, name, kind.what, kind.advice, tally.count, total, kind.unit, *examples)


def ranked(findings: Iterable[Finding]) -> list[Finding]:
    """Return the findings from worst; within a level those about the whole corpus, then the most frequent."""

    def rank(finding: Finding) -> tuple[int, float, str]:
        concerns_all = not finding.total and finding.level != "note"
        return LEVELS.index(finding.level), -2.0 if concerns_all else -finding.share, finding.name

    return sorted(findings, key=rank)


def percent(share: float) -> str:
    """Return a fraction as text such as ``12.3%``; shares below 1% keep two significant digits."""
    return f"{share:.1%}" if share >= 0.01 else f"{100 * share:.2g}%"


def report(findings: Iterable[Finding]) -> str:
    """Return the findings as text for people, each with its lines, examples and advice."""
    blocks = []
    for finding in findings:
        block = [f"{finding.level}: {finding.headline()}  [{finding.name}]"]
        for line, example in zip(finding.lines, finding.examples, strict=False):
            block.append(f"    line {line:,}: {example}" if example else f"    line {line:,}")
        block.append(f"  -> {finding.advice}")
        blocks.append("\n".join(block))
    return "\n\n".join(blocks)
