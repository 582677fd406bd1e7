"""HTML pages."""

from __future__ import annotations

import codecs
import re
from contextlib import suppress

from dragoman.documents.document import Document, DocumentInfo, Text, decode, text_document
from dragoman.documents.html.units import PageOptions, cut
from dragoman.documents.labels import codec
from dragoman.errors import DataError
from dragoman.languages.codes import standard

SUFFIXES = (".html", ".htm", ".xhtml")
OPTIONS = ("set_lang",)

_CHARSET = re.compile(
    rb"<meta\s(?:(?!<meta\s)[^>])*charset\s*+=\s*+[\"']?\s*+([\w:.-]+)|<\?xml(?:(?!<\?xml)[^>])*encoding=[\"']([\w:.-]+)",
    re.IGNORECASE,
)
LONGEST_HEAD = 65_536
"""Most bytes before the body in which a page declares its encoding; browsers heed a late declaration too."""
ODD_BYTES = 0.01
"""Largest share of bytes that are not in the encoding of a page; they stay as they are."""


def read(data: bytes, info: DocumentInfo) -> Document:
    """Cut an HTML page into its sentences, titles and visible attributes; see ``document.Format``."""
    text = _decoded(data, info)
    languages = (info.src_lang, standard(info.tgt_lang)) if info.options.set_lang and info.tgt_lang else None
    is_xml = info.name.lower().endswith(".xhtml")
    page = cut(text.text, PageOptions(attributes=True, languages=languages, is_xml=is_xml, tgt_lang=info.tgt_lang))
    if text.encoding in _STRICT_CODECS or not _has_odd_bytes(text.text):
        return text_document(page.parts, text, page.left)
    return Document(page.parts, lambda render: _encoded(render(page.parts), text.encoding), tuple(page.left))


_STRICT_CODECS = ("utf-16-le", "utf-16-be")


def _decoded(data: bytes, info: DocumentInfo) -> Text:
    """Decode a page as browsers do: by the encoding that it declares; an unknown name is no declaration.

    Where it cannot be in that encoding and is UTF-8 without an error, it is read as UTF-8.

    Raises:
        DataError: It has more than a few bytes that are not in that encoding.
    """
    body = data.find(b"<body")
    declared = _CHARSET.search(data[: min(body, LONGEST_HEAD) if body >= 0 else LONGEST_HEAD])
    name = codec((declared[1] or declared[2]).decode("ascii", "replace")) if declared else None
    name = "utf-8" if name in ("utf-16-le", "utf-16-be") else name  # what declares it in ASCII is not in UTF-16
    try:
        return decode(data, info, name)
    except DataError:
        if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) or b"\0" in data:
            raise
        if name not in (None, "utf-8"):  # saved again as UTF-8, with the declaration of before
            with suppress(DataError):
                return decode(data, info, "utf-8")
        text = data.decode(name or "utf-8", "surrogateescape")
        if sum(map(_is_odd, text)) > ODD_BYTES * len(text) or _encoded(text, name or "utf-8") != data:
            raise
        return Text(text, encoding=name or "utf-8")


_ODD = re.compile(r"[\udc80-\udcff]")


def _is_odd(char: str) -> bool:
    """True if a character stands for a byte that is not in the encoding."""
    return "\udc80" <= char <= "\udcff"


def _has_odd_bytes(text: str) -> bool:
    return _ODD.search(text) is not None


def _encoded(text: str, encoding: str) -> bytes:
    """Return text as bytes; characters that the encoding lacks become references, and odd bytes are written again."""
    if not _has_odd_bytes(text):
        return text.encode(encoding, "xmlcharrefreplace")
    written = []
    for piece in re.split(r"([\udc80-\udcff]+)", text):
        errors = "surrogateescape" if piece and _is_odd(piece[0]) else "xmlcharrefreplace"
        written.append(piece.encode(encoding, errors))
    return b"".join(written)
