"""Paragraphs of office documents (OOXML and OpenDocument) as units.

A paragraph's text flows through inline elements. OOXML divides it into runs, each with its own properties. The
properties of most characters of a paragraph are its usual style; a run with other properties is treated like an element
around its words. Anything that is neither text nor inline (a footnote, a picture, a field) is a tag, and paragraphs
inside it are units of their own.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from dragoman.documents.units import Part, Tag, Unit, escape
from dragoman.documents.xml import Token, closing_tags, tokens
from dragoman.translation.keeping.protected import has_letters


@dataclass(frozen=True)
class Grammar:
    """The role of each element of an office format, by its name with the usual prefix of its namespace."""

    namespaces: Mapping[str, str]  # namespace address: usual prefix
    paragraphs: frozenset[str]
    inline: frozenset[str]  # the text of the paragraph flows through these
    breaks: frozenset[str]  # these end a unit
    dropped: frozenset[str] = frozenset()  # records of layout and spelling, out of date once the text is translated
    runs: frozenset[str] = frozenset()  # empty: text stands in paragraphs directly
    direct: frozenset[str] = frozenset()  # paragraphs whose text stands outside runs, in a format with runs
    texts: Mapping[str, str] = field(default_factory=dict)  # elements that stand for characters
    untouched: frozenset[str] = frozenset()  # nothing inside is translated, such as deleted text


@dataclass
class _Item:
    """A piece of a paragraph: text in one style, a tag or a line break."""

    kind: Literal["text", "open", "close", "point", "break"]
    parts: tuple[Part, ...]  # its source
    text: str = ""
    style: tuple[str, str] = ("", "")  # source before and after text in this style
    name: str = ""  # the opening and the closing tag of an element share it


def paragraphs(text: str, grammar: Grammar) -> list[Part]:
    """Cut the XML of an archive member into parts: units for its paragraphs, source between them."""
    return _Reader(tokens(text, dict(grammar.namespaces)), grammar).outside()


_UNSTYLED = re.compile(
    r"<\w++:(?:lang|noProof)\b[^<>]*+(?<=/)>|\s(?:lang|altLang|dirty|err|smtClean|w:rsid\w*)=\"[^\"]*\""
)


class _Reader:
    """Reads the paragraphs out of the tokens of an archive member."""

    def __init__(self, member: list[Token], grammar: Grammar) -> None:
        self.tokens, self.grammar, self.closing = member, grammar, closing_tags(member)
        self._paragraphs: dict[int, list[Part]] = {}  # by their first token; one without words is asked for twice

    def outside(self, at: int = 0, end: int | None = None) -> list[Part]:
        """Return the tokens ``at`` to ``end - 1``, which lie outside paragraphs, as parts; paragraphs become units."""
        parts: list[Part] = []
        raw: list[str] = []
        stop = len(self.tokens) if end is None else end
        while at < stop:
            token = self.tokens[at]
            if token.kind == "open" and token.name in self.grammar.paragraphs:
                parts += ["".join(raw), token.source, *self._paragraph(at)]
                raw, at = [], self.closing[at]
            elif token.kind == "open" and token.name in self.grammar.untouched:
                raw.append(self._source(at, self.closing[at] + 1))
                at = self.closing[at] + 1
            else:
                raw.append(token.source)
                at += 1
        return [part for part in (*parts, "".join(raw)) if part]

    def _source(self, at: int, end: int) -> str:
        """Return the source of the tokens ``at`` to ``end - 1``."""
        return "".join(token.source for token in self.tokens[at:end])

    def _paragraph(self, at: int) -> list[Part]:
        """Return the content of the paragraph that opens at ``at``: a unit for each line, if it has any words."""
        if at not in self._paragraphs:
            self._paragraphs[at] = self._read_paragraph(at)
        return self._paragraphs[at]

    def _read_paragraph(self, at: int) -> list[Part]:
        is_direct = not self.grammar.runs or self.tokens[at].name in self.grammar.direct
        items: list[_Item] = []
        self._inline(at + 1, self.closing[at], is_direct, items)
        text = "".join(item.text if item.kind == "text" else "\n" * (item.kind == "break") for item in items)
        if not any(map(has_letters, text.split("\n"))):
            return self.outside(at + 1, self.closing[at])
        parts: list[Part] = []
        unit: list[_Item] = []
        for item in [*items, _Item("break", ())]:
            if item.kind == "break":
                parts += [*_unit(unit), *item.parts]
                unit = []
            else:
                unit.append(item)
        return parts

    def _inline(self, at: int, end: int, is_direct: bool, items: list[_Item]) -> None:
        """Add the pieces of the tokens ``at`` to ``end - 1`` of a paragraph to ``items``.

        Args:
            is_direct: Text stands outside runs; in a paragraph of runs it is only white space between them.
        """
        grammar = self.grammar
        while at < end:
            token = self.tokens[at]
            after = self.closing[at] + 1 if token.kind == "open" else at + 1
            if token.kind == "text":
                if is_direct:
                    items.append(_Item("text", (token.source,), token.text))
                elif token.text.strip():  # which no such file should have
                    items.append(_Item("point", (token.source,)))
            elif token.name in grammar.dropped:
                pass
            elif token.name in grammar.runs and token.kind == "open":
                self._run(at, items)
            elif token.name in grammar.breaks:
                items.append(_Item("break", (self._source(at, after),)))
            elif token.name in grammar.texts:
                items.append(_Item("text", (self._source(at, after),), grammar.texts[token.name]))
            elif token.name in grammar.inline and token.kind == "open":
                items.append(_Item("open", (token.source,), name=f"{token.name}#{at}"))
                self._inline(at + 1, after - 1, is_direct, items)
                items.append(_Item("close", (self.tokens[after - 1].source,), name=f"{token.name}#{at}"))
            elif token.name in grammar.untouched or token.kind != "open":
                items.append(_Item("point", (self._source(at, after),)))
            else:
                items.append(
                    _Item("point", (token.source, *self.outside(at + 1, after - 1), self.tokens[after - 1].source))
                )
            at = after

    def _run(self, at: int, items: list[_Item]) -> None:
        """Add the content of the run that opens at ``at`` to ``items``, each piece wrapped in the run's own tags.

        A run holds its properties, then texts, breaks and other elements. Each piece is written as a run of its own, so
        that a translation can order them freely.
        """
        grammar, stop = self.grammar, self.closing[at]
        start, close = self.tokens[at], self.tokens[stop].source
        before = start.source
        at += 1
        while at < stop:
            token = self.tokens[at]
            after = self.closing[at] + 1 if token.kind == "open" else at + 1
            local = token.name.rpartition(":")[2]
            if local == "rPr":
                before += self._source(at, after)
            elif local == "t":
                text = "".join(piece.text for piece in self.tokens[at:after] if piece.kind == "text")
                name = re.match(r"<([^\s/>]+)", token.source)[1]  # type: ignore[index]
                space = ' xml:space="preserve"' if token.name == "w:t" else ""
                style = f"{before}<{name}{space}>", f"</{name}>{close}"
                items.append(_Item("text", (before + self._source(at, after) + close,), text, style))
            elif token.name in grammar.dropped or (token.kind == "text" and not token.text.strip()):
                pass
            elif token.kind == "text":  # which no such file should have
                items.append(_Item("point", (before, token.source, close)))
            elif token.name in grammar.texts:
                name = re.sub(r"^<((?:[\w.-]+:)?).*", r"\1t", token.source, flags=re.DOTALL)
                style = f'{before}<{name} xml:space="preserve">', f"</{name}>{close}"
                source = before + self._source(at, after) + close
                items.append(_Item("text", (source,), grammar.texts[token.name], style))
            elif token.name in grammar.breaks:
                items.append(_Item("break", (before + self._source(at, after) + close,)))
            else:
                inner = self.outside(at, after) if token.name not in grammar.untouched else [self._source(at, after)]
                items.append(_Item("point", (before, *inner, close)))
            at = after


def _unit(items: Sequence[_Item]) -> list[Part]:
    """Return a unit for the pieces of a line, with tags that enclose no word before and after it kept outside."""
    first = next((i for i, item in enumerate(items) if item.kind != "point"), len(items))
    last = next((i for i in range(len(items), first, -1) if items[i - 1].kind != "point"), first)
    before, after = items[:first], items[last:]
    return [*_raw(before), *_with_styles(items[first:last]), *_raw(after)]


def _raw(items: Sequence[_Item]) -> list[Part]:
    """Return the source of the pieces."""
    return [part for item in items for part in item.parts]


def _key(style: tuple[str, str]) -> str:
    """Return a key that is equal for styles that look the same: language and revision marks are left out."""
    return _UNSTYLED.sub("", style[0]).replace("<w:rPr></w:rPr>", "")


def _with_styles(items: Sequence[_Item]) -> list[Part]:
    """Return a unit with the styles of its text, the most frequent one first; without text, only the source."""
    if not any(item.kind == "text" for item in items):
        return _raw(items)
    sizes: Counter[str] = Counter()
    style_of: dict[str, tuple[str, str]] = {}
    for item in items:
        if item.kind == "text":
            sizes[_key(item.style)] += len(item.text.strip())
            style_of.setdefault(_key(item.style), item.style)
    keys = [key for key, _ in sizes.most_common()]
    unit = Unit(raw=_raw(items), escape=_escape, styles=[style_of[key] for key in keys])
    for item in items:
        if item.kind == "text":
            start = len(unit.text)
            unit.text += item.text
            style = keys.index(_key(item.style))
            if style and start < len(unit.text):
                unit.styled.append((start, len(unit.text), style))
        else:
            unit.tags.append(Tag(len(unit.text), item.parts, item.kind, item.name))  # type: ignore[arg-type]
    return [unit]


_IMPOSSIBLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff\ud800-\udfff]")


def _escape(text: str) -> str:
    """Return text escaped for XML; control characters, which XML cannot hold, become U+FFFD."""
    return escape(_IMPOSSIBLE.sub("\ufffd", text))
