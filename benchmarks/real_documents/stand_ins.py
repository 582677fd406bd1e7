"""Stand-ins of a model: translations by a rule, so that a judge knows where every word of a document must arrive.

``same`` returns each text. ``letters`` writes every Latin letter as a Cyrillic letter, so that what stayed untranslated
is seen. ``reversed_words`` does that and reverses the words, as a language with another order does; its alignment says
which word is which. ``careless`` drops, doubles and shuffles words and links them at random, as a weak model does.
Spans that dragoman protects keep their letters, as they do with a model. In a text of a script without spaces each
character is a word; words of Latin letters in it stay whole.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterable, Sequence

from dragoman.decoding.words import word_spans
from dragoman.translation.assemble import Translation
from dragoman.translation.keeping.protected import find

LATIN = "abcdefghijklmnopqrstuvwxyz"
CYRILLIC = "абцдефгхийклмнопярстувшжюз"
TO_CYRILLIC = str.maketrans(LATIN + LATIN.upper(), CYRILLIC + CYRILLIC.upper())
TO_LATIN = str.maketrans(CYRILLIC + CYRILLIC.upper(), LATIN + LATIN.upper())


def same(text: str, unspaced: bool = False) -> Translation:
    """Return the text."""
    n = len(word_spans(text, unspaced))
    return Translation(text, 0.0, alignment=tuple((i, i) for i in range(n)))


def letters(text: str, unspaced: bool = False) -> Translation:
    """Return the text with other letters, but for protected spans."""
    return Translation(_ciphered(text), 0.0, alignment=same(text, unspaced).alignment)


def reversed_words(text: str, unspaced: bool = False) -> Translation:
    """Return the text with other letters and its words in reverse order; spans that are protected stay whole."""
    ciphered = _ciphered(text)
    assert len(ciphered) == len(text)
    words = word_spans(text, unspaced)
    groups = list(reversed(_groups(text, words)))
    order = [i for group in groups for i in group]
    written, last = "", ""
    for group in groups:
        start, end = words[group[0]][0], words[group[-1]][1]
        is_apart = written and (not unspaced or _LATIN_RUN.fullmatch(last + text[start]))
        written, last = written + " " * bool(is_apart) + ciphered[start:end], text[end - 1]
    return Translation(written, 0.0, alignment=tuple(sorted((i, place) for place, i in enumerate(order))))


def careless(text: str, unspaced: bool = False) -> Translation:
    """Return the text with words left out, doubled and in another order, and links of which a third are wrong.

    Protected spans arrive once, as they do with a model. The text is the seed.
    """
    chance = random.Random(f"{SEED} {text}")
    ciphered, words = _ciphered(text), word_spans(text, unspaced)
    spans = find(text)
    groups: list[tuple[list[int], str]] = []
    for group in _groups(text, words):
        start, end = words[group[0]][0], words[group[-1]][1]
        is_protected = any(start < span.end and span.start < end for span in spans)
        n = 1 if is_protected else chance.choices((0, 1, 2), (4, 5, 1))[0]
        groups += [(group, ciphered[start:end])] * n
    for i in range(len(groups) - 1):
        other = min(i + chance.choice((0, 0, 0, 1, 2, 5)), len(groups) - 1)
        groups[i], groups[other] = groups[other], groups[i]
    written = ("" if unspaced else " ").join(shown for _, shown in groups)
    numbers = [i for group, _ in groups for i in group]
    links = [(chance.randrange(len(words)) if chance.random() < 1 / 3 else i, at) for at, i in enumerate(numbers)]
    n_written = len(word_spans(written, unspaced))
    return Translation(written, 0.0, alignment=tuple(sorted({(i, at) for i, at in links if at < n_written})))


def _groups(text: str, words: Sequence[tuple[int, int]]) -> list[list[int]]:
    """Return the numbers of the words, those that share a protected span or a word of Latin letters together."""
    spans = [(span.start, span.end) for span in find(text) if len(text[span.start : span.end].split()) > 1]
    spans += [match.span() for match in _LATIN_RUN.finditer(text)]
    starts = sorted(spans)
    groups: list[list[int]] = []
    at = 0
    for i, (start, _) in enumerate(words):
        while at < len(starts) and starts[at][1] <= start:
            at += 1
        if groups and any(a < words[i - 1][1] and start < b for a, b in starts[at : at + 8]):
            groups[-1].append(i)
        else:
            groups.append([i])
    return groups


_LATIN_RUN = re.compile(r"[!-~\u00a1-\u04ff\u2070-\u209c\uff10-\uff19\uff21-\uff3a\uff41-\uff5a\uac00-\ud7a3]+")
"""Characters that a script without spaces takes from others, such as a name, and Korean, which has spaces."""


STAND_INS: dict[str, Callable[[str, bool], Translation]] = {
    "same": same, "letters": letters, "reversed": reversed_words, "careless": careless,
}  # fmt: skip

SEED = 41


def translations(
    texts: Iterable[str], stand_in: Callable[[str, bool], Translation], unspaced: bool = False
) -> dict[str, Translation]:
    """Return the translation of each text."""
    return {text: stand_in(text, unspaced) for text in texts}


def deciphered(text: str) -> str:
    """Return a text with its Cyrillic letters as the Latin ones that they stand for."""
    return text.translate(TO_LATIN)


def _ciphered(text: str) -> str:
    written, end = [], 0
    for span in sorted(find(text), key=lambda span: span.start):
        written += [text[end : span.start].translate(TO_CYRILLIC), text[span.start : span.end]]
        end = max(end, span.end)
    return "".join([*written, text[end:].translate(TO_CYRILLIC)])
