"""Each format: text units out of a file, and translations back into it; what is no text keeps its bytes."""

from __future__ import annotations

import io
import random
import re
import zipfile
from collections.abc import Callable, Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.data.text_names import is_plain_text
from dragoman.documents import opening
from dragoman.documents.document import DocumentInfo
from dragoman.documents.formats import supported_suffixes
from dragoman.documents.translate import Report, finishing, open_document
from dragoman.errors import DataError
from dragoman.translation.assemble import Translation
from limits import cpu_limit


def aligned(text: str, words: list[str], made: str, order: list[int]) -> tuple[tuple[int, int], ...] | None:
    """The links of words that were put in another order; None where a piece is not a word of its own."""
    if len(text.split()) != len(words) or len(made.split()) != len(words):
        return None
    return tuple(sorted((i, n) for n, i in enumerate(order)))


def upper(name: str, data: str | bytes, columns: tuple[str, ...] = (), backwards: bool = False) -> tuple[bytes, Report]:
    """The document "translated" to capitals, word by word, its words in the other direction if ``backwards``."""
    content = data.encode() if isinstance(data, str) else data
    opened = open_document(content, DocumentInfo(name, "en", "de", columns))
    return opened.finish(capitals(opened.texts, backwards))


def capitals(texts: list[str], backwards: bool = False) -> dict[str, Translation]:
    """The translations of ``upper``."""
    found = {}
    for text in texts:
        words = [word if "`" in word else word.upper() for word in re.findall(r"[^\s`]*`[^`]+`\S*|\S+", text)]
        order = list(reversed(range(len(words)))) if backwards else list(range(len(words)))
        made = " ".join(words[i] for i in order)
        found[text] = Translation(made, 0.0, alignment=aligned(text, words, made, order))
    return found


def untouched(name: str, data: bytes, columns: tuple[str, ...] = ()) -> bytes:
    """The document written without any translation."""
    return open_document(data, DocumentInfo(name, "en", "de", columns)).finish({})[0]


MARKDOWN = """---
title: kept
---
# A title #

Some *text* with **bold words** and `code`, a [link](http://x.y "t") and
a second line\\
after a break. See <http://a.b>, [ref] and [it][ref].

> quoted one
> quoted two

- an item
  goes on

| a | b |
|---|:-:|
| one \\| two | three |

![alt text](img.png)

    kept code

<p>html <b>bold</b></p>

[ref]: http://x.y
"""

CASES: dict[str, tuple[str, str, str]] = {
    "lines": ("a.txt", "one\n\n two  \r\n12.5\nlast", "ONE\n\n TWO  \r\n12.5\nLAST"),
    "lines that end at CR": ("a.txt", "one\r\r two  \rlast\r", "ONE\r\r TWO  \rLAST\r"),
    "html": (
        "a.html",
        '<!DOCTYPE html><title>T it</title><p>a&nbsp;<b>b</b> c<img src=x alt="a pic"></p><td>&nbsp;</td><script>x</script>',
        '<!DOCTYPE html><title>T IT</title><p>A&nbsp;<b>B</b> C<img src=x alt="A PIC"></p><td>&nbsp;</td><script>x</script>',
    ),
    "subtitles": (
        "a.srt",
        "1\r\n00:00:01,000 --> 00:00:02,000\r\nthe cat <i>sees</i> the\r\n\r\n2\r\n00:00:02,100 --> 00:00:05,000\r\n"
        "dog in the big house.\r\n- No.\r\n- Yes!\r\n",
        "1\r\n00:00:01,000 --> 00:00:02,000\r\nTHE CAT <i>SEES</i> THE\r\n\r\n2\r\n00:00:02,100 --> 00:00:05,000\r\n"
        "DOG IN THE BIG HOUSE.\r\n- NO.\r\n- YES!\r\n",
    ),
    "web subtitles": (
        "a.vtt",
        "WEBVTT\n\nNOTE no\n\n00:01.000 --> 00:02.000 align:start\n<v Bob>a &amp; b</v>\n",
        "WEBVTT\n\nNOTE no\n\n00:01.000 --> 00:02.000 align:start\n<v Bob>A &amp; B</v>\n",
    ),
    "gettext": (
        "a.po",
        'msgid ""\nmsgstr "Language: de\\n"\n\n#, python-brace-format\nmsgid "Hi {0}"\nmsgstr ""\n\nmsgid "a file"\nmsgid_plural "files"\n'
        'msgstr[0] ""\nmsgstr[1] ""\n\nmsgid ""\n"one\\n"\n"a \\"two\\""\nmsgstr ""\n#~ msgid "old"\n#~ msgstr ""\n',
        'msgid ""\nmsgstr "Language: de\\n"\n"Plural-Forms: nplurals=2; plural=(n != 1);\\n"\n\n#, python-brace-format\nmsgid "Hi {0}"\nmsgstr "HI {0}"\n\nmsgid "a file"\nmsgid_plural "files"\n'
        'msgstr[0] "A FILE"\nmsgstr[1] "FILES"\n\nmsgid ""\n"one\\n"\n"a \\"two\\""\nmsgstr ""\n"ONE\\n"\n"A \\"TWO\\""\n'
        '#~ msgid "old"\n#~ msgstr ""\n',
    ),
    "xliff 1.2": (
        "a.xlf",
        '<xliff version="1.2"><file original="x"><body>\n <trans-unit id="1">\n  <source>Hi <g id="1">big</g> one<x id="2"/>!'
        '</source>\n </trans-unit><trans-unit id="2"><source>yes</source><target state="new"/></trans-unit></body></file></xliff>',
        '<xliff version="1.2"><file original="x" target-language="de"><body>\n <trans-unit id="1">\n  <source>Hi <g id="1">big'
        '</g> one<x id="2"/>!</source>\n  <target state="needs-review-translation" state-qualifier="leveraged-mt">HI <g id="1">BIG</g> ONE<x id="2"/>!</target>\n </trans-unit>'
        '<trans-unit id="2"><source>yes</source><target state="needs-review-translation" state-qualifier="leveraged-mt">YES</target></trans-unit></body></file></xliff>',
    ),
    "xliff 2.0": (
        "a.xliff",
        '<x:xliff version="2.0" trgLang="de-AT" xmlns:x="urn:x"><x:file><x:unit id="1"><x:segment><x:source>a <x:pc id="1">b'
        "</x:pc> &lt; <x:ph id='2'/></x:source></x:segment></x:unit></x:file></x:xliff>",
        '<x:xliff version="2.0" trgLang="de-AT" xmlns:x="urn:x"><x:file><x:unit id="1"><x:segment state="translated"><x:source>a <x:pc id="1">b'
        "</x:pc> &lt; <x:ph id='2'/></x:source><x:target>A <x:pc id=\"1\">B</x:pc> &lt; <x:ph id='2'/></x:target></x:segment>"
        "</x:unit></x:file></x:xliff>",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_text_is_translated_and_the_rest_keeps_its_bytes(case: str) -> None:
    name, source, expected = CASES[case]
    content, report = upper(name, source)
    assert content.decode() == expected
    assert report.found == report.translated > 0


def test_markdown() -> None:
    content, report = upper("a.md", MARKDOWN)
    assert report.found == report.translated == 12
    assert content.decode() == (
        MARKDOWN.replace("A title", "A TITLE").replace("Some *text*", "SOME *TEXT*").replace(" with ", " WITH ")
        .replace("bold words", "BOLD WORDS").replace("and `", "AND `").replace(", a [link]", ", A [LINK]").replace('"t"', '"T"')
        .replace(" and\na second line", " AND\nA SECOND LINE").replace("after a break. See", "AFTER A BREAK. SEE")
        .replace("[ref] and [it][ref].", "[REF][ref] AND [IT][ref].").replace("quoted one", "QUOTED ONE")
        .replace("quoted two", "QUOTED TWO").replace("an item", "AN ITEM").replace("goes on", "GOES ON")
        .replace("| a | b |", "| A | B |").replace("one \\| two | three", "ONE \\| TWO | THREE")
        .replace("alt text", "ALT TEXT").replace("html <b>bold", "HTML <b>BOLD")
    )  # fmt: skip


def test_a_translation_that_would_be_markdown_is_escaped() -> None:
    opened = open_document(b"a line\n\nanother\n", DocumentInfo("a.md"))
    found = {"a line": Translation("# no *title*", 0.0), "another": Translation("1. no `item`", 0.0)}
    content, _ = opened.finish(found)
    assert content == b"\\# no \\*title\\*\n\n1\\. no \\`item\\`\n"


def test_columns_of_a_table_by_name() -> None:
    table = 'id;text;note\r\n1;hello;kept\r\n2;"a; ""b""\nnext";"kept"\r\n\r\n3;42;x\r\n'
    content, report = upper("a.csv", table, ("text",))
    assert content.decode() == table.replace("hello", "HELLO").replace("a; ", "A; ").replace(
        '""b""\nnext', '""B""\nNEXT'
    )
    assert report.found == 3
    assert upper("a.tsv", 'a\tb\n"x\ty\n', ("a",))[0] == b'a\tb\n"X\ty\n'


@pytest.mark.parametrize(
    ("name", "data", "columns", "said"),
    [
        ("a.csv", "a,b\n1,2\n", (), "which column.*a, b"),
        ("a.csv", "a,b\n1,2\n", ("c",), "no columns have the heading 'c'"),
        ("a.csv", "a,a\n1,2\n", ("a",), "2 columns"),
        ("a.srt", "some text", (), "no times"),
        ("a.vtt", "00:01.000 --> 00:02.000\nx\n", (), "WEBVTT"),
        ("a.po", 'msgid "a"\nmsgstr "b\n', (), "a.po:2"),
        ("a.xlf", "<xliff version='1.2'><file></xliff>", (), "not well-formed"),
        ("a.xlf", "<tmx version='1.4'/>", (), "its root is tmx"),
        ("a.xlf", "<xliff version='1.2'><file target-language='fr'/></xliff>", (), "translated to fr"),
        ("a.xlf", "<!DOCTYPE x [<!ENTITY a SYSTEM 'file:///etc/passwd'>]><xliff version='1.2'>&a;</xliff>", (), "DOCTYPE"),
        ("a.txt", b"caf\xe9 \x00\x01", (), "byte 3 is not UTF-8, and no encoding fits"),
        ("a.txt", "schön\n".encode() * 5 + b"caf\xe9", (), "byte 38 is not UTF-8, and no encoding fits"),
        ("a.txt", b"a\0b", (), "NUL"),
        ("a.html", b"<meta charset=utf-8>\xe9\xe8\xff", (), "byte 20 is not UTF-8"),
        ("a.po", 'msgid ""\nmsgstr "Content-Type: text/plain; charset=unicode_escape\\]\\n"\n', (), "is not known"),
        ("a.docx", b"no zip", (), "not a .docx file"),
        ("a.docx", b"PK\x03\x04 no zip", (), "not a .docx file"),
        ("a.pdf", b"%PDF", (), "is neither plain text nor a supported document"),
        ("a.md", b"a\n" * 1_000_001, (), "2,000,002 bytes of Markdown"),
        ("file", "\n<!DOCTYPE HTML><p>a dog", (), r"no suffix: add it, such as \.html"),
        ("file", b"\xef\xbb\xbf<?xml version='1.0'?><tt/>", (), r"no suffix: add it, such as \.xlf"),
        ("file", b"PK\x03\x04\0", (), r"no suffix: add it, such as \.docx"),
        ("file", "1\r\n00:00:01,000 --> 00:00:02,000\r\nA dog.\r\n", (), r"no suffix: add it, such as \.srt"),
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_refused(name: str, data: str | bytes, columns: tuple[str, ...], said: str) -> None:
    with pytest.raises(DataError, match=said):
        upper(name, data, columns)


def test_no_format_takes_the_name_of_plain_text() -> None:
    """``dragoman translate`` asks for plain text first, as the formats take a tenth of a second to import."""
    assert [suffix for suffix in supported_suffixes() if is_plain_text(f"a{suffix}")] == [".txt"]


def test_plain_text_needs_no_suffix() -> None:
    assert upper("README", "a dog runs\n")[0] == b"A DOG RUNS\n"
    assert upper("a.txt", "WEBVTT is a format\n")[0] == b"WEBVTT IS A FORMAT\n"


def zipped(members: Mapping[str, str | bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as made:
        for name, content in members.items():
            made.writestr(name, content)
    return out.getvalue()


W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main" xmlns:r="urn:r"'


@pytest.mark.parametrize(
    ("members", "said"),
    [
        ({"a": "x"}, "no word/document.xml"),
        ({"word/document.xml": f"<w:document {W}><w:p>"}, "word/document.xml: not well-formed"),
        ({"word/document.xml": "<!DOCTYPE a [<!ENTITY b 'c'>]><a>&b;</a>"}, "DOCTYPE"),
        ({"word/document.xml": b"<a>" + bytes(1 << 28) + b"</a>"}, "too much"),
        (
            {"word/document.xml": b"<a>" + bytes(1 << 26) + b"</a>", "x.png": random.Random(1).randbytes(1 << 20)},
            "too many",
        ),
    ],
)
def test_hostile_office_files_are_refused(members: dict[str, str | bytes], said: str) -> None:
    with pytest.raises(DataError, match=said):
        upper("a.docx", zipped(members))


def test_a_bomb_is_refused_before_it_is_unpacked() -> None:
    data = bytearray(zipped({"word/document.xml": "<a/>", "word/media/x.bin": bytes(1 << 20)}))
    place = data.rindex(b"PK\x01\x02")
    data[place + 24 : place + 28] = (0xFFFF0000).to_bytes(4, "little")  # says that it unpacks to 4 GiB
    with pytest.raises(DataError, match="too much"):
        upper("a.docx", bytes(data))


def word(body: str) -> bytes:
    return zipped({"[Content_Types].xml": "<a/>", "word/document.xml": f"<w:document {W}><w:body>{body}</w:body></w:document>",
                   "word/media/a.png": b"\x89PNG\0"})  # fmt: skip


def body_of(content: bytes) -> str:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        text = archive.read("word/document.xml").decode()
    return text[text.index("<w:body>") + 8 : text.index("</w:body>")]


def run(text: str, properties: str = "") -> str:
    shown = f"<w:rPr>{properties}</w:rPr>" if properties else ""
    return f'<w:r>{shown}<w:t xml:space="preserve">{text}</w:t></w:r>'


def test_runs_go_where_their_words_went() -> None:
    source = f"<w:p><w:pPr><w:jc/></w:pPr>{run('the ')}{run('red ', '<w:b/>')}{run('big cat')}</w:p>"
    content, _ = upper("a.docx", word(source), backwards=True)
    assert body_of(content) == f"<w:p><w:pPr><w:jc/></w:pPr>{run('CAT BIG ')}{run('RED', '<w:b/>')}{run(' THE')}</w:p>"


def test_a_word_in_several_runs_is_one_word() -> None:
    pieces = '<w:r w:rsidR="1"><w:t>hel</w:t></w:r><w:proofErr w:type="x"/><w:r w:rsidR="2"><w:t xml:space="preserve">lo you</w:t></w:r>'
    content, report = upper("a.docx", word(f"<w:p>{pieces}</w:p>"))
    assert body_of(content) == '<w:p><w:r w:rsidR="1"><w:t xml:space="preserve">HELLO YOU</w:t></w:r></w:p>'
    assert report.found == 1


def test_pictures_notes_links_and_fields_keep_their_place() -> None:
    note = '<w:r><w:footnoteReference w:id="1"/></w:r>'
    link = f'<w:hyperlink r:id="x">{run("a link", "<w:u/>")}</w:hyperlink>'
    box = f"<w:r><w:pict><w:txbxContent><w:p>{run('in a box')}</w:p></w:txbxContent></w:pict></w:r>"
    source = f"<w:p>{run('see')}{note}{run(' ')}{link}{run(' here now')}<w:r><w:tab/></w:r>{run('3')}{box}</w:p>"
    content, report = upper("a.docx", word(source))
    out = body_of(content)
    assert out == (
        source.replace(">see<", ">SEE<").replace("a link", "A LINK").replace("here now", "HERE NOW")
        .replace("in a box", "IN A BOX")
    )  # fmt: skip
    assert report.found == 2


def test_deleted_text_stays_deleted() -> None:
    gone = "<w:del><w:r><w:delText>old</w:delText></w:r></w:del>"
    content, _ = upper("a.docx", word(f"<w:p>{run('new ')}{gone}{run('text')}</w:p>"))
    assert body_of(content) == f"<w:p>{run('NEW ')}{gone}{run('TEXT')}</w:p>"


def test_tracked_changes_stay_tracked() -> None:
    mark = 'w:id="1" w:author="Ann" w:date="2026-01-01T00:00:00Z"'
    gone = f'<w:del {mark}><w:r><w:delText xml:space="preserve">old </w:delText></w:r></w:del>'
    came = f"<w:ins {mark}>{run('new ')}</w:ins>"
    moved = f"<w:moveFrom {mark}>{run('here ')}</w:moveFrom>"
    arrived = f"<w:moveTo {mark}>{run(' now')}</w:moveTo>"
    source = f"<w:p><w:pPr><w:rPr><w:ins {mark}/></w:rPr></w:pPr>{run('the ')}{gone}{came}{moved}{run('red cat')}{arrived}</w:p>"
    assert open_document(word(source), DocumentInfo("a.docx")).texts == ["the new red cat now"]
    content, report = upper("a.docx", word(source))
    expected = source
    for text in (">the <", ">new <", ">red cat<", "> now<"):
        expected = expected.replace(text, text.upper())
    got = body_of(content).replace(run(" "), "")  # a space may be a run of its own
    assert got.replace(" ", "") == expected.replace(" ", "")
    assert (report.found, report.left) == (1, ())


def test_a_formula_stays_where_it_stood() -> None:
    formula = (
        '<m:oMath xmlns:m="http://schemas.openxmlformats.org/officeDocument/2006/math"><m:r><m:t>E=m</m:t></m:r>'
        "<m:sSup><m:e><m:r><m:t>c</m:t></m:r></m:e><m:sup><m:r><m:t>2</m:t></m:r></m:sup></m:sSup></m:oMath>"
    )
    source = f"<w:p>{run('energy is ')}{formula}{run(' here')}</w:p>"
    content, report = upper("a.docx", word(source))
    assert body_of(content) == source.replace("energy is", "ENERGY IS").replace("here", "HERE")
    assert report.found == 1


def test_a_chart_on_a_slide_as_another_reader_sees_it() -> None:
    pptx = pytest.importorskip("pptx")
    from pptx.chart.data import CategoryChartData
    from pptx.enum.chart import XL_CHART_TYPE
    from pptx.util import Inches

    made = pptx.Presentation()
    slide = made.slides.add_slide(made.slide_layouts[6])
    data = CategoryChartData()
    data.categories = ["east", "west"]
    data.add_series("the sales", (1.5, 2.25))
    place = (Inches(1), Inches(1), Inches(4), Inches(3))
    chart = slide.shapes.add_chart(XL_CHART_TYPE.COLUMN_CLUSTERED, *place, data).chart
    chart.has_title = True
    chart.chart_title.text_frame.text = "a year"
    out = io.BytesIO()
    made.save(out)
    content, report = upper("a.pptx", out.getvalue())
    read = pptx.Presentation(io.BytesIO(content)).slides[0].shapes[0].chart
    assert read.chart_title.text_frame.text == "A YEAR"
    assert [each.name for each in read.plots[0].series] == ["THE SALES"]
    assert list(read.plots[0].categories) == ["EAST", "WEST"]
    assert list(read.plots[0].series[0].values) == [1.5, 2.25]
    assert report.found - report.translated == 1  # masters and layouts have text too
    assert [each.why for each in report.left] == ["the data sheet of a chart keeps its labels"]
    assert report.left[0].text.startswith("ppt/embeddings/")


def test_newer_charts_of_word() -> None:
    space = 'xmlns:cx="http://schemas.microsoft.com/office/drawing/2014/chartex"'
    chart = (
        f"<cx:chartSpace {space}><cx:strDim><cx:f>Sheet1!$A$2</cx:f><cx:lvl><cx:pt idx='0'>a branch</cx:pt></cx:lvl></cx:strDim>"
        "<cx:numDim><cx:lvl><cx:pt idx='0'>12.5</cx:pt></cx:lvl></cx:numDim><cx:tx><cx:txData><cx:f>Sheet1!$B$1</cx:f>"
        "<cx:v>a series</cx:v></cx:txData></cx:tx></cx:chartSpace>"
    )
    data = zipped({"word/document.xml": f"<w:document {W}/>", "word/charts/chartEx1.xml": chart})
    content, report = upper("a.docx", data)
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        assert archive.read("word/charts/chartEx1.xml").decode() == chart.replace("a branch", "A BRANCH").replace(
            "a series", "A SERIES"
        )
    assert (report.found, report.translated) == (2, 2)


def test_members_without_text_are_the_same_bytes() -> None:
    data = word(f"<w:p>{run('hello')}</w:p><w:p>{run('42')}</w:p>")
    content, _ = upper("a.docx", data)
    with zipfile.ZipFile(io.BytesIO(data)) as one, zipfile.ZipFile(io.BytesIO(content)) as other:
        assert [(each.filename, each.date_time, each.compress_type) for each in one.infolist()] == [
            (each.filename, each.date_time, each.compress_type) for each in other.infolist()
        ]
        assert [name for name in one.namelist() if one.read(name) != other.read(name)] == ["word/document.xml"]


def docx_file() -> bytes:
    docx = pytest.importorskip("docx")
    made = docx.Document()
    paragraph = made.add_paragraph("a bold ")
    paragraph.add_run("cat").bold = True
    made.add_table(1, 1).cell(0, 0).text = "a cell"
    made.sections[0].header.paragraphs[0].text = "a header"
    made.sections[0].footer.paragraphs[0].text = "a footer"
    made.add_comment(paragraph.runs, text="a comment")
    out = io.BytesIO()
    made.save(out)
    return out.getvalue()


def test_word_as_another_reader_sees_it() -> None:
    docx = pytest.importorskip("docx")
    read = docx.Document(io.BytesIO(upper("a.docx", docx_file())[0]))
    assert [(each.text, each.bold) for each in read.paragraphs[0].runs][:2] == [("A BOLD ", None), ("CAT", True)]
    assert read.tables[0].cell(0, 0).text == "A CELL"
    assert read.sections[0].header.paragraphs[0].text == "A HEADER"
    assert read.sections[0].footer.paragraphs[0].text == "A FOOTER"
    assert [each.text for each in read.comments] == ["A COMMENT"]


def pptx_file() -> bytes:
    pptx = pytest.importorskip("pptx")
    made = pptx.Presentation()
    slide = made.slides.add_slide(made.slide_layouts[1])
    slide.shapes.title.text = "a title"
    slide.placeholders[1].text_frame.text = "a point"
    slide.notes_slide.notes_text_frame.text = "a note"
    out = io.BytesIO()
    made.save(out)
    return out.getvalue()


def test_slides_as_another_reader_sees_them() -> None:
    pptx = pytest.importorskip("pptx")
    slide = pptx.Presentation(io.BytesIO(upper("a.pptx", pptx_file())[0])).slides[0]
    assert [each.text_frame.text for each in slide.shapes] == ["A TITLE", "A POINT"]
    assert slide.notes_slide.notes_text_frame.text == "A NOTE"


def odt_file() -> bytes:
    pytest.importorskip("odf")
    from odf import opendocument, text

    made = opendocument.OpenDocumentText()
    made.text.addElement(text.H(outlinelevel=1, text="a heading"))
    paragraph = text.P(text="the cat")
    note, body = text.Note(noteclass="footnote"), text.NoteBody()
    body.addElement(text.P(text="a footnote"))
    note.addElement(text.NoteCitation(text="1"))
    note.addElement(body)
    paragraph.addElement(note)
    paragraph.addText(" sees")
    made.text.addElement(paragraph)
    out = io.BytesIO()
    made.save(out)
    return out.getvalue()


def test_opendocument_as_another_reader_sees_it() -> None:
    pytest.importorskip("odf")
    from odf import opendocument, teletype, text

    content, report = upper("a.odt", odt_file())
    read = opendocument.load(io.BytesIO(content))
    assert [teletype.extractText(each) for each in read.getElementsByType(text.H)] == ["A HEADING"]
    assert teletype.extractText(read.getElementsByType(text.P)[0]) == "THE CAT1A FOOTNOTE SEES"
    assert report.found == report.translated == 3


@pytest.mark.parametrize("make", [docx_file, pptx_file, odt_file])
def test_an_office_file_without_translations_keeps_every_member(make: Callable[[], bytes]) -> None:
    data = make()
    content = untouched(f"a.{make.__name__[:-5]}", data)
    with zipfile.ZipFile(io.BytesIO(data)) as one, zipfile.ZipFile(io.BytesIO(content)) as other:
        for name in one.namelist():
            if name.endswith(".xml") and "document" not in name:
                assert other.read(name) == one.read(name)


PIECES = {
    ".md": ["a cat ", "*", "**", "`", "[x](y)", "![", "]", "(", "\n", "\n\n", "> ", "- ", "1. ", "# ", "|", "---", "<b>", "&amp;",
            "\\", "    ", "~~", "<http://a.b>", "\t", "é", "[r]: /u"],
    ".html": ["a cat ", "<b>", "</b>", "<p>", "<td title='x'>", "&nbsp;", "<", ">", "<!--", "-->", "\n", "<br>", "é", "<pre>", "</pre>"],
    ".srt": ["a cat ", "\n", "\n\n", "1\n", "00:00:01,000 --> 00:00:02,000\n", "<i>", "</i>", "- ", ".", "\r\n", "{\\an8}", "é"],
    ".txt": ["a cat", "\n", "\r", "\u2028", "é", " "],
}  # fmt: skip


@given(st.data(), st.sampled_from(sorted(PIECES)))
def test_any_text_without_translations_keeps_every_byte(data: st.DataObject, suffix: str) -> None:
    source = "".join(data.draw(st.lists(st.sampled_from(PIECES[suffix]), max_size=15))).encode()
    if suffix == ".srt":
        source = b"00:00:00,000 --> 00:00:01,000\n" + source
    assert untouched(f"a{suffix}", source) == source


@given(st.data())
def test_any_markdown_keeps_its_structure(data: st.DataObject) -> None:
    source = "".join(data.draw(st.lists(st.sampled_from(PIECES[".md"]), max_size=15)))
    from dragoman.documents.markdown import structure

    content, report = upper("a.md", source, backwards=True)
    assert structure(content.decode()) == structure(source)
    assert report.found == report.translated + len(report.left)


def test_the_same_sentence_is_the_same_text_in_every_format() -> None:
    sentence = "The red cat sees a dog."
    files: dict[str, str | bytes] = {
        "a.txt": sentence, "a.md": f"- {sentence}\n", "a.html": "<p>The <b>red</b> cat\nsees a dog.</p>",
        "a.srt": "1\n00:00:01,000 --> 00:00:02,000\nThe red\n\n2\n00:00:02,000 --> 00:00:03,000\ncat sees a dog.\n",
        "a.vtt": f"WEBVTT\n\n00:01.000 --> 00:02.000\n{sentence}\n", "a.po": f'msgid "{sentence}"\nmsgstr ""\n',
        "a.csv": f'a\n"{sentence}"\n', "a.xlf": f"<xliff version='1.2'><trans-unit id='1'><source>{sentence}</source></trans-unit></xliff>",
        "a.docx": word(f"<w:p>{run('The ')}{run('red', '<w:b/>')}{run(' cat sees a dog.')}</w:p>"),
    }  # fmt: skip
    for name, data in files.items():
        content = data.encode() if isinstance(data, str) else data
        assert open_document(content, DocumentInfo(name, columns=("a",) if name == "a.csv" else ())).texts == [sentence]


def test_what_is_meant_to_take_long_does_not() -> None:
    for name, data in (("a.html", b"<b>a</b> " * 20_000), ("b.html", b"<!-- " * 100_000), ("c.html", b"<a '" * 50_000)):
        info = DocumentInfo(name)
        with cpu_limit():  # squared it would be minutes
            texts = opening.texts(data, opening.fields_of(info))["texts"]  # in this process, whose time is limited
            opening.finished(**finishing(data, info, capitals(texts)))


def test_what_was_left_is_named() -> None:
    opened = open_document(
        b'msgid "a"\nmsgstr "b"\n\n#, fuzzy\nmsgid "c"\nmsgstr "d"\n\nmsgid "e"\nmsgstr ""\n', DocumentInfo("a.po")
    )
    content, report = opened.finish({"e": Translation("", 0.0)})
    assert (report.found, report.translated) == (3, 0)
    assert [(each.text, each.why) for each in report.left] == [
        ("a", "translated already"), ("c", "fuzzy already"), ("e", "the model gave an empty translation")
    ]  # fmt: skip
    assert b'msgid "e"\nmsgstr ""' in content
    assert str(report) == (
        "0 of 3 segments translated; 1 left: translated already; 1 left: fuzzy already; "
        "1 left: the model gave an empty translation"
    )


RUSSIAN = "Мы идём домой.\nПосле дождя на улице было холодно и темно.\n"


@pytest.mark.parametrize("name", ["a.txt", "a.srt", "a.csv", "a.md", "a.html"])
def test_a_document_in_an_old_encoding_is_read_and_written_as_utf8(name: str) -> None:
    text = {
        "a.srt": f"1\n00:00:01,000 --> 00:00:02,000\n{RUSSIAN}",
        "a.csv": "текст\n" + RUSSIAN,
        "a.html": f"<p>{RUSSIAN.strip().replace(chr(10), ' ')}</p>",
    }.get(name, RUSSIAN)
    document = open_document(text.encode("cp1251"), DocumentInfo(name, src_lang="ru"))
    assert any("домой" in part for part in document.texts)
    translations = {part: Translation(part.replace("домой", "家"), 0.0) for part in document.texts}
    content, report = document.finish(translations)
    assert content.decode() == text.replace("домой", "家")
    assert [str(note) for note in report.notes] == ["read as CP1251; the translation is written in UTF-8"]


def test_an_element_that_must_stay_empty_keeps_its_source_and_is_named() -> None:
    document = open_document(b"<p><b>Good</b> <i>day</i></p><p><b>Yes</b></p>", DocumentInfo("a.html"))
    texts = {"Good day": Translation("Hallo", 0.0, alignment=((0, 0), (1, 0))), "Yes": Translation("Ja", 0.0)}
    content, report = document.finish(texts)
    assert content == b"<p><b>Good</b> <i>day</i></p><p><b>Ja</b></p>"
    assert [(segment.text, segment.why) for segment in report.left] == [
        ("Good day", "its translation has no words for 1 of its elements")
    ]
    assert (report.found, report.translated) == (2, 1)
