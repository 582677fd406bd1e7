"""Character classes of lines: scripts, digits, invisible characters, and characters that are unusual in text."""

from __future__ import annotations

import functools
import html
import html.entities
import re
import unicodedata
from collections.abc import Sequence, Set

import numpy as np
from numpy.typing import NDArray

from dragoman.languages.codes import primary, tag_of, variety
from dragoman.languages.known import known

_VISIBLE_FORMATS = frozenset("\u0600\u0601\u0602\u0603\u0604\u0605\u06dd\u070f\u0890\u0891\u08e2\U000110bd\U000110cd")
"""Format characters that are drawn: signs before Arabic, Syriac and Kaithi numbers."""
_IGNORABLE = re.compile("[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u3164\ufe00-\ufe0f\uffa0\U000e0000-\U000e0fff]")
"""Letters and marks that are not drawn: fillers of Hangul, vowels of Khmer, selectors of variants and tags."""


def is_blank(text: str) -> bool:
    """True if no character of a text is drawn: white space, control and format characters, variation selectors."""
    return all(_is_invisible(character) for character in text)


def _is_invisible(character: str) -> bool:
    if character.isspace() or _IGNORABLE.match(character):
        return True
    return unicodedata.category(character) in ("Cc", "Cf") and character not in _VISIBLE_FORMATS


SCRIPTS = (
    "latin", "cyrillic", "greek", "han", "kana", "hangul", "arabic", "hebrew", "devanagari", "thai", "other script",
)  # fmt: skip
CLASSES = (*SCRIPTS, "digit", "space", "mark", "control", "replacement", "no-break space", "invisible")
N_CLASSES = len(CLASSES)

Counts = NDArray[np.int64]
"""``(lines, N_CLASSES)``: characters of each class in each line."""

_OF_ISO = {
    "Latn": "latin", "Cyrl": "cyrillic", "Grek": "greek", "Hans": "han", "Hant": "han", "Hani": "han", "Hira": "kana",
    "Kana": "kana", "Hang": "hangul", "Arab": "arabic", "Hebr": "hebrew", "Deva": "devanagari", "Thai": "thai",
}  # fmt: skip
"""Names of scripts by their codes in ISO 15924; those of others count as ``other script``."""

_TOP = 0x32400  # beyond the last block of Han; what lies above counts as a mark
_RANGES = {
    "cyrillic": [(0x400, 0x530)],
    "greek": [(0x370, 0x400), (0x1F00, 0x2000)],
    "han": [(0x2E80, 0x2FE0), (0x3005, 0x3008), (0x3400, 0x4DC0), (0x4E00, 0xA000), (0xF900, 0xFB00), (0x20000, _TOP)],
    "kana": [(0x3040, 0x3100), (0x31F0, 0x3200), (0xFF66, 0xFFA0)],
    "hangul": [(0x1100, 0x1200), (0x3130, 0x3190), (0xAC00, 0xD7B0)],
    "arabic": [(0x600, 0x700), (0x750, 0x780), (0x8A0, 0x900), (0xFB50, 0xFE00), (0xFE70, 0xFEFF)],
    "hebrew": [(0x590, 0x600), (0xFB1D, 0xFB50)],
    "devanagari": [(0x900, 0x980)],
    "thai": [(0xE00, 0xE80)],
}


@functools.cache
def _table() -> NDArray[np.uint8]:
    """Return the class of each code point below ``_TOP``; the last entry is the class of all others."""
    number = {name: i for i, name in enumerate(CLASSES)}
    by_category = {
        "L": "other script", "M": "other script", "N": "digit", "Z": "space", "P": "mark", "S": "mark", "C": "mark"
    }  # fmt: skip
    first = bytes(number[by_category[unicodedata.category(chr(code))[0]]] for code in range(_TOP + 1))
    table = np.frombuffer(first, np.uint8).copy()
    is_letter = table == number["other script"]
    for low, high in ((0x41, 0x250), (0x1E00, 0x1F00), (0xFF21, 0xFF5B)):
        table[low:high][is_letter[low:high]] = number["latin"]
    for name, ranges in _RANGES.items():
        for low, high in ranges:
            table[low:high][is_letter[low:high]] = number[name]
    table[0x300:0x370] = number["mark"]  # combining marks belong to any script
    for low, high in ((0, 0x20), (0x7F, 0xA0), (0x2028, 0x202A)):  # CR inside a line among them; LF cannot be
        table[low:high] = number["control"]
    table[0x09] = number["space"]
    table[0xFFFD] = number["replacement"]
    for code in (0xA0, 0x2007, 0x202F):
        table[code] = number["no-break space"]
    for code in (0xAD, 0x200B, 0x200E, 0x200F, 0x2060, 0xFEFF, *range(0x202A, 0x202F), *range(0x2066, 0x206A)):
        table[code] = number["invisible"]  # joiners (U+200C, U+200D) are part of Persian, Hindi and emoji
    return table


def count_classes(lines: Sequence[str]) -> NDArray[np.int64]:
    """Return the number of characters of each class in each line, ``(lines, N_CLASSES)``."""
    codes = np.frombuffer("".join(lines).encode("utf-32-le", "surrogatepass"), "<u4")
    owners = np.repeat(np.arange(len(lines)), np.fromiter(map(len, lines), np.int64, len(lines)))
    classes = _table()[np.minimum(codes, _TOP)]
    return np.bincount(owners * N_CLASSES + classes, minlength=len(lines) * N_CLASSES).reshape(-1, N_CLASSES)


def scripts_of(lang: str | None, counts: NDArray[np.int64]) -> tuple[str, ...]:
    """Return the scripts of a language; of an unknown language the most frequent script of a sample.

    Args:
        counts: Characters of each class in a sample, ``(N_CLASSES,)``.
    """
    script = tag_of(lang).script
    if lang is not None and variety(lang) != variety(primary(lang)):  # such as sr-Latn
        return (_OF_ISO.get(script, "other script"),)
    return known(lang).scripts or (SCRIPTS[int(counts[: len(SCRIPTS)].argmax())],)


def in_another_script(counts: NDArray[np.int64], scripts: tuple[str, ...]) -> NDArray[np.bool_]:
    """Return a mask, ``(lines,)``: True for lines of four letters or more that are not in their language's script.

    A line of a language in Latin script must have at least half of its letters in it. In another script 2% are enough:
    such a line may be full of Latin names and code.

    Args:
        counts: ``(lines, N_CLASSES)``.
    """
    letters = counts[:, : len(SCRIPTS)].sum(1)
    own = counts[:, [SCRIPTS.index(name) for name in scripts]].sum(1)
    least = 0.5 if "latin" in scripts else 0.02
    return np.asarray((letters >= 4) & (own < least * letters))


_ALPHABETS = {
    "CJK": "Chinese characters", "FULLWIDTH": "full-width letters", "HALFWIDTH": "half-width letters",
    "MATHEMATICAL": "mathematical letters",
}  # fmt: skip


@functools.lru_cache(maxsize=4096)
def alphabet(letter: str) -> str:
    """Return a name for the letters to which a letter belongs, such as "Cyrillic letters"."""
    first = unicodedata.name(letter, "unnamed").split(" ")[0]
    return _ALPHABETS.get(first, f"{first.capitalize()} letters")


_LIKE_LATIN = frozenset("асеорхуіјѕһԁԛԝёїАВСЕНІЈКМОРЅТХУҮԌԚԜЁЇαονρυχιικκΑΒΕΖΗΙΚΜΝΟΡΤΥΧϲϳ")
"""Letters of Cyrillic and Greek that look like Latin ones."""


def lookalikes(word: str, known: Set[str]) -> bool:
    """True if a word was changed by letters that look alike: "dоg" with a Cyrillic о.

    Either it mixes them with letters of another alphabet, or all its letters are such letters, and none is known.

    Args:
        word: A run of letters.
        known: Letters of the text that such words should not be in.
    """
    foreign = [character for character in word if character in _LIKE_LATIN]
    if not foreign:
        return False
    if len(foreign) == len(word):
        return not any(character in known for character in foreign)
    others = {alphabet(character) for character in word if character not in _LIKE_LATIN}
    latin, own = "Latin letters", {alphabet(character) for character in foreign}
    return latin in others and (len(others) == 1 or others <= own | {latin})


_ALIKE = dict(zip(
    "асеорхуіјѕһԁԛԝёїАВСЕНІЈКМОРЅТХҮУԌԚԜЁЇαονρυχικΑΒΕΖΗΙΚΜΝΟΡΤΥΧϲϳ",
    "aceopxyijshdqwëïABCEHIJKMOPSTXYYGQWËÏaovpuxikABEZHIKMNOPTYXcj", strict=True,
))  # fmt: skip
"""Latin letters by the Cyrillic and Greek ones that look like them."""
_TO_CYRILLIC = {latin: other for other, latin in _ALIKE.items() if "\u0400" <= other < "\u0530"}
_TO_GREEK = {latin: other for other, latin in _ALIKE.items() if other < "\u0400"}


def plain_letters(word: str, prefers_latin: bool) -> str:
    """Return a word of two scripts in that of its telling letters, the others replaced by those that look like them.

    A letter without a likeness stays.

    Args:
        word: A run of letters.
        prefers_latin: True if a word without telling letters is Latin.
    """
    cyrillic, greek = sum("\u0400" <= c < "\u0530" for c in word), sum("\u0370" <= c < "\u0400" for c in word)
    telling = [c for c in word if c not in _LIKE_LATIN and c not in _TO_CYRILLIC]
    latin = sum(c < "\u0250" for c in telling)
    if 2 * latin > len(telling) or (2 * latin == len(telling) and prefers_latin):
        return "".join(_ALIKE.get(c, c) for c in word)
    table = _TO_CYRILLIC if cyrillic >= greek else _TO_GREEK
    return "".join(table.get(c, c) for c in word)


_MOJIBAKE = re.compile(
    r"(?:[\u00c2-\u00f4][\u0080-\u00bf\u0152\u0153\u0160\u0161\u0178\u017d\u017e\u0192\u02c6\u02dc\u2013-\u203a\u20ac"
    r"\u2122]+)+"
)
"""Characters of UTF-8 that were read as Windows-1252; those of Chinese follow each other without a break."""
_ENTITY = re.compile(r"&(?:[a-zA-Z][a-zA-Z0-9]{1,7}|#\d{2,6}|#x[0-9a-fA-F]{2,5});")


def has_mojibake(text: str) -> bool:
    """True if UTF-8 was once decoded as Windows-1252, as in ``schÃ¶n``: encoded again, it is valid UTF-8."""
    if text.isascii():
        return False
    return any(_is_certain(candidate) for candidate in _MOJIBAKE.finditer(text))


def without_mojibake(text: str) -> str:
    """Return a text whose UTF-8 was decoded as Windows-1252, decoded rightly; what reads well stays as it is."""
    return _MOJIBAKE.sub(_mended, text) if has_mojibake(text) else text


_TYPED_MARKS = "‘’“”„‚–—…™›»«"
"""Marks that people type right behind a letter; in mojibake they are the second character of many letters."""
_DASHES = "–—"
_OPENING_MARKS = "‘“„‚‹«"


def _as_windows(text: str) -> bytes:
    """Return text in Windows-1252; the bytes that it leaves undefined are those of Latin-1."""
    return b"".join(bytes([ord(c)]) if 0x80 <= ord(c) < 0xA0 else c.encode("cp1252") for c in text)


def _read_as_utf8(text: str) -> str:
    """Return a candidate, encoded again and decoded as UTF-8; an empty text if it cannot be read so."""
    try:
        return _as_windows(text).decode("utf-8")
    except UnicodeError:
        return ""


def _is_certain(candidate: re.Match[str]) -> bool:
    """True if a candidate is mojibake, whatever the rest of its line is like."""
    text, decoded = candidate.group(), _read_as_utf8(candidate.group())
    if len(decoded) != 1:
        return decoded != ""
    # "vergaß“" is valid UTF-8 too, one letter of a rare script: a single letter must begin like a common one, and
    # must not be a capital before a mark
    is_common = text[0] in "ÃÐÑ" or (text[0] in "ÂÄÅÎÏâ" and text[1] not in "‘’“”„‚–—")
    return is_common and not _may_be_typed(candidate)


def _may_be_typed(candidate: re.Match[str]) -> bool:
    """True if a candidate of one letter may be a capital before a mark: "IRMÃ”", "LÃ–ALGODÃO", or “Ã” as a letter."""
    line, start, end = candidate.string, candidate.start(), candidate.end()
    before, mark = line[start - 1 : start], candidate.group()[1]
    if mark not in _TYPED_MARKS or not (before.isupper() or (before and before in _OPENING_MARKS)):
        return False
    # a letter behind a dash may begin another word; behind any other mark it shows that the mark was a letter: "PÅ™i"
    return mark in _DASHES or not line[end : end + 1].isalpha()


def _mended(candidate: re.Match[str]) -> str:
    """Return a candidate of a line that has mojibake, decoded, unless it is a rare letter at the end of a word."""
    text, decoded = candidate.group(), _read_as_utf8(candidate.group())
    before = candidate.string[candidate.start() - 1 : candidate.start()]
    is_rare = len(decoded) == 1 and text[0] not in "ÃÐÑÂÄÅÎÏâ"
    return text if not decoded or (is_rare and before.isalpha() and text[1] in _TYPED_MARKS) else decoded


def has_foreign_letters(text: str) -> bool:
    """True if a text has letters of Cyrillic or Greek that cannot be mistaken for Latin ones."""
    return any("\u0370" <= c < "\u0530" and c not in _LIKE_LATIN and c.isalpha() for c in text)


def has_entity(text: str) -> bool:
    """True if the text contains an HTML entity such as ``&quot;``."""
    return "&" in text and any(map(_is_entity, _ENTITY.finditer(text)))


MOST_ESCAPES = 3
"""Number of times that a text may have been escaped: ``&amp;amp;quot;`` three times."""


def without_entities(text: str) -> str:
    """Return a text with its HTML entities decoded; what lacks the semicolon stays, as in ``?a=1&copy=2``."""
    for _ in range(MOST_ESCAPES):
        if not has_entity(text):
            break
        text = _ENTITY.sub(lambda match: html.unescape(match[0]) if _is_entity(match) else match[0], text)
    return text


def _is_entity(match: re.Match[str]) -> bool:
    """True if HTML knows a name: of ``&copying;``, which it does not, ``html.unescape`` would decode the beginning."""
    return match[0][1] == "#" or match[0][1:] in html.entities.html5
