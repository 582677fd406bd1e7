"""ICU messages inside a text: each branch of a plural or a choice is a unit of its own.

    {count, plural, =0 {no dogs} one {# dog} other {# dogs}}

A message is a point tag of the text around it, so the model never sees its syntax. Placeholders inside a branch are
point tags too. Categories that the target language needs and the source language lacks repeat the branch ``other``.
https://unicode-org.github.io/icu/userguide/format_parse/messages/
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from dragoman.documents.icu_source import Source
from dragoman.documents.units import Part, Tag, Unit
from dragoman.languages.plurals import plural_categories

UNREADABLE = "a message of ICU that could not be followed"
"""Why such a message stays as it is."""

MOST_NESTED = 16
"""Limit on the messages inside one another."""

_OPENING = re.compile(r"\{\s*+[\w.-]++\s*+,\s*+(plural|selectordinal|select|choice)\s*+,")
_OFFSET = re.compile(r"\s*+offset:\d++")
_BRANCH = re.compile(r"\s*+(=\d++|[\w-]++)\s*+\{")
_END = re.compile(r"\s*+\}")
_INSIDE = re.compile(r"''|'[{}#|][^']*+(?:''[^']*+)*+'?|\{\{\{[^{}]*+\}\}\}|\{\{[^{}]*+\}\}|\{[^{}]*+\}|#")
_PLAIN_BRACE = re.compile(r"[{}]")
_BRACE = re.compile(r"''|'[{}#|][^']*+(?:''[^']*+)*+'?|[{}]")


_AS_NUMBER = {"zero": "=0", "one": "=1", "two": "=2"}


@dataclass(frozen=True)
class _Branch:
    """A branch: its name, and the place of its content in the text."""

    name: str
    start: int
    end: int


@dataclass(frozen=True)
class _Message:
    """The kind of a message, its place in the text, and its branches."""

    kind: str
    start: int
    end: int
    branches: Sequence[_Branch]


@dataclass(frozen=True)
class _Settings:
    """Facts that all branches of a unit share."""

    tgt_lang: str | None
    may_repeat: bool  # tags of a branch may come more than once
    escape: Callable[[str], str]  # of the unit around all messages: writes characters as its file needs them


@dataclass(frozen=True)
class _Escape:
    """Writes text between the syntax of a message: its braces in quotes, then as its file needs it."""

    syntax: str  # characters with a meaning in the message
    outer: Callable[[str], str]

    def __call__(self, text: str) -> str:
        return self.outer(_quoted(text, self.syntax))


def has_message(text: str) -> bool:
    """True if a text seems to contain a message with branches."""
    return _OPENING.search(text) is not None


def message_spans(text: str) -> list[tuple[int, int]]:
    """Return start and end of each message of a text that can be parsed, and that is inside no other, in order."""
    return [(message.start, message.end) for message in _outermost(text) if message is not None]


def branch_braces(text: str) -> frozenset[int]:
    """Return the places of the braces that open a branch of a message, in other messages too."""
    openings = list(_OPENING.finditer(text))
    pairs = _pairs_of_braces(text, {opening.start() for opening in openings}) if openings else {}
    messages = (_message(text, opening, pairs) for opening in openings)
    return frozenset(branch.start - 1 for message in messages if message for branch in message.branches)


def with_messages(unit: Unit, tgt_lang: str | None, may_repeat: bool = True) -> Unit | None:
    """Return a unit with each message as a point tag, whose parts hold a unit for each branch.

    Args:
        unit: A unit, which is not changed. Its way of writing characters is that of its branches too.
        tgt_lang: Language of the translation, whose plural categories are added.
        may_repeat: Tags of a branch may come more than once.

    Returns:
        None if a message has no end, a tag stands in its syntax, or it is of the old kind ``choice``.
    """
    return _parsed(unit, _Settings(tgt_lang, may_repeat, unit.escape), 0)


def _parsed(unit: Unit, settings: _Settings, depth: int, plural: bool = False) -> Unit | None:
    """Return the unit with its messages as tags.

    Args:
        unit: A unit, or a branch.
        settings: Facts about the unit around all messages.
        depth: Number of messages around it.
        plural: True if the unit is a branch of a plural.
    """
    messages = _messages(unit.text)
    if messages is None or depth > MOST_NESTED:
        return None
    escape = _Escape("{}#" if plural else "{}", settings.escape)
    result, source = Unit(escape=escape), Source.of(unit)
    raw: list[Part] = []
    written = 0  # the source up to this place is in ``raw``
    places = [tag.place for tag in unit.tags]
    at = 0
    for message in messages:
        parts = _message_parts(unit, message, settings, depth, source)
        if parts is None:
            return None
        if source is not None:
            first, last = source.after(message.start), source.before(message.end)
            raw += [*source.parts(written, first), *parts]
            written = last
        tags = unit.tags[bisect_left(places, at) : bisect_right(places, message.start)]
        _copy(unit.text, (at, message.start), tags, result, escape)
        result.tags.append(Tag(len(result.text), tuple(parts)))
        at = message.end
    _copy(unit.text, (at, len(unit.text)), unit.tags[bisect_left(places, at) :], result, escape)
    result.raw = raw_of(result) if source is None else [*raw, *source.parts(written, source.end)]
    return result if _is_balanced(result.tags) else None


def _messages(text: str) -> list[_Message] | None:
    """Return the messages of a text that are inside no other; None if one cannot be parsed."""
    all_messages = _outermost(text)
    messages = [message for message in all_messages if message is not None]
    return messages if len(messages) == len(all_messages) else None


def _outermost(text: str) -> list[_Message | None]:
    """Return the messages of a text that are inside no other, in order; None for each that cannot be parsed."""
    openings = list(_OPENING.finditer(text))
    pairs = _pairs_of_braces(text, {opening.start() for opening in openings}) if openings else {}
    messages: list[_Message | None] = []
    end = 0
    for opening in openings:
        if opening.start() >= end:
            message = _message(text, opening, pairs)
            messages.append(message)
            end = message.end if message is not None else opening.end()
    return messages


def _pairs_of_braces(text: str, openings: Collection[int]) -> dict[int, int]:
    """Return for the place of each brace the place behind the one that closes it; in messages a quote hides braces.

    Args:
        text: The text.
        openings: Places of the braces that open a message.
    """
    pairs: dict[int, int] = {}
    opened: list[int] = []
    n_messages = at = 0  # number of messages around the place
    while brace := (_BRACE if n_messages else _PLAIN_BRACE).search(text, at):
        at = brace.end()
        if brace[0] == "{":
            opened.append(brace.start())
            n_messages += opened[-1] in openings
        elif brace[0] == "}" and opened:
            n_messages -= opened[-1] in openings
            pairs[opened.pop()] = at
    return pairs


def _message(text: str, opening: re.Match[str], pairs: Mapping[int, int]) -> _Message | None:
    """Return the message that begins at an opening; None if it cannot be parsed."""
    offset = _OFFSET.match(text, opening.end())
    at = offset.end() if offset else opening.end()
    branches = []
    while branch := _BRANCH.match(text, at):
        at = pairs.get(branch.end() - 1, len(text))
        branches.append(_Branch(branch[1], branch.end(), at - 1))
    end = _END.match(text, at)
    if end is None or not branches or opening[1] == "choice":
        return None
    return _Message(opening[1], opening.start(), end.end(), branches)


def _message_parts(
    unit: Unit, message: _Message, settings: _Settings, depth: int, source: Source | None
) -> list[Part] | None:  # fmt: skip
    """Return a message as parts: its syntax, and a unit for each branch; None if it cannot be parsed."""

    def syntax(start: int, end: int) -> list[Part]:
        """Return the source between two places of the text, of which tags stand outside."""
        if source is None:
            return [settings.escape(unit.text[start:end])]
        return source.parts(source.after(start), source.before(end))

    is_plural = message.kind != "select"
    places = [tag.place for tag in unit.tags]
    n_tags = bisect_left(places, message.end) - bisect_right(places, message.start)
    names = {branch.name for branch in message.branches}
    parts: list[Part] = []
    at = message.start
    for branch in message.branches:
        own = unit.tags[bisect_left(places, branch.start) : bisect_right(places, branch.end)]
        n_tags -= len(own)
        tags = [replace(tag, place=tag.place - branch.start) for tag in own]
        raw = [] if source is None else source.parts(source.before(branch.start), source.after(branch.end))
        parsed = _parsed(Unit(unit.text[branch.start : branch.end], tags, raw), settings, depth + 1, is_plural)
        if parsed is None:
            return None
        name = branch.name
        named = unit.text.rindex(name, at, branch.start)
        parts += syntax(at, named)
        if name == "other" and is_plural and (settings.may_repeat or not tags):
            for category in plural_categories(settings.tgt_lang, message.kind == "selectordinal"):
                if not names & {category, _AS_NUMBER.get(category)}:
                    parts += [f"{category} {{", parsed, "} "]
        parts += [*syntax(named, branch.start), parsed]
        at = branch.end
    return None if n_tags else [*parts, *syntax(at, message.end)]


def _copy(text: str, span: tuple[int, int], tags: Sequence[Tag], result: Unit, escape: _Escape) -> None:
    """Append a span of a text to ``result`` with its tags; quotes and placeholders become point tags."""
    at, end = span
    pieces = [match for match in _INSIDE.finditer(text, at, end) if match[0] != "#" or "#" in escape.syntax]
    n_copied = 0
    for match in [*pieces, None]:
        stop = end if match is None else match.start()
        while n_copied < len(tags) and tags[n_copied].place <= stop:
            tag = tags[n_copied]
            result.text += text[at : tag.place]
            at = max(at, tag.place)
            result.tags.append(replace(tag, place=len(result.text)))
            n_copied += 1
        result.text += text[at:stop]
        if match is not None:
            at = match.end()
            if match[0] == "''":
                result.text += "'"
            else:
                result.tags.append(Tag(len(result.text), (escape.outer(match[0]),)))


def _is_balanced(tags: Sequence[Tag]) -> bool:
    """True if every opening tag has its closing tag."""
    still_open: list[str] = []
    for tag in tags:
        if tag.kind == "open":
            still_open.append(tag.name)
        elif tag.kind == "close" and (not still_open or still_open.pop() != tag.name):
            return False
    return not still_open


def raw_of(unit: Unit) -> list[Part]:
    """Return the source of a unit, made of its text and its tags."""
    raw: list[Part] = []
    at = 0
    for tag in unit.tags:
        raw += [unit.escape(unit.text[at : tag.place]), *tag.parts]
        at = tag.place
    return [part for part in (*raw, unit.escape(unit.text[at:])) if part]


def _quoted(text: str, syntax: str) -> str:
    """Return text with the characters of a message's syntax in quotes, and no apostrophe that could begin a quote."""
    if any(character in syntax for character in text):
        text = text.replace("'", "\u2019")
        return "".join(f"'{character}'" if character in syntax else character for character in text)
    return f"{text[:-1]}\u2019" if text.endswith("'") else text  # what follows may be a brace
