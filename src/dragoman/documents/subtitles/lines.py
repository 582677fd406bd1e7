"""Breaking a caption into lines: of equal length where that is possible, and better at a pause.

The width of a line is counted in columns: a Chinese, Japanese or Korean character, and any other wide one, takes two.
"""

from __future__ import annotations

import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from itertools import accumulate

from dragoman.languages.sentence_ends import ENDS
from dragoman.languages.words import clusters, is_unspaced_at

MOST_LINES = 2
"""Largest number of lines that a caption should have."""

_PAUSES = frozenset(ENDS + ",;:…，、；：—")
_NEVER_FIRST = frozenset(
    "、。，．・：；？！゛゜ヽヾゝゞ々ー）］｝〕〉》」』】’”%％!?.,:;)]}ぁぃぅぇぉっゃゅょァィゥェォッャュョ…"
)
_DASHES = frozenset("-\u2010\u2212\u2013\u2014")
"""Dashes that would be those of a speaker at the beginning of a line."""
_NEVER_LAST = frozenset("（［｛〔〈《「『【‘“([{$£¥")


def width(text: str) -> int:
    """Return the number of columns of a text."""
    return sum(map(_columns, text))


def _columns(character: str) -> int:
    if unicodedata.combining(character) or unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def break_places(text: str) -> list[int]:
    """Return the places in a text where a new line may begin."""
    places = [
        i for i in range(1, len(text))
        if text[i - 1].isspace() and not text[i].isspace()
        and not (text[i] in _DASHES and text[i + 1 : i + 2].isspace())
    ]  # fmt: skip
    if all(ord(character) < 0x0E00 for character in text):
        return places
    between = [
        start for start, _ in clusters(text)[1:]
        if not text[start].isspace() and not text[start - 1].isspace() and is_unspaced_at(text, start)
        and text[start] not in _NEVER_FIRST and text[start - 1] not in _NEVER_LAST
    ]  # fmt: skip
    return sorted({*places, *between})


def broken(text: str, n_lines: int, limit: int | None) -> list[int]:
    """Return the places where the second and each further line begins.

    Args:
        text: The caption, in one line.
        n_lines: Number of lines to make without a ``limit``, if the text has as many words.
        limit: Largest number of columns in a line; None: no limit. A longer word has a line for itself.
    """
    places = break_places(text)
    columns = [0, *accumulate(map(_columns, text))]
    if limit is not None:
        n_lines = len(_filled(places, columns, limit, len(text))) + 1
    n_lines = min(n_lines, len(places) + 1)
    if n_lines < 2:
        return []
    latest = _filled(places, columns, limit, len(text)) if limit is not None else []
    earliest = _filled_from_end(places, columns, limit, n_lines) if limit is not None else []
    breaks: list[int] = []
    at = 0
    for line in range(1, n_lines):
        low = bisect_right(places, at)
        high = len(places) - (n_lines - 1 - line)  # as many places are left for the other breaks
        if limit is not None:
            high = min(high, max(low + 1, bisect_right(places, _furthest(columns, at, limit))))
            low = max(low, min(high - 1, bisect_left(places, earliest[line - 1])))
            high = max(low + 1, min(high, bisect_right(places, latest[line - 1]) if line <= len(latest) else high))
        at = _best(text, places, (low, max(high, low + 1)), columns, columns[-1] * line / n_lines)
        breaks.append(at)
    return breaks


def _best(
    text: str, places: Sequence[int], window: tuple[int, int], columns: Sequence[int], wanted: float
) -> int:  # fmt: skip
    """Return the place nearest to ``wanted`` columns in a window of ``places``; a pause counts as nearer."""
    low, high = window[0], min(window[1], len(places))
    slack = max(4.0, columns[-1] / 8)

    def behind(find: Callable[..., int], column: float) -> int:
        return find(places, column, low, high, key=lambda place: columns[place])

    middle = behind(bisect_left, wanted)
    near = list(places[max(low, middle - 1) : min(high, middle + 1)])
    first, last = behind(bisect_left, wanted - slack), behind(bisect_right, wanted + slack)
    near += places[first : min(last, first + 64)]
    return min(
        near or places[low : low + 1],
        key=lambda place: abs(columns[place] - wanted) - (slack if _is_pause(text, place) else 0),
    )


def _is_pause(text: str, place: int) -> bool:
    """True if a mark such as a comma stands before the space before a place."""
    return bool(_PAUSES & set(text[max(0, place - 2) : place]))


def _furthest(columns: Sequence[int], at: int, limit: int) -> int:
    """Return the last place at which a line that begins at ``at`` may end."""
    return bisect_right(columns, columns[at] + limit + 1) - 1  # the space before a break is not shown


def _filled(places: Sequence[int], columns: Sequence[int], limit: int, end: int) -> list[int]:
    """Return the breaks of lines that are filled from the first on."""
    breaks: list[int] = []
    at = 0
    while columns[end] - columns[at] > limit:
        low = bisect_right(places, at)
        if low == len(places):
            break
        at = places[max(low, bisect_right(places, _furthest(columns, at, limit)) - 1)]
        breaks.append(at)
    return breaks


def _filled_from_end(places: Sequence[int], columns: Sequence[int], limit: int, n_lines: int) -> list[int]:
    """Return the earliest place of each break, so that the lines after it are not too long."""
    earliest: list[int] = []
    end = len(columns) - 1
    for _ in range(n_lines - 1):
        first = bisect_left(columns, columns[end] - limit)
        i = min(bisect_left(places, first), max(0, bisect_left(places, end) - 1))
        end = places[i]
        earliest.append(end)
    return earliest[::-1]
