"""Places of cuts in a translation: the ends of subtitles and lines, which all text keeps its side of.

A cut stands between two words, or characters of a script without spaces: where the alignment puts the words before it,
or at its share of the text, if possible after punctuation. Where there are enough words, none are missing between cuts.
"""

from __future__ import annotations

import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heappush, heappushpop

from dragoman.documents.tags.pieces import Pieces, Side
from dragoman.languages.sentence_ends import ENDS
from dragoman.languages.words import clusters

REACH = 40
"""Number of characters that a cut may move to fall on a pause."""

_PAUSES = frozenset(ENDS + ",;:…，、；：")


@dataclass(frozen=True)
class Cut:
    """A cut of the source."""

    place: int  # number of characters before it
    share: float | None  # fraction of the translation before it; None: anywhere between two pieces
    by_words: bool  # stands where the alignment puts the words before it
    n_needed: int  # least number of pieces between it and the cut before it


@dataclass(frozen=True)
class Edges:
    """Places of a text where a cut may stand, and the number of pieces before each."""

    places: Sequence[int]
    counts: Sequence[int]


def cut_places(cuts: Sequence[Cut], n_needed_last: int, tgt: Side, pieces: Pieces) -> list[tuple[int, int]]:
    """Return for each cut the number of pieces before it, and of characters; -1 for one without a share.

    Args:
        cuts: In order.
        n_needed_last: Least number of pieces after the last cut.
        tgt: The translation.
        pieces: Its pieces, which no cut divides, and those of the source.
    """
    edges = _edges(tgt, pieces)
    by_words = _by_words(cuts, pieces)
    n_pieces, end = len(pieces.tgt), len(tgt.text)
    chosen: list[int] = []  # for each cut the number of its edge; without a share, of pieces
    last_edge, last_count, previous = -1, 0, 0
    for cut, (low, high) in zip(cuts, by_words, strict=True):
        least = last_count + cut.n_needed
        if cut.share is None:
            last_count = min(max(low, least), n_pieces)
            chosen.append(last_count)
            continue
        if cut.by_words:
            edge = _between(edges, low, high, cut.share * end, tgt.text)
        else:
            edge = _near(edges, previous, cut.share, tgt.text)
        edge = max(edge, last_edge + 1, bisect_left(edges.counts, least))
        last_edge = edge = min(edge, len(edges.places))
        last_count = edges.counts[edge] if edge < len(edges.places) else n_pieces
        previous = edges.places[edge] if edge < len(edges.places) else end
        chosen.append(edge)
    return _with_enough_behind(cuts, chosen, n_needed_last, edges, (n_pieces, end))


def _with_enough_behind(
    cuts: Sequence[Cut], chosen: list[int], n_needed_last: int, edges: Edges, sizes: tuple[int, int]
) -> list[tuple[int, int]]:
    """Return the places of cuts, moved back where too few pieces stand behind them."""
    n_pieces, end = sizes
    most, next_edge = n_pieces - n_needed_last, len(edges.places) + 1
    places: list[tuple[int, int]] = []
    for cut, edge in zip(reversed(cuts), reversed(chosen), strict=True):
        if cut.share is None:
            count = max(0, min(edge, most))
            places.append((count, -1))
        else:
            last = min(next_edge - 1, bisect_right(edges.counts, most) - 1)
            edge = next_edge = max(0, min(edge, last if most < n_pieces else next_edge - 1))
            is_inside = edge < len(edges.places)
            count = edges.counts[edge] if is_inside else n_pieces
            places.append((count, edges.places[edge] if is_inside else end))
        most = count - cut.n_needed
    return places[::-1]


def _edges(tgt: Side, pieces: Pieces) -> Edges:
    """Return where a cut may stand: after a space; without spaces, between characters, but not before a comma."""
    text = tgt.text
    places = [i for i in range(1, len(text)) if text[i - 1].isspace() and not text[i].isspace()]
    if tgt.unspaced:
        between = [start for start, _ in clusters(text)[1:] if not (text[start].isspace() or text[start - 1].isspace())]
        places = sorted({*places, *(i for i in between if _may_part(text[i - 1], text[i]))})
    starts = [start for start, _ in pieces.tgt]
    counted = [(place, bisect_left(starts, place)) for place in places]
    outside = [(place, n) for place, n in counted if n == 0 or place >= pieces.tgt[n - 1][1]]
    return Edges([place for place, _ in outside], [n for _, n in outside])


def _may_part(before: str, after: str) -> bool:
    """True if a line may end between two characters: no mark that closes begins one, none that opens ends one."""
    return unicodedata.category(after) not in ("Pe", "Pf", "Po") and unicodedata.category(before) not in ("Ps", "Pi")


def _near(edges: Edges, previous: int, share: float, text: str) -> int:
    """Return the edge after ``previous`` that is nearest to a share of the text; a pause counts as nearer."""
    wanted, slack = share * len(text), min(REACH, len(text) / 12)
    near = bisect_left(edges.places, wanted)
    first = max(bisect_right(edges.places, previous), bisect_left(edges.places, wanted - slack) - 1, 0)
    last = max(first + 1, bisect_right(edges.places, wanted + slack) + 1, near + 1)
    return min(
        range(first, min(last, len(edges.places))), default=len(edges.places),
        key=lambda i: abs(edges.places[i] - wanted) - (slack if _is_pause(text, edges.places[i]) else 0),
    )  # fmt: skip


def _between(edges: Edges, low: int, high: int, wanted: float, text: str) -> int:
    """Return an edge with ``low`` to ``high`` pieces before it: after a pause, or the nearest to a place."""
    first, last = bisect_left(edges.counts, low), bisect_right(edges.counts, high)
    return min(
        range(first, min(last, first + REACH)), default=max(0, first - 1),
        key=lambda i: (not _is_pause(text, edges.places[i]), abs(edges.places[i] - wanted)),
    )  # fmt: skip


def _is_pause(text: str, place: int) -> bool:
    return bool(_PAUSES & set(text[max(0, place - 2) : place]))


def _by_words(cuts: Sequence[Cut], pieces: Pieces) -> list[tuple[int, int]]:
    """Return the least and the largest number of pieces before each cut by which most words are on their side.

    Each piece is to stand in the part of its source. Parts may only grow from piece to piece, so this is an isotonic
    regression by absolute distances, found with a heap: where a part is smaller than one before it, both take a median.
    """
    if not any(cut.by_words for cut in cuts):
        return [(0, 0)] * len(cuts)
    starts, cut_starts = [start for start, _ in pieces.src], [cut.place for cut in cuts]
    labelled = [t for t, sources in enumerate(pieces.sources) if sources]
    labels = [bisect_right(cut_starts, starts[own[len(own) // 2]]) for own in pieces.sources if own]
    heap: list[int] = []  # of the negative labels: its first is the largest
    parts = []
    for label in labels:
        heappush(heap, -label)
        if -heap[0] > label:
            heappushpop(heap, -label)
        parts.append(-heap[0])
    for i in range(len(parts) - 2, -1, -1):
        parts[i] = min(parts[i], parts[i + 1])
    ranges = []
    for number in range(len(cuts)):
        i = bisect_right(parts, number)
        low = labelled[i - 1] + 1 if i else 0
        ranges.append((low, labelled[i] if i < len(labelled) else len(pieces.tgt)))
    return ranges
