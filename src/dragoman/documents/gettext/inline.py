"""Markup inside messages: elements of HTML, Pango and Mallard, reStructuredText, links of Markdown, terminal codes.

marks("See `the book <https://a.org>`_.", is_rst=True)    # "`" opens, " <https://a.org>`_" closes
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

_INLINE = re.compile(
    r"(?P<control>(?:\x1b\[[0-9;?]*[A-Za-z]|[\x00-\x08\x0b-\x1f\x7f\udc00-\udcff])++)"
    r"|(?P<code>``[^`\n](?:[^`\n]|`(?!`))*``)"
    r"|(?P<role>:[A-Za-z][\w:.+-]{0,60}:)`(?P<role_text>[^`<\n]*[^`<\s])?(?P<role_target>\s*<[^<>`\n]*>)?`"
    r"|(?P<object>:[A-Za-z][\w:.+-]{0,60}:`[^`\n]+`)"  # such as :cpp:class:`Outer<int>`
    r"|`(?P<link_text>[^`<\n]*[^`<\s])(?P<link_target>\s+<[^<>`\n]*>`__?)"
    r"|`(?P<reference>[^`<>\n]+)(?P<reference_end>`__?(?!\w))"
    r"|(?P<substitution>(?<![\w|])\|[A-Za-z][\w. -]*\|(?:__?)?(?![\w|]))"
    r"|(?P<footnote>\[(?:\#[\w.-]*|\d+|\*|[A-Za-z][\w.-]*)\]_(?!\w))"
    r"|(?P<strong>(?<![\w*\\])\*\*(?=[^\s*])[^*\n]*[^\s*\\]\*\*(?![\w*]))"
    r"|(?P<emphasis>(?<![\w*\\/])\*(?=[^\s*.])[^*\n]*[^\s*\\]\*(?![\w*]))"
    r"|!?\[(?P<label>[^\[\]\n]+)(?P<address>\]\([^()\s]+\))"
    r"|(?P<element></?(?P<name>[A-Za-z][\w:.-]*)(?:\s[^<>]*)?/?>)"
    r"|(?P<word>(?<![\w`.-])[A-Za-z](?:[\w.-]*[A-Za-z0-9])?__?(?![\w`]))"
)
_VOID = frozenset(("br", "hr", "img", "wbr", "input", "area", "col", "embed", "source", "track"))
_TEXT_ROLES = frozenset(
    (":guilabel:", ":menuselection:", ":dfn:", ":emphasis:", ":strong:", ":title:", ":sub:", ":sup:")
)


@dataclass(frozen=True)
class Mark:
    """A stretch of markup."""

    start: int
    end: int
    kind: Literal["open", "close", "point"] = "point"
    name: str = ""
    is_rst: bool = False
    source: str = ""  # to write instead of the markup


def marks(text: str, is_rst: bool) -> list[Mark]:
    """Return the markup of a text, in order; an element without its partner is text.

    Args:
        text: A sentence of a message.
        is_rst: True if the message is written in reStructuredText.
    """
    all_marks = [mark for match in _matches(text) for mark in _of(match, is_rst)]
    return sorted(_paired(all_marks, text), key=lambda mark: mark.start)


def _matches(text: str) -> Iterator[re.Match[str]]:
    """Yield matches of the pattern, and those inside text that markup encloses."""
    at = 0
    while match := _INLINE.search(text, at):
        yield match
        inner = _inner(match)
        if inner is not None:
            yield from _elements_within(text, *inner)
        at = match.end()


def _elements_within(text: str, start: int, end: int) -> Iterator[re.Match[str]]:
    for match in _INLINE.finditer(text, start, end):
        if match["element"] or match["control"]:
            yield match


def _inner(match: re.Match[str]) -> tuple[int, int] | None:
    """Return start and end of the text that a match encloses; None if it encloses none."""
    for name in ("role_text", "link_text", "reference", "label"):
        if match[name] and (name != "role_text" or match["role_target"] or match["role"] in _TEXT_ROLES):
            return match.span(name)
    if match["strong"]:
        return match.start() + 2, match.end() - 2
    if match["emphasis"]:
        return match.start() + 1, match.end() - 1
    return None


def _of(match: re.Match[str], is_rst: bool) -> Iterable[Mark]:
    """Return the marks of a match."""
    if match["element"]:
        kind: Literal["open", "close", "point"] = "close" if match[0].startswith("</") else "open"
        if match[0].endswith("/>") or (match["name"].lower() in _VOID):
            kind = "point"
        return [Mark(*match.span(), kind, match["name"])]
    if match["control"]:
        return [Mark(*match.span())]
    if match["word"] or match["code"]:  # code of one word stays in the text that the model reads
        is_mark = is_rst if match["word"] else " " in match["code"]
        return [Mark(*match.span(), is_rst=is_rst)] if is_mark else []
    if (inner := _inner(match)) is not None:
        name = f"{match.start()}"
        if match["reference"] and is_rst:  # its text is the name of its target, which stays as it is
            target = f" <{match['reference']}_>{match['reference_end']}"
            closing = Mark(inner[1], match.end(), "close", name, True, target)
            return [Mark(match.start(), inner[0], "open", name, True), closing]
        return [
            Mark(match.start(), inner[0], "open", name, is_rst), Mark(inner[1], match.end(), "close", name, is_rst)
        ]  # fmt: skip
    return [Mark(*match.span(), is_rst=is_rst)]


def _paired(all_marks: list[Mark], text: str) -> list[Mark]:
    """Return the marks without elements that are not closed or not opened, unless they have attributes."""
    open_marks: dict[str, list[int]] = {}
    stack: list[int] = []
    paired: set[int] = set()
    for i, mark in enumerate(all_marks):
        if mark.kind == "open":
            open_marks.setdefault(mark.name, []).append(len(stack))
            stack.append(i)
        elif mark.kind == "close" and open_marks.get(mark.name):
            depth = open_marks[mark.name][-1]
            while len(stack) > depth:
                first = stack.pop()
                open_marks[all_marks[first].name].pop()
            paired |= {first, i}
    alone = [mark for i, mark in enumerate(all_marks) if i not in paired and mark.kind != "point"]
    points = [Mark(mark.start, mark.end) for mark in alone if re.search(r"[\s=]", text[mark.start : mark.end])]
    return [mark for i, mark in enumerate(all_marks) if i in paired or mark.kind == "point"] + points


_RST = re.compile(
    r"``[^`\n]+``|:[A-Za-z][\w:]{0,60}:`[^`\n]+`|`[^`\n]+`__?(?!\w)|(?<!\w)\|[A-Za-z][\w-]*\|(?!\w)|\[#?\w+\]_(?!\w)"
)


def is_rst(text: str) -> bool:
    """True if a message has markup that only reStructuredText has."""
    return _RST.search(text) is not None
