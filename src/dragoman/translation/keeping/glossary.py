"""A glossary: source terms and the target terms that must translate them.

    glossary = Glossary.load("terms.tsv")             # or Glossary([("dog", "Hund"), ("GeForce", None)])
    glossary.find("A dog.")                           # [Match("dog", "Hund", 2)]
    len(glossary)                                     # number of terms

A term without capitals matches in any case ("dog" in "Dog" and "DOG"), another term only as it is written. Composed and
decomposed characters are equal. Terms match whole words. Of overlapping terms the first is taken, of those the longest.
``glossary_entries`` reads the lines of a file or a text.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple, Self

from dragoman.arguments import checked
from dragoman.data.corpus import read_lines
from dragoman.data.text_names import form_of
from dragoman.data.tokenizer import lone_surrogate
from dragoman.errors import ConfigError, DataError
from dragoman.languages.composition import compose, composed_places
from dragoman.languages.words import count_word, divides_word, is_whole
from dragoman.translation.keeping.glossary_entries import FORMS, is_text, lines_of_csv, read_entries

NOT_IN_A_TERM = "\t\n\r\0"
"""Characters that no term has: a translation is one line, and a tab parts the columns of many files."""


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
            DataError: A term is blank, has a line end, or has two translations.
        """
        self._terms: dict[str, str | None] = {}
        for number, (source, target) in enumerate(terms, 1):
            self._add(source, target, f"glossary entry {number}")
        self._index()

    @classmethod
    @checked
    def load(cls, path: Path | str) -> Self:
        """Read a glossary file, whose lines have the forms of ``glossary_entries``; a .csv has two columns.

        Raises:
            DataError: The file cannot be read, or a line is no term; the message names it.
        """
        is_csv = form_of(Path(path)) == ".csv"
        return cls._of_lines(lines_of_csv(Path(path)) if is_csv else read_lines(path), str(path))

    @classmethod
    @checked
    def parse(cls, text: str) -> Self:
        """Read a glossary from a text of lines such as ``dog = Hund``; their forms are those of a file.

        Raises:
            DataError: A line is no term; the message names it.
        """
        return cls._of_lines((line.removesuffix("\r") for line in text.split("\n")), "glossary")

    @classmethod
    def _of_lines(cls, lines: Iterable[str], name: str) -> Self:
        glossary = cls(())
        for entry in read_entries(lines, name):
            glossary._add(*entry)
        glossary._index()
        return glossary

    def _add(self, source: str, target: str | None, where: str) -> None:
        if not source.strip() or (target is not None and not target.strip()):
            raise DataError(f"{where}: a term is blank; write {FORMS}")
        for term in (source, target or ""):
            if (place := lone_surrogate(term)) is not None:
                raise DataError(f"{where}: character {place + 1} of {term!r} is half of a surrogate pair: replace it")
            if any(character in term for character in NOT_IN_A_TERM):
                raise DataError(f"{where}: {term!r} has a tab, a line end or a NUL, but a translation is one line")
        source, target = compose(source.strip()), target and target.strip()
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
        """Return a glossary from a glossary, a file, a text or a mapping of terms; None if it has no terms.

        A string is a text if it has entries such as ``dog = Hund`` and is no file.

        Raises:
            ConfigError: The argument is something else.
            DataError: As ``load``.
        """
        if isinstance(source, str) and glossary_file(source) is None:
            source = cls.parse(source)
        elif isinstance(source, Path | str):
            source = cls.load(source)
        elif isinstance(source, Mapping):
            source = cls(source.items())
        elif source is not None and not isinstance(source, cls):
            raise ConfigError(f"glossary must be a Glossary, a file, a text or a mapping of terms, got {source!r}")
        return source or None

    def __repr__(self) -> str:
        digest = hashlib.sha256(repr(sorted(self._terms.items(), key=str)).encode()).hexdigest()
        return f"Glossary({len(self):,} terms, {digest[:16]})"  # equal for equal terms, whatever their source

    def __len__(self) -> int:
        return len(self._terms)

    @property
    def terms(self) -> Mapping[str, str | None]:
        """Source terms with their target terms; None copies the source."""
        return self._terms

    @checked
    def find(self, text: str) -> list[Match]:
        """Return all occurrences of terms in ``text``, in order."""
        return [match for _, match in self._occurrences(text)]

    @checked
    def terms_in(self, text: str) -> tuple[str, ...]:
        """Return the source terms that occur in ``text``, each once, as the glossary writes them."""
        return tuple(dict.fromkeys(term for term, _ in self._occurrences(text)))

    def _occurrences(self, text: str) -> Iterator[tuple[str, Match]]:
        """Yield each occurrence with the term as the glossary writes it."""
        composed, places = composed_places(text)
        places.append(len(text))
        # Each character keeps its place: this one alone would become two.
        lower = "İ".join(part.lower() for part in composed.split("İ"))
        start = 0
        while start < len(composed):
            term = self._at(composed, lower, start)
            if term:
                first, end = places[start], places[start + len(term)]
                source = text[first:end]
                yield term, Match(source, self._terms[term] or source, first)
            start += len(term) or 1

    def _at(self, text: str, lower: str, start: int) -> str:
        """Return the term that stands at ``start``; "" if there is none."""
        if divides_word(text, start):
            return ""
        # lower case matches only terms without capitals; of equally long terms the exact one is taken
        return max((self._term_at(form, start) for form in (text, lower)), key=len)

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


def count_term(text: str, term: str) -> int:
    """Return how often a term stands in a text by itself; composed and decomposed characters are equal."""
    return count_word(compose(text), compose(term))


def glossary_file(source: object) -> Path | None:
    """Return the file that an option ``glossary`` names; None if it is no path, or a text of entries."""
    if isinstance(source, Path):
        return source
    if not isinstance(source, str) or (is_text(source) and not _is_file(source)):
        return None
    return Path(source)


def _is_file(name: str) -> bool:
    """True if there is a file of this name."""
    try:
        return Path(name).exists()
    except (OSError, ValueError):  # too long, or with a NUL
        return False
