"""Plain text: each line is a unit; it ends at LF only."""

from __future__ import annotations

from dragoman.documents.document import Asked, Document, decode, of_text
from dragoman.documents.units import Part, Unit

SUFFIXES = (".txt",)


def read(data: bytes, asked: Asked) -> Document:
    """See ``document.Format``."""
    text = decode(data, asked)
    return of_text(lines(text.text), text)


def lines(text: str) -> list[Part]:
    """A unit for each line of plain text."""
    parts: list[Part] = []
    for number, line in enumerate(text.split("\n")):
        parts += ["\n"] * (number > 0) + [Unit(line, raw=[line], escape=str)]
    return parts
