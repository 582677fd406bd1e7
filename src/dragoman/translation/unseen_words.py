"""Notes on words of a source that the model never saw in training: their translation is a guess.

Bundles of an earlier version, imported models and parsers keep no words of their training text, and have no such notes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple, Self

from dragoman.data.seen_words import HAN_RUN, words_of
from dragoman.translation.keeping.protected import find, without_spans
from dragoman.translation.notes import Note
from dragoman.translation.plan import Plan

MOST = 8
"""Largest number of words that the text of a note names."""


class TermWords(NamedTuple):
    """Words of glossary terms."""

    folded: frozenset[str]
    unspaced: tuple[str, ...]  # terms with several Chinese characters in a row

    @classmethod
    def of(cls, terms: Sequence[str]) -> Self:
        """Return the words of some terms."""
        words = frozenset(word.casefold() for term in terms for word in words_of(term))
        return cls(words, tuple(term for term in terms if HAN_RUN.search(term)))


def unseen_words(text: str, plan: Plan, terms: TermWords) -> tuple[str, ...]:
    """Return the words of a source that the model never saw, each once; none if that is not known.

    Args:
        text: Source, or a part of it; words in protected spans, such as addresses, do not count.
        terms: Words of the terms that the source contains, which do not count either.
    """
    seen, tokenizer = plan.facts.seen_words, plan.src_tokenizer
    if seen is None:
        return ()
    words = [
        word for word in seen.unseen(without_spans(text, find(text)))
        if word.casefold() not in terms.folded and not any(word in term or term in word for term in terms.unspaced)
    ]  # fmt: skip
    # what the tokenizer reads as other letters, such as full-width ones, the model has seen as these
    readings = tokenizer.decode(tokenizer.encode(words)) if words else []
    return tuple(word for word, reading in zip(words, readings, strict=True) if seen.unseen(reading))


def may_have_unseen(texts: Iterable[str], plan: Plan) -> set[str]:
    """Return those of some sources that ``unseen_words`` need look at: a quick look at all of them together."""
    seen, distinct = plan.facts.seen_words, list(dict.fromkeys(texts))
    if seen is None:
        return set()
    return {text for text, words in zip(distinct, seen.unseen_of(distinct), strict=True) if words}


def note_on_words(words: tuple[str, ...]) -> Note:
    """Return the note that names words that the model never saw."""
    more = f" and {len(words) - MOST:,} more" if len(words) > MOST else ""
    which = "a word" if len(words) == 1 else "words"
    return Note("unseen", f"{which} that the model never saw: {', '.join(words[:MOST])}{more}", words=words)
