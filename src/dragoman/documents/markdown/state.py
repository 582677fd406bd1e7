"""The lines that markdown-it-py's parser sees now, and what rules do with them: keep them, or read them as Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, overload

from dragoman.documents.markdown.lines import Lines

if TYPE_CHECKING:
    from markdown_it.rules_block import StateBlock


class View(Sequence[tuple[int, int]]):
    """The places of the lines from one on, as the parser sees them now."""

    def __init__(self, state: StateBlock, first: int, end: int) -> None:
        self._state, self._first, self._end = state, first, end

    def __len__(self) -> int:
        return max(0, self._end - self._first)

    @overload
    def __getitem__(self, i: int) -> tuple[int, int]: ...
    @overload
    def __getitem__(self, i: slice) -> Sequence[tuple[int, int]]: ...
    def __getitem__(self, i: int | slice) -> Any:
        if isinstance(i, slice):
            start, stop, _ = i.indices(len(self))
            return View(self._state, self._first + start, self._first + stop)
        if not -len(self) <= i < len(self):
            raise IndexError(i)
        line = (self._first if i >= 0 else self._end) + i
        return self._state.bMarks[line] + self._state.tShift[line], self._state.eMarks[line]


def add_raw(state: StateBlock, start: int, lines: Lines) -> None:
    view = View(state, start, start + lines.count)
    token = state.push("raw", "", 0)
    token.map = [start, start + lines.count]
    first = view[0][0]
    titles = tuple((first + begin, first + end, kind) for begin, end, kind in lines.titles)
    token.meta = {"lines": tuple(view[i] for i in range(lines.count)), "titles": titles, "why": lines.why}
    state.line = start + lines.count


def read_indented(state: StateBlock, line: int, end: int, indent: int) -> None:
    """Read the lines that are indented, and blank lines between them, as Markdown."""
    last = line
    for i in range(line, end):
        if not state.isEmpty(i):
            if state.sCount[i] < state.blkIndent + indent:
                break
            last = i + 1
    if last > line:
        read_inside(state, line, last, indent)
    state.line = max(state.line, last)


def read_inside(state: StateBlock, line: int, last: int, indent: int) -> None:
    before = state.lineMax, state.blkIndent, state.parentType, state.tight
    state.lineMax, state.blkIndent, state.parentType = last, state.blkIndent + indent, "root"
    state.level += 1
    state.push("inside_open", "", 1)
    state.md.block.tokenize(state, line, last)
    state.push("inside_close", "", -1)
    state.level -= 1
    state.lineMax, state.blkIndent, state.parentType, state.tight = before
