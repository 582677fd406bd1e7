"""A message: its paragraphs as units of text, and its translation with all that must arrive.

    message = message_of("%d dogs in %'lu houses", syntax_of({"c-format"}), Kind())
    message.parts                                                # units and the source between them

The model reads placeholders that ``protected`` knows as they are, and others as their number in braces. Where that is
not protected either, they are tags. In what is written a tag is its number between two NULs, so that the order of all
placeholders is known in the end.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from dragoman.documents.gettext import layout, mnemonics
from dragoman.documents.gettext.inline import Mark, marks
from dragoman.documents.gettext.mnemonics import Mnemonic
from dragoman.documents.gettext.placeholders import Syntax, effective
from dragoman.documents.icu import UNREADABLE, has_message, message_spans, raw_of, with_messages
from dragoman.documents.units import Part, Tag, Unit, is_like_a_tag, units_of
from dragoman.translation.keeping.protected import find, has_letters

UNTRANSLATED = "\0-\0"
"""Stands before the source of a unit that has no translation."""

_SENTENCES = re.compile(r"(?<=[.!?:;\u2026])[\"')\]\u201d\u2019]{0,3}(  +)")


@dataclass(frozen=True)
class Kind:
    """Facts about a message besides its format."""

    is_rst: bool = False  # written in reStructuredText
    has_underscores: bool = False  # of a catalogue with labels such as ``_File``
    tgt_lang: str | None = None


@dataclass
class Message:
    """A text to translate."""

    text: str
    syntax: Syntax
    kind: Kind = Kind()
    mnemonic: Mnemonic | None = None
    mnemonic_place: int = -1  # in ``text``, which is without the sign
    placeholders: list[str] = field(default_factory=list)  # in the order of the source
    visible: dict[int, str] = field(default_factory=dict)  # those that the model reads, and how
    is_doubled: bool = True  # True if doubled characters are single in the units
    is_valid: bool = True  # False if a character that must be doubled is not
    blocks: list[str | Translated] = field(default_factory=list)
    branches: list[Unit] = field(default_factory=list)  # texts of messages of ICU, and those around them

    @property
    def parts(self) -> list[Part]:
        """All units and the source between them."""
        return [part for block in self.blocks for part in ([block] if isinstance(block, str) else block.parts)]


@dataclass(frozen=True)
class Translated:
    """A paragraph and its parts."""

    paragraph: layout.Paragraph
    parts: list[Part]


def message_of(text: str, syntax: Syntax, kind: Kind) -> Message:
    """Return a message cut into units."""
    message = Message(text, syntax, kind)
    if sign := mnemonics.find(text, kind.has_underscores):
        message.text, message.mnemonic_place, message.mnemonic = mnemonics.mnemonic_at(text, *sign)
    message.is_valid = is_valid_text(message.text, syntax)
    # Before no brace, an apostrophe that is not doubled is meant as one, and would hide a placeholder in another place.
    is_meant = syntax.has_quotes and bool(effective(message.text, syntax)) and not _QUOTED_BRACE.search(message.text)
    message.is_doubled = (message.is_valid or is_meant) and _is_plain(message.text, syntax)
    if has_message(message.text) and not syntax.has_quotes:  # its syntax has the characters too
        message.is_doubled = False
    filled, at = _without_gaps(message.text), 0
    for block in layout.blocks(filled):
        if isinstance(block, str):
            message.blocks.append(block)
            at += len(block)
            continue
        place = message.mnemonic_place - at
        size = len(block.text)
        for number, line in enumerate(block.lines):
            # Lines of a paragraph may be indented differently: by spaces, by tabs.
            at = _LINE_START.match(filled, at).end() if number else at  # type: ignore[union-attr]
            block.lines[number] = message.text[at : at + len(line)]
            at += len(line)
        parts = _paragraph(message, block.text, place if 0 <= place < size else -1)
        message.blocks.append(Translated(block, parts))
    return message


_SPACE = re.compile(r"\s")
_LINE_START = re.compile(r"\n\s*+")
_FILLED = "\ue000"
"""Stands for a space inside a message of ICU."""


def _without_gaps(text: str) -> str:
    """Return a text of the same length in which nothing cuts a message of ICU: its spaces are letters."""
    pieces, at = [], 0
    for start, end in message_spans(text):
        pieces += [text[at:start], _SPACE.sub(_FILLED, text[start:end])]
        at = end
    return "".join([*pieces, text[at:]])


_QUOTED_BRACE = re.compile(r"'[{}]")


def obstacle(text: str, syntax: Syntax, tgt_lang: str | None) -> str:
    """Return why a message cannot be translated; "" if it can."""
    if has_message(text) and with_messages(Unit(text, escape=str), tgt_lang) is None:
        return UNREADABLE
    if (
        syntax.has_quotes
        and effective(text, syntax) != sorted(syntax.pattern.findall(text))
        and not _QUOTED_BRACE.search(text)
    ):
        return "an apostrophe that is not doubled hides a placeholder"
    return ""


def is_valid_text(text: str, syntax: Syntax) -> bool:
    """True if each character that must be doubled is, outside placeholders."""
    pieces, at = [], 0
    for start, end in spans_of(text, syntax, True):
        pieces.append(text[at:start])
        at = end
    bare = "\1".join([*pieces, text[at:]])
    return not any(character in bare.replace(character * 2, "") for character in syntax.doubled)


def _is_plain(text: str, syntax: Syntax) -> bool:
    """True if no placeholder comes up where a character stands once instead of twice."""
    single = text
    for character in syntax.doubled:
        single = single.replace(character * 2, character)
    before = [text[start:end] for start, end in spans_of(text, syntax, True)]
    return single == text or before == [single[start:end] for start, end in spans_of(single, syntax, False)]


def spans_of(text: str, syntax: Syntax, has_pairs: bool) -> list[tuple[int, int]]:
    """Return start and end of each placeholder of a text.

    Args:
        text: The text.
        syntax: That of the message.
        has_pairs: True if doubled characters stand for one; such a pair begins no placeholder.
    """
    spans, at = [], 0
    while match := syntax.pattern.search(text, at):
        start = match.start()
        n_before = 0
        while has_pairs and start - n_before > at and text[start - n_before - 1] == text[start]:
            n_before += 1
        if n_before % 2 and text[start] in syntax.doubled:
            at = start + 1
            continue
        spans.append(match.span())
        at = match.end()
    return spans


def _paragraph(message: Message, text: str, mnemonic: int) -> list[Part]:
    """Return the units of a paragraph, a unit for each sentence that two spaces part from the one before."""
    parts: list[Part] = []
    at = 0
    for gap in _SENTENCES.finditer(_without_gaps(text)):
        parts += _sentence(message, text[at : gap.start(1)], mnemonic - at)
        parts.append(gap[1])
        at = gap.end(1)
    return [*parts, *_sentence(message, text[at:], mnemonic - at)]


_HYPHENED = re.compile(r"\w++(?:[-/'\u2019]\w++)*+")
"""A word, which may have several parts: its style is that of most of its letters."""
_OPENING = re.compile(r"(?<![^\w\s])[^\w\s]*+\Z")
_CLOSING = re.compile(r"(?:[^\w\s.!?\u2026\u3002]|\.(?=[^\s.]))*+")


_TAG, _STAND_IN = "tag", "{{{}}}"
"""How the model reads a placeholder that ``protected`` does not know: not at all, or as its number in braces."""
STAND_INS = re.compile(r"\{\d+\}")


@dataclass(frozen=True)
class _Token:
    """A placeholder or markup in a sentence."""

    start: int
    end: int
    mark: Mark | None  # None for a placeholder


def _sentence(message: Message, text: str, mnemonic: int) -> list[Part]:
    """Return the unit of a sentence; its source alone if it has nothing to translate."""
    if has_message(text) and (branches := _branches(message, text)):
        for unit in units_of([branches]):
            _make_literal(unit, message)
            unit.raw = [UNTRANSLATED, *raw_of(unit)] if has_letters(unit.text) else raw_of(unit)
            message.branches.append(unit)
        return [branches]
    spans = spans_of(text, message.syntax, True)
    tokens = [] if is_like_a_tag(text) else _tokens(text, spans, marks(text, message.kind.is_rst, spans))
    first = len(message.placeholders)
    may_stand_in = "{" not in message.syntax.doubled and not STAND_INS.search(message.text)
    shown: dict[int, str] = {}  # for the start of a placeholder: how the model reads it, if not as it is
    while True:
        del message.placeholders[first:]
        builder = _Builder(message, text, shown)
        unit = builder.unit(tokens, mnemonic)
        unprotected = _outside(builder.visible_spans, [(span.start, span.end) for span in find(unit.text)])
        if not unprotected:
            break
        for start in unprotected:
            shown[start] = _TAG if start in shown or not may_stand_in else _STAND_IN
    message.visible.update(builder.visible)
    if not has_letters(unit.text) and not is_like_a_tag(unit.text):
        for number in builder.visible:
            del message.visible[number]
        return builder.source
    unit.raw, unit.source = [UNTRANSLATED, *builder.source], text
    return [unit]


def _branches(message: Message, text: str) -> Unit | None:
    """Return the unit of a sentence with messages of ICU; its markup is tags if each branch has whole elements."""
    unit = Unit(escape=str)
    at = 0
    for mark in marks(text, message.kind.is_rst):
        unit.text += text[at : mark.start]
        source = _literal(mark.source or text[mark.start : mark.end])
        unit.tags.append(Tag(len(unit.text), (source,), mark.kind, mark.name))
        at = mark.end
    unit.text += text[at:]
    tgt_lang = message.kind.tgt_lang
    return with_messages(unit, tgt_lang) or with_messages(Unit(text, escape=str), tgt_lang)


@dataclass(frozen=True)
class _Literal:
    """Writes the text of a message of ICU as it is: its placeholders are not those of the sentences around it."""

    first: Callable[[str], str]
    doubled: str  # characters that the message doubles

    def __call__(self, text: str) -> str:
        text = self.first(text)
        for character in self.doubled:
            text = text.replace(character, character * 2)
        return _literal(text)


def _make_literal(unit: Unit, message: Message) -> None:
    """Change a unit of a message of ICU so that its text and its syntax are written as they are."""
    if isinstance(unit.escape, _Literal):  # the branch ``other`` may stand for several categories
        return
    unit.escape = _Literal(unit.escape, message.syntax.doubled if message.is_doubled else "")
    unit.tags = [
        replace(
            tag,
            parts=tuple(
                part if isinstance(part, Unit) or part.startswith("\0") else _literal(part) for part in tag.parts
            ),
        )
        for tag in unit.tags
    ]


def _outside(visible: dict[int, tuple[int, int]], seen: Sequence[tuple[int, int]]) -> set[int]:
    """Return the keys of the spans that lie in none of those that ``protected`` sees."""
    outside, i = set(), 0
    for key, (start, end) in visible.items():
        while i < len(seen) and seen[i][1] < end:
            i += 1
        if i == len(seen) or not (seen[i][0] <= start and end <= seen[i][1]):
            outside.add(key)
    return outside


def _tokens(text: str, spans: Sequence[tuple[int, int]], all_marks: Sequence[Mark]) -> list[_Token]:
    """Return the placeholders and the markup of a sentence in order; markup may enclose placeholders."""
    tokens = [_Token(mark.start, mark.end, mark) for mark in all_marks]
    covered, i = [], 0
    for start, end in spans:
        while i < len(all_marks) and all_marks[i].end <= start:
            i += 1
        if i < len(all_marks) and all_marks[i].start < end:
            covered.append((start, end))  # inside markup, or across its edge
        else:
            tokens.append(_Token(start, end, None))
    return sorted(tokens, key=lambda token: token.start)


class _Builder:
    """Writes the text, tags and source of a unit."""

    def __init__(self, message: Message, source: str, shown: dict[int, str]) -> None:
        self.message, self.text, self.shown = message, source, shown
        self.pieces: list[str] = []  # of the unit's text
        self.length = 0  # of the unit's text
        self.tags: list[Tag] = []
        self.source: list[Part] = []
        self.styles: list[tuple[str, str]] = [("", "")]
        self.styled: list[tuple[int, int, int]] = []
        self.visible: dict[int, str] = {}
        self.visible_spans: dict[int, tuple[int, int]] = {}  # by place in the source
        self.skip = 0  # characters after a placeholder that were written with it

    def unit(self, tokens: Sequence[_Token], mnemonic: int) -> Unit:
        """Return the unit."""
        at = 0
        for i, token in enumerate(tokens):
            self._plain(at, token.start, mnemonic)
            self.skip = 0
            if token.mark is None:
                self._placeholder(token, tokens[i + 1].start if i + 1 < len(tokens) else len(self.text))
            else:
                source = self._marked(token)
                behind = tokens[i + 1] if i + 1 < len(tokens) else None
                meets = token.mark.kind == "close" and behind is not None and behind.start == token.end
                is_joined = meets and behind is not None and behind.mark is not None and behind.mark.kind == "open"
                source += _JOINT if is_joined else ""
                self.tags.append(Tag(self.length, (source,), token.mark.kind, token.mark.name))
                self.source.append(source)
                self._add(" " if is_joined else "")
            at = token.end + self.skip
        self._plain(at, len(self.text), mnemonic)
        return Unit("".join(self.pieces), self.tags, [], str, self.styles, self.styled)

    def _plain(self, start: int, end: int, mnemonic: int) -> None:
        if start <= mnemonic < end:
            self._plain(start, mnemonic, -1)
            word = _HYPHENED.match(self.text, mnemonic, end)
            length = word.end() - mnemonic if word else 1
            self.styles.append(("\0m\0", ""))  # the translation of its word begins where this style begins
            self.styled.append((self.length, self.length + length, len(self.styles) - 1))
            self.source.append("\0m\0")
            start = mnemonic
        text = self._single(self.text[start:end])
        self._add(text)
        self.source.append(text)

    def _single(self, text: str) -> str:
        """Return source with doubled characters as single ones."""
        for character in self.message.syntax.doubled if self.message.is_doubled else "":
            text = text.replace(character * 2, character)
        return text

    def _add(self, text: str) -> None:
        self.pieces.append(text)
        self.length += len(text)

    def _brackets(self, token: _Token, limit: int) -> tuple[str, str]:
        """Return the brackets, quotes and colon around a placeholder that stands alone between spaces."""
        last = (self.pieces[-1] if self.pieces else "")[-8:]
        before, after = _OPENING.search(last), _CLOSING.match(self.text, token.end, limit)
        stands_alone = before is not None and (last[: before.start()][-1:].isspace() or before.end() == self.length)
        if before is None or after is None or not stands_alone:
            return "", ""
        behind = self.text[after.end() : after.end() + 1]
        return (before[0], after[0]) if not behind or behind.isspace() or behind in ".!?" else ("", "")

    def _placeholder(self, token: _Token, limit: int) -> None:
        text = self.text[token.start : token.end]
        number = len(self.message.placeholders)
        self.message.placeholders.append(text)
        self.source.append(f"\0{number}\0")
        shown = self.shown.get(token.start, text)
        if shown == _TAG or not text.isprintable() or text == "%%":
            before, after = self._brackets(token, limit)
            if before:
                self.pieces[-1] = self.pieces[-1][: -len(before)]
                self.length -= len(before)
            source = f"{before}\0{number}\0{self._single(after)}"
            self.tags.append(Tag(self.length, (source,)))
            self.source.append(self._single(after))
            self.skip = len(after)
            return
        place = self.length
        shown = shown.format(number) if shown == _STAND_IN else text
        self._add(shown)
        self.visible[number] = shown
        self.visible_spans[token.start] = place, self.length
        self.styles.append((f"\0<{number}\0", "\0>\0"))
        self.styled.append((place, self.length, len(self.styles) - 1))

    def _marked(self, token: _Token) -> str:
        """Return the source of markup, with a marker for each placeholder in it."""
        text, pieces, at = (token.mark and token.mark.source) or self.text[token.start : token.end], [], 0
        for first, last in spans_of(text, self.message.syntax, True):
            pieces += [_literal(text[at:first]), f"\0{len(self.message.placeholders)}\0"]
            self.message.placeholders.append(text[first:last])
            at = last
        source = "".join([*pieces, _literal(text[at:])])
        if token.mark is None or not token.mark.is_rst:
            return source
        before, after = token.mark.kind != "close", token.mark.kind != "open"
        return f"{_BEFORE if before else ''}{source}{_AFTER if after else ''}"


_JOINT = "\0j\0"
"""Stands between two elements that meet; the model reads a space there."""
_BEFORE, _AFTER = "\0(\0", "\0)\0"
"""Edges of markup of reStructuredText."""


def _literal(text: str) -> str:
    """Return source that is written as it is, without characters doubled."""
    return f"\0={text}\0" if text else ""
