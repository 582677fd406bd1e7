"""Paragraphs of office documents (OOXML and OpenDocument) as units.

A paragraph's text flows through inline elements. OOXML divides it into runs, each with its own properties. The
properties of most characters of a paragraph are its usual style; a run with other properties is treated like an element
around its words. Anything that is neither text nor inline (a footnote, a picture, a field) is a tag, and paragraphs
inside it are units of their own.
"""

from __future__ import annotations

import html
import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate, pairwise
from typing import Literal

from dragoman.documents.document import Untranslated
from dragoman.documents.office.fields import READ, Formulas, words_of_fields
from dragoman.documents.plain import WIDE
from dragoman.documents.units import Part, Tag, Unit, escape, is_like_a_tag, is_note, possible
from dragoman.documents.xml import Token, closing_tags, tokens, unescape
from dragoman.translation.keeping.protected import find, has_letters


@dataclass(frozen=True)
class Grammar:
    """The role of each element of an office format, by its name with the usual prefix of its namespace."""

    namespaces: Mapping[str, str]  # namespace address: usual prefix
    paragraphs: frozenset[str]
    inline: frozenset[str]  # the text of the paragraph flows through these
    breaks: frozenset[str]  # these end a unit
    dropped: frozenset[str] = frozenset()  # records of layout and spelling, out of date once the text is translated
    runs: frozenset[str] = frozenset()  # empty: text stands in paragraphs directly
    direct: frozenset[str] = frozenset()  # paragraphs whose text has lines and stands outside runs, as a description
    texts: Mapping[str, str] = field(default_factory=dict)  # elements that stand for characters
    untouched: frozenset[str] = frozenset()  # nothing inside is translated, such as deleted text
    spaces: Mapping[str, str] = field(default_factory=dict)  # elements that stand for spaces: attribute with the number
    shown: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # attributes that people read, by local name
    ranges: Mapping[str, tuple[Literal["open", "close"], str]] = field(default_factory=dict)
    """Elements where a stretch of words begins or ends, such as a bookmark, and the attribute that both ends share."""
    facts: frozenset[str] = frozenset()  # inside others, with text that nobody reads, such as the date of a comment


@dataclass
class _Item:
    """A piece of a paragraph: text in one style, a tag or a line break."""

    kind: Literal["text", "open", "close", "point", "break"]
    parts: tuple[Part, ...]  # its source
    text: str = ""
    style: tuple[str, str] = ("", "")  # source before and after text in this style
    name: str = ""  # the opening and the closing tag of an element share it


def paragraphs(
    text: str, grammar: Grammar, formulas: Formulas
) -> tuple[list[Part], list[Untranslated]]:  # fmt: skip
    """Cut the XML of an archive member into parts: units for its paragraphs, source between them; and name the rest.

    Args:
        text: The XML.
        grammar: That of its format.
        formulas: Those of its package.
    """
    reader = _Reader(tokens(text, dict(grammar.namespaces)), grammar, formulas)
    parts = reader.outside()
    return parts, [*reader.left(), *words_of_fields(reader.tokens)]


def has_unknown_text(text: str, grammar: Grammar) -> bool:
    """True if a member has words but no paragraph, as one in the elements of another format."""
    member = tokens(text, dict(grammar.namespaces))
    has_words = any(token.kind == "text" and has_letters(token.text) for token in member)
    return has_words and all(token.name not in grammar.paragraphs for token in member)


_UNSTYLED = re.compile(
    r"<\w++:(?:lang|noProof)\b[^<>]*+(?<=/)>|\s(?:lang|altLang|dirty|err|smtClean|w:rsid\w*)=\"[^\"]*\""
)


_ATTRIBUTE = re.compile(r"\s([\w:.-]++)\s*+=\s*+([\"'])(.*?)\2", re.DOTALL)
_NUMBER_OF_LEVEL = re.compile(r"(%\d)")
"""The number in what stands before each paragraph of a list, such as "Chapter %1"."""
_END_OF_LINE = re.compile(r"((?:&#(?:0{0,4}1[03]|x0{0,4}[aAdD]);)+)")
"""Ends of lines in an attribute, of which XML reads one that is no reference as a space."""
_FILE_NAME = re.compile(r"\.(?:png|jpe?g|gif|bmp|tiff?|svg|emf|wmf|webp|ico|pdf|heic)\s*\Z", re.IGNORECASE)


def _joined(parts: Sequence[Part]) -> list[Part]:
    """Return the parts with neighbouring source joined."""
    joined: list[Part] = []
    raw: list[str] = []
    for part in parts:
        if isinstance(part, str):
            raw.append(part)
        else:
            joined += ["".join(raw), part]
            raw = []
    return [part for part in (*joined, "".join(raw)) if part]


class _Reader:
    """Reads the paragraphs out of the tokens of an archive member."""

    def __init__(self, member: list[Token], grammar: Grammar, formulas: Formulas) -> None:
        self.tokens, self.grammar, self.closing = member, grammar, closing_tags(member)
        self._formulas = formulas
        self._paragraphs: dict[int, list[Part]] = {}  # by their first token; one without words is asked for twice
        self._left: dict[tuple[int, str], Untranslated] = {}  # by the token, because a paragraph may be read twice

    def left(self) -> list[Untranslated]:
        """Return the texts that stay as they are."""
        return list(self._left.values())

    def _leave(self, token: Token, text: str, why: str) -> None:
        """Name a text of a token that stays as it is."""
        text = " ".join(text.split())
        self._left[id(token), text] = Untranslated(text, why)

    def _leave_shown(self, at: int, end: int) -> None:
        """Name what people read in the properties of runs, such as the tooltip of a link: it stays as it is."""
        properties = (i for i in range(at, end) if self.tokens[i].kind == "open" and self.tokens[i].name == "a:rPr")
        for token in (token for i in properties for token in self.tokens[i : self.closing[i]]):
            for unit in self._tag(token):
                if isinstance(unit, Unit):
                    self._leave(token, unit.text, "a description in the properties of a text")

    def outside(self, at: int = 0, end: int | None = None, is_inside: bool = False) -> list[Part]:
        """Return the tokens ``at`` to ``end - 1``, which lie outside paragraphs, as parts; paragraphs become units.

        Args:
            is_inside: They are an element inside a paragraph, such as a field: its text is named.
        """
        parts: list[Part] = []
        start, stop = at, len(self.tokens) if end is None else end
        while at < stop:
            token = self.tokens[at]
            if token.kind == "open" and self._formulas.read(token):
                parts += self._variable(at)
                at = self.closing[at] + 1
            elif token.kind == "open" and token.name in self.grammar.paragraphs:
                parts += [*self._tag(token), *self._paragraph(at)]
                at = self.closing[at]
            elif token.kind == "open" and token.name in self.grammar.untouched:
                parts += self._raw(at, self.closing[at] + 1)
                at = self.closing[at] + 1
            elif is_inside and start < at and token.kind == "open" and token.name in self.grammar.facts:
                parts.append(self._source(at, self.closing[at] + 1))
                at = self.closing[at] + 1
            else:
                parts += self._tag(token)
                if is_inside and token.kind == "text" and self._is_text(at) and has_letters(token.text):
                    self._leave(token, token.text, "a program writes this text")
                at += 1
        return _joined(parts)

    def _variable(self, at: int) -> list[Part]:
        """Return a variable that a formula reads as parts; its content, which is its value too, is named."""
        text = "".join(token.text for token in self.tokens[at : self.closing[at]] if token.kind == "text")
        if has_letters(text):
            self._leave(self.tokens[at], text, READ)
        return self._raw(at, self.closing[at] + 1)

    def _is_text(self, at: int) -> bool:
        """True if the text at ``at`` is one that people read: in a format with runs, that of an element ``t``."""
        return not self.grammar.runs or self.tokens[at - 1].name in ("w:t", "a:t")

    def _tag(self, token: Token) -> list[Part]:
        """Return a token as parts, with units for those of its attributes that people read."""
        attributes = self.grammar.shown.get(token.name.rpartition(":")[2]) if token.kind in ("open", "empty") else None
        if attributes is None:
            return [token.source]
        parts: list[Part] = []
        at = 0
        for match in _ATTRIBUTE.finditer(token.source):
            if match[1].rpartition(":")[2] not in attributes or not _has_words(value := unescape(match[3])):
                continue
            if match[1].endswith("string-value") and self._formulas.read(token):
                self._leave(token, value, READ)
                continue
            parts.append(token.source[at : match.start(3)])
            for number, line in enumerate(_END_OF_LINE.split(match[3])):
                parts.append(line if number % 2 else self._line(token, line))
            at = match.end(3)
        return _joined([*parts, token.source[at:]])

    def _line(self, token: Token, raw: str) -> Part:
        """Return a unit for a line of an attribute, or its source if nobody reads it as words."""
        value = unescape(raw)
        if not _has_words(value):
            return raw
        if _FILE_NAME.search(value):
            self._leave(token, value, "a description that is the name of a file")
            return raw
        unit = Unit(raw=[raw], escape=_escape_attribute)
        for piece in _NUMBER_OF_LEVEL.split(value) if token.name == "w:lvlText" else [value]:
            if _NUMBER_OF_LEVEL.fullmatch(piece):
                unit.tags.append(Tag(len(unit.text), (piece,)))
            else:
                unit.text += piece
        return unit

    def _raw(self, at: int, end: int) -> list[Part]:
        """Return tokens whose text stays, with units for those of their attributes that people read."""
        return _joined([part for token in self.tokens[at:end] for part in self._tag(token)])

    def _source(self, at: int, end: int) -> str:
        """Return the source of the tokens ``at`` to ``end - 1``."""
        return "".join(token.source for token in self.tokens[at:end])

    def _paragraph(self, at: int) -> list[Part]:
        """Return the content of the paragraph that opens at ``at``: a unit for each line, if it has any words."""
        if at not in self._paragraphs:
            self._paragraphs[at] = self._read_paragraph(at)
        return self._paragraphs[at]

    def _read_paragraph(self, at: int) -> list[Part]:
        is_plain = self.tokens[at].name in self.grammar.direct
        is_direct = not self.grammar.runs or is_plain
        items: list[_Item] = []
        self._inline(at + 1, self.closing[at], is_direct, items)
        if self.grammar.runs or is_plain:  # elsewhere OpenDocument has elements for the gaps that it shows
            items = _with_gaps(items)
        text = "".join(item.text if item.kind == "text" else "\n" * (item.kind == "break") for item in items)
        if not any(has_letters(line) or is_like_a_tag(line) for line in text.split("\n")):
            return self.outside(at + 1, self.closing[at])
        self._leave_shown(at + 1, self.closing[at])
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
                items.append(_Item("break", tuple(self._raw(at, after))))
            elif token.name in grammar.spaces:
                items.append(_space(self._source(at, after), token.get(grammar.spaces[token.name])))
            elif token.name in grammar.inline and token.kind == "open":
                items.append(_Item("open", tuple(self._tag(token)), name=f"{token.name}#{at}"))
                self._inline(at + 1, after - 1, is_direct, items)
                items.append(_Item("close", (self.tokens[after - 1].source,), name=f"{token.name}#{at}"))
            else:
                is_kept = token.name in grammar.untouched or token.kind != "open"
                inner = self._raw(at, after) if is_kept else self.outside(at, after, is_inside=True)
                items.append(_Item("point", tuple(inner), name=self._end_of_range(token)))
            at = after

    def _end_of_range(self, token: Token) -> str:
        """Return "open" or "close" and a name that both ends of a range share; "" for another token."""
        if token.name not in self.grammar.ranges or token.kind == "close":
            return ""
        kind, key = self.grammar.ranges[token.name]
        local = re.sub(r"-?(?:start|end)\Z", "", token.name, flags=re.IGNORECASE)
        return f"{kind} {local} {token.get(key) or ''}"

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
                shown = text if token.name != "w:t" or "preserve" in token.source else _with_single_ends(text)
                items.append(_Item("text", (before + self._source(at, after) + close,), shown, style))
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
            elif token.name == "w:ruby" and token.kind == "open":
                self._ruby(at, (before, close), items)
            else:
                is_kept = token.name in grammar.untouched
                inner = self._raw(at, after) if is_kept else self.outside(at, after, is_inside=True)
                field_part = token.get("w:fldCharType") if token.name == "w:fldChar" else None
                items.append(_Item("point", (before, *inner, close), name=field_part or ""))
            at = after

    def _ruby(self, at: int, run: tuple[str, str], items: list[_Item]) -> None:
        """Add the base text of a ruby as text, and name its reading, of which a translation has no use.

        Args:
            run: Source before and after the ruby in its run.
        """
        base, reading, properties = "", "", ""
        inside = ""
        for i in range(at, self.closing[at]):
            token = self.tokens[i]
            if token.kind == "open" and token.name in ("w:rt", "w:rubyBase"):
                inside = token.name
            elif token.kind == "open" and token.name == "w:rPr" and inside == "w:rubyBase" and not properties:
                properties = self._source(i, self.closing[i] + 1)
            elif token.kind == "text" and self.tokens[i - 1].name == "w:t":
                base, reading = (base + token.text, reading) if inside == "w:rubyBase" else (base, reading + token.text)
        prefix = (re.match(r"<((?:[\w.-]+:)?)", self.tokens[at].source) or [""])[1] or ""
        start = properties and re.sub(r"<(?:[\w.-]+:)?rPr>.*|<(?:[\w.-]+:)?rPr/>", "", run[0], flags=re.DOTALL)
        before = (start or run[0]) + properties
        style = f'{before}<{prefix}t xml:space="preserve">', f"</{prefix}t>{run[1]}"
        items.append(_Item("text", (run[0], self._source(at, self.closing[at] + 1), run[1]), base, style))
        if has_letters(base) and has_letters(reading):
            self._leave(self.tokens[at], reading, "the reading of a ruby text, which its translation lacks")


_GAP = re.compile(r"\s+")
_LOOK = re.compile(r"<(?:w:(?:u|highlight|shd)|a:highlight)\b[^<>]*+>|\su=\"[^\"]*+\"")
"""What makes white space visible: a line under it or a color behind it."""


def _with_single_ends(text: str) -> str:
    """Return the text of a run with a single space for the white space at each end, of which Word shows none."""
    core = text.strip(" \t\r\n")
    leading, trailing = text[:1] != core[:1], text[-1:] != core[-1:]
    return " " * leading + core + " " * (trailing and bool(core))


def _with_gaps(items: Sequence[_Item]) -> list[_Item]:
    """Return the pieces of a paragraph with the gaps in its text as breaks: they part columns, as in plain text."""
    result: list[_Item] = []
    texts: list[_Item] = []  # side by side: a gap may be divided into runs
    for piece in [*items, _Item("break", ())]:
        if piece.kind == "text":
            texts.append(piece)
        else:
            result += [*_parted(texts), piece]
            texts = []
    return result[:-1]


def _parted(texts: Sequence[_Item]) -> list[_Item]:
    """Return texts side by side with the gaps in them as breaks, but for those in code of a template."""
    text = "".join(piece.text for piece in texts)
    is_gap = [False] * len(text)  # for each character
    for span in [match.span() for match in _GAP.finditer(text) if _is_gap(match[0])] + _to_fill_in(texts):
        is_gap[slice(*span)] = [True] * (span[1] - span[0])
    for code in _CODE.finditer(text):
        is_gap[slice(*code.span())] = [False] * len(code[0])
    if not any(is_gap):
        return list(texts)
    result: list[_Item] = []
    at = 0
    for piece in _divided(texts, [i for i in range(1, len(text)) if is_gap[i - 1] != is_gap[i]]):
        result.append(_Item("break", piece.parts) if piece.text and is_gap[at] else piece)
        at += len(piece.text)
    return result


def _is_gap(space: str) -> bool:
    """True if white space parts what stands around it."""
    return len(space) >= WIDE or not {"\t", "\n", "\r"}.isdisjoint(space)


def _to_fill_in(texts: Sequence[_Item]) -> list[tuple[int, int]]:
    """Return where two or more spaces have a look that no words beside them have, such as a line to fill in."""
    looks = [tuple(_LOOK.findall(piece.style[0])) for piece in texts]
    words = [i for i, piece in enumerate(texts) if piece.text.strip()]
    starts = [*accumulate((len(piece.text) for piece in texts), initial=0)]
    spans: list[tuple[int, int]] = []
    for i, piece in enumerate(texts):
        if len(piece.text) > 1 and not piece.text.strip() and looks[i]:
            behind = bisect_left(words, i)
            if looks[i] not in [looks[word] for word in words[max(0, behind - 1) : behind + 1]]:
                spans.append((starts[i], starts[i + 1]))
    return spans


_SPACE = "space"


def _space(source: str, number: str | None) -> _Item:
    """Return an element that stands for spaces beside a written one: many of them part columns, as in plain text."""
    digits = number if number is not None and number.isdecimal() else "1"
    is_wide = len(digits) > 3 or int(digits) + 1 >= WIDE
    return _Item("break", (source,)) if is_wide else _Item("text", (source,), " ", name=_SPACE)


def _with_outer_spaces(pieces: Sequence[_Item]) -> list[_Item]:
    """Return the pieces of a line with spaces before its first word and behind its last one as points.

    A space that is written there would not be seen.
    """
    words = [i for i, piece in enumerate(pieces) if piece.text.strip()]
    first, last = (words[0], words[-1]) if words else (len(pieces), -1)
    return [
        replace(piece, kind="point", text="", name="") if piece.name == _SPACE and not first < i < last else piece
        for i, piece in enumerate(pieces)
    ]


def _with_fields(items: Sequence[_Item]) -> list[_Item]:
    """Return the pieces of a line with each field as an element around its result; one without a result is a point."""
    result: list[_Item] = []
    starts: list[tuple[int, bool]] = []  # for each open field: index of its first piece, and whether its result began
    for piece in items:
        result.append(piece)
        if piece.kind != "point" or not piece.name:
            continue
        if piece.name == "begin":
            starts.append((len(result) - 1, False))
        elif piece.name in ("separate", "end") and starts:
            first, has_result = starts.pop()
            if not _is_balanced(result[first + has_result :]) or (has_result and piece.name == "separate"):
                result[first] = _Item("point", result[first].parts)
            elif has_result:
                result[-1] = _Item("close", piece.parts, name=result[first].name)
            else:
                parts = tuple(part for inner in result[first:] for part in inner.parts)
                kind: Literal["open", "point"] = "open" if piece.name == "separate" else "point"
                result[first:] = [_Item(kind, parts, name=f"field#{first}" if kind == "open" else "")]
                if kind == "open":
                    starts.append((first, True))
    for first, has_result in starts:  # it ends in another line
        if has_result:
            result[first] = _Item("point", result[first].parts)
    return result


def _with_ranges(items: Sequence[_Item]) -> list[_Item]:
    """Return the pieces of a line with each range as an element, if it has some of the words, and crosses no other."""
    result = _nested(_nested(items, "open"), "close")
    first_of = {last: first for first, last in _ranges(result).values()}
    firsts = set(first_of.values())
    n_texts = [*accumulate((bool(piece.text) for piece in result), initial=0)]  # before each piece
    opened: list[int] = []  # where ranges and elements begin that go on here
    within: dict[int, int] = {}  # for where such a range begins: number of elements around it
    n_elements = 0
    for i, piece in enumerate(result):
        if piece.kind == "open":
            opened.append(i)
            n_elements += 1
        elif piece.kind == "close" and n_elements:
            while within.pop(opened.pop(), None) is not None:
                pass  # a range that crosses this element
            n_elements -= 1
        elif i in firsts:
            opened.append(i)
            within[i] = n_elements
        elif i in first_of and within.get(first_of[i]) == n_elements:
            first = first_of[i]
            while (crossing := opened.pop()) != first:
                del within[crossing]
            del within[first]
            if n_texts[i] - n_texts[first] < n_texts[-1]:
                name = f"{piece.name} {first}"
                result[first] = replace(result[first], kind="open", name=name)
                result[i] = replace(piece, kind="close", name=name)
    return result


def _ranges(items: Sequence[_Item]) -> dict[str, tuple[int, int]]:
    """Return the indices of both ends of the ranges with words in a line, by their name; those that end first first."""
    ranges: dict[str, tuple[int, int]] = {}
    opened: dict[str, int] = {}
    n_words = [*accumulate((has_letters(piece.text) for piece in items), initial=0)]  # before each piece
    for i, piece in enumerate(items):
        kind, _, name = piece.name.partition(" ")
        if piece.kind == "point" and kind == "open":
            opened[name] = i
        elif piece.kind == "point" and kind == "close" and name in opened:
            first = opened.pop(name)
            if n_words[first] < n_words[i]:
                ranges[name] = first, i
    return ranges


def _nested(items: Sequence[_Item], kind: Literal["open", "close"]) -> list[_Item]:
    """Return the pieces of a line with ends of ranges side by side in an order in which the ranges do not cross.

    A comment and its answer have the same words, and begin and end in the same order.
    """
    result, ranges = list(items), _ranges(items)
    other_end = {f"open {name}": last for name, (_, last) in ranges.items()}
    other_end |= {f"close {name}": first for name, (first, _) in ranges.items()}
    slots: list[int] = []  # ends of ranges side by side
    for i, piece in enumerate([*items, _Item("break", ())]):
        if piece.kind == "point":
            slots += [i] if piece.name in other_end and piece.name.startswith(kind) else []
            continue
        for slot, source in zip(slots, sorted(slots, key=lambda at: -other_end[items[at].name]), strict=True):
            result[slot] = items[source]
        slots = []
    return result


def _is_balanced(items: Sequence[_Item]) -> bool:
    """True if every element that opens in the pieces closes in them, and the other way round."""
    depth = 0
    for item in items:
        depth += {"open": 1, "close": -1}.get(item.kind, 0)
        if depth < 0:
            return False
    return depth == 0


_CODE = re.compile(r"\{\{[^{}]*+\}\}|\{%(?:[^%{}]|%(?!\}))*+%\}|\{#(?:[^#{}]|#(?!\}))*+#\}")
"""Code of the template languages of documents, such as Jinja."""


def _with_code(items: Sequence[_Item]) -> list[_Item]:
    """Return the pieces of a line with code of a template as points, but for values that the model reads."""
    text = "".join(piece.text for piece in items if piece.kind == "text")
    known = {(span.start, span.end) for span in find(text)} if "{" in text else set()
    spans = [match.span() for match in _CODE.finditer(text) if match.span() not in known]
    if not spans:
        return list(items)
    pieces = _divided(items, sorted({edge for span in spans for edge in span}))
    result: list[_Item] = []
    at = n = 0
    while n < len(pieces):
        if spans and at == spans[0][0] and pieces[n].text:
            _, end = spans.pop(0)
            first = n
            while at < end:
                at += len(pieces[n].text)
                n += 1
            own = pieces[first:n]
            result += [_Item("point", tuple(_raw(own)))] if _is_balanced(own) else own
        else:
            at += len(pieces[n].text)
            result.append(pieces[n])
            n += 1
    return result


def _divided(items: Sequence[_Item], edges: Sequence[int]) -> list[_Item]:
    """Return the pieces of a line with those of its text divided at some of its characters."""
    pieces: list[_Item] = []
    at = 0
    for piece in items:
        end = at + len(piece.text)
        inside = edges[bisect_right(edges, at) : bisect_left(edges, end)]
        if inside:
            for first, last in pairwise([at, *inside, end]):
                own = piece.text[first - at : last - at]
                pieces.append(_Item("text", (piece.style[0] + escape(own) + piece.style[1],), own, piece.style))
        else:
            pieces.append(piece)
        at = end
    return pieces


def _unit(items: Sequence[_Item]) -> list[Part]:
    """Return a unit for the pieces of a line, with tags that enclose no word before and after it kept outside."""
    whole, items = items, _with_code(_with_ranges(_with_fields(_with_outer_spaces(items))))
    if not _has_text(items):
        return _raw(whole)
    items = _with_meanings(items)
    if not _has_text(items):  # all its words are hidden
        return _raw(items)
    first = next((i for i, item in enumerate(items) if item.kind != "point"), len(items))
    last = next((i for i in range(len(items), first, -1) if items[i - 1].kind != "point"), first)
    before, after = items[:first], items[last:]
    unit = _with_styles(items[first:last])
    if [each.name for each in items].count(_HIDDEN) > 1:
        _keep_apart(unit)
    return [*_raw(before), *unit, *_raw(after)]


def _keep_apart(parts: Sequence[Part]) -> None:
    """Put an empty run before and behind each hidden text in a unit: its translation may bring two side by side.

    Two that touch would be read as one text.
    """
    for unit in (part for part in parts if isinstance(part, Unit)):
        ends = unit.styles[0][1]
        empty = "".join(f"<{name}>" for name in reversed(_END_TAG.findall(ends))) + ends
        unit.tags = [
            replace(tag, parts=(empty, *tag.parts, empty)) if tag.name == _HIDDEN else tag for tag in unit.tags
        ]


_END_TAG = re.compile(r"</([^\s<>]++)")


def _has_text(items: Sequence[_Item]) -> bool:
    """True if pieces have text to translate, or text that is named because it looks like a tag."""
    return any(has_letters(piece.text) or is_like_a_tag(piece.text) for piece in items)


_LINK = re.compile(r"<(?:[\w.-]++:)?hlink(?:Click|MouseOver)\b[^<>]*+>")
"""A link of a slide, which is a property of its run."""
_IS_HIDDEN = re.compile(r"<(?:[\w.-]++:)?vanish\b(?![^<>]*?\bval=[\"'](?:0|false|off)[\"'])")
_FORMER = re.compile(r"<(?:[\w.-]++:)?rPrChange\b")
"""Where the properties of a run begin that it had before a tracked change."""
_HIDDEN = "hidden"


def _meaning(style: str) -> str:
    """Return what a style means apart from its look: the links in it, or that nobody sees its text; "" for others."""
    style = _FORMER.split(style, maxsplit=1)[0]
    return _HIDDEN if _IS_HIDDEN.search(style) else "".join(_LINK.findall(style))


def _with_meanings(items: Sequence[_Item]) -> list[_Item]:
    """Return the pieces of a line with an element around each link of a slide, and each hidden text as a point.

    A style may lose all its words, or get others. A link must not lose its words, and no other word may be hidden.
    """
    result: list[_Item] = []
    first = behind = 0  # of the pieces of ``result`` that mean the same: the first, and the place behind the last text
    meaning = ""
    for piece in [*items, _Item("break", ())]:
        own = meaning if piece.kind == "point" else _meaning(piece.style[0])
        if own != meaning:
            if meaning:
                result[first:behind] = _with_meaning(result[first:behind], meaning, f"{meaning}#{first}")
            first, meaning = len(result), own
        result.append(piece)
        if piece.kind != "point":
            behind = len(result)
    return result[:-1]


def _with_meaning(pieces: Sequence[_Item], meaning: str, name: str) -> list[_Item]:
    """Return pieces of which all text means the same as an element without tags of its own, or hidden as a point."""
    if not any(piece.text for piece in pieces):
        return list(pieces)
    if meaning == _HIDDEN:  # it is no part of the sentence around it
        return [_Item("point", tuple(_with_styles(pieces) if _has_text(pieces) else _raw(pieces)), name=_HIDDEN)]
    return [_Item("open", (), name=name), *pieces, _Item("close", (), name=name)]


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
    items = _with_notes(items)
    sizes: Counter[str] = Counter()
    style_of: dict[str, tuple[str, str]] = {}
    for item in items:
        if item.kind == "text":
            sizes[_key(item.style)] += len(item.text.strip())
            style_of.setdefault(_key(item.style), item.style)
    keys = [key for key, _ in sizes.most_common()]
    unit = Unit(raw=_raw(items), escape=escape, styles=[style_of[key] for key in keys])
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


_IS_RAISED = re.compile(
    r"<(?:[\w.-]++:)?vertAlign\b[^<>]*?\bval=[\"'](?:super|sub)script[\"']|\bbaseline=[\"']-?[1-9]\d*[\"']"
)


def _with_notes(items: Sequence[_Item]) -> list[_Item]:
    """Return the pieces of a line; the raised mark of a note behind a word is a point, no part of the word."""
    texts = [piece.text if piece.kind == "text" else "" for piece in items]
    result = list(items)
    for i, piece in enumerate(items):
        if piece.kind == "text" and _IS_RAISED.search(piece.style[0]):
            before, after = texts[i - 1] if i else "", texts[i + 1] if i + 1 < len(items) else ""
            if is_note(before, piece.text, after, is_raised=True):
                result[i] = _Item("point", piece.parts)
    return result


def _has_words(value: str) -> bool:
    """True unless an attribute has no letters but one: bullets are letters of symbol fonts. An ideograph is a word."""
    letters = [character for character in value if character.isalpha()]
    return len(letters) > 1 or any(letter >= "\u2e80" for letter in letters)


def _escape_attribute(text: str) -> str:
    """Return text escaped for the value of an attribute."""
    return html.escape(possible(text))
