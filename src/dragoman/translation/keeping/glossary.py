"""A glossary: source terms and the target terms that must translate them.

The file has one term a line, in UTF-8: ``source TAB target``, or the source alone to copy it. A term without capitals
matches in any case ("dog" in "Dog" and "DOG"), another term only as it is written. Terms match whole words. Of
overlapping terms the first is taken, of those the longest.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple, Self

from dragoman.data.corpus import read_lines
from dragoman.errors import ConfigError, DataError
from dragoman.languages.words import is_whole


class Match(NamedTuple):
    """A term found in a text."""

    source: str  # as written in the text
    target: str  # what the translation must contain
    start: int = 0  # its position in the text


class Glossary:
    """Terms and their translations."""

    def __init__(self, terms: Iterable[tuple[str, str | None]]) -> None:
        """Take (source, target) pairs; a target of None copies the source.

        Raises:
            DataError: A term is blank, or has two translations.
        """
        self._terms: dict[str, str | None] = {}
        for number, (source, target) in enumerate(terms, 1):
            self._add(source, target, f"glossary entry {number}")
        self._lengths = sorted({len(term) for term in self._terms}, reverse=True)

    @classmethod
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
        glossary._lengths = sorted({len(term) for term in glossary._terms}, reverse=True)
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

    @classmethod
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

    def find(self, text: str) -> list[Match]:
        """Return all occurrences of terms in ``text``, in order."""
        matches = []
        start = 0
        while start < len(text):
            match = self._at(text, start)
            if match is not None:
                matches.append(match)
            start += len(match.source) if match is not None else 1
        return matches

    def _at(self, text: str, start: int) -> Match | None:
        for length in self._lengths:
            source = text[start : start + length]
            # first the exact text, then lower case, which matches only terms without capitals
            term = next((term for term in (source, source.lower()) if term in self._terms), None)
            if term is not None and len(source) == length and is_whole(text, start, start + length):
                return Match(source, self._terms[term] or source, start)
        return None
