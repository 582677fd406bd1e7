"""ICU messages inside a text: each branch of a plural or a choice is a unit of its own.

    {count, plural, =0 {no dogs} one {# dog} other {# dogs}}

A message is a point tag of the text around it, so the model never sees its syntax. Placeholders inside a branch are
point tags too. Categories that the target language needs and the source language lacks repeat the branch ``other``.
https://unicode-org.github.io/icu/userguide/format_parse/messages/
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace

from dragoman.documents.units import Part, Tag, Unit, escape
from dragoman.languages.plurals import plural_categories

UNREADABLE = "a message of ICU that could not be followed"
"""Why such a message stays as it is."""

MOST_NESTED = 16
"""Limit on the messages inside one another."""

_OPENING = re.compile(r"\{\s*+[\w.-]++\s*+,\s*+(plural|selectordinal|select|choice)\s*+,")
_OFFSET = re.compile(r"\s*+offset:\d++")
_BRANCH = re.compile(r"\s*+(=\d++|[\w-]++)\s*+\{")
_END = re.compile(r"\s*+\}")
_INSIDE = re.compile(r"''|'[{}#|][^']*+(?:''[^']*+)*+'?|\{[^{}]*+\}|#")
_BRACE = re.compile(r"'[{}#|][^']*+(?:''[^']*+)*+'?|[{}]")


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


def has_message(text: str) -> bool:
    """True if a text seems to contain a message with branches."""
    return _OPENING.search(text) is not None


def with_messages(unit: Unit, tgt_lang: str | None, may_repeat: bool = True) -> Unit | None:
    """Return a unit with each message as a point tag, whose parts hold a unit for each branch.

    Args:
        unit: A unit, which is not changed.
        tgt_lang: Language of the translation, whose plural categories are added.
        may_repeat: Tags of a branch may come more than once.

    Returns:
        None if a message has no end, a tag stands in its syntax, or it is of the old kind ``choice``.
    """
    return _parsed(unit, (tgt_lang, may_repeat), 0)


def _parsed(unit: Unit, settings: tuple[str | None, bool], depth: int, plural: bool | None = None) -> Unit | None:
    """Return the unit with its messages as tags.

    Args:
        settings: Target language, and whether tags may be repeated.
        depth: Number of messages around it.
        plural: The unit is a branch, of a plural or not; None for the text around all messages.
    """
    messages = _messages(unit.text)
    if messages is None or depth > MOST_NESTED:
        return None
    result = Unit(escape=_escape_in_plural if plural else _escape)
    places = [tag.place for tag in unit.tags]
    at = 0
    for message in messages:
        parts = _message_parts(unit, message, settings, depth)
        if parts is None:
            return None
        tags = unit.tags[bisect_left(places, at) : bisect_right(places, message.start)]
        _copy(unit.text, (at, message.start), tags, result, plural)
        result.tags.append(Tag(len(result.text), tuple(parts)))
        at = message.end
    _copy(unit.text, (at, len(unit.text)), unit.tags[bisect_left(places, at) :], result, plural)
    result.raw = raw_of(result)
    return result if _is_balanced(result.tags) else None


def _messages(text: str) -> list[_Message] | None:
    """Return the outermost messages of a text; None if one cannot be parsed."""
    messages, at = [], 0
    while opening := _OPENING.search(text, at):
        kind, at = opening[1], opening.end()
        offset = _OFFSET.match(text, at)
        at = offset.end() if offset else at
        branches = []
        while branch := _BRANCH.match(text, at):
            at = _closing(text, branch.end())
            branches.append(_Branch(branch[1], branch.end(), at - 1))
        end = _END.match(text, at)
        if end is None or not branches or kind == "choice":
            return None
        at = end.end()
        messages.append(_Message(kind, opening.start(), at, branches))
    return messages


def _closing(text: str, at: int) -> int:
    """Return the place after the brace that closes the one before ``at``; the end of the text without one."""
    depth = 1
    for match in _BRACE.finditer(text, at):
        depth += {"{": 1, "}": -1}.get(match[0], 0)
        if not depth:
            return match.end()
    return len(text)


def _message_parts(unit: Unit, message: _Message, settings: tuple[str | None, bool], depth: int) -> list[Part] | None:
    """Return a message as parts: its syntax, and a unit for each branch; None if it cannot be parsed."""
    tgt_lang, may_repeat = settings
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
        parsed = _parsed(Unit(unit.text[branch.start : branch.end], tags), settings, depth + 1, is_plural)
        if parsed is None:
            return None
        before, name, after = unit.text[at : branch.start].rpartition(branch.name)
        parts.append(escape(before))
        if name == "other" and is_plural and (may_repeat or not tags):
            for category in plural_categories(tgt_lang, message.kind == "selectordinal"):
                if not names & {category, _AS_NUMBER.get(category)}:
                    parts += [f"{category} {{", parsed, "} "]
        parts += [escape(name + after), parsed]
        at = branch.end
    return None if n_tags else [*parts, escape(unit.text[at : message.end])]


def _copy(
    text: str, span: tuple[int, int], tags: Sequence[Tag], result: Unit, plural: bool | None
) -> None:  # fmt: skip
    """Append a span of a text to ``result`` with its tags; quotes and placeholders become point tags."""
    at, end = span
    pieces = [match for match in _INSIDE.finditer(text, at, end) if plural or match[0] != "#"]
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
                result.tags.append(Tag(len(result.text), (escape(match[0]),)))


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


def _escape(text: str) -> str:
    """Return text escaped for XML and for a message: braces in quotes, and no apostrophe that could begin a quote."""
    return _escaped(text, "{}")


def _escape_in_plural(text: str) -> str:
    """Return text escaped for a branch of a plural, where ``#`` is the number."""
    return _escaped(text, "{}#")


def _escaped(text: str, syntax: str) -> str:
    if any(character in syntax for character in text):
        text = text.replace("'", "\u2019")
        text = "".join(f"'{character}'" if character in syntax else character for character in text)
    elif text.endswith("'"):  # what follows may be a brace
        text = f"{text[:-1]}\u2019"
    return escape(text)
