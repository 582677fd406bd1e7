"""Findings: how many lines, which ones, how bad it is, and what to do about it."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

Level = Literal["error", "warning", "note"]
LEVELS: tuple[Level, ...] = ("error", "warning", "note")
"""Levels from worst: training refuses the data or fails on it; quality suffers; good to know."""

N_EXAMPLES = 5
"""Number of lines that a finding shows."""

EXAMPLE_CHARACTERS = 100
"""Length of an example in characters; longer text is cut."""


N_PLACES = 20
"""Number of places that JSON holds; a list of lines has them all."""

COSTLY = 0.01
"""Cost from which text is to be mended before training: as if one pair in a hundred were wrong."""

FIT, MEND = "fit to train", "mend first"
"""The two verdicts on a text."""


class Place(NamedTuple):
    """Consecutive lines of one file, or of both sides."""

    file: str  # "" for pairs, which are numbered as the lines of the source
    first: int  # from 1
    last: int
    about: str = ""  # what is there, if the places of a finding differ

    def __str__(self) -> str:
        lines = f"{self.first}" if self.first == self.last else f"{self.first}-{self.last}"
        if self.file:
            return f"{self.file}:{lines}"
        return f"line{'s' * (self.first != self.last)} {lines}"


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
    places: tuple[Place, ...] = ()  # all lines, as ranges
    harm: float = 1.0  # part of the worth of a pair that it costs, 0 to 1

    @property
    def share(self) -> float:
        """Fraction of lines or pairs it is about, ``n / total``; 0 where nothing is counted."""
        return self.n / self.total if self.total else 0.0

    @property
    def cost(self) -> float:
        """Part of the corpus that is as good as lost, 0 to 1: the share times the harm of each pair."""
        return self.harm * self.share

    @property
    def is_harmful(self) -> bool:
        """True if training should wait until it is mended: an error, or a warning that costs ``COSTLY`` or more."""
        return self.level == "error" or (self.level == "warning" and self.cost >= COSTLY)

    def headline(self) -> str:
        """Return the finding in one line, with its count."""
        where = f"{self.text}: " if self.text else ""
        if not self.total:
            return f"{where}{self.what}"
        return f"{where}{self.n:,} of {self.total:,} {self.unit} ({percent(self.share)}) {self.what}"

    def as_json(self) -> dict[str, Any]:
        """Return the fields, the share and the first places as plain values for JSON."""
        places = [place._asdict() for place in self.places[:N_PLACES]]
        shares = {"share": round(self.share, 6), "cost": round(self.cost, 6)}
        return {**self._asdict(), "places": places, "n_places": len(self.places), **shares}


class Kind(NamedTuple):
    """A kind of finding: its words, and the shares from which it is a warning or an error."""

    what: str
    advice: str
    warning: float = 0.0  # a warning from this share on; below, a note
    error: float = 2.0  # an error from this share on; above 1: never
    unit: str = "pairs"
    silent: float = 0.0  # not reported below this share
    harm: float = 0.0  # part of the worth of a pair that it costs, 0 to 1


class LineRuns:
    """Line numbers in ascending order, stored as runs of consecutive ones: 16 bytes a run."""

    def __init__(self) -> None:
        self.firsts, self.lasts = array("Q"), array("Q")

    def add(self, line: int) -> None:
        """Add a line that is not before the last one; a line that was added already changes nothing."""
        if self.lasts and self.lasts[-1] in (line, line - 1):
            self.lasts[-1] = line
        else:
            self.firsts.append(line)
            self.lasts.append(line)

    def __iter__(self) -> Iterator[tuple[int, int]]:
        return zip(self.firsts, self.lasts, strict=True)

    def lines(self) -> Iterator[int]:
        """Yield every line."""
        for first, last in self:
            yield from range(first, last + 1)


class Tally:
    """The count of one kind of problem, with all its lines and the texts of its first ones.

    ``runs`` has the lines of each side: 0 the source, 1 the target, 2 pairs.
    """

    def __init__(self) -> None:
        self.count = 0
        self.lines: list[int] = []
        self.examples: list[str] = []
        self.runs: dict[int, LineRuns] = {}

    def add(self, line: int, example: str = "", side: int = 2) -> None:
        """Count line number ``line`` (from 1), and keep it as an example if few have been kept."""
        self.count += 1
        self.runs.setdefault(side, LineRuns()).add(line)
        if len(self.lines) < N_EXAMPLES:
            self.lines.append(line)
            self.examples.append(shortened(example))

    def places(self, files: tuple[str, str]) -> tuple[Place, ...]:
        """Return all lines as places in the source file and the target file."""
        names = (*files, "")
        return tuple(Place(names[side], *run) for side, runs in sorted(self.runs.items()) for run in runs)


def shortened(text: str, limit: int = EXAMPLE_CHARACTERS) -> str:
    """Return the text cut to ``limit`` characters, with invisible characters written as escapes."""
    text = text if len(text) <= limit else text[: limit - 1] + "…"
    return "".join(
        c if c.isprintable() else f"\\u{ord(c):04x}" if ord(c) < 0x10000 else f"\\U{ord(c):08x}" for c in text
    )


def pair_text(src: str, tgt: str) -> str:
    """Return source and target, both shortened, in one line."""
    return f"{shortened(src)} | {shortened(tgt)}"


def level_of(kind: Kind, share: float) -> Level:
    """Return how bad a kind of finding is at a share of the lines or pairs."""
    return "error" if share >= kind.error else "warning" if share >= kind.warning else "note"


def findings_of(
    tallies: Mapping[str, Tally], kinds: Mapping[str, Kind], total: int, files: tuple[str, str] = ("", "")
) -> Iterator[Finding]:
    """Yield a finding for each tally whose share of ``total`` is worth reporting.

    Args:
        tallies: Counts by kind.
        kinds: Words and limits by kind.
        total: Lines or pairs that were looked at.
        files: Names of the source and of the target in places.
    """
    for name, tally in tallies.items():
        kind, share = kinds[name], tally.count / max(total, 1)
        if tally.count and share >= kind.silent:
            yield Finding(
                level_of(kind, share), name, kind.what, kind.advice, tally.count, total, kind.unit,
                tuple(tally.lines), tuple(tally.examples), places=tally.places(files), harm=kind.harm,
            )  # fmt: skip


def ranked(findings: Iterable[Finding]) -> list[Finding]:
    """Return the findings by the harm they do: what is to be mended, then the other warnings, then the notes.

    Within each of these, an error about the whole corpus comes first, then the most costly, then the most frequent.
    """

    def rank(finding: Finding) -> tuple[int, float, float, str]:
        concerns_all = not finding.total and finding.level != "note"
        group = 0 if (finding.is_harmful and finding.total) or finding.level == "error" else LEVELS.index(finding.level)
        cost = 2.0 if concerns_all else finding.cost
        return group, -cost, -finding.share, finding.name

    return sorted(findings, key=rank)


def verdict(findings: Iterable[Finding]) -> str:
    """Return ``FIT`` or ``MEND``: the latter if a finding is harmful."""
    return MEND if any(finding.is_harmful for finding in findings) else FIT


def percent(share: float) -> str:
    """Return a fraction as text such as ``12.3%``; shares below 1% keep two significant digits."""
    return f"{share:.1%}" if share >= 0.01 else f"{100 * share:.2g}%"


def report(findings: Iterable[Finding]) -> str:
    """Return the findings as text for people, each with its lines, examples and advice."""
    blocks = []
    for finding in findings:
        block = [f"{finding.level}: {finding.headline()}  [{finding.name}]"]
        block += (f"    {where}" for where in shown_places(finding.places))
        for line, example in zip(finding.lines, finding.examples, strict=False):
            block.append(f"    line {line:,}: {example}" if example else f"    line {line:,}")
        block.append(f"  -> {finding.advice}")
        blocks.append("\n".join(block))
    return "\n\n".join(blocks)


def shown_places(places: Sequence[Place]) -> list[str]:
    """Return the longest places in a few lines of text, and how many more there are; none for single lines only."""
    if all(place.first == place.last and not place.about for place in places):
        return []
    longest = sorted(places, key=lambda place: (place.first - place.last, place.file, place.first))[:N_EXAMPLES]
    shown = sorted(longest, key=lambda place: (place.file, place.first))
    more = len(places) - len(shown)
    end = [f"and {more:,} other place{'s' * (more > 1)} (all lines: --list FILE)"] if more else []
    if any(place.about for place in shown):
        return [*(f"{place}: {place.about}" for place in shown), *end]
    return [" ".join(["in", ", ".join(map(str, shown)), *end])]


def listed(findings: Iterable[Finding]) -> Iterator[str]:
    """Yield the lines of a table of every line of every finding: its name, the file, the line, and what is there."""
    yield "finding\tfile\tline\tabout\n"
    for finding in findings:
        for place in finding.places:
            file = place.file or finding.text or "pair"
            for line in range(place.first, place.last + 1):
                yield f"{finding.name}\t{file}\t{line}\t{place.about}\n"
