"""Write sentences of the grammar in English, as constituency trees with the labels and tags of the Penn Treebank.

The text of a sentence is the words of its tree; in the tree, punctuation marks are words of their own.
"""

from __future__ import annotations

import re

from dragoman.data.phrasebook.grammar import And, Clause, NounPhrase, Phrase, Sentence, is_plural, sentence_case
from dragoman.data.phrasebook.lexicon import Mass, Verb, english_number

_TAGS = {
    "now": "RB", "every": "DT", "last": "JJ", "next": "JJ", "the": "DT", "a": "DT", "an": "DT", "this": "DT",
    "these": "DT", "some": "DT", "am": "VBP", "are": "VBP", "is": "VBZ", "was": "VBD", "were": "VBD", "do": "VBP",
    "does": "VBZ", "did": "VBD", "want": "VBP", "wants": "VBZ",
}  # fmt: skip
_WORD = re.compile(r"(?<![^()\s])[^()\s]++(?=\))")  # the end of a leaf
_PLURAL_DETERMINERS = {"the": "the", "this": "these", "some": "some"}


def tree(sentence: Sentence) -> str:
    """Return the tree of a sentence on one line, with the root TOP."""
    main, other, kind = sentence.main, sentence.other, sentence.kind
    inner = clause(main)
    if kind == "because" and other is not None:
        inner[-1] = inner[-1][:-1] + f" {_node('SBAR', '(IN because)', _node('S', *clause(other)))})"
    elif kind == "if" and other is not None:
        inner = [_node("SBAR", "(IN if)", _node("S", *clause(other))), "(, ,)", *inner]
    if kind in ("statement", "because", "if"):
        whole = _node("S", *inner, "(. .)")
    elif kind == "who":
        whole = _node("SBARQ", "(WHNP (WP who))", _node("SQ", inner[-1]), "(. ?)")
    elif kind == "what":
        whole = _node("SBARQ", "(WHNP (WP what))", _node("SQ", *question(main._replace(object=None))), "(. ?)")
    elif kind == "polar":
        whole = _node("SQ", *question(main), "(. ?)")
    else:
        whole = _node("SBARQ", f"(WHADVP (WRB {kind}))", _node("SQ", *question(main)), "(. ?)")
    return _WORD.sub(lambda word: sentence_case(word[0]), f"(TOP {whole})", count=1)


def english(sentence: Sentence) -> str:
    """Return the English sentence with capital and punctuation."""
    return re.sub(r" (?=[.,?])", "", " ".join(_WORD.findall(tree(sentence))))


def noun_phrase(phrase: Phrase) -> str:
    """Return an NP; with a relative clause, it holds a smaller NP and the clause."""
    if isinstance(phrase, And):
        return _node("NP", noun_phrase(phrase.first), "(CC and)", noun_phrase(phrase.second))
    if phrase.noun is None:
        return f"(NP (PRP {phrase.pronoun}))"
    is_single = isinstance(phrase.noun, Mass) or not phrase.plural
    words = [_leaf("NN", word) for word in phrase.noun.en.split()]
    if not is_single:
        words = [_leaf("NNS", word) for word in phrase.noun.en_plural.split()]  # type: ignore[union-attr]
    if phrase.adjective:
        words.insert(0, _leaf("JJ", phrase.adjective.en))
    determiner = phrase.determiner
    if determiner == "count":
        words.insert(0, _leaf("CD", english_number(phrase.number)))
    elif determiner == "a":
        first = phrase.adjective.en if phrase.adjective else phrase.noun.en
        words.insert(0, _leaf("DT", "an" if first[0] in "aeiou" else "a"))
    elif determiner != "bare":
        word = _PLURAL_DETERMINERS.get(determiner, determiner) if phrase.plural else determiner
        words.insert(0, _leaf(_TAGS.get(word, "PRP$"), word))
    alone = _node("NP", *words)
    return alone if phrase.relative is None else _node("NP", alone, relative(phrase, phrase.relative))


def relative(head: NounPhrase, inner: Clause) -> str:
    """Return the SBAR of a relative clause."""
    person = isinstance(head.noun, tuple) and head.noun.kind == "person"
    if inner.gap == "subject":
        pronoun, parts = "who", [predicate(inner, head.plural, first=False)]
    else:
        pronoun, parts = "whom", clause(inner)
    return _node("SBAR", f"(WHNP (WP {pronoun}))" if person else "(WHNP (WDT that))", _node("S", *parts))


def clause(inner: Clause) -> list[str]:
    """Return the children of an S: perhaps a time, then the subject and the VP."""
    assert inner.subject is not None
    parts = [noun_phrase(inner.subject), predicate(inner, is_plural(inner.subject), _is_first(inner.subject))]
    return [when(inner.time[0]), *parts] if inner.fronted and inner.time else parts


def predicate(inner: Clause, plural: bool, first: bool) -> str:
    """Return the VP of a clause, its verb agreeing with the subject (plural, or the first person)."""
    front = [f"(ADVP (RB {inner.frequency[0]}))"] if inner.frequency and inner.verb else []
    if inner.verb is None:
        denied = ["(RB not)"] if inner.negated else []
        return _node("VP", _tagged(be(inner.tense, plural, first)), *denied, *complements(inner))
    if inner.tense in ("pres", "past") and not inner.negated:
        past, base = inner.tense == "past", plural or first
        word = inner.verb.en_past if past else present(inner.verb, base)
        return _node("VP", *front, *_verb("VBD" if past else "VBP" if base else "VBZ", word), *complements(inner))
    auxiliary, verb = split_verb(inner, plural or first, needs_auxiliary=inner.negated)
    denied = ["(RB not)"] if inner.negated and auxiliary != "can" else []
    if auxiliary.endswith(" to"):
        return _node("VP", *front, _tagged(auxiliary.removesuffix(" to")), _to(inner.verb, inner))
    auxiliary = "cannot" if inner.negated and auxiliary == "can" else auxiliary
    return _node("VP", *front, _tagged(auxiliary), *denied, _bare(verb, inner))


def question(inner: Clause) -> list[str]:
    """Return the children of an SQ: the auxiliary, the subject, and the remaining VP or complements."""
    assert inner.subject is not None
    plural, first = is_plural(inner.subject), _is_first(inner.subject)
    subject = noun_phrase(inner.subject)
    if inner.verb is None:
        return [_tagged(be(inner.tense, plural, first)), subject, *complements(inner)]
    auxiliary, verb = split_verb(inner, plural or first, needs_auxiliary=True)
    return [_tagged(auxiliary), subject, _bare(verb, inner)]


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
    """Return the children of a VP after its verb: objects, places, time, infinitive and "that" clause."""
    parts = [f"(ADJP (JJ {inner.adjective.en}))"] if inner.adjective else []
    parts += [noun_phrase(part) for part in (inner.receiver, inner.object) if part is not None and not part.pronoun]
    parts += [when(part[0]) for part in (inner.goal, inner.place) if part]
    if inner.time and not inner.fronted:
        parts.append(when(inner.time[0]))
    if inner.infinitive is not None and inner.infinitive.verb is not None:
        parts.append(_to(inner.infinitive.verb, inner.infinitive))
    if inner.that_clause is not None:
        parts.append(_node("SBAR", "(IN that)", _node("S", *clause(inner.that_clause))))
    return parts


def when(text: str) -> str:
    """Return a fixed expression of time or place as a PP, an NP or an ADVP."""
    words = text.split()
    if words[0] in ("on", "in", "at", "to", "into"):
        return _node("PP", f"({'TO' if words[0] == 'to' else 'IN'} {words[0]})", _nouns(words[1:]))
    return f"(ADVP (RB {text}))" if _TAGS.get(text) == "RB" else _nouns(words)


def _nouns(words: list[str]) -> str:
    """Return words such as "the 3rd of May" as an NP."""
    if "of" in words:
        place = words.index("of")
        return _node("NP", _nouns(words[:place]), _node("PP", "(IN of)", _nouns(words[place + 1 :])))
    *before, last = words
    tag = "NNP" if last[0].isupper() else "NN"
    return _node("NP", *map(_tagged, before), _leaf(tag, last))


def _bare(verb: str, inner: Clause) -> str:
    """Return the VP of an infinitive without "to"; "want to X" becomes a VP of "want"."""
    if verb.startswith("want to ") and inner.verb is not None:
        return _node("VP", "(VB want)", _to(inner.verb, inner))
    return _node("VP", *_verb("VB", verb), *complements(inner))


def _to(verb: Verb, inner: Clause) -> str:
    """Return the S of an infinitive with "to"."""
    return _node("S", _node("VP", "(TO to)", _node("VP", *_verb("VB", verb.en), *complements(inner))))


def _verb(tag: str, text: str) -> list[str]:
    """Return the leaf of a verb, and a PRT for its particle if it has one."""
    word, *particles = text.split()
    return [_leaf(tag, word), *(f"(PRT (RP {particle}))" for particle in particles)]


def _is_first(subject: Phrase) -> bool:
    """True if the subject is "I"."""
    return isinstance(subject, NounPhrase) and subject.pronoun == "I"


def _tagged(word: str) -> str:
    """Return the leaf of a function word with its tag; modal verbs are MD."""
    return _leaf(_TAGS.get(word, "MD"), word)


def _leaf(tag: str, word: str) -> str:
    """Return a tagged word."""
    return f"({tag} {word})"


def _node(label: str, *children: str) -> str:
    """Return a constituent with its children."""
    return f"({label} {' '.join(children)})"
