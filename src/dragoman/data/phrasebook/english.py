"""Write sentences of the grammar in English."""

from __future__ import annotations

from dragoman.data.phrasebook.grammar import And, Clause, NounPhrase, Phrase, Sentence, is_plural, sentence_case
from dragoman.data.phrasebook.lexicon import Mass, Verb, english_number

_PLURAL_DETERMINERS = {"the": "the", "this": "these", "some": "some"}


def english(sentence: Sentence) -> str:
    """Return the English sentence with capital and punctuation."""
    main, other, kind = sentence.main, sentence.other, sentence.kind
    if kind == "because" and other is not None:
        text = f"{clause(main)} because {clause(other)}."
    elif kind == "if" and other is not None:
        text = f"if {clause(other)}, {clause(main)}."
    elif kind == "statement":
        text = clause(main) + "."
    elif kind == "who":
        text = clause(main) + "?"
    elif kind == "what":
        text = f"what {question(main._replace(object=None))}?"
    elif kind == "polar":
        text = question(main) + "?"
    else:
        text = f"{kind} {question(main)}?"  # where, when, why
    return sentence_case(text)


def noun_phrase(phrase: Phrase) -> str:
    """Return a noun phrase; pronouns are in the nominative."""
    if isinstance(phrase, And):
        return f"{noun_phrase(phrase.first)} and {noun_phrase(phrase.second)}"
    if phrase.noun is None:
        return phrase.pronoun
    noun = phrase.noun.en if isinstance(phrase.noun, Mass) or not phrase.plural else phrase.noun.en_plural
    words = [phrase.adjective.en, noun] if phrase.adjective else [noun]
    determiner = phrase.determiner
    if determiner == "count":
        words.insert(0, english_number(phrase.number))
    elif determiner == "a":
        words.insert(0, "an" if words[0][0] in "aeiou" else "a")
    elif determiner != "bare":
        words.insert(0, _PLURAL_DETERMINERS.get(determiner, determiner) if phrase.plural else determiner)
    if phrase.relative is not None:
        words.append(relative(phrase, phrase.relative))
    return " ".join(words)


def relative(head: NounPhrase, inner: Clause) -> str:
    """Return a relative clause, which follows its noun."""
    person = isinstance(head.noun, tuple) and head.noun.kind == "person"
    if inner.gap == "subject":
        return f"{'who' if person else 'that'} {predicate(inner, head.plural, first=False)}"
    return f"{'whom' if person else 'that'} {clause(inner)}"


def clause(inner: Clause) -> str:
    """Return a clause with the subject before the verb."""
    assert inner.subject is not None
    first_person = isinstance(inner.subject, NounPhrase) and inner.subject.pronoun == "I"
    words = [noun_phrase(inner.subject), predicate(inner, is_plural(inner.subject), first_person)]
    if inner.fronted and inner.time:
        words.insert(0, inner.time[0])
    return " ".join(words)


def predicate(inner: Clause, plural: bool, first: bool) -> str:
    """Return a clause without its subject, the verb agreeing with it (plural, or the first person)."""
    words = []
    if inner.frequency and inner.verb:
        words.append(inner.frequency[0])
    if inner.verb is None:
        words.append(be(inner.tense, plural, first) + (" not" if inner.negated else ""))
    elif inner.tense in ("pres", "past") and not inner.negated:
        words.append(inner.verb.en_past if inner.tense == "past" else present(inner.verb, plural or first))
    else:
        auxiliary, verb = split_verb(inner, plural or first, needs_auxiliary=inner.negated)
        words += [("cannot" if auxiliary == "can" else f"{auxiliary} not") if inner.negated else auxiliary, verb]
    return " ".join([*words, *complements(inner)])


def question(inner: Clause) -> str:
    """Return a clause with the auxiliary before the subject, without a question mark."""
    assert inner.subject is not None
    plural = is_plural(inner.subject)
    first = isinstance(inner.subject, NounPhrase) and inner.subject.pronoun == "I"
    subject = noun_phrase(inner.subject)
    if inner.verb is None:
        return " ".join([be(inner.tense, plural, first), subject, *complements(inner)])
    auxiliary, verb = split_verb(inner, plural or first, needs_auxiliary=True)
    return " ".join([auxiliary, subject, verb, *complements(inner)])


def be(tense: str, plural: bool, first: bool) -> str:
    """Return the form of "to be", present or past."""
    if tense == "past":
        return "were" if plural else "was"
    return "are" if plural else "am" if first else "is"


def present(verb: Verb, base: bool) -> str:
    """Return the present tense: ``read`` if ``base``, else ``reads``."""
    return verb.en if base else verb.en_third


def split_verb(inner: Clause, base: bool, needs_auxiliary: bool) -> tuple[str, str]:
    """Return the auxiliary and the infinitive of a verb.

    Args:
        base: The verb has no third-person ending: ``do``, not ``does``.
        needs_auxiliary: In a question or a negation, where "want" needs ``do``.
    """
    assert inner.verb is not None
    do = "do" if base else "does"
    if inner.tense == "want" and not needs_auxiliary:
        return ("want to" if base else "wants to"), inner.verb.en
    auxiliaries = {"pres": do, "past": "did", "fut": "will", "can": "can", "must": "must", "want": do}
    verb = f"want to {inner.verb.en}" if inner.tense == "want" else inner.verb.en
    return auxiliaries[inner.tense], verb


def complements(inner: Clause) -> list[str]:
    """Return the words after the verb: objects, places, time, infinitive and "that" clause."""
    words = []
    if inner.adjective:
        words.append(inner.adjective.en)
    words += [noun_phrase(part) for part in (inner.receiver, inner.object) if part is not None and not part.pronoun]
    words += [part[0] for part in (inner.goal, inner.place) if part]
    if inner.time and not inner.fronted:
        words.append(inner.time[0])
    if inner.infinitive is not None and inner.infinitive.verb is not None:
        words += ["to", inner.infinitive.verb.en, *complements(inner.infinitive)]
    if inner.that_clause is not None:
        words.append(f"that {clause(inner.that_clause)}")
    return words
