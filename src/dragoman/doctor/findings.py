"""What was found: how many, where, how bad it is, and what to do about it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal, NamedTuple

Level = Literal["error", "warning", "note"]
LEVELS: tuple[Level, ...] = ("error", "warning", "note")
"""Training refuses it or is spoiled by it; it costs quality; good to know."""

N_EXAMPLES = 5
EXAMPLE_CHARACTERS = 100


class Finding(NamedTuple):
    """One thing that was found."""

    level: Level
    name: str  # stable, for programs
    what: str  # a clause that continues the count, or a whole sentence where there is nothing to count
    advice: str
    n: int = 0  # how many
    total: int = 0  # out of this many; 0: there is nothing to count
    unit: str = "pairs"
    lines: tuple[int, ...] = ()  # the first ones, from 1
    examples: tuple[str, ...] = ()
    text: str = ""  # which of several texts

    @property
    def share(self) -> float:
        """``n / total``, 0 where nothing is counted."""
        return self.n / self.total if self.total else 0.0

    def headline(self) -> str:
        """What and how many, in one line."""
        where = f"{self.text}: " if self.text else ""
        if not self.total:
            return f"{where}{self.what}"
        return f"{where}{self.n:,} of {self.total:,} {self.unit} ({percent(self.share)}) {self.what}"

    def as_json(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {**self._asdict(), "share": round(self.share, 6)}


class Kind(NamedTuple):
    """A thing that may be found: its words, and from which share on it is how bad."""

    what: str
    advice: str
    warning: float = 0.0  # a warning from this share on; below, a note
    error: float = 2.0  # an error from this share on; above 1: never
    unit: str = "pairs"
    silent: float = 0.0  # not worth a word below this share


class Tally:
    """Counts one kind and keeps its first examples."""

    def __init__(self) -> None:
        self.count = 0
        self.lines: list[int] = []
        self.examples: list[str] = []

    def add(self, line: int, example: str = "") -> None:
        """Count line ``line`` (from 1)."""
        self.count += 1
        if len(self.lines) < N_EXAMPLES:
            self.lines.append(line)
            self.examples.append(shortened(example))


def shortened(text: str, limit: int = EXAMPLE_CHARACTERS) -> str:
    """At most ``limit`` characters, with what is invisible written out."""
    text = text if len(text) <= limit else text[: limit - 1] + "…"
    return "".join(
        c if c.isprintable() else f"\\u{ord(c):04x}" if ord(c) < 0x10000 else f"\\U{ord(c):08x}" for c in text
    )


def pair_text(src: str, tgt: str) -> str:
    """Both sides in one line."""
    return f"{shortened(src)} | {shortened(tgt)}"


def findings_of(tallies: Mapping[str, Tally], kinds: Mapping[str, Kind], total: int) -> Iterator[Finding]:
    """Turn what was counted into findings."""
    for name, tally in tallies.items():
        kind = kinds[name]
        share = tally.count / max(total, 1)
        if not tally.count or share < kind.silent:
            continue
        level: Level = "error" if share >= kind.error else "warning" if share >= kind.warning else "note"
        yield Finding(
            level,
            name,
            kind.what,
            kind.advice,
            tally.count,
            total,
            kind.unit,
            tuple(tally.lines),
            tuple(tally.examples),
        )


def ranked(findings: Iterable[Finding]) -> list[Finding]:
    """The worst first; among equals what concerns everything, then the most frequent."""

    def place(finding: Finding) -> tuple[int, float, str]:
        concerns_all = not finding.total and finding.level != "note"
        return LEVELS.index(finding.level), -2.0 if concerns_all else -finding.share, finding.name

    return sorted(findings, key=place)


def percent(share: float) -> str:
    """``12.3%``; small shares keep two digits."""
    return f"{share:.1%}" if share >= 0.01 else f"{100 * share:.2g}%"


def report(findings: Iterable[Finding]) -> str:
    """For people: each finding with its lines, examples and advice."""
    blocks = []
    for finding in findings:
        block = [f"{finding.level}: {finding.headline()}  [{finding.name}]"]
        for line, example in zip(finding.lines, finding.examples, strict=False):
            block.append(f"    line {line:,}: {example}" if example else f"    line {line:,}")
        block.append(f"  -> {finding.advice}")
        blocks.append("\n".join(block))
    return "\n\n".join(blocks)
