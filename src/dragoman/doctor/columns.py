"""Faults that only a whole file shows: a column left in, tokenised text, lower case.

habits = Habits("de")
for line in lines:
    habits.add(line)
habits.column()         # Column("\\t", 2, 1): of two fields, the second is the text
"""

from __future__ import annotations

import re
from collections import Counter
from typing import NamedTuple

from dragoman.doctor.alignment import last_mark
from dragoman.doctor.findings import N_EXAMPLES, LineRuns
from dragoman.doctor.forms import spaced_marks
from dragoman.languages.casing import is_cased
from dragoman.languages.codes import primary

MOSTLY = 0.9
"""Share of the lines that must have a habit for it to be one of the file."""

LEAST_LINES = 20
"""Lines below which a file has no habits."""

MOST_FIELDS = 12

_NUMBER = re.compile(r"\A\s*+(\d{1,9})(?:\s*[.):|]\s+|\s+|\s*\|+\s*)(?=\S)")
_SEPARATORS = ("\t", " ||| ")


class Column(NamedTuple):
    """A rule that finds the text of a line among the columns that were left in."""

    separator: str  # "" for a number before the text
    n_fields: int
    field: int  # number of the text's field, from 0

    def has(self, line: str) -> bool:
        """True if a line has the columns."""
        if not self.separator:
            return _NUMBER.match(line) is not None
        return line.count(self.separator) == self.n_fields - 1

    def text_of(self, line: str) -> str:
        """Return the text of a line; a line without the columns is returned as it is."""
        if not self.has(line):
            return line
        return line.split(self.separator)[self.field] if self.separator else _NUMBER.sub("", line, count=1)


class Habits:
    """Habits that the lines of one file have in common, counted line by line."""

    def __init__(self, lang: str | None) -> None:
        self.n = 0
        self.runs: dict[str, LineRuns] = {}  # lines by a separator, "" for a number, "tokenised", "lower-case"
        self.examples: dict[str, dict[int, str]] = {}  # the first of these lines, by their numbers
        self._code = primary(lang)
        self._separated: dict[str, Counter[int]] = {separator: Counter() for separator in _SEPARATORS}
        self._letters: dict[tuple[str, int], list[int]] = {}
        self._distances: Counter[int] = Counter()
        self._spaced = self._marked = 0
        self._with_spaced = self._with_marks = 0
        self._with_end = 0
        self._cased = self._with_capitals = 0

    def add(self, line: str) -> None:
        """Count one line."""
        self.n += 1
        for separator in _SEPARATORS:
            if separator in line:
                self._count_fields(separator, line.split(separator))
                self._note(separator, line)
        if line[:1].isdigit() and (match := _NUMBER.match(line)):
            distance = int(match.group(1)) - self.n
            if len(self._distances) < 1000 or distance in self._distances:
                self._distances[distance] += 1
                self._note("", line)
        spaced, marked = spaced_marks(line, self._code)
        if spaced:
            self._note("tokenised", line)
        self._spaced += spaced
        self._marked += marked
        self._with_spaced += spaced > 0
        self._with_marks += spaced + marked > 0
        self._with_end += last_mark(line) in (1, 2, 3)
        lower = line.lower()
        if lower != line.upper() and (line.isascii() or any(map(is_cased, line))):
            self._cased += 1
            self._with_capitals += lower != line
            if lower == line:
                self._note("lower-case", line)

    def _note(self, name: str, line: str) -> None:
        self.runs.setdefault(name, LineRuns()).add(self.n)
        examples = self.examples.setdefault(name, {})
        if len(examples) < N_EXAMPLES:
            examples[self.n] = line

    def _count_fields(self, separator: str, fields: list[str]) -> None:
        n_fields = len(fields)
        self._separated[separator][n_fields] += 1
        if n_fields <= MOST_FIELDS:
            letters = self._letters.setdefault((separator, n_fields), [0] * n_fields)
            for i, field in enumerate(fields):
                letters[i] += sum(map(str.isalpha, field))

    def column(self) -> Column | None:
        """Return the rule that cuts off columns; None if there are none."""
        if self.n < LEAST_LINES:
            return None
        for separator, counts in self._separated.items():
            if counts:
                n_fields, lines = counts.most_common(1)[0]
                if n_fields <= MOST_FIELDS and lines >= MOSTLY * self.n:
                    letters = self._letters[separator, n_fields]
                    return Column(separator, n_fields, letters.index(max(letters)))
        # The numbers of lines: most differ from the real number of their line by the same amount.
        if self._distances and self._distances.most_common(1)[0][1] >= MOSTLY * self.n:
            return Column("", 2, 1)
        return None

    @property
    def tokenised(self) -> float:
        """Share of the marks that stand apart from their words, 0 to 1."""
        if self._with_spaced < max(LEAST_LINES, 0.3 * self._with_marks):
            return 0.0
        return self._spaced / max(self._spaced + self._marked, 1)

    @property
    def has_sentences(self) -> bool:
        """True if most lines end as sentences do."""
        return 2 * self._with_end >= self.n

    @property
    def has_case(self) -> bool:
        """True if most lines have letters with upper and lower case."""
        return self._cased >= LEAST_LINES and 2 * self._cased >= self.n

    @property
    def lower_case(self) -> float:
        """Share of the lines with letters that have no capital, 0 to 1; 0 where few lines have letters with case."""
        if not self.has_case:
            return 0.0
        return 1 - self._with_capitals / self._cased
