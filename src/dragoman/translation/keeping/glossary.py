"""A glossary: source terms and the target terms that must translate them.

The file has one term a line, in UTF-8: ``source TAB target``, or the source alone for what must not be translated.
A term without capitals is found in any case ("dog" in "Dog" and "DOG"), another one only as it is written; it is found
where it stands by itself, not inside a longer word. Where terms overlap the one that begins first is taken, of several
the longest.
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
    """Terms and their translations.

    A file has a term a line: the source, a tab, the target; a source alone is copied into the translation.
    """

    def __init__(self, terms: Iterable[tuple[str, str | None]]) -> None:
        """Take (source, target) pairs; where the target is None the source is copied.

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
            DataError: The file cannot be read as text, or one of its lines (it is named) is no term.
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
                raise DataError(f"{where}: a tab but no target term: add one, or remove the tab to copy the source")
            glossary._add(fields[0], fields[1] if len(fields) > 1 else None, where)
        glossary._lengths = sorted({len(term) for term in glossary._terms}, reverse=True)
        return glossary

    def _add(self, source: str, target: str | None, where: str) -> None:
        if not source.strip() or (target is not None and not target.strip()):
            raise DataError(f"{where}: a term is blank; write a source term, a tab and a target term")
        known = self._terms.get(source, target)
        if source in self._terms and known != target:
            raise DataError(
                f"{where}: {source!r} is to be {target!r}, and further up it is {known!r}: keep one of them"
            )
        self._terms[source] = target

    @classmethod
    def of(cls, given: Self | Path | str | Mapping[str, str | None] | None) -> Self | None:
        """A glossary as it may be given: itself, a file, or a mapping of terms; None where it has no terms.

        Raises:
            ConfigError: It is something else.
            DataError: As ``load``.
        """
        if isinstance(given, Path | str):
            given = cls.load(given)
        elif isinstance(given, Mapping):
            given = cls(given.items())
        elif given is not None and not isinstance(given, cls):
            raise ConfigError(f"glossary = {given!r}: give a Glossary, a file, or a mapping of terms")
        return given or None

    def __repr__(self) -> str:
        digest = hashlib.sha256(repr(sorted(self._terms.items(), key=str)).encode()).hexdigest()
        return f"Glossary({len(self):,} terms, {digest[:16]})"  # the same for the same terms, wherever they are from

    def __len__(self) -> int:
        return len(self._terms)

    def find(self, text: str) -> list[Match]:
        """All occurrences of terms in ``text``, in order."""
        found = []
        start = 0
        while start < len(text):
            match = self._at(text, start)
            if match is not None:
                found.append(match)
            start += len(match.source) if match is not None else 1
        return found

    def _at(self, text: str, start: int) -> Match | None:
        for length in self._lengths:
            source = text[start : start + length]
            # exact first; a term with capitals is no lower() of anything, so it is found only as it is written
            term = next((term for term in (source, source.lower()) if term in self._terms), None)
            if term is not None and len(source) == length and is_whole(text, start, start + length):
                return Match(source, self._terms[term] or source, start)
        return None
