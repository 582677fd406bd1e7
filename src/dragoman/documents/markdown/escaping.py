"""Writes translations so that none of their characters becomes markup."""

from __future__ import annotations

import re
from collections.abc import Callable

from dragoman.translation.keeping.protected import find

_SPECIAL = re.compile(r"[\\`*_\[\]<>~|]|&(?=[#\w]+;)")
_TAKEN_AWAY = re.compile(r"\\(?=[!-/:-@\[-`{-~]|\Z)|(?<=\\)\\|&(?=[#\w]+;)")
"""A backslash that Markdown reads as an escape, and the first sign of an entity."""
_BLOCK_START = re.compile(r"^(\s*)([-+#=:])")
_NUMBER = re.compile(r"^(\s*\d+)(?=[.)])")
_HEADING_END = re.compile(r"(?<=\s)(?=#++\s*+\Z)")
_BAR = re.compile(r"(?<!\\)((?:\\\\)*+)\|")
_ENTITY = re.compile(r"&(?=[#\w]+;)")
_AS_IT_IS = frozenset(["code", "url", "e-mail address", "domain"])


def all_escaped(text: str) -> str:
    """Return text with every character escaped that could be markup."""
    return _at_ends(_SPECIAL.sub(r"\\\g<0>", text))


def escaped(text: str) -> str:
    """Return text with every character escaped that could be markup, except inside code and addresses."""
    return _at_ends(outside_code(text, lambda piece: _SPECIAL.sub(r"\\\g<0>", piece)))


def readable(text: str) -> str:
    """Return text with a backslash before each backslash or entity that Markdown would not show, except inside code."""
    if "\\" not in text and "&" not in text:
        return text
    return outside_code(text, lambda piece: _TAKEN_AWAY.sub(r"\\\g<0>", piece))


def in_heading(text: str) -> str:
    """Return text for a heading that begins with ``#``, which such signs at its end would close."""
    return _HEADING_END.sub(r"\\", text)


def in_cell(text: str) -> str:
    """Return text for a table cell, where ``|`` would end the cell."""
    return _BAR.sub(r"\1\\|", text)


def in_title(text: str, sign: str) -> str:
    """Return text for the title of a link, between two ``sign`` or in brackets."""
    signs = "()" if sign == "(" else sign
    for character in ("\\", *signs):
        text = text.replace(character, f"\\{character}")
    return _ENTITY.sub(r"\\&", " ".join(text.split()))


def in_quotes(text: str) -> str:
    """Return text for a title between double quotes that knows no escapes, such as that of an admonition."""
    return text.replace('"', "\u201d")


def _at_ends(text: str) -> str:
    """Return text with signs escaped that would begin a block, or close a heading."""
    return in_heading(_NUMBER.sub(r"\1\\", _BLOCK_START.sub(r"\1\\\2", text)))


def outside_code(text: str, write: Callable[[str], str]) -> str:
    """Return text with all but code and addresses written by a function."""
    pieces, at = [], 0
    for span in find(text):
        if span.kind in _AS_IT_IS:
            pieces += [write(text[at : span.start]), span.text]
            at = span.end
    return "".join([*pieces, write(text[at:])])
