"""Forms of lines: what is a fault of one, and how it is repaired."""

from __future__ import annotations

import pytest

from dragoman.doctor.columns import Habits
from dragoman.doctor.first_pass import pair_problems
from dragoman.doctor.forms import Form, detokenised, without_tags
from dragoman.languages.stopwords import words_of

ENGLISH = Form("en", ("latin",))


@pytest.mark.parametrize(
    ("src", "tgt", "is_placeholder"),
    [
        ("[door opens]", "[Tür öffnet sich]", False),
        ("[door opens]", "（门开了，有人进来）", False),
        ("<start of the song>", "<Anfang des Liedes>", False),
        ("[door opens]", "Sie geht dann nach Hause.", True),
        ("<range>", "(Er lacht sehr laut.)", True),
        ("[no translation]", "(Er lacht sehr laut.)", True),
        ("#REF!", "[Er lacht sehr laut.]", True),
    ],
)
def test_remarks_in_brackets_on_both_sides_are_no_placeholders(src: str, tgt: str, is_placeholder: bool) -> None:
    problems = pair_problems((src, tgt), words_of(src), words_of(tgt), both_cased=False)
    assert ("placeholder" in problems) is is_placeholder


def test_one_tag_on_both_sides_is_no_translation() -> None:
    assert "untranslated" in pair_problems(("<range>", "<range>"), ["range"], ["range"], both_cased=True)


@pytest.mark.parametrize(
    ("text", "other", "expected"),
    [
        ("<i>Hello</i>, he said.", "Hallo, sagte er.", "Hello, he said."),
        ("H<sub>2</sub>O", "Wasser", "H2O"),
        ("one<br/>two <BR> three", "eins", "one two three"),
        ('<div class="t">one</div><p>two</p>', "eins", "one two"),
        ("<b>one</b> <i>two</i>", "<b>eins</b> zwei", "<b>one</b> two"),
        ("one <b> two </b> three", "eins", "one two three"),
        ("one <b></b>two", "eins", "one two"),
        ("<p> one  two </p>", "eins", "one  two"),
        ("if a < b", "", "if a < b"),
    ],
)
def test_only_tags_that_the_other_side_lacks_go(text: str, other: str, expected: str) -> None:
    assert without_tags(text, other) == expected


@pytest.mark.parametrize("word", ["TNFα", "PPARα", "NFκB", "IκBα", "αSMA", "Gαq"])
def test_a_greek_letter_in_the_name_of_a_protein_is_no_homoglyph(word: str) -> None:
    text = f"The level of {word} rose."
    assert list(ENGLISH.faults(text)) == []
    assert ENGLISH.repaired(text, ["mixed-script"]) == text


@pytest.mark.parametrize(
    ("wrong", "right"), [("dοg", "dog"), ("wоrd", "word"), ("mαmmαl", "mammal"), ("ΤNF", "TNF"), ("Ёllо", "Ëllo")]
)
def test_homoglyphs_are_mended_for_good(wrong: str, right: str) -> None:
    """There was no Latin letter for an alpha: the mended text had the fault too."""
    assert "mixed-script" in ENGLISH.faults(wrong)
    assert ENGLISH.repaired(wrong, ["mixed-script"]) == right
    assert list(ENGLISH.faults(right)) == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a&nbsp;dog", "a dog"),
        ("5&nbsp;%", "5\u00a0%"),  # as typographers write it
        ("wahr&shy;schein&#8203;lich", "wahrscheinlich"),
        ("one&#10;two&#8232;three", "one two three"),
        ("caf&#101;&#769;", "café"),
    ],
)
def test_what_an_entity_hid_is_mended_with_it(text: str, expected: str) -> None:
    assert ENGLISH.repaired(text, ["entity"]) == expected
    assert list(ENGLISH.faults(expected)) == []


@pytest.mark.parametrize(
    ("lang", "text", "expected"),
    [
        ("en", "the boys ' school", "the boys ' school"),
        ("en", "he said ' yes ' and left", "he said ' yes ' and left"),
        ("en", "it 's , they ' re , do n't , don ' t", "it's, they're, don't, don't"),
        ("en", "at two o ' clock , O ' Brien", "at two o'clock, O'Brien"),
        ("fr", "l ' homme et l' eau : oui !", "l'homme et l'eau : oui !"),
        ("it", "dell ' arte", "dell'arte"),
        ("uk", "п ' ять", "п'ять"),
        ("nl", "in 't huis", "in 't huis"),
        ("es", "¿ Cómo estás ? ¡ Hola !", "¿Cómo estás? ¡Hola!"),
        ("de", "er sagte » Ja « und ging .", "er sagte »Ja« und ging."),
        ("da", "» Ja « , sagde han .", "»Ja«, sagde han."),
        ("de", "er sagte « Ja » und ging .", "er sagte «Ja» und ging."),
        ("es", "dijo « sí » .", "dijo «sí»."),
        ("zh", "我 喜欢 Python 语言 。 他 说 ： “ 你好 ” ， 对 吗 ？", "我喜欢 Python 语言。他说：“你好”，对吗？"),
        ("ja", '彼 は " はい " と 言っ た 。', '彼は"はい"と言った。'),
        ("hi", "वह घर गया । क्या है ?", "वह घर गया। क्या है?"),
        ("ar", "كيف حالك ؟ نعم ، شكرا", "كيف حالك؟ نعم، شكرا"),
    ],
)
def test_marks_and_words_are_joined_as_the_language_does(lang: str, text: str, expected: str) -> None:
    assert detokenised(text, lang) == expected


@pytest.mark.parametrize(
    ("lang", "lines", "is_tokenised"),
    [
        ("zh", ["我 喜欢 你 的 猫 。 他 也 喜欢 。", "你好 ， 世界"], True),
        ("zh", ["我 喜欢 你 的 猫"], True),
        ("zh", ["我喜欢你的猫 。他也喜欢 。"], True),
        ("ja", ["彼 は 学校 へ 行っ た 。"], True),
        ("hi", ["वह घर गया ।", "क्या है ?"], True),
        ("ar", ["كيف حالك ؟", "نعم ، شكرا"], True),
        ("zh", ["我喜欢你的猫。 他也喜欢。", "你喜欢 Python 语言吗？"], False),
        ("zh", ["你好 我是张三", "走 吧", "我们明天再说 好不好"], False),  # subtitles: a space for a comma
        ("ja", ["これは Python で書いた プログラムです。", "はい　そうです"], False),
        ("hi", ["वह घर गया। क्या है?"], False),
    ],
)
def test_tokenised_text_of_other_scripts_is_seen(lang: str, lines: list[str], is_tokenised: bool) -> None:
    habits = Habits(lang)
    for line in lines * 30:
        habits.add(line)
    assert (habits.tokenised >= 0.5) is is_tokenised
