"""Word boundaries: characters that belong to words, and words that stand by themselves in a text."""

from __future__ import annotations

import re
import unicodedata

_UNSPACED_SCRIPT = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\u30ff\u31f0-\u31ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]"
)
"""Characters of scripts without spaces between words: Thai, Lao, Burmese, Khmer, Chinese characters, kana."""


def in_word(character: str) -> bool:
    """True if a word cannot end right before or after this character: a letter, a digit or a combining mark.

    False for ``""`` and for scripts without spaces, where a word may end at any character.
    """
    return bool(
        character
        and (character.isalnum() or unicodedata.combining(character))
        and not _UNSPACED_SCRIPT.match(character)
    )


def has_word(text: str, word: str) -> bool:
    """True if ``word`` (one word or several) stands in ``text`` by itself: "dog" in "a dog." but not in "dogma"."""
    return count_word(text, word) > 0


def count_word(text: str, word: str) -> int:
    """Return how often ``word`` stands in ``text`` by itself."""
    starts, start = [], text.find(word)
    while start >= 0:
        starts.append(start)
        start = text.find(word, start + 1)
    return sum(is_whole(text, start, start + len(word)) for start in starts)


def is_whole(text: str, start: int, end: int) -> bool:
    """True if no word continues across either end of ``text[start:end]``."""
    cut_before = in_word(text[start]) and in_word(text[start - 1 : start])
    cut_after = in_word(text[end - 1]) and in_word(text[end : end + 1])
    return not (cut_before or cut_after)
