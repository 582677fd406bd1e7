"""Detects degenerate translations: loops, copies of the source, empty, too long, or with a part missing.

Sequence-to-sequence models may repeat themselves, copy the source, or end at once (https://arxiv.org/abs/1908.04319,
https://arxiv.org/abs/1803.00047, https://arxiv.org/abs/1908.10090), or leave out a part, which then gets no attention
(https://arxiv.org/abs/1601.04811). Every rule compares the translation with its source: "ha ha ha ha ha" may be
translated so, and names, numbers or addresses may be copied. Nothing here needs a model.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from operator import eq
from typing import NamedTuple

from dragoman.languages.known import known
from dragoman.languages.words import (
    BINDER,
    CHARACTERS,
    CLUSTER_OF_WORD,
    HAN,
    IDEOGRAPH,
    LETTERS,
    MARKS,
    SIGN,
    UNSPACED,
    clusters,
    kind_of,
    kinds,
)

LOOP_PERIOD = 12
LOOP_REPEATS = 3
SIGN_REPEATS = 4
LOOP_CHARACTERS = 10
TWICE_WORDS = 3
"""A phrase of at most ``LOOP_PERIOD`` units is a loop when it comes this often in a row: ``LOOP_REPEATS`` for words,
``SIGN_REPEATS`` for digits and signs alone, twice for ``TWICE_WORDS`` words or more. Inside a word, or a text without
spaces of an alphabet such as Thai, a loop must span ``LOOP_CHARACTERS``. A word that is said twice is no loop: many
languages say "slowly slowly"."""

SHARES_OF_WORD = {IDEOGRAPH: 0.5, UNSPACED: 0.25, BINDER: 0.25}
"""Words that a unit of a script without spaces counts as, by the kind of its first character."""

CLUSTERS_OF_WORD = 3
"""Units of a text in an alphabet without spaces, such as Thai, that count as one unit of another: periods, n-grams and
lengths grow by this factor."""

ONE_BY_ONE = 8
MOST_SCANS = 16
"""A text is scanned so often for loops that are removed. The first scans remove the longest loop alone, as that may
change others or leave a new one; further scans remove all that are apart, as a long line may have thousands."""

REPETITION_UNITS = 24
MAX_REPETITION = 0.33
"""Largest fraction of 4-grams that may repeat earlier ones, in a text of ``REPETITION_UNITS`` units or more."""

COPY_WORDS = 4
COPY_SHARE = 0.75
"""A translation is a copy if the source has this many ordinary words and this fraction of them is in both."""

LONG_RATIO = 2.5
LONG_FLOOR = 12
"""A translation is too long if it has more than ``LONG_RATIO`` times the subwords of its source plus ``LONG_FLOOR``."""

LOST_TOKENS = 5
"""A translation is short if nearly all of the training text is longer for such sources, and this many source subwords
in a row got no attention."""

FAULTS = ("empty", "loop", "long", "short", "copy")
"""All faults, in the order of messages."""

_UNIT = re.compile(rf"{CHARACTERS}|{CLUSTER_OF_WORD}|{SIGN}")  # both are patterns of the kinds of a text
_WORD = re.compile(rf"{LETTERS}(?:['’-]{LETTERS})*+|{CLUSTER_OF_WORD}")
_PLAIN_UNIT = re.compile(rf"[{HAN}]|[^\W{HAN}]+|[^\w\s]")  # of a text that is its own kinds
_PLAIN_WORD = re.compile(rf"[{HAN}]|[^\W\d_{HAN}]+(?:['’-][^\W\d_{HAN}]+)*+")
_STRETCH = re.compile(r"(.{1,8}?)\1+")  # characters that come twice or more in a row
_ADDRESS = re.compile(r"://|[@/\\_=<>{}#|]|\w[.:]\w")  # addresses, paths, code


class Run(NamedTuple):
    """A part of a text that repeats a phrase."""

    repeats: int
    start: int  # in characters
    once: int  # start of the second repeat
    end: int
    words: bool  # True: units are repeated; False: characters


@dataclass(frozen=True)
class Sizes:
    """Lengths of a translation and its source in subwords."""

    src: int
    tgt: int
    ended: bool = True  # False if the search stopped at the greatest length
    lost: int = 0  # longest run of source subwords without attention; 0: not measured


def faults(src: str, output: str, sizes: Sizes, src_lang: str | None, tgt_lang: str | None) -> tuple[str, ...]:
    """Return the ``FAULTS`` of a translation.

    Args:
        src: The source, not blank.
        output: Its translation.
        src_lang, tgt_lang: A copy is no fault if a language is unknown, or both are the same or of one family.
    """
    if not output.strip():
        return ("empty",)
    has = {
        "loop": is_loop(src, output),
        "long": not sizes.ended or sizes.tgt > LONG_RATIO * sizes.src + LONG_FLOOR,
        "short": sizes.lost >= LOST_TOKENS,
        "copy": differ(src_lang, tgt_lang) and is_copy(src, output),
    }
    return tuple(fault for fault in FAULTS if has.get(fault))


def is_loop(src: str, output: str) -> bool:
    """True if the translation repeats itself far more than its source does."""
    repeated = repetition(output)
    return bool(_loops(src, output)) or (repeated > MAX_REPETITION and repeated > 1.5 * repetition(src))


def _loops(src: str, output: str) -> list[Run]:
    """Return the repeated parts of ``output``, but those that the source repeats as often."""
    long = [
        run
        for run in runs(output, 2)
        if run.end - run.start >= LOOP_CHARACTERS
        or (run.words and kind_of(output[run.start]) not in (UNSPACED, BINDER))
    ]
    long = [
        run
        for run in long
        if run.repeats >= SIGN_REPEATS
        or (run.repeats >= LOOP_REPEATS and _has_letters(output, run))
        or (run.words and _is_phrase_twice(output, run))
    ]
    if not long:  # the usual case
        return []
    most = _most_repeats(src)
    return [run for run in long if run.repeats > 1.5 * most[_has_letters(output, run)]]


@lru_cache(maxsize=4)  # a translation is compared with its source again when a loop is removed
def _most_repeats(text: str) -> Mapping[bool, int]:
    """Return the largest number of repeats in a text, of text with letters (True) and without."""
    most = {True: 1, False: 1}
    for run in runs(text, 2):
        if run.words or run.repeats > 2 or run.end - run.start >= 4:  # counts "haha", but not the l of "hello"
            letters = _has_letters(text, run)
            most[letters] = max(most[letters], run.repeats)
    return most


def _has_letters(text: str, run: Run) -> bool:
    """True if the repeated text has letters."""
    return any(character.isalpha() for character in text[run.start : run.once])


def _is_phrase_twice(text: str, run: Run) -> bool:
    """True if a phrase of ``TWICE_WORDS`` words or more comes again; see ``SHARES_OF_WORD``."""
    once, again = (_words(part.casefold()) for part in (text[run.start : run.once], text[run.once : run.end]))
    n_words = sum(SHARES_OF_WORD.get(kind_of(word[0]), 1.0) for word in once)
    return n_words >= TWICE_WORDS and again[: len(once)] == once


def _words(text: str) -> list[str]:
    """Return the words of a text, without numbers; of a script without spaces, its clusters."""
    simple = kinds(text)
    if simple is text:  # the usual case
        return _PLAIN_WORD.findall(text)
    return [text[match.start() : match.end()] for match in _WORD.finditer(simple)]


def _clusters_of_unit(simple: str) -> int:
    """Return ``CLUSTERS_OF_WORD`` if a text, given by its kinds, is for the most part in an alphabet without spaces."""
    if UNSPACED not in simple:  # the usual case
        return 1
    n_others = len(simple) - sum(simple.count(kind) for kind in MARKS + BINDER + " ")
    return CLUSTERS_OF_WORD if 2 * simple.count(UNSPACED) > n_others else 1


def _units(text: str, simple: str) -> list[tuple[int, int]]:
    """Return start and end of each unit of a text: words, signs, and clusters of scripts without spaces."""
    return [match.span() for match in (_PLAIN_UNIT if simple is text else _UNIT).finditer(simple)]


def runs(text: str, least: int) -> list[Run]:
    """Return the parts of ``text`` that repeat units (words, ideographs, signs) or characters ``least`` times."""
    simple = kinds(text)
    spans = _units(text, simple)
    units = [text[start:end].casefold() for start, end in spans]
    repeated = []
    longest = LOOP_PERIOD * _clusters_of_unit(simple) if len(set(units)) < len(units) else 0
    for period in range(1, longest + 1):
        if sum(map(eq, units, units[period:])) < (least - 1) * period - (period > 2):
            continue  # the usual case: too few units equal the one a period before
        same = 0  # number of units in a row that equal the one a period before
        for i in range(period, len(units) + 1):
            if i < len(units) and units[i] == units[i - period]:
                same += 1
                continue
            repeats = (same + (period > 2)) // period + 1  # "a b, a b, a b, a b" has no comma at its end
            if repeats >= least:
                first = i - same - period
                last = min(first + repeats * period, i) - 1
                repeated.append(Run(repeats, spans[first][0], spans[first + period][0], spans[last][1], True))
            same = 0
    is_plain = simple is text
    edges = list[int]()
    for match in _STRETCH.finditer(text):
        period, (start, end) = len(match[1]), match.span()
        if not is_plain:  # no cluster is divided where the stretch begins and ends
            edges = edges or [*(first for first, _ in clusters(text)), len(text)]
            start, end = edges[bisect_left(edges, start)], edges[bisect_right(edges, end) - 1]
        repeats = (end - start) // period
        if repeats >= least:
            repeated.append(Run(repeats, start, start + period, start + repeats * period, False))
    return repeated


def repetition(text: str, n: int = 4) -> float:
    """Return the fraction of a text's ``n``-grams that came before in it; 0 below ``REPETITION_UNITS`` units.

    seq-rep-n of https://arxiv.org/abs/1908.04319, on words, ideographs and signs. It also detects loops with changing
    parts, and loops of whole sentences.
    """
    simple = kinds(text)
    if simple is text:  # the usual case
        units = _PLAIN_UNIT.findall(text)
    else:
        units = [text[start:end] for start, end in _units(text, simple)]
    factor = _clusters_of_unit(simple)
    if len(units) < REPETITION_UNITS * factor:
        return 0.0
    n *= factor
    ngrams = list(zip(*(units[i:] for i in range(n)), strict=False))
    return 1 - len(set(ngrams)) / len(ngrams)


def is_copy(src: str, output: str) -> bool:
    """True if the translation consists of the ordinary words of its source.

    Names, numbers, addresses and code do not count: they are the same in other languages.
    """
    src_words, lowered = Counter(ordinary_words(src)), output.lower()
    if sum(n for word, n in src_words.items() if word in lowered) < COPY_SHARE * src_words.total():
        return False  # the usual case, without splitting the output into words
    words = Counter(ordinary_words(output))
    most = max(src_words.total(), words.total())
    return len(src_words) >= COPY_WORDS and (src_words & words).total() >= COPY_SHARE * most


def ordinary_words(text: str) -> list[str]:
    """Return the lower-case words of a text; words with a capital may be names.

    In a text all in capitals, only phrases of ``COPY_WORDS`` words or more count: shorter ones may be lists of names.
    """
    if _ADDRESS.search(text):
        text = " ".join(chunk for chunk in text.split() if not _ADDRESS.search(chunk))
    if text.isupper():
        parts = [_words(part) for part in re.split(r"[,;:.!?]", text)]
        return [word.lower() for part in parts if len(part) >= COPY_WORDS for word in part]
    return [word for word in _words(text) if word == word.lower()]


def neighbours(text: str) -> tuple[str, ...]:
    """Return each pair of neighbouring ordinary words of a text once, as it is written."""
    ordinary = set(ordinary_words(text))
    spans = [match.span() for match in _WORD.finditer(kinds(text))]
    words = [(start, end) for start, end in spans if text[start:end].lower() in ordinary]
    pairs = [(left, right) for left, right in pairwise(words) if not text[left[1] : right[0]].strip()]
    return tuple(dict.fromkeys(text[left[0] : right[1]] for left, right in pairs))


def differ(src_lang: str | None, tgt_lang: str | None) -> bool:
    """True if both languages are known and not related, so that a sentence is not the same in both."""
    src, tgt = known(src_lang), known(tgt_lang)
    related = src.code == tgt.code or (src.family == tgt.family != "")
    return bool(src.code and tgt.code) and not related


def without_runs(src: str, output: str) -> str:
    """Return ``output`` with its loops, as far as ``MOST_SCANS`` scans find them, reduced to their first repeats.

    Where the source repeats itself too, it stays.
    """
    for scan in range(MOST_SCANS):
        loops = sorted(_loops(src, output), key=lambda run: run.once - run.end)
        if not loops:  # the usual case
            break
        output = _with_first_repeats(output, loops[:1] if scan < ONE_BY_ONE else _apart(loops))
    return output


def _apart(loops: Sequence[Run]) -> list[Run]:
    """Return the first loops that neither overlap nor touch, in the order of the text."""
    chosen: list[Run] = []
    for run in loops:
        place = bisect_left(chosen, run.start, key=lambda other: other.end)
        if place == len(chosen) or run.end < chosen[place].start:
            chosen.insert(place, run)
    return chosen


def _with_first_repeats(text: str, loops: Sequence[Run]) -> str:
    """Return a text with each of some loops, in its order, reduced to the first repeat."""
    parts, end = list[str](), 0
    for run in loops:
        once = text[end : run.once]
        parts.append(once.rstrip() if run.words else once)
        end = run.end
    return "".join([*parts, text[end:]])


def without_loops(src: str, output: str) -> str:
    """Return ``output`` without loops: reduced by ``without_runs``, and if need be cut at its first repeated 4-gram."""
    output = without_runs(src, output)
    if is_loop(src, output):
        simple = kinds(output)
        spans, n = _units(output, simple), 4 * _clusters_of_unit(simple)
        seen: set[tuple[str, ...]] = set()
        for i in range(len(spans) - n + 1):
            ngram = tuple(output[start:end] for start, end in spans[i : i + n])
            if ngram in seen:
                return output[: spans[i][0]].rstrip()
            seen.add(ngram)
    return output
