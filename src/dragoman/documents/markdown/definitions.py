"""Rules of markdown-it-py for definitions: footnotes, lists of terms and their descriptions, addresses by a template.

They are added to the parser of ``blocks``.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from dragoman.documents.markdown.lines import Lines
from dragoman.documents.markdown.state import View, add_raw, read_inside

if TYPE_CHECKING:
    from markdown_it.rules_block import StateBlock

_NOTE = re.compile(r"\[\^[^\]\s]+\]:[ \t]*")
_BY_CODE = re.compile(r"\[([^\[\]\n]{1,200})\]:[ \t]+(\{[%{][^\n]*[%}]\}[^\s}]*+)[ \t]*+\Z")


def _marked(state: StateBlock, start: int, end: int, marker: tuple[int, int], indent: int) -> None:
    """Read a block whose first line has a marker, and whose other lines are indented.

    Args:
        state, start, end: See ``markdown_it``.
        marker: Its number of characters, and that of the spaces behind it which are the indent of code.
        indent: Of the other lines.
    """
    size, surplus = marker
    place, line_end = View(state, start, end)[0]
    own = state.bMarks[start], state.tShift[start], state.sCount[start]
    last = start + 1
    for i in range(start + 1, end):
        if state.isEmpty(i):
            continue
        if state.sCount[i] < state.blkIndent + indent:
            if i > last or state.isEmpty(i - 1):
                break
            if any(rule(state, i, end, True) for rule in state.md.block.ruler.getRules("paragraph")):
                break
        last = i + 1
    state.tShift[start] = place + size + surplus - state.bMarks[start]
    state.sCount[start] = state.blkIndent + indent + surplus
    if place + size >= line_end:
        add_raw(state, start, Lines())
        state.line = start + 1
    read_inside(state, start if place + size < line_end else start + 1, last, indent)
    state.bMarks[start], state.tShift[start], state.sCount[start] = own
    state.line = max(last, start + 1)


def footnote(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """Read the text of a footnote such as ``[^1]: A dog.``."""
    if state.is_code_block(start):
        return False
    place, line_end = View(state, start, end)[0]
    match = _NOTE.match(state.src, place, line_end)
    if match is None:
        return False
    if not silent:
        _marked(state, start, end, (len(match[0]), 0), 4 if _is_far(state, start + 1, end, 4) else 2)
    return True


def _is_far(state: StateBlock, line: int, end: int, indent: int) -> bool:
    """True if the next lines that are indented are all indented by ``indent`` or more."""
    for i in range(line, min(end, line + 20)):
        if not state.isEmpty(i):
            own = state.sCount[i] - state.blkIndent
            if own < indent:
                return own <= 0
    return True


def definition_by_code(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """Keep the definition of a link whose address a template writes: ``[dog]: {% link dog.md %}``."""
    place, line_end = View(state, start, end)[0]
    match = None if state.is_code_block(start) else _BY_CODE.match(state.src, place, line_end)
    if match is None:
        return False
    if not silent:
        from markdown_it.common.utils import normalizeReference

        reference = {"href": match[2], "title": "", "map": [start, start + 1]}
        state.env.setdefault("references", {}).setdefault(normalizeReference(match[1]), reference)
        add_raw(state, start, Lines())
    return True


def description(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """Read the description in a list of definitions: ``: A dog.`` or ``~ A dog.`` below the term."""
    place, line_end = View(state, start, end)[0]
    source = state.src
    if (
        state.is_code_block(start)
        or source[place : place + 1] not in (":", "~")
        or source[place + 1 : place + 2] not in (" ", "\t")
    ):
        return False
    text = source[place + 1 : line_end]
    if not text.strip():
        return False
    if not silent:
        n_spaces = len(text) - len(text.lstrip())
        marker = (1 + n_spaces, 0) if n_spaces < 5 else (2, n_spaces - 1)
        _marked(state, start, end, marker, 4 if _is_far(state, start + 1, end, 4) else 2)
    return True
