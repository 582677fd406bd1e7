"""Lines of a message: hard-wrapped sentences are joined, and wrapped again; columns, lists and blank lines stay.

    blocks("Read\nthe book, then sleep here.\n")    # [Paragraph(("Read", ...)), "\n"]

A line goes on in the next if that begins where it began, is no list item and has no columns, and if its first word did
not fit: the line is long, or breaks off in a sentence. One that ends a sentence goes on only where another line of the
message breaks off; else each line is a sentence of its own.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TypeAlias

LONG = 45
"""Least number of characters of a line that ends a sentence and is taken for one that was wrapped."""
SHORT = 20
"""Least number of characters of any line that is taken for one that was wrapped."""

_LEADING = re.compile(r"\s*+")
_BULLET = re.compile(r"(?:[-*+\u2022\u2023\u25e6\u2013\u00b7]|\(?\d{1,3}[.)]|\(?[a-zA-Z][.)])[ \t]++(?=\S)")
_GAP = re.compile(r"[ \t]*\t[ \t]*| {2,}")
_LITERAL = re.compile(r"``(?![\s`])[^`]*[^`\s]``")
"""Code, whose spaces part no columns."""
_SENTENCE_END = re.compile(r"[.!?:;\u2026\u3002\uff01\uff1f][\"')\]\u201d\u2019]*\Z")
_OPTION = re.compile(r"-{1,2}[\w?#@]")
_OPTIONS_ALONE = re.compile(
    r"(?:-{1,2}[\w?#@][\w-]*+(?:\[?=\S++)?|<[^<>\s]++>|\[[^\]\s]++\]|[A-Z_]{2,}+|\.{3}|[|,])(?:[ ,|]++|\Z)"
)
_SHORTCUT = re.compile(r"(?:(?:Ctrl|Control|Alt|Shift|Meta|Super|Cmd|Command|Option|Win)[+-]){1,4}\S{1,12}")
"""Keys that are pressed together, as wxWidgets and Win32 write them behind a tab: the program reads them."""


@dataclass
class Paragraph:
    """Text that is translated as it stands, and the lines that it was wrapped into."""

    lines: list[str] = field(default_factory=list)
    indent: str = ""  # of its second line and those after it
    column: int = 0  # of its first character
    width: int = 0  # of the message that it stands in

    @property
    def text(self) -> str:
        """Its lines joined."""
        return " ".join(self.lines)


Block: TypeAlias = "str | Paragraph"


@dataclass
class _Last:
    """The paragraph at the end of the line before, and the columns at which a line may go on with it."""

    paragraph: Paragraph | None = None
    columns: tuple[int, ...] = ()
    length: int = 0


@dataclass(frozen=True)
class _Message:
    """Facts about all lines of a message."""

    width: int
    described: frozenset[int]  # the columns at which it describes options
    is_wrapped: bool  # one of its lines breaks off in a sentence


def blocks(text: str) -> list[Block]:
    """Return the paragraphs of a message and what stands between them; joined they are the message."""
    lines = text.split("\n")
    message = _Message(max(map(_columns, lines)), _described(lines), _breaks_off(lines))
    made: list[Block] = []
    last = _Last()
    for number, line in enumerate(lines):
        indent = _LEADING.match(line)[0]  # type: ignore[index]  # it matches nothing too
        body = line[len(indent) :].rstrip()
        if last.paragraph is not None and number and _goes_on(last, indent, body, line, message):
            made.pop()  # the line end
            last.paragraph.lines.append(body)
            last.paragraph.indent = last.paragraph.indent if len(last.paragraph.lines) > 2 else indent
            last = _Last(last.paragraph, (_columns(indent),), _columns(line))
        else:
            last = _line(made, indent, body, message)
        trailing = line[len(indent) + len(body) :]
        if trailing:
            made.append(trailing)
            last = _Last()
        if number < len(lines) - 1:
            made.append("\n")
    return made


def _breaks_off(lines: Sequence[str]) -> bool:
    """True if one of the lines breaks off in a sentence, which the next one ends."""
    return any(
        len(line) >= SHORT and not _SENTENCE_END.search(line.rstrip()) and following.lstrip()[:1].islower()
        for line, following in pairwise(lines)
    )


def _goes_on(last: _Last, indent: str, body: str, line: str, message: _Message) -> bool:
    """True if a line goes on with the paragraph of the line before."""
    if not body or _columns(indent) not in last.columns or _BULLET.match(body) or _OPTION.match(body):
        return False
    if any(not _ends_sentence(body, gap) for gap in _gaps(body)):
        return False
    first_word = body.split(None, 1)[0]
    if last.length < SHORT or last.length + 1 + len(first_word) <= message.width:
        return False
    ends = _SENTENCE_END.search((last.paragraph or Paragraph([""])).lines[-1]) is not None
    if ends:
        return message.is_wrapped and last.length >= LONG
    return last.length >= LONG or not first_word[:1].isupper()


def _ends_sentence(body: str, gap: re.Match[str]) -> bool:
    """True if a gap parts two sentences, as two spaces do in English."""
    return gap[0] == "  " and _SENTENCE_END.search(body[max(0, gap.start() - 4) : gap.start()]) is not None


def _described(lines: Sequence[str]) -> frozenset[int]:
    """Return the columns at which the descriptions of options begin."""
    starts = set()
    for line in lines:
        body = line.lstrip()
        if _OPTION.match(body) and len(cells := _cells(body, 0)) > 1:
            starts.add(_columns(line[: len(line) - len(body) + cells[1][0]]))
    return frozenset(starts)


def _line(made: list[Block], indent: str, body: str, message: _Message) -> _Last:
    """Append the columns of a line, which follows its indent; return its last one."""
    if indent:
        made.append(indent)
    if not body:
        return _Last()
    at, columns = 0, []
    if bullet := _BULLET.match(body):
        made.append(bullet[0])
        at = bullet.end()
    else:
        columns.append(_columns(indent))
    cells = _cells(body, at)
    first = _options_end(body[: cells[0][1]]) if message.described else 0
    if first and _columns(indent + body[:first]) in message.described:
        # one space parts a long option from its description
        cells[:1] = [(at, len(body[:first].rstrip())), (first, cells[0][1])]
    paragraph = None
    for i, (start, end) in enumerate(cells):
        if i:
            made.append(body[cells[i - 1][1] : start])
        cell = body[start:end]
        is_term = _OPTION.match(cell) is not None and len(cells) > 1
        is_shortcut = body[start - 1 : start] == "\t" and _SHORTCUT.fullmatch(cell) is not None
        if is_term or is_shortcut or _is_options(cell):
            made.append(cell)
            paragraph = None
        else:
            paragraph = Paragraph([cell], "", _columns(indent + body[:start]), message.width)
            made.append(paragraph)
    if len(cells) > 1 or at:
        columns = [_columns(indent + body[: cells[-1][0]])]
    return _Last(paragraph, tuple(columns), _columns(indent + body))


def _cells(body: str, start: int) -> list[tuple[int, int]]:
    """Return start and end of each column of a line."""
    cells = []
    for gap in _gaps(body, start):
        if not _ends_sentence(body, gap):
            cells.append((start, gap.start()))
            start = gap.end()
    return [*cells, (start, len(body))]


def _gaps(body: str, start: int = 0) -> Iterator[re.Match[str]]:
    """Yield the gaps of a line outside its code."""
    literals = [match.span() for match in _LITERAL.finditer(body)] if "``" in body else []
    starts = [first for first, _ in literals]
    for gap in _GAP.finditer(body, start):
        i = bisect_right(starts, gap.start()) - 1
        if i < 0 or gap.start() >= literals[i][1]:
            yield gap


def _is_options(cell: str) -> bool:
    """True if a column has only options and the names of their values."""
    return _options_end(cell) == len(cell)


def _options_end(cell: str) -> int:
    """Return where the options at the start of a column end, and the names of their values; 0 without one."""
    if not _OPTION.match(cell):
        return 0
    end = 0
    while end < len(cell) and (match := _OPTIONS_ALONE.match(cell, end)):
        end = match.end()
    return end


def _columns(text: str) -> int:
    return len(text.expandtabs(8))


def wrapped(paragraph: Paragraph, text: str) -> str:
    """Return a translation wrapped as its paragraph was: at the same words if they have the same lengths."""
    if len(paragraph.lines) == 1:
        return text
    lines = _broken(text, [len(line) for line in paragraph.lines])
    if [len(line) for line in lines] != [len(line) for line in paragraph.lines]:
        inner = max(paragraph.width - _columns(paragraph.indent), SHORT)
        lines = _broken(text, [max(paragraph.width - paragraph.column, SHORT), inner])
    return f"\n{paragraph.indent}".join(lines)


def _broken(text: str, widths: list[int]) -> list[str]:
    """Break a text into lines of at most these widths; the last width holds for all lines after."""
    lines: list[str] = []
    start = end = 0
    for word in _PLACES.finditer(text):
        limit = widths[min(len(lines), len(widths) - 1)]
        if end > start and word.end() - start > limit:
            lines.append(text[start:end].rstrip())
            start = word.start()
        end = word.end()
    return [*lines, text[start:]]


_PLACES = re.compile(
    r"(?:<[A-Za-z/][^<>\n]{0,300}>|[^\s<\u2e80-\ufe6f\uff00-\uffef]++|<)++|"
    r"[\u2e80-\ufe6f\uff00-\uffef][\u3001\u3002\uff01-\uff1f]*+"
)
"""Words, before each of which a line may end; a Chinese character is one, with the punctuation after it, and so is a
tag with the words that touch it."""
