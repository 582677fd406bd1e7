"""Draw sentences of the grammar at random, independent of a language."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, TypeVar

from dragoman.data.phrasebook import lexicon
from dragoman.data.phrasebook.grammar import And, Clause, NounPhrase, Phrase, Sentence, Words
from dragoman.data.phrasebook.lexicon import Mass, Noun, Verb, chinese_number, english_ordinal, german_ordinal

SPLITS = ("train", "held_out", "deeper")

RESERVED_SHARE = 16
"""One of this many combinations of words is kept out of ``train``."""

_MASK = 2**64 - 1
_GOLDEN = 0x9E3779B97F4A7C15
_DEPTHS = (0, 0, 0, 0, 1, 1, 1, 1, 2, 2)

T = TypeVar("T")


def derive(index: int, seed: int, split: str) -> Sentence:
    """Return the sentence of a number: drawn again until it fits the split. The arguments decide all draws."""
    start = mix(mix(seed + _GOLDEN) ^ index) ^ SPLITS.index(split)
    attempt = 0
    while True:
        draw = Draw(mix(start + attempt * _GOLDEN))
        sentence = draw.sentence(3 if split == "deeper" else draw.one(_DEPTHS))
        if has_reserved(sentence) == (split == "held_out"):
            return sentence
        attempt += 1


def mix(x: int) -> int:
    """Return a 64-bit number with its bits mixed: SplitMix64's finaliser (https://prng.di.unimi.it/splitmix64.c)."""
    x &= _MASK
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & _MASK
    return x ^ (x >> 31)


def is_reserved(first: str, second: str) -> bool:
    """True if a combination of two English words is kept out of ``train``."""
    x = 0
    for byte in f"{first}+{second}".encode():
        x = (x * 257 + byte) & _MASK
    return mix(x) % RESERVED_SHARE == 0


_VERBS = [*lexicon.TRANSITIVE, *lexicon.GIVING, *lexicon.INTRANSITIVE, lexicon.GO, *lexicon.SAYING, *lexicon.TRYING]
_ALL_NOUNS: list[Noun | Mass] = [*lexicon.NOUNS, *lexicon.MASSES]
COMBINATIONS = [
    *((quality.en, noun.en) for quality in lexicon.ADJECTIVES for noun in lexicon.NOUNS if noun.kind in quality.kinds),
    *((verb.en, noun.en) for verb in _VERBS for noun in lexicon.NOUNS if noun.kind in verb.objects),
    *((noun.en, verb.en) for verb in _VERBS for noun in lexicon.NOUNS if noun.kind in verb.subjects),
]
"""Possible combinations of words: adjective and noun, verb and object, subject and verb.

Drinks are left out: a form such as "kaltes" fits only one of them and would be missing from ``train``.
"""

RESERVED = frozenset(pair for pair in COMBINATIONS if is_reserved(*pair))
"""Combinations that never occur in ``train``."""

_ODD = {("friendly", "friend"), ("young", "boy"), ("young", "girl"), ("young", "child"), ("young", "grandmother")}
_ADJECTIVES = {
    noun.en: [
        quality for quality in lexicon.ADJECTIVES if noun.kind in quality.kinds and (quality.en, noun.en) not in _ODD
    ]
    for noun in _ALL_NOUNS
}
_OBJECTS = {
    verb.en: [noun for noun in _ALL_NOUNS if noun.kind in verb.objects] for verb in _VERBS if verb.objects
}  # fmt: skip
_SUBJECTS = {verb.en: [noun for noun in lexicon.NOUNS if noun.kind in verb.subjects] for verb in _VERBS}
_PEOPLE = [noun for noun in lexicon.NOUNS if noun.kind == "person"]
_WITH_OBJECT = {  # verbs whose object may be a noun of this kind with a relative clause
    noun.kind: [verb for verb in lexicon.TRANSITIVE if verb.relative and noun.kind in verb.objects]
    for noun in lexicon.NOUNS
}
_ASKABLE = [verb for verb in lexicon.TRANSITIVE if "person" not in verb.objects]
_ACTS = {  # verbs for a relative clause whose subject is a noun of this kind
    kind: [verb for verb in (*lexicon.TRANSITIVE, *lexicon.INTRANSITIVE) if kind in verb.subjects]
    for kind in ("person", "animal")
}
_WITHOUT_POSSESSIVE = ("man", "woman")  # nouns without a possessive: "my woman" is not idiomatic
_NOT_DENIED_NOW = ("find", "see")  # Chinese expresses the inability by other words

_TENSES = ("pres", "pres", "pres", "past", "past", "past", "fut", "can", "want", "must")
_PLAIN_TENSES = ("pres", "past")
_OWNERS = tuple(lexicon.POSSESSIVES)
_PRONOUNS = ("I", "he", "she", "we", "they")


def has_reserved(sentence: Sentence) -> bool:
    """True if a sentence holds a combination that is kept out of ``train``."""
    clauses = (sentence.main,) if sentence.other is None else (sentence.main, sentence.other)
    return any(pair in RESERVED for clause in clauses for pair in meetings(clause))


def meetings(clause: Clause, head: NounPhrase | None = None) -> Iterator[tuple[str, str]]:
    """Yield the combinations of words in a clause and in the clauses nested in it.

    Args:
        head: The noun phrase that a relative clause describes.
    """
    verb, subject, direct_object = clause.verb, clause.subject, clause.object
    if clause.gap == "subject":
        subjects: tuple[NounPhrase, ...] = () if head is None else (head,)
    else:
        subjects = (subject.first, subject.second) if isinstance(subject, And) else (subject,) if subject else ()
    if clause.gap == "object" and head is not None:
        direct_object = head
    objects = () if direct_object is None else (direct_object,)
    for phrase in subjects:
        if phrase.noun is not None:
            if verb is not None:
                yield phrase.noun.en, verb.en
            elif clause.adjective is not None:
                yield clause.adjective.en, phrase.noun.en
    for phrase in objects:
        if phrase.noun is not None and verb is not None:
            yield verb.en, phrase.noun.en
    for phrase in (*subjects, *objects, *((clause.receiver,) if clause.receiver else ())):
        if phrase is head or phrase.noun is None:
            continue
        if phrase.adjective is not None:
            yield phrase.adjective.en, phrase.noun.en
        if phrase.relative is not None:
            yield from meetings(phrase.relative, phrase)
    for nested in (clause.that_clause, clause.infinitive):
        if nested is not None:
            yield from meetings(nested)


def unambiguous_tense(verb: Verb, tense: str) -> str:
    """Return the tense; present instead of past for "read" and others whose English past looks like the present."""
    return "pres" if tense == "past" and verb.en == verb.en_past else tense


class Draw:
    """One derivation: random choices made with a stream of numbers from a seed."""

    def __init__(self, seed: int) -> None:
        self.word = seed

    def below(self, n: int) -> int:
        """Return a random number from 0 to ``n - 1``."""
        self.word = (self.word + _GOLDEN) & _MASK
        return (mix(self.word) * n) >> 64

    def one(self, options: Sequence[T]) -> T:
        """Return one of ``options`` at random."""
        return options[self.below(len(options))]

    # Sentences

    def sentence(self, depth: int) -> Sentence:
        """Draw a sentence whose clauses are nested exactly ``depth`` deep."""
        if depth == 0:
            kind = self.below(10)
            if kind < 6:
                return Sentence("statement", self.clause(0, main=True))
            return self.question()
        if self.below(3) == 0:
            if self.below(2):
                return Sentence("because", self.clause(0), self.clause(depth - 1), depth)
            condition = self.clause(depth - 1, tenses=("pres",))
            return Sentence("if", self.clause(0, tenses=("pres", "fut", "fut", "can", "must")), condition, depth)
        return Sentence("statement", self.clause(depth, main=True), depth=depth)

    def question(self) -> Sentence:
        """Draw a question without nested clauses."""
        kind = self.one(("polar", "polar", "who", "what", "where", "when", "why"))
        tenses = ("pres", "fut") if kind in ("where", "when") else ("pres", "past", "fut", "can")
        inner = self.clause(0, tenses=tenses, denied=False)
        while inner.verb is None and kind in ("where", "when", "who"):
            inner = self.clause(0, tenses=tenses, denied=False)
        inner = inner._replace(frequency=None, fronted=False)
        if kind == "who":
            inner = inner._replace(subject=NounPhrase(None, "pronoun", pronoun="who"))
        elif kind == "where":
            inner = inner._replace(place=None)
            if inner.goal:
                kind = "why"
        elif kind == "when":
            inner = inner._replace(time=None)
        elif kind == "what":
            verb = self.one(_ASKABLE)
            subject = self.subject(_SUBJECTS[verb.en], verb)
            what = NounPhrase(None, "pronoun", pronoun="what")
            inner = Clause(subject, verb, inner.tense, object=what, time=inner.time if inner.verb else None)
        return Sentence(kind, inner)

    # Clauses

    def clause(self, depth: int, main: bool = False, tenses: Sequence[str] = _TENSES, denied: bool = True) -> Clause:
        """Draw a clause with a subject; clauses are nested in it exactly ``depth`` deep.

        Args:
            main: A main clause, whose time may come first.
            tenses: Tenses to choose from.
            denied: It may be negated.
        """
        if depth == 0:
            return self.simple(main, tenses, denied)
        if self.below(2) == 0:
            return self.saying(depth, tenses)
        inner = self.simple(main, tenses, denied, hold=True)
        subject, direct_object = inner.subject, inner.object
        on_subject = isinstance(subject, NounPhrase) and subject.noun is not None
        object_noun = None if direct_object is None else direct_object.noun
        on_object = isinstance(object_noun, Noun) and (depth == 1 or object_noun.kind == "person")
        if isinstance(subject, NounPhrase) and on_subject and not (on_object and self.below(2)):
            return inner._replace(subject=self.with_relative(subject, depth - 1))
        if direct_object is not None and on_object:
            # Words after a relative clause would seem to belong to it.
            time = inner.time if inner.fronted else None
            return inner._replace(object=self.with_relative(direct_object, depth - 1), time=time, place=None)
        return self.saying(depth, tenses)

    def saying(self, depth: int, tenses: Sequence[str]) -> Clause:
        """Draw a clause with "that": somebody says, knows, believes or hopes that ..."""
        verb = self.one(lexicon.SAYING)
        tense = "past" if verb.en != "know" and "past" in tenses and self.below(2) else "pres"
        denied = tense == "pres" and verb.en in ("know", "believe") and self.below(5) == 0
        subject = self.subject(_PEOPLE, verb)
        return Clause(subject, verb, tense, denied, that_clause=self.clause(depth - 1, tenses=_TENSES))

    def simple(self, main: bool, tenses: Sequence[str], denied: bool, hold: bool = False) -> Clause:
        """Draw a clause without nested ones; with ``hold``, its subject or object can take a relative clause."""
        kind = self.below(20)
        if kind < 10 or hold:
            inner = self.transitive(self.one(lexicon.TRANSITIVE), self.one(tenses))
        elif kind < 13:
            verb = self.one(lexicon.INTRANSITIVE)
            inner = Clause(self.subject(_SUBJECTS[verb.en], verb), verb, self.one(tenses))
        elif kind < 15:
            inner = self.giving(self.one(tenses))
        elif kind < 17:
            subject = self.subject(_PEOPLE, lexicon.GO)
            inner = Clause(subject, lexicon.GO, self.one(tenses), goal=self.one(lexicon.GOALS))
        elif kind < 19:
            inner = self.state(self.one(_PLAIN_TENSES if "past" in tenses else ("pres",)))
        else:
            inner = self.trying(self.one(_PLAIN_TENSES if "past" in tenses else ("pres",)))
        return self.furnished(inner, main, denied)

    def transitive(self, verb: Verb, tense: str) -> Clause:
        """Draw a clause with a direct object."""
        return Clause(
            self.subject(_SUBJECTS[verb.en], verb), verb, unambiguous_tense(verb, tense), object=self.object(verb)
        )

    def giving(self, tense: str) -> Clause:
        """Draw a clause with a receiver and an object, such as "gives somebody something"."""
        verb = self.one(lexicon.GIVING)
        person = self.one(_PEOPLE)
        receiver = NounPhrase(person, self.owner(person) if self.below(2) else "the")
        return Clause(self.subject(_PEOPLE, verb), verb, tense, receiver=receiver, object=self.object(verb))

    def state(self, tense: str) -> Clause:
        """Draw a clause with an adjective as predicate."""
        noun = self.one(lexicon.NOUNS)
        adjective = self.one(_ADJECTIVES[noun.en])
        plural = self.below(3) == 0
        determiner = self.one(("the", "this", "poss"))
        determiner = self.owner(noun) if determiner == "poss" else determiner
        return Clause(NounPhrase(noun, determiner, plural), None, tense, adjective=adjective)

    def trying(self, tense: str) -> Clause:
        """Draw a clause with an infinitive: somebody tries or forgets to do something."""
        verb, act = self.one(lexicon.TRYING), self.one(lexicon.TRANSITIVE)
        infinitive = Clause(None, act, object=self.object(act))
        return Clause(self.subject(_PEOPLE, verb), verb, tense, infinitive=infinitive)

    def furnished(self, inner: Clause, main: bool, denied: bool) -> Clause:
        """Add time, place, frequency or a negation to a clause at random, if they make sense."""
        changes: dict[str, Any] = {}
        chance = self.below(10)
        if inner.verb is None:
            if chance < 3 and denied:
                changes["negated"] = True
        elif chance < 3 and denied and self.deniable(inner):
            changes["negated"] = True
        elif chance == 3 and inner.tense == "pres" and inner.infinitive is None:
            changes["frequency"] = self.one(lexicon.FREQUENCIES)
        if inner.verb is not None and inner.infinitive is None:
            if self.below(3) == 0 and "frequency" not in changes:
                changes["time"] = self.time(inner.tense)
                changes["fronted"] = main and self.below(3) == 0
            if inner.goal is None and inner.receiver is None and self.below(4) == 0:
                changes["place"] = self.one(lexicon.PLACES)
        return inner._replace(**changes) if changes else inner

    def deniable(self, inner: Clause) -> bool:
        """True if all three languages can negate this clause without other words."""
        subject, direct_object = inner.subject, inner.object
        if inner.tense == "must" or inner.infinitive is not None or inner.verb is None:
            return False
        if isinstance(subject, And) or (subject is not None and subject.determiner in ("some", "count")):
            return False
        if direct_object is not None and direct_object.determiner in ("some", "count"):
            return False
        return inner.verb.en not in _NOT_DENIED_NOW or inner.tense in ("past", "fut")

    def time(self, tense: str) -> Words:
        """Draw a time that fits a tense: a day, a weekday or a date."""
        kind = self.below(6)
        if kind == 0 or (kind < 3 and tense in ("can", "want", "must")):
            english, german, chinese = self.one(lexicon.WEEKDAYS)
            return f"on {english}", f"am {german}", chinese
        if kind == 1:
            day, number = 1 + self.below(28), self.below(12)
            english, german = lexicon.MONTHS[number]
            return (
                f"on the {english_ordinal(day)} of {english}",
                f"am {german_ordinal(day)} {german}",
                f"{chinese_number(number + 1)}月{chinese_number(day)}日",
            )
        return self.one(lexicon.TIMES["fut" if tense in ("can", "want", "must") else tense])

    # Phrases

    def subject(self, nouns: Sequence[Noun], verb: Verb) -> Phrase:
        """Draw a subject for a verb: a pronoun, a noun phrase, or two of them with "and"."""
        kind = self.below(20)
        if kind < 4 and "person" in verb.subjects:
            return NounPhrase(None, "pronoun", pronoun=self.one(_PRONOUNS))
        first = self.noun_phrase(self.one(nouns), ("the", "the", "the", "the", "this", "poss", "some", "count"))
        if kind == 4 and first.determiner in ("the", *lexicon.POSSESSIVES):
            second_noun = self.one(nouns)
            second = NounPhrase(second_noun, "the" if second_noun.en in _WITHOUT_POSSESSIVE else first.determiner)
            if second.noun is not first.noun:
                return And(first, second)
        return first

    def object(self, verb: Verb) -> NounPhrase:
        """Draw an object for a verb."""
        noun = self.one(_OBJECTS[verb.en])
        if isinstance(noun, Mass):
            adjective = self.one(_ADJECTIVES[noun.en]) if self.below(3) == 0 else None
            return NounPhrase(noun, "bare", adjective=adjective)
        return self.noun_phrase(noun, ("the", "the", "the", "a", "a", "a", "this", "poss", "some", "count", "bare"))

    def owner(self, noun: Noun) -> str:
        """Draw a possessive for a noun; "the" for a noun without one."""
        return "the" if noun.en in _WITHOUT_POSSESSIVE else self.one(_OWNERS)

    def noun_phrase(self, noun: Noun, determiners: Sequence[str]) -> NounPhrase:
        """Draw a noun phrase: the noun with one of ``determiners`` and perhaps an adjective."""
        determiner, plural, count = self.one(determiners), self.below(4) == 0, 0
        if determiner == "poss":
            determiner = self.owner(noun)
        elif determiner == "count":
            plural, count = True, 2 + (self.below(11) if self.below(3) else self.below(98))
        elif determiner in ("some", "bare"):
            plural = True
        elif determiner == "a":
            plural = False
        adjective = None
        if self.below(3) == 0:
            adjective = self.one(_ADJECTIVES[noun.en])
        return NounPhrase(noun, determiner, plural, count, adjective)

    def with_relative(self, head: NounPhrase, depth: int) -> NounPhrase:
        """Add a relative clause, nested ``depth`` deep, to a noun phrase; its determiner becomes "the" or "a"."""
        noun = head.noun
        assert isinstance(noun, Noun)
        determiner = head.determiner if head.determiner in ("the", "a") else "the"
        plural = head.plural and determiner == "the"
        acts = _ACTS.get(noun.kind, [])
        if depth:
            inner = self.relative_saying(noun, depth) if noun.kind == "person" else self.relative_seeing(noun, depth)
        elif acts and (self.below(2) or not _WITH_OBJECT[noun.kind]):
            verb = self.one(acts)
            tense = unambiguous_tense(verb, self.one(_PLAIN_TENSES))
            inner = Clause(None, verb, tense, gap="subject", object=self.object(verb) if verb.objects else None)
        else:
            verb = self.one(_WITH_OBJECT[noun.kind])
            tense = unambiguous_tense(verb, self.one(_PLAIN_TENSES))
            inner = Clause(self.subject(_SUBJECTS[verb.en], verb), verb, tense, gap="object")
        return NounPhrase(noun, determiner, plural, 0, head.adjective, inner)

    def relative_saying(self, noun: Noun, depth: int) -> Clause:
        """Draw a relative clause with a person as subject: "who says that ...", or "who helps the man who ..."."""
        if self.below(2):
            verb = self.one(lexicon.SAYING)
            return Clause(None, verb, "pres", gap="subject", that_clause=self.clause(depth - 1))
        verb = self.one([verb for verb in _ACTS["person"] if "person" in verb.objects])
        return Clause(None, verb, self.one(_PLAIN_TENSES), gap="subject", object=self.nested_object(verb, depth))

    def relative_seeing(self, noun: Noun, depth: int) -> Clause:
        """Draw a relative clause such as "that sees the man who ..."."""
        verb = next(verb for verb in lexicon.TRANSITIVE if verb.en == "see")
        return Clause(None, verb, self.one(_PLAIN_TENSES), gap="subject", object=self.nested_object(verb, depth))

    def nested_object(self, verb: Verb, depth: int) -> NounPhrase:
        """Draw a person with a relative clause, whose clauses are nested ``depth - 1`` deep."""
        noun = self.one(_PEOPLE)
        return self.with_relative(self.noun_phrase(noun, ("the",)), depth - 1)
