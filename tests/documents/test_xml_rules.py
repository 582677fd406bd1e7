"""Rules of XML that all its formats share: a DOCTYPE may name any address, and some characters have no place in it."""

from __future__ import annotations

import io
import re
import zipfile

import pytest
from lxml import etree

from dragoman.documents import opening, xml
from dragoman.documents.document import DocumentInfo
from dragoman.documents.translate import open_document
from dragoman.errors import DataError
from dragoman.translation.keeping.glossary import Glossary

WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
DOCUMENTS = {
    "a.xhtml": '<html xmlns="http://www.w3.org/1999/xhtml"><body><p title="a cat">The dog</p></body></html>',
    "a.ttml": '<tt xmlns="http://www.w3.org/ns/ttml"><body><p begin="1s" end="2s">The dog</p></body></tt>',
    "a.xlf": '<xliff xmlns="urn:oasis:names:tc:xliff:document:1.2" version="1.2"><file original="a" source-language="en" '
    'datatype="html"><body><trans-unit id="1"><source>The dog</source></trans-unit></body></file></xliff>',
    "word/document.xml": f'<w:document xmlns:w="{WORD}"><w:body><w:p><w:r><w:t>The dog</w:t></w:r></w:p></w:body></w:document>',
}


def packed(name: str, content: str) -> tuple[str, bytes]:
    """Return the name and the bytes of a file; a member of an office file is packed into one."""
    if not name.endswith(".xml"):
        return name, content.encode()
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr(name, content)
    return "a.odt" if name == "content.xml" else "a.docx", out.getvalue()


def unpacked(member: str, data: bytes) -> bytes:
    if not member.endswith(".xml"):
        return data
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return archive.read(member)


@pytest.mark.parametrize("member", DOCUMENTS)
@pytest.mark.parametrize(
    "doctype",
    [
        'SYSTEM "http://a/<!--b.dtd"', "SYSTEM 'http://a/<!--b.dtd'", 'SYSTEM "a<b>c"', 'SYSTEM "a>b.dtd"',
        'PUBLIC "-//A//DTD B//EN" "a<![CDATA[b.dtd"', 'SYSTEM "a<?b"', "SYSTEM 'a\"<b>'", 'SYSTEM "a[b.dtd"', 'SYSTEM "a]>b"',
    ],
)  # fmt: skip
def test_the_address_of_a_doctype_may_have_any_sign(member: str, doctype: str) -> None:
    name, data = packed(member, f"<!DOCTYPE x {doctype}>\n{DOCUMENTS[member]}")
    info = opening.fields_of(DocumentInfo(name, "en", "de"))
    assert [text for text in opening.texts(data, info)["texts"] if text != "a cat"] == ["The dog"]
    result = opening.finished(data, info, [["The dog", "Der Hund", None], ["a cat", "eine Katze", None]], [])
    assert result["left"] == []
    assert unpacked(member, result["content"]).startswith(f"<!DOCTYPE x {doctype}>\n<".encode())
    assert b"Der Hund" in unpacked(member, result["content"])


@pytest.mark.parametrize("member", [name for name in DOCUMENTS if name != "a.xhtml"])
@pytest.mark.parametrize("address", ["", 'SYSTEM "a<!--b" ', "PUBLIC 'a' 'b>c' "])
def test_a_doctype_with_declarations_is_refused_whatever_its_address(member: str, address: str) -> None:
    name, data = packed(member, f'<!DOCTYPE x {address}[<!ENTITY y "z">]>\n{DOCUMENTS[member]}')
    with pytest.raises(DataError, match="declares entities in its DOCTYPE"):
        open_document(data, DocumentInfo(name, "en", "de"))


OASIS = "urn:oasis:names:tc:opendocument:xmlns"
WITH_EMPTY = {
    "a.ttml": '<tt><body><p begin="1s" end="2s">The <metadata/>dog<br/>sleeps <span/>here</p><p begin="3s"/></body></tt>',
    "a.xlf": '<xliff version="1.2"><file source-language="en"/><file source-language="en"><body><trans-unit id="1"><source>'
    'The <x id="1"/>dog <ph id="2"/><g id="3"/>sleeps</source><target state="new"/></trans-unit></body></file></xliff>',
    "b.xlf": '<xliff version="2.0" srcLang="en" trgLang="de"><file id="f"><unit id="u"><segment><source>The '
    '<sm id="m" translate="no"/>dog<em startRef="m"/> sleeps</source><target/></segment></unit></file></xliff>',
    "c.xlf": '<xliff version="1.2"><file source-language="en"><body><trans-unit id="1"><source>The dog. It</source><seg-source>'
    '<mrk mtype="seg" mid="0">The dog.</mrk> <mrk mtype="seg" mid="1">It</mrk></seg-source><target>'
    '<mrk mtype="seg" mid="0">Ein Hund.</mrk> <mrk mtype="seg" mid="1"/></target></trans-unit></body></file></xliff>',
    "word/document.xml": f'<w:document xmlns:w="{WORD}"><w:body><w:p/><w:p><w:r><w:rPr/><w:t>The dog</w:t><w:br/><w:t>sleeps</w:t>'
    '<w:tab/><w:t>co</w:t><w:softHyphen/><w:t>op</w:t></w:r></w:p></w:body></w:document>',
    "content.xml": f'<office:body xmlns:office="{OASIS}:office:1.0" xmlns:text="{OASIS}:text:1.0"><text:p>The dog<text:line-break/>'
    "sleeps <text:s/>here<text:tab/>too</text:p><text:p/></office:body>",
}  # fmt: skip


@pytest.mark.parametrize("member", WITH_EMPTY)
def test_an_empty_element_of_two_tags_is_read_as_that_of_one(member: str) -> None:
    """The words beside ``<br></br>`` ran together, and ``<sm ...></sm>`` protected nothing."""
    results = []
    for content in (WITH_EMPTY[member], re.sub(r"<([\w:-]+)([^<>]*)/>", r"<\1\2></\1>", WITH_EMPTY[member])):
        name, data = packed(member, content)
        info = opening.fields_of(DocumentInfo(name, "en", "de"))
        texts = opening.texts(data, info)["texts"]
        result = opening.finished(data, info, [[text, text.upper(), None] for text in texts], [])
        written = unpacked(member, result["content"])
        results.append((texts, etree.tostring(etree.fromstring(written), method="c14n"), result["left"]))
    assert results[0] == results[1]
    assert b"/>" not in written
    assert texts


def test_a_file_without_an_element_is_refused() -> None:
    with pytest.raises(DataError, match="has no element that can be read"):
        xml.root_of([xml.Token("<!-- a -->", "other")], DocumentInfo("a.xlf"))


@pytest.mark.parametrize(
    ("name", "member"), [("a.docx", "word/document.xml"), ("a.odt", "content.xml"), ("a.pptx", "ppt/slides/slide1.xml")]
)
def test_an_office_part_with_text_but_no_known_paragraph_is_named(name: str, member: str) -> None:
    members = {"a.pptx": {"ppt/presentation.xml": "<a/>"}}.get(name, {}) | {member: "<a><b>The dog</b></a>"}
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for own, content in members.items():
            archive.writestr(own, content)
    _, report = open_document(out.getvalue(), DocumentInfo(name, "en", "de")).finish({})
    assert [(own.text, own.why) for own in report.left] == [
        (member, "has text, but no paragraph in the elements of this format")
    ]


@pytest.mark.parametrize("member", DOCUMENTS)
@pytest.mark.parametrize("character", ["\x01", "\x0b", "\x0c", "\x1b", "\ufffe", "\uffff", "\ud800"])
def test_a_character_that_xml_cannot_hold_is_replaced(member: str, character: str) -> None:
    name, data = packed(member, DOCUMENTS[member])
    info = opening.fields_of(DocumentInfo(name, "en", "de"))
    made = [[text, f"ein{character}Hund & Co", None] for text in opening.texts(data, info)["texts"]]
    content = unpacked(member, opening.finished(data, info, made, [])["content"])
    values = [*etree.fromstring(content).itertext(), *etree.fromstring(content).xpath("//@*[name() = 'title']")]
    assert values.count("ein\ufffdHund & Co") == len(made)


def test_a_page_that_is_no_xml_keeps_such_a_character() -> None:
    info = opening.fields_of(DocumentInfo("a.html", "en", "de"))
    result = opening.finished(b"<p>The dog</p>", info, [["The dog", "Der\x0cHund", None]], [])
    assert result["content"] == b"<p>Der\x0cHund</p>"


@pytest.mark.parametrize("character", ["\x01", "\x08", "\x0b", "\x0c", "\x1f", "\x7f", "\x85", "\x9f"])
@pytest.mark.parametrize("term", ["dog = Hund{}x", "d{}og = Hund", "d{}og"])
def test_a_glossary_brings_no_such_character_into_a_translation(character: str, term: str) -> None:
    code = f"U[+]{ord(character):04X}"
    with pytest.raises(DataError, match=f"^glossary:2: .* has the control character {code}, which no text shows"):
        Glossary.parse(f"cat = Katze\n{term.format(character)}")
    with pytest.raises(DataError, match=f"^glossary entry 2: .*{code}"):
        Glossary([("cat", "Katze"), ("dog", f"H{character}und")])
