"""What may be known of a language; a program that translates needs little, and each field may be left out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class NumberWords:
    """How a language writes numbers in words."""

    stems: str
    """Beginnings of the words of 0 to 12, cardinal and ordinal: 13 parts, and ``|`` between the words of one number."""
    half: str
    """Pattern of the word for half an hour."""
    spelled: Callable[[int], str] | None = None
    """Makes the pattern of any number from 13 to 999,999; None: only those of ``stems`` are known."""
    longer: str = ""
    """Pattern of a word behind a number that makes it another, longer number."""


def never(tail: str, piece: str) -> bool:
    """Return False: a sentence that has ended does not continue."""
    return False


@dataclass(frozen=True, kw_only=True)
class Language:
    """One language."""

    code: str
    """ISO 639-1 where there is one, else 639-3; see ``codes.primary``."""
    name: str
    """English name."""
    dialects: tuple[str, ...] = ()
    """Further codes for which the same holds, such as ``yue`` for Chinese."""
    scripts: tuple[str, ...] = ()
    """Scripts that it is written in, by the names of ``scripts.SCRIPTS``; empty: taken from the text."""
    spaces: bool = True
    """False if words stand side by side, without spaces."""
    letters: str = ""
    """Characters, as in a regular expression's brackets, that show this language (of several, the most spoken)."""
    stop_words: str = ""
    """Frequent words that tell it from other languages; a word that two languages have is ignored."""
    no_abbreviations: str = ""
    """Pattern of words that the sentence splitter takes for abbreviations, but that may end a sentence."""
    continues: Callable[[str, str], bool] = never
    """True if the next piece (second argument) continues the sentence whose last characters are the first argument."""
    numbers: NumberWords | None = None
    """Numbers in words; None: not known."""
    family: str = ""
    """Languages of the same family are so similar that a sentence may be the same in both."""
