"""Splits text into sentences, which joined are the text again.

``sentencex`` (https://github.com/wikimedia/sentencex, rules and abbreviations of some hundred languages; those of
English for any other) finds the ends. This module corrects it: a list number, a lone bracket, half of an ordinal or
half of an address is no sentence, and none ends within brackets or behind a title. The marks of all scripts
(``sentence_ends``) end one, whether sentencex knows them or not, and whatever follows.

Thai and Lao have no mark for the end of a sentence. Their spaces stand between phrases too, so none ends a sentence.
"""

from __future__ import annotations

import re
from functools import cache
from itertools import accumulate, pairwise
from typing import Any

from dragoman.languages.known import known
from dragoman.languages.language import Language
from dragoman.languages.sentence_ends import BRACKETS, COMMAS, SPEECH_CLOSERS, UNSPACED_ENDS, is_closing

_SURROGATE = re.compile("[\ud800-\udfff]")
_ITEM = re.compile(
    r"(?:^|[:;：；，、])[^\w:;：；，、]*+(?:\d++|[IVXLC]++|[ivxlc]++|[^\W\d_])[.)．）]\s*+$"
)  # "1. ", "II. ", "a) ", "步骤：1."; also "M. "
_CLOSED = re.compile(
    r"\s*+[(\[][^()\[\]]*+(?<=[.!?…])[)\]]\s++(?=\S)"
)  # a sentence within brackets, and what comes after it
_VOLUME = re.compile(
    r"\b(?:(?:vol|ch|chap|sect?|eq|ca|approx|bd|abs|kap|pp?|arts?|fig|tab|nr|núm|čl|стр|ст|т|"
    r"abb|aufl|tel|pág|pagg?|kl|n[°º]|aprox|rys|obr|рис|табл|гл|корп|кв|ص)\.\s+(?:[A-Z]\.\s+)?|"
    r"articles?\s+[A-Z]\.\s+)$",
    re.IGNORECASE,
)  # "vol. ", "art. L. "
_LABEL = re.compile(r"\d|[IVXLC]{2,}\b|[IVXLC](?=[,;)]\s(?:[^\W\d_]{1,4}\.|§|\d))|[A-Z]\.\s*(?:\d|$)|§")
"""Number of a volume or an article: 3, II, L. 123."""
_CITED = re.compile(r"(?:vol|ch|chap|sec|arts?|no|pp?)\.\s(?=\d|[IVXLC]+\b)")  # behind "U.S. Const. "
_SHORTENED = re.compile(r"(?:\d|\.[^\W\d_]+|\b[^\W\d_]|\b[b-df-hj-np-tv-xzčřšž]{2,4})\.\s+$")
"""A number, letter or abbreviation that ends no sentence before a small letter: 17. mai, f.eks. mange."""
WINDOW = 4096
"""Number of characters that ``sentencex`` gets at a time."""

TAIL = 80  # last characters of a sentence, which tell if the next piece continues it
_UNSPACED_ENDS = frozenset(UNSPACED_ENDS + "｢｣」』…")
_AS_SENTENCEX_KNOWS = str.maketrans(
    {**dict.fromkeys(set(UNSPACED_ENDS) - set("！？。"), "。"), **dict.fromkeys(COMMAS, "，")}
)
"""For each mark that sentencex may not know one that it knows, and that ends a sentence in every language."""

_SMALL_OR_DIGIT = re.compile(
    rf"[{re.escape(UNSPACED_ENDS.translate({0xFF0E: None, 0xFE52: None}))}][」』”’»]*+[0-9a-z]"
)
"""What sentencex takes for the rest of a sentence: 好！3, 好。iPhone; but ．is a mark of numbers and addresses too."""
_BRACKET = re.compile(rf"[{re.escape(BRACKETS)}]|\n\s*\n")  # a paragraph ends all pairs
_OPENERS_OF = {closer: opener for opener, closer in zip(BRACKETS[::2], BRACKETS[1::2], strict=True)}
_FIRST_WORDS = re.compile(r"\W*+(\w++)(?:\W++(\w))?")
_DOUBLE_WORDSPACE = "\u1361\u1361"  # typed for the full stop of Ethiopic


def sentences(text: str, lang: str | None) -> list[str]:
    """Return the sentences of ``text``, each with the spaces after it: joined they are ``text`` again.

    Args:
        text: Any text; ``""`` has no sentence.
        lang: Language of the text; None: not known.
    """
    language = known(lang)
    ends: list[int] = []  # end of each sentence so far
    start = end = 0
    has_letters = False  # True if the last sentence has letters
    for piece in _pieces(text, language):
        if ends and not _continues(text[max(start, end - TAIL) : end], has_letters, piece, language):
            start, has_letters = end, False
            ends.append(end)
        elif not ends:
            ends.append(end)
        end += len(piece)
        ends[-1] = end
        has_letters = has_letters or _has_letter(piece)
    # a text may end in a piece such as "3.", which belongs to the sentence before it
    if len(ends) > 1 and not has_letters:
        del ends[-2]
    return [text[begin:stop] for begin, stop in pairwise([0, *ends])]


def _pieces(text: str, language: Language) -> list[str]:
    """Return the pieces that sentencex finds; a sentence in brackets is a piece of its own."""
    pieces: list[str] = []
    lengths = _lengths(text, language.code or "en")
    for start, end in pairwise([0, *_outside_brackets(text, [*accumulate(lengths)], language.spaces)]):
        piece, length = text[start:end], end - start
        closed = _CLOSED.match(piece)
        ends = [0, *([] if closed is None else [closed.end()]), *_ends_of_words(piece, language), length]
        pieces += [piece[begin:stop] for begin, stop in pairwise(sorted(set(ends)))]
    return pieces


def _outside_brackets(text: str, ends: list[int], spaces: bool) -> list[int]:
    """Return the ends of sentences, behind the marks that close a quotation, and none within a pair of brackets.

    Args:
        spaces: The language puts spaces between words: what touches the marks, such as a Korean particle, goes on.
    """
    if text.isascii():  # its brackets sentencex knows
        return ends
    pairs = _pairs(text)
    outside = [0]
    i = 0
    for end in ends:
        while i < len(pairs) and pairs[i][1] < end:
            i += 1
        behind = _behind_closing(text, end)
        if i < len(pairs) and pairs[i][0] < end:
            close = pairs[i][1]
            is_spaced = behind < len(text) and text[behind - 1].isspace() and not text[behind].islower()
            # 『好。』他说; but a remark in other brackets is part of what follows, as in 【注意！】请勿触摸
            if behind <= close or not (
                (text[close] in SPEECH_CLOSERS and not spaces) or is_spaced or behind == len(text)
            ):
                continue
        if behind > outside[-1]:
            outside.append(behind)
    return outside[1:]


def _pairs(text: str) -> list[tuple[int, int]]:
    """Return the places of the outermost pairs of brackets, in order."""
    opened: dict[str, list[int]] = {}
    pairs: list[tuple[int, int]] = []
    for match in _BRACKET.finditer(text):
        mark, place = match[0], match.start()
        if mark not in _OPENERS_OF:
            if len(mark) == 1:
                opened.setdefault(mark, []).append(place)
            else:
                opened = {}
        elif opened.get(_OPENERS_OF[mark]):
            start = opened[_OPENERS_OF[mark]].pop()
            while pairs and pairs[-1][1] > start:
                start = min(start, pairs.pop()[0])
            pairs.append((start, place))
    return pairs


def _behind_closing(text: str, end: int) -> int:
    """Return the place behind the closing marks that follow the end of a sentence, and behind their spaces."""
    stop = end
    while stop < len(text) and is_closing(text[stop]):
        stop += 1
    # » behind a space closes only before a space: it opens in "Er ging. »Ja.«"
    if stop == end or (text[end - 1].isspace() and stop < len(text) and not text[stop].isspace()):
        return end
    while stop < len(text) and text[stop].isspace():
        stop += 1
    return stop


def _lengths(text: str, code: str) -> list[int]:
    """Return the lengths of the pieces that sentencex finds.

    Its time grows with the square of a text, so it gets ``WINDOW`` characters at a time: up to the last end that it
    finds in them, from which the next window begins. A piece of half a window or more goes on in the next.
    """
    shown = _as_sentencex_knows(text)
    lengths: list[int] = []
    start, continues = 0, False
    while start < len(shown):
        window = shown[start : start + WINDOW]
        cut = _segmenter().segment(code, window)
        # no text may be lost, whatever sentencex does
        if "".join(cut) != window:
            cut = [window]
        is_last = start + WINDOW >= len(shown)
        has_end = len(cut) > 1 and len(cut[-1]) < WINDOW // 2
        if has_end and not is_last:
            cut.pop()
        for i, length in enumerate(map(len, cut)):
            if continues and i == 0:
                lengths[-1] += length
            else:
                lengths.append(length)
            start += length
        continues = not has_end
    return lengths


def _as_sentencex_knows(text: str) -> str:
    """Return a text of the same length, with marks that sentencex knows and without unpaired surrogates."""
    if text.isascii():
        return text
    shown = _SMALL_OR_DIGIT.sub(lambda match: match[0][:-1] + "A", _SURROGATE.sub("\ufffd", text))
    return shown.replace(_DOUBLE_WORDSPACE, "。。").translate(_AS_SENTENCEX_KNOWS)


def _ends_of_words(piece: str, language: Language) -> list[int]:
    """Return the places in a piece where a sentence ends in a word that sentencex takes for an abbreviation."""
    ends = _ends_of(language.no_abbreviations, piece)
    ends += [end for end in _ends_of(language.may_end, piece) if _begins_sentence(piece[end:], language)]
    return [end for end in sorted(ends) if piece[end].isupper() and not _LABEL.match(piece, end)]


def _ends_of(words: str, piece: str) -> list[int]:
    """Return the places behind each of some words (a pattern), its full stop and its space."""
    if not words:
        return []
    return [word.end() for word in re.finditer(rf"(?<![^\W\d])(?:{words})[.]\s+(?=[^\W\d_])", piece)]


def _begins_sentence(text: str, language: Language) -> bool:
    """True if the first word of a text begins sentences, and is no name."""
    first = _FIRST_WORDS.match(text)
    return first is not None and first[1].lower() in _openers(language)


@cache
def _openers(language: Language) -> frozenset[str]:
    return frozenset(f"{language.stop_words} {language.articles} {language.openers}".split())


@cache
def _segmenter() -> Any:
    import sentencex  # imported here, so that commands without sentences start faster

    return sentencex


def _continues(tail: str, has_letters: bool, piece: str, language: Language) -> bool:
    """True if ``piece`` belongs to the sentence before it.

    Args:
        tail: Last characters of that sentence.
        has_letters: True if that sentence has letters.
    """
    if not _has_letter(piece) and not any(map(str.isdigit, piece)):  # a bracket, dots, a smile
        return True
    if not has_letters or _ITEM.search(tail) or _CITED.match(piece):
        return True
    if _LABEL.match(piece) and _VOLUME.search(tail):
        return True
    if piece[0].islower() and _SHORTENED.search(tail):
        return True
    if tail[-2:-1].isdigit() and piece[0].isdigit():  # a number in full width
        return True
    if not tail[-1].isspace() and not _UNSPACED_ENDS & set(tail[-3:]):  # an address, a file name
        return True
    return _is_name_after_title(tail, piece, language) or language.continues(tail, piece)


def _is_name_after_title(tail: str, piece: str, language: Language) -> bool:
    """True if the sentence so far ends in a title, and ``piece`` does not begin like a sentence."""
    if not language.titles:
        return False
    if not re.search(rf"(?<![^\s(\[/«„“‘'’\"¿¡–-])(?:{language.titles})[.]\s+$", tail):
        return False
    first = _FIRST_WORDS.match(piece)
    if first is None or first[1][0].islower() or first[1][0].isdigit():
        return True
    if first[1].lower() not in _openers(language):
        return True
    # articles begin names too: Mme. Le Pen; not in German, where the next word may be any noun
    return language.code != "de" and first[2] is not None and first[2].isupper()


def _has_letter(text: str) -> bool:
    return any(character.isalpha() for character in text)
