"""What translations must and must not say, as words; and whether they do.

Words become rules for the search (``decoding.rules``), which keeps them. What it cannot keep is said in a note.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

from dragoman.data.languages import count_word, has_word
from dragoman.data.tokenizer import UNK_ID, Tokenizer, lone_surrogate
from dragoman.decoding.constraints import Rules, Spelling
from dragoman.errors import ConfigError
from dragoman.translation.glossary import Glossary, Match


class Wording(NamedTuple):
    """What the translation of a text must and must not say."""

    prefix: str = ""  # it begins with this
    include: Sequence[str] = ()  # words, or phrases, that stand in it
    exclude: Sequence[str] = ()  # that do not
    glossary: Glossary | None = None  # for each of its terms in the source, its target stands in it
    no_repeat_ngram: int = 0  # no so many subwords in a row come twice; 0: they may

    def of_a_later_part(self) -> Wording:
        """What holds for the later parts of a text that was split as well."""
        return self._replace(prefix="", include=())

    def checked(self) -> Wording:
        """Itself, its words as tuples.

        Raises:
            ConfigError: A word is blank or no text, the prefix has a line end, or the n-gram is negative.
        """
        for name, words in (("include", self.include), ("exclude", self.exclude)):
            if isinstance(words, str):
                raise ConfigError(f"{name} takes a list of words: write {name}=[{words!r}]")
            if not all(word.strip() for word in words):
                raise ConfigError(f"{name} holds a blank word: leave it out")
        for word in (self.prefix, *self.include, *self.exclude):
            if lone_surrogate(word) is not None:  # a byte of argv that is not UTF-8
                raise ConfigError(f"{word!r} holds half of a surrogate pair, which is no character: give text in UTF-8")
        if "\n" in self.prefix:
            raise ConfigError("the prefix has a line end, and a translation is one line")
        if self.no_repeat_ngram < 0:
            raise ConfigError(f"no_repeat_ngram = {self.no_repeat_ngram} must be 1 or more, or 0 for no such rule")
        return self._replace(include=tuple(self.include), exclude=tuple(self.exclude))


class Demand(NamedTuple):
    """A wording for one text, in ids, and the words to look for in its translation."""

    rules: Rules
    prefix: str
    placed: tuple[tuple[str, str], ...]  # each word that must stand in it, and what a note calls it
    excluded: tuple[str, ...]

    def unmet(self, translation: str) -> tuple[str, ...]:
        """A sentence for each wish that ``translation`` does not meet."""
        there = {word: count_word(translation, word) for word, _ in self.placed}
        notes = []
        for word, name in self.placed:  # each as often as it is named
            there[word] -= 1
            if there[word] < 0:
                notes.append(f"{name} could not be placed")
        notes += [f"the excluded {word!r} is there" for word in self.excluded if has_word(translation, word)]
        if not translation.startswith(self.prefix):
            notes.append(f"it does not begin with {self.prefix!r}")
        return tuple(dict.fromkeys(notes))


class WordingEncoder:
    """Makes rules of wordings in one vocabulary."""

    def __init__(self, tokenizer: Tokenizer, unspaced: bool) -> None:
        """``unspaced``: the target language puts no spaces between words."""
        self.tokenizer, self.unspaced = tokenizer, unspaced

    @cached_property
    def spelling(self) -> Spelling:
        """The bytes of every piece, which only rules and the guard need."""
        return Spelling(self.tokenizer.spelled, self.tokenizer.shadowed)

    def wordings(self, n_texts: int, prefix: str | Sequence[str], others: Wording) -> list[Wording] | None:
        """The wording of each text, checked; None where nothing is asked for, even of no texts.

        Args:
            prefix: One for all, or one for each.
            others: The wishes beside it.

        Raises:
            ConfigError: As ``Wording.checked``; there are not as many prefixes as texts; or one has a character that
                the vocabulary cannot spell.
        """
        prefixes = [prefix] * n_texts if isinstance(prefix, str) else list(prefix)
        if len(prefixes) != n_texts:
            raise ConfigError(f"{len(prefixes):,} prefixes for {n_texts:,} texts: give one for all or one for each")
        common = others._replace(prefix=prefix if isinstance(prefix, str) else "").checked()
        wordings = [common._replace(prefix=each).checked() for each in prefixes]
        different = [each for each in dict.fromkeys((common.prefix, *prefixes)) if each]
        for each, ids in zip(different, self.tokenizer.encode(different), strict=True):
            if UNK_ID in ids:
                raise ConfigError(f"the prefix {each!r} has a character that this run's subwords cannot spell")
        return None if all(each == Wording() for each in (common, *wordings)) else wordings

    def demand(self, wording: Wording, terms: Sequence[Match] = ()) -> Demand:
        """The rules for the translation of a text.

        Args:
            wording: Checked by ``wordings``.
            terms: What its glossary found in the text.
        """
        placed = [(word.strip(), repr(word.strip())) for word in wording.include]
        for match in terms:
            placed.append((match.target, f"{match.target!r} (the glossary's for {match.source!r})"))
        phrases = [self._phrase(word) for word, _ in placed]
        rules = Rules(
            self.spelling,
            prefix=b" " + wording.prefix.replace("\u2581", " ").encode() if wording.prefix else b"",
            include=tuple(phrase for phrase in phrases if UNK_ID not in phrase),
            exclude=tuple(word.strip().encode() for word in wording.exclude),
            no_repeat_ngram=wording.no_repeat_ngram,
        )
        excluded = tuple(word.strip() for word in wording.exclude)
        return Demand(rules, wording.prefix, tuple(placed), excluded)

    def _phrase(self, word: str) -> tuple[int, ...]:
        """The ids of a word: after a space, or after another character where there are no spaces."""
        if not self.unspaced:
            return tuple(self.tokenizer.encode([word])[0])
        before, whole = self.tokenizer.encode(["\n", "\n" + word])  # no piece reaches across a line end
        return tuple(whole[len(before) :])
