"""Composes characters (Unicode's form NFC) in linear time, however many marks a letter has.

    compose("a\\u0301")    # "á"

``unicodedata.normalize`` puts the marks of a letter in order by insertion, in the square of their number, and lets no
other thread run meanwhile. So long runs of marks are put in order before.
"""

from __future__ import annotations

import re
import unicodedata

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
