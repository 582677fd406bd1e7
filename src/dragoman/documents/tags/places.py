"""Places of tags in a translation, by the words that they enclose and stand beside.

Elements may change their order, but not what encloses them. Each gets one stretch of the translation: the words that
translate its own, as far as they stand together, and at least one if it had any. A point stands beside its neighbour.
Punctuation stays on its side of a tag. Only barriers keep their order (``tag_tree``). A line of a paragraph may end
anywhere.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from dragoman.documents.tags.cuts import Cut, cut_places
from dragoman.documents.tags.gaps import Gaps
from dragoman.documents.tags.pieces import Pieces, Side
from dragoman.documents.tags.stretches import NO_ONE, OTHERS, WORDLESS, Child, stretches
from dragoman.documents.tags.tree import Element, Forest, Mark, forest, is_free_cut


@dataclass(frozen=True)
class TagPlaces:
    """Tags of a unit in the order in which they are written, each with the character that it stands before."""

    order: Sequence[tuple[int, int]]
    n_lost: int  # elements and lines that had words, and for which the translation has none


def tag_places(tags: Sequence[Mark], src: Side, tgt: Side, pieces: Pieces) -> TagPlaces:
    """Return the places of a unit's tags in its translation.

    Args:
        tags: The tags.
        src, tgt: The unit's text and its translation.
        pieces: The pieces of both.
    """
    trees = forest(tags, len(src.text), pieces.src, pieces.src_worded)
    roots = [trees.elements[number] for number in trees.roots]
    shown = [tags[i].share is not None for i in trees.barriers]
    is_line = [a or b for a, b in zip([False, *shown], [*shown, False], strict=True)]
    needed = [root.n_needed if line or root.n_needed_inside else 0 for root, line in zip(roots, is_line, strict=True)]
    cuts = [Cut(tags[i].place, tags[i].share, True, needed[n]) for n, i in enumerate(trees.barriers)]
    barriers = cut_places(cuts, needed[-1], tgt, pieces)
    bounds = [0, *(count for count, _ in barriers), len(pieces.tgt)]
    n_lost = sum(max(0, n - (end - start)) for n, start, end in zip(needed, bounds, bounds[1:], strict=False))
    if n_lost:
        return TagPlaces((), n_lost)
    gaps = Gaps(src.text, tgt.text, pieces)
    layout = _Layout(tags, trees, pieces, gaps)
    order: list[tuple[int, int, int]] = []
    for n, root in enumerate(trees.roots):
        if n:
            count, place = barriers[n - 1]
            order.append((trees.barriers[n - 1], count, place))
        order += layout.written(root, bounds[n], bounds[n + 1])
    placed = _characters(tags, order, gaps)
    n_lost = _n_wordless(trees, dict(placed), is_line, pieces, len(tgt.text))
    return TagPlaces((), n_lost) if n_lost else TagPlaces(_with_free_cuts(tags, placed, tgt, pieces), 0)


def _n_wordless(
    trees: Forest, places: Mapping[int, int], is_line: Sequence[bool], pieces: Pieces, size: int
) -> int:  # fmt: skip
    """Return the number of elements and lines that had words, and would enclose only code or signs.

    Args:
        trees: The elements.
        places: For each tag: the character of the translation that it stands before.
        is_line: For each tree: it is a line that is shown by itself.
        pieces: The pieces of both texts.
        size: Number of characters of the translation.
    """
    starts = [start for (start, _), worded in zip(pieces.tgt, pieces.tgt_worded, strict=True) if worded]
    edges = [0, *(places[i] for i in trees.barriers), size]
    tree = {root: n for n, root in enumerate(trees.roots)}
    n_wordless = 0
    for number, element in enumerate(trees.elements):
        if not element.has_words or (number in tree and not is_line[tree[number]]):
            continue
        n = tree[element.path[0]]
        start = edges[n] if element.opening < 0 else places[element.opening]
        end = edges[n + 1] if element.closing < 0 else places[element.closing]
        n_wordless += bisect_left(starts, start) == bisect_left(starts, end)
    return n_wordless


def _with_free_cuts(
    tags: Sequence[Mark], order: Sequence[tuple[int, int]], tgt: Side, pieces: Pieces
) -> Sequence[tuple[int, int]]:
    """Return the tags with the cuts among them that stand at their share of the text, also inside elements."""
    numbers = [i for i, tag in enumerate(tags) if is_free_cut(tag)]
    if not numbers:
        return order
    starts = [0, *(bisect_left(pieces.src, (tags[i].place, 0)) for i in numbers), len(pieces.src)]
    needed = [int(start < end) for start, end in pairwise(starts)]
    cuts = [Cut(tags[i].place, tags[i].share, False, n) for i, n in zip(numbers, needed, strict=False)]
    merged, at = [], 0
    for i, (_, place) in zip(numbers, cut_places(cuts, needed[-1], tgt, pieces), strict=True):
        while at < len(order) and (order[at][1], tags[order[at][0]].kind != "close") <= (place, False):
            merged.append(order[at])
            at += 1
        merged.append((i, place))
    return [*merged, *order[at:]]


def _characters(tags: Sequence[Mark], order: Sequence[tuple[int, int, int]], gaps: Gaps) -> list[tuple[int, int]]:
    """Return tags with the characters that they stand before, in order.

    Args:
        tags: The tags of the unit.
        order: For each: its number, the number of pieces before it, and its place if that is known, else -1.
        gaps: Punctuation of both texts.
    """
    places = [gaps.place(tags[i], count) if place < 0 else place for i, count, place in order]
    limit = len(gaps.tgt)
    for n in range(len(places) - 1, -1, -1):
        if tags[order[n][0]].share is not None:  # all tags stay on their side of it
            limit = places[n]
        places[n] = min(places[n], limit)
    for n in range(1, len(places)):
        places[n] = max(places[n], places[n - 1])
    _keep_brackets(tags, [i for i, _, _ in order], places, gaps)
    return [(i, place) for (i, _, _), place in zip(order, places, strict=True)]


def _keep_brackets(tags: Sequence[Mark], order: Sequence[int], places: list[int], gaps: Gaps) -> None:
    """Move tags, in place, past brackets beside them whose other bracket stands inside their element."""
    partner = gaps.brackets
    if not partner:
        return
    divided = _with_half_brackets(tags, gaps.src_brackets)
    opened: list[int] = []
    elements = []
    for n, i in enumerate(order):
        if tags[i].kind == "open":
            opened.append(n)
        elif tags[i].kind == "close" and opened:
            first = opened.pop()
            if order[first] not in divided:
                elements.append((first, n))
    for first, last in reversed(elements):
        limit = places[last + 1] if last + 1 < len(places) else len(gaps.tgt)
        while places[last] < limit and places[first] <= partner.get(places[last], -1) < places[last]:
            places[last] += 1
    for first, last in sorted(elements):
        limit = places[first - 1] if first else 0
        while places[first] > limit and places[first] <= partner.get(places[first] - 1, -1) < places[last]:
            places[first] -= 1


def _with_half_brackets(tags: Sequence[Mark], partner: Mapping[int, int]) -> set[int]:
    """Return the opening tags of elements that hold one bracket of a pair in the source, and not the other.

    Args:
        tags: The tags of the unit, in the order of the source.
        partner: Place of the other bracket for that of each bracket of the source.
    """
    divided: set[int] = set()
    waiting = sorted(partner, reverse=True)
    around: list[tuple[int, list[int]]] = []  # of each open element: its tag, and the partners of brackets inside
    for i, tag in enumerate(tags):
        while waiting and waiting[-1] < tag.place:
            other = partner[waiting.pop()]
            if around:
                around[-1][1].append(other)
        if tag.kind == "open":
            around.append((i, []))
        elif tag.kind == "close" and around:
            first, others = around.pop()
            ends = [min(others), max(others)] if others else []
            if ends and not tags[first].place <= ends[0] <= ends[1] < tag.place:
                divided.add(first)
            if around:
                around[-1][1].extend(ends)
    return divided


@dataclass(frozen=True)
class _Item:
    """A tag or an element to write between two pieces, or around some."""

    count: int  # pieces before it
    rank: int  # of items at the same place: 0 for one without pieces, 1 for one with, 2 for one that must be last
    source: int  # its place among its neighbours in the source
    is_element: bool
    number: int  # of the element or tag
    end: int  # pieces up to its end
    at: int = -1  # characters before it, if it encloses signs that are known in the translation


class _Layout:
    """Lays out the tags of a unit among the pieces of its translation."""

    def __init__(self, tags: Sequence[Mark], trees: Forest, pieces: Pieces, gaps: Gaps) -> None:
        self.tags, self.elements, self.owners, self.gaps = tags, trees.elements, trees.owners, gaps
        self.starts = [start for start, _ in pieces.src]
        self.tgt_starts = [start for start, _ in pieces.tgt]
        self.weights = pieces.weights
        self.has_words = pieces.tgt_worded
        self.is_foreign = [
            not has_words and not _is_same(pieces, i, gaps) for i, has_words in enumerate(self.has_words)
        ]
        self.votes = [_most_frequent([trees.owners[i] for i in sources]) for sources in pieces.sources]
        self.targets: list[list[int]] = [[] for _ in self.starts]  # of each piece of the source
        for target, sources in enumerate(pieces.sources):
            for i in sources:
                self.targets[i].append(target)
        self.first = [own[0] if own else -1 for own in self.targets]
        self.last = [own[-1] if own else -1 for own in self.targets]
        self.next_linked, following = [], len(self.starts)
        for i in range(len(self.starts) - 1, -1, -1):
            following = i if self.first[i] >= 0 else following
            self.next_linked.append(following)
        self.next_linked.reverse()

    def written(self, root: int, start: int, end: int) -> Iterator[tuple[int, int, int]]:
        """Yield each tag of a tree in order, with the number of pieces before it, and its character or -1.

        Args:
            root: Number of the element that is the tree.
            start, end: Its pieces of the translation.
        """
        waiting: list[tuple[bool, int, int, int, int]] = [(True, root, start, end, -1)]
        while waiting:
            is_element, number, start, end, at = waiting.pop()
            if not is_element:
                yield number, start, at
                continue
            element = self.elements[number]
            if at >= 0:  # signs that are the same in the translation
                for i in range(element.opening, element.closing + 1):
                    yield i, start, self._beside_signs(element, self.tags[i].place, at)
                continue
            if element.closing >= 0:
                waiting.append((False, element.closing, end, end, -1))
            for item in reversed(self._items(number, start, end)):
                waiting.append((item.is_element, item.number, item.count, item.end, item.at))
            if element.opening >= 0:
                waiting.append((False, element.opening, start, start, -1))

    def _items(self, number: int, start: int, end: int) -> list[_Item]:
        """Return what stands in an element, in the order of the translation."""
        element = self.elements[number]
        children = [child for is_element, child in element.items if is_element and self.elements[child].n_needed]
        spans = dict(zip(children, self._stretches(number, children, start, end), strict=True))
        in_order = sorted(spans.values())
        low = max((spans[child][1] for child in children if self.elements[child].opening < 0), default=start)
        high = min((spans[child][0] for child in children if self.elements[child].closing < 0), default=end)
        items = []
        for source, (is_element, child) in enumerate(element.items):
            if child in spans and is_element:
                items.append(_Item(spans[child][0], 1, source, True, child, spans[child][1]))
                continue
            if is_element and (self.elements[child].opening < 0 or self.elements[child].closing < 0):
                is_first = self.elements[child].opening < 0
                count = start if is_first else end
                items.append(_Item(count, 0 if is_first else 2, source, True, child, count))
                continue
            at = self._same_signs(child) if is_element else -1
            place = self.elements[child].start if is_element else self.tags[child].place
            count = bisect_left(self.tgt_starts, at) if at >= 0 else self._beside(place, number, spans, (start, end))
            outside = _outside(min(max(count, low), high), in_order)
            items.append(_Item(outside, 0, source, is_element, child, outside, at if outside == count else -1))
        return sorted(items, key=lambda item: (item.count, item.rank, item.source))

    def _stretches(self, number: int, children: Sequence[int], start: int, end: int) -> list[tuple[int, int]]:
        """Return the pieces of each of an element's children with words."""
        if not children:
            return []
        depth = len(self.elements[number].path)
        index = {child: i for i, child in enumerate(children)}
        labels = []
        for vote in self.votes[start:end]:
            path = self.elements[vote].path if vote >= 0 else ()
            is_inside = len(path) > depth and path[depth - 1] == number
            labels.append(NO_ONE if vote < 0 else index.get(path[depth], OTHERS) if is_inside else OTHERS)
        for i, label in enumerate(labels):
            is_wordless = not self.has_words[start + i]
            if is_wordless and (label < 0 or self.is_foreign[start + i]):
                labels[i] = WORDLESS
        self._give_shared(labels, children, start)
        weighted = list(zip(labels, self.weights[start:end], self.has_words[start:end], strict=True))
        placed = stretches(
            weighted, [_child(self.elements[child]) for child in children],
            lambda i: min(max(self._hint(self.elements[children[i]], start, end) - start, 0), end - start),
            covers=not self.elements[number].n_own,
        )  # fmt: skip
        return [(start + first, start + last) for first, last in placed]

    def _give_shared(self, labels: list[int], children: Sequence[int], start: int) -> None:
        """Give each child without pieces one that it shares with others, if these keep some of theirs."""
        sizes = Counter(labels)
        for i, child in enumerate(children):
            if sizes[i]:
                continue
            first, behind = (bisect_left(self.starts, edge) for edge in self._edges(child))
            shared = [t - start for own in self.targets[first:behind] for t in own if start <= t < start + len(labels)]
            free = [t for t in shared if labels[t] < 0 or sizes[labels[t]] > 1]
            if self.elements[children[i]].has_words:
                free = [t for t in free if self.has_words[start + t]]
            if free:
                at = min(
                    free,
                    key=lambda t: (labels[t] >= 0, labels[t - 1 : t] == labels[t : t + 1] == labels[t + 1 : t + 2]),
                )
                sizes[labels[at]] -= 1
                labels[at] = i
                sizes[i] = 1

    def _edges(self, number: int) -> tuple[int, int]:
        """Return the characters of the source before and within an element."""
        return self.elements[number].start, self.elements[number].end

    def _hint(self, element: Element, start: int, end: int) -> int:
        """Return where an element whose words have no links would stand: behind the words before it."""
        before = bisect_left(self.starts, element.start) - 1
        if before >= 0 and start <= self.last[before] < end:
            return self.last[before] + 1
        behind = bisect_left(self.starts, element.end)
        if behind < len(self.starts) and start <= self.first[behind] < end:
            return self.first[behind]
        return start + (end - start) * (before + 1) // max(1, len(self.starts))

    def _beside(self, place: int, number: int, spans: Mapping[int, tuple[int, int]], bounds: tuple[int, int]) -> int:
        """Return the number of pieces before a point, which stands in an element of these bounds.

        A point stands behind the word that it follows directly, or up to the comma behind it, else before the next one;
        at an end of its element it stays there.
        """
        element = self.elements[number]
        behind, before = bisect_left(self.starts, place), self.gaps.neighbour_before(place)
        is_last = behind >= len(self.starts) or self.starts[behind] >= element.end
        is_first = behind == 0 or self.starts[behind - 1] < element.start
        if is_first:
            return bounds[0]
        if before >= 0 and not (is_last and self.gaps.signs_beside(place)[0]):
            child = self._child_with(number, before)
            if child in spans:
                return spans[child][1]
            if self.last[before] >= 0:
                return self.last[before] + 1
        if is_last:
            return bounds[1]
        child = self._child_with(number, behind)
        if child not in spans:
            behind = self.next_linked[behind]
            if behind >= len(self.starts) or self.starts[behind] >= element.end:
                return bounds[1]
            child = self._child_with(number, behind)
        return spans[child][0] if child in spans else self.first[behind]

    def _child_with(self, number: int, piece: int) -> int:
        """Return the child of an element around a piece of the source; -1 if it stands in the element itself."""
        path, depth = self.elements[self.owners[piece]].path, len(self.elements[number].path)
        return path[depth] if len(path) > depth else -1

    def _same_signs(self, number: int) -> int:
        """Return the place in the translation of the signs of an element that has no words; -1 if it is unknown."""
        first, end = self._signs(self.elements[number])
        return self.gaps.same_signs(first, end) if first < end else -1

    def _signs(self, element: Element) -> tuple[int, int]:
        """Return the characters of the source from an element's first sign to its last."""
        text = self.gaps.src[element.start : element.end]
        return element.end - len(text.lstrip()), element.start + len(text.rstrip())

    def _beside_signs(self, element: Element, place: int, at: int) -> int:
        """Return the place in the translation of a tag among the signs of an element, or among the spaces around them.

        Args:
            element: The element.
            place: Place of the tag in the source.
            at: Place of the element's first sign in the translation, which may have fewer spaces beside it.
        """
        first, end = self._signs(element)
        if place < first:
            return at - self.gaps.spaces(at - 1, -1, first - place)
        if place > end:
            return at + end - first + self.gaps.spaces(at + end - first, 1, place - end)
        return at + place - first


def _child(element: Element) -> Child:
    end: Literal["", "start", "end"] = "start" if element.opening < 0 else "end" if element.closing < 0 else ""
    return Child(element.n_needed, end, element.has_words)


def _is_same(pieces: Pieces, number: int, gaps: Gaps) -> bool:
    """True if a piece of the translation is linked to a piece of the source that is the same."""
    start, end = pieces.tgt[number]
    return any(gaps.src[slice(*pieces.src[i])] == gaps.tgt[start:end] for i in pieces.sources[number])


def _most_frequent(owners: Sequence[int]) -> int:
    """Return the most frequent of some elements, of several the first; -1 for none."""
    if len(owners) < 2:
        return owners[0] if owners else -1
    return Counter(owners).most_common(1)[0][0]


def _outside(count: int, spans: Sequence[tuple[int, int]]) -> int:
    """Return a number of pieces that is not inside any of the spans: the nearest end of the one that it was in."""
    i = bisect_left(spans, (count, 0)) - 1
    if i < 0 or count >= spans[i][1]:
        return count
    start, end = spans[i]
    return start if count - start < end - count else end
