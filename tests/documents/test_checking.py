"""A translated document is read again, and what it lacks of its source is named."""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks.real_documents.stand_ins import STAND_INS, translations
from dragoman.documents import opening, web
from dragoman.documents.checking import MOST_NAMED, losses
from dragoman.documents.document import Document, DocumentInfo
from dragoman.documents.translate import open_document
from dragoman.documents.units import Tag, Unit

MADE = [[text, text, None] for text in ("The dog sees a cat.", "The tree")]
PAGE = b"<p>The <b>dog</b> sees <a href='x'>a cat</a>.</p><p>The tree</p><img src=a.png>"


def _document(*parts: Any) -> Document:
    return Document(parts, lambda render: b"")


def test_a_lost_tag_and_an_emptied_segment_are_named() -> None:
    unit = Unit("the dog", tags=[Tag(0, ("<b>",), "open", "b"), Tag(7, ("</b>",), "close", "b")])
    whole = _document("<p>", unit, "</p><p>", Unit("a cat"), "</p>")
    assert losses(whole, whole) == []
    lacking = _document("<p>", Unit("the dog"), "</p><p>", Unit(""), "</p>")
    assert [loss.text for loss in losses(whole, lacking)] == ["<b>", "</b>", "1 segments"]
    assert losses(whole, lacking, []) == []
    assert [loss.text for loss in losses(whole, lacking, ["segments"])] == ["1 segments"]
    assert losses(_document("</p><p>", unit), _document(unit, "<i></i></p><p>")) == []  # another order, and more


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{n, plural, one {# dog} other {# dogs}} here", "{n, plural, one {# дог} other {# догс}} хере"),
        ("&lt;p&gt;the &lt;b&gt;dog&lt;/b&gt; here&lt;/p&gt;", "&lt;p&gt;тхе &lt;b&gt;дог&lt;/b&gt; хере&lt;/p&gt;"),
    ],
)
def test_a_message_with_markup_that_was_translated_lacks_nothing(text: str, expected: str) -> None:
    source = (
        '<xliff version="1.2"><file source-language="en" target-language="de" datatype="x" original="y"><body>'
        '<trans-unit id="1"><source>TEXT</source></trans-unit></body></file></xliff>'
    )
    opened = open_document(source.replace("TEXT", text).encode(), DocumentInfo("a.xlf", "en", "de"))
    result, report = opened.finish(translations(opened.texts, STAND_INS["letters"]))
    assert expected in result.decode()
    assert report.left == ()


def test_of_many_losses_the_first_are_named_and_the_rest_counted() -> None:
    found = losses(_document(" ".join(f"<a{i}>" for i in range(MOST_NAMED + 7))), _document())
    assert [loss.text for loss in found[-2:]] == [f"<a{MOST_NAMED - 1}>", "7 more pieces"]


@pytest.mark.parametrize("stand_in", STAND_INS)
def test_a_whole_page_has_no_loss_and_a_damaged_one_is_named(stand_in: str, monkeypatch: pytest.MonkeyPatch) -> None:
    info = DocumentInfo("a.html", "en", "de")
    opened = open_document(PAGE, info)
    _, report = opened.finish(translations(opened.texts, STAND_INS[stand_in]))
    assert report.left == ()
    read = web.read

    def losing(data: bytes, info: DocumentInfo) -> Document:
        document = read(data, info)
        return Document(document.parts, lambda render: render(document.parts).replace("<img src=a.png>", "").encode())

    monkeypatch.setattr(web, "read", losing)
    result = opening.finished(PAGE, opening.fields_of(info), [[text, text, None] for text in opened.texts], [])
    assert [text for text, _ in result["left"]] == ["<img", "src=a.png>"]


def test_a_result_that_cannot_be_read_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    read = web.read
    monkeypatch.setattr(web, "read", lambda data, info: Document(read(data, info).parts, lambda render: b"\0"))
    result = opening.finished(PAGE, opening.fields_of(DocumentInfo("a.html", "en", "de")), MADE, [])
    assert result["left"][0][1] == "the translation cannot be read again: look at it before you use it"


def test_a_text_without_a_translation_and_without_a_reason_is_named() -> None:
    """A worker of another version had read the document: most paragraphs stayed, and the report named none of them."""
    fields = opening.fields_of(DocumentInfo("a.html", "en", "de"))
    result = opening.finished(
        b"<p>The dog</p><p>A cat</p><p>12</p><p>A tree</p>",
        fields,
        [["The dog", "Der Hund", None]],
        [["A tree", "why"]],
    )
    assert (result["content"], result["found"]) == (b"<p>Der Hund</p><p>A cat</p><p>12</p><p>A tree</p>", 3)
    assert sorted(result["left"]) == [["A cat", "no translation was made"], ["A tree", "why"]]


def test_a_text_with_tags_of_which_a_unit_has_no_translation_is_not_written() -> None:
    made, source = [["The dog", "Der Hund", None]], "<p>The dog</p><p>A cat</p>"
    with pytest.raises(LookupError, match="other units"):
        opening.tagged_translations([source], "html", {}, made, ["en", "de"])
    made += [["A cat", "Eine Katze", None]]
    assert opening.tagged_translations([source], "html", {}, made, ["en", "de"]) == {
        "texts": ["<p>Der Hund</p><p>Eine Katze</p>"]
    }
