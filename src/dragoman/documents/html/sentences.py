"""Collects the text and the tags of a sentence, and cuts them into units and the source between them.

    sentence = Sentence(closed={"b"})
    sentence.tag("open", "b", ["<b>"])
    sentence.text("A dog")
    sentence.tag("close", "b", ["</b>"])
    sentence.end()                          # ["<b>", Unit("A dog"), "</b>"]

Elements that are open at an end of the sentence are no part of a unit, nor is an element around all of it, nor a
picture or a comment at its edge. So a unit has whole elements only, and as few as possible.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Literal

from dragoman.documents.html.spelling import Spelling
from dragoman.documents.plain import WIDE
from dragoman.documents.tags.pairs import pairs_of
from dragoman.documents.tags.spaces import SPECIAL
from dragoman.documents.units import Part, Tag, Unit, join_notes, join_points, part_words

_PUNCTUATION = frozenset(",.;:!?)")
_SEPARATORS = "|•·/\\»›>–—- \n\t"
_BULLET = r"(?:[|•·»›]|&(?:bull|middot|raquo|rsaquo);)"
_BULLET_AT_START = re.compile(rf"\s{{0,100}}{_BULLET}(?:\s|&nbsp;){{0,100}}")
_BULLET_AT_END = re.compile(rf"(?:\s|&nbsp;){{1,100}}{_BULLET}\s{{0,100}}\Z")
_BARS = "|•·"
"""Signs that part the texts on both sides of them, unlike quotation marks."""
_BULLETS = f"{_BARS}»›>"
"""Signs that part the texts of two elements, whatever elements they are."""
_COLUMNS = " "
"""The name of the markup that parts columns; no element has it."""
_REFERENCE = r"&(?:nbsp|e[mn]sp|thinsp|#160|#[xX]0{0,4}[aA]0|#819[2-9]|#820[0-2]);"
_SPACES = re.compile(rf"(?:\s|{_REFERENCE})+")
_SPACE = re.compile(rf"{SPECIAL.pattern}|{_REFERENCE}|[ \t\n\r\f\v\x1c-\x1f\x85\u2028\u2029]+")
_JOINED = re.compile(r"[ \t\n\r\f\v\x1c-\x1f\x85\u2028\u2029]+")
_NOTE = re.compile(r"\[\s?(?:[0-9]{1,4}|[a-zA-Z]{1,2}|[ivxlIVXL]{1,5})\s?\]")
_LONGEST_NOTE = 30  # tags and texts
_SIGNS = "¶§#↑↓→←↗⇑∞✎†‡*"
_CLOSING = {"(": ")", "[": "]", '"': '"', "'": "'", "«": "»", "“": "”", "„": "“", "‘": "’"}

TagKind = Literal["open", "close", "point", "edge"]
"""``edge``: a point that need not stay within the sentence if it stands at its beginning or end."""


@dataclass(frozen=True)
class Node:
    """Text or markup of a sentence."""

    parts: tuple[Part, ...]
    kind: TagKind | Literal["text"] = "text"
    name: str = ""
    shown: str = ""  # of text: the same with its entities resolved
    is_plain: bool = False  # text without entities, such as CDATA


class Sentence:
    """A sentence that is being read."""

    def __init__(self, closed: Collection[str] = (), quote: str = "") -> None:
        self._closed = closed  # elements that have a closing tag somewhere
        self._quote = quote  # around the value of an attribute
        self._nodes: list[Node] = []

    def text(self, raw: str, plain: str | None = None) -> None:
        """Add text; ``plain`` is what it shows, if it has no entities."""
        shown = Spelling.of(raw, is_attribute=bool(self._quote)).text if plain is None else plain
        self._nodes.append(Node((raw,), "text", "", shown, plain is not None))

    def tag(self, kind: TagKind, name: str, parts: Sequence[Part]) -> None:
        """Add markup with its source, which may have units of its own."""
        if kind == "open" and name not in self._closed and not name.startswith("["):  # a shortcode has its end
            kind = "edge"
        self._nodes.append(Node(tuple(parts), kind, name))

    def end(self) -> list[Part]:
        """Return the units of the sentence and the source between them, and begin the next sentence."""
        nodes, self._nodes = _with_bullets(_without_gaps(_without_signs(_without_notes(self._nodes)))), []
        nodes = _with_spaces(nodes, self._quote)
        if not any(node.kind == "text" and node.shown.strip() for node in nodes):
            return [part for node in nodes for part in node.parts]
        parts: list[Part] = []
        for piece in _cut(nodes):
            parts += _unit(piece, self._quote)
        return parts


def _without_notes(nodes: list[Node]) -> list[Node]:
    """Let each raised mark of a note, such as ``[5]``, be a placeholder: it is no part of the word before it.

    A raised note such as ``[citation needed]`` is one too, with a unit of its own.
    """
    pairs = _pairs(nodes)
    result: list[Node] = []
    i = 0
    while i < len(nodes):
        is_near = nodes[i].name == "sup" and 0 < pairs.get(i, i) - i < _LONGEST_NOTE
        inside = nodes[i : pairs[i] + 1] if is_near else []
        note = "".join(node.shown for node in inside).strip()
        if _NOTE.fullmatch(note):
            result.append(Node(tuple(part for node in inside for part in node.parts), "edge", "sup"))
            i += len(inside)
        elif note.startswith("[") and note.endswith("]"):
            parts = [*inside[0].parts, *_unit(inside[1:-1], ""), *inside[-1].parts]
            result.append(Node(tuple(parts), "edge", "sup"))
            i += len(inside)
        else:
            result.append(nodes[i])
            i += 1
    return result


def _without_signs(nodes: list[Node]) -> list[Node]:
    """Let an element at the end that shows no more than a sign, such as the link of a heading, be markup."""
    last = len(nodes) - 1
    while last >= 0 and nodes[last].kind in ("text", "edge") and not nodes[last].shown.strip():
        last -= 1
    first = _pairs(nodes).get(last, last)
    inside = nodes[first : last + 1]
    if first >= last or any(node.kind == "point" for node in inside):
        return nodes
    signs = "".join(node.shown for node in inside).strip()
    if not signs or not all(map(_is_sign, signs)) or not any(node.shown.strip() for node in nodes[:first]):
        return nodes
    element = Node(tuple(part for node in inside for part in node.parts), "edge", nodes[last].name)
    return [*nodes[:first], element, *nodes[last + 1 :]]


def _is_sign(char: str) -> bool:
    """True for a sign of a link, and for a character of a font of icons."""
    return char in _SIGNS or "\ue000" <= char <= "\uf8ff"


def _without_gaps(nodes: list[Node]) -> list[Node]:
    """Let a placeholder take the brackets or the space around it, so that the sentence reads well without it."""
    for i in range(1, len(nodes) - 1):
        before, node, after = nodes[i - 1 : i + 2]
        if node.kind != "edge" or node.name or before.kind != "text" or after.kind != "text":
            continue
        raw, following = str(before.parts[0]), str(after.parts[0])
        opening, closing = raw[-1:], following[:1]
        if opening in _CLOSING and _CLOSING[opening] == closing and before.shown[-1:] == opening:
            node = Node((opening, *node.parts, closing), "edge")
            raw, following = raw[:-1], following[1:]
            before = Node((raw,), "text", "", before.shown[:-1], before.is_plain)
            after = Node((following,), "text", "", after.shown[1:], after.is_plain)
        if raw[-1:] == before.shown[-1:] == " " and after.shown[:1] in _PUNCTUATION:
            node = Node((" ", *node.parts), "edge")
            before = Node((raw[:-1],), "text", "", before.shown[:-1], before.is_plain)
        nodes[i - 1 : i + 2] = before, node, after
    return nodes


def _with_bullets(nodes: list[Node]) -> list[Node]:
    """Let a bullet between a tag and text, as in ``<b>Ann</b> · two days ago``, be a text of its own."""
    result: list[Node] = []
    for i, node in enumerate(nodes):
        raw = str(node.parts[0]) if node.kind == "text" and not node.is_plain else ""
        is_behind, is_before = i > 0 and nodes[i - 1].kind != "text", i + 1 < len(nodes) and nodes[i + 1].kind != "text"
        start = _BULLET_AT_START.match(raw) if raw and is_behind else None
        end = _BULLET_AT_END.search(raw, max(0, len(raw) - 300)) if raw and is_before else None
        edges = [0, start.end() if start else 0, end.start() if end else len(raw), len(raw)]
        pieces = [raw[first:last] for first, last in pairwise(edges) if first < last]
        if len(pieces) < 2 or len("".join(pieces)) != len(raw):
            result.append(node)
        else:
            result += [Node((piece,), "text", "", Spelling.of(piece).text) for piece in pieces]
    return result


def _with_spaces(nodes: list[Node], quote: str) -> list[Node]:
    """Let spaces that a browser does not join, such as several ``&nbsp;``, be markup, and elements with no more."""
    if not any(node.kind == "text" and SPECIAL.search(node.shown) for node in nodes):
        return nodes
    pairs = _pairs(nodes)
    texts = [i for i, node in enumerate(nodes) if node.shown]
    n_words = [*accumulate((bool(node.shown.strip()) for node in nodes), initial=0)]
    n_special = [*accumulate((bool(SPECIAL.search(node.shown)) for node in nodes), initial=0)]
    widths = [*accumulate((_width(node.shown) for node in nodes), initial=0)]
    result: list[Node] = []
    i = 0
    while i < len(nodes):
        node, after = nodes[i], pairs.get(i, i) + 1
        if node.kind == "text":
            result += _parted(node, quote)
            i += 1
            continue
        is_blank = node.kind == "open" and n_words[i] == n_words[after] and n_special[i] < n_special[after]
        is_apart = False  # otherwise words would run together
        if is_blank:
            before, behind = bisect_left(texts, i) - 1, bisect_left(texts, after)
            last = nodes[texts[before]].shown[-1] if before >= 0 else " "
            first = nodes[texts[behind]].shown[0] if behind < len(texts) else " "
            is_apart = last.isspace() or first.isspace()
        if is_apart or (is_blank and widths[after] - widths[i] >= WIDE):
            parts = tuple(part for inner in nodes[i:after] for part in inner.parts)
            result.append(Node(parts, "edge", "" if is_apart else _COLUMNS))
            i = after
        else:
            result.append(node)
            i += 1
    return result


def _width(spaces: str) -> int:
    """Return the number of spaces that a browser shows."""
    return len(_JOINED.sub(" ", spaces))


def _parted(node: Node, quote: str) -> list[Node]:
    """Return a text with the spaces in it that a browser does not join as markup; wide ones part columns.

    Of two spaces the model reads one.
    """
    raw = str(node.parts[0])
    if node.is_plain or not SPECIAL.search(node.shown):
        return [node]
    result: list[Node] = []

    def add(text: str) -> None:
        if text:
            result.append(Node((text,), "text", "", Spelling.of(text, is_attribute=bool(quote)).text))

    at = 0
    for match in _SPACES.finditer(raw):
        shown = Spelling.of(match[0]).text
        width = _width(shown)
        if width < 2 or not SPECIAL.search(shown):
            continue
        add(raw[at : match.start()])
        at = match.end()
        beside = raw[max(0, match.start() - 1) : match.start()], raw[match.end() : match.end() + 1]
        if width >= WIDE or any(sign and sign in _BARS for sign in beside):
            result.append(Node((match[0],), "edge", _COLUMNS))
            continue
        first, second = _SPACE.findall(match[0])
        if first.isspace() and not SPECIAL.search(first):
            add(first)
            result.append(Node((second,), "edge"))
        else:
            result.append(Node((first,), "edge"))
            add(second)
    add(raw[at:])
    return result


def _pairs(nodes: Sequence[Node]) -> dict[int, int]:
    """Return for each tag of an element that opens and closes here the index of its other tag."""
    return {i: other for pair in pairs_of(nodes) for i, other in (pair, pair[::-1])}


def _cut(nodes: Sequence[Node]) -> list[list[Node]]:
    """Cut where an element begins or ends of which only one tag is here, and between neighbouring links."""
    pairs = _pairs(nodes)
    cuts = _between_neighbours(nodes)
    open_tags: list[int] = []
    is_cut: list[bool] = []  # for each open element: is there a cut inside?

    def cut(place: int) -> None:
        cuts.add(place)
        if is_cut:
            is_cut[-1] = True

    for i, node in enumerate(nodes):
        if i in cuts:
            cut(i)
        if node.name == _COLUMNS:
            cut(i)
            cut(i + 1)
        elif node.kind == "open" and i in pairs:
            open_tags.append(i)
            is_cut.append(False)
        elif node.kind == "open":
            cut(i)
        elif node.kind == "close" and i in pairs:
            first = open_tags.pop()
            if is_cut.pop():
                cut(first)
                cut(i + 1)
        elif node.kind == "close":
            cut(i + 1)
    places = [0, *sorted(cuts - {0, len(nodes)}), len(nodes)]
    return [list(nodes[start:end]) for start, end in pairwise(places)]


def _between_neighbours(nodes: Sequence[Node]) -> set[int]:
    """Return the places between two links, and between two other elements whose words would run together."""
    cuts: set[int] = set()
    texts = [i for i, node in enumerate(nodes) if node.kind == "text" and node.shown.strip()]
    links: list[bool] = []  # for each two neighbouring texts: does a link end between them?
    was_tagged = False
    for first, second in pairwise(texts):
        run = range(first + 1, second)
        marks = [nodes[i] for i in run if nodes[i].kind != "text"]
        tags = [node for node in marks if not _is_comment(node)]
        n_open, closes = Counter[str](), set()  # elements in which the second text is, and that end after the first
        for tag in tags:
            if tag.kind == "open":
                n_open[tag.name] += 1
            elif tag.kind == "close" and n_open[tag.name]:  # an element without text
                n_open[tag.name] -= 1
            elif tag.kind == "close":
                closes.add(tag.name)
        opens = {name for name, n in n_open.items() if n}
        place = next((i for i in run if nodes[i].kind == "open"), second)
        before, after = nodes[first].shown, nodes[second].shown
        are_links = any(name in closes and (name == "a" or "-" in name) for name in opens)
        may_meet = before[-1] in ")]" or {"sub", "sup"}.isdisjoint([*closes, *opens])  # a note, but not H2O
        # an element may mark a digit of a number; two elements beside each other hold two numbers
        is_one_number = before[-1].isdigit() and after[0].isdigit() and not (closes and opens)
        meet = len(marks) == len(run) and may_meet and not is_one_number and _meet(before, after)
        if are_links or (tags and meet and all(tag.kind != "point" for tag in tags)):
            cuts.add(place)
        links.append("a" in closes)
        sign = before.strip()
        is_separator = len(links) > 1 and links[-2] and "a" in opens and not sign.strip(_SEPARATORS)
        is_apart = (was_tagged and tags) if sign == ">" else (was_tagged or tags)
        if is_separator or (is_apart and not sign.strip(_BULLETS)):  # <a>Home</a> | <a>About</a>
            cuts |= {first, place}
        was_tagged = bool(tags)
    return cuts


def _is_comment(node: Node) -> bool:
    """True for a comment, and for what a browser reads as one: words on both sides are one word."""
    return node.kind == "edge" and not node.name and str(node.parts[0]).startswith(("<!", "</"))


def _meet(before: str, after: str) -> bool:
    """True if two texts would run together: a number and another or a word, an address and a word, or a small letter
    or the end of a sentence and a capital letter."""
    last, first = before[-1], after[0]
    if last.isdigit() or first.isdigit():
        return (last.isdigit() or _is_cased(last)) and (first.isdigit() or _is_cased(first))
    is_address = "@" in before.split()[-1] and first.isalnum()
    is_abbreviation = before[-2:].isupper() and len(before) > 1 and after[1:2].islower()  # the first, before a name
    return is_address or ((last.islower() or last in ".!?:)]" or is_abbreviation) and first.isupper())


def _is_cased(char: str) -> bool:
    return char.islower() or char.isupper()


def _unit(nodes: list[Node], quote: str) -> list[Part]:
    """Return a unit, and the source before and after it."""
    pairs = _pairs(nodes)
    start, end = 0, len(nodes)
    while True:  # what stands at the edges, and elements around everything
        before = start, end
        start = _without_edge(nodes, range(start, end), pairs)
        end = _without_edge(nodes, range(end - 1, start - 1, -1), pairs) + 1
        first, last = _first_tag(nodes, range(start, end)), _first_tag(nodes, range(end - 1, start - 1, -1))
        if first >= 0 and pairs.get(first) == last and first < last:
            start, end = first + 1, last
        if (start, end) == before:
            break
    within = nodes[start:end]
    if not any(node.kind == "text" and node.shown.strip() for node in within):
        return [part for node in nodes for part in node.parts]
    outside = ([part for node in some for part in node.parts] for some in (nodes[:start], nodes[end:]))
    leading, trailing = outside
    return [*leading, _made(within, quote), *trailing]


def _first_tag(nodes: Sequence[Node], places: range) -> int:
    """Return the first place that is no blank text if it is a tag; else -1."""
    for i in places:
        if nodes[i].kind != "text":
            return i
        if nodes[i].shown.strip():
            return -1
    return -1


def _without_edge(nodes: Sequence[Node], places: range, pairs: dict[int, int]) -> int:
    """Return the place behind the markup at an edge that is no part of the sentence; ``places`` lead inwards."""
    step = places.step
    inner = places.start
    i = inner
    while i in places:
        node = nodes[i]
        if node.kind == "text":
            if node.shown.strip():
                break
        elif node.kind == "edge" or (node.kind in ("open", "close") and i not in pairs):
            inner = i + step
        elif node.kind in ("open", "close") and _is_wordless(nodes, i, pairs[i]):
            i = pairs[i]
            inner = i + step
        else:
            break
        i += step
    return inner


def _is_wordless(nodes: Sequence[Node], one: int, other: int) -> bool:
    """True if an element at an edge has nothing but pictures or nothing at all."""
    low, high = min(one, other), max(one, other)
    return high - low < 30 and all(node.kind != "point" and not node.shown.strip() for node in nodes[low : high + 1])


def _made(nodes: Sequence[Node], quote: str) -> Unit:
    """Return the unit of text and markup; an element without text becomes a placeholder."""
    pairs = _pairs(nodes)
    n_texts = [0]
    for node in nodes:
        n_texts.append(n_texts[-1] + (node.kind == "text"))
    text, tags, raw = [], [], []
    length = i = 0
    while i < len(nodes):
        node, after = nodes[i], i + 1
        raw += list(node.parts)
        if node.kind == "text":
            text.append(node.shown)
            length += len(node.shown)
        elif node.kind == "open" and i in pairs and n_texts[pairs[i]] == n_texts[i]:
            after = pairs[i] + 1
            inside = [part for other in nodes[i + 1 : after] for part in other.parts]
            tags.append(Tag(length, (*node.parts, *inside)))
            raw += inside
        else:
            kind = node.kind if node.kind in ("open", "close") else "point"
            tags.append(Tag(length, node.parts, kind, node.name))
        i = after
    source = " ".join(str(node.parts[0]) for node in nodes if node.kind == "text" and not node.is_plain)
    spelled = Spelling.of(source, is_attribute=bool(quote), quote=quote)
    unit = Unit("".join(text), tags, raw, spelled)
    join_points(unit)
    part_words(unit)
    join_notes(unit)
    return unit
