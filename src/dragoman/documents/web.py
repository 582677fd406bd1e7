"""HTML pages."""

from __future__ import annotations

import re

from dragoman.documents import markup
from dragoman.documents.document import Asked, Document, decode, of_text

SUFFIXES = (".html", ".htm", ".xhtml")

_CHARSET = re.compile(rb"<meta\s[^>]*charset\s*=\s*[\"']?([\w-]+)|<\?xml[^>]*encoding=[\"']([\w-]+)", re.IGNORECASE)


def read(data: bytes, asked: Asked) -> Document:
    """See ``document.Format``."""
    declared = _CHARSET.search(data[:4096])
    text = decode(data, asked, (declared[1] or declared[2]).decode() if declared else None)
    return of_text(markup.parse(text.text, "html", attributes=True), text)
