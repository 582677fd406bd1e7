"""Lines that a single program reads as markup: DocFX, Slidev, Swift's DocC, kramdown-rfc, Pandoc, VuePress, Markua.

Each function gets the lines from one on and returns a ``Lines`` if they are its markup; see ``dialects``.
"""

from __future__ import annotations

import re

from dragoman.documents.markdown.lines import Around, Lines, Text, lines_until, title_of
from dragoman.documents.shortcodes import TWO_WORDS

TEXT_OF_YAML = TWO_WORDS
"""Two words of a value in YAML, which may be text that people read."""
PROPERTY = re.compile(r"[a-z][\w-]*::(?=[ \t]|\Z)|#\+(?:BEGIN|END)_\w+")
"""What begins a property or a quote in Logseq."""

_WITH_ATTRIBUTES = re.compile(
    r":{3}[ \t]*[\w-]+(?:[ \t]+[\w-]+=\"[^\"\n]*\")*[ \t]*:{3}\Z|:{3}[ \t]*(?:zone|moniker)\b[^\n]*\Z"
)
_ROW = re.compile(r":::[ \t]*(?:row|column)\b(?!-)")
_KEY = re.compile(r"[a-z][\w.-]*:(?:[ \t]|\Z)")
_BELOW_A_KEY = re.compile(r"[ \t]+\S|- |#")
_SECTION = re.compile(r"--- (?:abstract|middle|back|note_\w+)\Z")
_DIRECTIVE = re.compile(r"@([A-Z]\w*)(?:\(.*\))?[ \t]*+(\{)?[ \t]*+\}?\Z")
_SHOWN = re.compile(r"\b(?:alt|title|caption):[ \t]*\"((?:[^\"\\]|\\.)*)\"")
_SHOWN_NAME = re.compile(r"@(?:Tab|DisplayName|TitleHeading)\(\"((?:[^\"\\]|\\.)*)\"")
_TAB = re.compile(r"@(?:tab|slot)(?::active)?(?:[ \t]+([^#]*))?(?:#.*)?\Z")
_PROGRESS = re.compile(r"\[=[\d.]+%?[ \t]+\"([^\"\n]*)\"\](?:\{[^{}\n]*\})?\Z")
_ATTRIBUTES = re.compile(r"\{[a-z][\w-]*+:[ \t]*+[^{}\n]++\}\Z")
_MOST_OF_A_HEAD = 60


def colons(text: str, lines: Text, around: Around) -> Lines | None:
    """Recognise an extension of DocFX, such as ``:::image source="a.png" alt-text="A dog":::``."""
    if not _WITH_ATTRIBUTES.match(text):
        return None
    return Lines(indent=3 if _ROW.match(text) else 0)  # people indent what stands in a row and in a column


def head_of_a_slide(text: str, lines: Text, around: Around) -> Lines | None:
    """Recognise the head of a slide of Slidev, YAML between two lines ``---``, and a section of an RFC."""
    if _SECTION.match(text):
        return Lines()
    start = lines[0][0]
    if text != "---" or len(lines) < 3 or (start and around.source[start - 2 : start] != "\n\n"):
        return None
    if not _KEY.match(around.source, *lines[1]):
        return None
    count = lines_until(lines[:_MOST_OF_A_HEAD], around, "head of a slide", lambda line: line == "---")
    # An indent is not part of a line's place, so the line is read from the end of the one before it.
    inside = [around.source[lines[i - 1][1] + 1 : lines[i][1]] for i in range(1, count - 1)]
    if not inside or not all(_KEY.match(line) or _BELOW_A_KEY.match(line) for line in inside):
        return None
    has_text = any(TEXT_OF_YAML.search(line) for line in inside)
    return Lines(count, why="the head of a slide is not translated" if has_text else "")


def at_sign(text: str, lines: Text, around: Around) -> Lines | None:
    """Recognise a directive of DocC, such as ``@Column {``, and a tab of VuePress."""
    if tab := _TAB.match(text):
        return Lines(1, title_of(text, *tab.span(1)) if tab[1] else ())
    directive = _DIRECTIVE.match(text)
    if directive is None:
        return None
    if directive[1] == "Comment" and directive[2]:
        return Lines(lines_until(lines, around, "comment of DocC", lambda line: line == "}") or 1)
    shown = [*_SHOWN.finditer(text), *_SHOWN_NAME.finditer(text)]
    return Lines(1, tuple((*match.span(1), "quoted") for match in shown), 4 if directive[2] else 0)


def closing_brace(text: str, lines: Text, around: Around) -> Lines | None:
    """Recognise the end of a directive of DocC."""
    return Lines() if text == "}" else None


def percent(text: str, lines: Text, around: Around) -> Lines | None:
    """Recognise a line of Pandoc's title block."""
    above = around.source[: lines[0][0]]
    is_first = not above or (above.startswith("%") and len(above) < 2_000 and "\n\n" not in above)
    return Lines(1, title_of(text, 1, len(text))) if is_first and text.startswith("% ") else None


def brackets(text: str, lines: Text, around: Around) -> Lines | None:
    """Recognise a bar of progress of PyMdown, such as ``[=50% "Half"]``."""
    match = _PROGRESS.match(text)
    return Lines(1, ((*match.span(1), "quoted"),)) if match else None


def braces(text: str, lines: Text, around: Around) -> Lines | None:
    """Recognise attributes of Markua, such as ``{class: info}``."""
    if not _ATTRIBUTES.match(text):
        return None
    titles = tuple((*match.span(1), "quoted") for match in _SHOWN.finditer(text))
    is_text = not titles and TEXT_OF_YAML.search(text)
    return Lines(1, titles, why="attributes in braces are not translated" if is_text else "")
