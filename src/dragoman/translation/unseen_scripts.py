"""Notes on sources in letters that the model never saw: another script, or letters that only look like known ones.

The vocabulary tells: letters of the training text are pieces or parts of pieces, all others are spelt in single bytes.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from functools import lru_cache

from dragoman.data.tokenizer import Tokenizer
from dragoman.languages.scripts import alphabet, lookalikes
from dragoman.languages.words import in_word
from dragoman.translation.keeping.protected import find, without_spans
from dragoman.translation.notes import Note

_WORD = re.compile(r"[^\W\d_]+")
LEAST_KNOWN = 0.5
"""Least fraction of a source's letters that must be in the vocabulary; with fewer the model cannot read the source."""


LEAST_LETTERS = 5
"""Least number of letters of an alphabet in the vocabulary of a model that has seen text in it."""


@dataclass(frozen=True)
class _Known:
    """Letters that a vocabulary knows."""

    alphabets: frozenset[str]
    letters: frozenset[str]
    letters_of: tuple[int, ...]  # number of letters of each id

    def has(self, letter: str) -> bool:
        """True if the letter's alphabet is known; a capital letter may still be missing."""
        return letter in self.letters or alphabet(letter) in self.alphabets


@lru_cache(maxsize=16)
def _known_by(tokenizer: Tokenizer) -> _Known:
    """Return what the pieces of a vocabulary know of letters."""
    rare = tokenizer.rare_ids
    pieces = ["" if i in rare else data.decode(errors="ignore") for i, data in enumerate(tokenizer.spelled)]
    letters = frozenset(filter(str.isalpha, "".join(pieces)))
    counts = Counter(map(alphabet, letters))
    alphabets = frozenset(name for name, n in counts.items() if n >= LEAST_LETTERS)
    return _Known(alphabets, letters, tuple(sum(map(str.isalpha, piece)) for piece in pieces))


def _are_most_words_unknown(text: str, known: _Known) -> bool:
    """True if more than half of the words have no known letter: a foreign name in a sentence is one word of many."""
    sizes = [(_n_words(word), not any(map(known.has, word))) for word in _WORD.findall(text)]
    return 2 * sum(n for n, is_unknown in sizes if is_unknown) > sum(n for n, _ in sizes)


def _n_words(word: str) -> int:
    """Return the number of words in a run of letters: about half its letters where words have no spaces between."""
    return 1 if in_word(word[0]) else max(1, len(word) // 2)


def note_on_script(text: str, tokenizer: Tokenizer) -> Note | None:
    """Return a note if most letters of a source are not in the vocabulary, or a word has letters that only look alike.

    Args:
        text: Source; letters in its protected spans do not count.
        tokenizer: Tokenizer of the source.
    """
    known = _known_by(tokenizer)
    letters = set(filter(str.isalpha, text))
    if not known.letters or known.letters >= letters or all(map(known.has, letters)):  # the usual case
        return None
    words = without_spans(text, find(text))
    n_letters = sum(map(str.isalpha, words))
    unknown = [character for character in words if character.isalpha() and not known.has(character)]
    n_known = n_letters - len(unknown)
    if n_known < LEAST_KNOWN * n_letters:  # the tokenizer may read a letter as another one, such as a full-width letter
        n_known = max(n_known, sum(known.letters_of[i] for i in tokenizer.encode([words])[0]))
    if n_known < LEAST_KNOWN * n_letters and _are_most_words_unknown(words, known):
        names = " and ".join(name for name, _ in Counter(map(alphabet, unknown)).most_common(2))
        message = f"the model never saw text in {names}, so it cannot read this source: the translation is a guess"
        return Note("script", message, left=True)
    alike = [word for word in _WORD.findall(words) if not word.isascii() and lookalikes(word, known.letters)]
    if not alike:
        return None
    shown = ", ".join(repr(word) for word in dict.fromkeys(alike))
    scripts = " and ".join(dict.fromkeys(alphabet(character) for word in alike for character in word))
    message = f"the model cannot read {shown}: letters that look alike but belong to other scripts ({scripts})"
    return Note("script", message)
