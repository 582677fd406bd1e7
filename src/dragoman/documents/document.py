"""The format protocol, and a document between reading and writing."""

from __future__ import annotations

import codecs
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Protocol

from dragoman.data.encodings import check_known, recognise
from dragoman.documents.units import Part, Translations
from dragoman.errors import DataError
from dragoman.languages.codes import MOST_TAG, is_registered, primary, variety


@dataclass(frozen=True)
class DocumentOptions:
    """Options of the formats, which ``options.FormatOptions`` declares for users; a format reads its ``OPTIONS``."""

    set_lang: bool = False  # write the target language where a page declares the language of its text
    front_matter: bool = False  # translate ``title`` and ``description`` of Markdown's front matter
    line_length: int | None = None  # of subtitles: largest number of characters in a line
    reading_speed: float | None = None  # of subtitles: largest number of characters per second


@dataclass(frozen=True)
class DocumentInfo:
    """The name of a document, its languages and options: what a format must know besides the bytes."""

    name: str  # file name; its suffix chooses the format, and messages show it
    src_lang: str | None = None
    tgt_lang: str | None = None
    columns: tuple[str, ...] = ()  # of a table: headings of the columns to translate
    options: DocumentOptions = DocumentOptions()

    @property
    def changed(self) -> list[str]:
        """Names of the options that differ from their defaults, ``columns`` among them."""
        names = [field.name for field in fields(self.options) if getattr(self.options, field.name) != field.default]
        return ["columns"] * bool(self.columns) + names

    def why_not(self, src: str | None = None, tgt: str | None = None) -> str:
        """Return why languages that a document declares are not those of the model; "" if they are, or are not known.

        Args:
            src: Language of its text.
            tgt: Language of its translation.
        """
        src, tgt = known_language(src or ""), known_language(tgt or "")
        if src and self.src_lang is not None and variety(src) != variety(self.src_lang):
            return f"its source is in {src}, but this model translates from {self.src_lang}"
        if tgt and self.tgt_lang is not None and variety(tgt) != variety(self.tgt_lang):
            return f"is to be translated to {tgt}, but this model translates to {self.tgt_lang}"
        return ""


def known_language(lang: str) -> str:
    """Return a language that a document declares; "" if it is no code of a language, or of none in particular."""
    code = primary(lang)
    is_none = code in ("und", "mul", "zxx", "mis") or (len(code) == 3 and "qaa" <= code <= "qtz")
    return lang if len(code) <= MOST_TAG and not is_none and is_registered(code) else ""


@dataclass(frozen=True)
class Untranslated:
    """A segment that stays as it is in the source document, and the reason."""

    text: str
    why: str


@dataclass(frozen=True)
class Document:
    """A file cut into units of text and the source between them."""

    parts: Sequence[Part]
    save: Callable[[Callable[[Sequence[Part]], str]], bytes]
    """Returns the bytes of the file; its argument turns parts into text, with the units translated."""
    left: tuple[Untranslated, ...] = ()
    """Segments that the format itself leaves untranslated."""
    reject: Callable[[Translations], set[str]] = lambda translations: set()
    """Returns the source texts whose translations must not be written, because they would change the markup."""
    read_as: str = ""
    """Encoding that was recognised and is not that of the translation; "" if the document keeps its own."""
    why_rejected: str = "its translation would change the markup"
    """Reason why the texts of ``reject`` stay untranslated."""
    concerns: Callable[[Callable[[Sequence[Part]], str]], tuple[Untranslated, ...]] = lambda render: ()
    """Returns what a reader should know of the translation, such as captions too fast to read.

    Its argument is that of ``save``.
    """


class Format(Protocol):
    """A file format: a module in this folder that stands in ``formats.FORMATS``.

    It names the options that it reads, such as ``("set_lang",)``, in ``OPTIONS``; a format without options leaves it
    out. ``COMPARED`` names what a translated file shares with its source, if it is less than ``checking.COMPARED``.
    """

    @property
    def SUFFIXES(self) -> tuple[str, ...]:  # noqa: N802  (a constant of the module)
        """File name suffixes of the format in lower case, such as ``(".html", ".htm")``."""
        ...

    def read(self, data: bytes, info: DocumentInfo) -> Document:
        """Cut the bytes of a file into units of text and the source between them.

        Raises:
            DataError: The file is damaged, is of another format, or is refused for safety. Nothing is guessed.
        """
        ...


_STRICT = ("utf-8", "utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be")
"""Encodings in which each text has one form."""
_MARKUP = "<meta charset='a-0' content=\"b\"/> <?xml ?> \\n"
"""Text that declares an encoding; encodings that do not read ASCII so, such as EBCDIC, cannot be declared in it."""
_BOMS = [
    (codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF32_LE, "utf-32-le"), (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"),
]  # fmt: skip


@dataclass(frozen=True)
class Text:
    """The text of a file and its encoding."""

    text: str
    bom: bytes = b""
    encoding: str = "utf-8"
    read_as: str = ""  # encoding that was recognised; the translation is then UTF-8

    def encode(self, text: str) -> bytes:
        """Return text as bytes in the file's encoding; characters it lacks become references such as ``&#8364;``."""
        return self.bom + text.encode(self.encoding, errors="xmlcharrefreplace")


def decode(data: bytes, info: DocumentInfo, declared: str | None = None) -> Text:
    """Decode the bytes of a file by its byte order mark, else by the ``declared`` encoding, else as UTF-8.

    Text that declares no encoding and is not UTF-8 is read in the encoding that is recognised, if that is certain, and
    is written as UTF-8, because an old encoding lacks the letters of most languages.

    Raises:
        DataError: The bytes are not in that encoding, the encoding is unknown or cannot be written back byte for byte,
            or the text has NUL characters.
    """
    bom, encoding = next(((bom, name) for bom, name in _BOMS if data.startswith(bom)), (b"", declared or "utf-8"))
    try:
        check_known(encoding)
        text = data[len(bom) :].decode(encoding)
    except LookupError:
        raise DataError(f"{info.name}: declares the encoding {encoding[:40]!r}, which is not known") from None
    except UnicodeDecodeError as error:
        place = f"{info.name}: byte {error.start + len(bom):,} is not {encoding.upper()}"
        if not bom and declared is None:
            return _recognised(data, info, place)
        raise DataError(f"{place}, which it declares: {_advice(data, info)}") from None
    except UnicodeError as error:  # of encodings such as idna
        raise DataError(
            f"{info.name}: is not {encoding[:40].upper()} ({error}): convert the file to UTF-8 first"
        ) from None
    if not bom and not _reads_ascii(encoding):
        raise DataError(f"{info.name}: declares {encoding[:40]!r} but is not written in it: convert the file to UTF-8")
    if "\0" in text and not bom and declared is None:
        return _recognised(data, info, f"{info.name}: has NUL characters")
    if "\0" in text:
        raise DataError(f"{info.name}: has NUL characters, so it is not text")
    decoded = Text(text, bom, encoding)
    if encoding not in _STRICT and not _is_written_back(decoded, data):
        raise DataError(f"{info.name}: {encoding} would not keep every byte of it: {_advice(data, info)}")
    return decoded


def _recognised(data: bytes, info: DocumentInfo, place: str) -> Text:
    """Decode text in the encoding that is recognised; ``place`` says why it is not UTF-8.

    Raises:
        DataError: No encoding is certain.
    """
    encoding = recognise(data, info.src_lang)
    if encoding is None:
        raise DataError(f"{place}, and no encoding fits the file as a whole: mend it, or save it as UTF-8")
    if not encoding.certain:
        raise DataError(f"{place}; it may be in {encoding.name}: {encoding.command(Path(info.name))}, and look at it")
    return Text(data.decode(encoding.codec), read_as=encoding.name)


def _advice(data: bytes, info: DocumentInfo) -> str:
    """Return how to convert a file to UTF-8 that is not in the encoding that it declares."""
    encoding = recognise(data, info.src_lang)
    if encoding is None:
        return "convert the file to UTF-8 first, and let it declare that"
    return f"it may be in {encoding.name}: {encoding.command(Path(info.name))}, and let the result declare UTF-8"


def _reads_ascii(encoding: str) -> bool:
    """True if ASCII is read as such, which the declaration of an encoding is written in."""
    try:
        return _MARKUP.encode().decode(encoding) == _MARKUP
    except UnicodeError:
        return False


def _is_written_back(text: Text, data: bytes) -> bool:
    """True if the text is encoded as the bytes that it was decoded from."""
    try:
        return text.encode(text.text) == data
    except UnicodeError:
        return False


def text_document(parts: Sequence[Part], text: Text, left: Sequence[Untranslated] = ()) -> Document:
    """Return the document of a file that is one text, in the encoding of ``text``."""
    return Document(parts, lambda render: text.encode(render(parts)), tuple(left), read_as=text.read_as)
