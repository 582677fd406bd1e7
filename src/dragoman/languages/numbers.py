"""Numbers written out in ten languages: below a million, and beyond in Chinese and Japanese.

Words("Zwei Hunde, zwei Katzen", "de").take(2)    # True, twice
"""

from __future__ import annotations

import re
from collections import Counter
from functools import lru_cache

from dragoman.languages.known import known
from dragoman.languages.language import NumberWords
from dragoman.languages.words import marks_as_letters


def has_words(lang: str | None) -> bool:
    """True if the number words of a language are known."""
    return known(lang).numbers is not None


MOST_NUMBERS = 200
"""Largest number of different numbers that are looked up in a text: each takes a search of the whole text."""


class Words:
    """Numbers that a text has in words; each can be taken as often as the text has it."""

    def __init__(self, text: str, lang: str) -> None:
        """Look for numbers in a text; the number words of its language must be known (``has_words``)."""
        language = known(lang)
        if language.numbers is None:
            raise ValueError(f"lang must be a language whose number words are known, got {lang!r}")
        self._text, self._numbers, self._spaces = marks_as_letters(text.lower()), language.numbers, language.spaces
        self._taken = Counter[int]()
        self._counts: dict[int, int] = {}

    def take(self, value: int) -> bool:
        """Take one occurrence of a number; False if no occurrence is left, or after ``MOST_NUMBERS`` different ones."""
        if value not in self._counts:
            pattern = pattern_of(value, self._numbers, self._spaces) if len(self._counts) < MOST_NUMBERS else ""
            self._counts[value] = len(re.findall(pattern, self._text)) if pattern else 0
        if self._counts[value] <= self._taken[value]:
            return False
        self._taken[value] += 1
        return True


@lru_cache(maxsize=1024)
def pattern_of(value: int, numbers: NumberWords, spaces: bool) -> str:
    """Return the pattern of a number in words; "" if its words are not known."""
    stems = numbers.stems.split()
    if value < len(stems):
        any_stem = "|".join(sorted(map(re.escape, stems[value].split("|")), key=len, reverse=True))
        return rf"(?<!\w)(?:{any_stem})" if spaces else any_stem
    if numbers.spelled is None or value >= numbers.limit:
        return ""
    # the match must be neither the end nor the beginning of a longer number
    before = r"\w" if spaces else rf"\d|{numbers.longer}"
    return rf"(?<!{before})(?:{numbers.spelled(value)})(?!\d|{numbers.longer})"
