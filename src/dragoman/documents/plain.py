"""Plain text: each line is a unit; a line ends at LF only."""

from __future__ import annotations

from dragoman.documents.document import Document, DocumentInfo, decode, text_document
from dragoman.documents.units import Part, Unit

SUFFIXES = (".txt",)


def read(data: bytes, info: DocumentInfo) -> Document:
    """Cut plain text into one unit for each line; see ``document.Format``."""
    text = decode(data, info)
    return text_document(lines(text.text), text)


def lines(text: str) -> list[Part]:
    """Return a unit for each line of plain text, with the LF between them."""
    parts: list[Part] = []
    for number, line in enumerate(text.split("\n")):
        parts += ["\n"] * (number > 0) + [Unit(line, raw=[line], escape=str)]
    return parts
