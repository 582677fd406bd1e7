"""Places of a translation where no part may be put in, nor a part that is replaced begin or end.

    closed_places("๑ ค.ศ. ๒")              # among them all inside "ค.ศ."
    open_place(3, closed, 8)               # the nearest other place

They are those inside words and clusters, protected spans, abbreviations and terms of a glossary. Thai, Lao, Khmer and
Burmese have no spaces between words, so there the places inside a subword are closed too: a frequent word is a subword.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from dragoman.data.tokenizer import Tokenizer
from dragoman.decoding.words import Links
from dragoman.languages.words import BINDER, MARKS, UNSPACED, divides_word, kind_of, kinds
from dragoman.translation.keeping.protected import find
from dragoman.translation.scoring import words_of_tokens

_NO_SPACES = frozenset(UNSPACED + BINDER + MARKS)


def closed_places(text: str, held: Iterable[tuple[int, int]] = ()) -> set[int]:
    """Return the places inside words, protected spans, abbreviations and the parts that ``held`` names."""
    closed = {place for place in range(1, len(text)) if divides_word(text, place)}
    # Where a part was cut out, what was within a text may begin it, and look like the mark of a list.
    for start, end in [*((span.start, span.end) for span in find(text) if span.kind != "list mark"), *held]:
        closed.update(range(start + 1, end))
    return closed | _in_abbreviations(text)


def _in_abbreviations(text: str) -> set[int]:
    """Return the places around full stops between letters, and before the one behind them: "ค.ศ.", "U.S."."""
    simple, closed = kinds(text), set[int]()
    after_stop = False  # only letters and marks stand between here and a full stop between letters
    for place in range(1, len(text)):
        left, right = simple[place - 1], simple[place : place + 2]
        if simple[place] == "." and (left.isalpha() or left in MARKS):
            if len(right) == 2 and right[1].isalpha():
                closed |= {place, place + 1}
                after_stop = True
                continue
            closed |= {place} if after_stop else set()
        after_stop = after_stop and (simple[place].isalpha() or simple[place] in MARKS)
    return closed


def in_subwords(text: str, ids: Sequence[int], tokenizer: Tokenizer) -> set[int]:
    """Return the places inside the subwords of a text where its script has no spaces, as in Thai."""
    simple = kinds(text)
    if not _NO_SPACES.intersection(simple):
        return set()
    closed = set[int]()
    for characters in words_of_tokens(tokenizer, ids, text, range(len(text))):
        inside = range(min(characters, default=0) + 1, max(characters, default=0) + 1)
        closed.update(place for place in inside if simple[place - 1] in _NO_SPACES and simple[place] in _NO_SPACES)
    return closed


def of_one_word(text: str, words: Sequence[tuple[int, int]], links: Links) -> set[int]:
    """Return the places between characters of scripts such as Thai that translate the same words of the source."""
    sources: dict[int, list[int]] = {}
    for src, tgt in links:
        sources.setdefault(tgt, []).append(src)
    simple, closed = kinds(text), set[int]()
    for k in range(1, len(words)):
        place = words[k][0]
        touch = words[k - 1][1] == place and simple[place - 1] in _NO_SPACES and simple[place] in _NO_SPACES
        if touch and k in sources and sources[k] == sources.get(k - 1):
            closed.add(place)
    return closed


def open_place(place: int, closed: Collection[int], length: int) -> int:
    """Return the open place that is nearest to this one; of two equally near the later."""
    for distance in range(length + 1):
        for other in (place + distance, place - distance):
            if 0 <= other <= length and other not in closed:
                return other
    return place


def ends_without_spaces(text: str, at_start: bool) -> bool:
    """True if the word at an end of a text is of a script such as Thai, which puts spaces around numbers alone."""
    for character in text if at_start else reversed(text):
        kind = kind_of(character)
        if kind.isalpha() or kind in _NO_SPACES:
            return kind in _NO_SPACES
        if character.isspace():
            return False
    return False
