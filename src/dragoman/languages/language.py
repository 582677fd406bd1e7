"""Facts about a language: its name, scripts, number words and sentence rules. All but code and name may be left out."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import groupby


@dataclass(frozen=True, kw_only=True)
class NumberWords:
    """Number words of a language, as regular expressions."""

    stems: str
    """Beginnings of the words for 0 to 12, cardinal and ordinal: 13 parts, spaces between, alternatives by ``|``."""
    spelled: Callable[[int], str] | None = None
    """Function from a number (from 13, below ``limit``) to its pattern; None: only the words of ``stems`` are known."""
    limit: int = 1_000_000
    """Least number that ``spelled`` cannot write."""
    longer: str = ""
    """Pattern of a word after a number that makes it part of a longer number, such as "hundred"."""


@dataclass(frozen=True, kw_only=True)
class Clock:
    """Words of a language for times of day.

    In the patterns, H is an hour in digits or in words, and a space is any space. Each has the minutes from its hour to
    its time: -30 for "halb H", which is 2:30 if H is three.
    """

    signs: str
    """Parts of words, in small letters: a text without any of them has no time of ``spoken`` or ``perhaps``."""
    hours: str = ""
    """Beginnings of the words for 1 to 12 or 24, spaces between, alternatives by ``|``; "": only digits."""
    ending: str = ""
    """Pattern of an ending that such a beginning may have."""
    spoken: tuple[tuple[int, str], ...]
    """Patterns with a word for half, a quarter, or minutes."""
    perhaps: tuple[tuple[int, str], ...] = ()
    """Patterns of what may as well be a length of time or a number: "trois heures et demie" without "à".

    Such a time is compared, but never reported.
    """
    full: str = ""
    """Pattern of a full hour; "": not known."""


def beside_half(
    half: str, before: str, after: str, minutes: str, words: tuple[str, str]
) -> tuple[tuple[int, str], ...]:
    """Return the patterns of five and ten minutes before and after half to an hour: "fünf vor halb drei" is 2:25.

    Args:
        minutes: Pattern of the word for minutes, which may be left out.
        words: Patterns of five and ten.
    """
    return tuple(
        (sign * n - 30, f"(?:{word}|{n})(?: {minutes})? {where} {half} H")
        for n, word in zip((5, 10), words, strict=True)
        for sign, where in ((-1, before), (1, after))
    )


def not_after(words: Iterable[str], edge: str = "", gap: str = " ") -> str:
    """Return the pattern of a place before which none of some words stands; a lookbehind has words of one length alone.

    Args:
        edge: Pattern of the place before a word, which takes no character; empty: nor may another word end so.
        gap: Pattern of the one character behind a word.
    """
    by_length = groupby(sorted(words, key=len), len)
    return "".join(f"(?<!{edge}(?:{'|'.join(same)}){gap})" for _, same in by_length)


def never(tail: str, piece: str) -> bool:
    """Return False: a sentence that has ended does not continue."""
    return False


@dataclass(frozen=True, kw_only=True)
class Language:
    """Facts about one language; an unknown fact has its default."""

    code: str
    """ISO 639-1 where there is one, else 639-3; see ``codes.primary``."""
    name: str
    """English name."""
    dialects: tuple[str, ...] = ()
    """Further codes with the same facts, such as ``yue`` for Chinese."""
    scripts: tuple[str, ...] = ()
    """Scripts of the language, named as in ``scripts.SCRIPTS``; empty: taken from the text."""
    spaces: bool = True
    """False if the language puts no spaces between words."""
    letters: str = ""
    """Characters that identify this language, as in a regular expression's brackets; shared ones: the most spoken."""
    stop_words: str = ""
    """Frequent words that tell this language from others; a word of two languages is ignored."""
    articles: str = ""
    """Articles, in lower case, with spaces between; "" for a language without, or where they are not known."""
    no_abbreviations: str = ""
    """Pattern of words that may end a sentence, although the sentence splitter takes them for abbreviations."""
    may_end: str = ""
    """Pattern of abbreviations that end a sentence before a word that begins one, as after "1990 г." and "EE. UU."."""
    titles: str = ""
    """Pattern of abbreviations before a name, which the sentence splitter does not know: ``Mme`` in "Mme. Durand"."""
    openers: str = ""
    """Words besides stop words and articles that begin a sentence, never a name after an abbreviation."""
    continues: Callable[[str, str], bool] = never
    """True if the next piece (second argument) continues the sentence whose last characters are the first argument."""
    numbers: NumberWords | None = None
    """Number words; None: not known."""
    clock: Clock | None = None
    """Words for times of day; None: not known."""
    family: str = ""
    """Name of a group of languages so similar that a sentence may be the same in two of them."""
