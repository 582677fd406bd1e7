"""Plain text: each line is a unit, and each column of a line whose columns tabs or three spaces part.

A line ends at LF only; all white space between units keeps its bytes.
"""

from __future__ import annotations

import re

from dragoman.documents.document import Document, DocumentInfo, decode, text_document
from dragoman.documents.units import Part, Unit

SUFFIXES = (".txt",)

WIDE = 3
"""Number of spaces from which a gap parts columns."""

_GAP = re.compile(r"[ \t]+")


def read(data: bytes, info: DocumentInfo) -> Document:
    """Cut plain text into units; see ``document.Format``."""
    text = decode(data, info)
    return text_document(lines(text.text), text)


def lines(text: str) -> list[Part]:
    """Return the units of each line of plain text, with the white space between them."""
    parts: list[Part] = []
    for number, line in enumerate(text.split("\n")):
        parts += ["\n"] * (number > 0)
        start = 0
        for gap in _GAP.finditer(line):
            if "\t" in gap[0] or len(gap[0]) >= WIDE:
                parts += [_unit(line[start : gap.start()]), gap[0]]
                start = gap.end()
        parts.append(_unit(line[start:]))
    return parts


def _unit(text: str) -> Unit:
    return Unit(text, raw=[text], escape=str)
