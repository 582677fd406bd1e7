"""Case of lines and words: lines in CAPITALS or in Title Case, and how a language writes a word in another case.

    case_of("A DOG RUNS.")             # "capitals"
    case_of("A Dog Runs.")             # "title"
    capitals("straße istanbul", "tr")  # "STRASSE İSTANBUL"

Scripts without case, and letters that are hardly ever written in another case (Cherokee, Georgian), stay as they are.
``lower`` and ``capitalised`` keep the number of characters, so positions in the text stay valid.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Literal

from dragoman.languages.codes import primary
from dragoman.languages.composition import compose, decompose

Case = Literal["capitals", "title"]
Span = tuple[int, int]
"""Start and end of a part of a text."""

LEAST_CAPITALS = 2
"""Fewest words of a line in capitals: one alone is mostly a name, such as NATO."""
LEAST_TITLE = 3
"""Fewest words with a capital in a line in Title Case: two are mostly a name, such as New York."""
LEAST_SHARE = 0.9
"""Least share of the letters that have case, and of those of a line in capitals that are capitals."""
SHORT_WORD = 3
"""Words of up to this many letters may be small in Title Case, such as "of" and "the"."""

_SMALL_LETTER, _SMALL_WORD = re.compile("[a-z]"), re.compile(rf"(?<!\S)[a-z]{{{SHORT_WORD + 1}}}")
APOSTROPHES = "'\u2019"
_DOTLESS = ("tr", "az")
_NO_OTHER_CASE = (
    (0x10A0, 0x1100),
    (0x13A0, 0x1400),
    (0x1C90, 0x1CC0),
    (0x2D00, 0x2D30),
    (0xAB70, 0xABC0),
    (0xB5, 0xB6),
)
"""Georgian, Cherokee, and the micro sign."""


@lru_cache(maxsize=4096)
def is_cased(character: str) -> bool:
    """True for a letter that has another case in which it is written."""
    if character.lower() == character.upper():
        return False
    return not any(start <= ord(character) < end for start, end in _NO_OTHER_CASE)


@lru_cache(maxsize=4096)
def is_capital(character: str) -> bool:
    """True for a capital or a titlecase digraph."""
    return is_cased(character) and character != character.lower()


def words(text: str) -> Iterator[Span]:
    """Yield the words of a text: letters with their marks, and apostrophes between them."""
    start = -1
    for i, character in enumerate(text):
        inside = unicodedata.category(character)[0] in "LM" or (
            start >= 0 and character in APOSTROPHES and text[i + 1 : i + 2].isalpha()
        )
        if inside and start < 0:
            start = i
        elif not inside and start >= 0:
            yield start, i
            start = -1
    if start >= 0:
        yield start, len(text)


def free_words(text: str, fixed: Sequence[Span]) -> list[Span]:
    """Return the words of a text that touch none of the ``fixed`` spans, which are sorted."""
    free, k = [], 0
    for start, end in words(text):
        while k < len(fixed) and fixed[k][1] <= start:
            k += 1
        if k == len(fixed) or fixed[k][0] >= end:
            free.append((start, end))
    return free


def case_of(text: str, fixed: Sequence[Span] = ()) -> Case | None:
    """Return the case of a whole line; None for usual text, for one word, and for scripts without case.

    Args:
        fixed: Spans that keep their case, such as addresses; they do not count.
    """
    if (not fixed and _is_plainly_usual(text)) or not _may_have_case(text):
        return None
    n_letters = n_cased = n_capitals = whole = 0
    titled: list[bool] = []
    small, last = 0, 0
    for start, end in free_words(text, fixed):
        cased = [character for character in text[start:end] if is_cased(character)]
        capital = sum(map(is_capital, cased))
        n_letters += sum(map(str.isalpha, text[start:end]))
        n_cased, n_capitals = n_cased + len(cased), n_capitals + capital
        if len(cased) >= 2 and capital == len(cased):
            whole += not whole or any(map(str.isspace, text[last:start]))  # AC/DC is one name
            last = end
        if len(cased) >= 2:  # a letter alone is a label or an initial
            titled.append(capital >= 1 and is_capital(text[start]))
            small += not titled[-1] and len(cased) > SHORT_WORD
    if n_cased < LEAST_SHARE * n_letters or not titled:
        return None
    if whole >= LEAST_CAPITALS and n_capitals >= LEAST_SHARE * n_cased:
        return "capitals"
    if sum(titled) >= max(LEAST_TITLE, len(titled) / 2) and not small and titled[0]:
        return "title"
    return None


def _may_have_case(text: str) -> bool:
    """True unless the second of the long words is small, as in nearly all text: a quick look."""
    long_words = (word for word in text.split() if len(word) > SHORT_WORD + 2)
    next(long_words, None)
    second = next(long_words, "A")
    return not (second[0].islower() and second.islower())


def _is_plainly_usual(text: str) -> bool:
    """True if ASCII letters alone show that a line is in usual case, so that no word need be looked at."""
    return bool(_SMALL_WORD.search(text)) and len(_SMALL_LETTER.findall(text)) > (1 - LEAST_SHARE) * len(text)


def lower(text: str, lang: str | None) -> str:
    """Return text in lower case: a final sigma is ς, and a Turkish I becomes ı."""
    if primary(lang) in _DOTLESS:
        text = text.replace("I", "\u0131")
    return text.replace("\u0130", "i").lower()


def capitalised(word: str, lang: str | None) -> str:
    """Return a word in lower case with a capital first: ``Ǆ`` becomes ``ǅ``, a Dutch ij becomes IJ."""
    small = lower(word, lang)
    if primary(lang) in _DOTLESS and small[:1] == "i":
        return "\u0130" + small[1:]
    if primary(lang) == "nl" and small[:2] == "ij":
        return "IJ" + small[2:]
    first = small[:1].title()
    return first + small[1:] if len(first) == 1 and is_cased(first) else small


def capitals(text: str, lang: str | None) -> str:
    """Return text in capitals: ß becomes SS, a Turkish i becomes İ, Greek letters lose their accents."""
    if primary(lang) in _DOTLESS:
        text = text.replace("i", "\u0130")
    if primary(lang) == "el":
        text = _without_accents(text)
    return "".join(character.upper() if is_cased(character) else character for character in text)


def _without_accents(text: str) -> str:
    """Return Greek text without accents; ι and υ that an accent separated from their neighbour get a diaeresis."""
    plain: list[str] = []
    separated = False
    for character in decompose(text):
        if character in "\u0300\u0301\u0342":
            separated = bool(plain) and plain[-1].lower() in "αεουη"
            continue
        plain.append(character)
        if separated and character.lower() in "ιυ":
            plain.append("\u0308")
        separated = False
    return compose("".join(plain)).replace("\u0308\u0308", "\u0308")
