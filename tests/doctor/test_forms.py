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


WITH_BREAKS = ("ខ្ញុំ\u200bទៅ\u200bផ្សារ", "ฉัน\u200bไป", "ຂ້ອຍ\u200bໄປ", "ကျွန်တော်\u200bသွား")


@pytest.mark.parametrize(
    ("form", "text", "mended"),
    [
        *(
            (Form(lang, (script,)), text, text)
            for (lang, script), text in zip(
                [("km", "other script"), ("th", "thai"), ("lo", "other script"), ("my", "other script")],
                WITH_BREAKS,
                strict=True,
            )
        ),
        (Form(None, ("thai",)), WITH_BREAKS[1], WITH_BREAKS[1]),
        (Form("he", ("hebrew",)), "\u200fשלום\u200f, \u202aABC\u202c", "\u200fשלום\u200f, \u202aABC\u202c"),
        (Form("ar", ("arabic",)), "مرحبا \u2066C++\u2069\u200e", "مرحبا \u2066C++\u2069\u200e"),
        (Form("km", ("other script",)), "ខ្ញុំ\u200b\u200e\ufeffទៅ", "ខ្ញុំ\u200bទៅ"),
        (Form("he", ("hebrew",)), "של\u200bום\u200f", "שלום\u200f"),
        (Form("zh", ("han",)), "我\u200b们", "我们"),
        (ENGLISH, "so\u200b big\u200e", "so big"),
    ],
)
def test_what_divides_or_directs_a_writing_stays_in_it(form: Form, text: str, mended: str) -> None:
    assert form.has_unseen(text) is (mended != text)
    assert form.repaired(text, ["invisible"]) == mended
    assert form.repaired(f"{text}&lt;é", ["entity"]) == f"{mended}<é"


@pytest.mark.parametrize(
    ("lang", "script", "text"),
    [
        ("bn", "other script", "সময\u09bc \u09df\u09dc"),
        ("hi", "devanagari", "प\u095cना \u095d"),
        ("el", "greek", "Πού είναι\u037e"),
        ("ja", "han", "\ufa19社 \uf9d0"),
    ],
)
def test_characters_that_are_typed_as_one_are_in_normal_form(lang: str, script: str, text: str) -> None:
    form = Form(lang, (script,))
    assert "normal-form" not in form.faults(text)
    assert form.repaired(text, ["normal-form"]) == text
    assert "normal-form" in form.faults(f"{text} cafe\u0301")
    assert form.repaired(f"{text} cafe\u0301", ["normal-form"]) == f"{text} café"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a&nbsp;dog", "a dog"),
        ("5&nbsp;%", "5\u00a0%"),  # as typographers write it
        ("wahr&shy;schein&#8203;lich", "wahrscheinlich"),
        ("one&#10;two&#8232;three", "one two three"),
        ("caf&#101;&#769;", "café"),
        ("&amp;quot;Hi&amp;quot; &amp;amp; bye", '"Hi" & bye'),
        ("&amp;#10;one&amp;nbsp;two", " one two"),
        ("?a=1&copy=2&reg=3 &lt;", "?a=1&copy=2&reg=3 <"),
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
        ("en", "I use .NET and .htaccess , too .", "I use .NET and .htaccess, too."),
        ("en", "p < .05 ( or .01 ) !", "p < .05 (or .01)!"),
        ("en", "well ;-) print %s , 5 %", "well ;-) print %s, 5%"),
        ("en", "good :) bad :( or :-( so", "good :) bad :( or :-( so"),
        ("en", 'what ?! wait . . . he said ." Then', 'what?! wait... he said." Then'),
        ("en", "( anti ) @-@ war", "(anti)-war"),
        ("en", "Use the 'd' key , the 's' , an 't' .", "Use the 'd' key, the 's', an 't'."),
        ("en", "it 's 'good' , I 'd 've", "it's 'good', I'd've"),
        ("fr", "l' app .NET : 5 % , soit .05 .", "l'app .NET : 5%, soit .05."),
        ("fr", "la lettre 'd' et d 'aujourd'hui", "la lettre 'd' et d'aujourd'hui"),
        ("it", "dell 'arte", "dell'arte"),
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
        ("hi", ["वह घर गया ।", "क्या है?", "हाँ, वह आया ।"], False),  # typists have a space before a danda
        ("hi", ["वह घर गया ।"], False),
        ("hi", ["हाँ , वह घर गया ।"], True),
        ("ur", ["وہ گھر گیا ۔", "کیا ہے؟"], False),
    ],
)
def test_tokenised_text_of_other_scripts_is_seen(lang: str, lines: list[str], is_tokenised: bool) -> None:
    habits = Habits(lang)
    for line in lines * 30:
        habits.add(line)
    assert (habits.tokenised >= 0.5) is is_tokenised
