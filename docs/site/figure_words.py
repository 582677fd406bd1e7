"""Texts of figures in another language: a dictionary for them, and the SVG with its texts replaced."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from html import escape, unescape

_TEXT = re.compile(r"(<text\b[^>]*>)([^<]*)(</text>)")
_HEAD = re.compile(r"<(title|desc)>([^<]*)</(?:title|desc)>")


class Words:
    """A dictionary for the texts of figures. In an entry ``{}`` matches any number, name or symbol."""

    def __init__(self, entries: Mapping[str, str]) -> None:
        self._exact = {text: other for text, other in entries.items() if "{}" not in text}
        patterns = sorted((text for text in entries if "{}" in text), key=len, reverse=True)  # the most specific first
        self._patterns = [(_pattern(text), entries[text]) for text in patterns]
        self.missing: set[str] = set()
        """Texts with letters that were looked up and have no entry."""

    def __call__(self, text: str) -> str:
        """Return ``text`` in the other language; without an entry it is returned as it is and added to ``missing``."""
        translation = self.find(text)
        if translation is None and re.search(r"[A-Za-z]{2}", text):
            self.missing.add(text)
        return text if translation is None else translation

    def find(self, text: str) -> str | None:
        """Return ``text`` in the other language; None if there is no entry."""
        if text in self._exact:
            return self._exact[text]
        for pattern, other in self._patterns:
            if match := pattern.fullmatch(text):
                return other.format(*(self._captured(match, i) for i in range(1, pattern.groups + 1)))
        return None

    def _captured(self, match: re.Match[str], i: int) -> str:
        """Return what the ``i``-th ``{}`` has matched, in the other language; code, between backticks, stays."""
        is_code = match.string[: match.start(i)].count("`") % 2 == 1
        return match[i] if is_code else self.find(match[i]) or match[i]


def _pattern(text: str) -> re.Pattern[str]:
    """Return a pattern that captures the text in place of each ``{}``."""
    return re.compile(r"(.+?)".join(map(re.escape, text.split("{}"))))


def translated(svg: str, words: Callable[[str], str]) -> str:
    """Return the figure with every text, its title and its description translated by ``words``."""
    svg = _TEXT.sub(lambda match: match[1] + escape(words(unescape(match[2])), quote=False) + match[3], svg)
    return _HEAD.sub(lambda match: f"<{match[1]}>{escape(words(unescape(match[2])), quote=False)}</{match[1]}>", svg)


def texts(svg: str) -> Iterator[str]:
    """Yield the texts of a figure, then its title and description."""
    yield from (unescape(match[2]) for match in _TEXT.finditer(svg))
    yield from (unescape(match[2]) for match in _HEAD.finditer(svg))
