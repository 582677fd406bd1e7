"""The first pass looks at each pair by itself, and notes digests and lengths."""

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
    scripts_of,
)
from dragoman.languages.stopwords import words_of

NEARLY = 0.8  # share of the words of both sides that are the same
CASED = ("latin", "cyrillic", "greek")


class FirstPass:
    """Counts into ``tallies`` what single pairs show."""

    def __init__(self, corpus: TextFiles) -> None:
        self.corpus = corpus
        self.tallies: dict[str, Tally] = {}
        self.sample = Sample()
        self.n = 0
        self._scripts: list[tuple[str, ...]] = []
        self._digests: list[Digests] = [np.zeros((0, 4), np.int64)]
        self._lengths: list[NDArray[np.uint32]] = [np.zeros((0, 4), np.uint32)]

    def digests(self) -> Digests:
        """Of all pairs, ``(pairs, 4)``."""
        return np.concatenate(self._digests)

    def lengths(self) -> NDArray[np.uint32]:
        """Characters of source and target, words of source and target, ``(pairs, 4)``."""
        return np.concatenate(self._lengths)

    def add(self, src: list[str], tgt: list[str]) -> None:
        """Examine one chunk."""
        self.sample.add(src, tgt)
        counts = count_classes(src), count_classes(tgt)
        if not self._scripts:
            langs = self.corpus.src_lang, self.corpus.tgt_lang
            self._scripts = [scripts_of(lang, c.sum(0)) for lang, c in zip(langs, counts, strict=True)]
        files = files_of(self.corpus)
        self._characters("source", files[0].name, src, counts[0], self._scripts[0])
        self._characters("target", files[-1].name, tgt, counts[1], self._scripts[1])
        words = [words_of(text) for text in src], [words_of(text) for text in tgt]
        cased = all(set(scripts) & set(CASED) for scripts in self._scripts)
        digests = np.empty((len(src), 4), np.int64)
        for i, (s, t, src_words, tgt_words) in enumerate(zip(src, tgt, *words, strict=True)):
            (digests[i, 0], digests[i, 2]), (digests[i, 1], digests[i, 3]) = (
                digests_of(s, src_words),
                digests_of(t, tgt_words),
            )
            for name in odd_in_pair(s, t, src_words, tgt_words, cased):
                self._tally(name).add(self.n + i + 1, pair_text(s, t))
        self._digests.append(digests)
        self._lengths.append(np.array([list(map(len, lines)) for lines in (src, tgt, *words)], np.uint32).T)
        self.n += len(src)

    def _tally(self, name: str) -> Tally:
        return self.tallies.setdefault(name, Tally())

    def _characters(self, side: str, file: str, lines: list[str], counts: Counts, scripts: tuple[str, ...]) -> None:
        """Odd characters and wrong scripts of one side of a chunk."""
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


def odd_in_pair(src: str, tgt: str, src_words: Sequence[str], tgt_words: Sequence[str], cased: bool) -> list[str]:
    """Names of what is odd about one pair.

    Args:
        src_words, tgt_words: In lower case.
        cased: Whether both languages have capitals.
    """
    if not src.strip() or not tgt.strip():
        return ["empty"]
    found = ["line-break"] if "\n" in src or "\n" in tgt else []  # of a quoted cell
    if is_untranslated(src_words, tgt_words):
        found.append("untranslated")
    if cased and src.isupper() != tgt.isupper() and min(len(src_words), len(tgt_words)) > 1 and _has_lower(src, tgt):
        found.append("case")
    marks = last_mark(src), last_mark(tgt)
    if marks[0] != marks[1] and 4 not in marks:
        found.append("final-mark")
    return found


def _has_lower(src: str, tgt: str) -> bool:
    """Whether the side that is not in capitals has letters that could be."""
    return any(c.islower() for c in (tgt if src.isupper() else src))


def is_untranslated(src_words: Sequence[str], tgt_words: Sequence[str]) -> bool:
    """The same words on both sides, or of four words and more nearly the same; numbers alone need no translation."""
    if src_words == tgt_words:
        return any(not word.isdigit() for word in src_words)
    if min(len(src_words), len(tgt_words)) < 4:
        return False
    one, other = set(src_words), set(tgt_words)
    return len(one & other) >= NEARLY * len(one | other)
