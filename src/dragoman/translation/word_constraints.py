"""Lexical constraints: words that a translation must or must not contain, encoded for the search and checked after it.

The search (``decoding.constraints``) satisfies them if it can. A note reports violated constraints.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from dragoman.data.tokenizer import UNK_ID, Tokenizer
from dragoman.decoding.beam_allocation import Phrase
from dragoman.decoding.constraints import Rules, Spelling
from dragoman.errors import ConfigError
from dragoman.languages.words import has_word, places_of, replace_word
from dragoman.translation.keeping.glossary import Match, count_term
from dragoman.translation.keeping.protected import find
from dragoman.translation.options import TranslateOptions


@dataclass(frozen=True)
class WordConstraints:
    """Constraints of one translation: in ids for the search, and as words to check in its text."""

    rules: Rules
    prefix: str
    placed: tuple[tuple[str, str], ...]  # words that must appear, each with its name in notes
    excluded: tuple[str, ...]
    given_prefix: str = ""  # as it is to be written; ``prefix`` is as the model writes it
    terms: tuple[Phrase, ...] = ()  # of the glossary, left out of the first search: see ``placing``
    given_terms: tuple[tuple[str, str], ...] = ()  # of the glossary: as the model writes them, and as they are stored

    @property
    def with_terms(self) -> Rules:
        """Rules of a search that also places the glossary's terms."""
        return self.rules._replace(include=self.rules.include + self.terms)

    def unplaced(self, translation: str) -> list[str]:
        """Return the names of words that must appear and do not; a word required twice must appear twice."""
        there = {word: count_term(translation, word) for word, _ in self.placed}
        for written, given in self.given_terms:
            there[written] = count_term(translation, given) + count_term(translation.replace(given, "\n"), written)
        names = []
        for word, name in self.placed:
            there[word] -= 1
            if there[word] < 0:
                names.append(name)
        return names

    def as_given(self, translation: str) -> str:
        """Return a translation with its prefix and the glossary's terms as they were given, not as the model writes."""
        if translation.startswith(self.prefix):
            translation = self.given_prefix + translation[len(self.prefix) :]
        for written, stored in self.given_terms:
            n = sum(word == written for word, _ in self.placed) - count_term(translation, stored)
            if n > 0 and written in translation:
                fixed = [(span.start, span.end) for span in find(translation) if span.kind != "number"]
                starts = places_of(translation, stored)
                fixed += [(start, start + len(stored)) for start in starts]
                translation = replace_word(translation, written, stored, n, fixed)
        return translation

    def violations(self, translation: str) -> tuple[str, ...]:
        """Return a sentence for each constraint that ``translation`` does not satisfy."""
        sentences = [f"{name} could not be placed" for name in self.unplaced(translation)]
        sentences += [f"the excluded {word!r} appears" for word in self.excluded if has_word(translation, word)]
        if not translation.startswith(self.prefix):
            sentences.append(f"it does not start with {self.prefix!r}")
        return tuple(dict.fromkeys(sentences))


LONGEST_SHOWN = 80
"""Most characters of a term that a note shows: each line of a request may have a note on it."""


def _short(term: str) -> str:
    half = LONGEST_SHOWN // 2
    return term if len(term) <= LONGEST_SHOWN else f"{term[:half]} ... {term[-half:]}"


class Target(NamedTuple):
    """A glossary's term for one of its source terms, encoded."""

    written: str  # as the model writes it
    name: str  # in notes
    phrase: Phrase


class ConstraintEncoder:
    """Encodes lexical constraints in one vocabulary."""

    def __init__(self, tokenizer: Tokenizer, unspaced: bool) -> None:
        """Take the target tokenizer; ``unspaced``: the target language puts no spaces between words."""
        self.tokenizer, self.unspaced = tokenizer, unspaced

    @cached_property
    def spelling(self) -> Spelling:
        """Bytes of every subword, computed once; only constraints and the guard need them."""
        return Spelling(self.tokenizer.spelled, self.tokenizer.shadowed)

    def check(self, options: TranslateOptions) -> None:
        """Refuse a prefix that the vocabulary cannot spell.

        Raises:
            ConfigError: A prefix has a character that the vocabulary lacks.
        """
        different = [prefix for prefix in dict.fromkeys(options.prefixes) if prefix]
        for prefix, ids in zip(different, self.tokenizer.encode(different), strict=True):
            if UNK_ID in ids:
                raise ConfigError(f"the prefix {prefix!r} has a character that is not in this run's subword vocabulary")

    def encode(
        self, options: TranslateOptions, prefix: str, terms: Sequence[Match], is_first: bool,
        targets: dict[tuple[str, str], Target],
    ) -> WordConstraints:  # fmt: skip
        """Return the constraints of a translation.

        Args:
            options: Words to include and to exclude, and n-grams.
            prefix: Beginning of the translation.
            terms: Glossary terms of its source.
            is_first: True for the first part of a text: only this part gets the prefix and the words to include.
            targets: Terms that were encoded for other parts, by source and target; those of this one are added. A text
                may have thousands of times a term of a thousand ids.
        """
        given_prefix, include = (prefix, options.include) if is_first else ("", ())
        prefix = self._written(given_prefix)
        placed = [(self._written(word.strip()), repr(word.strip())) for word in include]
        phrases = [self._phrase(word) for word, _ in placed]
        for match in terms:
            if (key := (match.source, match.target)) not in targets:
                name = f"{_short(match.target)!r} (the glossary's for {_short(match.source)!r})"
                targets[key] = Target(self._written(match.target), name, self._phrase(match.target))
        of_terms = [targets[match.source, match.target] for match in terms]
        placed += [(target.written, target.name) for target in of_terms]
        excluded = tuple(self._written(word.strip()) for word in options.exclude)
        rules = Rules(
            self.spelling,
            prefix=b" " + prefix.replace("\u2581", " ").encode() if prefix else b"",
            include=tuple(phrase for phrase in phrases if phrase and UNK_ID not in phrase),
            exclude=tuple(word.encode() for word in excluded),
            no_repeat_ngram=options.no_repeat_ngram,
        )
        given_terms = {target.written: match.target for target, match in zip(of_terms, terms, strict=True)}
        return WordConstraints(
            rules, prefix, tuple(placed), excluded, given_prefix,
            tuple(target.phrase for target in of_terms if target.phrase and UNK_ID not in target.phrase),
            tuple((written, given) for written, given in given_terms.items() if written not in ("", given)),
        )  # fmt: skip

    def _written(self, text: str) -> str:
        """Return a text as the model writes it; a space at its end stays."""
        if self.tokenizer.is_exact:
            return text
        clean = self.tokenizer.normalised(text).text
        return clean + " " if clean and text[-1].isspace() and not clean[-1].isspace() else clean

    def _phrase(self, word: str) -> tuple[int, ...]:
        """Return the ids of a word inside a text: after a space, or after any character in unspaced languages."""
        if not self.unspaced:
            return tuple(self.tokenizer.encode([word])[0])
        return tuple(self.tokenizer.encode_inside([self._written(word)])[0])
