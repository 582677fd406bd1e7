"""Markdown (CommonMark and tables): markdown-it-py finds the paragraphs, headings and cells; their source is rewritten.

Inside them emphasis, links, images and HTML are tags; code in a line is carried over, as it is in plain text. Code
blocks, link addresses and front matter keep their bytes. What is written is parsed again: where a translation would
become markup, its characters are escaped.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal

from dragoman.documents import markup
from dragoman.documents.document import Asked, Document, Left, decode
from dragoman.documents.units import Part, Tag, Translations, Unit, units_of, write
from dragoman.errors import ConfigError, DataError, not_installed

if TYPE_CHECKING:
    from markdown_it.token import Token

SUFFIXES = (".md", ".markdown")

MOST_BYTES = 2_000_000
"""Of a file: what it costs to parse a paragraph grows with the square of its length."""

_FRONT_MATTER = re.compile(r"\A---[^\S\n]*\n.*?\n(?:---|\.\.\.)[^\S\n]*(?:\n|\Z)", re.DOTALL)
_DESTINATION = re.compile(
    r"\]\(\s*(?:<[^<>\n]*>|(?:[^\s()\\]|\\.|\((?:[^\s()\\]|\\.|\([^\s()]*\))*\))*)"
    r"(?:\s+(?:\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'|\((?:[^()\\]|\\.)*\)))?\s*\)",
    re.DOTALL,
)
_REFERENCE = re.compile(r"\]\[(?:[^\[\]\\]|\\.)*\]")
_SPECIAL = re.compile(r"([\\`*_\[\]<>~|]|&(?=[#\w]+;))")
_CODE = re.compile(r"(`[^`\n]+`)")
_BLOCK_START = re.compile(r"^(\s*)([-+#=])")
_NUMBER = re.compile(r"^(\s*\d+)(?=[.)])")


def read(data: bytes, asked: Asked) -> Document:
    """See ``document.Format``."""
    if len(data) > MOST_BYTES:
        raise DataError(f"{asked.name}: {len(data):,} bytes of Markdown are more than {MOST_BYTES:,}: split the file")
    text = decode(data, asked)
    front = _FRONT_MATTER.match(text.text)
    begin = front.end() if front else 0
    source = text.text[begin:]
    left: list[Left] = []
    parts = [text.text[:begin], *_parts(source, left)]

    wanted, references = _shape(source), _references(source)

    def reject(found: Translations) -> set[str]:
        """Escape what must be; the texts whose translations would be other Markdown all the same."""
        return {unit.plain for unit in _own(parts) if unit.plain in found.of and not _is_kept(unit, found, references)}

    def save(render: Callable[[Sequence[Part]], str]) -> bytes:
        made = render(parts)
        if _shape(made[begin:]) != wanted:  # the beginning of a list, or the like
            for unit in _own(parts):
                unit.escape = _all_escaped if unit.escape is _all_escaped else _escaped
            made = render(parts)
        if _shape(made[begin:]) != wanted:
            raise DataError(f"{asked.name}: its translation would be other Markdown, even with all signs escaped")
        return text.encode(made)

    return Document(parts, save, tuple(left), reject)


def _own(parts: Sequence[Part]) -> Iterator[Unit]:
    """The units that are Markdown, and not HTML."""
    return (unit for unit in units_of(parts) if unit.escape in (str, _in_cell, _escaped, _all_escaped))


def _is_kept(unit: Unit, found: Translations, references: dict[str, Any]) -> bool:
    """Does a unit keep its marks as it is, with its signs escaped, or with its emphasis as HTML?"""
    wanted = _marks(write(unit.raw, found), references)
    for escape, as_html in ((unit.escape, False), (_escaped, False), (_all_escaped, False), (_escaped, True)):
        unit.escape = escape
        if as_html:
            unit.tags = [_as_html(tag) for tag in unit.tags]
        if _marks(write([unit], found), references) == wanted:
            return True
    return False


_HTML = {"*": "em", "_": "em", "**": "strong", "__": "strong", "~~": "del"}


def _as_html(tag: Tag) -> Tag:
    """Emphasis as HTML: its signs do not work beside any other character, such as Chinese punctuation."""
    if tag.kind == "point" or tag.parts[0] not in _HTML:
        return tag
    slash = "/" if tag.kind == "close" else ""
    return Tag(tag.place, (f"<{slash}{_HTML[str(tag.parts[0])]}>",), tag.kind, tag.name)


def _all_escaped(text: str) -> str:
    """Text with every sign escaped that could be markup."""
    return _NUMBER.sub(r"\1\\", _BLOCK_START.sub(r"\1\\\2", _SPECIAL.sub(r"\\\1", text)))


def _escaped(text: str) -> str:
    """The same, and code stays code."""
    pieces = _CODE.split(text)
    return "".join(piece if i % 2 else _all_escaped(piece) for i, piece in enumerate(pieces))


def _in_cell(text: str) -> str:
    """Text of a table's cell."""
    return text.replace("|", "\\|")


@cache
def _parser() -> Any:
    try:
        from markdown_it import MarkdownIt
    except ImportError:
        raise ConfigError(not_installed("reading Markdown", "markdown-it-py")) from None
    return MarkdownIt("commonmark").enable(["table", "strikethrough"])


_AS_SIGNS = {
    "<em>": "em_open", "</em>": "em_close", "<strong>": "strong_open", "</strong>": "strong_close",
    "<del>": "s_open", "</del>": "s_close",
}  # fmt: skip
_TEXT = frozenset(["text", "softbreak", "text_special"])


def _shape(source: str) -> list[Any]:
    """The structure of Markdown without its text; line breaks inside a paragraph do not count."""
    shape: list[Any] = []
    for token in _parser().parse(source):
        shape.append(token.type)
        if token.children:
            shape.append(_marks_of(token.children))
        if token.type in ("fence", "code_block"):
            shape.append(token.content)
    return shape


def _references(source: str) -> dict[str, Any]:
    """The definitions of links, such as ``[label]: https://a.org``."""
    known: dict[str, Any] = {}
    _parser().parse(source, known)
    return known


def _marks(source: str, references: dict[str, Any]) -> tuple[list[str], list[str]]:
    return _marks_of(_parser().parseInline(source, references)[0].children or [])


def _marks_of(tokens: Sequence[Token]) -> tuple[list[str], list[str]]:
    """The marks of a paragraph in their order, and its code in any: it stands where its words went."""
    marks = [_AS_SIGNS.get(each.content, each.type) for each in tokens if each.type not in (*_TEXT, "code_inline")]
    return marks, sorted(each.content for each in tokens if each.type == "code_inline")


def _parts(source: str, left: list[Left]) -> list[Part]:
    starts = [0, *(match.end() for match in re.finditer("\n", source)), len(source)]
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
            left.append(Left(token.content, "its place in the Markdown was not found"))
            continue
        own = _inline(token, source, places, in_table)
        if own is None:
            left.append(Left(token.content, "its Markdown could not be followed"))
            continue
        start, at_next = places[0][0], places[-1][1]
        parts += [source[at:start], *own]
        at = at_next
    return [*parts, source[at:]]


def _lines(content: str, source: str, at: int, end: int) -> list[tuple[int, int]] | None:
    """Where each line of a block's content stands in the source, behind the signs of quotes and lists."""
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
    """The units of a block: hard line breaks part them. None: the tokens do not follow the source."""
    start, end = places[0][0], places[-1][1]
    walk = _Walk(
        source[start:end], [(first - start, last - start) for first, last in places], _in_cell if in_table else str
    )
    if not walk.through(token.children or []) or walk.at != end - start:
        return None
    walk.close()
    return walk.parts


class _Walk:
    """Follows the inline tokens of markdown-it through the source that they were made of."""

    def __init__(self, source: str, lines: Sequence[tuple[int, int]], escape: Callable[[str], str]) -> None:
        self.source, self.at, self.escape = source, 0, escape
        self.breaks = deque((last, first) for (_, last), (first, _) in pairwise(lines))  # from a line to the next
        self.parts: list[Part] = []
        self.unit = Unit(escape=self.escape)

    def close(self) -> None:
        """End a unit."""
        for i, tag in enumerate(self.unit.tags):
            if tag.share is not None:
                share = tag.place / max(1, len(self.unit.text))
                self.unit.tags[i] = Tag(tag.place, tag.parts, share=share)
        self.parts.append(self.unit)
        self.unit = Unit(escape=self.escape)

    def through(self, tokens: Sequence[Token]) -> bool:
        """Follow tokens; False: they do not."""
        return all(self._follow(token) for token in tokens)

    def _follow(self, token: Token) -> bool:
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
            alone = name is None or token.content.endswith("/>")
            role: Any = "point" if alone else "close" if token.content.startswith("</") else "open"
            return self._tag(token.content, role, name[1] if name else "")
        if kind == "code_inline":
            match = re.compile(rf"{token.markup}(?!`).*?(?<!`){token.markup}(?!`)", re.DOTALL).match(
                self.source, self.at
            )
            if (
                match is not None and _CODE.fullmatch(match[0]) and token.content.strip()
            ):  # carried over as in plain text
                return self._text(match[0], f"`{token.content}`")
            return match is not None and self._tag(match[0], "point", "")
        if kind == "link_open":
            if token.markup == "autolink":
                match = re.compile(r"<[^<>\s]*>").match(self.source, self.at)
                return match is not None and self._tag(match[0], "point", "")
            return self._tag("[", "open", "link")
        if kind == "link_close":
            return token.markup == "autolink" or self._end_of_link("close", "link")
        if kind == "image":
            return (
                self._tag("![", "open", "image")
                and self.through(token.children or [])
                and self._end_of_link("close", "image")
            )
        return False

    def _text(self, source: str, text: str) -> bool:
        last = self.unit.tags[-1] if self.unit.tags else None
        if last is not None and last.parts[0] == f"<{text}>":  # what an autolink shows
            return True
        if self.source.startswith(source, self.at):
            self.at += len(source)
        elif self.source.startswith(source.replace("|", "\\|"), self.at):  # in a table
            self.at += len(source.replace("|", "\\|"))
            self.unit.raw.append(source.replace("|", "\\|"))
            self.unit.text += text
            return True
        else:
            return False
        self.unit.text += text
        self.unit.raw.append(source)
        return True

    def _tag(self, source: str, kind: Literal["open", "close", "point"], name: str) -> bool:
        if not self.source.startswith(source, self.at):
            return False
        self.unit.tags.append(Tag(len(self.unit.text), (source,), kind, name))
        self.unit.raw.append(source)
        self.at += len(source)
        return True

    def _end_of_link(self, kind: Literal["close"], name: str) -> bool:
        match = _DESTINATION.match(self.source, self.at) or _REFERENCE.match(self.source, self.at)
        source = match[0] if match else "]"
        start = next((i for i in range(len(self.unit.tags) - 1, -1, -1) if self.unit.tags[i].name == name), None)
        if start is None or not self._tag(source, kind, name):
            return False
        if source in ("]", "[]", "][]"):  # the label is the text, which will be another
            shown = "".join(part for part in self.unit.raw[:-1] if isinstance(part, str))
            label = shown[shown.rfind("![" if name == "image" else "[") :].lstrip("![")
            tag = self.unit.tags[-1]
            self.unit.tags[-1] = Tag(tag.place, (f"][{label}]",), kind, name)
        return True

    def _break(self, kind: str) -> bool:
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
            self.close()
            self.parts.append(between)
        else:
            self.unit.tags.append(Tag(len(self.unit.text), (between,), share=0.0))
            self.unit.raw.append(between)
            self.unit.text += " "
        return True
