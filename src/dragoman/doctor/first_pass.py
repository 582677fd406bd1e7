"""The first pass over a corpus: checks that need one pair only; it also gathers digests, lengths and a sample."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dragoman.config import TextFiles
from dragoman.doctor.alignment import last_mark
from dragoman.doctor.findings import N_EXAMPLES, Tally, pair_text
from dragoman.doctor.forms import has_other_tags, is_placeholder
from dragoman.doctor.paired_lines import AS_IT_IS, Reading, Sample
from dragoman.doctor.repeats import Digests, digests_of
from dragoman.languages.scripts import Counts, count_classes, in_another_script, is_blank, scripts_of
from dragoman.languages.stopwords import words_of

NEARLY_ALL = 0.8
"""Fraction of the words of both sides that must be the same for a pair to count as not translated."""

CASED = ("latin", "cyrillic", "greek")
"""Scripts with capital letters."""


class FirstPass:
    """Checks chunks of pairs one after another, and counts problems in ``tallies``."""

    def __init__(self, corpus: TextFiles, reading: Reading = AS_IT_IS) -> None:
        self.corpus, self.reading = corpus, reading
        self.tallies: dict[str, Tally] = {}
        self.sample = Sample()
        self.n = 0
        self._in_other_script: tuple[list[tuple[int, str]], list[tuple[int, str]]] = ([], [])
        self.explained: list[int] = []  # pairs whose script needs no other explanation
        self._blank: list[int] = []  # pairs with a blank side
        self._open_ends: list[NDArray[np.bool_]] = [np.zeros((0, 2), np.bool_)]
        self.scripts: list[tuple[str, ...]] = []
        self._digests: list[Digests] = [np.zeros((0, 4), np.int64)]
        self._lengths: list[NDArray[np.uint32]] = [np.zeros((0, 4), np.uint32)]

    def digests(self) -> Digests:
        """Return the digests of all pairs, ``(pairs, 4)``."""
        return np.concatenate(self._digests)

    def lengths(self) -> NDArray[np.uint32]:
        """Return the lengths of all pairs: characters of source and target, then words of both, ``(pairs, 4)``."""
        return np.concatenate(self._lengths)

    def open_ends(self) -> NDArray[np.bool_]:
        """Return for each side of all pairs if it ends without a mark, ``(pairs, 2)``."""
        return np.concatenate(self._open_ends)

    def has_blank(self) -> NDArray[np.bool_]:
        """Return for all pairs if a side is blank, ``(pairs,)``."""
        result = np.zeros(self.n, np.bool_)
        result[self._blank] = True
        return result

    def add(self, src: list[str], tgt: list[str]) -> None:
        """Check the next chunk of pairs, line ``i`` of ``src`` with line ``i`` of ``tgt``."""
        self.sample.add(src, tgt)
        counts = count_classes(src), count_classes(tgt)
        # The scripts of both languages are settled once, where they are not known from the characters of this chunk.
        if not self.scripts:
            langs = self.corpus.src_lang, self.corpus.tgt_lang
            self.scripts = [scripts_of(lang, c.sum(0)) for lang, c in zip(langs, counts, strict=True)]
        self._check_scripts(0, src, counts[0])
        self._check_scripts(1, tgt, counts[1])
        words = [words_of(text) for text in src], [words_of(text) for text in tgt]
        both_cased = all(set(scripts) & set(CASED) for scripts in self.scripts)
        digests = np.empty((len(src), 4), np.int64)
        for i, (s, t, src_words, tgt_words) in enumerate(zip(src, tgt, *words, strict=True)):
            (src_text, src_normal), (tgt_text, tgt_normal) = digests_of(s, src_words), digests_of(t, tgt_words)
            digests[i] = src_text, tgt_text, src_normal, tgt_normal
            for name in pair_problems((s, t), src_words, tgt_words, both_cased):
                self._tally(name).add(self.reading.line(self.n + i), pair_text(s, t))
                if name in ("empty", "untranslated", "placeholder"):
                    self.explained.append(self.n + i)
                if name == "empty":
                    self._blank.append(self.n + i)
            if "<" in s or "<" in t:
                for side, (text, is_odd) in enumerate(zip((s, t), has_other_tags(s, t), strict=True)):
                    if is_odd:
                        self._tally("markup").add(self.reading.line(self.n + i, side), text, side)
        self._digests.append(digests)
        self._lengths.append(np.array([list(map(len, lines)) for lines in (src, tgt, *words)], np.uint32).T)
        self._open_ends.append(np.array([[last_mark(line) == 0 for line in lines] for lines in (src, tgt)]).T)
        self.n += len(src)

    def _tally(self, name: str) -> Tally:
        return self.tallies.setdefault(name, Tally())

    def _check_scripts(self, side: int, lines: list[str], counts: Counts) -> None:
        """Remember the lines of one side of a chunk that are in a wrong script."""
        for i in np.flatnonzero(in_another_script(counts, self.scripts[side])).tolist():
            example = lines[i][:200] if len(self._in_other_script[side]) < N_EXAMPLES else ""
            self._in_other_script[side].append((self.n + i, example))

    def exchanged_scripts(self) -> frozenset[int]:
        """Return the pairs, from 0, of which each side is in a wrong script, where the languages share no script."""
        if not share_no_script(self.scripts):
            return frozenset()
        src, tgt = ({pair for pair, _ in lines} for lines in self._in_other_script)
        return frozenset(src & tgt)

    def count_scripts(self, tallies: dict[str, Tally], explained: NDArray[np.bool_]) -> None:
        """Add the lines in a wrong script to the tallies, without the pairs that another finding explains.

        Args:
            tallies: Counts by kind.
            explained: True for each pair that another finding explains, ``(pairs,)``.
        """
        for side, name in enumerate(("source-script", "target-script")):
            for pair, example in self._in_other_script[side]:
                if not explained[pair]:
                    tallies.setdefault(name, Tally()).add(self.reading.line(pair, side), example, side)


def share_no_script(scripts: Sequence[tuple[str, ...]]) -> bool:
    """Return True if no script is one of both languages; False where none is known, as there is no pair."""
    return bool(scripts) and set(scripts[0]).isdisjoint(scripts[1])


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
    if is_placeholder(src, tgt, src_words, tgt_words) or is_placeholder(tgt, src, tgt_words, src_words):
        return [*problems, "placeholder"]
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
