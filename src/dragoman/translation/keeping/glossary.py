"""A glossary: source terms and the target terms that must translate them.

The file has one term a line, in UTF-8: ``source TAB target``, or the source alone to copy it. A term without capitals
matches in any case ("dog" in "Dog" and "DOG"), another term only as it is written. Terms match whole words. Of
overlapping terms the first is taken, of those the longest.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_right
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple, Self

from dragoman.arguments import checked
from dragoman.data.corpus import read_lines
from dragoman.errors import ConfigError, DataError
from dragoman.languages.words import divides_word, is_whole


class Match(NamedTuple):
    """A term found in a text."""

    source: str  # as written in the text
    target: str  # what the translation must contain
    start: int = 0  # its position in the text


class Glossary:
    """Terms and their translations."""

    @checked
    def __init__(self, terms: Iterable[tuple[str, str | None]]) -> None:
        """Take (source, target) pairs; a target of None copies the source.

        Raises:
            DataError: A term is blank, or has two translations.
        """
        self._terms: dict[str, str | None] = {}
        for number, (source, target) in enumerate(terms, 1):
            self._add(source, target, f"glossary entry {number}")
        self._index()

    @classmethod
    @checked
    def load(cls, path: Path | str) -> Self:
        """Read a glossary file; blank lines are skipped.

        Raises:
            DataError: The file cannot be read, or a line is no term; the message names it.
        """
        glossary = cls(())
        for number, line in enumerate(read_lines(path), 1):
            fields = [field.strip() for field in line.split("\t")]
            where = f"{path}:{number}"
            if not any(fields):
                continue
            if len(fields) > 2:
                raise DataError(
                    f"{where}: {len(fields)} columns, but a glossary line is a source term, a tab, a target term"
                )
            if fields[-1] == "":
                raise DataError(f"{where}: a tab but no target term: add a term, or remove the tab to copy the source")
            glossary._add(fields[0], fields[1] if len(fields) > 1 else None, where)
        glossary._index()
        return glossary

    def _add(self, source: str, target: str | None, where: str) -> None:
        if not source.strip() or (target is not None and not target.strip()):
            raise DataError(f"{where}: a term is blank; write a source term, a tab and a target term")
        known = self._terms.get(source, target)
        if source in self._terms and known != target:
            raise DataError(
                f"{where}: {source!r} is translated as {target!r} here and as {known!r} above: keep one of them"
            )
        self._terms[source] = target

    def _index(self) -> None:
        """Sort the terms, and find for each the longest other terms with which it begins."""
        self._sorted = sorted(self._terms)
        self._longest = max(map(len, self._sorted), default=0)
        self._beginning: list[int] = []  # index of that other term; -1 for none
        self._whole: list[int] = []  # the same for the longest after which no word continues
        beginnings: list[int] = []
        for number, term in enumerate(self._sorted):
            while beginnings and not term.startswith(self._sorted[beginnings[-1]]):
                beginnings.pop()
            other = beginnings[-1] if beginnings else -1
            self._beginning.append(other)
            is_cut = other >= 0 and not is_whole(term, 0, len(self._sorted[other]))
            self._whole.append(self._whole[other] if is_cut else other)
            beginnings.append(number)

    @classmethod
    @checked
    def of(cls, source: Self | Path | str | Mapping[str, str | None] | None) -> Self | None:
        """Return a glossary from a glossary, a file or a mapping of terms; None if it has no terms.

        Raises:
            ConfigError: The argument is something else.
            DataError: As ``load``.
        """
        if isinstance(source, Path | str):
            source = cls.load(source)
        elif isinstance(source, Mapping):
            source = cls(source.items())
        elif source is not None and not isinstance(source, cls):
            raise ConfigError(f"glossary must be a Glossary, a file or a mapping of terms, got {source!r}")
        return source or None

    def __repr__(self) -> str:
        digest = hashlib.sha256(repr(sorted(self._terms.items(), key=str)).encode()).hexdigest()
        return f"Glossary({len(self):,} terms, {digest[:16]})"  # equal for equal terms, whatever their source

    def __len__(self) -> int:
        return len(self._terms)

    @checked
    def find(self, text: str) -> list[Match]:
        """Return all occurrences of terms in ``text``, in order."""
        matches = []
        # Each character keeps its place: this one alone would become two.
        lower = "İ".join(part.lower() for part in text.split("İ"))
        start = 0
        while start < len(text):
            match = self._at(text, lower, start)
            if match is not None:
                matches.append(match)
            start += len(match.source) if match is not None else 1
        return matches

    def _at(self, text: str, lower: str, start: int) -> Match | None:
        if divides_word(text, start):
            return None
        # lower case matches only terms without capitals; of equally long terms the exact one is taken
        terms = [self._term_at(form, start) for form in (text, lower)]
        term = max(terms, key=len)
        if not term:
            return None
        source = text[start : start + len(term)]
        return Match(source, self._terms[term] or source, start)

    def _term_at(self, text: str, start: int) -> str:
        """Return the longest term that stands at ``start`` and ends with a word; "" if there is none.

        The time does not grow with the number of different lengths of terms: a glossary may have thousands.
        """
        there = text[start : start + self._longest]
        # The term that sorts right before the text begins with all terms with which the text begins.
        number = bisect_right(self._sorted, there) - 1
        while number >= 0 and not there.startswith(self._sorted[number]):
            number = self._beginning[number]
        if number >= 0 and not is_whole(text, start, start + len(self._sorted[number])):
            number = self._whole[number]
        return self._sorted[number] if number >= 0 else ""
