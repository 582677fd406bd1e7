"""Mnemonics of menus and buttons, such as ``_File`` and ``E&xit``: taken out, and set again in the translation.

find("Save _As", has_underscores=True)    # (5, "_")
set_again("Sichern unter", 8, Mnemonic("_", "As", 0))    # "Sichern _unter"
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass

LONGEST = 60
"""Largest number of characters of a message with a mnemonic."""

_UNDERSCORE = re.compile(r"(?<![\w/.%$({\[<-])_(?=[^\W\d_])|(?<=[a-zA-Z])_(?=[a-z])")
_AMPERSAND = re.compile(r"(?<![\w&;=])&(?=\w)|(?<=[a-z])&(?=[a-z])|(?<=\b[A-Z])&(?=[a-z])")
_TILDE = re.compile(r"(?<![\w/.~`])~(?=[A-Z])|(?<=[A-Za-z])~(?=[a-z])")
_ENTITY = re.compile(r"&(?:#\d|#x|[A-Za-z][A-Za-z0-9]*;)")
_NO_LABEL = re.compile(r"://|[`=\n]|\w[_&]\w+[_&]|\w_\w+\(|--|[a-z]_[a-z]+[.,]")
_WORDS = re.compile(r"[^\W\d_]+")
_PROTECTED = re.compile(r"<[^<>]*>|\{[^{}]*\}|%\([^()]*\)\w|%\S|&\w+;|\$\w+|``[^`]*``")
_UNSPACED = re.compile(r"HANGUL|CJK|HIRAGANA|KATAKANA|THAI|LAO|KHMER|MYANMAR|DEVANAGARI|BENGALI|TAMIL|TELUGU")
_END = re.compile(r"(?<![\s.:\u2026\uff1a\u3002])[\s.:\u2026\uff1a\u3002]*+\Z")


@dataclass(frozen=True)
class Mnemonic:
    """A sign before the letter that a key chooses."""

    sign: str
    word: str  # that it stands in
    offset: int  # of the letter in the word


def find(text: str, has_underscores: bool) -> tuple[int, str] | None:
    """Return the place and the sign of a message's mnemonic; None if it has none, or if it may be something else.

    Args:
        text: The message.
        has_underscores: True if the catalogue has underscores before words, as those of GTK have.
    """
    if len(text) > LONGEST or _NO_LABEL.search(text):
        return None
    if has_underscores and text.count("_") == 1 and (match := _UNDERSCORE.search(text)):
        return (match.start(), "_") if _is_label(text, match.start()) else None
    if text.count("&") == 1 and not _ENTITY.search(text) and (match := _AMPERSAND.search(text)):
        return (match.start(), "&") if _is_label(text, match.start()) else None
    if text.count("~") == 1 and (match := _TILDE.search(text)):
        return (match.start(), "~") if _is_label(text, match.start()) else None
    return None


def _is_label(text: str, place: int) -> bool:
    """True if a sign stands in no placeholder, and at the start of a word or in one that is no name of code."""
    if any(match.start() <= place < match.end() for match in _PROTECTED.finditer(text)):
        return text[place] == "&" and not any(mark in text for mark in "<{%$`")
    start = place
    while start and text[start - 1].isalnum():
        start -= 1
    return start == place or text[start].isupper()


def has_underscores(texts: list[str]) -> bool:
    """True if some messages begin a word with an underscore, as the labels of GTK do."""
    return any(len(text) <= LONGEST and text.count("_") == 1 and _LABEL.match(text) for text in texts)


_LABEL = re.compile(r"_[A-Z](?:[a-z]| [a-z])|[A-Z][a-z]+ _[A-Z][a-z]|[A-Z]_[a-z]+\Z")


def mnemonic_at(text: str, place: int, sign: str) -> tuple[str, int, Mnemonic]:
    """Return a message without its mnemonic, where the word with it begins, and the mnemonic."""
    bare = text[:place] + text[place + 1 :]
    start = place
    while start and bare[start - 1].isalnum():
        start -= 1
    word = _WORDS.match(bare, start)
    return bare, start, Mnemonic(sign, word[0] if word else bare[place : place + 1], place - start)


def set_again(text: str, place: int, mnemonic: Mnemonic) -> str:
    """Return a translation with its mnemonic: if possible at the same letter, else at the same place of the word.

    Without a letter that a key writes, as in Chinese, the letter stands in brackets at the end, as is usual there.

    Args:
        text: The translation.
        place: Where the word with the mnemonic begins.
        mnemonic: That of the source.
    """
    label, tab, keys = text.partition("\t")
    if tab and place <= len(label):  # behind the tab are the keys that do the same
        return set_again(label, place, mnemonic) + tab + keys
    protected = [match.span() for match in _PROTECTED.finditer(text)]
    words = [
        (match.start(), match.end()) for match in _WORDS.finditer(text)
        if not any(start < match.end() and match.start() < end for start, end in protected) and _is_typed(match[0])
    ]  # fmt: skip
    letter = mnemonic.word[mnemonic.offset : mnemonic.offset + 1]
    same_place = place + mnemonic.offset
    if not words and letter and text[same_place : same_place + 1] == letter:  # a digit
        return _marked(text, same_place, mnemonic.sign)
    if not words:
        end = _END.search(text)
        at = end.start() if end and text.strip() else len(text)
        return f"{text[:at]}({mnemonic.sign}{letter.upper()}){text[at:]}"
    own = next((word for word in words if word[0] <= place < word[1]), None) or min(
        words, key=lambda word: abs(word[0] - place)
    )
    start, end_of_word = own
    same = [i for i in range(start, end_of_word) if text[i].casefold() == letter.casefold()]
    first = [word for word, _ in words if text[word].casefold() == letter.casefold()]
    at = start + mnemonic.offset
    if at < end_of_word and at in same:
        return _marked(text, at, mnemonic.sign)
    if same or first:
        return _marked(text, (same or first)[0], mnemonic.sign)
    return _marked(text, at if at < end_of_word else start, mnemonic.sign)


def _marked(text: str, place: int, sign: str) -> str:
    return f"{text[:place]}{sign}{text[place:]}"


def _is_typed(word: str) -> bool:
    """True if a key writes each letter of the word, as in alphabets."""
    return not any(_UNSPACED.match(unicodedata.name(character, "")) for character in word[:1])
