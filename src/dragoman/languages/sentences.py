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

from dragoman.languages.codes import primary

_SURROGATE = re.compile("[\ud800-\udfff]")
_ITEM = re.compile(r"(?:^|[:;])\W*(?:\d+|[IVXLC]+|[ivxlc]+|[^\W\d_])[.)]\s*$")  # "1. ", "II. ", "a) "; also "M. "
_CLOSED = re.compile(r"\s*[(\[][^()\[\]]*[.!?…][)\]]\s+(?=\S)")  # a sentence within brackets, and what comes after it
_ORDINAL = re.compile(r"\b(?:im|am|vom|zu[mr]|beim|d(?:er|ie|as|en|em|es)|[smd]ein\w*) \d+\.\s+$", re.IGNORECASE)
_VOLUME = re.compile(r"\b(?:vol|ch|chap|sect?|eq|ca|approx|bd|abs|kap)\.\s+$", re.IGNORECASE)
TAIL = 80  # characters of a sentence that tell whether it goes on: it may be as long as a line
_WORDS = {
    "cs": "kol|hod",
    "de": "[Mm]ich|mag|Bart|Art|OK",
    "en": "art|[Mm]e|OK|[Nn]o|ill|[Mm]ay|ID|sec|miss|fed|op|LA",
    "fr": "art|vol|sec",
}
"""Words that sentencex takes for abbreviations; a capital after them begins a sentence all the same."""
_UNSPACED_ENDS = frozenset("。！？｡｢｣」』…။។।")


def sentences(text: str, lang: str | None) -> list[str]:
    """The sentences of ``text``, each with the spaces that follow it: joined they are ``text`` again.

    Args:
        text: Any text; one without an end of a sentence is one sentence, and ``""`` has none.
        lang: Its language; None: not known.
    """
    lang = primary(lang)
    ends: list[int] = []  # where each sentence found so far ends
    begun = end = 0
    spoken = False  # are there letters in the last one?
    for piece in _pieces(text, lang or "en"):
        if ends and not _continues(text[max(begun, end - TAIL) : end], spoken, piece, lang):
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


def _pieces(text: str, lang: str) -> list[str]:
    """What sentencex makes of it, and sentences in brackets by themselves."""
    shown = _SURROGATE.sub("\ufffd", text)  # half a character cannot be handed over
    cut = _segmenter().segment(lang, shown)
    if "".join(cut) != shown:  # it promises to lose nothing, and a translation must not hang on that
        return [text]
    pieces, start = [], 0
    for length in map(len, cut):
        piece = text[start : start + length]
        closed = _CLOSED.match(piece)
        ends = [0, *([] if closed is None else [closed.end()]), *_ends_of_words(piece, lang), length]
        pieces += [piece[one:other] for one, other in pairwise(sorted(set(ends)))]
        start += length
    return pieces


def _ends_of_words(piece: str, lang: str) -> list[int]:
    """Where sentences end within a piece because a word is none of the abbreviations."""
    if lang not in _WORDS:
        return []
    found = re.finditer(rf"\b(?:{_WORDS[lang]})[.]\s+(?=[^\W\d_])", piece)
    return [match.end() for match in found if piece[match.end()].isupper()]


@cache
def _segmenter() -> Any:
    import sentencex  # here, so that a command that cuts nothing does not wait for it

    return sentencex


def _continues(tail: str, spoken: bool, piece: str, lang: str) -> bool:
    """Does ``piece`` belong to the sentence before it, of which ``tail`` is the end, and which may have letters?"""
    if not _has_letter(piece) and not any(map(str.isdigit, piece)):  # a bracket, dots, a smile
        return True
    if not spoken or _ITEM.search(tail) or (_VOLUME.search(tail) and piece[0].isdigit()):
        return True
    if not tail[-1].isspace() and not _UNSPACED_ENDS & set(tail[-3:]):  # an address, a file name
        return True
    if lang == "ja" and tail.rstrip()[-1:] in "」』" and piece.startswith(("と", "って")):  # so he said
        return True
    return lang == "de" and _ORDINAL.search(tail) is not None


def _has_letter(text: str) -> bool:
    return any(character.isalpha() for character in text)
