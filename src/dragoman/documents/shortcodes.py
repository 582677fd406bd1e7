"""Shortcodes of WordPress and similar programs, in pages and in Markdown: words for a program, not for readers.

    SHORTCODE.match('[gallery ids="1,2"]')["name"]     # "gallery"

Words in brackets are a shortcode only if they have an argument such as ``ids="1"``, or if a ``[/name]`` ends them. All
other words in brackets, such as ``[see below]``, are text.
"""

from __future__ import annotations

import html
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from dragoman.documents.document import Untranslated
from dragoman.documents.tags.pairs import pairs_of

TWO_WORDS = re.compile(r"[^\W\d_]{2}[,;]?[ \t]{1,9}[^\W\d_]{2}")
"""Two words of a value, which may be text that people read."""

_VALUE = (
    r"(?:\"[^\"<>\[\]]*+\"|'[^'<>\[\]]*+'|[\u201c\u201d\u2033][^\u201c\u201d\u2033<>\[\]]*+[\u201d\u2033]|"
    r"&(?:quot|#8220|#8221|#8243|#39);[^&<>\[\]]*+&(?:quot|#8221|#8243|#39);|[^\s\"'<>\[\]]++)"
)
SHORTCODE = re.compile(
    rf"\[(?P<end>/)?(?P<name>[a-z][\w-]*+)(?P<arguments>(?:\s++[\w-]++(?:={_VALUE})?+)*+)\s*+/?\](?!\()"
)
"""Words in brackets that have the form of a shortcode, or of its end."""
_ARGUMENT = re.compile(rf"(?<![\w-])([\w-]++)=({_VALUE})")
_NOT_SHOWN = re.compile(r"(?:\A|[_-])(?:class|style|css|ids?)\Z", re.IGNORECASE)
"""The end of an argument's name whose value is for programs."""
_QUOTES = "\"'\u201c\u201d\u2033"


def has_value(shortcode: re.Match[str]) -> bool:
    """True if one of its arguments has a value, so that it is a shortcode without an end too."""
    return "=" in shortcode["arguments"]


def words_of(shortcode: str) -> list[Untranslated]:
    """Return the values of a shortcode's arguments that may be text: they stay as they are."""
    values = [
        html.unescape(argument[2]).strip(_QUOTES)
        for argument in _ARGUMENT.finditer(shortcode)
        if not _NOT_SHOWN.search(argument[1])
    ]
    return [Untranslated(value, "text in a shortcode") for value in values if TWO_WORDS.search(value)]


def words_in(source: str) -> list[Untranslated]:
    """Return the values that may be text of all shortcodes in a source."""
    return [words for match in SHORTCODE.finditer(source) for words in words_of(match[0])]


@dataclass(frozen=True)
class _Half:
    """A shortcode that opens or closes."""

    place: int
    kind: Literal["open", "close"]
    name: str


@dataclass(frozen=True)
class Shortcodes:
    """The shortcodes of a page."""

    opened: frozenset[str]  # names
    ended: frozenset[str]  # names
    halves: Mapping[int, Literal["open", "close"]]  # by place: those that enclose words in pairs

    @classmethod
    def of(cls, source: str) -> Shortcodes:
        """Return those of a page."""
        matches = list(SHORTCODE.finditer(source))
        ended = {match["name"] for match in matches if match["end"]}
        opening = [match for match in matches if not match["end"]]
        halves = [
            _Half(match.start(), "close" if match["end"] else "open", match["name"])
            for match in matches
            if match["name"] in ended and not match[0].endswith("/]")
        ]
        return cls(
            frozenset(match["name"] for match in opening if has_value(match) or match["name"] in ended),
            frozenset(ended),
            {halves[i].place: halves[i].kind for pair in pairs_of(halves) for i in pair},
        )

    def has(self, match: re.Match[str]) -> bool:
        """True if words in brackets are a shortcode of the page, or the end of one."""
        if match["end"]:
            return match["name"] in self.opened
        return has_value(match) or match["name"] in self.ended
