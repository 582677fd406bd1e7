"""The table of parsers: every function that takes a user's text apart, with the tokens of its format.

Its adversarial texts are made from the tokens: each one and each pair repeated, opened without an end, nested, and
behind each other token; the patterns of its modules add their own (``hostile_strings``).
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import patterns
from hostile_strings import Recipe, recipes

from dragoman.data.encodings import odd_share
from dragoman.data.tmx import read_tmx
from dragoman.decoding.words import word_spans
from dragoman.doctor.first_pass import pair_problems
from dragoman.documents import markdown, markup
from dragoman.documents.document import DocumentInfo
from dragoman.documents.formats import format_of
from dragoman.documents.office import package
from dragoman.documents.units import AlignedText, Translations, units_of, write
from dragoman.errors import DragomanError
from dragoman.evaluation.metrics import moses_tokens, sentence_chrf
from dragoman.languages.composition import compose, composed_places, decompose
from dragoman.languages.numbers import Words
from dragoman.languages.scripts import count_classes, has_entity, has_mojibake
from dragoman.languages.sentences import sentences
from dragoman.languages.stopwords import language_scores, words_of
from dragoman.languages.words import count_word
from dragoman.pages.render import render
from dragoman.parsing.trees import tree_of
from dragoman.serving.apis.deepl_glossaries import terms_of
from dragoman.serving.refusals import MalformedError
from dragoman.serving.request_json import strict_json
from dragoman.translation import faults, segments
from dragoman.translation.keeping import cutting, dates, protected
from dragoman.translation.keeping.glossary import Glossary
from growth import LARGEST


class Nested(NamedTuple):
    """A text of any length: a token again and again, then another one as often, so that the pairs nest."""

    opening: str
    closing: str

    def text(self, size: int) -> str:
        """Return a text of about ``size`` characters."""
        n = max(1, size // (len(self.opening) + len(self.closing)))
        return self.opening * n + self.closing * n


@dataclass(frozen=True)
class Parser:
    """A function that takes a text apart."""

    name: str
    call: Callable[[str], Any]
    tokens: str  # with bars between them
    modules: tuple[str, ...] = ()  # files whose patterns give further texts
    largest: int = LARGEST  # largest text in characters


_PROSE = "a|1|Aa | |\n|. |.|? |(|) |\"|'|-|,|1. |Mr. |vol. |A. |中|。|「|ä|…|\u200d|<|>|/|@|#|:|%|{|}|[|]|`|*|_|&|$|😀|a.|1,|<!--|-->|http://|<b>|</b>|1 000 |a/|a_|A-|\\"
_MARKS = "a|é|א|\u0301|\u0316|\u0338|\u0344|\u0f73|\u05bc|\u05b7|\u1100|\u1161|\u11a8|\u034f|\u200d| |क|\u093c|\u094d|ガ|\u3099"


def _quietly(call: Callable[[str], Any]) -> Callable[[str], Any]:
    """Return the function without its refusals: a text that is refused has been read too."""

    def quiet(text: str) -> Any:
        try:
            return call(text)
        except (DragomanError, MalformedError):
            return None

    return quiet


def document(suffix: str, before: str = "", after: str = "", **facts: Any) -> Callable[[str], Any]:
    """Return a function that reads a document of a format and writes it translated."""
    name = f"a{suffix}"
    info = DocumentInfo(name, "en", "de", **facts)
    chosen = format_of(name)

    def call(text: str) -> bytes:
        data = (before + text + after).encode("utf-8", "surrogatepass")
        opened = chosen.read(_archive(suffix, data) if suffix in _MEMBER else data, info)  # type: ignore[union-attr]
        texts = dict.fromkeys(unit.plain for unit in units_of(opened.parts))
        links = tuple((i, i) for i in range(4))
        made = Translations({text: AlignedText(text, links) for text in texts})
        opened.reject(made)
        return opened.save(lambda parts: write(parts, made))

    return _quietly(call)


_MEMBER = {".docx": "word/document.xml", ".pptx": "ppt/slides/a.xml", ".odt": "content.xml"}


def _archive(suffix: str, data: bytes) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        if suffix == ".pptx":
            archive.writestr("ppt/presentation.xml", "<a/>")
        archive.writestr(_MEMBER[suffix], data)
    return out.getvalue()


def _with_member(name: str, before: str, after: str) -> Callable[[str], Any]:
    """Return a function that reads a Word document with a text in another member."""

    def call(text: str) -> Any:
        out = io.BytesIO()
        with zipfile.ZipFile(out, "w") as archive:
            archive.writestr("word/document.xml", "<a/>")
            archive.writestr(name, before + text + after)
        return package.read(out.getvalue(), DocumentInfo("a.docx"))

    return _quietly(call)


_W = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
_A = "http://schemas.openxmlformats.org/drawingml/2006/main"
_OFFICE = "urn:oasis:names:tc:opendocument:xmlns"
_XLF = '<xliff version="1.2"><file source-language="en" target-language="de"><body>', "</body></file></xliff>"
_UNIT = '<trans-unit id="1"><source>', "</source></trans-unit>"
_XML = "<a>|</a>|<a/>|<a b='c'>|<!-- -->|<!--|-->|<?a?>|<?|<![CDATA[a]]>|<![CDATA[|&amp;|&#1;|&|a|1| |\n|<|>|\"|'|<a \"|<a '|<a b=\"|<a  |xmlns:a='b' | xmlns='a'"
_XLIFF = _XML + "|<g id='1'>|</g>|<x id='1'/>|<b>a</b>|<mrk>|</mrk>|" + _UNIT[0] + "a" + _UNIT[1] + "|<ph>a</ph>"
_HTML = (
    _XML
    + "|<p>|<b>|</b>|<i translate=no>|<script>|</script>|<img alt='a'>|<a alt=\"|<meta name=|<meta content=|<input value=|<br>|<pre>|<!a|alt='|alt =|class=\"|</|<p|</p>|<textarea>"
)
_MD = (
    "a|**a|*a|*|**|_|_a|`|``|``` |~~|~~a|[|]|[a](|[a](b)|[a]|![|](|](<|<http:|<a>|<b|</b>|\\|\\[|&#1;|&amp;|#| |  \n|\n|\n\n"
    '|> |- |  - |1. |    |[a]: b\n|[a]:|| a|a|b\n-|-\n|---\n|===\n|```\n|~~~\n|<!--|<p>|"|\'|(|)|!|*a* |a_|<a href="|***|[a][|[^1]|`a` |://'
)
_BLOCKS = (
    "a\n|- a\n|  - a\n|1. a\n|> a\n|# a\n|[a]: b\n|[^a]: b\n|| a |\n|| - |\n|```\n|~~~\n|:::\n|***\n|\n|    a\n|<p>\n|</p>\n|"
    "<A>\n|</A>\n|<!--\n|-->\n|{% a %}\n|: a\n|$$\n|===\n|:: a\n|import a\n|!!! a\n"
)
_FIELDS = (
    "<w:r><w:fldChar w:fldCharType='begin'/></w:r>|<w:r><w:fldChar w:fldCharType='separate'/></w:r>|<w:r><w:fldChar w:fldCharType='end'/></w:r>|"
    "<w:r><w:t>a</w:t></w:r>|<w:hyperlink w:tooltip='a'>|</w:hyperlink>|<w:r><docPr descr='a dog' title=\"b\"/></w:r>|<w:ins>|</w:ins>|"
    "<w:r><w:ruby><w:rt><w:r><w:t>a</w:t></w:r></w:rt><w:rubyBase><w:r><w:t>b</w:t></w:r></w:rubyBase></w:ruby></w:r>"
)
_WORD = "<w:p><w:r><w:t>a</w:t></w:r></w:p>|<w:p/>|<w:p>|</w:p>|<w:r><w:t>a</w:t></w:r>|<w:r><w:rPr><w:b/></w:rPr><w:t>b </w:t></w:r>|<w:t>|</w:t>|<w:hyperlink>|</w:hyperlink>|<w:tab/>|<w:br/>|<w:del>|</w:del>|<w:rPr>"
_SUBTITLE = "00:00:01,000 --> 00:00:02,000\n|00:00:01.000 --> 00:00:02.000\n|1\n|\n|a\n|a| |<i>|</i>|<|{\\an8}|{\\|00:|-->|- |.|♪|\t|(|<1:|1|&amp;|NOTE\n"
_SUBTITLE_MODULES = tuple(
    f"documents/subtitles/{name}.py" for name in ("subrip", "webvtt", "tokens", "sentences", "writing", "ass", "ttml")
)
_SCRIPT = (
    "Dialogue: 0,0:00:01.00,0:00:02.00,D,,0,0,0,,a\n|Dialogue: |Format: Text\n|Comment: |[Events]\n|[|]|a|A: | |{\\i1}|{\\i0}|{|}|{\\p1}|{\\p0}"
    "|{\\k1}|{\\c&H1&}|{\\pos(1,1)}|\\N|\\n|\\h|\\|,|;|- |.|\n"
)
_TIMED_TEXT = (
    _XML
    + "|<p>|<p begin='1s' end='2s'>|</p>|<br/>|<span>|<span begin='1s'>|</span>|<span ttm:agent='a'>|<metadata>|</metadata>|<div>|</div>|</body>|A: |- "
)
_PO = 'msgid "a"\nmsgstr ""\n|msgid ""\n|"a"\n|"|\\"|\\|\\n|#, fuzzy\n|# a\n|#|\n| |msgctxt "a"\n|msgid_plural "b"\n|msgstr[0] ""\n|msgstr[1] ""\n|msgid |msgstr |a|\t|msgstr "b"\n|\\n" "|%s'
_TABLE = 'a|,|;|\t|"|""|"a"|\n|\r\n|\r| |"a",|a\n|"\n"|,a\n|\'\'|a,'
_TREE = "(A a)|(A |(|)| |a|()|(A (B|b))|(TOP |\n"


def _bars(tokens: str) -> list[str]:
    """Return the tokens of a string of the table."""
    return [token for token in tokens.split("|") if token]


def _tmx(text: str) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "a.tmx"
        head = '<tmx><header srclang="en"/><body><tu><tuv xml:lang="en"><seg>'
        path.write_text(head + text + "</seg></tuv></tu></body></tmx>", encoding="utf-8")
        list(read_tmx(path, ("en", "de")))


def _request_json(text: str) -> None:
    distinct = "".join(f'"{number:x}":1,' for number in range(len(text) // 10))
    for body in (
        text,
        "{" + text.rstrip(",") + "}",
        "[" + text.rstrip(",") + "]",
        "{" + distinct + text + '"z":1,"z":1}',
    ):
        with suppress(MalformedError):
            strict_json(body.encode("utf-8", "surrogatepass"))


def _times(text: str) -> None:
    times = dates.times_of(text, None)
    dates.same_times(times, times[::-1])


def _missing(text: str) -> Any:
    spans = protected.find(text)
    return protected.missing(spans, text[::-1], text, "de"), protected.missing(spans, "", text, None)


def _cut(text: str) -> Any:
    bare, cuts = cutting.without(text, protected.find(text))
    links = tuple((i, i) for i in range(8))
    return cutting.put_back(bare, cuts, bare, links, (False, False))


def _split(text: str) -> Any:
    return segments.split_text(text, 200, lambda texts: list(map(len, texts)))


def _table_of(source: str) -> Callable[[str], Any]:
    return document(".csv", source, columns=("a",))


LIMIT_OF_A_SEGMENT = 8_192
"""A segment has at most as many subwords as its model takes (1,024), of some 8 characters each."""

PARSERS = [
    Parser(".txt", document(".txt"), _PROSE),
    Parser(".md", document(".md"), _MD, ("documents/markdown/__init__.py",), markdown.MOST_MARKS - 200),
    Parser(".mdx", document(".mdx"), _MD, (), markdown.MOST_MARKS - 200),
    Parser(".md, blocks", document(".md"), _BLOCKS),
    Parser(".mdx, blocks", document(".mdx"), _BLOCKS),
    Parser(".markdown", document(".markdown", "---\n"), "---\n|...\n|a\n| |\n|-", (), markdown.MOST_MARKS - 200),
    Parser(".html", document(".html"), _HTML, ("documents/web.py", "documents/markup.py")),
    Parser(".htm", document(".htm", "<meta "), "charset=|<meta |<?xml |encoding=\"|a| |>"),
    Parser(".xhtml", document(".xhtml", "<p>"), "<b>|</b>|a "),
    Parser(".srt", document(".srt"), _SUBTITLE, _SUBTITLE_MODULES),
    Parser(".srt, in a cue", document(".srt", "1\n00:00:01,000 --> 00:00:02,000\n"), _SUBTITLE),
    Parser(".vtt", document(".vtt", "WEBVTT\n\n00:01.000 --> 00:02.000\n"), _SUBTITLE),
    Parser(".vtt, blocks", document(".vtt", "WEBVTT\n"), _SUBTITLE + "|&amp;|&a|<v A>|<c>|</c>|<rt>|<00:01.000>|a: |[a] |- "),
    Parser(".sbv", document(".sbv", "0:00:01.000,0:00:02.000\n"), _SUBTITLE + "|0:00:01.000,0:00:02.000\n|[br]|[a] |A: "),
    Parser(".ass", document(".ass", "[Events]\n"), _SCRIPT),
    Parser(".ass, in an event", document(".ass", "[Events]\nDialogue: 0,0:00:01.00,0:00:02.00,D,,0,0,0,,"), _SCRIPT),
    Parser(".ssa", document(".ssa", "[Events]\nDialogue: Marked=0,0:00:01.00,0:00:02.00,D,,0,0,0,,{"), _SCRIPT),
    Parser(".dfxp", document(".dfxp", "<tt><body><div>", "</div></body></tt>"), _TIMED_TEXT),
    Parser(".ttml", document(".ttml", "<tt xmlns='http://www.w3.org/ns/ttml'><body>", "</body></tt>"), _TIMED_TEXT),
    Parser(".ttml, in a paragraph", document(".ttml", "<tt><body><p begin='1s' end='2s'>", "</p></body></tt>"), _TIMED_TEXT),
    Parser(".csv", document(".csv", "a\n"), _TABLE, ("documents/table.py",)),
    Parser(".csv, of columns", document(".csv", "a,b;c\n", columns=("a",)), _TABLE),
    Parser(".csv, first line", document(".csv"), _TABLE),
    Parser(".tsv", document(".tsv", "a\n"), _TABLE),
    Parser(".po", document(".po"), _PO, ("documents/gettext/",)),
    Parser(".po, in a text", document(".po", 'msgid "', '"\nmsgstr ""\n'), _PO),
    Parser(".pot", document(".pot", "charset="), "a|-|charset=|\n#"),
    Parser(".xlf", document(".xlf", *_XLF), _XLIFF, ("documents/xml.py", "documents/xliff.py")),
    Parser(".xlf, in a source", document(".xlf", _XLF[0] + _UNIT[0], _UNIT[1] + _XLF[1]), _XLIFF),
    Parser(".xlf, lines and messages", document(".xlf", _XLF[0] + _UNIT[0].replace("<source>", "<source xml:space='preserve'>"), _UNIT[1] + _XLF[1]),
           "{n, plural, |one {|other {a}|}|#|'|''|{x}|\n|   |<g id='1'>|</g>|<sm id='1' translate='no'/>|<em startRef='1'/>|<bpt id='1'>a</bpt>|<ept id='1'/>|"
           "<mrk mtype='protected'>|<mrk mtype='seg'>|</mrk>|<ph><sub>", ("documents/icu.py", "documents/xliff_content.py")),
    Parser(".xlf, before the root", document(".xlf", "", _XLF[0] + _XLF[1]), "<!---->|<?a?>| |\n|<!--|-->|<!DOCTYPE|<?"),
    Parser(".xliff", document(".xliff", '<xliff version="2.0"><file><unit>', "</unit></file></xliff>"),
           "<segment><source>a</source></segment>|<segment><source>a</source><target state='new'></target></segment>|<ignorable/>|<unit>|</unit>"),
    Parser(".docx", document(".docx", f'<w:document xmlns:w="{_W}"><w:body>', "</w:body></w:document>"), _WORD, ("documents/office/paragraphs.py",)),
    Parser(".docx, in a paragraph", document(".docx", f'<w:document xmlns:w="{_W}"><w:p>', "</w:p></w:document>"), _WORD),
    Parser(".docx, fields and descriptions", document(".docx", f'<w:document xmlns:w="{_W}"><w:p>', "</w:p></w:document>"), _FIELDS),
    Parser(".docx, its properties", _with_member("docProps/core.xml", "<a>", "</a>"), "<title>|</title>|a|<b>|</b>", ("documents/office/parts.py",)),
    Parser(".pptx", document(".pptx", f'<a:sld xmlns:a="{_A}"><a:p>', "</a:p></a:sld>"),
           "<a:r><a:t>a</a:t></a:r>|<a:br/>|<a:r><a:rPr lang='en'/><a:t>b</a:t></a:r>|<a:p>|</a:p>|<a:fld>|</a:fld>"),
    Parser(".odt", document(".odt", f'<office:a xmlns:office="{_OFFICE}:office:1.0" xmlns:text="{_OFFICE}:text:1.0"><text:p>', "</text:p></office:a>"),
           "a|<text:span>|</text:span>|<text:s/>|<text:tab/>|<text:note>|</text:note>|<text:p>|</text:p>|<text:line-break/>|<text:a>|</text:a>"),
    Parser("markup, html", lambda text: write(markup.parse(text, "html", attributes=True), Translations({})), _HTML, ("documents/markup.py",)),
    Parser("markup, html with templates", lambda text: write(markup.parse(text, "html", attributes=True), Translations({})),
           "a|{{|}}|{{ a }}|{%|%}|{% if %}|{#|#}|{{!--|--}}|{{/*|*/}}|<%|%>|<?php|?>|${|}|@if (a) {|{#if a}|<a b='{{|<a {%|\n| |<b>|</b>|'|\"",
           ("documents/html/templates.py", "documents/html/tokens.py", "documents/html/spelling.py")),
    Parser("markup, xml", lambda text: write(markup.parse(text, "xml", ignored=("a",), splitting=("g",)), Translations({})), _HTML + "|<g>|</g>"),
    Parser("sentences, en", lambda text: sentences(text, "en"), _PROSE, ("languages/sentences.py",)),
    Parser("sentences, de", lambda text: sentences(text, "de"), _PROSE + "|am 1. |z.B. |der 1. |dein", ("languages/de.py",)),
    Parser("sentences, zh", lambda text: sentences(text, "zh"), _PROSE),
    Parser("sentences, ja", lambda text: sentences(text, "ja"), _PROSE + "|」|と"),
    Parser("split_text", _split, _PROSE, ("translation/segments.py",)),
    Parser("protected spans", protected.find, _PROSE, ("translation/keeping/protected.py",)),
    Parser("not_text", protected.not_text, _PROSE + "|import |if (|return |a = |a->|a::|def a(|function |;|class |from |=|const a"),
    Parser("missing spans", _missing, _PROSE + "|1 |12.5 |3:30 |20 million |1990s |1.2.2024 "),
    Parser("cut and put back", _cut, _PROSE + "|1-a |21-year-old |mid-1990s |1\"|(<b>| 1 |a1 ", ("translation/keeping/cutting.py",), LIMIT_OF_A_SEGMENT),
    Parser("glossary", Glossary([("a", "b"), ("a a", "c"), ("1. a", None), ("中", "x")]).find, _PROSE),
    Parser("faults", lambda text: faults.faults("a b c", text, faults.Sizes(1, 1), "en", "de"), _PROSE + "|a b |ab|A B, ", ("translation/faults.py",), LIMIT_OF_A_SEGMENT),
    Parser("faults of a source", lambda text: faults.faults(text, text, faults.Sizes(1, 1), "en", "de"), _PROSE + "|a b |ab|A B, ", (), LIMIT_OF_A_SEGMENT),
    Parser("without_loops", lambda text: faults.without_loops("a", text), _PROSE + "|a b |ab|a a a a |b b b b |c d e |f f f f f ", (), LIMIT_OF_A_SEGMENT),
    Parser("neighbours", faults.neighbours, _PROSE),
    Parser("language_scores", language_scores, _PROSE + "|the |und |の", ("languages/stopwords.py",)),
    Parser("number words", lambda text: (Words(text, "de").take(21), Words(text, "zh").take(21)), _PROSE + "|ein|und|zwei|hundert|二|十|twenty|-", ("languages/numbers.py",)),
    Parser("times of day", _times, _PROSE + "|halb vier |half past 3 |3:30 |10.30 Uhr |三点半|at half two |à 3 h et |quarter to |пол"),
    Parser("scripts", lambda text: (count_classes([text]), has_mojibake(text), has_entity(text)), _PROSE + "|Ã|¶|&#|&#x|&a;", ("languages/scripts.py",)),
    Parser("count_word", lambda text: count_word(text, "a a"), _PROSE),
    Parser("word_spans", word_spans, _PROSE),
    Parser("odd_share", odd_share, _PROSE),
    Parser("compose", compose, _MARKS),
    Parser("decompose", decompose, _MARKS),
    Parser("composed_places", composed_places, _MARKS),
    Parser("doctor, a pair", lambda text: pair_problems((text, text[:-1]), words_of(text), words_of(text[:-1]), True), _PROSE),
    Parser("tmx", _quietly(_tmx), "<hi>|</hi>|a|<hi>a|<ph>a</ph>|<bpt>|</bpt>|&amp;| |\n|<hi/>"),
    Parser("entries of a glossary, tsv", _quietly(lambda text: terms_of(text, "tsv")), "a\tb\n|a|\t|\n| |\r\n|\""),
    Parser("entries of a glossary, csv", _quietly(lambda text: terms_of(text, "csv")), "a,b\n|a|,|\n| |\"|\"\"|\"a\",b\n"),
    Parser("json of a request", _quietly(_request_json), '"a":1,|"b":1,|"a":|{"a":1},|[|]|{|}|"|,|1|1,|\\u0061|\\|a| |-1e5,|"c":{"d":1},'),
    Parser("tree", _quietly(tree_of), _TREE, ("parsing/trees.py",)),
    Parser("metrics", lambda text: (sentence_chrf([text], [text[::-1]]), moses_tokens([text], "en")), _PROSE, (), LIMIT_OF_A_SEGMENT),
    Parser("page", lambda text: render("table.html", text=text, columns=[], rows=[]), _PROSE, ("pages/render.py",)),
]  # fmt: skip


def texts_for(parser: Parser) -> list[Recipe | Nested]:
    """Return the recipes of adversarial texts for a parser, each once, the simplest first."""
    tokens = list(dict.fromkeys(_bars(parser.tokens)))
    pairs = [pair for pair in product(tokens, repeat=2) if pair[0] != pair[1]]
    made: list[Recipe | Nested] = [Recipe("", token, "") for token in tokens]
    made += [Recipe("", token, tail) for token in tokens for tail in ("x", "\x00")]
    for head, token in pairs:
        made += [Recipe(head, token, ""), Recipe("", head + token, ""), Nested(head, token)]
    for entry in patterns.registered():
        if entry.where.startswith(parser.modules or ("-",)) and isinstance(entry.pattern, str):
            own = recipes(entry.pattern, entry.flags)
            made += own[:: max(1, len(own) // 40)]
    return list(dict.fromkeys(made))
