"""Lexical constraints: the words that a translation must and must not have, encoded for the search, and checked after.

The search (``decoding.constraints``) satisfies them wherever it can. Violated ones are reported in a note.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from dragoman.data.tokenizer import UNK_ID, Tokenizer
from dragoman.decoding.beam_allocation import Phrase
from dragoman.decoding.constraints import Rules, Spelling
from dragoman.errors import ConfigError
from dragoman.languages.words import count_word, has_word
from dragoman.translation.keeping.glossary import Match
from dragoman.translation.options import TranslateOptions


@dataclass(frozen=True)
class WordConstraints:
    """The constraints of one translation, in ids, and the words to look for in its text."""

    rules: Rules
    prefix: str
    placed: tuple[tuple[str, str], ...]  # each word that must appear in it, and what a note calls it
    excluded: tuple[str, ...]
    terms: tuple[Phrase, ...] = ()  # the glossary's, which the first search is not asked for: see ``placing``

    @property
    def with_terms(self) -> Rules:
        """The rules of a search that is to place the glossary's terms too."""
        return self.rules._replace(include=self.rules.include + self.terms)

    def unplaced(self, translation: str) -> list[str]:
        """What a note calls each word that must appear and does not, as often as it is named."""
        there = {word: count_word(translation, word) for word, _ in self.placed}
        found = []
        for word, name in self.placed:
            there[word] -= 1
            if there[word] < 0:
                found.append(name)
        return found

    def violations(self, translation: str) -> tuple[str, ...]:
        """A sentence for each constraint that ``translation`` does not satisfy."""
        found = [f"{name} could not be placed" for name in self.unplaced(translation)]
        found += [f"the excluded {word!r} appears" for word in self.excluded if has_word(translation, word)]
        if not translation.startswith(self.prefix):
            found.append(f"it does not start with {self.prefix!r}")
        return tuple(dict.fromkeys(found))


class ConstraintEncoder:
    """Encodes constraints in one vocabulary."""

    def __init__(self, tokenizer: Tokenizer, unspaced: bool) -> None:
        """``unspaced``: the target language puts no spaces between words."""
        self.tokenizer, self.unspaced = tokenizer, unspaced

    @cached_property
    def spelling(self) -> Spelling:
        """The bytes of every piece, which only constraints and the guard need."""
        return Spelling(self.tokenizer.spelled, self.tokenizer.shadowed)

    def check(self, options: TranslateOptions) -> None:
        """Refuse a prefix that the vocabulary cannot spell.

        Raises:
            ConfigError: It has such a character.
        """
        different = [prefix for prefix in dict.fromkeys(options.prefixes) if prefix]
        for prefix, ids in zip(different, self.tokenizer.encode(different), strict=True):
            if UNK_ID in ids:
                raise ConfigError(f"the prefix {prefix!r} has a character that is not in this run's subword vocabulary")

    def encode(self, options: TranslateOptions, prefix: str, terms: Sequence[Match], is_first: bool) -> WordConstraints:
        """The constraints of a translation.

        Args:
            options: Asked of it.
            prefix: What it begins with.
            terms: What the glossary has for its source.
            is_first: Not a later part of a text that was split: prefix and include are for the first one.
        """
        prefix, include = (prefix, options.include) if is_first else ("", ())
        placed = [(word.strip(), repr(word.strip())) for word in include]
        phrases = [self._phrase(word) for word, _ in placed]
        for match in terms:
            placed.append((match.target, f"{match.target!r} (the glossary's for {match.source!r})"))
        excluded = tuple(word.strip() for word in options.exclude)
        rules = Rules(
            self.spelling,
            prefix=b" " + prefix.replace("\u2581", " ").encode() if prefix else b"",
            include=tuple(phrase for phrase in phrases if UNK_ID not in phrase),
            exclude=tuple(word.encode() for word in excluded),
            no_repeat_ngram=options.no_repeat_ngram,
        )
        of_terms = [self._phrase(match.target) for match in terms]
        return WordConstraints(
            rules, prefix, tuple(placed), excluded, tuple(phrase for phrase in of_terms if UNK_ID not in phrase)
        )

    def _phrase(self, word: str) -> tuple[int, ...]:
        """The ids of a word: after a space, or after another character where there are no spaces."""
        if not self.unspaced:
            return tuple(self.tokenizer.encode([word])[0])
        before, whole = self.tokenizer.encode(["\n", "\n" + word])  # no piece reaches across a line end
        return tuple(whole[len(before) :])
