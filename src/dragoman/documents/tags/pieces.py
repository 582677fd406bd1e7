"""The least parts of a unit and of its translation that tags may part, and which of them translate each other.

    pieces = link(Side("a red-hot cat"), Side("eine glutrote Katze"), ((0, 0), (1, 1), (2, 2)), [])
    pieces.src       # [(0, 1), (2, 9), (10, 13)]
    pieces.sources   # [[0], [1], [2]]: for each piece of the translation, those of the source

A piece is a word without the punctuation around it, or a character of a script without spaces. Where a tag divides a
word of the source, its parts are pieces, and the words that translate it are divided too.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

from dragoman.decoding.words import Links, word_numbers
from dragoman.languages.words import CHARACTERS, CLUSTER_OF_WORD, clusters, is_unspaced_at, kinds
from dragoman.translation.keeping.protected import Span, find

WordSpan = tuple[int, int]
"""First character of a word, and the one after its last."""

_STRETCH = re.compile(f"{CHARACTERS}|{CLUSTER_OF_WORD}")
_WIDE = "\u2e80"  # Chinese and Japanese punctuation begins here; it always parts words


@dataclass(frozen=True)
class Side:
    """A text, and whether its language is written without spaces between words."""

    text: str
    unspaced: bool = False


@dataclass(frozen=True)
class Pieces:
    """Pieces of a unit and of its translation, in order, as spans of characters."""

    src: Sequence[WordSpan]
    tgt: Sequence[WordSpan]
    sources: Sequence[Sequence[int]]  # for each piece of the translation: numbers of the source's pieces, sorted
    weights: Sequence[int]  # of each piece of the translation: its part of its word, which has WHOLE_WORD
    src_worded: Sequence[bool]  # for each piece of the source: it has letters or digits outside code and addresses
    tgt_worded: Sequence[bool]  # and of the translation


WORDLESS = ("code", "markup", "placeholder", "emoji", "url", "e-mail address")
"""Kinds of protected spans that are no words: an element that had words does not keep any by enclosing one of them."""

CERTAIN = 4
"""Number of words that a protected span weighs which stands once in both texts."""

WHOLE_WORD = 5040
"""Weight of a word, which is divided evenly among its pieces: many numbers divide it."""


@dataclass
class _Word:
    """Stretches of letters that no space or wide punctuation parts."""

    span: WordSpan
    stretches: list[WordSpan]
    numbers: range = range(0)  # of the words of the alignment in it
    cuts: Sequence[int] = ()  # places of tags in it


def link(src: Side, tgt: Side, alignment: Links | None, tag_places: Sequence[int]) -> Pieces:
    """Return the pieces of two texts and their links.

    Args:
        src, tgt: A text and its translation.
        alignment: Links of their words; without any, pieces are linked by their relative position.
        tag_places: Sorted places of tags in the source.
    """
    # a sign goes where the words around it go, with the spaces of its element
    src_spans, tgt_spans = ([span for span in find(side.text) if span.kind != "sign"] for side in (src, tgt))
    src_words, tgt_words = _words(src, src_spans, tag_places), _words(tgt, tgt_spans, ())
    src_of, tgt_of = _by_number(src_words), _by_number(tgt_words)
    links = [pair for pair in alignment or () if pair[0] in src_of and pair[1] in tgt_of]
    cut: dict[int, dict[int, None]] = {}  # for a word of the translation: words that it translates, if tags divide one
    for number, other in links:
        is_divided = any(src_words[i].cuts for i in src_of[number])
        for n in tgt_of[other] if is_divided else ():
            cut.setdefault(n, {}).update(dict.fromkeys(src_of[number]))
    src_pieces = [_source_pieces(word) for word in src_words]
    tgt_pieces = [
        _divided(word, tgt.text, [src_words[i] for i in sorted(cut.get(n, ()))], src.text)
        for n, word in enumerate(tgt_words)
    ]
    all_src = [piece for own in src_pieces for piece in own]
    all_tgt = [piece for own in tgt_pieces for piece in own]
    firsts = [[0, *accumulate(map(len, own))] for own in (src_pieces, tgt_pieces)]
    linked: list[set[int]] = [set() for _ in all_tgt]
    room = MOST_PAIRS * (len(all_src) + len(all_tgt))
    for number, other in links:
        src_numbers = [i for word in src_of[number] for i in range(firsts[0][word], firsts[0][word + 1])]
        tgt_numbers = [i for word in tgt_of[other] for i in range(firsts[1][word], firsts[1][word + 1])]
        room -= len(src_numbers) + len(tgt_numbers)
        if room < 0:  # a hostile text
            break
        for a, b in _pairs([all_src[i] for i in src_numbers], [all_tgt[i] for i in tgt_numbers]):
            linked[tgt_numbers[b]].add(src_numbers[a])
    if not links:
        for a, b in _pairs(all_src, all_tgt):
            linked[b].add(a)
    weights = _weights(tgt_words, tgt_pieces)
    certain = dict(_same_spans((src_spans, all_src), (tgt_spans, all_tgt)))
    for own in linked if certain else ():
        own.difference_update(certain)  # no other word translates them
    for source, target in certain.items():
        linked[target], weights[target] = {source}, CERTAIN * WHOLE_WORD
    return Pieces(
        all_src, all_tgt, [sorted(own) for own in linked], weights,
        _worded(src.text, src_spans, all_src), _worded(tgt.text, tgt_spans, all_tgt),
    )  # fmt: skip


def _worded(text: str, spans: Sequence[Span], pieces: Sequence[WordSpan]) -> list[bool]:
    """Return for each piece whether it has letters or digits outside the spans that are no words."""
    text = _without_code(text, spans)
    return [any(map(str.isalnum, text[start:end])) for start, end in pieces]


def _without_code(text: str, spans: Sequence[Span]) -> str:
    """Return a text with spaces in the place of the spans that are no words."""
    edges = [0, *(edge for span in spans if span.kind in WORDLESS for edge in (span.start, span.end)), len(text)]
    return "".join(" " * (end - start) if i % 2 else text[start:end] for i, (start, end) in enumerate(pairwise(edges)))


def has_words(text: str) -> bool:
    """True if a text has letters or digits, and not only in code, placeholders, tags, emoji and addresses."""
    is_certain = not any(map(str.isalnum, text)) or not _MAY_BE_CODE.search(text)  # the usual case
    return any(map(str.isalnum, text if is_certain else _without_code(text, find(text))))


_MAY_BE_CODE = re.compile(r"[`<&{\[%$@_:;=^#*\ufe0f\u20e3-]|[xX]D|www")
"""A sign of which each span that is no word has one, if it has a letter or digit."""


def _same_spans(
    src: tuple[Sequence[Span], Sequence[WordSpan]], tgt: tuple[Sequence[Span], Sequence[WordSpan]]
) -> Iterator[tuple[int, int]]:
    """Yield pairs of pieces that are the same protected span, which stands once in each text: a certain link.

    Args:
        src, tgt: The spans of a text, and its pieces.
    """
    numbers: list[dict[str, int]] = []
    for spans, pieces in (src, tgt):
        counts = Counter(span.text for span in spans)
        unique = [span for span in spans if counts[span.text] == 1]
        places = [(span.text, bisect_left(pieces, (span.start, span.end))) for span in unique]
        edges = {span.text: (span.start, span.end) for span in unique}
        numbers.append({text: i for text, i in places if pieces[i : i + 1] == [edges[text]]})
    for text, source in numbers[0].items():
        if text in numbers[1]:
            yield source, numbers[1][text]


def _weights(words: Sequence[_Word], pieces: Sequence[Sequence[WordSpan]]) -> list[int]:
    """Return the weight of each piece: those of one word of the alignment share a word's weight."""
    sizes = Counter[int]()
    for word, own in zip(words, pieces, strict=True):
        sizes[word.numbers[0]] += len(own)
    return [max(1, WHOLE_WORD // sizes[word.numbers[0]]) for word, own in zip(words, pieces, strict=True) for _ in own]


MOST_PAIRS = 50
"""Average number of links of a piece, above which the others are left out."""


def _by_number(words: Sequence[_Word]) -> dict[int, list[int]]:
    """Return for the number of a word of the alignment the words here; characters without spaces may share one."""
    result: dict[int, list[int]] = {}
    for i, word in enumerate(words):
        for number in word.numbers:
            result.setdefault(number, []).append(i)
    return result


def _words(side: Side, spans: Sequence[Span], tag_places: Sequence[int]) -> list[_Word]:
    """Return the words of a text; a protected span, such as an address or a placeholder, is in one word."""
    text = side.text
    words: list[_Word] = []
    for part in _parts(text, spans):
        start, end = part.span
        last = words[-1] if words else None
        if last is not None and _continues(text, last.span[1], start, end):
            last.stretches += part.stretches
            last.span = last.span[0], end
        else:
            words.append(part)
    numbers = word_numbers(text, side.unspaced)
    for word in words:
        start, end = word.span
        word.numbers = range(numbers[start], numbers[end - 1] + 1)
        word.cuts = sorted({*tag_places[bisect_right(tag_places, start) : bisect_left(tag_places, end)]})
    return words


def _parts(text: str, protected: Sequence[Span]) -> list[_Word]:
    """Return the stretches of letters of a text, and its protected spans with the stretches in them, in order."""
    spans = [span for span in protected if span.kind == "code" or not any(map(str.isspace, span.text))]
    parts, at = [], 0
    for match in _STRETCH.finditer(kinds(text)):
        start, end = match.span()
        while at < len(spans) and spans[at].start < end:
            parts.append(_protected(spans[at]))
            at += 1
        last = parts[-1] if parts else None
        if last is not None and end <= last.span[1] and last.stretches[:1] == [last.span]:
            continue  # inside a character reference
        if last is not None and start < last.span[1]:
            last.stretches.append((start, end))
            last.span = min(start, last.span[0]), max(end, last.span[1])
        else:
            parts.append(_Word((start, end), [(start, end)]))
    return [*parts, *map(_protected, spans[at:])]


def _protected(span: Span) -> _Word:
    """Return the part that is a protected span; the letters of a character reference, such as ``&gt;``, are no word."""
    own = span.start, span.end
    return _Word(own, [own] if span.text.startswith("&") else [])


def _continues(text: str, end: int, start: int, stop: int) -> bool:
    """True if the part from ``start`` to ``stop`` continues the word up to ``end``: narrow punctuation is between."""
    between = text[end:start]
    if not between or len(between.split()) != 1 or between.strip() != between or max(between) >= _WIDE:
        return False
    return not is_unspaced_at(text, end - 1) and not is_unspaced_at(text, stop - 1)


def _source_pieces(word: _Word) -> list[WordSpan]:
    """Return the pieces of a word of the source: one, or one on each side of the tags in it."""
    if not word.cuts or not word.stretches:
        return [word.span]
    pieces: list[WordSpan] = []
    parts = list(word.stretches)
    edges = [*word.cuts, max(word.span[1], parts[-1][1])]
    at = 0
    for edge in edges:
        own: list[WordSpan] = []
        while at < len(parts) and parts[at][0] < edge:
            start, end = parts[at]
            own.append((start, min(end, edge)))
            if end > edge:
                parts[at] = (edge, end)
                break
            at += 1
        if own:
            pieces.append((own[0][0], own[-1][1]))
    return pieces


def _divided(word: _Word, text: str, sources: Sequence[_Word], src: str) -> list[WordSpan]:
    """Return the pieces of a word of the translation: one, or several if tags divide a word that it translates."""
    start, end = word.span
    cut = [source for source in sources if source.cuts]
    if not cut or not word.stretches:
        return [(start, end)]
    for source in sources:  # the same word, such as CO2 or an address, is divided at the same places
        first, last = source.span
        if src[first:last] == text[start:end]:
            move = start - first
            stretches = [(a + move, b + move) for a, b in source.stretches]
            return _source_pieces(_Word((start, end), stretches, word.numbers, [place + move for place in source.cuts]))
    inside = any(a < place < b for source in cut for place in source.cuts for a, b in source.stretches)
    if len(cut) == 1 and 1 < len(word.stretches) == len(cut[0].stretches):  # such as a/b@2 in other letters
        cuts = [_same_place(place, cut[0].stretches, word.stretches) for place in cut[0].cuts]
        return _source_pieces(_Word(word.span, list(word.stretches), word.numbers, cuts))
    pieces: list[WordSpan] = []
    for a, b in word.stretches:
        pieces += _letters(text, (a, b)) if inside and text[a] != "&" else [(a, b)]
    return pieces


def _same_place(place: int, src: Sequence[WordSpan], tgt: Sequence[WordSpan]) -> int:
    """Return the place in a word whose stretches correspond to those of another: inside one, by its share of it."""
    i = bisect_right(src, (place, place)) - 1
    if i < 0 or place >= src[i][1]:
        return tgt[min(i + 1, len(tgt) - 1)][0] if i + 1 < len(tgt) else tgt[-1][1]
    (start, end), (tgt_start, tgt_end) = src[i], tgt[i]
    return tgt_start + round((place - start) * (tgt_end - tgt_start) / (end - start))


def _letters(text: str, span: WordSpan) -> list[WordSpan]:
    """Return the letters of a stretch, and each number in it as a whole."""
    pieces: list[WordSpan] = []
    for i, j in clusters(text[span[0] : span[1]]):
        start, end = span[0] + i, span[0] + j
        if pieces and text[pieces[-1][0]].isdigit() and text[start].isdigit():
            start = pieces.pop()[0]
        pieces.append((start, end))
    return pieces


def _pairs(src: Sequence[WordSpan], tgt: Sequence[WordSpan]) -> list[tuple[int, int]]:
    """Return pairs of pieces at the same relative place; each piece is in at least one of them."""
    if len(src) == len(tgt):
        return [(i, i) for i in range(len(src))]
    if not src or not tgt:
        return []
    if len(src) == 1 or len(tgt) == 1:
        return [(a, b) for a in range(len(src)) for b in range(len(tgt))]
    sizes = [[0, *accumulate(end - start for start, end in own)] for own in (src, tgt)]
    pairs = set()
    for i, (here, there) in enumerate((sizes, sizes[::-1])):
        for n in range(len(here) - 1):
            middle = (here[n] + here[n + 1]) / 2 * there[-1] / here[-1]
            other = min(max(bisect_right(there, middle) - 1, 0), len(there) - 2)
            pairs.add((n, other) if i == 0 else (other, n))
    return sorted(pairs)
