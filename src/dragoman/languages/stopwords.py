"""Words of a text, and a guess at its language by stop words and scripts."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cache

from dragoman.languages.known import LANGUAGES, known
from dragoman.languages.words import CLUSTER_OF_WORD, HAN, LETTERS, kinds

WORD = re.compile(rf"{CLUSTER_OF_WORD}|\d+|{LETTERS}")
"""A word, a number, or one character of a script without spaces, in the ``kinds`` of a text."""

_PLAIN_WORD = re.compile(rf"[{HAN}]|\d+|[^\W\d_{HAN}]+")  # of a text that is its own kinds


def words_of(text: str) -> list[str]:
    """Return the lower-case words and numbers of a text; of Chinese, Thai and the like, the characters."""
    text = text.lower()
    simple = kinds(text)
    if simple is text:
        return _PLAIN_WORD.findall(text)
    return [text[match.start() : match.end()] for match in WORD.finditer(simple)]


@cache
def telling_words() -> dict[str, str]:
    """Return the language of each stop word that only one language of ``LANGUAGES`` has."""
    owners: dict[str, list[str]] = {}
    for language in LANGUAGES:
        for word in set(language.stop_words.split()):
            owners.setdefault(word, []).append(language.code)
    return {word: codes[0] for word, codes in owners.items() if len(codes) == 1}


@cache
def _letters() -> dict[str, re.Pattern[str]]:
    """Return the pattern of the characters that identify each language that has such characters."""
    return {language.code: re.compile(f"[{language.letters}]") for language in LANGUAGES if language.letters}


LEAST_KANA = 0.05
"""Least number of kana for each Chinese character of a text that is Japanese."""


def language_scores(text: str) -> dict[str, float]:
    """Return the number of telling words and own characters of each language in a text.

    Chinese characters count as Japanese in a text with enough kana (``LEAST_KANA``): a name or a brand may have some in
    Chinese. Languages without either are left out.
    """
    owner = telling_words()
    scores: Counter[str] = Counter(owner[word] for word in words_of(text) if word in owner)
    for code, pattern in _letters().items():
        if n := len(pattern.findall(text)):
            scores[code] += n
    if scores["ja"] > LEAST_KANA * scores["zh"]:
        scores["ja"] += scores.pop("zh", 0)
    return {code: float(n) for code, n in scores.items() if n}


def main_language(
    lines: Sequence[Sequence[str]], lang: str | None, ignored: frozenset[str] = frozenset()
) -> str | None:
    """Return the language that most lines of a sample seem to be in, if it is clearly not ``lang``; else None.

    Each line counts once: of a language with many stop words a few lines have more of them than all the others. They
    must be half of all lines, or lines in ``lang`` must be rare: few lines of some languages have a stop word. A line
    with as many words of ``lang`` as of another language counts as ``lang``.

    Args:
        lines: Lower-case words of each line of the sample; 20 of them need telling words.
        lang: The expected language; if its stop words are not known, the result is None.
        ignored: Words that tell nothing in this text, see ``ambiguous``.
    """
    owner, expected = telling_words(), known(lang)
    of_lines = (Counter(owner[word] for word in line if word in owner and word not in ignored) for line in lines)
    counts = Counter(
        max(of_line, key=lambda code: (of_line[code], code == expected.code)) for of_line in of_lines if of_line
    )
    if not expected.stop_words or counts.total() < 20:
        return None
    best, count = counts.most_common(1)[0]
    is_most = 2 * count > counts.total() and (2 * count > len(lines) or 10 * counts[expected.code] < count)
    return best if best != expected.code and is_most else None


def ambiguous(lines: Iterable[Sequence[str]], lang: str | None) -> frozenset[str]:
    """Return the telling words of other languages that seem to be words of ``lang`` too.

    In a sample of ``lang``, at least half of the lines with such a word also have a telling word of ``lang``.

    Args:
        lines: Lower-case words of each line of a sample.
    """
    owner, code = telling_words(), known(lang).code
    seen: Counter[str] = Counter()
    at_home: Counter[str] = Counter()
    for line in lines:
        telling = {word for word in line if word in owner}
        foreign = [word for word in telling if owner[word] != code]
        seen.update(foreign)
        if len(foreign) < len(telling):
            at_home.update(foreign)
    return frozenset(word for word, count in seen.items() if 2 * at_home[word] >= count)


def another_language(words: Sequence[str], lang: str | None, ignored: frozenset[str] = frozenset()) -> str | None:
    """Return the language that a line of lower-case words seems to be in, if that is not ``lang``; else None.

    Two different telling words of it are needed, a fifth of the line or more, and none of the expected language.
    """
    return another_or_own(words, lang, ignored)[0]


def another_or_own(
    words: Sequence[str], lang: str | None, ignored: frozenset[str] = frozenset()
) -> tuple[str | None, bool]:
    """Return the result of ``another_language``, and True if most telling words are those of ``lang``."""
    owner, expected = telling_words(), known(lang)
    telling = {word for word in words if word in owner} - ignored
    counts = Counter(owner[word] for word in telling)
    own = counts[expected.code]
    if not counts or not expected.stop_words or own:
        return None, 2 * own > counts.total()
    best, count = counts.most_common(1)[0]
    return (best if count >= 2 and 5 * count >= len(words) else None), False
