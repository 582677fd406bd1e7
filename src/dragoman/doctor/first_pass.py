"""The first pass over a corpus: checks that need one pair only; it also gathers digests, lengths and a sample."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dragoman.config import TextFiles
from dragoman.data.texts import files_of
from dragoman.doctor.alignment import last_mark
from dragoman.doctor.findings import Tally, pair_text
from dragoman.doctor.paired_lines import Sample
from dragoman.doctor.repeats import Digests, digests_of
from dragoman.languages.scripts import (
    CLASSES,
    Counts,
    count_classes,
    has_entity,
    has_mojibake,
    in_another_script,
    is_blank,
    scripts_of,
)
from dragoman.languages.stopwords import words_of

NEARLY_ALL = 0.8
"""Fraction of the words of both sides that must be the same for a pair to count as not translated."""

CASED = ("latin", "cyrillic", "greek")
"""Scripts with capital letters."""


class FirstPass:
    """Checks chunks of pairs one after another, and counts problems in ``tallies``."""

    def __init__(self, corpus: TextFiles) -> None:
        self.corpus = corpus
        self.tallies: dict[str, Tally] = {}
        self.sample = Sample()
        self.n = 0
        self._scripts: list[tuple[str, ...]] = []
        self._digests: list[Digests] = [np.zeros((0, 4), np.int64)]
        self._lengths: list[NDArray[np.uint32]] = [np.zeros((0, 4), np.uint32)]

    def digests(self) -> Digests:
        """Return the digests of all pairs, ``(pairs, 4)``."""
        return np.concatenate(self._digests)

    def lengths(self) -> NDArray[np.uint32]:
        """Return the lengths of all pairs: characters of source and target, then words of both, ``(pairs, 4)``."""
        return np.concatenate(self._lengths)

    def add(self, src: list[str], tgt: list[str]) -> None:
        """Check the next chunk of pairs, line ``i`` of ``src`` with line ``i`` of ``tgt``."""
        self.sample.add(src, tgt)
        counts = count_classes(src), count_classes(tgt)
        # The scripts of both languages are settled once, where they are not known from the characters of this chunk.
        if not self._scripts:
            langs = self.corpus.src_lang, self.corpus.tgt_lang
            self._scripts = [scripts_of(lang, c.sum(0)) for lang, c in zip(langs, counts, strict=True)]
        files = files_of(self.corpus)
        self._check_characters("source", files[0].name, src, counts[0], self._scripts[0])
        self._check_characters("target", files[-1].name, tgt, counts[1], self._scripts[1])
        words = [words_of(text) for text in src], [words_of(text) for text in tgt]
        both_cased = all(set(scripts) & set(CASED) for scripts in self._scripts)
        digests = np.empty((len(src), 4), np.int64)
        for i, (s, t, src_words, tgt_words) in enumerate(zip(src, tgt, *words, strict=True)):
            (src_text, src_normal), (tgt_text, tgt_normal) = digests_of(s, src_words), digests_of(t, tgt_words)
            digests[i] = src_text, tgt_text, src_normal, tgt_normal
            for name in pair_problems((s, t), src_words, tgt_words, both_cased):
                self._tally(name).add(self.n + i + 1, pair_text(s, t))
        self._digests.append(digests)
        self._lengths.append(np.array([list(map(len, lines)) for lines in (src, tgt, *words)], np.uint32).T)
        self.n += len(src)

    def _tally(self, name: str) -> Tally:
        return self.tallies.setdefault(name, Tally())

    def _check_characters(
        self, side: str, file: str, lines: list[str], counts: Counts, scripts: tuple[str, ...]
    ) -> None:
        """Count odd characters and lines in a wrong script on one side of a chunk."""
        for name in ("control", "replacement", "no-break space", "invisible"):
            for i in np.flatnonzero(counts[:, CLASSES.index(name)]).tolist():
                self._tally(name.replace(" ", "-")).add(self.n + i + 1, f"{file}: {lines[i]}")
        for i, text in enumerate(lines):
            if has_mojibake(text):
                self._tally("mojibake").add(self.n + i + 1, f"{file}: {text}")
            if has_entity(text):
                self._tally("entity").add(self.n + i + 1, f"{file}: {text}")
        for i in np.flatnonzero(in_another_script(counts, scripts)).tolist():
            self._tally(f"{side}-script").add(self.n + i + 1, lines[i])


def pair_problems(
    pair: tuple[str, str], src_words: Sequence[str], tgt_words: Sequence[str], both_cased: bool
) -> list[str]:
    """Return the names of the problems that one pair shows.

    Args:
        pair: Source and target.
        src_words, tgt_words: Their words in lower case.
        both_cased: True if both languages have capital letters.
    """
    src, tgt = pair
    if is_blank(src) or is_blank(tgt):
        return ["empty"]
    problems = ["line-break"] if "\n" in src or "\n" in tgt else []  # possible in a quoted cell of a table
    if is_untranslated(src_words, tgt_words):
        problems.append("untranslated")
    # The side that is not in capitals must have a lower-case letter: digits and marks alone have no case.
    in_lower_case = any(c.islower() for c in (tgt if src.isupper() else src))
    if both_cased and src.isupper() != tgt.isupper() and in_lower_case and min(len(src_words), len(tgt_words)) > 1:
        problems.append("case")
    marks = last_mark(src), last_mark(tgt)
    if marks[0] != marks[1] and 4 not in marks:
        problems.append("final-mark")
    return problems


def is_untranslated(src_words: Sequence[str], tgt_words: Sequence[str]) -> bool:
    """Return True if both sides have the same words, or nearly the same words where there are four or more.

    Lines of numbers alone need no translation: for them it is False.
    """
    if src_words == tgt_words:
        return any(not word.isdigit() for word in src_words)
    if min(len(src_words), len(tgt_words)) < 4:
        return False
    src_set, tgt_set = set(src_words), set(tgt_words)
    return len(src_set & tgt_set) >= NEARLY_ALL * len(src_set | tgt_set)
