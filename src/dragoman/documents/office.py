"""Paragraphs of office documents, OOXML's and OpenDocument's, as units.

A paragraph's text flows through inline elements. OOXML parts it into runs, each with its properties: the properties
that most of a paragraph's characters have are its style, and a run with others is like an element around its words.
What is neither text nor inline (a footnote, a picture, a field) is a tag, and paragraphs inside it are units too.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from dragoman.documents.units import Part, Tag, Unit, escape, says_something
from dragoman.documents.xml import Token, ends, tokens


@dataclass(frozen=True)
class Grammar:
    """Which elements are what, by their usual prefixes."""

    namespaces: Mapping[str, str]  # each with its usual prefix
    paragraphs: frozenset[str]
    inline: frozenset[str]  # text flows through them
    breaks: frozenset[str]  # they end a unit
    dropped: frozenset[str] = frozenset()  # caches of a layout or a spelling that is gone
    runs: frozenset[str] = frozenset()  # none: text stands in paragraphs directly
    direct: frozenset[str] = frozenset()  # paragraphs with text and no runs, where there are runs
    texts: Mapping[str, str] = field(default_factory=dict)  # elements that are characters
    untouched: frozenset[str] = frozenset()  # nothing in them is translated, such as what was deleted


@dataclass
class _Item:
    """A piece of a paragraph."""

    kind: Literal["text", "open", "close", "point", "break"]
    parts: tuple[Part, ...]  # its source
    text: str = ""
    style: tuple[str, str] = ("", "")
    name: str = ""


def paragraphs(text: str, grammar: Grammar) -> list[Part]:
    """A member of an office document cut into parts."""
    return _Reader(tokens(text, dict(grammar.namespaces)), grammar).outside()


_UNSTYLED = re.compile(r"<\w+:(?:lang|noProof)\b[^>]*/>|\s(?:lang|altLang|dirty|err|smtClean|w:rsid\w*)=\"[^\"]*\"")


class _Reader:
    def __init__(self, found: list[Token], grammar: Grammar) -> None:
        self.tokens, self.grammar, self.ends = found, grammar, ends(found)

    def outside(self, at: int = 0, end: int | None = None) -> list[Part]:
        """What is no paragraph, and the paragraphs in it."""
        parts: list[Part] = []
        raw: list[str] = []
        stop = len(self.tokens) if end is None else end
        while at < stop:
            token = self.tokens[at]
            if token.kind == "open" and token.name in self.grammar.paragraphs:
                parts += ["".join(raw), token.source, *self._paragraph(at)]
                raw, at = [], self.ends[at]
            elif token.kind == "open" and token.name in self.grammar.untouched:
                raw.append(self._source(at, self.ends[at] + 1))
                at = self.ends[at] + 1
            else:
                raw.append(token.source)
                at += 1
        return [part for part in (*parts, "".join(raw)) if part]

    def _source(self, at: int, end: int) -> str:
        return "".join(token.source for token in self.tokens[at:end])

    def _paragraph(self, at: int) -> list[Part]:
        is_direct = not self.grammar.runs or self.tokens[at].name in self.grammar.direct
        items: list[_Item] = []
        self._inline(at + 1, self.ends[at], is_direct, items)
        if not any(item.kind == "text" and item.text.strip() for item in items):
            return self.outside(at + 1, self.ends[at])
        if not any(says_something(text) for text in "".join(
            item.text if item.kind == "text" else "\n" if item.kind == "break" else "" for item in items
        ).split("\n")):  # fmt: skip
            return self.outside(at + 1, self.ends[at])
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
        grammar = self.grammar
        while at < end:
            token = self.tokens[at]
            after = self.ends[at] + 1 if token.kind == "open" else at + 1
            if token.kind == "text":
                if is_direct:
                    items.append(_Item("text", (token.source,), token.text))
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
        """A run as pieces that could each be a run."""
        grammar, stop = self.grammar, self.ends[at]
        start, close = self.tokens[at], self.tokens[stop].source
        before = start.source
        at += 1
        while at < stop:
            token = self.tokens[at]
            after = self.ends[at] + 1 if token.kind == "open" else at + 1
            local = token.name.rpartition(":")[2]
            if local == "rPr":
                before += self._source(at, after)
            elif local == "t":
                said = "".join(each.text for each in self.tokens[at:after] if each.kind == "text")
                name = re.match(r"<([^\s/>]+)", token.source)[1]  # type: ignore[index]
                kept = ' xml:space="preserve"' if token.name == "w:t" else ""
                style = f"{before}<{name}{kept}>", f"</{name}>{close}"
                items.append(_Item("text", (before + self._source(at, after) + close,), said, style))
            elif token.name in grammar.dropped or token.kind == "text":
                pass
            elif token.name in grammar.texts:
                said = grammar.texts[token.name]
                name = re.sub(r"^<((?:[\w.-]+:)?).*", r"\1t", token.source, flags=re.DOTALL)
                items.append(_Item("text", (before + self._source(at, after) + close,), said,
                                   (f'{before}<{name} xml:space="preserve">', f"</{name}>{close}")))  # fmt: skip
            elif token.name in grammar.breaks:
                items.append(_Item("break", (before + self._source(at, after) + close,)))
            else:
                inner = self.outside(at, after) if token.name not in grammar.untouched else [self._source(at, after)]
                items.append(_Item("point", (before, *inner, close)))
            at = after


def _unit(items: Sequence[_Item]) -> list[Part]:
    """A unit, and beside it what stands before its first word and after its last, and encloses none."""
    first = next((i for i, item in enumerate(items) if item.kind != "point"), len(items))
    last = next((i for i in range(len(items), first, -1) if items[i - 1].kind != "point"), first)
    before, after = items[:first], items[last:]
    return [*_raw(before), *_with_styles(items[first:last]), *_raw(after)]


def _raw(items: Sequence[_Item]) -> list[Part]:
    return [part for item in items for part in item.parts]


def _key(style: tuple[str, str]) -> str:
    """Styles that look the same have the same."""
    return _UNSTYLED.sub("", style[0]).replace("<w:rPr></w:rPr>", "")


def _with_styles(items: Sequence[_Item]) -> list[Part]:
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
    """Text for XML, which has no control characters."""
    return escape(_IMPOSSIBLE.sub("\ufffd", text))
