"""Write sentences of the grammar in Chinese, in simplified characters."""

from __future__ import annotations

from dragoman.data.phrasebook.grammar import And, Clause, NounPhrase, Phrase, Sentence
from dragoman.data.phrasebook.lexicon import POSSESSIVES, PRONOUNS, Mass, chinese_count

_AUXILIARIES = {"pres": "", "past": "", "fut": "会", "can": "能", "want": "想", "must": "必须"}
_QUESTION_WORDS = {"where": "在哪里", "when": "什么时候", "why": "为什么"}


def chinese(sentence: Sentence) -> str:
    """Return the Chinese sentence with its punctuation."""
    main, other, kind = sentence.main, sentence.other, sentence.kind
    if kind == "because" and other is not None:
        return f"因为{clause(other)}，所以{clause(main)}。"
    if kind == "if" and other is not None:
        return f"如果{clause(other)}，{clause(main, link='就')}。"
    if kind == "statement":
        return clause(main) + "。"
    if kind == "polar":
        return clause(main) + "吗？"
    return clause(main, question_word=_QUESTION_WORDS.get(kind, "")) + "？"


def clause(inner: Clause, link: str = "", question_word: str = "") -> str:
    """Return a clause: time and subject, then the predicate.

    Args:
        link: A word after the subject, such as 就.
        question_word: Stands where the answer would stand.
    """
    subject = "" if inner.subject is None else noun_phrase(inner.subject)
    time = inner.time[2] if inner.time else ""
    start = time + subject if inner.fronted else subject + time
    frequency = inner.frequency[2] if inner.frequency else ""
    ask_where = question_word == "在哪里"
    return start + link + frequency + ("" if ask_where else question_word) + predicate(inner, ask_where)


def predicate(inner: Clause, ask_where: bool = False) -> str:
    """Return the predicate: auxiliary or negation, place, verb, objects."""
    if inner.verb is None:
        assert inner.adjective is not None
        return inner.adjective.zh_negated if inner.negated else inner.adjective.zh_predicate
    verb, past = inner.verb, inner.tense == "past"
    auxiliary = _AUXILIARIES[inner.tense]
    if inner.negated:
        auxiliary = "没有" if past else "不" + auxiliary
    plain = inner.negated or inner.that_clause is not None or inner.gap or verb.en == "try"
    done = "了" if past and not plain else ""
    place = "在哪里" if ask_where else inner.place[2] if inner.place else ""
    receiver = "" if inner.receiver is None else noun_phrase(inner.receiver)
    direct_object = "" if inner.object is None else noun_phrase(inner.object, bare=inner.negated)
    goal = inner.goal[2] if inner.goal else ""
    if verb.zh_coverb and verb.fixed_zh:  # 给 somebody 打 电话
        words = f"{verb.zh_coverb}{direct_object}{verb.zh}{done}{verb.fixed_zh}"
    elif verb.zh_coverb:  # 给 somebody 看 something
        words = f"{verb.zh_coverb}{receiver}{verb.zh}{done}{direct_object}"
    else:
        words = f"{verb.zh}{done}{receiver}{direct_object}{goal}"
    infinitive = "" if inner.infinitive is None else predicate(inner.infinitive)
    that_clause = "" if inner.that_clause is None else clause(inner.that_clause)
    return auxiliary + place + words + infinitive + that_clause


def noun_phrase(phrase: Phrase, bare: bool = False) -> str:
    """Return a noun phrase; ``bare`` leaves out 一 and its measure word, as after a negation."""
    if isinstance(phrase, And):
        return f"{noun_phrase(phrase.first)}和{noun_phrase(phrase.second)}"
    if phrase.noun is None:
        return {"who": "谁", "what": "什么"}.get(phrase.pronoun) or PRONOUNS[phrase.pronoun][1]
    noun = (f"{phrase.adjective.zh}的" if phrase.adjective else "") + phrase.noun.zh
    clause_before = f"{clause(phrase.relative)}的" if phrase.relative is not None else ""
    return clause_before + determined(phrase, bare) + noun


def determined(phrase: NounPhrase, bare: bool) -> str:
    """Return the determiner with its measure word, which precede adjective and noun."""
    determiner = phrase.determiner
    if determiner in POSSESSIVES:
        return POSSESSIVES[determiner][1]
    if isinstance(phrase.noun, Mass) or phrase.noun is None or determiner == "bare":
        return ""
    if determiner == "the":
        return "那些" if phrase.plural else f"那{phrase.noun.measure}"
    if determiner == "a":
        return "" if bare else f"一{phrase.noun.measure}"
    if determiner == "this":
        return "这些" if phrase.plural else f"这{phrase.noun.measure}"
    if determiner == "some":
        return "一些"
    return f"{chinese_count(phrase.number)}{phrase.noun.measure}"
