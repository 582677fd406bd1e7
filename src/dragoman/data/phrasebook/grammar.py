"""What is drawn before it is said: phrases, clauses and sentences without words of any one language."""

from __future__ import annotations

from typing import NamedTuple

from dragoman.data.phrasebook.lexicon import Adjective, Mass, Noun, Verb

Words = tuple[str, str, str]
"""English, German and Chinese of a fixed expression."""


class NounPhrase(NamedTuple):
    """A noun with what stands around it, or a pronoun."""

    noun: Noun | Mass | None
    determiner: str  # the, a, this, some, bare, count, a possessive; pronoun
    plural: bool = False
    number: int = 0  # of a count
    adjective: Adjective | None = None
    relative: Clause | None = None
    pronoun: str = ""  # I, he, she, we, they; who, what


class And(NamedTuple):
    """Two phrases with "and" between them."""

    first: NounPhrase
    second: NounPhrase


Phrase = NounPhrase | And


class Clause(NamedTuple):
    """Who does what to whom, when and where. ``verb`` is None where something is so (``adjective``)."""

    subject: Phrase | None  # None: the head of a relative clause, or of an infinitive
    verb: Verb | None
    tense: str = "pres"  # pres, past, fut, can, want, must
    negated: bool = False
    adjective: Adjective | None = None
    receiver: NounPhrase | None = None
    object: NounPhrase | None = None
    gap: str = ""  # of a relative clause: "subject" or "object" is its head
    place: Words | None = None
    goal: Words | None = None
    time: Words | None = None
    fronted: bool = False  # is the time said first?
    frequency: Words | None = None
    said: Clause | None = None  # that ...
    tried: Clause | None = None  # to ...


class Sentence(NamedTuple):
    """A clause or two with their punctuation."""

    kind: str  # statement, because, if, polar, who, what, where, when, why
    main: Clause
    other: Clause | None = None  # the reason or the condition
    depth: int = 0


def is_plural(phrase: Phrase) -> bool:
    """Does the verb agree in the plural?"""
    return isinstance(phrase, And) or phrase.plural or phrase.pronoun in ("we", "they")


def sentence_case(text: str) -> str:
    """Capitalise the first letter."""
    return text[0].upper() + text[1:]
