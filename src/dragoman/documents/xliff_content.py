"""Content of an XLIFF ``<source>`` as units: inline codes, protected spans, texts inside codes, lines and messages."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

from dragoman.documents.document import Untranslated
from dragoman.documents.html.units import PageOptions, cut
from dragoman.documents.icu import has_message, raw_of, with_messages
from dragoman.documents.units import Part, Tag, Unit, escape, join_notes, part_words
from dragoman.documents.xml import Token
from dragoman.languages.sentence_ends import ENDS

_FLOWS_THROUGH = frozenset(["g", "mrk", "pc"])
"""Inline elements whose content is text; the content of all others is code."""

_PROTECTS = frozenset(["protected", "x-its-translate-no"])
_FREES = frozenset(["x-its-translate-yes"])
"""Values of ``mtype``, in lower case, that mark a text as not to be translated, and as to be translated."""

_ANGULAR = re.compile(r"(START|CLOSE)_(\w+?)(?:_\d+)?")
"""Identifiers of the placeholders with which Angular encloses text."""

_HTML = re.compile(
    r"</?(?:a|abbr|b|blockquote|br|button|code|div|em|font|h[1-6]|hr|i|img|input|label|li|ol|p|pre|section|small|span|strong|"
    r"sub|sup|table|td|th|tr|u|ul)(?:\s[^<>]*+)?/?>",
    re.IGNORECASE,
)
"""Tags of a page that stands in a source as text, often in a CDATA section."""

_GAP = re.compile(r"[\n\t]\s*+| {3,}+\s*+")
_PARAGRAPH = re.compile(r"\n[^\S\n]*+\n\s*+")
"""What parts the units of a text: where white space counts, and elsewhere."""

_WRAPPED_LINE = 40
"""Least number of characters of a line that goes on in the next one, which begins with a small letter."""


@dataclass(frozen=True)
class Settings:
    """Facts about a source that are not in its own tokens."""

    tgt_lang: str | None
    is_old: bool  # XLIFF 1, in which the same code may come twice
    keeps_space: bool  # xml:space="preserve"
    left: list[Untranslated] = field(default_factory=list)  # what stays though the source is read


@dataclass
class _Reading:
    """The unit that is being read, and the pair that each of its tags belongs to."""

    unit: Unit = field(default_factory=Unit)
    pairs: list[tuple[str, str] | None] = field(default_factory=list)  # "open" or "close", and the name of the pair

    def add(self, tag: Tag, pair: tuple[str, str] | None = None) -> None:
        """Append a tag and its source."""
        self.unit.tags.append(tag)
        self.unit.raw += tag.parts
        self.pairs.append(pair)


@dataclass(frozen=True)
class ContentReader:
    """Reads the content of sources out of the tokens of a file."""

    tokens: Sequence[Token]
    closing: dict[int, int]  # index of the tag that closes the one with this index

    def source(self, start: int, end: int) -> str:
        """Return the source of the tokens ``start`` to ``end - 1``."""
        return "".join(token.source for token in self.tokens[start:end])

    def parts(self, at: int, end: int, settings: Settings) -> list[Part] | None:
        """Return the tokens ``at`` to ``end - 1`` as parts; None if a message in them cannot be parsed."""
        reading = _Reading()
        protected_from: str | None = None  # identifier of the span that protects what is read
        while at < end:
            token = self.tokens[at]
            after = self.closing[at] + 1 if token.kind == "open" else at + 1
            place = len(reading.unit.text)
            if token.name == "em" and protected_from is not None and token.get("startRef") == protected_from:
                protected_from = None
            if token.kind == "text" and protected_from is None:
                reading.unit.text += token.text
                reading.unit.raw.append(token.source)
            elif token.kind == "text":
                reading.add(Tag(place, (token.source,)))
            elif token.name == "mrk" and token.kind == "open" and _translates(token) is False:
                inside = self._protected(at + 1, after - 1, settings)
                if inside is None:
                    return None
                reading.add(Tag(place, (token.source, *inside, self.tokens[after - 1].source)))
                at = after
                continue
            elif token.kind == "open" and token.name not in _FLOWS_THROUGH:
                code = self._code(at, after, settings)
                if code is None:
                    return None
                reading.add(Tag(place, tuple(code)), _pair(token))
                at = after
                continue
            elif token.name == "sm" and token.get("translate") == "no":
                last = self._end_of_span(at, end)
                if last is None:
                    protected_from = token.get("id")
                    reading.add(Tag(place, (token.source,)))
                else:
                    reading.add(Tag(place, (self.source(at, last + 1),)))
                    at = last
            else:
                kind = token.kind if token.kind in ("open", "close") else "point"
                reading.add(Tag(place, (token.source,), kind, token.name), _pair(token))
            at += 1
        return _finished(reading, settings)

    def _protected(self, at: int, end: int, settings: Settings) -> list[Part] | None:
        """Return protected tokens as source, with what is freed again inside as parts."""
        parts: list[Part] = []
        while at < end:
            token = self.tokens[at]
            parts.append(token.source)
            if token.name == "mrk" and token.kind == "open" and _translates(token):
                freed = self.parts(at + 1, self.closing[at], settings)
                if freed is None:
                    return None
                parts += freed
                at = self.closing[at]
            else:
                at += 1
        return parts

    def _code(self, at: int, end: int, settings: Settings) -> list[Part] | None:
        """Return an inline code as source, with the content of each ``<sub>`` in it as parts."""
        parts: list[Part] = []
        while at < end:
            token = self.tokens[at]
            parts.append(token.source)
            if token.name == "sub" and token.kind == "open":
                content = self.parts(at + 1, self.closing[at], settings)
                if content is None:
                    return None
                parts += content
                at = self.closing[at]
            else:
                at += 1
        return parts

    def _end_of_span(self, start: int, end: int) -> int | None:
        """Return the ``<em>`` of the ``<sm>`` at ``start``, if all elements between them are closed."""
        wanted, at = self.tokens[start].get("id"), start + 1
        while at < end and self.tokens[at].kind != "close":
            token = self.tokens[at]
            if token.name == "em" and token.get("startRef") == wanted:
                return at
            at = self.closing[at] + 1 if token.kind == "open" else at + 1
        return None


def is_one_piece(token: Token) -> bool:
    """True for the opening tag of a code or of what is protected, which are read with all that is inside."""
    return token.name not in _FLOWS_THROUGH or (token.name == "mrk" and _translates(token) is False)


def _translates(token: Token) -> bool | None:
    """Return whether an annotation says that its text is to be translated; None if it does not say so."""
    kind = (token.get("mtype") or "").lower()
    value = token.get("translate") or token.get("its:translate")
    if kind in _PROTECTS or value == "no":
        return False
    return True if kind in _FREES or value == "yes" else None


def _pair(token: Token) -> tuple[str, str] | None:
    """Return the pair of codes that a tag opens or closes; None if it does neither."""
    rid = token.get("rid") or token.get("id")
    if token.name in ("bpt", "bx", "sc"):
        return "open", f"{token.name[-1]} {token.get('id') if token.name == 'sc' else rid}"
    if token.name in ("ept", "ex"):
        return "close", f"{'t' if token.name == 'ept' else 'x'} {rid}"
    if token.name == "ec":
        return "close", f"c {token.get('startRef')}"
    angular = _ANGULAR.fullmatch(token.get("id") or "") if token.name in ("x", "ph") else None
    return None if angular is None else ("open" if angular[1] == "START" else "close", f"angular {angular[2]}")


def _finished(reading: _Reading, settings: Settings) -> list[Part] | None:
    """Return what was read as units: codes in pairs as elements, messages as tags, each line by itself."""
    unit = reading.unit
    part_words(unit)
    _pair_up(reading)
    join_notes(unit)
    if has_message(unit.text):
        parsed = with_messages(unit, settings.tgt_lang, settings.is_old)
        return None if parsed is None else _lines(parsed, settings.keeps_space)
    if not unit.tags and _HTML.search(unit.text):
        page = cut(unit.text, PageOptions(attributes=True))
        if page.is_whole:  # else a sign such as that of ``<min`` is text
            settings.left.extend(page.left)
            lines = (_lines(part, settings.keeps_space) if isinstance(part, Unit) else [part] for part in page.parts)
            return _escaped([part for parts in lines for part in parts])
    return _lines(unit, settings.keeps_space)


def _escaped(parts: Sequence[Part]) -> list[Part]:
    """Return the parts of a page that stands as text in XML: everything is escaped once more."""
    result: list[Part] = []
    for part in parts:
        if isinstance(part, str):
            result.append(escape(part))
        else:
            tags = [replace(tag, parts=tuple(_escaped(tag.parts))) for tag in part.tags]
            result.append(replace(part, tags=tags, raw=_escaped(part.raw), escape=_Twice(part.escape)))
    return result


@dataclass(frozen=True)
class _Twice:
    """Escapes a text as a page needs it, then as XML needs it."""

    first: Callable[[str], str]

    def __call__(self, text: str) -> str:
        return escape(self.first(text))


def _pair_up(reading: _Reading) -> None:
    """Make codes that come in pairs the opening and closing tags of an element, if they nest."""
    tags = reading.unit.tags
    still_open: list[tuple[str, int]] = []
    n_open: dict[str, int] = {}
    for i, (tag, pair) in enumerate(zip(list(tags), reading.pairs, strict=True)):
        kind, name = pair or (tag.kind, f"element {tag.name}")
        if kind == "open":
            still_open.append((name, i))
            n_open[name] = n_open.get(name, 0) + 1
        elif kind == "close" and n_open.get(name):
            while still_open[-1][0] != name and not still_open[-1][0].startswith("element "):
                n_open[still_open.pop()[0]] -= 1
            if still_open[-1][0] != name:  # it closes outside an element what was opened inside
                continue
            _, first = still_open.pop()
            n_open[name] -= 1
            if pair is not None:
                tags[first] = replace(tags[first], kind="open", name=name)
                tags[i] = replace(tag, kind="close", name=name)


def _lines(unit: Unit, keeps_space: bool) -> list[Part]:
    """Return a unit for each line where white space counts, else for each paragraph.

    A line that goes on in the next one, or ends inside an element, stays in one unit with it, as a cut.
    """
    first, last = len(unit.text) - len(unit.text.lstrip()), len(unit.text.rstrip())
    points = {tag.place for tag in unit.tags if tag.kind == "point" and first < tag.place < last}
    edges = [first, *sorted(points), last]  # white space behind a message or a code stays behind it
    pattern = _GAP if keeps_space else _PARAGRAPH
    gaps = [gap for start, end in pairwise(edges) for gap in pattern.finditer(unit.text, start, end)]
    if not gaps:
        return [unit]
    parts: list[Part] = []
    part = Unit(escape=unit.escape)
    at, depth, n_tags = 0, 0, 0
    for gap in [*gaps, None]:
        stop = len(unit.text) if gap is None else gap.start()
        while n_tags < len(unit.tags) and unit.tags[n_tags].place <= stop:
            tag = unit.tags[n_tags]
            part.text += unit.text[at : tag.place]
            at = max(at, tag.place)
            part.tags.append(replace(tag, place=len(part.text)))
            depth += {"open": 1, "close": -1}.get(tag.kind, 0)
            n_tags += 1
        part.text += unit.text[at:stop]
        at = stop
        if gap is not None and (depth or _goes_on(unit.text, gap)):
            part.tags.append(Tag(len(part.text), (unit.escape(gap[0]),), share=0.0))
            part.text += " "
        else:
            part.raw = raw_of(part)
            part.tags = [
                tag if tag.share is None else replace(tag, share=tag.place / len(part.text)) for tag in part.tags
            ]
            parts += [part, unit.escape(gap[0] if gap else "")]
            part = Unit(escape=unit.escape)
        at = gap.end() if gap else at
    return [part for part in parts if part]


def _goes_on(text: str, gap: re.Match[str]) -> bool:
    """True if a sentence is wrapped here: a long line without an end, and a small letter in the next line."""
    if gap[0].count("\n") != 1 or not gap[0].startswith("\n"):
        return False
    line = text[text.rfind("\n", 0, gap.start()) + 1 : gap.start()]
    return len(line) >= _WRAPPED_LINE and line[-1] not in ENDS and text[gap.end() : gap.end() + 1].islower()
