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


WITHIN_BRACKETS = {
    "ja": [
        "『吾輩は猫である。』を読んだ。|良い本だ。",
        "「吾輩は猫である。」は名作だ。|『そう。』|彼は言った。",
        "『「行く。」と言った。』と書いた。|〝好き。〟と言った。|｢はい。｣と言った。",
    ],
    "zh": [
        "【注意！】请勿触摸。|〔见下。〕好。|［注。］好。|〖注。〗好。",
        "他看了【第一章。第二章。】才走。|（他说「好。」才走。）她没走。",
        "【标题。】 |正文。",
        "『好。』|他说。|『不！』|我说。",
        "他说好。』|然后走了。",
        "【没有完。|第二句。",
    ],
    "en": ["He said ⟪Go. Now.⟫ and left. |Yes."],
}
"""Brackets that sentencex does not know: nothing ends within them, and no sentence begins with a closing one."""

NUMBERED = {
    "zh": [
        "1.打开电源。|2.按下按钮。|3.完成。",
        "1. 打开。|2. 关闭。|3. 好。",
        "1．打开。|2．关闭。",
        "1、打开。|2、关闭。",
        "1)打开。|2)关闭。",
        "（1）打开。|（2）关闭。",
        "步骤：1.打开。|2.关闭。",
        "1. 打开，2. 关闭。|3. 好。",
    ],
    "ja": ["1.電源を入れる。|2.ボタンを押す。|3.完了。", "１．電源を入れる。|２．押す。"],
}

BEFORE_DIGITS = {
    "zh": [
        "会议结束了。|2024年将再次举行。|届时见。",
        "公司成立。|iPhone发布。", "好！|3人来了。", "“好。”|3人来了。", "见ｗ．a．com。|好。",
    ],
    "ja": ["終わった。|2024年に始まる。", "本当？|5人だ。"],
    "hi": ["वह गया।|5 लोग आए।", "वह गया॥|iPhone है।"],
    "ur": ["وہ گیا۔|5 لوگ آئے۔"],
    "km": ["គាត់ទៅ។|5 នាក់មក។"],
    None: ["猫。|2匹。|a。"],
}  # fmt: skip

TITLES = {
    "fr": [
        "Le Dr. Martin est là. |Le Pr. Durand vit rue St. Jean, au no. 5. |Mme. Le Pen et Mlle. Roux partent.",
        "Il est Dr. |Il part. |Il a dit no. |Elle part. |Il travaille chez Durand et Cie. |Puis il part.",
    ],
    "ar": ["قال د. أحمد علي ذلك. |ثم ذهب أ. علي.", "عند أ.د. خالد. |هو هنا."],
    "ru": [
        "Завод им. Ленина стоит. |На рис. 3 видно пос. Ленино. |Это обл. Ростовская, ул. Ленина, г. Москва.",
        "Он ген. Иванов. |Театр оперы и балета им. Кирова открыт. |МГУ им. М. В. Ломоносова.",
        "Он помог им. |Люди ушли. |Это ген. |Мутация опасна. |Это Ростовская обл. |Он там живёт.",
    ],
    "es": [
        "La Dña. Ana vio a Mons. Romero y a la Cía. Telefónica. |El Sr. López, 50 a. C. y 50 d. C. en Roma.",
        "Es de Pérez y Cía. |Luego se fue. |Es Mons. |El otro no.",
    ],
    "de": [
        "Die Fa. Siemens und Fam. Müller sind da. |Der Abg. Meier und Anna geb. Müller kamen. |Die Hl. Maria half.",
        "Er ist 1950 geb. |Sie auch. |Das ist eine Fa. |Die andere nicht.",
    ],
    "it": ["La Dott.ssa Rossi e il Dott. Neri, il Ten. Bianchi e il Sig. Verdi."],
    "pt": ["A Profa. Ana, o Eng. Costa e o Cel. Dias vivem na Av. Paulista. |A Cia. Vale fica ali."],
    "nl": ["Mevr. Jansen, mw. Smit, ds. Vos en fam. Bakker komen. |Dat is een kap. |Een kol. |Jan komt."],
    "pl": ["Pan inż. Kowalski, dr. Nowak i ks. Jan są w szkole im. Lenina. |Dałem im. |Potem poszedłem."],
    "cs": ["Přišel plk. Novák a ThDr. Malý."],
    "tr": ["Doç. Demir ve Av. Can geldi. |Hz. Ali de geldi."],
    "hr": ["Tu je sv. Ivan i gđa. Horvat. |Otišao je."],
    "sr": ["Ту је др. Петровић и проф. Јовић. |Отишао је."],
    "mr": ["डॉ. शर्मा आले। |ते गेले।"],
    "bn": ["ডা. রহমান এলেন। |তিনি গেলেন।"],
}

AFTER_A_NUMBER = {
    "ru": [
        "Это было в 1990 г. |Потом он ушёл. |Стоит 5 тыс. руб. |Это дорого. |Это 1990г. |Потом стало лучше.",
        "В 1990 г. Иванов уехал. |В мае 1812 г. Наполеон отступал. |Живёт в г. Москва.",
        "После революции 1917 г. Россия вышла из войны.",
        "По итогам 2020 г. Сбербанк заработал много.",
        "Через 5 мин. Иван ушёл.",
        "Бюджет 5 млн руб. Министерства культуры.",
        "Решение от 12 мая 2010 г. Суда отменено.",
        "Дом построен в 1990 г. И. И. Ивановым.",
    ],
    "uk": ["Це було 1990 р. |Потім він пішов. |У 1990 р. Шевченко поїхав.", "Після революції 1917 р. Україна жила."],
    "bg": ["Това беше през 1990 г. |После си отиде.", "След войната от 1918 г. България загуби."],
    "es": [
        "Vive en EE.UU. |Le gusta. |Los EE. UU. |Son grandes.",
        "Los EE. UU. son grandes y los EE.UU., también.",
        "El presidente de EE. UU. Joe Biden habló.",
        "En EE. UU. Donald Trump dijo que no.",
    ],
    "ko": ["그는 『왜?』를 읽었다. |영화 『괜찮아!』가 좋다."],
}
"""Abbreviations that sentencex takes for the middle of a sentence."""

CORRECTED = [WITHIN_BRACKETS, NUMBERED, BEFORE_DIGITS, TITLES, AFTER_A_NUMBER]


@pytest.mark.parametrize(
    ("lang", "marked"), [(lang, text) for table in CORRECTED for lang, texts in table.items() for text in texts]
)
def test_a_text_is_cut_where_sentencex_does_not_know_it(lang: str | None, marked: str) -> None:
    assert sentences(marked.replace("|", ""), lang) == marked.split("|")


def test_a_text_of_an_unknown_language_is_cut_too() -> None:
    assert sentences("One. Two! 三。四。", None) == ["One. ", "Two! ", "三。", "四。"]


def test_there_is_no_sentence_in_nothing() -> None:
    assert sentences("", "en") == []
    assert sentences(" \t", "en") == [" \t"]


ALPHABET = "aB1é猫 \u3000\t\n\r\x85\u2028.!?。！”\"'«»「」『』【】()[]…:;\ud800\0🙂"


@settings(max_examples=150)
@example("\n\n. A. \n\n B.", "en")
@given(st.one_of(st.text(st.sampled_from(ALPHABET), max_size=60), st.text(max_size=40)), st.sampled_from([*CUT]))
def test_nothing_is_lost(text: str, lang: str) -> None:
    found = sentences(text, lang)
    assert "".join(found) == text
    assert all(found)


@pytest.mark.parametrize(
    "unit",
    [
        "a. ",
        '"Go. ',
        "1. ",
        "x:1. ",
        "(a.) ",
        "。",
        ":",
        "word ",
        "『",
        "【。",
        "。』",
        "【。】",
        "г. ",
        "5 г. ",
        "。2",
    ],
)
def test_a_line_of_any_length_is_cut_in_time_that_grows_with_it(unit: str) -> None:
    with cpu_limit():
        sentences(unit * 40_000, "en")
