"""The elements of a unit as trees: one for each part between two barriers, which all tags keep their side of.

Barriers are the cuts between subtitles, and opening or closing tags without a partner. An element that goes through a
barrier is an element on each side: at the end of the part where it opens, at the start of the part where it closes.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

from dragoman.documents.tags.pairs import pairs_of
from dragoman.documents.tags.pieces import WordSpan

MOST_DEPTH = 20
"""Largest number of elements inside each other that are placed by themselves; the tags of others are barriers."""


class Mark(Protocol):
    """The tag of a unit; see ``units.Tag``."""

    @property
    def place(self) -> int: ...
    @property
    def kind(self) -> Literal["open", "close", "point"]: ...
    @property
    def name(self) -> str: ...
    @property
    def share(self) -> float | None: ...
    @property
    def by_words(self) -> bool: ...


@dataclass
class Element:
    """An element, or the part of a unit between two barriers, which encloses all elements there."""

    path: tuple[int, ...]  # numbers of the elements around it, outermost first, and its own
    start: int  # characters of the source before and within it
    end: int = -1
    opening: int = -1  # numbers of its tags; -1 for one that lies behind a barrier
    closing: int = -1
    items: list[tuple[bool, int]] = field(default_factory=list)  # (True, number of an element), (False, of a point)
    n_own: int = 0  # pieces of the source in it, and in no element inside it
    n_needed_inside: int = 0  # least number of pieces of the translation in the elements inside it
    n_needed: int = 0  # and in it
    has_words: bool = False  # in it or inside it, not only code or signs


@dataclass
class Forest:
    """Trees of all parts of a unit."""

    elements: list[Element] = field(default_factory=list)  # an element comes before those inside it
    roots: list[int] = field(default_factory=list)  # the element that is a part
    barriers: list[int] = field(default_factory=list)  # numbers of the tags between two parts
    partners: dict[int, int] = field(default_factory=dict)  # for each opening and closing tag the number of the other
    owners: list[int] = field(default_factory=list)  # for each piece of the source: the innermost element around it


def forest(tags: Sequence[Mark], size: int, pieces: Sequence[WordSpan], worded: Sequence[bool]) -> Forest:
    """Return the trees of a unit.

    Args:
        tags: Its tags.
        size: Number of its characters.
        pieces: Pieces of its text.
        worded: For each: it is no code and no sign.
    """
    partner = _partners(tags)
    is_barrier = [tag.by_words or (tag.kind != "point" and i not in partner) for i, tag in enumerate(tags)]
    made = Forest(barriers=[i for i, barrier in enumerate(is_barrier) if barrier], partners=partner)
    at = 0
    for end in [*made.barriers, len(tags)]:
        _add_part(made, tags, range(at, end), pieces, size if end == len(tags) else tags[end].place)
        at = end + 1
    for owner, has_words in zip(made.owners, worded, strict=True):
        made.elements[owner].has_words |= has_words
    for element in reversed(made.elements):
        element.n_needed = max(element.n_needed_inside, int(element.n_own > 0))
        if len(element.path) > 1:
            made.elements[element.path[-2]].n_needed_inside += element.n_needed
            made.elements[element.path[-2]].has_words |= element.has_words
    return made


def is_free_cut(tag: Mark) -> bool:
    """True for the end of a line in a paragraph: it stands at its share of the text, and no tag is tied to a side."""
    return tag.share is not None and not tag.by_words


def _partners(tags: Sequence[Mark]) -> dict[int, int]:
    """Return for the number of each opening and closing tag that of its partner, if it has one."""
    partner: dict[int, int] = {}
    ends: list[int] = []  # of the elements around the next one
    for first, last in sorted(pairs_of(tags)):
        while ends and ends[-1] < first:
            ends.pop()
        if len(ends) < MOST_DEPTH:
            partner[first], partner[last] = last, first
            ends.append(last)
    return partner


def _add_part(made: Forest, tags: Sequence[Mark], numbers: range, pieces: Sequence[WordSpan], end: int) -> None:
    """Add the tree of the tags between two barriers; it ends before the character ``end`` of the source."""
    elements, owners = made.elements, made.owners
    start = elements[made.roots[-1]].end if made.roots else 0
    made.roots.append(len(elements))
    elements.append(Element((len(elements),), start))
    around = [made.roots[-1]]

    def own_pieces(place: int) -> None:
        """Give the pieces before a place to the innermost open element."""
        n = bisect_left(pieces, (place, 0), len(owners)) - len(owners)
        owners.extend([around[-1]] * n)
        elements[around[-1]].n_own += n

    def open_element(opening: int, place: int) -> None:
        own_pieces(place)
        elements[around[-1]].items.append((True, len(elements)))
        elements.append(Element((*elements[around[-1]].path, len(elements)), place, opening=opening))
        around.append(len(elements) - 1)

    closed_here = [i for i in numbers if tags[i].kind == "close" and made.partners[i] < numbers.start]
    for _ in closed_here:
        open_element(-1, start)
    for i in numbers:
        tag = tags[i]
        if is_free_cut(tag):
            continue
        if tag.kind == "open":
            open_element(i, tag.place)
            continue
        own_pieces(tag.place)
        if tag.kind == "close":
            elements[around[-1]].end, elements[around.pop()].closing = tag.place, i
        else:
            elements[around[-1]].items.append((False, i))
    own_pieces(end)
    for number in around:
        elements[number].end = end
