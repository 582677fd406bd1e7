"""Hindi."""

from __future__ import annotations

import re

from dragoman.languages.language import Language

_TITLE = re.compile(r"(?:^|[\s(])(?:डॉ|डा|प्रो|प्रा|पं|सौ|कु|मि|श्री|श्रीमती|सं|रु)\.\s+$")


def is_title(tail: str, piece: str) -> bool:
    """Return True if the text so far ends in an abbreviation, such as the one of "doctor"."""
    return _TITLE.search(tail) is not None


LANGUAGE = Language(
    code="hi", name="Hindi", scripts=("devanagari",), letters="\u0900-\u097f", continues=is_title
)  # fmt: skip
