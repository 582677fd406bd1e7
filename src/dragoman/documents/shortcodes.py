"""Shortcodes of WordPress and similar programs, in pages and in Markdown: words for a program, not for readers.

    SHORTCODE.match('[gallery ids="1,2"]')["name"]     # "gallery"

Words in brackets are a shortcode only if they have an argument such as ``ids="1"``, or if a ``[/name]`` ends them. All
other words in brackets, such as ``[see below]``, are text.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_VALUE = (
    r"(?:\"[^\"<>\[\]]*+\"|'[^'<>\[\]]*+'|[\u201c\u201d\u2033][^\u201c\u201d\u2033<>\[\]]*+[\u201d\u2033]|"
    r"&(?:quot|#8220|#8221|#8243|#39);[^&<>\[\]]*+&(?:quot|#8221|#8243|#39);|[^\s\"'<>\[\]]++)"
)
SHORTCODE = re.compile(
    rf"\[(?P<end>/)?(?P<name>[a-z][\w-]*+)(?P<arguments>(?:\s++[\w-]++(?:={_VALUE})?+)*+)\s*+/?\](?!\()"
)
"""Words in brackets that have the form of a shortcode, or of its end."""


def has_value(shortcode: re.Match[str]) -> bool:
    """True if one of its arguments has a value, so that it is a shortcode without an end too."""
    return "=" in shortcode["arguments"]


@dataclass(frozen=True)
class Shortcodes:
    """The names of the shortcodes of a page."""

    opened: frozenset[str]
    ended: frozenset[str]

    @classmethod
    def of(cls, source: str) -> Shortcodes:
        """Return those of a page."""
        matches = list(SHORTCODE.finditer(source))
        ended = {match["name"] for match in matches if match["end"]}
        opening = [match for match in matches if not match["end"]]
        return cls(
            frozenset(match["name"] for match in opening if has_value(match) or match["name"] in ended),
            frozenset(ended),
        )

    def has(self, match: re.Match[str]) -> bool:
        """True if words in brackets are a shortcode of the page, or the end of one."""
        if match["end"]:
            return match["name"] in self.opened
        return has_value(match) or match["name"] in self.ended
