"""Where sentences end: in several languages, and nothing of a text is ever lost."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dragoman.languages.sentences import sentences
from limits import cpu_limit

CUT = {
    "en": [
        "The child sees the house. |The woman sleeps.",
        "Mr. Smith went to the U.S. in May. |He bought e.g. two cars. |It was Dr. No's.",
        "We left at 5 p.m. |She stayed. |J. R. R. Tolkien wrote it.",
        'He said "Go home. Now." |Then he left.',
        '"Go," he said. |"Now!" she cried. |They left.',
        "What?! |Really?! |Yes!  |(He left.) |She stayed.",
        "1. Go. |2. Stop.",
        "Buy: 1. Go home.  |2. Stop! 3.",
        "a) One. |b) Two.",
        "I. Go in. |II. Go out.",
        "Wait... what? |No.",
        "... Hi there. ... |Bye. :)",
        "Version 3.5 is at www.example.com/a.b?Q!B and in No. 5 of vol. 2. |See fig. 3.",
        "a man walks . |a dog runs .",
        "She likes me. |Tom likes art. |Busy Tom is ill. |Kate said no. |Bob left in May. |OK. |Nora left.",
        "no end of a sentence",
        "12. 13.",
        "half a character \ud800. |Yes.",
        "U.S. Const. art. III, § 2 holds. |See No. XIV, vol. II, p. 3. |I like art. |I do.",
        "Tom likes art. |C. S. Lewis wrote it. |No. |I stay.",
    ],
    "de": [
        "Das ist z. B. gut. |Dr. Müller kommt am 3. Mai. |Er geht.",
        "Im 19. Jahrhundert war es so. |Er wurde 19. |Sie ging.",
        "„Ja.“ |Er ging.",
        "Er liebt mich. |Tom mag das. |Sie hat einen Bart. |Ich auch.",
        "Im 19. und 20. Jahrhundert war das so. |Wir feiern an ihrem 30. Geburtstag. |Ein 2. Versuch gelang.",
        "Er wurde 30. |Dann ging er. |Es waren 19 und 20. |Sie kam.",
    ],
    "fr": [
        "Il part. |M. Dupont est là. |Puis M. Dupont part.",
        "Voir vol. II, p. 3 et vol. I, p. 5. |C'est l'art. L. 123-4 du code. |Il part.",
        "Il aime l'art. |Louis aussi. |Il a dit non. |5 amis partent.",
    ],
    "nb": ["Norge feirer 17. mai hvert år. |Vi har f.eks. mange bl.a. i år. |Han ble 30. |Da dro han."],
    "hr": ["Rođen je 5. svibnja u Zagrebu. |Imao je 30. |Otišao je."],
    "hu": ["Ez 2024. május 5-én történt. |Elment."],
    "lv": ["Tas notika 2024. gada 5. maijā Rīgā. |Viņš aizgāja."],
    "sr": ["То је било 5. октобра. |Имао је 30. |Отишао је."],
    "pl": ["W 2. połowie było np. lepiej. |Miał 30. |Poszedł."],
    "ru": ["Это было в 5. классе, т. е. давно. |Ему 30. |Он ушёл."],
    "zh": ["我爱你。|你呢？|他说：“好。”|然后走了。"],
    "zh-CN": ["一。|二！|三？"],
    "ja": ["私は行く。|「はい。」と言った。|君は？"],
    "hi": ["यह है। |वह है।"],
    "tlh": ["One. |Two! |三。|四。"],
}


@pytest.mark.parametrize(("lang", "marked"), [(lang, text) for lang, texts in CUT.items() for text in texts])
def test_a_text_is_cut_where_a_sentence_ends(lang: str, marked: str) -> None:
    assert sentences(marked.replace("|", ""), lang) == marked.split("|")


def test_a_text_of_an_unknown_language_is_cut_too() -> None:
    assert sentences("One. Two! 三。四。", None) == ["One. ", "Two! ", "三。", "四。"]


def test_there_is_no_sentence_in_nothing() -> None:
    assert sentences("", "en") == []
    assert sentences(" \t", "en") == [" \t"]


ALPHABET = "aB1é猫 \u3000\t\n\r\x85\u2028.!?。！”\"'«»「」()[]…:;\ud800\0🙂"


@settings(max_examples=150)
@example("\n\n. A. \n\n B.", "en")
@given(st.one_of(st.text(st.sampled_from(ALPHABET), max_size=60), st.text(max_size=40)), st.sampled_from([*CUT]))
def test_nothing_is_lost(text: str, lang: str) -> None:
    found = sentences(text, lang)
    assert "".join(found) == text
    assert all(found)


@pytest.mark.parametrize("unit", ["a. ", '"Go. ', "1. ", "x:1. ", "(a.) ", "。", ":", "word "])
def test_a_line_of_any_length_is_cut_in_time_that_grows_with_it(unit: str) -> None:
    with cpu_limit():
        sentences(unit * 40_000, "en")
