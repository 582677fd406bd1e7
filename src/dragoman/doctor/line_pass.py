"""The pass over each side by itself: bytes, characters and forms of every line, and what mends them."""

from __future__ import annotations

from functools import partial

import numpy as np

from dragoman.config import PairOfFiles, TextFiles
from dragoman.data.corpus import encoding_of
from dragoman.data.texts import files_of
from dragoman.doctor.columns import Habits
from dragoman.doctor.findings import LineRuns, Tally, level_of
from dragoman.doctor.forms import Form, detokenised
from dragoman.doctor.kinds import KINDS
from dragoman.doctor.paired_lines import Pairs, Reading, Repair, chunks
from dragoman.doctor.shifts import Surface
from dragoman.languages.scripts import CLASSES, count_classes, scripts_of

FORMS = (
    "subword-marks", "entity", "mojibake", "full-width", "normal-form", "no-break-words", "mixed-script", "control",
    "invisible",
)  # fmt: skip
"""Kinds of faults that a line is mended of by itself."""

OFTEN_BAD = 0.001
"""Share of the lines with bad bytes from which a file is in another encoding, rather than damaged."""

TOKENISED = 0.5
"""Share of the marks that stand apart from which text is tokenised."""

LOWER_CASE = 0.97
"""Share of the lines without a capital from which a side is in lower case."""

CASED = 0.5
"""Share of such lines up to which the other side is in upper and lower case."""


class LinePass:
    """Checks every line of both sides, and counts problems in ``tallies``."""

    def __init__(self, corpus: TextFiles, reading: Reading) -> None:
        self.corpus, self.reading = corpus, reading
        self.tallies: dict[str, Tally] = {}
        self.n_lines = (0, 0)
        self._surfaces = Surface(), Surface()
        self._habits = Habits(corpus.src_lang), Habits(corpus.tgt_lang)
        self._forms: list[Form] = []
        self._files = [path.name for path in (files_of(corpus)[0], files_of(corpus)[-1])]

    def run(self) -> None:
        """Read the whole text.

        Raises:
            DataError: A file cannot be read.
        """
        pairs = Pairs(self.corpus, self.tallies, self.reading)
        n = 0
        for sides in chunks(pairs, fill=True):
            counts = [count_classes(lines) for lines in sides]
            if not self._forms:
                langs = self.corpus.src_lang, self.corpus.tgt_lang
                self._forms = [Form(lang, scripts_of(lang, c.sum(0))) for lang, c in zip(langs, counts, strict=True)]
            for side, lines in enumerate(sides):
                self._surfaces[side].add(lines)
                self._check(side, n, lines, counts[side])
            n += len(sides[0])
        self.n_lines = pairs.n_lines
        self._count_habits()

    def _check(self, side: int, n: int, lines: list[str], counts: np.ndarray) -> None:
        """Count the faults of the next lines of one side, of which ``n`` were read before."""
        file, habits, form = self._files[side], self._habits[side], self._forms[side]
        for name in ("control", "replacement", "no-break space", "invisible"):
            for i in np.flatnonzero(counts[:, CLASSES.index(name)]).tolist():
                if name == "invisible" and not form.has_unseen(lines[i]):
                    continue
                self._add(name.replace(" ", "-"), n + i + 1, f"{file}: {lines[i]}", side)
        for i, line in enumerate(lines):
            habits.add(line)
            for name in form.faults(line):
                self._add(name, n + i + 1, f"{file}: {line}", side)

    def _add(self, name: str, line: int, example: str, side: int) -> None:
        self.tallies.setdefault(name, Tally()).add(line, example, side)

    def codecs(self) -> tuple[str | None, str | None]:
        """Return the encoding of each file that is in another one than UTF-8; None for the others."""
        if not isinstance(self.corpus, PairOfFiles):
            return None, None
        codecs: list[str | None] = []
        for side, path in enumerate((self.corpus.src, self.corpus.tgt)):
            bad = sorted(
                line
                for name in ("not-utf8", "nul")
                if name in self.tallies and side in self.tallies[name].runs
                for line in self.tallies[name].runs[side].firsts
            )
            n_bad = sum(
                last - first + 1
                for name in ("not-utf8", "nul")
                if name in self.tallies
                for first, last in self.tallies[name].runs.get(side, LineRuns())
            )
            encoding = encoding_of(path, bad[0]) if n_bad > OFTEN_BAD * self.n_lines[side] else None
            codecs.append(None if encoding is None else encoding.codec)
        return codecs[0], codecs[1]

    def surfaces(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the tables of ``Surface`` of both sides."""
        src, tgt = (surface.table()[:n] for surface, n in zip(self._surfaces, self.n_lines, strict=True))
        return src, tgt

    def repairs(self, of_notes: bool) -> tuple[Repair | None, Repair | None]:
        """Return the repairs of the lines of both sides; None where none is needed.

        Args:
            of_notes: True to repair all that was seen, as checks need it; False to leave alone what is only a note.
        """
        n = sum(self.n_lines)
        names = {
            name
            for name in FORMS
            if name in self.tallies
            and (of_notes or level_of(KINDS[name], self.tallies[name].count / max(n, 1)) != "note")
        }
        repairs: list[Repair | None] = []
        for side, habits in enumerate(self._habits):
            steps: list[Repair] = []
            if column := habits.column():
                steps.append(column.text_of)
            if own := frozenset(name for name in names if side in self.tallies[name].runs):
                steps.append(partial(self._forms[side].repaired, names=own))
            if "tokenised" in self.tallies and side in self.tallies["tokenised"].runs:
                steps.append(partial(detokenised, lang=self._forms[side].lang))
            repairs.append(_one_after_another(steps) if steps else None)
        return repairs[0], repairs[1]

    def _count_habits(self) -> None:
        """Add columns, tokenised text and lower case to the tallies."""
        for side, habits in enumerate(self._habits):
            other = self._habits[1 - side]
            if column := habits.column():
                self._add_runs("column", side, column.separator)
            if habits.tokenised >= TOKENISED:
                self._add_runs("tokenised", side, "tokenised")
            if (
                habits.lower_case >= LOWER_CASE
                and other.n > 0
                and (other.lower_case <= CASED if other.has_case else habits.has_sentences)
            ):
                self._add_runs("lower-case", side, "lower-case")

    def _add_runs(self, kind: str, side: int, name: str) -> None:
        """Add the lines that a file's habits have under a name to the tally of a kind."""
        examples = self._habits[side].examples[name]
        for line in self._habits[side].runs[name].lines():
            self._add(kind, line, f"{self._files[side]}: {examples[line]}" if line in examples else "", side)


def _one_after_another(steps: list[Repair]) -> Repair:
    def repaired(line: str) -> str:
        for step in steps:
            line = step(line)
        return line

    return repaired
