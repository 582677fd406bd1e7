"""Units of text, the tags inside them, and how a translation is written with its tags at their places.

Tags are never shown to the model. They keep their number and their order, hence their nesting, and every byte. An
element encloses the translations of the words that it enclosed, by the word alignment, or by position where there is
none. A cut (the end of a subtitle, a line break) stands as far into the translation as it stands into the text.
"""

from __future__ import annotations

import html
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Union

from dragoman.decoding.alignment import word_spans
from dragoman.translation.assemble import Translation
from dragoman.translation.keeping.protected import find, without_spans

Part = Union[str, "Unit"]
"""Source as it stands, or text to translate."""


@dataclass(frozen=True)
class Tag:
    """What stands inside a text and is none."""

    place: int  # before which character of the text
    parts: tuple[Part, ...]  # its source; units where it holds text of its own, as a footnote does
    kind: Literal["open", "close", "point"] = "point"
    name: str = ""  # opening and closing tags of one element have the same
    share: float | None = None  # of a cut: how far into the translation, from 0 to 1


def escape(text: str) -> str:
    """Text as it stands between the tags of HTML and XML."""
    return html.escape(text, quote=False)


@dataclass
class Unit:
    """A stretch of text that is translated in one piece, and the tags inside it."""

    text: str = ""  # entities resolved, white space as it is
    tags: list[Tag] = field(default_factory=list)
    raw: list[Part] = field(default_factory=list)  # what is written where it is not translated
    escape: Callable[[str], str] = escape
    styles: Sequence[tuple[str, str]] = (("", ""),)  # what is written around text: first the usual one
    styled: list[tuple[int, int, int]] = field(default_factory=list)  # from, to, and an index of ``styles``

    @property
    def plain(self) -> str:
        """What the model is given: one line, white space as single spaces."""
        return " ".join(self.text.split())


@dataclass(frozen=True)
class Translations:
    """What became of units, by their plain text."""

    of: Mapping[str, Translation]
    src_unspaced: bool = False
    tgt_unspaced: bool = False


def says_something(text: str) -> bool:
    """Is there a word in it, beside numbers, addresses and placeholders? What has none stays as it is."""
    return any(character.isalpha() for character in without_spans(text, find(text)))


def units_of(parts: Sequence[Part]) -> Iterator[Unit]:
    """Every unit in its order, those inside tags too."""
    for part in parts:
        if isinstance(part, Unit):
            yield part
            for tag in part.tags:
                yield from units_of(tag.parts)


def write(parts: Sequence[Part], found: Translations) -> str:
    """Parts with their units translated; a unit without a translation is written as it stood."""
    out = []
    for part in parts:
        if isinstance(part, str):
            out.append(part)
        elif part.plain in found.of:
            out.append(_translated(part, found.of[part.plain], found))
        else:
            out.append(write(part.raw, found))
    return "".join(out)


def _translated(unit: Unit, translation: Translation, found: Translations) -> str:
    """The translation of a unit with its tags and styles."""
    partners = _partners(unit, translation, found)
    styles = _styles(unit, translation.text, partners, found)
    out: list[str] = []
    text, style = "", 0

    def flush() -> None:
        nonlocal text
        if text:
            before, after = unit.styles[style]
            out.append(before + unit.escape(text) + after)
        text = ""

    for piece in _sequence(unit, translation.text, partners, found):
        if isinstance(piece, Tag):
            flush()
            out.append(write(piece.parts, found))
        elif isinstance(piece, str):
            text += piece
        else:
            for i in piece:
                if styles[i] != style:
                    flush()
                    style = styles[i]
                text += translation.text[i]
    flush()
    return "".join(out)


def _sequence(unit: Unit, text: str, partners: dict[int, list[int]], found: Translations) -> list[str | range | Tag]:
    """What is written, in its order: characters of the translation, tags, and the white space around the unit."""
    last = len(unit.text)
    head = unit.text[: last - len(unit.text.lstrip())]
    tail = unit.text[len(unit.text.rstrip()) :]
    out: list[str | range | Tag] = []
    at, headed = 0, False

    def ends_in_space() -> bool:
        """Does it, or is there nothing?"""
        piece = out[-1] if out else ""
        if isinstance(piece, Tag):
            return False
        return len(piece) == 0 or (piece if isinstance(piece, str) else text[piece[-1]])[-1].isspace()

    for place, tag in zip(_places(unit, text, partners, found), unit.tags, strict=True):
        place = max(place, at)  # their order is kept, and with it their nesting
        if not headed and (tag.place > 0 or place > 0):
            out.append(head)
            headed = True
        piece = _trimmed(text, at, place, out[-1] if out else "", tag)
        at = place
        out.append(piece)
        if tag.share is not None:
            out.append(tag)
            continue
        if place == len(text) and tag.place == last and tail:
            out.append(tail)
            tail = ""
        alone = tag.kind == "point"
        if alone and unit.text[tag.place - 1 : tag.place].isspace() and not ends_in_space():
            out.append(" ")
        out.append(tag)
        if alone and unit.text[tag.place : tag.place + 1].isspace() and text[at : at + 1].strip() and headed:
            out.append(" ")
    rest = _trimmed(text, at, len(text), out[-1] if out else "", None)
    return [*out, rest, tail] if headed else [*out, head, rest, tail]


def _trimmed(text: str, start: int, end: int, before: str | range | Tag, after: Tag | None) -> range:
    """From ``start`` to ``end`` without the spaces beside a cut."""
    if isinstance(before, Tag) and before.share is not None:
        start = min(end, start + len(text[start:end]) - len(text[start:end].lstrip()))
    if after is not None and after.share is not None:
        end = max(start, start + len(text[start:end].rstrip()))
    return range(start, end)


def _partners(unit: Unit, translation: Translation, found: Translations) -> dict[int, list[int]]:
    """For each word of a unit the words of its translation; by position where there is no alignment."""
    partners: dict[int, list[int]] = {}
    for src, tgt in translation.alignment or ():
        partners.setdefault(src, []).append(tgt)
    if not partners and (unit.tags or unit.styled):
        n_src = len(word_spans(unit.text, found.src_unspaced))
        n_tgt = len(word_spans(translation.text, found.tgt_unspaced))
        partners = {i: [min(n_tgt - 1, i * n_tgt // n_src)] for i in range(n_src) if n_tgt}
    return partners


def _styles(unit: Unit, text: str, partners: dict[int, list[int]], found: Translations) -> list[int]:
    """The style of each character of a translation: that of the word that it translates."""
    if not unit.styled:
        return [0] * len(text)
    of_source = [0] * len(unit.text)
    for start, end, style in unit.styled:
        of_source[start:end] = [style] * (end - start)
    sources: dict[int, tuple[int, int]] = {}
    for number, span in enumerate(word_spans(unit.text, found.src_unspaced)):
        for tgt in partners.get(number, ()):
            sources.setdefault(tgt, span)
    styles: list[int | None] = [None] * len(text)
    for number, (start, end) in enumerate(word_spans(text, found.tgt_unspaced)):
        if number not in sources:
            continue
        first, last = sources[number]
        core = next((i for i in range(first, last) if unit.text[i].isalnum()), first)
        styles[start:end] = [of_source[core]] * (end - start)
        for i in range(start, end):  # signs around a word have the style of those in the source
            if text[i].isalnum():
                break
            styles[i] = of_source[first]
        for i in range(end - 1, start, -1):
            if text[i].isalnum():
                break
            styles[i] = of_source[last - 1]
    return _filled(styles)


def _filled(styles: Sequence[int | None]) -> list[int]:
    """Where a style is not known it is that of both sides, or else the usual one."""
    before, after = list(styles), list(styles)
    for i in range(1, len(styles)):
        before[i] = before[i - 1] if before[i] is None else before[i]
    for i in range(len(styles) - 2, -1, -1):
        after[i] = after[i + 1] if after[i] is None else after[i]
    return [one or 0 if one == other else 0 for one, other in zip(before, after, strict=True)]


def _places(unit: Unit, text: str, partners: dict[int, list[int]], found: Translations) -> list[int]:
    """Where in the translation each tag of a unit belongs, by its characters."""
    if not unit.tags:
        return []
    words = word_spans(unit.text, found.src_unspaced)
    target = word_spans(text, found.tgt_unspaced)
    ends = [end for _, end in words]
    places = [_of_point(tag.place, unit.text, words, ends, text, target, partners) for tag in unit.tags]
    for first, last in _elements(unit.tags):
        start, end = unit.tags[first].place, unit.tags[last].place
        inside = range(bisect_right(ends, start), bisect_left(words, (end, 0)))
        partner = [tgt for i in inside for tgt in partners.get(i, ())]
        if partner and start < end:
            places[first] = _inward(unit.text, start, text, target[min(partner)][0], 1)
            places[last] = _inward(unit.text, end, text, target[max(partner)][1], -1)
    code = [(span.start, span.end) for span in find(text) if span.kind == "code"]  # which is not cut in two
    places = [_outside(place, code) for place in places]
    return _with_cuts(places, unit.tags, text, found.tgt_unspaced, code)


def _outside(place: int, code: Sequence[tuple[int, int]]) -> int:
    """The place, or the end of the code that it is in."""
    i = bisect_left(code, (place, 0)) - 1
    return code[i][1] if i >= 0 and place < code[i][1] else place


def _of_point(
    place: int, src: str, words: Sequence[tuple[int, int]], ends: Sequence[int], text: str,
    target: Sequence[tuple[int, int]], partners: dict[int, list[int]],
) -> int:  # fmt: skip
    """The place of a tag that encloses nothing: where the word that it is attached to went, else the word after it."""
    if not words or place <= words[0][0]:
        return 0
    for i in range(bisect_left(ends, place), len(words)):
        begin, end = words[i]
        if begin < place <= end and partners.get(i):
            return _inward(src, place, text, target[max(partners[i])][1], -1)
        if begin >= place and partners.get(i):
            return target[min(partners[i])][0]
    return len(text)


def _elements(tags: Sequence[Tag]) -> list[tuple[int, int]]:
    """The indices of each opening tag and the tag that closes it; from the innermost out."""
    found, open_tags, n_open = [], [], Counter[str]()
    for i, tag in enumerate(tags):
        if tag.kind == "open":
            open_tags.append((tag.name, i))
            n_open[tag.name] += 1
        elif tag.kind == "close" and n_open[tag.name]:
            while open_tags:
                name, first = open_tags.pop()
                n_open[name] -= 1
                if name == tag.name:
                    found.append((first, i))
                    break
    return found


def _inward(src: str, place: int, text: str, wanted: int, step: int) -> int:
    """Past punctuation that the tag leaves outside in the source: ``<b>Hi</b>!`` becomes ``<b>Hallo</b>!``."""
    beside = src[place - 1 : place] if step > 0 else src[place : place + 1]
    if not beside or beside.isspace() or beside.isalnum():
        return wanted
    while 0 < wanted < len(text) + (step < 0) and not (text[wanted] if step > 0 else text[wanted - 1]).isalnum():
        wanted += step
    return wanted


REACH = 40
"""Characters that a cut may move for the sake of a pause."""

_PAUSES = frozenset(",;:.!?…，、；：。！？")


def _with_cuts(
    places: list[int], tags: Sequence[Tag], text: str, unspaced: bool, whole: Sequence[tuple[int, int]]
) -> list[int]:
    """The places with those of cuts, each between two words, best after punctuation; tags stay on their side."""
    if all(tag.share is None for tag in tags):
        return places
    edges = [i for i in range(1, len(text)) if (text[i - 1].isspace() or (unspaced and not text[i].isspace()))]
    edges = [edge for edge in edges if _outside(edge, whole) == edge]
    before = 0
    for i, tag in enumerate(tags):
        if tag.share is None:
            continue
        wanted, slack = tag.share * len(text), min(REACH, len(text) / 12)
        near = bisect_left(edges, wanted)
        first = max(bisect_right(edges, before), bisect_left(edges, wanted - slack) - 1, 0)
        last = max(first + 1, bisect_right(edges, wanted + slack) + 1, near + 1)
        before = min(
            edges[first:last], default=len(text),
            key=lambda edge: abs(edge - wanted) - (slack if _PAUSES & set(text[max(0, edge - 2) : edge]) else 0),
        )  # fmt: skip
        places[i] = before
    limit = len(text)
    for i in range(len(tags) - 1, -1, -1):
        if tags[i].share is None:
            places[i] = min(places[i], limit)
        else:
            limit = places[i]
    return places
