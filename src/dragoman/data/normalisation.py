"""Normalisation of what the model reads: one table of rules, stored in the SentencePiece model by name.

    body = source_rule("standard")  # the NormalizerSpec of a source's subwords
    with_normaliser(proto, body)  # a model that carries it

Text that only looks different is the same for the model: white space of every kind is one space, none at the ends;
invisible characters are left out; letters and digits of full width are ASCII; characters are composed (NFC). The rules
are a map of SentencePiece, so that every program that reads the model applies them. A map replaces the longest match
at each place, which cannot put marks in order. Therefore ``composition.compose`` composes a text before.

A target must be learned as it is to be written. So its rules leave out each character that is a piece of its
vocabulary, such as the no-break space before a French question mark. What its vocabulary lacks is normalised, and is
never learned in bytes.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Collection
from functools import lru_cache
from itertools import permutations

import sentencepiece

from dragoman.data.sentencepiece_check import IDENTITY, bytes_field, fields, normalizer_name, number_field
from dragoman.languages.words import INVISIBLE

NORMALISATIONS = ("standard", "with_quotes", "none")
"""Values of ``data.tokenizer.normalisation``."""

_BEGINNING, _VERSION, _TARGET = "dragoman_", "_1", "_target"
_NORMALIZER = 3  # field of a ModelProto

SPACES = "\t\n\v\f\r\x1c\x1d\x1e\x1f\x85\u2028\u2029\u2581"
"""Read as a space on both sides. U+2581 is how SentencePiece writes a space."""
TYPOGRAPHIC_SPACES = "\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000"
"""Read as a space, unless a target was learned with them."""


def _characters(*ranges: tuple[int, int]) -> str:
    return "".join(chr(code) for first, last in ranges for code in range(first, last + 1))


TYPOGRAPHIC_INVISIBLE = "\u034f\u061c\u17b4\u17b5\u200b\u200e\u200f\u2060\u3164\uffa0" + _characters(
    (0x202A, 0x202E), (0x2061, 0x2064), (0x2066, 0x206F), (0xFE00, 0xFE0D), (0x1D173, 0x1D17A), (0xE0100, 0xE01EF)
)
"""Left out, unless a target was learned with them: zero-width spaces, direction marks, variation selectors and such.
The two selectors of emoji stay: an emoji with one is copied with it."""
JOINERS = "\u200c\u200d"
"""Left out before a letter of a script that joins nothing. Elsewhere they have a meaning: in Indic scripts, Persian,
emoji."""
_UNJOINED = _characters((0x21, 0x7E), (0xC0, 0x24F), (0x370, 0x52F), (0x1E00, 0x1FFF))  # Latin, Greek, Cyrillic
_WIDE_SIGNS = "＃＄％＆＊＋－／＜＝＞＠＼＾＿｀｜￠￡￥￦"
_PRESENTED = _characters((0xFB00, 0xFDFF), (0xFE70, 0xFEFC))  # ligatures and Arabic forms that PDF files hold
_HYPHENS = "\u2010\u2011"
QUOTES = {
    **dict.fromkeys("\u201c\u201d\u201e\u201f\u00ab\u00bb", '"'),
    **dict.fromkeys("\u2018\u2019\u201a\u201b\u2039\u203a", "'"),
    **dict.fromkeys("\u2012\u2013\u2014\u2015\u2212", "-"),
    "\u2026": "...",
}
"""Quotation marks, dashes and the ellipsis as they are typed, for ``with_quotes``."""


NO_RULES = bytes_field(1, IDENTITY.encode()) + number_field(3, 1) + number_field(4, 0) + number_field(5, 1)
"""The NormalizerSpec that changes nothing but puts a space before a text."""
_ALWAYS = frozenset(SPACES + INVISIBLE)


def source_rule(normalisation: str) -> bytes:
    """Return the NormalizerSpec of a source; empty for ``none``."""
    if normalisation == "none":
        return b""
    return _specification(_name(normalisation), tuple((_table(normalisation) | _compositions()).items()))


def target_rule(normalisation: str, pieces: Collection[str] | None) -> bytes:
    """Return the NormalizerSpec of a target; empty for ``none``.

    Args:
        pieces: Its vocabulary; None if it is not learned yet: then everything is left that a target may have.
    """
    if normalisation == "none":
        return b""
    table = _table(normalisation)
    kept = {text for text in table if text[0] not in _ALWAYS and (pieces is None or text[0] in pieces)}
    return _specification(
        _name(normalisation) + _TARGET, tuple((text, new) for text, new in table.items() if text not in kept)
    )


def replacements(normalisation: str) -> dict[str, str]:
    """Return what a source's rules replace in composed text, without spaces at its ends and in a row."""
    return {} if normalisation == "none" else dict(_table(normalisation))


def with_normaliser(proto: bytes, body: bytes) -> bytes:
    """Return a SentencePiece model with another NormalizerSpec; the same model if ``body`` is empty."""
    if not body:
        return proto
    messages = ((number, value) for number, _, value in fields(proto) if number != _NORMALIZER)
    others = (bytes_field(number, value) for number, value in messages if isinstance(value, bytes))
    return b"".join(others) + bytes_field(_NORMALIZER, body)


def normalisation_of(body: bytes) -> tuple[str, bool]:
    """Return the normalisation of a NormalizerSpec, and True if it is one of ours: then text is composed before.

    That of another program is returned by its name there, such as ``nmt_nfkc``.

    Raises:
        ValueError: It is one of ours that is not known here.
    """
    name = normalizer_name(body)
    if name == IDENTITY:
        return "none", False
    if not name.startswith(_BEGINNING):
        return name, False
    for normalisation in NORMALISATIONS:
        if name.removesuffix(_TARGET) == _name(normalisation):
            return normalisation, True
    raise ValueError(f"its normalisation {name!r} is not known to this dragoman: upgrade it")


def _name(normalisation: str) -> str:
    return f"{_BEGINNING}{normalisation}{_VERSION}"


@lru_cache(8)
def _specification(name: str, rules: tuple[tuple[str, str], ...]) -> bytes:
    """Return the NormalizerSpec that replaces texts, then collapses spaces and drops outer ones."""
    sentencepiece.set_min_log_level(2)  # else it tells the size of the map
    made = sentencepiece.SentencePieceNormalizer(
        norm_map=list(rules), add_dummy_prefix=True, escape_whitespaces=True, remove_extra_whitespaces=True
    )
    return bytes_field(1, name.encode()) + bytes(made.serialized_normalizer_spec())


@lru_cache
def _table(normalisation: str) -> dict[str, str]:
    """Return the rules, without canonical composition: each text that is replaced, and what stands for it."""
    table = dict.fromkeys(SPACES + TYPOGRAPHIC_SPACES, " ") | dict.fromkeys(INVISIBLE + TYPOGRAPHIC_INVISIBLE, "")
    table |= dict.fromkeys(_HYPHENS, "-")
    table |= {joiner + letter: letter for joiner in JOINERS for letter in _UNJOINED if letter.isalnum()}
    wide = [chr(code) for code in range(0xFF01, 0xFF5F) if chr(code).isalnum()]
    for character in (*wide, *_WIDE_SIGNS, *_PRESENTED):
        plain = unicodedata.normalize("NFKC", character)
        if plain != character and not any(letter.isspace() for letter in plain):
            table[character] = plain
    for character in _characters((0xFF61, 0xFF9F)):  # katakana of half width, with the marks that follow them
        for text in (character, character + "\uff9e", character + "\uff9f"):
            plain = unicodedata.normalize("NFKC", text)
            if len(plain) == 1:
                table[text] = plain
    return table | (QUOTES if normalisation == "with_quotes" else {})


@lru_cache
def _compositions() -> dict[str, str]:
    """Return the canonical forms: of letters with marks in every order, of Hangul, of double characters, of points."""
    table = {}
    for code in range(0x30000):  # further planes hold none
        character = chr(code)
        if not unicodedata.decomposition(character) or unicodedata.decomposition(character).startswith("<"):
            continue
        composed = unicodedata.normalize("NFC", character)
        if composed != character:
            table[character] = composed
            continue
        letters = unicodedata.normalize("NFD", character)
        for order in permutations(letters[1:]):
            for i in range(len(order)):
                text = unicodedata.normalize("NFC", letters[0] + "".join(order[:i])) + "".join(order[i:])
                if text != character and unicodedata.normalize("NFC", text) == character:
                    table[text] = character
    for code in range(0xAC00, 0xD7A4):  # Hangul: two or three letters, or a syllable of two and a letter
        syllable = chr(code)
        letters = unicodedata.normalize("NFD", syllable)
        table |= {letters: syllable, unicodedata.normalize("NFC", letters[:2]) + letters[2:]: syllable}
        table.pop(syllable, None)
    # vowel signs and dots of Hebrew, Arabic and Syriac, which are often typed in the other order
    points = [chr(code) for code in range(0x590, 0x8FF) if 10 <= unicodedata.combining(chr(code)) <= 36]
    for first in points:
        for second in points:
            if unicodedata.combining(first) > unicodedata.combining(second) and ord(first) >> 8 == ord(second) >> 8:
                table[first + second] = second + first
    return table
