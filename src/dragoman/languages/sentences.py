"""Where one sentence ends and the next begins: text cut into sentences, none of it lost.

``sentencex`` (https://github.com/wikimedia/sentencex, rules and abbreviations of some hundred languages; those of
English for any other) finds the ends. Here is what it leaves to mend: the number of a list item or a lone bracket is no
sentence of its own, and neither is half of an ordinal or of an address.
"""

from __future__ import annotations

import re
from functools import cache
from itertools import pairwise
from typing import Any

from dragoman.languages.known import known
from dragoman.languages.language import Language

_SURROGATE = re.compile("[\ud800-\udfff]")
_ITEM = re.compile(r"(?:^|[:;])\W*(?:\d+|[IVXLC]+|[ivxlc]+|[^\W\d_])[.)]\s*$")  # "1. ", "II. ", "a) "; also "M. "
_CLOSED = re.compile(r"\s*[(\[][^()\[\]]*[.!?…][)\]]\s+(?=\S)")  # a sentence within brackets, and what comes after it
_VOLUME = re.compile(r"\b(?:vol|ch|chap|sect?|eq|ca|approx|bd|abs|kap)\.\s+$", re.IGNORECASE)
TAIL = 80  # characters of a sentence that tell whether it goes on: it may be as long as a line
_UNSPACED_ENDS = frozenset("。！？｡｢｣」』…။។।")


def sentences(text: str, lang: str | None) -> list[str]:
    """The sentences of ``text``, each with the spaces that follow it: joined they are ``text`` again.

    Args:
        text: Any text; one without an end of a sentence is one sentence, and ``""`` has none.
        lang: Its language; None: not known.
    """
    language = known(lang)
    ends: list[int] = []  # where each sentence found so far ends
    begun = end = 0
    spoken = False  # are there letters in the last one?
    for piece in _pieces(text, language):
        if ends and not _continues(text[max(begun, end - TAIL) : end], spoken, piece, language):
            begun, spoken = end, False
            ends.append(end)
        elif not ends:
            ends.append(end)
        end += len(piece)
        ends[-1] = end
        spoken = spoken or _has_letter(piece)
    if len(ends) > 1 and not spoken:  # "3." at the end of a text
        del ends[-2]
    return [text[start:stop] for start, stop in pairwise([0, *ends])]


def _pieces(text: str, language: Language) -> list[str]:
    """What sentencex makes of it, and sentences in brackets by themselves."""
    shown = _SURROGATE.sub("\ufffd", text)  # half a character cannot be handed over
    cut = _segmenter().segment(language.code or "en", shown)
    if "".join(cut) != shown:  # it promises to lose nothing, and a translation must not hang on that
        return [text]
    pieces, start = [], 0
    for length in map(len, cut):
        piece = text[start : start + length]
        closed = _CLOSED.match(piece)
        ends = [0, *([] if closed is None else [closed.end()]), *_ends_of_words(piece, language), length]
        pieces += [piece[one:other] for one, other in pairwise(sorted(set(ends)))]
        start += length
    return pieces


def _ends_of_words(piece: str, language: Language) -> list[int]:
    """Return where sentences end within a piece because their last word is no abbreviation."""
    if not language.no_abbreviations:
        return []
    words = re.finditer(rf"\b(?:{language.no_abbreviations})[.]\s+(?=[^\W\d_])", piece)
    return [word.end() for word in words if piece[word.end()].isupper()]


@cache
def _segmenter() -> Any:
    import sentencex  # here, so that a command that cuts nothing does not wait for it

    return sentencex


def _continues(tail: str, spoken: bool, piece: str, language: Language) -> bool:
    """True if ``piece`` belongs to the sentence before it.

    Args:
        tail: The end of that sentence.
        spoken: True if that sentence has letters.
    """
    if not _has_letter(piece) and not any(map(str.isdigit, piece)):  # a bracket, dots, a smile
        return True
    if not spoken or _ITEM.search(tail) or (_VOLUME.search(tail) and piece[0].isdigit()):
        return True
    if not tail[-1].isspace() and not _UNSPACED_ENDS & set(tail[-3:]):  # an address, a file name
        return True
    return language.continues(tail, piece)


def _has_letter(text: str) -> bool:
    return any(character.isalpha() for character in text)
