"""What is told about lines of Markdown: where they stand, and what a dialect's markup keeps of them."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

MOST_LINES = 5_000
"""Largest number of lines of one stretch of markup."""

_NOT_A_TITLE = re.compile(r"\{[^{}]*\}\Z")


@dataclass(frozen=True)
class Around:
    """The place of lines in their document: what a line may mean depends on it."""

    source: str
    mdx: bool
    braces: dict[int, int]
    fences: list[str]
    """Opening fences of directives that are not closed yet."""
    misses: dict[str, int]
    """For a kind of markup: the place up to which its end is known not to come."""
    formula_ends: dict[str, list[int]]
    """For an environment of LaTeX: the places of its ends."""
    components: bool
    """True if there are components of Nuxt's MDC."""
    silent: bool
    """True if nobody wants more than to know that a paragraph ends here."""


@dataclass(frozen=True)
class Lines:
    """Lines that are kept, but for their titles."""

    count: int = 1
    titles: tuple[tuple[int, int, str], ...] = ()
    """First character in the first line, the one behind the last, and the kind: ``quoted`` or ``text``."""
    indent: int = 0
    """Number of spaces in front of the lines that belong to them; 0 if none do."""
    why: str = ""
    """Reason why their text is left, to be reported; "" for code."""
    joins: bool = False
    """True if they may belong to the paragraph before them: a list of its attributes."""


Text = Sequence[tuple[int, int]]
"""The places of the first character and of the end of each line."""


def lines_until(lines: Text, around: Around, kind: str, ends: Callable[[str], object]) -> int:
    """Return the number of lines up to the one for which ``ends`` is true, 0 if there is none."""
    if lines[0][0] < around.misses.get(kind, -1):
        return 0
    last = min(len(lines), MOST_LINES) - 1
    for i in range(1, last + 1):
        if ends(around.source[lines[i][0] : lines[i][1]].rstrip()):
            return i + 1
    around.misses[kind] = lines[last][1]
    return 0


def title_of(text: str, start: int, end: int, kind: str = "text") -> tuple[tuple[int, int, str], ...]:
    """Return a title without its brackets and what stands around it."""
    end = start + len(text[start:end].rstrip())
    if rest := _NOT_A_TITLE.search(text, start, end):
        end = rest.start()
    while start < end and text[start].isspace():
        start += 1
    while start < end and text[end - 1].isspace():
        end -= 1
    for opening, closing in (("[", "]"), ('"', '"')):
        if end - start > 2 and text[start] == opening and text[end - 1] == closing:
            start, end, kind = start + 1, end - 1, "quoted" if opening == '"' else kind
            break
    return ((start, end, kind),) if start < end else ()
