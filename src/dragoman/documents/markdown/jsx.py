"""Tags and braces of MDX, whose attributes may hold JavaScript."""

from __future__ import annotations

import re

_BRACE = re.compile(r"/\*|[{}]")
_NAME = re.compile(r"</?(?:[A-Za-z][\w.:-]*)?")
_ATTRIBUTE = re.compile(r"[ \t\n]*(?:([A-Za-z_@:$][\w.:@$-]*)([ \t\n]*=[ \t\n]*(\"[^\"]*\"|'[^']*'|(?=\{)))?|(?=\{))")
_END = re.compile(r"[ \t\n]*/?>")

_COMMENT = re.compile(r"/\*(?:[^*]|\*(?!/))*+(?:\*/)?")
_TEXT = re.compile(r"(?<![=-])>([^<>{}]++)(?=<[/A-Za-z>]|\{)|\}([^<>{}]++)(?=</)")
_SHOWN = re.compile(r"<[A-Za-z][^<>]*\s(?:alt|title|label|placeholder|aria-label)=[\"']([^\"'{}]++)")
_WORD = re.compile(r"[^\W\d_]{2}")

MOST_OF_A_TAG = 20_000
"""Largest number of characters of a tag; anything longer is text."""


def brace_pairs(text: str) -> dict[int, int]:
    """Return the place of each opening brace that is closed, and of the brace that closes it."""
    pairs: dict[int, int] = {}
    open_braces: list[int] = []
    at = 0
    has_end = True
    for match in _BRACE.finditer(text):
        if match.start() < at:
            continue
        if match[0] == "/*":  # braces in a comment do not count
            if open_braces and has_end:
                end = text.find("*/", match.end())
                has_end = end >= 0
                at = end + 2 if has_end else at
        elif match[0] == "{":
            open_braces.append(match.start())
        elif open_braces:
            pairs[open_braces.pop()] = match.start()
    return pairs


def tag_end(text: str, at: int, braces: dict[int, int], shift: int = 0) -> int | None:
    """Return the place behind the tag that begins at a place; None if there is no tag.

    Args:
        text: The source.
        at: Place of ``<``.
        braces: See ``brace_pairs``.
        shift: Place of the text's first character in the text of ``braces``.
    """
    match = _NAME.match(text, at)
    if match is None:
        return None
    place, limit = match.end(), at + MOST_OF_A_TAG
    while place < limit:
        if end := _END.match(text, place):
            return end.end()
        attribute = _ATTRIBUTE.match(text, place)
        if attribute is None or (attribute.end() == place and text[place : place + 1] != "{"):
            return None
        place = attribute.end()
        if text[place : place + 1] == "{" and (attribute[1] is None or (attribute[2] and not attribute[3])):
            closing = braces.get(place + shift)
            if closing is None:
                return None
            place = closing - shift + 1
    return None


def texts_in(code: str) -> list[str]:
    """Return the text of elements in JavaScript, which readers see, and that of their attributes."""
    if "<" not in code:
        return []
    bare = _COMMENT.sub("", code)
    texts = (
        " ".join(match[match.lastindex or 1].split()) for pattern in (_TEXT, _SHOWN) for match in pattern.finditer(bare)
    )
    return [text for text in texts if _WORD.search(text)]
