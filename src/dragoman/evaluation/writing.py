"""Writing of the references: whether there are spaces between words, and so what a metric counts as a word.

    writing_of("th", references).bleu_tokenizer    # "char"
    writing_of(None, references).note              # a sentence for the reader: the language is not known

The script of the references decides, not the language alone: Javanese is written with spaces in Latin letters, and
without in its own. Where the language is not known, Chinese characters without kana are Chinese.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any

import regex

from dragoman.languages.known import is_unspaced, known

_SCRIPTS = (
    "Thai", "Lao", "Khmer", "Myanmar", "Tibetan", "Han", "Hiragana", "Katakana", "Bopomofo", "Javanese", "Balinese",
    "Tai_Tham", "Tai_Le", "New_Tai_Lue", "Tai_Viet", "Ahom", "Yi", "Batak", "Buginese", "Makasar", "Nushu", "Tangut",
)  # fmt: skip
"""Scripts without spaces between words."""


def _character(pattern: str) -> Any:
    """Return the regular expression of one character."""
    return regex.compile(pattern)


_UNSPACED = _character("[" + "".join(rf"\p{{Script={name}}}" for name in _SCRIPTS) + "]")
_HAN = _character(r"\p{Script=Han}")
_KANA = _character(r"[\p{Script=Hiragana}\p{Script=Katakana}]")
_LETTER = _character(r"\p{L}")

SAMPLE = 200_000
"""Number of characters of the references that are looked at."""
HAN_SHARE = 0.05
"""Least share of the letters that are Chinese characters for sacreBLEU's way of splitting them."""
KANA_SHARE = 0.05
"""Least share of the letters that are kana for Japanese, which has several times as many; a Chinese name has a few."""


@dataclass(frozen=True)
class Writing:
    """Writing of a language, as metrics need it."""

    lang: str | None  # None: not known
    unspaced: bool = False  # True without spaces between words
    has_han: bool = False  # True if Chinese characters are part of it
    is_han: bool = False  # True if it is Chinese characters alone, without the kana of Japanese

    @property
    def bleu_tokenizer(self) -> str:
        """Tokenizer of sacreBLEU's BLEU.

        Chinese is split into characters except for Latin words (``zh``). All else without spaces, such as Japanese,
        Thai and Tibetan, is split into characters (``char``), as 13a would take a sentence for one word. With spaces,
        it is WMT's 13a.
        """
        if known(self.lang).code == "zh" or (not self.lang and self.is_han):
            return "zh"
        return "char" if self.unspaced else "13a"

    @property
    def note(self) -> str:
        """Sentence for the reader if the writing alone has decided; "" if the language is known."""
        if self.lang or not self.unspaced:
            return ""
        return "the target language is not known: BLEU and TER count characters, as the references have no spaces"


def writing_of(lang: str | None, refs: Sequence[str] | Sequence[Sequence[str]]) -> Writing:
    """Return the writing of references, one text for each line or several such lists, in a language.

    Args:
        lang: Code of their language; None: not known.
    """
    lines = chain.from_iterable([ref] if isinstance(ref, str) else ref for ref in refs)
    sample = "".join(islice(chain.from_iterable(lines), SAMPLE))
    if sample.isascii():
        return Writing(lang, is_unspaced(lang), known(lang).code in ("zh", "ja"))
    n_letters, n_unspaced = len(_LETTER.findall(sample)), len(_UNSPACED.findall(sample))
    n_han, n_kana = len(_HAN.findall(sample)), len(_KANA.findall(sample))
    unspaced = is_unspaced(lang) or n_unspaced > n_letters / 2
    is_han = unspaced and n_han > n_unspaced / 2 and n_kana < KANA_SHARE * n_letters
    return Writing(lang, unspaced, unspaced and n_han > HAN_SHARE * n_letters, is_han)


def split_characters(text: str) -> str:
    """Return text with a space around each character of a script without spaces."""
    return " ".join(_UNSPACED.sub(lambda match: f" {match[0]} ", text).split())
