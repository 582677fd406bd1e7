"""Units of text with the tags inside them, and writing a translation with its tags in the right places.

The model never sees tags. They keep their number, nesting and bytes. An element encloses the translations of the words
that it encloses in the source, by the word alignment; without an alignment, by relative position. Elements beside each
other may change places with their words. See ``tag_places``, and ``cuts`` for the ends of lines.
"""

from __future__ import annotations

import html
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, Union

from dragoman.decoding.words import Links, word_spans
from dragoman.documents.tags.pieces import Side, WordSpan, has_words, link
from dragoman.documents.tags.places import TagPlaces, tag_places
from dragoman.documents.tags.spaces import SPECIAL, with_spaces
from dragoman.documents.tags.tree import MOST_DEPTH
from dragoman.languages.words import core, divides_word, is_word_character

_TAG_LIKE = re.compile(r"<[^\W\d_]+(?: [^\W\d_]+)+>")


def is_like_a_tag(text: str) -> bool:
    """True for a text such as ``<no entries>``, which is protected as a tag is: it stays, and is named."""
    return _TAG_LIKE.fullmatch(text.strip()) is not None


Part = Union[str, "Unit"]
"""Source that is written unchanged, or a unit of text to translate."""


@dataclass(frozen=True)
class Tag:
    """Markup inside a unit: a tag, a placeholder, or the cut between two lines or cues."""

    place: int  # number of characters of the unit's text before it
    parts: tuple[Part, ...]  # its source, with units for text of its own, such as a footnote; see ``_with_elements``
    kind: Literal["open", "close", "point"] = "point"
    name: str = ""  # the opening and the closing tag of an element share it
    share: float | None = None  # for a cut: fraction of the translation before it, 0 to 1
    by_words: bool = False  # for a cut: stands where the alignment puts the words before it, and no tag crosses it


_IMPOSSIBLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff\ud800-\udfff]")


def possible(text: str) -> str:
    """Return text with U+FFFD for each character that XML cannot hold, not even as a reference."""
    return _IMPOSSIBLE.sub("\ufffd", text)


def escape(text: str) -> str:
    """Return text with ``&``, ``<`` and ``>`` escaped, as HTML and XML need it between tags; see ``possible``."""
    return html.escape(possible(text), quote=False)


@dataclass
class Unit:
    """A stretch of text that is translated in one piece, and the markup inside it."""

    text: str = ""  # entities resolved, white space as in the source
    tags: list[Tag] = field(default_factory=list)
    raw: list[Part] = field(default_factory=list)  # source to write if there is no translation
    escape: Callable[[str], str] = escape
    styles: Sequence[tuple[str, str]] = (("", ""),)  # source before and after text in each style; the usual style first
    styled: list[tuple[int, int, int]] = field(default_factory=list)  # start, end and index into ``styles``
    source: str = ""  # as the file has it, where ``text`` differs in more than tags and entities

    @property
    def plain(self) -> str:
        """Text as the model reads it: one line, with single spaces."""
        return " ".join(self.text.split())

    @property
    def shown(self) -> str:
        """Text as a reader of the file sees it, in one line: with code and other words that the model does not read."""
        if self.source or not self.tags:
            return " ".join((self.source or self.text).split())
        pieces, at = [], 0
        for tag in self.tags:
            pieces += [self.text[at : tag.place], _words_of(tag)]
            at = tag.place
        return " ".join("".join([*pieces, self.text[at:]]).split())


@dataclass(frozen=True)
class AlignedText:
    """Translation of a unit, and its word alignment if it is known."""

    text: str
    alignment: Links | None = None


@dataclass(frozen=True)
class _Placed:
    """The places of a unit's tags in one translation of it."""

    unit: Unit
    tags: Sequence[Tag]
    translation: AlignedText
    tgt: Side
    places: TagPlaces
    styles: Sequence[int]
    usual: Mapping[str, int]  # for each element that is a style alone, by its name, and for "", the others: its style


@dataclass(frozen=True)
class Translations:
    """Translations of a document's units, and whether each language is written without spaces between words."""

    by_text: Mapping[str, AlignedText]  # keyed by ``Unit.plain``
    src_unspaced: bool = False
    tgt_unspaced: bool = False
    placed: dict[int, _Placed] = field(default_factory=dict, compare=False, repr=False)
    """Where the tags of each unit stand: a document is written several times."""


_SHOWS_WORDS = re.compile(r"\w\s{0,20}</")
_JOINING = frozenset("-+/.:_\u2013")


def join_points(unit: Unit) -> None:
    """Join placeholders that show words where only a sign is between them, as in ``<kbd>Ctrl</kbd>+<kbd>C</kbd>``.

    The model would read the sign alone, and move it away.
    """
    tags: list[Tag] = []
    cut = 0
    for tag in unit.tags:
        tag = replace(tag, place=tag.place - cut)
        last = tags[-1] if tags else None
        sign = unit.text[last.place : tag.place] if last is not None else ""
        if last is not None and sign in _JOINING and _shows_words(last) and _shows_words(tag):
            tags[-1] = replace(last, parts=(*last.parts, sign, *tag.parts))
            unit.text = unit.text[: last.place] + unit.text[tag.place :]
            cut += len(sign)
        else:
            tags.append(tag)
    unit.tags = tags


_NOTE = re.compile(r"(?:\d{1,4}|[*\u2020\u2021\u00a7\u00b6]{1,3})(?:[,\u2013-](?:\d{1,4}|[*\u2020\u2021]))*")
_LONGEST_NOTE = 12
_LETTER_OF_NOTE = re.compile(rf"{_NOTE.pattern}|[abcd]")
_BEFORE_NOTE = frozenset(".,;:!?)]\"'\u201d\u2019\u00bb\u201c")


def is_note(before: str, text: str, after: str, is_raised: bool) -> bool:
    """True if an element shows no more than the mark of a note, or an exponent, behind a word.

    Args:
        before, after: Text on both sides, or its last and its first character.
        is_raised: Letters may be marks too.
    """
    marks = _LETTER_OF_NOTE if is_raised and before[-1:].isalpha() else _NOTE
    is_behind_word = before[-1:].isalpha() or before[-1:] in _BEFORE_NOTE
    return is_behind_word and not after[:1].isalnum() and marks.fullmatch(text) is not None


_MOST_AROUND = 4
"""Most elements around the mark of a note, such as those of ``<sup><a>3</a></sup>``."""


def join_notes(unit: Unit) -> None:
    """Make a placeholder of each element that holds no more than the mark of a note, or an exponent, behind a word.

    The model would read ``house<sup>2</sup>`` as one word, "house2", and lose the mark. H<sub>2</sub>O stays a word.
    """
    tags, text = unit.tags, unit.text
    joined: list[Tag] = []
    pieces: list[str] = []  # text, without the marks
    at = cut = i = 0
    while i < len(tags):
        start = tags[i].place
        n = 0
        while n < _MOST_AROUND and i + n < len(tags) and tags[i + n].kind == "open" and tags[i + n].place == start:
            n += 1
        opening, closing = tags[i : i + n], tags[i + n : i + 2 * n]
        end = closing[0].place if n and len(closing) == n else start
        is_raised = any(tag.name == "sup" for tag in opening)
        encloses = start < end <= start + _LONGEST_NOTE and all(
            (tag.kind, tag.place) == ("close", end) for tag in closing
        )
        if encloses and is_note(text[max(at, start - 1) : start], text[start:end], text[end : end + 1], is_raised):
            before, after = ([part for tag in side for part in tag.parts] for side in (opening, closing))
            joined.append(Tag(start - cut, (*before, unit.escape(text[start:end]), *after)))
            pieces.append(text[at:start])
            at, cut, i = end, cut + end - start, i + 2 * n
        else:
            joined.append(replace(tags[i], place=start - cut))
            i += 1
    unit.tags, unit.text = joined, "".join([*pieces, text[at:]])


_PARTS_WORDS = re.compile(
    r"<(?:br|lb|hr|img|image|tab|x|ph)(?=[\s/>])(?![^<>]*\b(?:break=[\"']no|id=[\"'](?:START|CLOSE)_))", re.IGNORECASE
)
"""A line break or picture, or an inline code of XLIFF that may be one, but no code of Angular that opens or closes."""


_ENDS_SENTENCE = frozenset(".!?:;,)")


def part_words(unit: Unit) -> None:
    """Put a space behind line breaks and the like between two words: "one<br/>two" is no word."""
    text, at = unit.text, 0
    pieces: list[str] = []
    for i, tag in enumerate(unit.tags):
        place = tag.place
        unit.tags[i] = replace(tag, place=place + len(pieces))
        before, after = text[max(at, place - 1) : place], text[place : place + 1]
        ends = before in _ENDS_SENTENCE and after.isalpha()
        if before and (ends or divides_word(text, place)) and _PARTS_WORDS.match(_source_of(tag)):
            pieces.append(text[at:place])
            at = place
    unit.text = " ".join([*pieces, text[at:]])


_ELEMENT = re.compile(r"<[^<>]*>")
_MOST_SHOWN = 80  # characters: longer source is no word in a sentence


def _source_of(tag: Tag) -> str:
    """Return the source of a placeholder; "" for other tags, and if it has text to translate."""
    is_source = tag.kind == "point" and tag.share is None and all(isinstance(part, str) for part in tag.parts)
    return "".join(map(str, tag.parts)) if is_source else ""


def _words_of(tag: Tag) -> str:
    """Return the words that a placeholder shows; "" if it shows none."""
    text = _ELEMENT.sub("", _source_of(tag))
    return text if len(text) <= _MOST_SHOWN and any(map(str.isalnum, text)) else ""


def _shows_words(tag: Tag) -> bool:
    """True for a placeholder that is a whole element with words, such as code."""
    return bool(_SHOWS_WORDS.search(_source_of(tag)))


def units_of(parts: Sequence[Part]) -> Iterator[Unit]:
    """Yield every unit in document order, those inside tags too."""
    for part in parts:
        if isinstance(part, Unit):
            yield part
            for tag in part.tags:
                yield from units_of(tag.parts)


@dataclass(frozen=True)
class Lost:
    """A unit whose translation was not written, because elements that had words would have none."""

    text: str  # as a reader of the file sees it
    n_elements: int  # elements and lines without words; 0 for the unit itself

    @property
    def why(self) -> str:
        """Return the reason for the report."""
        if not self.n_elements:
            return "its translation has no words"
        return f"its translation has no words for {self.n_elements:,} of its elements"


def write(parts: Sequence[Part], translations: Translations, lost: list[Lost] | None = None) -> str:
    """Return the parts as text, with each unit translated; a unit without a translation keeps its source.

    Args:
        parts: The parts.
        translations: Translations of their units.
        lost: Gets the units that keep their source because an element would lose its words.
    """
    written: list[str] = []
    for i, part in enumerate(parts):
        if isinstance(part, str):
            written.append(part)
        else:
            is_known = part.plain in translations.by_text
            text = (
                _translated(part, translations.by_text[part.plain], translations, lost)
                if is_known
                else write(part.raw, translations, lost)
            )
            before = parts[i - 1] if i else ""
            if (
                isinstance(before, Unit)
                and not translations.tgt_unspaced
                and (is_known or not written[-1].endswith(before.text[-1:]))
                and _run_together(written[-1], text)
            ):
                written.append(" ")
            written.append(text)
    return "".join(written)


def _run_together(before: str, after: str) -> bool:
    """True if the translations of two units would be one word: in the source a tag was between their words."""
    return before[-1:].isalnum() and after[:1].isalnum()


def _translated(unit: Unit, translation: AlignedText, translations: Translations, lost: list[Lost] | None) -> str:
    """Return the translation of a unit with its tags and styles; its source if an element would lose its words."""
    known = translations.placed.get(id(unit))
    if known is None or known.unit is not unit or known.tags is not unit.tags or known.translation is not translation:
        known = translations.placed[id(unit)] = _placed(unit, translation, translations)
    tgt, placed, styles = known.tgt, known.places, known.styles
    if placed.n_lost or (not has_words(translation.text) and has_words(unit.text)):
        if lost is not None:
            lost.append(Lost(unit.shown, placed.n_lost))
        return write(unit.raw, translations, lost)
    written: list[str] = []
    run: list[str] = []  # characters in the same style that are not written yet
    style = known.usual[""]

    def flush() -> None:
        if text := "".join(run):
            before, after = unit.styles[style]
            written.append(before + unit.escape(text) + after)
        run.clear()

    for piece in _sequence(unit, tgt, placed.order):
        if isinstance(piece, Tag):
            flush()
            written.append(write(piece.parts, translations, lost))
            if piece.name in known.usual and piece.kind != "point":
                style = known.usual[piece.name if piece.kind == "open" else ""]
        elif isinstance(piece, str):
            run += piece
        else:
            for i in piece:
                if styles[i] != style:
                    flush()
                    style = styles[i]
                run.append(tgt.text[i])
    flush()
    return "".join(written)


def _placed(unit: Unit, translation: AlignedText, translations: Translations) -> _Placed:
    """Return the places of a unit's tags in a translation, and the style of each of its characters."""
    src, tgt = Side(unit.text, translations.src_unspaced), Side(translation.text, translations.tgt_unspaced)
    if translation.alignment and SPECIAL.search(unit.text):
        tgt = with_spaces(src, tgt, translation.alignment)
    places = TagPlaces((), 0)
    if unit.tags:
        pieces = link(src, tgt, translation.alignment, [tag.place for tag in unit.tags])
        places = tag_places(unit.tags, src, tgt, pieces)
    styles = [] if places.n_lost else _styles(unit, src, tgt, translation.alignment)
    usual = {"": 0}
    if styles and any(not tag.parts for tag in unit.tags):
        styles, usual, n_lost = _with_elements(unit, tgt.text, places.order, styles)
        places = TagPlaces((), n_lost) if n_lost else places
    return _Placed(unit, unit.tags, translation, tgt, places, styles, usual)


def _with_elements(
    unit: Unit, text: str, order: Sequence[tuple[int, int]], styles: Sequence[int]
) -> tuple[list[int], dict[str, int], int]:
    """Keep the styles of elements whose tags have no source, such as a link of a slide, to their words alone.

    Args:
        unit: The unit.
        text: Its translation.
        order: Tags in the order of the translation, each with the character that it stands before.
        styles: The style of each character of the translation.

    Returns:
        The style of each character; that of each such element, by its name, and of the text around them, by ""; and the
        number of them that would show nothing.
    """
    src_names = _element_names([(tag, tag.place) for tag in unit.tags], len(unit.text))
    tgt_names = _element_names([(unit.tags[i], place) for i, place in order], len(text))
    own: dict[str, set[int]] = {"": set()}
    for name, style in zip(src_names, _source_styles(unit), strict=True):
        own.setdefault(name, set()).add(style)
    usual = {name: min(some, default=0) for name, some in own.items()}  # the most frequent comes first
    fitting = [
        style if style in own[name] or not own[name] else usual[name]
        for name, style in zip(tgt_names, styles, strict=True)
    ]
    shown = [
        {name for name, character in zip(names, characters, strict=True) if not character.isspace()}
        for names, characters in ((src_names, unit.text), (tgt_names, text))
    ]
    return fitting, usual, len(shown[0] - shown[1] - {""})


def _element_names(tags: Sequence[tuple[Tag, int]], size: int) -> list[str]:
    """Return for each character of a text the name of the element around it whose tags have no source, or ""."""
    names = [""] * size
    start = 0
    for tag, place in tags:
        if tag.kind == "open" and not tag.parts:
            start = place
        elif tag.kind == "close" and not tag.parts:
            names[start:place] = [tag.name] * (place - start)
    return names


def _sequence(unit: Unit, tgt: Side, order: Sequence[tuple[int, int]]) -> list[str | range | Tag]:
    """Return the pieces to write, in order: tags, ranges of the translation's characters, and white space.

    The white space is that around the unit's text, and spaces that set a placeholder off from a word.

    Args:
        unit: The unit.
        tgt: Its translation.
        order: Tags in the order of the translation, each with the character that it stands before.
    """
    text, end = tgt.text, len(unit.text)
    leading = unit.text[: end - len(unit.text.lstrip())]
    trailing = unit.text[len(unit.text.rstrip()) :]
    leading, trailing = _without_spaces_of_points(unit, leading, trailing, dict(order), len(text))
    pieces: list[str | range | Tag] = []
    at, n_leading, n_trailing = 0, 0, 0  # ``n_leading`` and ``n_trailing``: characters of both that are written
    is_begun = False
    beside = _Beside()
    for i, (number, place) in enumerate(order):
        tag = unit.tags[number]
        if tag.place > 0 or place > 0:
            stop = tag.place if place == 0 else len(leading)
            is_begun = True
            if leading[n_leading:stop]:
                pieces.append(leading[n_leading:stop])
                n_leading, beside = stop, _Beside(has_space=True)
        between = _trimmed(text, range(at, place), pieces[-1] if pieces else "", tag)
        if between:
            pieces.append(" " * beside.is_apart_from(text[between.start], tgt))
            beside = _Beside()
        pieces.append(between)
        at = place
        if tag.share is not None:
            pieces.append(tag)
            beside = _Beside()
            continue
        n_before = tag.place - (end - len(trailing))
        if place == len(text) and n_before > n_trailing:
            pieces.append(trailing[n_trailing:n_before])
            n_trailing, beside = n_before, _Beside(has_space=True)
        begins = tag.kind == "point" or _begins_with_point(unit, order[i : i + MOST_DEPTH])
        around = unit.text[tag.place - 1 : tag.place], text[at - 1 : at], text[at : at + 1]
        pieces += [" ", tag] if beside.needs_space_before(tag, begins, around, tgt) else [tag]
        if tag.kind == "point" and (is_begun or not leading):
            beside.point, beside.behind = tag, unit.text[tag.place : tag.place + 1]
        beside.opens = beside.opens or tag.kind == "open"
    last = _trimmed(text, range(at, len(text)), pieces[-1] if pieces else "", None)
    if leading[n_leading:]:
        pieces.append(leading[n_leading:])
    elif last:
        pieces.append(" " * beside.is_apart_from(text[last.start], tgt))
    return [*pieces, last, trailing[n_trailing:]]


def _without_spaces_of_points(
    unit: Unit, leading: str, trailing: str, places: Mapping[int, int], size: int
) -> tuple[str, str]:
    """Return the white space around a unit's text without that beside a placeholder at an end that moves away.

    Args:
        unit: The unit.
        leading, trailing: White space before and behind its words.
        places: For the number of each tag: the character of the translation that it stands before.
        size: Number of characters of the translation.
    """
    points = [(tag.place, places[i]) for i, tag in enumerate(unit.tags) if tag.kind == "point" and tag.share is None]
    first = [to for place, to in points if place == 0]
    last = [to for place, to in points if place == len(unit.text)]
    return "" if first and min(first) > 0 else leading, "" if last and max(last) < size else trailing


def _begins_with_point(unit: Unit, order: Sequence[tuple[int, int]]) -> bool:
    """True if the first of some tags opens an element and the next one that does not is a placeholder beside it."""
    kinds = [unit.tags[number].kind for number, place in order if place == order[0][1]]
    return kinds[0] == "open" and next((kind for kind in kinds if kind != "open"), "") == "point"


@dataclass
class _Beside:
    """The tags at one place of a translation, as far as they are written: do they need a space beside them?"""

    point: Tag | None = None  # the last placeholder
    behind: str | None = None  # the character that follows it in the source; None if it is set off already
    has_space: bool = False
    opens: bool = False  # an element begins

    def is_apart_from(self, character: str, side: Side) -> bool:
        """True if a space must be between the placeholder and the character that follows all tags."""
        return self.behind is not None and _is_apart(self.behind, character, side)

    def needs_space_before(self, tag: Tag, begins: bool, around: tuple[str, str, str], side: Side) -> bool:
        """True if a space must be in front of the next tag; it counts as written.

        Args:
            tag: The tag.
            begins: It is a placeholder, or begins an element that begins with one.
            around: The character before it in the source, and those before and behind all tags of the translation.
            side: The translation.
        """
        before_in_src, before, behind = around
        if tag.kind == "close":
            return False
        if self.point is not None:
            is_apart = tag.place != self.point.place if begins else self.is_apart_from(behind, side)
        else:
            is_apart = begins and not self.opens and not self.has_space
            is_apart = is_apart and bool(before) and _is_apart(before_in_src, before, side)
        if is_apart:
            self.has_space, self.behind = True, None
        return is_apart


def _is_apart(src: str, tgt: str, side: Side) -> bool:
    """True if a placeholder is to be set off from its neighbour in the translation, as it was from that in the source.

    Args:
        src, tgt: The character beside it in the source and in the translation; "" at an end.
        side: The translation.
    """
    if src.isspace():
        return bool(tgt.strip())
    return bool(tgt) and not side.unspaced and not (src and is_word_character(src)) and is_word_character(tgt)


def _trimmed(text: str, span: range, before: str | range | Tag, after: Tag | None) -> range:
    """Return the span of ``text`` without the spaces next to a cut, where a line ends anyway."""
    start, end = span.start, span.stop
    if isinstance(before, Tag) and before.share is not None:
        start = min(end, start + len(text[start:end]) - len(text[start:end].lstrip()))
    if after is not None and after.share is not None:
        end = max(start, start + len(text[start:end].rstrip()))
    return range(start, end)


def _styles(unit: Unit, src: Side, tgt: Side, alignment: Links | None) -> list[int]:
    """Return the style of each character of a translation: the style of the source word that it translates.

    That is the style of most of its letters. What begins or ends both words alike keeps its own, as the "2" of "CO2".
    """
    n_chars = len(tgt.text)
    if not unit.styled:
        return [0] * n_chars
    src_styles = _source_styles(unit)
    src_words, tgt_words = word_spans(src.text, src.unspaced), word_spans(tgt.text, tgt.unspaced)
    sources: dict[int, WordSpan] = {}  # number of a target word: span of the first source word it is linked to
    for number, other in sorted(alignment or _by_position(len(src_words), len(tgt_words))):
        if number < len(src_words):
            sources.setdefault(other, src_words[number])
    styles: list[int | None] = [None] * n_chars
    for number, (start, end) in enumerate(tgt_words):
        if number not in sources:
            continue
        first, last = sources[number]
        word, word_last = core(unit.text, first, last)
        # Punctuation around the word takes the style of the punctuation around the source word.
        word_start, word_end = core(tgt.text, start, end)
        if word_start == word_end:  # punctuation alone
            word_start = word_end = start + 1
        for i in range(start, word_start):
            styles[i] = src_styles[first]
        for i in range(word_end, end):
            styles[i] = src_styles[last - 1]
        n_before, n_behind = _alike(unit.text[word:word_last], tgt.text[word_start:word_end])
        others = src_styles[word + n_before : word_last - n_behind] or src_styles[word:word_last] or [src_styles[word]]
        styles[word_start:word_end] = [Counter(others).most_common(1)[0][0]] * (word_end - word_start)
        styles[word_start : word_start + n_before] = src_styles[word : word + n_before]
        styles[word_end - n_behind : word_end] = src_styles[word_last - n_behind : word_last]
    return _filled(styles)


def _source_styles(unit: Unit) -> list[int]:
    """Return the style of each character of a unit's text."""
    styles = [0] * len(unit.text)
    for start, end, style in unit.styled:
        styles[start:end] = [style] * (end - start)
    return styles


def _alike(src: str, tgt: str) -> tuple[int, int]:
    """Return the numbers of characters with which two words begin alike, and with which their rests end alike."""
    n_before = _n_same(src, tgt)
    return n_before, _n_same(src[n_before:][::-1], tgt[n_before:][::-1])


def _n_same(left: str, right: str) -> int:
    """Return the number of characters with which two texts begin alike."""
    return next((i for i, (a, b) in enumerate(zip(left, right, strict=False)) if a != b), min(len(left), len(right)))


def _by_position(n_src: int, n_tgt: int) -> Links:
    """Return links of words by their relative position."""
    return tuple((i, min(n_tgt - 1, i * n_tgt // n_src)) for i in range(n_src)) if n_tgt else ()


def _filled(styles: Sequence[int | None]) -> list[int]:
    """Replace each unknown style (None) by the style on both its sides, or by the usual one (0) if these differ."""
    before, after = list(styles), list(styles)
    for i in range(1, len(styles)):
        before[i] = before[i - 1] if before[i] is None else before[i]
    for i in range(len(styles) - 2, -1, -1):
        after[i] = after[i + 1] if after[i] is None else after[i]
    return [left or 0 if left == right else 0 for left, right in zip(before, after, strict=True)]
