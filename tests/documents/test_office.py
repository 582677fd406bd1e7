"""Office files: descriptions, fields, references, ruby, bound controls, and packages with parts of other names."""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Mapping

import pytest

from benchmarks.real_documents.stand_ins import letters, reversed_words
from dragoman.documents.document import DocumentInfo
from dragoman.documents.translate import Report, open_document
from dragoman.errors import DataError

W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006"
ODF = "urn:oasis:names:tc:opendocument:xmlns"
TITLE = "{6C3C8BC8-F283-45AE-878A-BAB7291924A1}"


def zipped(members: Mapping[str, str]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return out.getvalue()


def translated(name: str, members: Mapping[str, str], backwards: bool = False) -> tuple[dict[str, str], Report]:
    """Return the members of a translated package, every Latin letter of a translation as a Cyrillic letter."""
    opened = open_document(zipped(members), DocumentInfo(name, "en", "de"))
    stand_in = reversed_words if backwards else letters
    result, report = opened.finish({text: stand_in(text) for text in opened.texts})
    with zipfile.ZipFile(io.BytesIO(result)) as archive:
        return {name: archive.read(name).decode() for name in archive.namelist()}, report


def word(body: str, others: Mapping[str, str] | None = None, backwards: bool = False) -> tuple[str, Report]:
    """Return the translated body of a Word document."""
    members, report = translated(
        "a.docx", {"word/document.xml": f"<w:body {W}>{body}</w:body>", **(others or {})}, backwards
    )
    return members["word/document.xml"].removeprefix(f"<w:body {W}>").removesuffix("</w:body>"), report


def run(text: str) -> str:
    return f'<w:r><w:t xml:space="preserve">{text}</w:t></w:r>'


def odf(body: str, name: str = "a.odt") -> tuple[str, Report]:
    """Return the translated body of an OpenDocument text."""
    start = f'<office:body xmlns:office="{ODF}:office:1.0" xmlns:text="{ODF}:text:1.0" xmlns:svg="{ODF}:svg-compatible:1.0" xmlns:draw="{ODF}:drawing:1.0">'
    members, report = translated(name, {"content.xml": f"{start}{body}</office:body>"})
    return members["content.xml"].removeprefix(start).removesuffix("</office:body>"), report


def test_what_people_read_in_attributes_is_translated() -> None:
    picture = '<w:drawing><wp:docPr xmlns:wp="urn:wp" id="1" name="Picture 1" descr="{}" title=\'{}\'/></w:drawing>'
    link = '<w:hyperlink w:tooltip="{}"><w:r><w:t xml:space="preserve">{}</w:t></w:r></w:hyperlink>'
    body = "<w:p><w:r>{}</w:r>{}</w:p>"
    result, report = word(body.format(picture.format("a dog &amp; cat", "dog"), link.format("the end", "a link")))
    assert result == body.format(picture.format("а дог &amp; цат", "дог"), link.format("тхе енд", "а линк")).replace(
        "<w:r><w:drawing", "<w:r><w:drawing"
    )
    assert not report.left
    table = '<w:tbl><w:tblPr><w:tblCaption w:val="{}"/></w:tblPr></w:tbl><w:p/>'
    assert word(table.format("a dog"))[0] == table.format("а дог")


def test_the_name_of_a_picture_file_is_no_description() -> None:
    body = '<w:p><w:r><w:drawing><pic:cNvPr xmlns:pic="urn:p" descr="Macintosh HD:my dog.png"/></w:drawing></w:r></w:p>'
    result, report = word(body)
    assert result == body
    assert [segment.text for segment in report.left] == ["Macintosh HD:my dog.png"]


FIELD = '<w:r><w:fldChar w:fldCharType="begin"/></w:r><w:r><w:instrText>REF a</w:instrText></w:r><w:r><w:fldChar w:fldCharType="separate"/></w:r>'
END = '<w:r><w:fldChar w:fldCharType="end"/></w:r>'


def test_a_field_is_an_element_around_its_result() -> None:
    result, report = word(f"<w:p>{run('see ')}{FIELD}{run('a dog')}{END}{run(' here')}</w:p>", backwards=True)
    assert result == f"<w:p>{run('хере ')}{FIELD}{run('дог а')}{END}{run(' сее')}</w:p>"
    assert report.found == report.translated


@pytest.mark.parametrize(
    "body",
    [
        FIELD + run("a dog"),
        run("a dog") + END,
        f"<w:ins>{FIELD}</w:ins>{run('a dog')}{END}",
        FIELD + FIELD + run("a dog") + END + END,
    ],
)
def test_fields_that_end_elsewhere_stay_whole(body: str) -> None:
    result, _ = word(f"<w:p>{body}</w:p>", backwards=True)
    for code in ("begin", "separate", "end", "REF a"):
        assert result.count(code) == body.count(code)
    assert "дог а" in result


def test_a_ruby_gets_a_translation_without_its_reading() -> None:
    ruby = "<w:r><w:ruby><w:rubyPr/><w:rt><w:r><w:t>kat</w:t></w:r></w:rt><w:rubyBase><w:r><w:rPr><w:b/></w:rPr><w:t>cat</w:t></w:r></w:rubyBase></w:ruby></w:r>"
    result, report = word(f"<w:p>{run('the ')}{ruby}{run(' sings')}</w:p>")
    assert (
        result
        == f'<w:p>{run("тхе ")}<w:r><w:rPr><w:b/></w:rPr><w:t xml:space="preserve">цат</w:t></w:r>{run(" сингс")}</w:p>'
    )
    assert [segment.text for segment in report.left] == ["kat"]


CONTROL = '<w:p><w:sdt><w:sdtPr><w:dataBinding w:xpath="{}" w:storeItemID="{}"/>{}</w:sdtPr><w:sdtContent><w:r><w:t>a dog</w:t></w:r></w:sdtContent></w:sdt></w:p>'
CUSTOM = {
    "customXml/item1.xml": "<n:a xmlns:n='urn:n'><n:b>x</n:b><n:b>a dog</n:b></n:a>",
    "customXml/_rels/item1.xml.rels": '<Relationships xmlns="urn:r"><Relationship Target="itemProps1.xml"/></Relationships>',
    "customXml/itemProps1.xml": f'<ds:datastoreItem xmlns:ds="{OFFICE}/customXml" ds:itemID="{{0A}}"/>',
}


def bound(path: str, store: str, kind: str = "<w:text/>") -> tuple[dict[str, str], Report]:
    core = {"docProps/core.xml": '<c:p xmlns:c="urn:c" xmlns:dc="urn:dc"><dc:title>a dog</dc:title></c:p>'}
    body = f"<w:body {W}>{CONTROL.format(path, store, kind)}</w:body>"
    return translated("a.docx", {"word/document.xml": body, **core, **CUSTOM})


def test_the_data_that_a_control_shows_is_translated() -> None:
    members, report = bound("/x:p[1]/dc:title[1]", TITLE)
    assert "<dc:title>а дог</dc:title>" in members["docProps/core.xml"]
    assert not report.left
    members, report = bound("/n:a[1]/n:b[2]", "{0a}")
    assert "<n:b>x</n:b><n:b>а дог</n:b>" in members["customXml/item1.xml"]
    assert [segment.why for segment in report.left] == ["the title in the document's properties"]


def test_data_that_cannot_be_reached_is_named() -> None:
    for path in ("//n:b", "/n:a[1]", "/n:a[1]/n:c[1]", "/n:a[1]/@d"):
        members, report = bound(path, "{0A}")
        assert members["customXml/item1.xml"] == CUSTOM["customXml/item1.xml"]
        assert path in [segment.text for segment in report.left]
    members, report = bound("/n:a[1]/n:b[2]", "{0A}", "<w:dropDownList/>")  # whose data is no text
    assert members["customXml/item1.xml"] == CUSTOM["customXml/item1.xml"]
    assert len(report.left) == 1


def test_the_main_part_may_have_another_name() -> None:
    members = {
        "[Content_Types].xml": '<Types><Override PartName="/doc/notes.xml" ContentType="application/vnd.openxmlformats-officedocument.wordprocessingml.footnotes+xml"/></Types>',
        "_rels/.rels": f'<Relationships><Relationship Type="{OFFICE}/relationships/officeDocument" Target="/doc/main.xml"/></Relationships>',
        "doc/main.xml": f"<w:body {W}><w:p>{run('a dog')}</w:p></w:body>",
        "doc/notes.xml": f"<w:body {W}><w:p>{run('a cat')}</w:p></w:body>",
    }
    for name in ("a.docx", "a.docm", "a.dotx"):
        result, _ = translated(name, members)
        assert run("а дог") in result["doc/main.xml"]
        assert run("а цат") in result["doc/notes.xml"]
    with pytest.raises(DataError, match=r"has no doc/main.xml"):
        translated("a.docx", {"_rels/.rels": members["_rels/.rels"], "word/document.xml": "<a/>"})


def test_embedded_documents_are_named() -> None:
    _, report = word(f"<w:p>{run('a dog')}</w:p>", {"word/embeddings/a.docx": "x", "word/afchunk.htm": "x"})
    assert [segment.text for segment in report.left] == ["word/embeddings/a.docx", "word/afchunk.htm"]


def test_references_and_descriptions_of_opendocument() -> None:
    body = "<text:h>{0}</text:h><text:p>{1} <text:bookmark-ref>{0}</text:bookmark-ref><draw:frame><svg:title>{0}</svg:title><svg:desc>{1}</svg:desc></draw:frame></text:p>"
    result, report = odf(body.format("A dog", "see"))
    assert result == body.format("А дог", "сее")
    assert report.found == report.translated
    _, report = odf("<text:p>it is <text:date>March 3</text:date></text:p>", "a.odp")
    assert [(segment.text, segment.why) for segment in report.left] == [("March 3", "a program writes this text")]


def test_an_embedded_object_with_entities_is_named_and_kept() -> None:
    bad = '<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>'
    body = (
        f'<office:body xmlns:office="{ODF}:office:1.0" xmlns:text="{ODF}:text:1.0"><text:p>{{}}</text:p></office:body>'
    )
    plain = '<!DOCTYPE math PUBLIC "-//OpenOffice.org//DTD Modified W3C MathML 1.01//EN" "math.dtd"><math/>'
    members, report = translated(
        "a.odt", {"content.xml": body.format("a dog"), "Object 1/content.xml": bad, "Object 2/content.xml": plain}
    )
    assert members == {"content.xml": body.format("а дог"), "Object 1/content.xml": bad, "Object 2/content.xml": plain}
    assert [segment.text for segment in report.left] == ["Object 1/content.xml"]
    with pytest.raises(DataError, match="declares entities"):
        translated("a.odt", {"content.xml": bad})


def test_code_of_templates_stays_whatever_runs_it_is_divided_into() -> None:
    paragraph = "<w:p>{}</w:p>"
    for code in ("{{r the_dog.name }}", "{%p for dog in dogs %}", "{# a comment #}"):
        body = paragraph.format(run(code))
        assert word(body)[0] == body
    divided = paragraph.format(run("{%p for") + "<w:r><w:rPr><w:b/></w:rPr><w:t>dog in dogs %}</w:t></w:r>")
    assert word(divided)[0] == divided
    body = paragraph.format(run("A dog {%- if it.sleeps -%} sleeps {% endif %} here."))
    assert letters_of(word(body)[0]) == "А дог {%- if it.sleeps -%} слеепс {% endif %} хере."
    assert letters_of(word(paragraph.format(run("Dear {{ the_name }}, hello")))[0]) == "Деар {{ the_name }}, хелло"
    assert letters_of(word(paragraph.format(run("{{ a dog")))[0]) == "{{ а дог"


def test_white_space_beside_tags_makes_no_run() -> None:
    body = f"<w:p> {run('a dog')} <w:bookmarkStart/> {run(' sleeps ')}</w:p>"
    assert 'preserve"></w:t>' not in word(body)[0]


def letters_of(source: str) -> str:
    """Return the text of some XML."""
    return re.sub("<[^<>]*>", "", source)


def test_several_words_in_angle_brackets_stay_and_are_named() -> None:
    """A slide's field for a footer, as LibreOffice writes it."""
    body = f"<w:p>{run('&lt;the footer here&gt;')}</w:p>"
    result, report = word(body)
    assert result == body
    assert [segment.text for segment in report.left] == ["<the footer here>"]
