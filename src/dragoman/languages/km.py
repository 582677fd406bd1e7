"""Khmer."""

from __future__ import annotations

import re

from dragoman.languages.language import Language

_ET_CETERA = re.compile(r"។\s*(?:ល|បេ)\s*។\s*$")
_ITS_LETTERS = re.compile(r"(?:ល|បេ)\s*។")


def is_et_cetera(tail: str, piece: str) -> bool:
    """Return True before and after the letters of "et cetera", which stand between two full stops."""
    return _ET_CETERA.search(tail) is not None or (
        tail.rstrip().endswith("។") and _ITS_LETTERS.match(piece) is not None
    )


LANGUAGE = Language(code="km", name="Khmer", spaces=False, continues=is_et_cetera)
