"""Writes translations so that none of their characters becomes markup."""

from __future__ import annotations

import re

from dragoman.translation.keeping.protected import find

_SPECIAL = re.compile(r"([\\`*_\[\]<>~|]|&(?=[#\w]+;))")
_BLOCK_START = re.compile(r"^(\s*)([-+#=:])")
_NUMBER = re.compile(r"^(\s*\d+)(?=[.)])")
_BAR = re.compile(r"(?<!\\)\|")
_ENTITY = re.compile(r"&(?=[#\w]+;)")
_AS_IT_IS = frozenset(["code", "url", "e-mail address", "domain"])


def all_escaped(text: str) -> str:
    """Return text with every character escaped that could be markup."""
    return _NUMBER.sub(r"\1\\", _BLOCK_START.sub(r"\1\\\2", _SPECIAL.sub(r"\\\1", text)))


def escaped(text: str) -> str:
    """Return text with every character escaped that could be markup, except inside code and addresses."""
    pieces, at = [], 0
    for span in find(text):
        if span.kind in _AS_IT_IS:
            pieces += [_SPECIAL.sub(r"\\\1", text[at : span.start]), span.text]
            at = span.end
    written = "".join([*pieces, _SPECIAL.sub(r"\\\1", text[at:])])
    return _NUMBER.sub(r"\1\\", _BLOCK_START.sub(r"\1\\\2", written))


def as_it_is(text: str) -> str:
    """Return text unchanged."""
    return text


def in_cell(text: str) -> str:
    """Return text for a table cell, where ``|`` would end the cell."""
    return _BAR.sub(r"\\|", text)


def in_title(text: str, sign: str) -> str:
    """Return text for the title of a link, between two ``sign`` or in brackets."""
    signs = "()" if sign == "(" else sign
    for character in ("\\", *signs):
        text = text.replace(character, f"\\{character}")
    return _ENTITY.sub(r"\\&", " ".join(text.split()))


def in_quotes(text: str) -> str:
    """Return text for a title between double quotes that knows no escapes, such as that of an admonition."""
    return text.replace('"', "\u201d")
