"""Write sentences of the grammar in German."""

from __future__ import annotations

from dragoman.data.phrasebook.grammar import And, Clause, NounPhrase, Phrase, Sentence, is_plural, sentence_case
from dragoman.data.phrasebook.lexicon import (
    DE_STEMS,
    POSSESSIVES,
    PRONOUNS,
    Adjective,
    Mass,
    Noun,
    Verb,
    german_number,
)

# by case, then masculine, feminine, neuter, plural
_ARTICLE = {"nom": "der die das die", "acc": "den die das die", "dat": "dem der dem den"}
_THIS = {"nom": "r - s -", "acc": "n - s -", "dat": "m r m n"}  # endings of diese
_A = {"nom": "- e - e", "acc": "en e - e", "dat": "em er em en"}  # endings of ein, kein, mein
_RELATIVE = {"nom": "der die das die", "acc": "den die das die", "dat": "dem der dem denen"}
_WEAK = {"nom": "e e e en", "acc": "en e e en", "dat": "en en en en"}  # adjectives after der, dieser
_MIXED = {"nom": "er e es en", "acc": "en e es en", "dat": "en en en en"}  # after ein, kein, mein
_STRONG = {"nom": "er e es e", "acc": "en e es e", "dat": "em er em en"}  # after nothing, einige, numbers
_TABLES = {
    name: {case: dict(zip(("m", "f", "n", "pl"), row.split(), strict=True)) for case, row in table.items()}
    for name, table in {
        "article": _ARTICLE, "this": _THIS, "a": _A, "relative": _RELATIVE,
        "weak": _WEAK, "mixed": _MIXED, "strong": _STRONG,
    }.items()
}  # fmt: skip
_AUXILIARIES = {  # ich, er, wir
    "haben": ("habe", "hat", "haben"),
    "sein": ("bin", "ist", "sind"),
    "war": ("war", "war", "waren"),
    "fut": ("werde", "wird", "werden"),
    "can": ("kann", "kann", "können"),
    "want": ("will", "will", "wollen"),
    "must": ("muss", "muss", "müssen"),
}
_QUESTION_WORDS = {"where": "wo", "when": "wann", "why": "warum", "what": "was"}


def german(sentence: Sentence) -> str:
    """Return the German sentence with capital and punctuation."""
    main, other, kind = sentence.main, sentence.other, sentence.kind
    if kind == "because" and other is not None:
        words = [*clause(main, "second"), ",", "weil", *clause(other, "last"), "."]
    elif kind == "if" and other is not None:
        words = ["wenn", *clause(other, "last"), ",", *clause(main, "first"), "."]
    elif kind == "statement":
        words = [*clause(main, "second"), "."]
    elif kind == "who":
        words = [*clause(main, "second"), "?"]
    elif kind == "polar":
        words = [*clause(main, "first"), "?"]
    else:
        words = [_QUESTION_WORDS[kind], *clause(main._replace(object=None) if kind == "what" else main, "first"), "?"]
    return sentence_case(punctuated(words))


def punctuated(words: list[str]) -> str:
    """Join words and marks; a comma before another mark is dropped."""
    parts: list[str] = []
    for word in words:
        if word in ",.?" and parts and parts[-1] == ",":
            parts.pop()
        parts.append(word)
    return " ".join(parts).replace(" ,", ",").replace(" .", ".").replace(" ?", "?")


def clause(inner: Clause, verb_place: str) -> list[str]:
    """Return a clause whose finite verb stands first, second or last.

    Between the verbs stand time, frequency, receiver, object, nicht, place, goal and predicate, in this order; nested
    clauses follow the last verb.
    """
    person = person_of(inner.subject)
    finite, end = verbs(inner, person)
    subject = [] if inner.subject is None else noun_phrase(inner.subject, "nom")
    time = [inner.time[1]] if inner.time else []
    middle = middle_field(inner)
    if verb_place == "last":
        return [*subject, *time, *middle, *joined(end, finite, inner), *after(inner)]
    if verb_place == "first":
        return [finite, *subject, *time, *middle, *end, *after(inner)]
    if inner.fronted:
        return [*time, finite, *subject, *middle, *end, *after(inner)]
    return [*subject, finite, *time, *middle, *end, *after(inner)]


def joined(end: list[str], finite: str, inner: Clause) -> list[str]:
    """Return the verbs at the end of a clause; a separable particle and its finite verb become one word."""
    if inner.verb is not None and inner.verb.particle and end == [inner.verb.particle]:
        return [inner.verb.particle + finite]
    return [*end, finite]


def person_of(subject: Phrase | None) -> int:
    """Return the column of a subject in a table of verb forms: 0 for ich, 1 for er, 2 for wir."""
    if subject is None:
        return 1
    if isinstance(subject, NounPhrase) and subject.pronoun == "I":
        return 0
    return 2 if is_plural(subject) else 1


def verbs(inner: Clause, person: int) -> tuple[str, list[str]]:
    """Return the finite verb, and the verbs at the end of the clause."""
    verb, tense = inner.verb, inner.tense
    if verb is None:
        return _AUXILIARIES["war" if tense == "past" else "sein"][person], []
    if tense == "pres":
        return present(verb, person), [verb.particle] if verb.particle else []
    if tense == "past":
        return _AUXILIARIES[verb.aux][person], [verb.de_participle]
    return _AUXILIARIES[tense][person], [verb.particle + verb.de]


def present(verb: Verb, person: int) -> str:
    """Return the present tense, without a separable particle."""
    if person == 1:
        return verb.de_third
    if person == 2:
        return verb.de
    if verb.de == "wissen":
        return "weiß"
    return verb.de[:-1] + ("e" if verb.de.endswith("ern") else "")


def middle_field(inner: Clause) -> list[str]:
    """Return the words between the finite verb and the verbs at the end, without the time."""
    words = [inner.frequency[1]] if inner.frequency else []
    case = inner.verb.case if inner.verb else "acc"
    negated = inner.negated
    if inner.receiver is not None:
        words += noun_phrase(inner.receiver, "dat")
    if inner.object is not None and not inner.object.pronoun:
        no = negated and inner.object.determiner in ("a", "bare")
        direct_object = inner.object._replace(relative=None)  # its relative clause follows the verbs
        words += noun_phrase(direct_object._replace(determiner="no") if no else direct_object, case)
        negated = negated and not no
    if negated:
        words.append("nicht")
    words += [part[1] for part in (inner.place, inner.goal) if part]
    if inner.adjective:
        words.append(inner.adjective.de)
    return words


def after(inner: Clause) -> list[str]:
    """Return the relative clause of the object, the infinitive and the "dass" clause, which follow the verbs."""
    words: list[str] = []
    if inner.object is not None and inner.object.relative is not None and inner.object.noun is not None:
        form = "pl" if inner.object.plural else inner.object.noun.gender
        words += relative(inner.object, inner.object.relative, form)
    if inner.infinitive is not None and inner.infinitive.verb is not None:
        verb = inner.infinitive.verb
        infinitive = [f"{verb.particle}zu{verb.de}"] if verb.particle else ["zu", verb.de]
        words += [",", *middle_field(inner.infinitive), *infinitive, ","]
    if inner.that_clause is not None:
        words += [",", "dass", *clause(inner.that_clause, "last"), ","]
    return words


def noun_phrase(phrase: Phrase, case: str) -> list[str]:
    """Return a noun phrase in a case: nom, acc or dat."""
    if isinstance(phrase, And):
        return [*noun_phrase(phrase.first, case), "und", *noun_phrase(phrase.second, case)]
    if phrase.noun is None:
        return ["wer"] if phrase.pronoun == "who" else [PRONOUNS[phrase.pronoun][0]]
    form = "pl" if phrase.plural else phrase.noun.gender
    determiner, ending = determined(phrase, case, form)
    words = [determiner] if determiner else []
    if phrase.adjective:
        words.append(stem(phrase.adjective) + _TABLES[ending][case][form])
    words.append(noun_form(phrase.noun, case, phrase.plural))
    if phrase.relative is not None:
        words += relative(phrase, phrase.relative, form)
    return words


def determined(phrase: NounPhrase, case: str, form: str) -> tuple[str, str]:
    """Return the determiner, and the table of adjective endings after it: weak, mixed or strong."""
    determiner = phrase.determiner
    if determiner == "the":
        return _TABLES["article"][case][form], "weak"
    if determiner == "this":
        return "diese" + _TABLES["this"][case][form].strip("-"), "weak"
    if determiner == "some":
        return "einigen" if case == "dat" else "einige", "strong"
    if determiner == "count":
        return german_number(phrase.number), "strong"
    if determiner == "bare":
        return "", "strong"
    word = {"a": "ein", "no": "kein"}.get(determiner) or POSSESSIVES[determiner][0]
    return word + _TABLES["a"][case][form].strip("-"), "mixed"


def stem(adjective: Adjective) -> str:
    """Return the stem of an adjective, to which endings are added."""
    return DE_STEMS.get(adjective.de, adjective.de)


def noun_form(noun: Noun | Mass, case: str, plural: bool) -> str:
    """Return a noun in a case and number."""
    if isinstance(noun, Mass):
        return noun.de
    if not plural:
        return noun.de if case == "nom" else noun.de + noun.weak
    return noun.de_plural + ("n" if case == "dat" and noun.de_plural[-1] not in "ns" else "")


def relative(head: NounPhrase, inner: Clause, form: str) -> list[str]:
    """Return a relative clause between commas; the pronoun's case follows from what ``inner`` lacks.

    Args:
        form: The head's gender, or ``pl``: with the case it selects the pronoun.
    """
    if inner.gap == "subject":
        pronoun = _TABLES["relative"]["nom"][form]
        person = 2 if head.plural else 1
        finite, end = verbs(inner, person)
        time = [inner.time[1]] if inner.time else []
        return [",", pronoun, *time, *middle_field(inner), *joined(end, finite, inner), *after(inner), ","]
    case = inner.verb.case if inner.verb else "acc"
    return [",", _TABLES["relative"][case][form], *clause(inner, "last"), ","]
