"""Units of text with the tags inside them, and writing a translation with its tags in the right places.

The model never sees tags. They keep their number, order (hence nesting) and bytes. An element encloses the translations
of the words that it encloses in the source, by the word alignment; without an alignment, by relative position. A cut
(the end of a subtitle, a line break) stands at the same fraction of the translation as of the source text.
"""

from __future__ import annotations

import html
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Union

from dragoman.decoding.words import Links, word_spans
from dragoman.documents.spaces import SPECIAL, with_spaces
from dragoman.languages.sentence_ends import ENDS
from dragoman.languages.words import clusters, core, is_word_character, word_places
from dragoman.translation.keeping.protected import find

Part = Union[str, "Unit"]
"""Source that is written unchanged, or a unit of text to translate."""

WordSpan = tuple[int, int]
"""First character of a word, and the one after its last."""


@dataclass(frozen=True)
class Tag:
    """Markup inside a unit: a tag, a placeholder, or the cut between two lines or cues."""

    place: int  # number of characters of the unit's text before it
    parts: tuple[Part, ...]  # its source, with units for text of its own, such as a footnote
    kind: Literal["open", "close", "point"] = "point"
    name: str = ""  # the opening and the closing tag of an element share it
    share: float | None = None  # for a cut: fraction of the translation before it, 0 to 1


def escape(text: str) -> str:
    """Return text with ``&``, ``<`` and ``>`` escaped, as HTML and XML need it between tags."""
    return html.escape(text, quote=False)


@dataclass
class Unit:
    """A stretch of text that is translated in one piece, and the markup inside it."""

    text: str = ""  # entities resolved, white space as in the source
    tags: list[Tag] = field(default_factory=list)
    raw: list[Part] = field(default_factory=list)  # source to write if there is no translation
    escape: Callable[[str], str] = escape
    styles: Sequence[tuple[str, str]] = (("", ""),)  # source before and after text in each style; the usual style first
    styled: list[tuple[int, int, int]] = field(default_factory=list)  # start, end and index into ``styles``

    @property
    def plain(self) -> str:
        """Text as the model reads it: one line, with single spaces."""
        return " ".join(self.text.split())


@dataclass(frozen=True)
class AlignedText:
    """Translation of a unit, and its word alignment if it is known."""

    text: str
    alignment: Links | None = None


@dataclass(frozen=True)
class Translations:
    """Translations of a document's units, and whether each language is written without spaces between words."""

    by_text: Mapping[str, AlignedText]  # keyed by ``Unit.plain``
    src_unspaced: bool = False
    tgt_unspaced: bool = False


def units_of(parts: Sequence[Part]) -> Iterator[Unit]:
    """Yield every unit in document order, those inside tags too."""
    for part in parts:
        if isinstance(part, Unit):
            yield part
            for tag in part.tags:
                yield from units_of(tag.parts)


def write(parts: Sequence[Part], translations: Translations) -> str:
    """Return the parts as text, with each unit translated; a unit without a translation keeps its source."""
    written = []
    for part in parts:
        if isinstance(part, str):
            written.append(part)
        elif part.plain in translations.by_text:
            written.append(_translated(part, translations.by_text[part.plain], translations))
        else:
            written.append(write(part.raw, translations))
    return "".join(written)


@dataclass(frozen=True)
class _WordLinks:
    """Words of a unit and of its translation, and which of them translate each other."""

    text: str  # of the translation
    src_words: Sequence[WordSpan]
    tgt_words: Sequence[WordSpan]
    targets: Mapping[int, Sequence[int]]  # for the number of a source word: numbers of target words
    tgt_unspaced: bool


def _word_links(unit: Unit, translation: AlignedText, translations: Translations) -> _WordLinks:
    """Return the links of the word alignment; without one, words are linked by their relative position."""
    text, unspaced = translation.text, translations.tgt_unspaced
    has_spaces = translation.alignment is not None and SPECIAL.search(unit.text) is not None
    if not (unit.tags or unit.styled or has_spaces):  # nothing needs a place
        return _WordLinks(text, (), (), {}, unspaced)
    src_words = word_spans(unit.text, translations.src_unspaced)
    tgt_words = word_spans(text, unspaced)
    targets: dict[int, list[int]] = {}
    for src, tgt in translation.alignment or ():
        targets.setdefault(src, []).append(tgt)
    if has_spaces:
        text = with_spaces(unit.text, text, src_words, tgt_words, targets)
    if not targets and tgt_words:
        n_src, n_tgt = len(src_words), len(tgt_words)
        targets = {i: [min(n_tgt - 1, i * n_tgt // n_src)] for i in range(n_src)}
    return _WordLinks(text, src_words, tgt_words, targets, unspaced)


def _translated(unit: Unit, translation: AlignedText, translations: Translations) -> str:
    """Return the translation of a unit with its tags and styles."""
    links = _word_links(unit, translation, translations)
    styles = _styles(unit, links)
    written: list[str] = []
    run, style = "", 0  # characters in the same style that are not written yet

    def flush() -> None:
        nonlocal run
        if run:
            before, after = unit.styles[style]
            written.append(before + unit.escape(run) + after)
        run = ""

    for piece in _sequence(unit, links):
        if isinstance(piece, Tag):
            flush()
            written.append(write(piece.parts, translations))
        elif isinstance(piece, str):
            run += piece
        else:
            for i in piece:
                if styles[i] != style:
                    flush()
                    style = styles[i]
                run += links.text[i]
    flush()
    return "".join(written)


def _sequence(unit: Unit, links: _WordLinks) -> list[str | range | Tag]:
    """Return the pieces to write, in order: tags, ranges of the translation's characters, and white space.

    The white space is that around the unit's text, and spaces that set a placeholder off from a word.
    """
    text, end = links.text, len(unit.text)
    leading = unit.text[: end - len(unit.text.lstrip())]
    trailing = unit.text[len(unit.text.rstrip()) :]
    pieces: list[str | range | Tag] = []
    at, leading_written = 0, False

    def ends_in_space() -> bool:
        """True if the last piece ends in white space or is empty; nothing written counts as a space."""
        piece = pieces[-1] if pieces else ""
        if isinstance(piece, Tag):
            return False
        return len(piece) == 0 or (piece if isinstance(piece, str) else text[piece[-1]])[-1].isspace()

    for place, tag in zip(_places(unit, links), unit.tags, strict=True):
        place = max(place, at)  # keeps the order of the tags, and with it their nesting
        if not leading_written and (tag.place > 0 or place > 0):
            pieces.append(leading)
            leading_written = True
        pieces.append(_trimmed(text, range(at, place), pieces[-1] if pieces else "", tag))
        at = place
        if tag.share is not None:
            pieces.append(tag)
            continue
        if place == len(text) and tag.place == end and trailing:
            pieces.append(trailing)
            trailing = ""
        is_point = tag.kind == "point"
        if is_point and unit.text[tag.place - 1 : tag.place].isspace() and not ends_in_space():
            pieces.append(" ")
        pieces.append(tag)
        if (
            is_point
            and unit.text[tag.place : tag.place + 1].isspace()
            and text[at : at + 1].strip()
            and leading_written
        ):
            pieces.append(" ")
    last = _trimmed(text, range(at, len(text)), pieces[-1] if pieces else "", None)
    return [*pieces, last, trailing] if leading_written else [*pieces, leading, last, trailing]


def _trimmed(text: str, span: range, before: str | range | Tag, after: Tag | None) -> range:
    """Return the span of ``text`` without the spaces next to a cut, where a line ends anyway."""
    start, end = span.start, span.stop
    if isinstance(before, Tag) and before.share is not None:
        start = min(end, start + len(text[start:end]) - len(text[start:end].lstrip()))
    if after is not None and after.share is not None:
        end = max(start, start + len(text[start:end].rstrip()))
    return range(start, end)


def _styles(unit: Unit, links: _WordLinks) -> list[int]:
    """Return the style of each character of a translation: the style of the source word that it translates."""
    n_chars = len(links.text)
    if not unit.styled:
        return [0] * n_chars
    src_styles = [0] * len(unit.text)
    for start, end, style in unit.styled:
        src_styles[start:end] = [style] * (end - start)
    sources: dict[int, WordSpan] = {}  # number of a target word: span of the first source word it is linked to
    for number, span in enumerate(links.src_words):
        for tgt in links.targets.get(number, ()):
            sources.setdefault(tgt, span)
    styles: list[int | None] = [None] * n_chars
    for number, (start, end) in enumerate(links.tgt_words):
        if number not in sources:
            continue
        first, last = sources[number]
        word, _ = core(unit.text, first, last)
        styles[start:end] = [src_styles[word]] * (end - start)
        # Punctuation around the word takes the style of the punctuation around the source word.
        word_start, word_end = core(links.text, start, end)
        if word_start == word_end:  # punctuation alone
            word_start = word_end = start + 1
        for i in range(start, word_start):
            styles[i] = src_styles[first]
        for i in range(word_end, end):
            styles[i] = src_styles[last - 1]
    return _filled(styles)


def _filled(styles: Sequence[int | None]) -> list[int]:
    """Replace each unknown style (None) by the style on both its sides, or by the usual one (0) if these differ."""
    before, after = list(styles), list(styles)
    for i in range(1, len(styles)):
        before[i] = before[i - 1] if before[i] is None else before[i]
    for i in range(len(styles) - 2, -1, -1):
        after[i] = after[i + 1] if after[i] is None else after[i]
    return [left or 0 if left == right else 0 for left, right in zip(before, after, strict=True)]


def _places(unit: Unit, links: _WordLinks) -> list[int]:
    """Return for each tag of a unit the character of the translation that it stands before."""
    if not unit.tags:
        return []
    text, src_words, tgt_words = links.text, links.src_words, links.tgt_words
    linked = [i for i in range(len(src_words)) if links.targets.get(i)]
    linked_ends = [src_words[i][1] for i in linked]
    letters = word_places(text)
    places = [_point_place(tag.place, unit.text, (linked, linked_ends, letters), links) for tag in unit.tags]
    # An element encloses the translations of the words that it encloses in the source, from the first to the last.
    first_target = _range_minimum([min(links.targets[i]) for i in linked])
    last_target = _range_minimum([-max(links.targets[i]) for i in linked])
    starts = [src_words[i][0] for i in linked]
    for first, last in _elements(unit.tags):
        start, end = unit.tags[first].place, unit.tags[last].place
        inside = bisect_right(linked_ends, start), bisect_left(starts, end)
        if inside[0] < inside[1] and start < end:
            opening, closing = tgt_words[first_target(*inside)][0], tgt_words[-last_target(*inside)][1]
            places[first] = _past_punctuation(unit.text[start - 1 : start], letters, len(text), opening, 1)
            places[last] = _past_punctuation(unit.text[end : end + 1], letters, len(text), closing, -1)
    code = [(span.start, span.end) for span in find(text) if span.kind == "code"]  # a tag must not stand inside code
    places = [_outside(place, code) for place in places]
    return _with_cuts(places, unit.tags, text, links.tgt_unspaced, code)


def _outside(place: int, spans: Sequence[WordSpan]) -> int:
    """Return the place, or the end of the span that it lies in."""
    i = bisect_left(spans, (place, 0)) - 1
    return spans[i][1] if i >= 0 and place < spans[i][1] else place


def _range_minimum(values: Sequence[int]) -> Callable[[int, int], int]:
    """Return a function that gives the least of the values ``start`` to ``end - 1``, however many they are."""
    levels = [list(values)]  # at level k, the least of 2 ** k values from each on
    while (width := 1 << (len(levels) - 1)) * 2 <= len(values):
        levels.append([*map(min, levels[-1], levels[-1][width:])])

    def least(start: int, end: int) -> int:
        level = (end - start).bit_length() - 1
        return min(levels[level][start], levels[level][end - (1 << level)])

    return least


def _point_place(place: int, src: str, known: tuple[Sequence[int], ...], links: _WordLinks) -> int:
    """Return the place of a tag that encloses nothing: after the word it follows directly, else before the next word.

    Args:
        place: Its place in the source text ``src``.
        known: Source words that have a link, their ends, and the places of letters in the translation.
    """
    words, (linked, ends, letters) = links.src_words, known
    if not words or place <= words[0][0]:
        return 0
    next_linked = bisect_left(ends, place)
    if next_linked == len(linked):
        return len(links.text)
    targets = links.targets[linked[next_linked]]
    if words[linked[next_linked]][0] < place:
        behind, end = src[place : place + 1], links.tgt_words[max(targets)][1]
        return _past_punctuation(behind, letters, len(links.text), end, -1)
    return links.tgt_words[min(targets)][0]


def _elements(tags: Sequence[Tag]) -> list[tuple[int, int]]:
    """Return the indices of each opening tag and of the tag that closes it, the innermost elements first."""
    elements, open_tags, n_open = [], [], Counter[str]()
    for i, tag in enumerate(tags):
        if tag.kind == "open":
            open_tags.append((tag.name, i))
            n_open[tag.name] += 1
        elif tag.kind == "close" and n_open[tag.name]:
            while open_tags:
                name, first = open_tags.pop()
                n_open[name] -= 1
                if name == tag.name:
                    elements.append((first, i))
                    break
    return elements


def _past_punctuation(neighbour: str, letters: Sequence[int], size: int, place: int, step: int) -> int:
    """Move a place past punctuation that stands outside the tag in the source: ``<b>Hi</b>!``, ``<b>Hallo</b>!``.

    Args:
        neighbour: Character outside the tag in the source: before an opening tag, behind a closing one; "" at an end.
        letters: Places of letters and digits in the translation, which has ``size`` characters.
        place: Place of the tag in the translation.
        step: 1 for an opening tag, which moves right; -1 for a closing tag, which moves left.
    """
    if not neighbour or neighbour.isspace() or is_word_character(neighbour):
        return place
    if not 0 < place < size + (step < 0):
        return place
    i = bisect_left(letters, place)
    if step > 0:
        return letters[i] if i < len(letters) else size
    return letters[i - 1] + 1 if i else 0


REACH = 40
"""Number of characters that a cut may move to fall on a pause."""

_PAUSES = frozenset(ENDS + ",;:…，、；：")


def _with_cuts(
    places: list[int], tags: Sequence[Tag], text: str, unspaced: bool, code: Sequence[WordSpan]
) -> list[int]:
    """Return the places with those of the cuts set: between two words, if possible after punctuation.

    Each other tag stays on its side of every cut. ``code`` holds spans of ``text`` that no cut may divide.
    """
    if all(tag.share is None for tag in tags):
        return places
    if unspaced:
        edges = [start for start, _ in clusters(text)[1:] if not text[start].isspace() or text[start - 1].isspace()]
    else:
        edges = [i for i in range(1, len(text)) if text[i - 1].isspace()]
    edges = [edge for edge in edges if _outside(edge, code) == edge]
    previous = 0
    for i, tag in enumerate(tags):
        if tag.share is None:
            continue
        # Among the edges near the cut's share of the text take the nearest; a pause counts as ``slack`` nearer.
        wanted, slack = tag.share * len(text), min(REACH, len(text) / 12)
        near = bisect_left(edges, wanted)
        first = max(bisect_right(edges, previous), bisect_left(edges, wanted - slack) - 1, 0)
        last = max(first + 1, bisect_right(edges, wanted + slack) + 1, near + 1)
        previous = min(
            edges[first:last], default=len(text),
            key=lambda edge: abs(edge - wanted) - (slack if _PAUSES & set(text[max(0, edge - 2) : edge]) else 0),
        )  # fmt: skip
        places[i] = previous
    limit = len(text)
    for i in range(len(tags) - 1, -1, -1):
        if tags[i].share is None:
            places[i] = min(places[i], limit)
        else:
            limit = places[i]
    return places
