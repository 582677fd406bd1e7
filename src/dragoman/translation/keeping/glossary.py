"""A glossary: source terms and the target terms that must translate them.

    glossary = Glossary.load("terms.tsv")             # or Glossary([("dog", "Hund"), ("GeForce", None)])
    glossary.find("A dog.")                           # [Match("dog", "Hund", 2)]
    len(glossary)                                     # number of terms

A term without capitals matches in any case ("dog" in "Dog" and "DOG"), another term only as it is written. Composed and
decomposed characters are equal, and so are spaces of any kind and number, typed and typeset apostrophes, and hyphens.
Terms match whole words. Of overlapping terms the first is taken, of those the longest. A part of what must arrive
unchanged (``protected``), such as "dog" in "dog.txt", is no occurrence of a term.
``glossary_entries`` reads the lines of a file or a text.
"""

from __future__ import annotations

import hashlib
import logging
import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple, Self

from dragoman.arguments import checked
from dragoman.data.corpus import read_lines
from dragoman.data.text_names import form_of
from dragoman.data.tokenizer import lone_surrogate
from dragoman.errors import ConfigError, DataError
from dragoman.languages.composition import compose, composed_places
from dragoman.languages.words import count_word, divides_word
from dragoman.translation.keeping.glossary_entries import FORMS, Entry, is_text, lines_of_csv, read_entries
from dragoman.translation.keeping.protected import find

logger = logging.getLogger(__name__)

NOT_IN_A_TERM = "".join(map(chr, [*range(0x20), *range(0x7F, 0xA0)]))
"""Characters that no term has: a translation is one line, a tab parts columns, and XML cannot hold most others."""

_ENDS = "\t\n\r\0"
_NOT_IN_A_TERM = re.compile("[\x00-\x1f\x7f-\x9f]")

_SPACE = re.compile(r"[^\S\t]")  # a tab parts columns
_FURTHER_SPACES = re.compile(rf"(?<={_SPACE.pattern}){_SPACE.pattern}+")
_TYPED = str.maketrans("\u2019\u02bc\uff07\u2010\u2011", "'''--")
"""Apostrophes and hyphens as word processors write them, and as a keyboard does."""


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
        heading, entries = read_entries(lines_of_csv(Path(path)) if is_csv else read_lines(path), str(path))
        if heading is not None:  # "it" and "es" may be words as well
            logger.info(
                "%s: %r and %r are read as headings; if they are a term, put it below another one",
                heading.where, heading.source, heading.target,
            )  # fmt: skip
        return cls._of_entries(entries)

    @classmethod
    @checked
    def parse(cls, text: str) -> Self:
        """Read a glossary from a text of lines such as ``dog = Hund``; their forms are those of a file.

        Raises:
            DataError: A line is no term; the message names it.
        """
        return cls._of_entries(read_entries((line.removesuffix("\r") for line in text.split("\n")), "glossary")[1])

    @classmethod
    def _of_entries(cls, entries: Iterable[Entry]) -> Self:
        glossary = cls(())
        for entry in entries:
            glossary._add(*entry)
        glossary._index()
        return glossary

    def _add(self, source: str, target: str | None, where: str) -> None:
        if not source.strip() or (target is not None and not target.strip()):
            raise DataError(f"{where}: a term is blank; write {FORMS}")
        for term in (source, target or ""):
            if (place := lone_surrogate(term)) is not None:
                raise DataError(f"{where}: character {place + 1} of {term!r} is half of a surrogate pair: replace it")
            odd = _NOT_IN_A_TERM.search(term)
            if odd is not None and odd[0] in _ENDS:
                raise DataError(f"{where}: {term!r} has a tab, a line end or a NUL, but a translation is one line")
            if odd is not None:
                name = f"U+{ord(odd[0]):04X}"
                raise DataError(f"{where}: {term!r} has the control character {name}, which no text shows: remove it")
        source, target = compose(source.strip()), target and target.strip()
        known = self._terms.get(source, target)
        if source in self._terms and known != target:
            raise DataError(
                f"{where}: {source!r} is translated as {target!r} here and as {known!r} above: keep one of them"
            )
        self._terms[source] = target

    def _index(self) -> None:
        """Sort the forms of the terms, and find for each the lengths of all shorter ones with which it begins."""
        self._by_form: dict[str, str] = {}  # term of each form; of several, the one that is written so
        for is_typed in (False, True):
            for term in self._terms:
                form = _FURTHER_SPACES.sub("", term)
                self._by_form.setdefault(_typed(form) if is_typed else form, term)
        self._sorted = sorted(self._by_form)
        self._longest = max(map(len, self._sorted), default=0)
        self._shorter: list[int] = []  # bit n is set for a length of n characters
        beginnings: list[int] = []
        for number, term in enumerate(self._sorted):
            while beginnings and not term.startswith(self._sorted[beginnings[-1]]):
                beginnings.pop()
            last = beginnings[-1] if beginnings else None
            self._shorter.append(0 if last is None else self._shorter[last] | 1 << len(self._sorted[last]))
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
        line = _Line.of(text)
        start = 0
        while start < len(line.text):
            form = self._at(line, start)
            if form:
                term, first, end = self._by_form[form], line.places[start], line.places[start + len(form)]
                source = text[first:end]
                yield term, Match(source, self._terms[term] or " ".join(source.split()), first)
            start += len(form) or 1

    def _at(self, line: _Line, start: int) -> str:
        """Return the form of the term that stands at ``start``; "" if there is none."""
        if divides_word(line.text, start):
            return ""
        # lower case matches only terms without capitals; of equally long terms the exact one is taken
        return max((self._form_at(line, written, start) for written in line.forms), key=len)

    def _form_at(self, line: _Line, written: str, start: int) -> str:
        """Return the longest form that stands at ``start`` of ``written`` and ends where a term may end; else "".

        The time grows neither with the number of different lengths of terms (a glossary may have thousands) nor with
        the number of terms that fit but end inside a word or span.
        """
        there = written[start : start + self._longest]
        # The form that sorts right before the text begins with all forms with which the text begins.
        number = bisect_right(self._sorted, there) - 1
        if number < 0:
            return ""
        form, lengths = self._sorted[number], self._shorter[number]
        if there.startswith(form):
            lengths |= 1 << len(form)
        elif lengths:
            n_same = bisect_left(range(len(form)), True, key=lambda place: not there.startswith(form[: place + 1]))
            lengths &= (2 << n_same) - 1
        if lengths:
            lengths &= line.edges_from(start, lengths.bit_length())
        return form[: lengths.bit_length() - 1] if lengths else ""


@dataclass(frozen=True)
class _Line:
    """A text in which terms are looked up."""

    original: str
    text: str  # composed, with the first of several spaces
    forms: Sequence[str]  # ways to write it in which terms are looked up, of the same length
    places: Sequence[int]  # place in the original of each character, and of the end

    @classmethod
    def of(cls, original: str) -> _Line:
        """Return the line of a text."""
        text, places = composed_places(original)
        runs = [run.span() for run in _FURTHER_SPACES.finditer(text)]
        if runs:
            ends, starts = [0, *(end for _, end in runs)], [*(start for start, _ in runs), len(text)]
            places = [place for end, start in zip(ends, starts, strict=True) for place in places[end:start]]
            text = "".join(text[end:start] for end, start in zip(ends, starts, strict=True))
        forms = dict.fromkeys(form for written in (text, _typed(text)) for form in (written, _lower(written)))
        return cls(original, text, [*forms], [*places, len(original)])

    @cached_property
    def _edges(self) -> str:
        """The places of ``text``, last first: "1" where a term may begin or end, else "0".

        No term ends inside a word, nor inside a span that must arrive unchanged. A number is cut only between its
        digits: "%" is a term of "5 %".
        """
        closed = {
            place
            for span in find(self.original)
            for place in range(bisect_right(self.places, span.start), bisect_left(self.places, span.end))
            if span.kind != "number" or _is_in_digits(span.text, self.places[place] - span.start)
        }
        places = reversed(range(len(self.places)))
        return "".join("0" if place in closed or divides_word(self.text, place) else "1" for place in places)

    def edges_from(self, start: int, n: int) -> int:
        """Return the places from ``start`` on where a term may end, as ``n`` bits; 0 if none may begin at ``start``."""
        end = len(self.places) - start
        bits = int(self._edges[end - n : end], 2)
        return bits if bits & 1 else 0


_JOINS_DIGITS = ".,'’\u066b\u066c_ \u00a0\u2009\u202f"
"""Signs between digits of one number; others are between two, such as "9001:2015"."""
_MOST_JOINS = 8
"""Largest number of such signs in a row, and a digit; no number has so many."""


def _is_in_digits(number: str, place: int) -> bool:
    """True if a place in a number is between its digits, or between digits and a fraction such as ½."""
    before, after = number[max(0, place - _MOST_JOINS) : place], number[place : place + _MOST_JOINS]
    before, after = before.rstrip(_JOINS_DIGITS)[-1:], after.lstrip(_JOINS_DIGITS)[:1]
    is_fraction = after.isnumeric() and not after.isdigit() and not after.isalpha()  # 万 is numeric, and a word
    return before.isdecimal() and (after.isdecimal() or is_fraction)


def _typed(text: str) -> str:
    """Return a text as a keyboard writes it: each space, apostrophe and hyphen in its plain form."""
    return _SPACE.sub(" ", text).translate(_TYPED)


def _lower(text: str) -> str:
    """Return a text in lower case; each character keeps its place, so "İ" stays, which alone would become two."""
    return "İ".join(part.lower() for part in text.split("İ"))


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
