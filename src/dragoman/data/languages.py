"""The little that must be known of a language: its code, whether it puts spaces between words, where a word ends."""

from __future__ import annotations

import re
import unicodedata
from pathlib import Path

UNSPACED = ("zh", "cmn", "yue", "ja", "th", "lo", "km", "my")
CHINESE = ("zh", "cmn", "yue")

_ENDINGS = ("gz", "zst", "txt")
_NOT_A_LANGUAGE = ("src", "tgt", "trg", "ref", "hyp", "out", "raw", "tok", "bpe", "spm", "csv", "tsv", "dat", "log")


def primary(lang: str | None) -> str:
    """``zh`` of ``zh-CN`` or ``zh_TW``; nothing of None."""
    return re.split("[-_]", (lang or "").lower())[0]


def language_of(path: Path) -> str | None:
    """``en`` from ``train.en`` or ``train.en.gz``, ``zh-CN`` from ``train.zh-CN``; None where the name has none."""
    parts = [part for part in path.name.split(".") if part.lower() not in _ENDINGS]
    last = parts[-1] if parts else ""
    looks_like_one = re.fullmatch(r"[A-Za-z]{2,3}([-_][A-Za-z0-9]{2,8})?", last) is not None
    return last if looks_like_one and last.lower() not in _NOT_A_LANGUAGE else None


_UNSPACED_SCRIPT = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\u30ff\u31f0-\u31ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]"
)
"""Thai, Lao, Burmese, Khmer, Chinese characters, kana: scripts whose words stand side by side."""


def in_word(character: str) -> bool:
    """Whether a character belongs to a word that ends only where another kind of character stands.

    True of letters, digits and combining marks, but for scripts without spaces, where any character may end a word;
    False of ``""``.
    """
    return bool(
        character
        and (character.isalnum() or unicodedata.combining(character))
        and not _UNSPACED_SCRIPT.match(character)
    )


def has_word(text: str, word: str) -> bool:
    """Whether ``word`` (one word or several) stands in ``text`` by itself: "dog" in "a dog." but not in "dogma"."""
    return count_word(text, word) > 0


def count_word(text: str, word: str) -> int:
    """How often ``word`` stands in ``text`` by itself."""
    starts, start = [], text.find(word)
    while start >= 0:
        starts.append(start)
        start = text.find(word, start + 1)
    return sum(is_whole(text, start, start + len(word)) for start in starts)


def is_whole(text: str, start: int, end: int) -> bool:
    """Whether no word goes on across either end of ``text[start:end]``."""
    cut_before = in_word(text[start]) and in_word(text[start - 1 : start])
    cut_after = in_word(text[end - 1]) and in_word(text[end : end + 1])
    return not (cut_before or cut_after)
