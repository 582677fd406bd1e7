"""What can be seen to be wrong with a translation: loops, copies of the source, nothing, too much, too little.

A sequence-to-sequence model that has lost its way repeats itself, echoes the source, or ends at once
(https://arxiv.org/abs/1908.04319, https://arxiv.org/abs/1803.00047, https://arxiv.org/abs/1908.10090); or it leaves
out a part, to which it then pays no attention (https://arxiv.org/abs/1601.04811). Nothing here knows a model. Every
rule measures the translation against its source: a source that says "ha ha ha ha ha" may be translated so, and one of
names, numbers or addresses may come out as it went in.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from itertools import pairwise
from operator import eq
from typing import NamedTuple

from dragoman.languages.known import known

LOOP_PERIOD = 12
LOOP_REPEATS = 3
SIGN_REPEATS = 4
LOOP_CHARACTERS = 10
TWICE_WORDS = 3
"""A phrase of at most ``LOOP_PERIOD`` units is a loop when repeated this often in a row: ``LOOP_REPEATS`` for words,
``SIGN_REPEATS`` for digits and signs alone; within a word only if it spans ``LOOP_CHARACTERS``. One of ``TWICE_WORDS``
words or more is a loop when it comes twice."""

REPETITION_UNITS = 24
MAX_REPETITION = 0.33
"""From ``REPETITION_UNITS`` units on, at most this share of the 4-grams may repeat earlier ones."""

COPY_WORDS = 4
COPY_SHARE = 0.75
"""A translation is a copy if the source has this many ordinary words and this share of them is in both."""

LONG_RATIO = 2.5
LONG_FLOOR = 12
"""More subwords than ``LONG_RATIO`` times the source's and ``LONG_FLOOR`` more are too many."""

LOST_TOKENS = 5
"""A translation is short if it is shorter than nearly all of the training text are for such sources, and paid no
attention to this many subwords of its source in a row."""

FAULTS = ("empty", "loop", "long", "short", "copy")
"""What may be wrong, in the order in which it is named."""

_IDEOGRAPHS = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"  # a unit each: no spaces part them
_IDEOGRAPH = re.compile(f"[{_IDEOGRAPHS}]")
_UNIT = re.compile(rf"[{_IDEOGRAPHS}]|[^\W{_IDEOGRAPHS}]+|[^\w\s]")
_STRETCH = re.compile(r"(.{1,8}?)\1+")  # characters said twice over or more
_WORD = re.compile(rf"[{_IDEOGRAPHS}]|[^\W\d_{_IDEOGRAPHS}]+(?:['’-][^\W\d_{_IDEOGRAPHS}]+)*")
_ADDRESS = re.compile(r"://|[@/\\_=<>{}#|]|\w[.:]\w")  # addresses, paths, code


class Run(NamedTuple):
    """A part of a text that says one thing over and over."""

    repeats: int
    start: int  # in characters
    once: int  # where the second of the repeats begins
    end: int
    words: bool  # of units, or of bare characters


@dataclass(frozen=True)
class Sizes:
    """Lengths of a translation and its source in subwords."""

    src: int
    tgt: int
    ended: bool = True  # the model ended the translation; it was not stopped at the greatest length
    lost: int = 0  # longest run of subwords of the source without attention; 0: not looked for


def faults(src: str, output: str, sizes: Sizes, src_lang: str | None, tgt_lang: str | None) -> tuple[str, ...]:
    """Return the ``FAULTS`` that a translation has; none if all is well.

    Args:
        src: The source, not blank.
        output: Its translation.
        src_lang, tgt_lang: A copy is no fault if a language is unknown, or both are the same or near each other.
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
    """Does the translation repeat itself far more than its source does?"""
    repeated = repetition(output)
    return _loop(src, output) is not None or (repeated > MAX_REPETITION and repeated > 1.5 * repetition(src))


def _loop(src: str, output: str) -> Run | None:
    """The longest part that says something over and over; None where the source does it too."""
    long = [run for run in runs(output, 2) if run.words or run.end - run.start >= LOOP_CHARACTERS]
    long = [
        run
        for run in long
        if run.repeats >= SIGN_REPEATS
        or (run.repeats >= LOOP_REPEATS and _spoken(output, run))
        or (run.words and _is_said_twice(output, run))
    ]
    if not long:  # nearly always
        return None
    most = {True: 1, False: 1}  # how often the source repeats what it says, with letters and without
    for run in runs(src, 2):
        if run.words or run.repeats > 2 or run.end - run.start >= 4:  # "haha" is said twice, the l of "hello" is not
            spoken = _spoken(src, run)
            most[spoken] = max(most[spoken], run.repeats)
    loops = [run for run in long if run.repeats > 1.5 * most[_spoken(output, run)]]
    return max(loops, key=lambda run: run.end - run.once, default=None)


def _spoken(text: str, run: Run) -> bool:
    """Are there letters in what is repeated, or digits and signs alone?"""
    return any(character.isalpha() for character in text[run.start : run.once])


def _is_said_twice(text: str, run: Run) -> bool:
    """Is it a phrase of ``TWICE_WORDS`` words, and all of it there again? Two ideographs count as a word."""
    once, again = (_WORD.findall(part.casefold()) for part in (text[run.start : run.once], text[run.once : run.end]))
    n_words = sum(0.5 if _IDEOGRAPH.fullmatch(word) else 1.0 for word in once)
    return n_words >= TWICE_WORDS and again[: len(once)] == once


def runs(text: str, least: int) -> list[Run]:
    """Where ``text`` says something ``least`` times in a row or more: words, ideographs and signs, or characters."""
    spans = [match.span() for match in _UNIT.finditer(text)]
    units = [text[start:end].casefold() for start, end in spans]
    found = []
    for period in range(1, LOOP_PERIOD + 1):
        if sum(map(eq, units, units[period:])) < (least - 1) * period - (period > 2):
            continue  # nearly always
        same = 0  # so many units in a row are those of one period before
        for i in range(period, len(units) + 1):
            if i < len(units) and units[i] == units[i - period]:
                same += 1
                continue
            repeats = (same + (period > 2)) // period + 1  # "a b, a b, a b, a b" has no comma at its end
            if repeats >= least:
                first = i - same - period
                last = min(first + repeats * period, i) - 1
                found.append(Run(repeats, spans[first][0], spans[first + period][0], spans[last][1], True))
            same = 0
    for match in _STRETCH.finditer(text):
        repeats = len(match[0]) // len(match[1])
        if repeats >= least:
            found.append(Run(repeats, match.start(), match.start() + len(match[1]), match.end(), False))
    return found


def repetition(text: str, n: int = 4) -> float:
    """The share of a text's ``n``-grams that stood in it before; 0 for fewer than ``REPETITION_UNITS`` units.

    seq-rep-n of https://arxiv.org/abs/1908.04319, on words, ideographs and signs. It sees loops with changing parts and
    those of whole sentences, which are no plain repetition.
    """
    units = _UNIT.findall(text)
    if len(units) < REPETITION_UNITS:
        return 0.0
    ngrams = list(zip(*(units[i:] for i in range(n)), strict=False))
    return 1 - len(set(ngrams)) / len(ngrams)


def is_copy(src: str, output: str) -> bool:
    """Does the translation consist of the words of its source?

    Only ordinary words count: names, numbers, addresses and code are the same in other languages.
    """
    said, lowered = Counter(ordinary_words(src)), output.lower()
    if sum(n for word, n in said.items() if word in lowered) < COPY_SHARE * said.total():
        return False  # nearly always, and then the words of the output need not be found
    words = Counter(ordinary_words(output))
    return len(said) >= COPY_WORDS and (said & words).total() >= COPY_SHARE * max(said.total(), words.total())


def ordinary_words(text: str) -> list[str]:
    """The words of a text in lower case, without those that may be names: with capitals, unless all letters are.

    Of a text in capitals only its parts of ``COPY_WORDS`` words and more count: what is shorter may be a list of names.
    """
    if _ADDRESS.search(text):
        text = " ".join(chunk for chunk in text.split() if not _ADDRESS.search(chunk))
    if text.isupper():
        parts = [_WORD.findall(part) for part in re.split(r"[,;:.!?]", text)]
        return [word.lower() for part in parts if len(part) >= COPY_WORDS for word in part]
    return [word for word in _WORD.findall(text) if word == word.lower()]


def neighbours(text: str) -> tuple[str, ...]:
    """The ordinary words of a text that stand side by side, two by two, each pair once: what makes a copy a copy."""
    ordinary = set(ordinary_words(text))
    words = [match for match in _WORD.finditer(text) if match[0].lower() in ordinary]
    pairs = [(one, other) for one, other in pairwise(words) if not text[one.end() : other.start()].strip()]
    return tuple(dict.fromkeys(text[one.start() : other.end()] for one, other in pairs))


def differ(src_lang: str | None, tgt_lang: str | None) -> bool:
    """True if both languages are given, and so different that a sentence is not the same in both."""
    src, tgt = known(src_lang), known(tgt_lang)
    related = src.code == tgt.code or (src.family == tgt.family != "")
    return bool(src.code and tgt.code) and not related


def without_runs(src: str, output: str) -> str:
    """Say once what ``output`` says many times in a row, unless its source does too."""
    while run := _loop(src, output):
        once = output[: run.once]
        output = (once.rstrip() if run.words else once) + output[run.end :]
    return output


def without_loops(src: str, output: str) -> str:
    """As ``without_runs``, and end it where it only repeats itself; then it is no loop."""
    output = without_runs(src, output)
    if is_loop(src, output):
        spans = [match.span() for match in _UNIT.finditer(output)]
        seen: set[tuple[str, ...]] = set()
        for i in range(len(spans) - 3):
            ngram = tuple(output[start:end] for start, end in spans[i : i + 4])
            if ngram in seen:
                return output[: spans[i][0]].rstrip()
            seen.add(ngram)
    return output
