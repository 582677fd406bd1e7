"""Phrases, clauses and sentences independent of a language: what ``derivation`` draws and each language writes."""

from __future__ import annotations

from typing import NamedTuple

from dragoman.data.phrasebook.lexicon import Adjective, Mass, Noun, Verb

Words = tuple[str, str, str]
"""A fixed expression in English, German and Chinese."""


class NounPhrase(NamedTuple):
    """A noun with its determiner, number, adjective and relative clause; or a pronoun."""

    noun: Noun | Mass | None
    determiner: str  # the, a, this, some, bare, count, a possessive; pronoun
    plural: bool = False
    number: int = 0  # the number, if the determiner is "count"
    adjective: Adjective | None = None
    relative: Clause | None = None
    pronoun: str = ""  # I, he, she, we, they; who, what


class And(NamedTuple):
    """Two noun phrases joined by "and"."""

    first: NounPhrase
    second: NounPhrase


Phrase = NounPhrase | And


class Clause(NamedTuple):
    """A clause: subject, verb, objects, time and place. ``verb`` is None if ``adjective`` is the predicate."""

    subject: Phrase | None  # None: an infinitive, or a relative clause whose head is the subject
    verb: Verb | None
    tense: str = "pres"  # pres, past, fut, can, want, must
    negated: bool = False
    adjective: Adjective | None = None
    receiver: NounPhrase | None = None
    object: NounPhrase | None = None
    gap: str = ""  # for a relative clause: its head is the "subject" or the "object" of the clause
    place: Words | None = None
    goal: Words | None = None
    time: Words | None = None
    fronted: bool = False  # True if the time comes first
    frequency: Words | None = None
    that_clause: Clause | None = None  # a clause after "that"
    infinitive: Clause | None = None  # an infinitive after "to"


class Sentence(NamedTuple):
    """A main clause, and perhaps a second one with the reason or the condition."""

    kind: str  # statement, because, if, polar, who, what, where, when, why
    main: Clause
    other: Clause | None = None  # the reason or the condition
    depth: int = 0


def is_plural(phrase: Phrase) -> bool:
    """True if the verb of this subject is plural."""
    return isinstance(phrase, And) or phrase.plural or phrase.pronoun in ("we", "they")


def sentence_case(text: str) -> str:
    """Return text with a capital first letter."""
    return text[0].upper() + text[1:]
