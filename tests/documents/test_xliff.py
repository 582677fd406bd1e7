"""XLIFF: what is protected, segments and texts inside codes, messages, states and languages."""

from __future__ import annotations

import re

import pytest
from lxml import etree

from benchmarks.real_documents.stand_ins import STAND_INS, letters, translations
from dragoman.documents.document import DocumentInfo
from dragoman.documents.translate import Report, open_document
from dragoman.errors import DataError

OLD = ' state="needs-review-translation" state-qualifier="leveraged-mt"'


def translated(content: str, tgt_lang: str = "de") -> tuple[str, Report]:
    """Return a file with every Latin letter of its translations as a Cyrillic letter."""
    opened = open_document(content.encode(), DocumentInfo("a.xlf", "en", tgt_lang))
    result, report = opened.finish({text: letters(text) for text in opened.texts})
    return result.decode(), report


def old(units: str, attributes: str = 'source-language="en" target-language="de"') -> str:
    """Return a file of XLIFF 1.2."""
    return (
        f'<xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2"><file original="a" datatype="html" {attributes}>'
        f"<body>{units}</body></file></xliff>"
    )


def new(units: str) -> str:
    """Return a file of XLIFF 2.1."""
    return f'<xliff version="2.1" xmlns="urn:oasis:names:tc:xliff:document:2.0" srcLang="en" trgLang="de"><file id="f">{units}</file></xliff>'


def target(source: str, tgt_lang: str = "de", attributes: str = "") -> str:
    """Return the content of the target of a source in XLIFF 1.2."""
    result, _ = translated(
        old(f'<trans-unit id="1"{attributes}><source>{source}</source></trans-unit>', 'source-language="en"'), tgt_lang
    )
    return result.partition(f"<target{OLD}>")[2].partition("</target>")[0]


def new_target(source: str) -> str:
    """Return the content of the target of a source in XLIFF 2.1."""
    result, _ = translated(new(f'<unit id="u"><segment><source>{source}</source></segment></unit>'))
    assert '<segment state="translated">' in result
    return result.partition("<target>")[2].partition("</target>")[0]


def test_what_is_protected_stays_and_what_is_freed_inside_is_translated() -> None:
    assert target('a <mrk mtype="protected">dog <mrk mtype="x-its-translate-yes">cat</mrk></mrk>') == (
        'а <mrk mtype="protected">dog <mrk mtype="x-its-translate-yes">цат</mrk></mrk>'
    )
    assert new_target('a <mrk id="m" translate="no">dog</mrk> b') == 'а <mrk id="m" translate="no">dog</mrk> б'
    assert (
        new_target('a <sm id="m" translate="no"/>dog<em startRef="m"/> b')
        == 'а <sm id="m" translate="no"/>dog<em startRef="m"/> б'
    )
    crossing = 'a <sm id="m" translate="no"/>dog <pc id="1">cat<em startRef="m"/> b</pc>'  # the span ends inside another element
    assert new_target(crossing).replace(" ", "").replace("а", "a").replace("б", "b") == crossing.replace(" ", "")


def test_translate_is_inherited_at_every_level() -> None:
    unit = '<unit id="{}"{}><segment><source>a dog</source></segment></unit>'
    content = new(
        f'<group id="g" translate="no">{unit.format(1, "")}{unit.format(2, " translate=" + chr(34) + "yes" + chr(34))}</group>'
    )
    result, report = translated(content)
    assert result.count("<target>") == 1
    assert result.index("<target>") > result.index('id="2"')
    assert [segment.why for segment in report.left] == ["marked as not to be translated"]


def test_codes_in_pairs_enclose_their_words() -> None:
    source = 'a <bpt id="1">&lt;b></bpt>dog<ept id="1">&lt;/b></ept> b'
    assert target(source) == 'а <bpt id="1">&lt;b></bpt>дог<ept id="1">&lt;/b></ept> б'
    assert new_target('<sc id="1"/>a<ec startRef="1"/> b') == '<sc id="1"/>а<ec startRef="1"/> б'


@pytest.mark.parametrize(
    "code",
    [
        '<x id="1" ctype="lb"/>',
        '<x id="1"/>',
        '<ph id="1">&lt;br/&gt;</ph>',
        '<x id="LINE_BREAK" equiv-text="&lt;br/&gt;"/>',
    ],
)
def test_a_code_between_two_words_parts_them(code: str) -> None:
    """They were one word for the model, and the code came into the middle of a word."""
    content = old(f'<trans-unit id="1"><source>That is the man{code}who comes.{code}Now</source></trans-unit>')
    assert open_document(content.encode(), DocumentInfo("a.xlf", "en", "de")).texts == [
        "That is the man who comes. Now"
    ]
    assert target(f"man{code}who") == f"ман{code} шхо"


def test_the_mark_of_a_note_is_no_part_of_the_word_before() -> None:
    assert target('a house<g id="1" ctype="x-html-sup">2</g> here') == 'а хоусе<g id="1" ctype="x-html-sup">2</g> хере'
    assert target('a H<g id="1">2</g>O') == 'а H<g id="1">2</g>O'


def test_a_text_inside_a_code_is_translated() -> None:
    assert (
        target('<ph id="1">&lt;img alt="<sub>a <g id="2">dog</g></sub>"/></ph>')
        == '<ph id="1">&lt;img alt="<sub>а <g id="2">дог</g></sub>"/></ph>'
    )


def test_a_page_that_stands_in_a_source_keeps_its_tags() -> None:
    page = '<p>a <b>dog</b> &amp;amp; cat</p><p title="b">c</p>'
    expected = '&lt;p&gt;а &lt;b&gt;дог&lt;/b&gt; &amp;amp; цат&lt;/p&gt;&lt;p title="б"&gt;ц&lt;/p&gt;'
    assert target(page.replace("<", "&lt;")) == expected
    assert target(f"<![CDATA[{page.replace('&amp;amp;', '&amp;')}]]>") == expected
    assert target("a &lt; b &lt;c&gt;") == "а &lt; б &lt;c&gt;"


def test_words_that_stay_in_a_page_in_a_source_are_named() -> None:
    page = '<p>A dog.</p> [button text="Read more now" url="/a"] <ruby>cat<rt>one</rt></ruby>'.replace("<", "&lt;")
    unit = f"<trans-unit id='1'><source>{page}</source></trans-unit>"
    _, report = translated(old(unit))
    assert [(segment.text, segment.why) for segment in report.left] == [
        ("Read more now", "text in a shortcode"), ("one", "the reading of a word of the source (ruby)"),
    ]  # fmt: skip
    segment = "<segment><source>a</source></segment>"
    assert translated(new(f"<unit id='u'>{segment.replace('a', page, 1)}{segment}</unit>"))[1].left == report.left


@pytest.mark.parametrize(
    "text", ["values <min are ignored", "values <min ignored <b>here</b>", "use <?php ignored", "use <!-- ignored"]
)
def test_a_sign_without_an_end_hides_no_words_of_a_source(text: str) -> None:
    """Before, they stayed in a target that was marked as translated."""
    source = f"<b>Tip:</b> {text}".replace("<", "&lt;")
    result, report = translated(old(f"<trans-unit id='1'><source>{source}</source></trans-unit>"))
    assert letters("ignored").text in result
    assert report.left == ()


def test_lines_stay_where_white_space_counts() -> None:
    assert target("The dog\nA cat", attributes=' xml:space="preserve"') == "Тхе дог\nА цат"
    assert target("a\tdog    cat", attributes=' xml:space="preserve"') == "а\tдог    цат"
    assert target("The dog\n   sleeps\n\nA cat") == "Тхе дог слеепс\n\nА цат"


@pytest.mark.parametrize(
    ("source", "attributes", "expected"),
    [
        (
            "The dog!\n\nA <b>cat</b>.\n\n- a\n\t- b    d",
            ' xml:space="preserve"',
            "Тхе дог!\n\nА <b>цат</b>.\n\n- а\n\t- б    д",
        ),
        (
            "a &amp;nbsp;<b>dog\n a</b>\n &amp;mdash; cat",
            ' xml:space="preserve"',
            "а &amp;nbsp;<b>дог\n а</b>\n &amp;mdash; цат",
        ),
        ("a dog\nhere <b>cat</b>\n\nb", "", "а дог хере <b>цат</b>\n\nб"),
    ],
)
def test_lines_stay_beside_a_tag_of_a_page(source: str, attributes: str, expected: str) -> None:
    written = target(source.replace("<", "&lt;"), attributes=attributes)
    assert written == expected.replace("<", "&lt;").replace(">", "&gt;")


def test_lines_stay_beside_a_message_of_icu() -> None:
    """Before, they became spaces; a message is no reason to join them."""
    message = "{n, plural,\n one {# dog's} other {# dogs}}"
    translation = "{n, plural,\n one {# дог'с} other {# догс}}"
    preserved = ' xml:space="preserve"'
    assert target(f"  First line.\n  You have {message}\nBye", attributes=preserved) == (
        f"  Фирст лине.\n  Юоу хаве {translation}\nБюе"
    )
    assert target(f"a {{x}}\t<g id='1'>it's {message}</g>", attributes=preserved) == (
        f"а {{x}}\t<g id='1'>ит'с {translation}</g>"
    )
    assert target(f"A dog\n{message} now\n\n\t{message}\n cat", attributes=preserved) == (
        f"А дог\n{translation} нош\n\n\t{translation}\n цат"
    )
    assert target(f"A dog\n here\n\n{message} &amp; cats") == f"А дог хере\n\n{translation} &amp; цатс"


def test_braces_in_a_line_beside_a_message_of_icu_are_quoted() -> None:
    source = old(
        '<trans-unit id="1" xml:space="preserve"><source>A dog\n{n, select, other {a cat}}</source></trans-unit>'
    )
    opened = open_document(source.encode(), DocumentInfo("a.xlf", "en", "de"))
    made = {"A dog": letters("").__class__("a {b", 0.0), "a cat": letters("a cat")}
    result, _ = opened.finish(made)
    assert ">a '{'b\n{n, select, other {а цат}}</target>" in result.decode()


@pytest.mark.parametrize(
    ("message", "tgt_lang", "expected"),
    [
        ("{n, plural, =0 {no dog} one {# dog} other {# dogs}}", "de", "{n, plural, =0 {но дог} one {# дог} other {# догс}}"),
        ("{{x}} {n,plural,other {{{y}} dog}}", "zh", "{{x}} {n,plural,other {{{y}} дог}}"),
        ("{n,plural,offset:1 other {a {x} dog}}", "zh", "{n,plural,offset:1 other {а {x} дог}}"),
        ("{n, plural, one {dog} other {dogs}}", "ru", "{n, plural, one {дог} few {догс} many {догс} other {догс}}"),
        ("{n, plural, other {dogs} one {dog}}", "sl", "{n, plural, two {догс} few {догс} other {догс} one {дог}}"),
        ("I see {n, select, a {the {m, plural, other {dogs}}} other {it}} here", "vi", "И сее {n, select, a {тхе {m, plural, other {догс}}} other {ит}} хере"),
        ("{n, select, other {it''s '{x}' a {d, date, short}}}", "de", "{n, select, other {ит'с '{x}' а {d, date, short}}}"),
    ],
)  # fmt: skip
def test_each_branch_of_a_message_is_translated(message: str, tgt_lang: str, expected: str) -> None:
    assert target(message, tgt_lang) == expected


def test_a_translation_cannot_break_a_message() -> None:
    opened = open_document(
        old('<trans-unit id="1"><source>{n, plural, other {a dog}}</source></trans-unit>').encode(),
        DocumentInfo("a.xlf", "en", "de"),
    )
    result, _ = opened.finish({"a dog": letters("a dog").__class__("l' {#} d'", 0.0)})
    assert "{l\u2019 '{''#''}' d\u2019}" in result.decode()


@pytest.mark.parametrize(
    "message",
    ["{n, plural, other {dogs}", "{n, plural, }", "{0,choice,0#no dog|1#a dog}", "{n, select, " * 40 + "other {x}"],
)
def test_a_message_that_cannot_be_parsed_is_named(message: str) -> None:
    content = old(f'<trans-unit id="1"><source>{message}</source></trans-unit>')
    result, report = translated(content)
    assert result == content
    assert [segment.why for segment in report.left] == ["a message in it cannot be parsed"]


@pytest.mark.parametrize(
    ("attributes", "text"),
    [
        (' state="final"', "Ein Hund"), (' state="signed-off"', ""), (' state="translated"', "Ein Hund"), ("", "Ein Hund"), ("", "a dog"),
        (' state="new"', "Ein Hund"), (' state="needs-translation"', "Ein Hund"), (' state="needs-review-translation"', "Ein Hund"),
    ],
)  # fmt: skip
def test_what_a_person_wrote_is_never_overwritten(attributes: str, text: str) -> None:
    content = old(f'<trans-unit id="1"><source>a dog</source><target{attributes}>{text}</target></trans-unit>')
    result, report = translated(content)
    assert result == content
    assert len(report.left) == 1


@pytest.mark.parametrize("state", ["translated", "reviewed", "final", "initial"])
def test_targets_of_xliff_2_stay(state: str) -> None:
    content = new(
        f'<unit id="u"><segment state="{state}"><source>a dog</source><target>Ein Hund</target></segment></unit>'
    )
    assert translated(content)[0] == content


def test_approved_units_stay_and_a_second_run_changes_nothing() -> None:
    approved = old(
        '<trans-unit id="1" approved="yes"><source>a dog</source><target state="new">a dog</target></trans-unit>'
    )
    assert translated(approved)[0] == approved
    for content in (old('<trans-unit id="1"><source>a dog</source></trans-unit>'),
                    new('<unit id="u"><segment><source>a dog</source></segment></unit>')):  # fmt: skip
        once, _ = translated(content)
        assert once != content
        assert translated(once)[0] == once


def test_without_a_translation_a_segment_stays_as_it_is() -> None:
    content = old('<trans-unit id="1"><source>a dog</source></trans-unit>')
    opened = open_document(content.encode(), DocumentInfo("a.xlf", "en", "de"))
    result, report = opened.finish({"a dog": letters("")})
    assert result.decode() == content
    assert len(report.left) == 1


def test_empty_segments_of_a_target_are_filled() -> None:
    cut = '<source>a. b</source><seg-source><mrk mtype="seg" mid="0">a.</mrk> <mrk mtype="seg" mid="1">b</mrk></seg-source>'
    unit = f'<trans-unit id="1">{cut}<target{{}}><mrk mtype="seg" mid="0">Ah.</mrk> <mrk mtype="seg" mid="1">{{}}</mrk></target></trans-unit>'
    assert translated(old(unit.format("", "")))[0] == old(unit.format(OLD, "б"))
    assert translated(old(unit.format(' state="final"', "")))[0] == old(unit.format(' state="final"', ""))


SEG = '<mrk mtype="seg" mid="{}">{}</mrk>'
X, ITEMS = '<x id="{}"/>', '<x id="0"/> items'
SWAPPED = X.format(1) + " " + X.format(0)


@pytest.mark.parametrize(
    ("source", "attributes", "target"),
    [
        (X.format(0) + " " + X.format(1), ' state="translated"', SWAPPED),  # as Angular writes them
        (X.format(0) + " " + X.format(1), "", SWAPPED),
        (X.format(0) + " " + X.format(1), ' state="needs-translation"', SWAPPED),
        (ITEMS, ' state="translated"', X.format(0)),  # the word has no translation
        (ITEMS, ' state="new"', X.format(0)),
        (ITEMS, ' state="final"', '<g id="1"><x id="0"/></g>'),
        ("dogs <x id='1'/> of <x id='2'/>", ' state="new"', "dogs <x id='2'/> of <x id='1'/>"),
        ("dogs <ph id='1'>%s</ph>", ' state="new"', "<ph id='1'>%s</ph>dogs"),
    ],
)
def test_codes_that_a_person_placed_are_never_overwritten(source: str, attributes: str, target: str) -> None:
    """A target of codes alone was taken for an empty one, and was written again in the order of the source."""
    content = old(f'<trans-unit id="1"><source>{source}</source><target{attributes}>{target}</target></trans-unit>')
    result, report = translated(content)
    assert result == content
    assert len(report.left) == any(map(str.isalpha, re.sub("<[^<>]*>", "", source)))


@pytest.mark.parametrize(
    ("source", "target", "why"),
    [
        ('Hello <g id="1">big</g> dog', "Hello big dog", ""),
        ('Hello <g id="1">big</g> dog', 'Hello big <g id="1">dog</g>', "its target has other codes than the source"),
        ('<g id="1">Hello dog</g>', '<g id="1"></g>', "its target has codes, but no words"),
        ('Hello <g id="1">big</g> dog', "Hallo Hund", "has a translation, although its state is needs-translation"),
    ],
)
def test_a_copy_without_codes_is_replaced_and_other_targets_are_named(source: str, target: str, why: str) -> None:
    unit = '<trans-unit id="1"><source>{}</source><target{}>{}</target></trans-unit>'
    content = old(unit.format(source, ' state="needs-translation"', target))
    result, report = translated(content)
    assert [segment.why for segment in report.left] == [why] * bool(why)
    expected = content if why else old(unit.format(source, OLD, 'Хелло <g id="1">биг</g> дог'))
    assert result == expected


def test_languages_of_none_in_particular_decide_nothing() -> None:
    unit = '<trans-unit id="1"><source>dog</source></trans-unit>'
    for code in ("zxx", "mis", "qaa", "und"):
        content = old(unit).replace('source-language="en"', f'source-language="{code}"')
        assert code in content
        assert "дог" in translated(content)[0]


@pytest.mark.parametrize("state", ["translated", "initial"])
def test_codes_that_a_person_placed_are_never_overwritten_in_xliff_2(state: str) -> None:
    segment = f'<segment state="{state}"><source><ph id="0"/> <ph id="1"/></source><target><ph id="1"/> <ph id="0"/></target></segment>'
    assert translated(new(f'<unit id="u">{segment}</unit>'))[0] == new(f'<unit id="u">{segment}</unit>')


@pytest.mark.parametrize(
    "target",
    [
        "<target/>", "<target></target>", "<target> <!-- a --></target>", '<target state="new">a <x id="1"/>dog</target>',
        '<target state="new">\n  a <x id="1"></x>dog\n</target>', '<target><mrk mtype="seg" mid="0"></mrk></target>',
        '<target state="new"><mrk mtype="seg" mid="0">a <x id="1" ctype="lb"/>dog</mrk></target>',
    ],
)  # fmt: skip
def test_an_empty_target_and_a_copy_of_the_source_are_replaced(target: str) -> None:
    unit = '<trans-unit id="1"><source>a <x id="1"/>dog</source>{}</trans-unit>'
    result, report = translated(old(unit.format(target)))
    assert result == old(unit.format(f'<target{OLD}>а <x id="1"/>дог</target>'))
    assert not report.left


def test_a_segment_of_codes_alone_stays_and_an_empty_one_beside_it_is_filled() -> None:
    cut = SEG.format(0, ITEMS) + SEG.format(1, "b")
    unit = f'<trans-unit id="1"><source>{ITEMS}b</source><seg-source>{cut}</seg-source><target{{}}>{{}}</target></trans-unit>'
    given, expected = (SEG.format(0, X.format(0)) + SEG.format(1, text) for text in ("", "б"))
    assert translated(old(unit.format("", given)))[0] == old(unit.format(OLD, expected))


def test_languages_are_those_of_each_file() -> None:
    unit = '<body><trans-unit id="1"><source>a dog</source></trans-unit></body></file>'
    files = f'<xliff version="1.2"><file source-language="fr">{unit}<file source-language="en-GB">{unit}</xliff>'
    result, report = translated(files)
    assert result.count("<target") == 1
    assert '<file source-language="en-GB" target-language="de">' in result
    assert [segment.why for segment in report.left] == ["its source is in fr, but this model translates from en"]
    with pytest.raises(DataError, match="its source is in fr"):
        translated(files.replace("en-GB", "fr"))


@pytest.mark.parametrize(
    ("code", "tag"),
    [("zh_TW", "zh-TW"), ("pt_br", "pt-BR"), ("deu_Latn", "de"), ("sr_RS@latin", "sr-Latn-RS"), ("nb", "nb")],
)
def test_the_language_that_is_added_is_a_tag_of_bcp_47(code: str, tag: str) -> None:
    unit = '<trans-unit id="1"><source>a dog</source></trans-unit>'
    assert f' target-language="{tag}">' in translated(old(unit, 'source-language="en"'), code)[0]


def test_text_beside_segments_is_named() -> None:
    _, report = translated(
        new('<unit id="u"><ignorable><source>a dog</source></ignorable><segment><source>b</source></segment></unit>')
    )
    assert [(segment.text, segment.why) for segment in report.left] == [("a dog", "not part of a segment")]


def test_declarations_in_a_doctype_are_refused() -> None:
    content = old('<trans-unit id="1"><source>a dog</source></trans-unit>')
    assert "<target" in translated('<!DOCTYPE xliff SYSTEM "a[b].dtd">' + content)[0]
    with pytest.raises(DataError, match="declares entities in its DOCTYPE"):
        translated('<!DOCTYPE xliff SYSTEM "x.dtd" [<!ENTITY a "b">]>' + content)


def test_placeholders_without_numbers_keep_their_order() -> None:
    source = old('<trans-unit id="1"><source>%d dogs of %s</source></trans-unit>')
    opened = open_document(source.encode(), DocumentInfo("a.xlf", "en", "de"))
    result, report = opened.finish(translations(opened.texts, STAND_INS["reversed"]))
    assert result.decode() == source
    assert [(segment.text, segment.why) for segment in report.left] == [
        ("%d dogs of %s", "its translation would lose a placeholder, or mix up placeholders without numbers")
    ]
    assert ">%d догс оф %s</target>" in translated(source)[0]


@pytest.mark.parametrize(
    ("source", "translation"),
    [
        ("The dog %1 is older than the dog %2.", "Der Hund 1% ist älter als der Hund 2."),
        ("There are %n dogs.", "Es gibt % Hunde."),
        ("Number %L1", "Nummer L1"),
        ("%1$s of %2$s", "%1$s von %1$s"),
        ("A dog", "Ein Hund %1"),
    ],
)
def test_a_placeholder_with_a_number_that_a_translation_lost_is_named(source: str, translation: str) -> None:
    """Of Qt's and KDE's placeholders a damaged one was written, and "5 of 5 segments translated" said."""
    content = old(f'<trans-unit id="1"><source>{source}</source></trans-unit>')
    opened = open_document(content.encode(), DocumentInfo("a.xlf", "en", "de"))
    result, report = opened.finish({source: letters(source).__class__(translation, 0.0)})
    assert result.decode() == content
    assert [segment.why for segment in report.left] == [
        "its translation would lose a placeholder, or mix up placeholders without numbers"
    ]
    assert ">%2 und %1</target>" in finished_with("%1 and %2", "%2 und %1")


def finished_with(source: str, translation: str) -> str:
    """Return an XLIFF file of one segment with this translation."""
    content = old(f'<trans-unit id="1"><source>{source}</source></trans-unit>')
    opened = open_document(content.encode(), DocumentInfo("a.xlf", "en", "de"))
    return opened.finish({source: letters(source).__class__(translation, 0.0)})[0].decode()


def test_elements_of_other_namespaces_are_no_segments() -> None:
    x = 'xmlns:x="urn:x"'
    made, report = translated(
        old(f"<trans-unit id='1'><x:source {x}>meta</x:source><source>A dog.</source></trans-unit>")
    )
    assert f"<x:source {x}>meta</x:source><source>A dog.</source><target{OLD}>А дог.</target>" in made
    assert not report.left
    made, report = translated(
        old(f"<trans-unit id='1'><source>A dog.</source><x:target {x}>my note</x:target></trans-unit>")
    )
    assert f"<target{OLD}>А дог.</target>" in made
    assert not report.left
    history = '<ctr:changeTrack xmlns:ctr="urn:c"><ctr:segment><ctr:source>Old dog</ctr:source></ctr:segment></ctr:changeTrack>'
    made, report = translated(new(f'<unit id="u">{history}<segment><source>A dog.</source></segment></unit>'))
    assert history in made
    assert "<target>А дог.</target>" in made
    assert not report.left
    prefixed = old("<trans-unit id='1'><source>A dog.</source></trans-unit>")
    prefixed = re.sub(r"(</?)(?=[a-z])", r"\1n:", prefixed).replace("xmlns=", "xmlns:n=")
    assert f"<n:target{OLD}>А дог.</n:target>" in translated(prefixed)[0]


@pytest.mark.parametrize(
    ("cut", "expected"),
    [
        (f'<ph id="1"><sub>{SEG.format(1, "dog")}</sub></ph> {SEG.format(2, "cat")}', ["дог", "цат"]),
        (f'<mrk mtype="protected">{SEG.format(1, "dog")}</mrk> {SEG.format(2, "cat")}', ["dog", "цат"]),
        (f"{SEG.format(1, 'dog' + SEG.format(2, 'cat'))} {SEG.format(3, 'bird')}", ["дог", "цат", "бирд"]),
        (f'<g id="1">{SEG.format(1, "dog")}</g> {SEG.format(1, "cat")}', ["дог", "цат"]),
        (f'<mrk mtype="seg" mid="1"/> {SEG.format(2, "cat")}', ["цат"]),
    ],
)
def test_segments_in_odd_places_stay_whole(cut: str, expected: list[str]) -> None:
    unit = f'<trans-unit id="1"><source>dog cat</source><seg-source>{cut}</seg-source></trans-unit>'
    result, report = translated(old(unit))
    made = etree.fromstring(result.encode()).find(".//{*}target")
    assert made is not None
    assert [text.strip() for text in made.itertext() if text.strip()] == expected
    assert [tag.tag for tag in made.iter()][1:] == [tag.tag for tag in etree.fromstring(old(cut)).iter()][3:]
    assert not report.left


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        ('<mrk mtype="seg" mid="1"/><mrk mtype="seg" mid="0"/><mrk mtype="seg" mid="1"/>', ["цат", "дог", "бирд"]),
        ('<mrk mtype="seg" mid="0"><mrk mtype="seg" mid="1"/></mrk>', ["дог"]),
    ],
)
def test_empty_segments_of_the_same_number_are_filled_in_order(target: str, expected: list[str]) -> None:
    cut = SEG.format(0, "dog") + SEG.format(1, "cat") + SEG.format(1, "bird")
    unit = f'<trans-unit id="1"><source>dog cat bird</source><seg-source>{cut}</seg-source><target>{target}x</target></trans-unit>'
    result, _ = translated(old(unit))
    made = etree.fromstring(result.encode()).find(".//{*}target")
    assert made is not None
    assert [text for text in made.itertext() if text != "x"] == expected


def test_a_message_between_segments_that_cannot_be_parsed_leaves_the_whole() -> None:
    cut = f"{{n, plural, other {{dog}} {SEG.format(1, 'cat')}"
    unit = f'<trans-unit id="1"><source>dog cat</source><seg-source>{cut}</seg-source></trans-unit>'
    result, report = translated(old(unit))
    assert result == old(unit)
    assert [(own.text, own.why) for own in report.left] == [("dog cat", "a message in it cannot be parsed")]
