"""Cuts spans out of a text, and puts them back into its translation with correct spaces.

Word alignment tells the gap between two words of the translation that corresponds to the gap in the source ("detag and
project" for markup, https://aclanthology.org/2020.wmt-1.138). If a span touched a unit or a mark in the source and the
same is at its new place, it touches it again; a tag touches any word. Otherwise spaces separate it from words, but none
comes after an opening bracket or quotation mark, or before a closing one or a full stop. The spaces around a straight
quotation mark tell if it opens or closes. Nothing here needs a model.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise
from math import ceil

from dragoman.decoding.words import Links, word_spans
from dragoman.languages.words import MARKS, divides_word, in_word, is_unspaced_at, joins, kinds
from dragoman.translation.keeping.places import closed_places, ends_without_spaces, of_one_word, open_place
from dragoman.translation.keeping.protected import Span

_PAIRS = {
    "(": ")", "[": "]", "{": "}", '"': '"', "'": "'", "“": '”"', "„": '“”"', "‘": "’", "‚": "‘’", "«": "»", "»": "«",
    "‹": "›", "›": "‹", "「": "」", "『": "』", "《": "》", "〈": "〉", "【": "】", "（": "）", "［": "］",
}  # fmt: skip
_BRACKETS = "([{「『《〈【（［"
_OPENING = "([{¿¡„‚「『《〈【（［"
_CLOSING = ".,;:!?…)]}。，、；：！？」』》〉】）］"
_EITHER = "\"'“”‘’«»‹›"  # open or close, depending on spaces and language
_ANY_MARK = frozenset(_OPENING + _CLOSING + _EITHER)
_BEFORE_WORD = re.compile(rf"[{re.escape(_OPENING + _EITHER)}]*")
_BEHIND_NUMBER = re.compile(r"[.)]\s")
_HYPHENED = re.compile(r"-(?=[^\W\d_])")
_BEFORE_HYPHEN = re.compile(rf"(?=.*[^\W\d_])(?:[\w{MARKS}]++-)+")  # "mid-" of "mid-1990s", "2-for-" of "2-for-1"
_AND_HYPHEN = re.compile(rf"[^\W\d_](?:[^\W\d_]|[{MARKS}])*+-\w")  # "th-c" in "18th-century"
_BETWEEN_BLOCKS = re.compile(r"</?(?:br|p|div|li|[uod]l|d[td]|t[dhr]|h[1-6]|hr|option)\b", re.IGNORECASE)
_LINE_END = re.compile(r"(?:\\[nrt])+")  # as strings of programs write it
_LONGEST = 100
"""Most characters of a hyphenated word on each side of its number."""

_OPENS, _CLOSES = "(", ")"  # results of ``_touching`` for any mark that opens, or closes


@dataclass(frozen=True)
class Cut:
    """A part that was cut out of a text: spans, the marks between them, and the brackets right around them."""

    text: str
    kind: str
    place: int  # its place, in characters of the text without it
    before: str  # text that it touched, as from ``_touching``
    after: str  # the same; "-year" for a number that a hyphen joins to a word


def without(text: str, spans: Sequence[Span]) -> tuple[str, list[Cut]]:
    """Return ``text`` without ``spans`` (in order) and the spaces and brackets they leave, and the parts cut out."""
    bare, cuts, last = "", [], 0
    for start, end, kind in _parts(text, spans):
        while last < start and text[start - 1] in _PAIRS and text[end : end + 1] in [*_PAIRS[text[start - 1]]]:
            start, end = start - 1, end + 1
        end += _n_closing(text, start, end)
        bare += text[last:start]
        # the mark belongs to the number in "1. Go." and in '5"'
        if (not bare.strip() and _BEHIND_NUMBER.match(text, end)) or (kind == "number" and _is_unit(text, end)):
            end += 1
        last, before = end, _touching(text, start, -1)
        after = "" if text[end - 1].isspace() else _touching(text, end, 1)  # the mark of a list has its space
        if kind == "number" and _HYPHENED.match(text, end):  # "year-old" of "21-year-old" stays
            last, after = end + 1, "-" + _touching(text, end + 1, 1)
        follows = text[last : last + 1]
        # only one of the two spaces around the part stays
        if not bare.strip():
            bare, last = "", len(text) - len(text[last:].lstrip())
        elif bare[-1].isspace() and (not follows or follows.isspace() or _touching(text, last, 1) == _CLOSES):
            bare = bare[:-1]
        elif before == _OPENS and follows.isspace():
            last += 1
        elif _parts_words(kind, text, start, end, bare):
            bare += " "
        cuts.append(Cut(text[start:end], kind, len(bare.rstrip()), before, after))
    return (bare + text[last:]).rstrip(), cuts


def _parts_words(kind: str, text: str, start: int, end: int, before: str) -> bool:
    """True if the words that touch a part on both sides are two: at a tag such as ``<br>``, or at a line's end."""
    if kind == "markup":
        return joins(before, text[end : end + REACH]) and _BETWEEN_BLOCKS.match(text, start) is not None
    return bool(text[end : end + 1].strip()) and _LINE_END.fullmatch(text, start, end) is not None


def _n_closing(text: str, start: int, end: int) -> int:
    """Return how many brackets right after a part close those that it opens: that of "(175°C" in "350°F (175°C)."."""
    opened: list[str] = []
    for character in text[start:end]:
        if character in _BRACKETS:
            opened.append(_PAIRS[character])
        elif opened and character == opened[-1]:
            opened.pop()
    n = 0
    while opened and text[end + n : end + n + 1] == opened.pop():
        n += 1
    return n


def _parts(text: str, spans: Sequence[Span]) -> Iterator[tuple[int, int, str]]:
    """Yield start, end and kind of each part: spans with only marks between ("4, 12, 17"); tags only if they touch."""
    start, end, kind = 0, 0, ""
    for span in spans:
        first, last = _whole_word(text, span) if span.kind == "number" else (span.start, span.end)
        if kind:
            between = text[end:first]
            marks_only = "markup" not in (kind, span.kind) and not any(map(str.isalnum, between))
            if kind == "list mark" or (between and not marks_only):
                yield start, end, kind
                kind = ""
        start, end, kind = start if kind else first, last, span.kind
    if kind:
        yield start, end, kind


def _whole_word(text: str, number: Span) -> tuple[int, int]:
    """Return start and end of a number, or of its hyphenated word if that is no word without the number.

    Such words are "mid-1990s", "post-2008" and "18th-century", but not "21-year-old".
    """
    start, end = number.start, number.end
    while start > number.start - _LONGEST and _in_hyphened(text[start - 1 : start]):
        start -= 1
    while end < number.end + _LONGEST and _in_hyphened(text[end : end + 1]):
        end += 1
    end -= len(text[:end]) - len(text[:end].rstrip("-"))
    before, after = kinds(text[start : number.start]), kinds(text[number.end : end])
    is_one = _BEFORE_HYPHEN.fullmatch(before) or _AND_HYPHEN.match(after)
    return (start, end) if is_one else (number.start, number.end)


def _in_hyphened(character: str) -> bool:
    return character == "-" or in_word(character)


def _is_unit(text: str, end: int) -> bool:
    """True if the mark after a number means inches, feet or minutes, and does not close a quotation."""
    mark = text[end : end + 1]
    if mark not in ('"', "'") or in_word(text[end + 1 : end + 2]):
        return mark in ("″", "′")
    opened, closed = _quotation_marks(text, mark)
    return bisect_left(opened, end) <= bisect_left(closed, end)


@lru_cache(maxsize=4)  # a text is asked about for each of its numbers
def _quotation_marks(text: str, mark: str) -> tuple[list[int], list[int]]:
    """Return the places where a straight mark opens a quotation in a text, and those where one closes it."""
    opened = re.finditer(rf"(?<![^\s(\[]){mark}(?=\S)", text)
    closed = re.finditer(rf"(?<=\S){mark}(?!\w)", text)
    return [match.start() for match in opened], [match.start() for match in closed]


def _touching(text: str, place: int, step: int) -> str:
    """Return the word or mark right before a place of a text (``step`` -1) or right after it (1).

    Returns:
        A word or a mark; "(" for any mark that opens, ")" for any that closes; "" at a space or an end of the text.
    """
    first = place - 1 if step < 0 else place
    if not 0 <= first < len(text) or text[first].isspace():
        return ""
    mark, at = text[first], first
    if in_word(mark):
        while 0 <= at < len(text) and in_word(text[at]):
            at += step
        return text[at + 1 : place] if step < 0 else text[place:at]
    if mark in _EITHER:
        while 0 <= at < len(text) and text[at] in _ANY_MARK:
            at += step
        beyond = text[at] if 0 <= at < len(text) else ""
        if beyond and is_unspaced_at(text, at):  # no spaces in this script: the form of the mark tells
            mark = _OPENS if mark in "“‘«‹" else _CLOSES if mark in "”’»›" else mark
        else:  # it opens before a word, and closes after one
            opens = (not beyond or beyond.isspace()) == (step < 0)
            mark = _OPENS if opens else _CLOSES
    elif mark in _OPENING:
        mark = _OPENS
    elif mark in _CLOSING:
        mark = _CLOSES
    return text[first] if mark == _CLOSES and step < 0 else mark


def put_back(
    src: str, cuts: Sequence[Cut], tgt: str, links: Links, unspaced: tuple[bool, bool], first: int = 0,
    closed: Collection[int] = (),
) -> str:  # fmt: skip
    """Return the translation ``tgt`` of ``src`` with the parts that were cut out of ``src``.

    Args:
        links: Word alignment of both.
        unspaced: True if the source, and the target language, puts no spaces between words.
        first: Length of the translation's prefix: no part is put before its end.
        closed: Further places of the translation where nothing may be put in, beside ``closed_places``.
    """
    src_words, tgt_words = (word_spans(*pair) for pair in zip((src, tgt), unspaced, strict=True))
    source, target = _Text(src, src_words), _Text(tgt, tgt_words)
    gaps, places, parts = [], [], []
    starts = [start for start, _ in src_words]
    letters = [*(i for i, character in enumerate(src) if character.isalnum()), len(src)]
    closed = closed_places(tgt).union(closed, of_one_word(tgt, tgt_words, links))
    nearest = _Gaps(links, len(src_words), len(tgt_words))
    for cut in cuts:
        before = bisect_left(starts, cut.place)  # number of source words before the part
        inside = before > 0 and cut.place < src_words[before - 1][1]
        next_letter = letters[bisect_left(letters, cut.place)]
        # if only marks that open the word stand before the part, it is before this word
        if cut.before == _OPENS and inside and next_letter < src_words[before - 1][1]:
            before -= 1
        following = nearest.first_target(before) if _is_of_next(cut, unspaced[0]) else None
        gap = nearest.gap(before) if following is None else following
        gaps.append(gap)
        same = _inside_same(source, cut.place, target, gap) if inside else None
        if same is not None:
            places.append(same)
        else:
            place_in = _place_between_characters if unspaced[1] else _place
            place = place_in(src, cut, target, gap, following is not None)
            places.append(open_place(place, closed, len(tgt)))
            # it was inside a word that the translation does not have
            if inside and joins(cut.before, cut.after):
                cut = replace(cut, before="", after="")
        parts.append(cut)
    for k in range(len(cuts) - 1, 0, -1):  # parts in the same gap keep their order
        if gaps[k - 1] == gaps[k]:
            places[k - 1] = min(places[k - 1], places[k])
    by_place: dict[int, list[Cut]] = {}
    for place, cut in zip(places, parts, strict=True):
        by_place.setdefault(_not_before(first, tgt, place), []).append(cut)
    for place in sorted(by_place, reverse=True):
        tgt = _set_in(tgt, place, by_place[place], unspaced)
    return tgt


def _is_of_next(cut: Cut, unspaced: bool) -> bool:
    """True if a part belongs to the next word, as a number does: it is put before the translation of that word."""
    return cut.kind == "number" and cut.after != _CLOSES and (unspaced or cut.before in ("", _OPENS))


REACH = 40
"""Number of source words on each side of a gap whose links decide on its place: those farther away weigh nothing."""


class _Gaps:
    """The gaps between the words of a translation that correspond to those of its source, by the word alignment."""

    def __init__(self, links: Links, n_src: int, n_tgt: int) -> None:
        self._links, self._n_src, self._n_tgt = sorted(links), n_src, n_tgt
        self._gaps: dict[int, int] = {}

    def first_target(self, src: int) -> int | None:
        """Return the first word of the translation that is linked to a source word; None if none is."""
        i = bisect_left(self._links, (src, 0))
        return self._links[i][1] if i < len(self._links) and self._links[i][0] == src else None

    def gap(self, before: int) -> int:
        """Return the number of translation words before the gap that corresponds to the gap after ``before`` words."""
        if before not in self._gaps:
            self._gaps[before] = self._best(before)
        return self._gaps[before]

    def _best(self, before: int) -> int:
        """Return the cheapest gap; of equal ones that nearest to the same fraction of the translation.

        A link from one side of the gap to the other costs more the nearer its source word is to the gap.
        """
        n_tgt, usual = self._n_tgt, before * self._n_tgt / max(1, self._n_src)
        near = self._links[
            bisect_left(self._links, (before - REACH, 0)) : bisect_left(self._links, (before + REACH, 0))
        ]
        changes: dict[int, float] = {}  # what a gap costs more than the gap before it
        cost = 0.0
        for src, tgt in near:
            weight = 0.5 ** (before - 1 - src if src < before else src - before)
            cost += weight if src < before else 0.0
            changes[tgt + 1] = changes.get(tgt + 1, 0.0) + (weight if src >= before else -weight)
        # between two changes all gaps cost the same
        edges = [0, *sorted(edge for edge in changes if edge <= n_tgt), n_tgt + 1]
        best: list[tuple[float, float, int]] = []
        for first, after in pairwise(edges):
            cost += changes.get(first, 0.0)
            place = min(max(ceil(usual - 0.5), first), after - 1)
            best.append((round(cost, 9), abs(place - usual), place))
        return min(best)[2]


@dataclass(frozen=True)
class _Text:
    """A text, with start and end of each of its words."""

    text: str
    words: Sequence[tuple[int, int]]


def _inside_same(src: _Text, place: int, tgt: _Text, gap: int) -> int | None:
    """Return the place inside the word before the gap if it was inside the same word, as "5" in "US$5m"; else None."""
    start, end = src.words[bisect_left(src.words, (place, 0)) - 1]
    tgt_start, tgt_end = tgt.words[gap - 1] if gap else (0, 0)
    return tgt_start + place - start if src.text[start:end] == tgt.text[tgt_start:tgt_end] else None


def _place(src: str, cut: Cut, tgt: _Text, gap: int, of_next: bool) -> int:
    """Return the place in a gap, in characters: after opening marks or among closing marks, as in ``src``.

    Args:
        of_next: True if the part belongs to the next word.
    """
    words = tgt.words
    if cut.before == _OPENS and gap < len(words):
        start, end = words[gap]
        opening = _BEFORE_WORD.match(tgt.text, start, end)
        if opening is not None and start < opening.end() < end:
            before = src[: cut.place]
            n_open = len(before) - len(before.rstrip(_OPENING + _EITHER))
            return min(opening.end(), start + n_open)
    if gap == 0:
        return 0
    start, end = words[gap - 1]
    closing = start + len(tgt.text[start:end].rstrip(_CLOSING + _EITHER))
    return end if of_next or closing == start else _among(tgt.text[closing:end], closing, src, cut)


def _place_between_characters(src: str, cut: Cut, tgt: _Text, gap: int, of_next: bool) -> int:
    """Return the place in a gap, in characters, in a language without spaces: each mark there is a word."""
    words = tgt.words
    if cut.before == _OPENS and gap < len(words):
        opening = re.compile(rf"[{re.escape(_OPENING)}“‘«‹]*").match(tgt.text, words[gap][0])
        return opening.end() if opening is not None else words[gap][0]
    end = words[gap - 1][1] if gap else 0
    closing = len(tgt.text[:end].rstrip(_CLOSING + "”’»›"))
    return end if of_next or closing == 0 else _among(tgt.text[closing:end], closing, src, cut)


def _among(marks: str, start: int, src: str, cut: Cut) -> int:
    """Return the place among closing marks of the translation: after the mark that is before the part in the source."""
    before = src[: cut.place].rstrip()[-1:]
    if cut.before == _OPENS or not before:
        return start
    alike = [k + 1 for k, mark in enumerate(marks) if mark == before or (mark in _EITHER and before in _EITHER)]
    at_the_end = before in _CLOSING and not src[cut.place :].strip()
    return start + (len(marks) if at_the_end else max(alike, default=0))


def _not_before(first: int, tgt: str, place: int) -> int:
    """Return ``place``, but at least the end of the word in which the prefix ends."""
    place = max(first, place)
    while place == first > 0 and divides_word(tgt, place):
        place = first = place + 1
    return place


def _set_in(tgt: str, place: int, cuts: Sequence[Cut], unspaced: tuple[bool, bool]) -> str:
    """Return the translation with parts put in at a place, with spaces around them."""
    left, right = tgt[:place].rstrip(), tgt[place:].lstrip()
    gap = tgt[len(left) : len(tgt) - len(right)] if left and right else ""
    parts: list[str | Cut] = [*filter(None, [left]), *cuts, *filter(None, [right])]
    text = ""
    for i, part in enumerate(parts):
        if i:
            text += _space(parts[i - 1], part, gap, unspaced)
        text += part if isinstance(part, str) else part.text
    return text


def _space(left_part: str | Cut, right_part: str | Cut, gap: str, unspaced: tuple[bool, bool]) -> str:
    """Return the text between two neighbours, at least one of which is put in: a space, a hyphen or nothing.

    Args:
        gap: White space at this place of the translation.
    """
    left, right = (part if isinstance(part, str) else part.text for part in (left_part, right_part))
    if left[-1:].isspace():  # of a list mark
        return ""
    if any(isinstance(part, Cut) and _LINE_END.fullmatch(part.text) for part in (left_part, right_part)):
        return ""
    before, after = _touching(left, len(left), -1), _touching(right, 0, 1)
    if (isinstance(left_part, str) and before == _OPENS) or (isinstance(right_part, str) and after == _CLOSES):
        return gap
    if isinstance(right_part, Cut) and _touches(right_part.kind, right_part.before, before, _OPENS, unspaced[0]):
        return ""
    if isinstance(left_part, Cut) and _touches(left_part.kind, left_part.after, after, _CLOSES, unspaced[0]):
        return ""
    if isinstance(left_part, Cut) and left_part.after == f"-{after}":
        return "-"
    if unspaced[1]:
        has_spaces = ends_without_spaces(left, False) or ends_without_spaces(right, True)
        return gap or (" " if has_spaces or joins(left, right) else "")
    return " " if isinstance(left_part, str) else gap or " "


def _touches(kind: str, in_src: str, in_tgt: str, holder: str, unspaced: bool) -> bool:
    """True if a part touches its neighbour as in the source.

    Args:
        in_src, in_tgt: Neighbour in the source and in the translation, as from ``_touching``.
        holder: Mark that a tag does not keep from the source: "(" before it, ")" after it.
    """
    like_a_tag = kind == "markup" or (kind in ("emoji", "sign", "list mark") and not unspaced)
    return bool(in_src) and (in_src == in_tgt or (like_a_tag and in_src != holder))
