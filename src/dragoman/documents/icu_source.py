"""The source of a unit by the places of its text, so that what is not translated keeps its bytes.

source = Source.of(Unit("a & b", raw=["a &amp; b"]))
source.parts(source.after(2), source.before(3))          # ["&amp;"]
"""

from __future__ import annotations

import html
import re
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass

from dragoman.documents.units import Part, Unit
from dragoman.documents.xml import unescape

_REFERENCE = re.compile(r"&(?:#[0-9]{1,8}|#[xX][0-9a-fA-F]{1,7}|[A-Za-z][A-Za-z0-9]{0,40});?")
_SOFT_HYPHEN = "\u00ad"
_UNIT = "\0"
"""Stands for a unit in the source; no file has this character."""


@dataclass(frozen=True)
class Source:
    """The source of a unit, and for each place of its text the places in the source before and behind its tags."""

    text: str  # with a character for each unit
    units: Sequence[tuple[int, Unit]]  # with their places in ``text``, in order
    places: Sequence[tuple[int, int]]

    @classmethod
    def of(cls, unit: Unit) -> Source | None:
        """Return the source of a unit; None if it is not plain how its text is written there."""
        text = _flat(unit.raw)
        places = _places(unit, text)
        if places is None:
            return None
        at, units = 0, []
        for part in unit.raw:
            units += [(at, part)] if isinstance(part, Unit) else []
            at += len(part) if isinstance(part, str) else 1
        return cls(text, units, places)

    @property
    def end(self) -> int:
        """Return the place behind all of the source."""
        return len(self.text)

    def before(self, place: int) -> int:
        """Return the place in the source before the tags at a place of the text."""
        return self.places[place][0]

    def after(self, place: int) -> int:
        """Return the place in the source behind the tags at a place of the text."""
        return self.places[place][1]

    def parts(self, start: int, end: int) -> list[Part]:
        """Return the source between two places in it, with its units."""
        parts: list[Part] = []
        first, last = (bisect_left(self.units, place, key=lambda item: item[0]) for place in (start, end))
        for place, unit in self.units[first:last]:
            parts += [self.text[start:place], unit]
            start = place + 1
        return [part for part in (*parts, self.text[start:end]) if part]


def _flat(parts: Sequence[Part]) -> str:
    return "".join(part if isinstance(part, str) else _UNIT for part in parts)


def _places(unit: Unit, source: str) -> list[tuple[int, int]] | None:
    """Return the places in the source for each place of the text; None if the two do not agree."""
    tags: dict[int, list[str]] = {}
    for tag in unit.tags:
        tags.setdefault(tag.place, []).append(_flat(tag.parts))
    places: list[tuple[int, int]] = []
    at = 0
    while at >= 0:
        before, at = at, _behind(source, at, tags.get(len(places), []))
        places.append((before, at))
        if len(places) > len(unit.text):
            return places if _seen(source, at) == len(source) and at >= 0 else None
        n, at = _step(source, at, unit.text, len(places) - 1)
        places += [(at, at)] * (n - 1)
    return None


def _behind(source: str, at: int, tags: Sequence[str]) -> int:
    """Return the place behind some tags, which may have what no one sees between them; -1 without them."""
    for tag in tags:
        if not source.startswith(tag, at):
            at = _seen(source, at)
        if not source.startswith(tag, at):
            return -1
        at += len(tag)
    return at


def _seen(source: str, at: int) -> int:
    """Return the place behind soft hyphens and references to no character, which the text lacks."""
    while 0 <= at < len(source):
        reference = _REFERENCE.match(source, at)
        if reference is not None and html.unescape(reference[0]) in ("", _SOFT_HYPHEN):
            at = reference.end()
        elif source[at] == _SOFT_HYPHEN:
            at += 1
        else:
            break
    return at


def _step(source: str, at: int, text: str, place: int) -> tuple[int, int]:
    """Return the number of characters of the text that are written next, and the place behind them; -1 if none are."""
    for start in dict.fromkeys((at, _seen(source, at))) if at >= 0 else ():
        if reference := _REFERENCE.match(source, start):
            for value in (html.unescape(reference[0]), unescape(reference[0])):
                if value not in ("", reference[0]) and text.startswith(value, place):
                    return len(value), reference.end()
        if source[start : start + 1] == text[place]:
            return 1, start + 1
    return 1, -1
