"""Plain text: each line is a unit, and each column of a line whose columns tabs or three spaces part.

A line ends at LF, or at CR in a text without LF, as old programs wrote it. White space between units keeps its bytes.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable
from pathlib import PurePath

from dragoman.documents.document import Document, DocumentInfo, decode, text_document
from dragoman.documents.units import Part, Unit
from dragoman.errors import DataError

SUFFIXES = (".txt",)

WIDE = 3
"""Number of spaces from which a gap parts columns."""

BEGINNINGS = {
    b"pk\x03\x04": ".docx", b"%pdf-": ".pdf", b"{\\rtf": ".rtf", b"<?xml": ".xlf, .ttml or .html",
    b"<!doctype html": ".html", b"<html": ".html", b"webvtt": ".vtt", b"msgid \"": ".po", b"1\n00:": ".srt",
    b"1\r\n00:": ".srt",
}  # fmt: skip
"""How documents begin, in lower case, with the suffixes that their names should have."""

_GAP = re.compile(r"[^\S\r\n]+")


def read(data: bytes, info: DocumentInfo) -> Document:
    """Cut plain text into units; see ``document.Format``.

    Raises:
        DataError: See ``decode``; or the name has no suffix, and the text begins as a document of another format does.
    """
    # Some clients send the bytes of a document without its name.
    beginning = data[:99].removeprefix(codecs.BOM_UTF8).lstrip().lower()
    suffix = next((suffix for sign, suffix in BEGINNINGS.items() if beginning.startswith(sign)), "")
    if suffix and not PurePath(info.name).suffix:
        raise DataError(f"{info.name}: begins as a document does, but its name has no suffix: add it, such as {suffix}")
    text = decode(data, info)
    return text_document(lines(text.text), text)


def lines(text: str) -> list[Part]:
    """Return the units of each line of plain text, with the white space between them."""
    parts: list[Part] = []
    end = "\n" if "\n" in text else "\r"
    for number, line in enumerate(text.split(end)):
        parts += [end] * (number > 0)
        parts += columns(line)
    return parts


def _unit(text: str) -> Unit:
    return Unit(text, raw=[text], escape=str)


def columns(line: str, unit: Callable[[str], Unit] = _unit) -> list[Part]:
    """Return the units of a line, which ``unit`` makes of their source, with the gaps between its columns."""
    parts: list[Part] = []
    start = 0
    for gap in _GAP.finditer(line):
        if "\t" in gap[0] or len(gap[0]) >= WIDE:
            parts += [unit(line[start : gap.start()]), gap[0]]
            start = gap.end()
    return [*parts, unit(line[start:])]
