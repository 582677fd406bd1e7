"""Words as each script writes them: which characters belong to a word, and where words and texts may be cut.

    divides_word("राजा आया", 3)     # True: the vowel sign belongs to the word before it
    count_word("रामायण", "राम")     # 0: the word goes on
    core("(आया)।")                  # (1, 5): start and end without the marks around it
    clusters("นี้")                   # [(0, 3)]: one character to a reader
    kinds("नमस्ते!")                # "aaa्a...!": a simple character for each, for regular expressions of ``re``

A word consists of letters, digits, the marks on them (vowel signs, viramas, accents, tone marks), and what joins them
unseen (ZWNJ, ZWJ, soft hyphen, word joiner) or seen (connector punctuation such as ``_``). In scripts without spaces a
word may end between any two grapheme clusters, but never inside one. A syllable of Tibetan ends at its tsheg.

The properties of characters are those of Unicode in the package ``regex``; a character is looked up once.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

LETTER, IDEOGRAPH, UNSPACED, DIGIT = "a", "あ", "ก", "0"
MARK, VIRAMA, JOINER, LINK = "\u0301", "\u094d", "\u200d", "_"
BINDER, REPH, FLAG, PICTURE = "เ", "\u0d4e", "\U0001f1e6", "\U0001f600"
"""Kinds of characters, as ``kinds`` writes them; any other character is written as it is.

``IDEOGRAPH``: Chinese characters, kana and the like; ``UNSPACED``: other letters of scripts without spaces, such as
Thai. ``MARK``: no word or cluster begins with it. ``VIRAMA``: a mark that may join the next letter to its cluster.
``JOINER``: ZWJ and ZWNJ; ``LINK``: joins two letters, and is no part of a word at its ends. ``BINDER``: belongs to the
cluster after it, such as the Thai vowels that are written before their consonant; ``REPH``: a letter that does so in a
script with spaces.
"""

_ALONE = IDEOGRAPH + UNSPACED + BINDER
MARKS = MARK + VIRAMA + JOINER
"""Kinds that belong to the character before them."""

_WORD = LETTER + REPH + DIGIT + _ALONE

INVISIBLE = "".join(map(chr, (*range(1, 9), *range(0x0E, 0x1C), *range(0x7F, 0x85), *range(0x86, 0xA0)))) + (
    "\u00ad\ufeff\ufff9\ufffa\ufffb"
)
"""Control characters, soft hyphens, byte order marks, marks of annotations: nobody sees them; no model reads them."""

HAN = "\u3005-\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufa6d\ufa70-\ufad9"
"""Chinese characters, for a class of ``re``. In ``kinds`` they may stand for themselves."""

_ALONE_CLASS = _ALONE + HAN
_BASE = rf"(?:{BINDER}[{LINK}{MARKS}]*+){{0,3}}+[{IDEOGRAPH}{UNSPACED}{HAN}]{MARK}*+"
_JOINED = rf"[{VIRAMA}{JOINER}][{MARKS}]*+(?:{_BASE})?+|{LINK}[{LINK}{MARKS}]*+{_BASE}"
CLUSTER_OF_WORD = rf"(?:{_BASE}(?:{_JOINED})*+|{BINDER}++[{MARKS}]*+)"
"""Pattern, on ``kinds``, of the least part of a text without spaces that may be a word."""

_LETTERS = rf"[^\W\d_{_ALONE_CLASS}]"
LETTERS = rf"(?:{_LETTERS}(?:{_LETTERS}|[{MARKS}]|{LINK}++(?={_LETTERS}))*+)"
"""Pattern, on ``kinds``, of a word of letters in a script with spaces."""

CHARACTERS = rf"(?:[^\W{_ALONE_CLASS}](?:[^\W{_ALONE_CLASS}]|[{MARKS}])*+)"
"""Pattern, on ``kinds``, of a word of letters, digits and ``_`` in a script with spaces."""

SIGN = rf"(?:[^\w\s][{MARKS}]*+)"
"""Pattern, on ``kinds``, of a sign that is no part of a word."""

_IDEOGRAPHIC = (
    r"\p{Han}\p{Hiragana}\p{Katakana}\p{Bopomofo}\p{Yi}\p{Tangut}\p{Nushu}\p{Khitan_Small_Script}\u3006\u3031-\u3035"
)
_COMPLEX = (
    r"\p{Thai}\p{Lao}\p{Myanmar}\p{Khmer}\p{Tai_Le}\p{New_Tai_Lue}\p{Tai_Tham}\p{Tai_Viet}\p{Ahom}\p{Javanese}"
    r"\p{Balinese}"
)
_NEVER_FIRST = (  # vowels of Thai and Lao that follow their consonant; small kana and the sign of a long vowel
    r"\u0e30\u0e32\u0e33\u0e45\u0eb0\u0eb2\u0eb3ぁぃぅぇぉゃゅょゎァィゥェォャュョヮー\uff67-\uff6e\uff70"
)
_PROPERTIES = (
    (JOINER, r"[\u200c\u200d]"),
    (VIRAMA, r"[\p{InSC=Virama}\p{InSC=Invisible_Stacker}]"),
    (MARK, rf"[\p{{M}}\p{{GCB=Extend}}\p{{GCB=SpacingMark}}\p{{GCB=V}}\p{{GCB=T}}{_NEVER_FIRST}]"),
    (BINDER, r"\p{Logical_Order_Exception}|(?=\p{GCB=Prepend})\p{Cf}"),
    (REPH, r"(?=\p{GCB=Prepend})\p{L}"),
    (LINK, r"[\p{WB=Format}\p{Pc}]"),
    (DIGIT, r"\p{Nd}"),
    (IDEOGRAPH, rf"(?=[\p{{L}}\p{{N}}])[{_IDEOGRAPHIC}]"),
    (UNSPACED, rf"(?=[\p{{L}}\p{{N}}])[{_COMPLEX}]"),
    (LETTER, r"[\p{L}\p{N}]"),
    (FLAG, r"\p{Regional_Indicator}"),
    (PICTURE, r"\p{Extended_Pictographic}"),
)

_SPECIAL = re.compile(
    "[^\\0-\u00ac\u00ae-\u02ff\u0370-\u0482\u048a-\u0590\u05d0-\u05ff\u0606-\u060f\u061d-\u064a\u0660-\u066f\u0671-\u06d5"
    "\u10a0-\u10ff\u1200-\u135c\u1360-\u16ff\u1e00-\u200b\u2010-\u2029\u202f-\u203e\u2041-\u2053\u2055-\u205f\u2070-\u20cf"
    "\u2100-\u2cee\u3000-\u3020\u3400-\u4dbf\u4e00-\u9fff\ua4d0-\ua66e\ua700-\ua7ff\uac00-\ud7a3\ue000-\ufa6d\ufa70-\ufad9\ufb00-\ufb1d\ufb1f-\ufdff"
    "\ufe10-\ufe1f\uff01-\uff3e\uff40-\uff65]"
)
"""A character that ``kinds`` must look up. Without any, a text is as good as its kinds, as in Europe and China."""

MOST_KEPT = 30_000
REACH = 64
"""Largest number of kinds that are kept, and of marks and joiners that are passed in the search for a letter."""


class _Kinds(dict[int, str]):
    """Kind of each code point, looked up when it is first met."""

    def __missing__(self, code: int) -> str:
        character = chr(code)
        kind = next((kind for kind, pattern in _patterns() if pattern.match(character)), character)
        if len(self) < MOST_KEPT:
            self[code] = kind
        return kind


_KINDS = _Kinds()


@cache
def _patterns() -> list[tuple[str, Any]]:
    import regex  # imported here, so that commands start faster

    return [(kind, regex.compile(pattern)) for kind, pattern in _PROPERTIES]


def kinds(text: str) -> str:
    """Return a text of the same length in which a simple character of the same kind stands for each other.

    A text of letters without marks and joiners, or of Chinese characters, is returned as it is: each is its own kind.
    """
    return text.translate(_KINDS) if _SPECIAL.search(text) else text


def kind_of(character: str) -> str:
    """Return the kind of a character: one of the constants above, or the character itself; "" for ""."""
    return _KINDS[ord(character)] if character else ""


def marks_as_letters(text: str) -> str:
    """Return a text of the same length in which a letter stands for each mark and joiner of a word, and nothing else
    changes: for regular expressions of ``re``, whose ``\\w`` knows letters alone.
    """
    if not _SPECIAL.search(text):
        return text
    parts, end = [], 0
    for match in _MARKED.finditer(text.translate(_KINDS)):
        marks = ("_" if character == "_" else _ANY_LETTER for character in text[match.start() : match.end()])
        parts += [text[end : match.start()], *marks]
        end = match.end()
    return "".join([*parts, text[end:]])


_ANY_LETTER = "\u00aa"  # it has no case, and is in no pattern
_MARKED = re.compile(rf"(?<=[{LETTER}{REPH}{_ALONE}])(?:[{MARKS}]++|{LINK}[{LINK}{MARKS}]*+(?=[{_WORD}]))+")


def in_word(character: str) -> bool:
    """True if a character belongs to words of a script with spaces: a letter, digit or mark. False for ``""``.

    For the place between two characters ask ``divides_word``: a word may go on at a joiner, or end at a mark.
    """
    return bool(character) and _KINDS[ord(character)] in _WITH_SPACES


_WITH_SPACES = frozenset(LETTER + REPH + DIGIT + MARKS)
_ANY_SCRIPT = frozenset(_WORD + MARKS)


def is_word_character(character: str) -> bool:
    """True if a character belongs to words of any script: a letter, digit or mark. False for ``""``."""
    return bool(character) and _KINDS[ord(character)] in _ANY_SCRIPT


def is_unspaced_at(text: str, place: int) -> bool:
    """True if the character at a place, or the one that its mark is on, belongs to a script without spaces."""
    base = place
    while base > max(0, place - REACH) and _KINDS[ord(text[base])] in MARKS:
        base -= 1
    return _KINDS[ord(text[base])] in _ALONE


def core(text: str, start: int = 0, end: int | None = None) -> tuple[int, int]:
    """Return start and end of ``text[start:end]`` without the punctuation around its words; empty if it has no word."""
    end = len(text) if end is None else end
    first, last = start, end
    while start < end and _KINDS[ord(text[start])] not in _WORD:
        start += 1
    while last > start and _KINDS[ord(text[last - 1])] not in _WORD:
        last -= 1
    while start < last < end and _KINDS[ord(text[last])] in MARKS:
        last += 1
    return (start, last) if start < last else (first, first)


def divides_cluster(text: str, place: int) -> bool:
    """True if a grapheme cluster continues across a place of a text: no text may be cut there.

    Clusters are those of Unicode (https://unicode.org/reports/tr29/), and a vowel or stacked consonant always belongs
    to its consonant, as in Thai, Burmese and Khmer.
    """
    if not 0 < place < len(text):
        return False
    right, left = _KINDS[ord(text[place])], _KINDS[ord(text[place - 1])]
    if right in MARKS:
        return left not in "\r\n"
    if left not in _BINDING:
        return left == "\r" and right == "\n"
    if left == FLAG:
        first = max(0, place - 2 * REACH)
        n_before = len(text[first:place]) - len(text[first:place].translate(_KINDS).rstrip(FLAG))
        return right == FLAG and n_before % 2 == 1
    if left in (BINDER, REPH):
        return not right.isspace()
    if left == JOINER and right == PICTURE:
        return True
    if right not in _WORD:
        return False
    first = place - 1
    while first > max(0, place - REACH) and _KINDS[ord(text[first])] in (MARK, JOINER):
        first -= 1
    return _KINDS[ord(text[first])] == VIRAMA


_BINDING = frozenset(MARKS + BINDER + REPH + FLAG)


def divides_word(text: str, place: int) -> bool:
    """True if a word, or a grapheme cluster, continues across a place of a text: no word may begin or end there."""
    if not 0 < place < len(text):
        return False
    right, left = _KINDS[ord(text[place])], _KINDS[ord(text[place - 1])]
    if right in _LETTERS_WITH_SPACES and left in _LETTERS_WITH_SPACES:
        return True
    if divides_cluster(text, place):
        return True
    if (right not in _WORD and right != LINK) or left not in _BEFORE:
        return False
    before, after, joined = place - 1, place, left in (JOINER, LINK) or right == LINK
    while before > max(0, place - REACH) and _KINDS[ord(text[before])] in _SKIPPED:
        before -= 1
    while after < min(len(text) - 1, place + REACH) and _KINDS[ord(text[after])] in _SKIPPED:
        after += 1
    right, left = _KINDS[ord(text[after])], _KINDS[ord(text[before])]
    if right in _LETTERS_WITH_SPACES and left in _LETTERS_WITH_SPACES:
        return True
    return (joined or (left == right == DIGIT)) and left in _WORD and right in _WORD


_LETTERS_WITH_SPACES = frozenset(LETTER + REPH + DIGIT)
_SKIPPED = frozenset(MARKS + LINK)
_BEFORE = frozenset(_WORD + MARKS + LINK)


def joins(left: str, right: str) -> bool:
    """True if a word continues from the end of one text into the beginning of another; see ``divides_word``."""
    end = left[-REACH:]
    return divides_word(end + right[:REACH], len(end))


def ending(text: str) -> str:
    """Return a short text that ends as ``text`` does, as far as ``joins`` can tell: the same for many texts."""
    simple = text[-2 * REACH :].translate(_KINDS)
    tail = simple.rstrip(MARKS + LINK)
    if tail.endswith(FLAG):
        n_flags = len(tail) - len(tail.rstrip(FLAG))
        return FLAG * (2 - n_flags % 2) + simple[len(tail) :]
    last = tail[-1:] if tail[-1:] in _WORD + PICTURE else "."
    return last + simple[len(tail) :]


def clusters(text: str) -> list[tuple[int, int]]:
    """Return start and end of each grapheme cluster, which is one character to a reader; see ``divides_cluster``."""
    if not _SPECIAL.search(text) and "\r" not in text:
        return [(place, place + 1) for place in range(len(text))]
    edges = [place for place in range(len(text)) if not divides_cluster(text, place)]
    return list(zip(edges, [*edges[1:], len(text)], strict=True))


def cluster_start(text: str, place: int) -> int:
    """Return the last place at or before this one where a text may be cut."""
    while divides_cluster(text, place):
        place -= 1
    return place


def cluster_end(text: str, place: int) -> int:
    """Return the first place at or after this one where a text may be cut."""
    while divides_cluster(text, place):
        place += 1
    return place


def has_word(text: str, word: str) -> bool:
    """True if ``word`` (one word or several) stands in ``text`` by itself: "dog" in "a dog." but not in "dogma"."""
    return next(whole_places(text, word), None) is not None


def count_word(text: str, word: str) -> int:
    """Return how often ``word`` stands in ``text`` by itself."""
    return sum(1 for _ in whole_places(text, word))


def whole_places(text: str, word: str) -> Iterator[int]:
    """Yield each place where ``word`` stands in ``text`` by itself."""
    start = text.find(word)
    while start >= 0:
        if is_whole(text, start, start + len(word)):
            yield start
        start = text.find(word, start + 1)


def places_of(text: str, part: str) -> list[int]:
    """Return where a word or phrase starts in a text, overlaps left out."""
    places, start = [], text.find(part)
    while start >= 0:
        places.append(start)
        start = text.find(part, start + len(part))
    return places


def replace_word(text: str, word: str, new: str, most: int, fixed: Sequence[tuple[int, int]] = ()) -> str:
    """Return a text with ``new`` for the first ``most`` places where ``word`` stands in it by itself.

    Args:
        word: Not empty.
        fixed: Start and end of parts that stay as they are.
    """
    parts, end, start = list[str](), 0, text.find(word)
    while start >= 0 and len(parts) < 2 * most:
        stop = start + len(word)
        is_free = start >= end and not any(first < stop and start < last for first, last in fixed)
        if is_free and is_whole(text, start, stop):
            parts += [text[end:start], new]
            end = stop
        start = text.find(word, start + 1)
    return "".join([*parts, text[end:]])


def is_whole(text: str, start: int, end: int) -> bool:
    """True if no word continues across either end of ``text[start:end]``."""
    return not (divides_word(text, start) or divides_word(text, end))
