"""HTML pages."""

from __future__ import annotations

import re

from dragoman.documents import markup
from dragoman.documents.document import Document, DocumentInfo, decode, text_document

SUFFIXES = (".html", ".htm", ".xhtml")
OPTIONS = ("set_lang",)

_CHARSET = re.compile(
    rb"<meta\s(?:(?!<meta\s)[^>])*charset\s*+=\s*+[\"']?([\w-]+)|<\?xml(?:(?!<\?xml)[^>])*encoding=[\"']([\w-]+)",
    re.IGNORECASE,
)


def read(data: bytes, info: DocumentInfo) -> Document:
    """Cut an HTML page into its sentences, titles and visible attributes; see ``document.Format``."""
    declared = _CHARSET.search(data[:4096])
    text = decode(data, info, (declared[1] or declared[2]).decode() if declared else None)
    return text_document(markup.parse(text.text, "html", attributes=True), text)
