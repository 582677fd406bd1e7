"""Composes characters (Unicode's form NFC) in linear time, however many marks a letter has.

    compose("a\\u0301")    # "á"

``unicodedata.normalize`` puts the marks of a letter in order by insertion, in the square of their number, and lets no
other thread run meanwhile. So long runs of marks are put in order before.
"""

from __future__ import annotations

import re
import unicodedata
from functools import cache

from dragoman.languages.words import MARKS, kinds

_MANY_MARKS = re.compile(rf"[{MARKS}]{{32,}}+")
"""Pattern, on ``kinds``, of more marks than a reader can tell apart."""


def compose(text: str) -> str:
    """Return a text with its characters composed and their marks in order (NFC)."""
    if text.isascii() or unicodedata.is_normalized("NFC", text):  # quick: it ends at the first mark out of order
        return text
    return unicodedata.normalize("NFC", _in_order(text))


def decompose(text: str) -> str:
    """Return a text with its characters decomposed and their marks in order (NFD)."""
    return text if text.isascii() else unicodedata.normalize("NFD", _in_order(text))


def composed_places(text: str) -> tuple[str, list[int]]:
    """Return a text composed (NFC), and for each of its characters the place in ``text`` that it comes from.

    The characters of one cluster of letter and marks all have the place of its first.
    """
    if unicodedata.is_normalized("NFC", text):
        return text, list(range(len(text)))
    parts, places, start = [], [], 0
    for end in range(1, len(text) + 1):
        if end < len(text) and not _begins(text[end]):
            continue
        cluster = compose(text[start:end])
        parts.append(cluster)
        places += [start] * len(cluster)
        start = end
    return "".join(parts), places


def _begins(character: str) -> bool:
    """True if no character before this one can be composed with it, or change places with it."""
    first = unicodedata.normalize("NFD", character)[0]
    return unicodedata.combining(first) == 0 and first not in _seconds()


@cache
def _seconds() -> frozenset[str]:
    """Return the letters and vowel signs that are composed with the character before them."""
    seconds = {chr(code) for code in (*range(0x1161, 0x1176), *range(0x11A8, 0x11C3))}  # of Hangul
    for code in range(0x30000):  # further planes hold none
        parts = unicodedata.decomposition(chr(code)).split()
        if len(parts) == 2 and parts[0][0] != "<" and unicodedata.normalize("NFC", chr(code)) == chr(code):
            seconds.add(chr(int(parts[1], 16)))
    return frozenset(second for second in seconds if not unicodedata.combining(second))


def _in_order(text: str) -> str:
    """Return a text with the marks of its long runs decomposed and in canonical order."""
    parts, end = [], 0
    for run in _MANY_MARKS.finditer(kinds(text)):
        parts += [text[end : run.start()], _sorted(text[run.start() : run.end()])]
        end = run.end()
    return "".join([*parts, text[end:]])


def _sorted(marks: str) -> str:
    """Return marks decomposed, in the order of their classes; a mark of class 0 keeps its place, as do its sides."""
    parts: list[str] = []
    movable: list[str] = []
    for mark in "".join(unicodedata.normalize("NFD", mark) for mark in marks):
        if unicodedata.combining(mark):
            movable.append(mark)
            continue
        parts += [*sorted(movable, key=unicodedata.combining), mark]
        movable = []
    return "".join([*parts, *sorted(movable, key=unicodedata.combining)])
