"""Markdown (CommonMark and tables): markdown-it-py finds the paragraphs, headings and cells, whose source is rewritten.

Inside these blocks emphasis, links, images and HTML are tags. Inline code is copied, as in plain text. Code blocks,
link addresses and front matter keep their bytes. The result is parsed again: where characters of a translation would
become markup, they are escaped.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal

from dragoman.documents import markup
from dragoman.documents.document import Document, DocumentInfo, Untranslated, decode
from dragoman.documents.units import Part, Tag, Translations, Unit, units_of, write
from dragoman.errors import ConfigError, DataError, not_installed

if TYPE_CHECKING:
    from markdown_it.token import Token

SUFFIXES = (".md", ".markdown")
OPTIONS = ("front_matter",)

MOST_BYTES = 2_000_000
"""Largest accepted file in bytes."""

MOST_MARKS = 10_000
"""Largest accepted number of a paragraph's characters that may be markup: the time to parse it may grow with their
square. Its other characters, such as those of a picture within its address, have no limit."""

_SIGNS = "*_~`[]<>&!\\()"
"""Characters that may be markup inside a paragraph."""

_FRONT_MATTER = re.compile(r"\A---[^\S\n]*\n.*?\n(?:---|\.\.\.)[^\S\n]*(?:\n|\Z)", re.DOTALL)
_DESTINATION = re.compile(
    r"\]\(\s*+(?:<[^<>\n]*+>|(?:[^\s()\\]|\\.|\((?:[^\s()\\]|\\.|\([^\s()]*+\))*+\))*+)"
    r"(?:\s++(?:\"(?:[^\"\\]|\\.)*+\"|'(?:[^'\\]|\\.)*+'|\((?:[^()\\]|\\.)*+\)))?+\s*+\)",
    re.DOTALL,
)
_REFERENCE = re.compile(r"\]\[(?:[^\[\]\\]|\\.)*\]")
_SPECIAL = re.compile(r"([\\`*_\[\]<>~|]|&(?=[#\w]+;))")
_CODE = re.compile(r"(`[^`\n]+`)")
_BLOCK_START = re.compile(r"^(\s*)([-+#=])")
_NUMBER = re.compile(r"^(\s*\d+)(?=[.)])")


def read(data: bytes, info: DocumentInfo) -> Document:
    """Cut Markdown into the text of its paragraphs, headings and cells; see ``document.Format``."""
    if len(data) > MOST_BYTES:
        raise DataError(f"{info.name}: {len(data):,} bytes of Markdown are more than {MOST_BYTES:,}: split the file")
    text = decode(data, info)
    front = _FRONT_MATTER.match(text.text)
    begin = front.end() if front else 0
    source = text.text[begin:]
    _check_paragraphs(source, info)
    left: list[Untranslated] = []
    parts = [text.text[:begin], *_parts(source, left)]

    src_structure, references = structure(source), _references(source)

    def reject(translations: Translations) -> set[str]:
        """Choose how each unit is escaped; return the texts whose translations change the markup even so."""
        return {
            unit.plain
            for unit in _markdown_units(parts)
            if unit.plain in translations.by_text and not _keeps_marks(unit, translations, references)
        }

    def save(render: Callable[[Sequence[Part]], str]) -> bytes:
        translated = render(parts)
        # A translation may begin like a block, such as "- " or "1. ": escape all units then.
        if structure(translated[begin:]) != src_structure:
            for unit in _markdown_units(parts):
                unit.escape = _all_escaped if unit.escape is _all_escaped else escaped
            translated = render(parts)
        if structure(translated[begin:]) != src_structure:
            raise DataError(f"{info.name}: its translation would be other Markdown, even with all signs escaped")
        return text.encode(translated)

    return Document(parts, save, tuple(left), reject, text.read_as)


def _check_paragraphs(source: str, info: DocumentInfo) -> None:
    """Check the number of marks of each paragraph, before any is parsed inside."""
    for token in _parser(inside=False).parse(source):
        if token.type == "inline" and (n_marks := sum(map(token.content.count, _SIGNS))) > MOST_MARKS:
            raise DataError(
                f"{info.name}: the paragraph after line {token.map[0]:,} has {n_marks:,} characters of markup; "
                f"it may have at most {MOST_MARKS:,}: divide it by blank lines"
            )


def _markdown_units(parts: Sequence[Part]) -> Iterator[Unit]:
    """Yield the units of Markdown text, without those of HTML blocks."""
    return (unit for unit in units_of(parts) if unit.escape in (str, _in_cell, escaped, _all_escaped))


def _keeps_marks(unit: Unit, translations: Translations, references: dict[str, Any]) -> bool:
    """Set how a unit is escaped so that its translation has the same marks; False if no way of escaping does.

    The ways are tried in order: as it is, with special characters escaped, and with emphasis written as HTML.
    """
    marks = _marks(write(unit.raw, translations), references)
    for escape, as_html in ((unit.escape, False), (escaped, False), (_all_escaped, False), (escaped, True)):
        unit.escape = escape
        if as_html:
            unit.tags = [_as_html(tag) for tag in unit.tags]
        if _marks(write([unit], translations), references) == marks:
            return True
    return False


_HTML = {"*": "em", "_": "em", "**": "strong", "__": "strong", "~~": "del"}


def _as_html(tag: Tag) -> Tag:
    """Return a tag of emphasis as HTML; other tags stay.

    Markdown does not read ``**`` as emphasis next to some characters, such as Chinese punctuation.
    """
    if tag.kind == "point" or tag.parts[0] not in _HTML:
        return tag
    slash = "/" if tag.kind == "close" else ""
    return Tag(tag.place, (f"<{slash}{_HTML[str(tag.parts[0])]}>",), tag.kind, tag.name)


def _all_escaped(text: str) -> str:
    """Return text with every character escaped that could be markup."""
    return _NUMBER.sub(r"\1\\", _BLOCK_START.sub(r"\1\\\2", _SPECIAL.sub(r"\\\1", text)))


def escaped(text: str) -> str:
    """Return text with every character escaped that could be markup, except inside inline code."""
    pieces = _CODE.split(text)
    return "".join(piece if i % 2 else _all_escaped(piece) for i, piece in enumerate(pieces))


def _in_cell(text: str) -> str:
    """Return text for a table cell, where ``|`` would end the cell."""
    return text.replace("|", "\\|")


@cache
def _parser(inside: bool = True) -> Any:
    """Return the Markdown parser; ``inside``: it parses the text of paragraphs too, not only their borders."""
    try:
        from markdown_it import MarkdownIt
    except ImportError:
        raise ConfigError(not_installed("reading Markdown", "markdown-it-py")) from None
    parser = MarkdownIt("commonmark").enable(["table", "strikethrough"])
    return parser if inside else parser.disable("inline")


_MARK_OF_HTML = {
    "<em>": "em_open", "</em>": "em_close", "<strong>": "strong_open", "</strong>": "strong_close",
    "<del>": "s_open", "</del>": "s_close",
}  # fmt: skip
_TEXT = frozenset(["text", "softbreak", "text_special"])


def structure(source: str) -> list[Any]:
    """Return the kinds of all blocks with their marks and code, without text and line breaks inside paragraphs."""
    tokens: list[Any] = []
    for token in _parser().parse(source):
        tokens.append(token.type)
        if token.children:
            tokens.append(_marks_of(token.children))
        if token.type in ("fence", "code_block"):
            tokens.append(token.content)
    return tokens


def _references(source: str) -> dict[str, Any]:
    """Return the parser's table of link definitions such as ``[label]: https://a.org``."""
    definitions: dict[str, Any] = {}
    _parser().parse(source, definitions)
    return definitions


def _marks(source: str, references: dict[str, Any]) -> tuple[list[str], list[str]]:
    """Return the marks and the inline code of a paragraph's source."""
    return _marks_of(_parser().parseInline(source, references)[0].children or [])


def _marks_of(tokens: Sequence[Token]) -> tuple[list[str], list[str]]:
    """Return the marks of a paragraph in order, and its inline code sorted: a translation may reorder code."""
    marks = [
        _MARK_OF_HTML.get(token.content, token.type) for token in tokens if token.type not in (*_TEXT, "code_inline")
    ]
    return marks, sorted(token.content for token in tokens if token.type == "code_inline")


def _parts(source: str, left: list[Untranslated]) -> list[Part]:
    """Cut Markdown into parts; blocks that cannot be followed in their source are added to ``left``."""
    starts = [0, *(match.end() for match in re.finditer("\r\n?|\n", source)), len(source)]
    parts: list[Part] = []
    at = 0
    in_table = False
    for token in _parser().parse(source):
        in_table = (in_table or token.type == "table_open") and token.type != "table_close"
        if token.map is None or token.type not in ("inline", "html_block"):
            continue
        first, end = starts[token.map[0]], starts[min(token.map[1], len(starts) - 1)]
        if token.type == "html_block":
            if max(first, at) < end:
                parts += [
                    source[at : max(first, at)],
                    *markup.parse(source[max(first, at) : end], "html", attributes=True),
                ]
                at = end
            continue
        if not token.content.strip():
            continue
        places = _lines(token.content, source, max(first, at), end)
        if places is None:
            left.append(Untranslated(token.content, "its place in the Markdown was not found"))
            continue
        block = _inline(token, source, places, in_table)
        if block is None:
            left.append(Untranslated(token.content, "its Markdown could not be followed"))
            continue
        start, at_next = places[0][0], places[-1][1]
        parts += [source[at:start], *block]
        at = at_next
    return [*parts, source[at:]]


def _lines(content: str, source: str, at: int, end: int) -> list[tuple[int, int]] | None:
    """Return the span of each line of a block in the source, after the markers of quotes and lists.

    None if a line is not in the source between ``at`` and ``end``.
    """
    places = []
    for line in content.split("\n"):
        wanted = line.strip(" \t") if line.strip() else line
        place = source.find(wanted, at, end)
        if place < 0:
            wanted = wanted.replace("|", "\\|")  # a cell of a table
            place = source.find(wanted, at, end)
        if place < 0:
            return None
        places.append((place, place + len(wanted)))
        at = place + len(wanted)
    return places


def _inline(token: Token, source: str, places: Sequence[tuple[int, int]], in_table: bool) -> list[Part] | None:
    """Return the units of a block, separated by hard line breaks; None if its tokens do not match its source."""
    start, end = places[0][0], places[-1][1]
    lines = [(first - start, last - start) for first, last in places]
    walk = _Walk(source[start:end], lines, _in_cell if in_table else str)
    if not walk.follow(token.children or []) or walk.at != end - start:
        return None
    walk.end_unit()
    return walk.parts


class _Walk:
    """Follows the inline tokens of markdown-it through the source of their block, and collects units.

    The tokens do not say where they stand, so each is looked up at the place where the one before it ended.
    """

    def __init__(self, source: str, lines: Sequence[tuple[int, int]], escape: Callable[[str], str]) -> None:
        self.source, self.at, self.escape = source, 0, escape
        self.breaks = deque(
            (last, first) for (_, last), (first, _) in pairwise(lines)
        )  # end of a line, start of the next
        self.parts: list[Part] = []
        self.unit = Unit(escape=self.escape)

    def end_unit(self) -> None:
        """Add the open unit to the parts and begin a new one."""
        for i, tag in enumerate(self.unit.tags):
            if tag.share is not None:
                share = tag.place / max(1, len(self.unit.text))
                self.unit.tags[i] = Tag(tag.place, tag.parts, share=share)
        self.parts.append(self.unit)
        self.unit = Unit(escape=self.escape)

    def follow(self, tokens: Sequence[Token]) -> bool:
        """Find all tokens in the source; False if one is not there."""
        return all(self._follow_one(token) for token in tokens)

    def _follow_one(self, token: Token) -> bool:
        """Find a token at the current place and move past it; False if it is not there."""
        kind = token.type
        if kind == "text":
            return not token.content or self._text(token.content, token.content)
        if kind == "text_special":
            return self._text(token.markup, token.content)
        if kind in ("softbreak", "hardbreak"):
            return self._break(kind)
        if kind in ("em_open", "strong_open", "s_open", "em_close", "strong_close", "s_close"):
            return self._tag(token.markup, "open" if kind.endswith("open") else "close", token.markup)
        if kind == "html_inline":
            name = re.match(r"</?([A-Za-z][\w-]*)", token.content)
            is_single = name is None or token.content.endswith("/>")
            role: Any = "point" if is_single else "close" if token.content.startswith("</") else "open"
            return self._tag(token.content, role, name[1] if name else "")
        if kind == "code_inline":
            code = re.compile(rf"{token.markup}(?!`).*?(?<!`){token.markup}(?!`)", re.DOTALL)
            match = code.match(self.source, self.at)
            # Plain code stays in the text: translation copies it, and the alignment finds its place.
            if match is not None and _CODE.fullmatch(match[0]) and token.content.strip():
                return self._text(match[0], f"`{token.content}`")
            return match is not None and self._tag(match[0], "point", "")
        if kind == "link_open":
            if token.markup == "autolink":
                match = re.compile(r"<[^<>\s]*>").match(self.source, self.at)
                return match is not None and self._tag(match[0], "point", "")
            return self._tag("[", "open", "link")
        if kind == "link_close":
            return token.markup == "autolink" or self._end_of_link("link")
        if kind == "image":
            inside = token.children or []
            return self._tag("![", "open", "image") and self.follow(inside) and self._end_of_link("image")
        return False

    def _text(self, source: str, text: str) -> bool:
        """Add text, which ``source`` writes, to the open unit; False if it is not here."""
        last = self.unit.tags[-1] if self.unit.tags else None
        if last is not None and last.parts[0] == f"<{text}>":  # the text of an autolink: its tag holds it already
            return True
        in_cell = _in_cell(source)  # a table cell escapes ``|``
        source = source if self.source.startswith(source, self.at) else in_cell
        if not self.source.startswith(source, self.at):
            return False
        self.at += len(source)
        self.unit.text += text
        self.unit.raw.append(source)
        return True

    def _tag(self, source: str, kind: Literal["open", "close", "point"], name: str) -> bool:
        """Add a tag to the open unit; False if its source is not here."""
        if not self.source.startswith(source, self.at):
            return False
        self.unit.tags.append(Tag(len(self.unit.text), (source,), kind, name))
        self.unit.raw.append(source)
        self.at += len(source)
        return True

    def _end_of_link(self, name: Literal["link", "image"]) -> bool:
        """Add the closing tag of a link or image with its address; False if it is not here.

        A link such as ``[label]`` refers to a definition by its text. The translation gets ``[text][label]`` instead.
        """
        match = _DESTINATION.match(self.source, self.at) or _REFERENCE.match(self.source, self.at)
        source = match[0] if match else "]"
        start = next((i for i in range(len(self.unit.tags) - 1, -1, -1) if self.unit.tags[i].name == name), None)
        if start is None or not self._tag(source, "close", name):
            return False
        if source in ("]", "[]", "][]"):  # the text is the label
            shown = "".join(part for part in self.unit.raw[:-1] if isinstance(part, str))
            label = shown[shown.rfind("![" if name == "image" else "[") :].lstrip("![")
            tag = self.unit.tags[-1]
            self.unit.tags[-1] = Tag(tag.place, (f"][{label}]",), "close", name)
        return True

    def _break(self, kind: str) -> bool:
        """Move past a line break: a hard break ends the unit, a soft break becomes a cut inside it."""
        match = re.compile(r"(?:[ \t]*\\?\n)|[ \t]*\\?(?=\Z)").match(self.source, self.at)
        if match is None:
            return False
        line_end = match.end() - 1
        while self.breaks and (self.breaks[0][0] < self.at or self.breaks[0][1] <= line_end):
            self.breaks.popleft()
        if not self.breaks:
            return False
        after = self.breaks[0][1]
        between = self.source[self.at : after]
        self.at = after
        if kind == "hardbreak":
            self.end_unit()
            self.parts.append(between)
        else:
            self.unit.tags.append(Tag(len(self.unit.text), (between,), share=0.0))
            self.unit.raw.append(between)
            self.unit.text += " "
        return True
