"""Tags, braces and modules of MDX, which hold JavaScript."""

from __future__ import annotations

import re
from collections.abc import Sequence

_BRACE = re.compile(r"/\*|[{}]")
_NAME = re.compile(r"</?(?:[A-Za-z][\w.:-]*)?")
_ATTRIBUTE = re.compile(
    r"[ \t\n]*(?:([A-Za-z_@:$][\w.:@$-]*+(?:/[\w.:-]++)*)([ \t\n]*=[ \t\n]*(\"[^\"]*\"|'[^']*'|(?=\{)))?|(?=\{))"
)
_END = re.compile(r"[ \t\n]*/?>")

_COMMENT = re.compile(r"/\*(?:[^*]|\*(?!/))*+(?:\*/)?")
_TEXT = re.compile(r"(?<![=-])>([^<>{}]++)(?=<[/A-Za-z>]|\{)|\}([^<>{}]++)(?=</)")
_SHOWN = re.compile(r"<[A-Za-z][^<>]*\s(?:alt|title|label|placeholder|aria-label)=[\"']([^\"'{}]++)")
_WORD = re.compile(r"[^\W\d_]{2}")

_IN_CODE = re.compile(
    r"(?<!:)//.*|(?<!\w)(?:'(?:[^'\\]|\\.)*+'|\"(?:[^\"\\]|\\.)*+\")|\\."
    r"|(?:(?<=[(=,:\[!&|?;])|(?<=[(=,:\[!&|?;] ))/(?![/*])(?:[^/\\]|\\.)++/|/\*|[`{}()\[\]]"
)
"""What a line of JavaScript opens and closes, and the comments, strings and regular expressions between."""
_IN_TEMPLATE = re.compile(r"\\.|`|\$\{")
_IN_COMMENT = re.compile(r"\*/")

_TOKENS = {"`": _IN_TEMPLATE, "/*": _IN_COMMENT}
_OPENING = ("`", "${", "{", "(", "[", "/*")

MODULE = re.compile(
    r"import\s+(?:[\w$*{][^'\"]*\sfrom\s*)?(?:'[^'\n]+'|\"[^\"\n]+\")[ \t]*"
    r"(?:(?:with|assert)\s*\{.*|;[ \t]*(?:import|export)\b.*|;?[ \t]*(?:/[/*].*)?)\Z"
    r"|export\s+(?:(?:const|let|var)\s+(?:[{\[]|[\w$]+\s*[=:])|\{|\*\s+(?:from|as)\s"
    r"|(?:default\s+)?(?:(?:async\s+)?function\b[\s*]*+[\w$]*+\s*+\(|class\b\s*+[\w$]*+\s*+(?:extends\s.*)?\{)"
    r"|default\s+(?:[{<]|\(\s*(?:\Z|[({\[<]|[^()]*\)\s*=>)|[\w$]+\s*=>|[\w$.]+\(|[\w$.]+[ \t]*;|[A-Z][\w$]*[ \t]*\Z))"
)
"""The first line of an import or export of JavaScript; a line of prose may begin with these words too."""

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


def module_lines(source: str, lines: Sequence[tuple[int, int]]) -> int:
    """Return the number of lines of an import or export that begins with the first line; 0 if it does not end.

    It ends where no bracket, string or comment is open and the next line does not go on with it; a blank line inside
    of them belongs to it, as for a parser of JavaScript (micromark-extension-mdxjs-esm).

    Args:
        source: The text of the file.
        lines: Start and end of the line that begins it, and of those below.
    """
    opened: list[str] = []
    for i, (at, end) in enumerate(lines):
        while token := _TOKENS.get(opened[-1] if opened else "", _IN_CODE).search(source, at, end):
            sign, at = token[0], token.end()
            if sign in ("}", ")", "]", "*/") or sign == "`" == "".join(opened[-1:]):
                del opened[-1:]
            elif sign in _OPENING:
                opened.append(sign)
        below = source[slice(*lines[i + 1])] if i + 1 < len(lines) else ""
        if not opened and not (below.strip() and below[0] in " \t.})];"):
            return i + 1
    return 0


def texts_in(code: str) -> list[str]:
    """Return the text of elements in JavaScript, which readers see, and that of their attributes."""
    if "<" not in code:
        return []
    bare = _COMMENT.sub("", code)
    texts = (
        " ".join(match[match.lastindex or 1].split()) for pattern in (_TEXT, _SHOWN) for match in pattern.finditer(bare)
    )
    return [text for text in texts if _WORD.search(text)]
