"""What a format is, and what a document is between reading and writing."""

from __future__ import annotations

import codecs
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from dragoman.documents.units import Part, Translations
from dragoman.errors import DataError


@dataclass(frozen=True)
class Asked:
    """What a format is told beside the bytes."""

    name: str  # of the file, for messages
    src_lang: str | None = None
    tgt_lang: str | None = None
    columns: tuple[str, ...] = ()  # of a table: which are translated


@dataclass(frozen=True)
class Left:
    """A segment that is not translated, and why."""

    text: str
    why: str


@dataclass(frozen=True)
class Document:
    """A file cut into parts."""

    parts: Sequence[Part]
    save: Callable[[Callable[[Sequence[Part]], str]], bytes]
    """The bytes of the file, given what writes parts."""
    left: tuple[Left, ...] = ()
    reject: Callable[[Translations], set[str]] = lambda found: set()
    """The texts whose translations cannot be written, since the file would be another one."""


class Format(Protocol):
    """A file format: one module."""

    @property
    def SUFFIXES(self) -> tuple[str, ...]:  # noqa: N802  (a constant of the module)
        """What the names of its files end in."""
        ...

    def read(self, data: bytes, asked: Asked) -> Document:
        """Cut a file into parts.

        Raises:
            DataError: It is not of this format, or may not be read; nothing is guessed.
        """
        ...


_BOMS = [(codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be")]


@dataclass(frozen=True)
class Text:
    """The text of a file, and how it is encoded."""

    text: str
    bom: bytes = b""
    encoding: str = "utf-8"

    def encode(self, text: str) -> bytes:
        """Text as bytes of the same encoding; what HTML and XML cannot encode becomes a character reference."""
        return self.bom + text.encode(self.encoding, errors="xmlcharrefreplace")


def decode(data: bytes, asked: Asked, declared: str | None = None) -> Text:
    """The text of a file: its byte order mark says how it is encoded, else what it declares, else it is UTF-8.

    Raises:
        DataError: It is not encoded so, or has a NUL.
    """
    bom, encoding = next(((bom, name) for bom, name in _BOMS if data.startswith(bom)), (b"", declared or "utf-8"))
    try:
        text = data[len(bom) :].decode(encoding)
    except LookupError:
        raise DataError(f"{asked.name}: declares the encoding {encoding!r}, which is not known") from None
    except UnicodeDecodeError as error:
        raise DataError(
            f"{asked.name}: byte {error.start + len(bom):,} is not {encoding.upper()}: convert the file to "
            "UTF-8 first, as with iconv -f WINDOWS-1252 -t UTF-8"
        ) from None
    if "\0" in text:
        raise DataError(f"{asked.name}: has NUL characters, so it is no text")
    return Text(text, bom, encoding)


def of_text(parts: Sequence[Part], text: Text, left: Sequence[Left] = ()) -> Document:
    """A document that is one text."""
    return Document(parts, lambda render: text.encode(render(parts)), tuple(left))
