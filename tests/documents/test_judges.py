"""The judges of real documents: what they once took for a loss, and what stays one."""

from __future__ import annotations

import io
import zipfile

import pytest

from benchmarks.real_documents.gettext import gettext_faults
from benchmarks.real_documents.judging import compare
from benchmarks.real_documents.markdown import markdown
from benchmarks.real_documents.office import office, office_faults
from benchmarks.real_documents.pages import html

IMPORT = "import {A} from './a'\n\n"
EXPRESSION = "{\n  (function () {\n    const a = [1].map((b) => b)\n    return (\n      <b>%s</b>\n    )\n  })()\n}\n"


def faults_of(
    source: str, result: str, suffix: str = ".md", mode: str = "letters", named: tuple[str, ...] = ()
) -> list[str]:
    """Return the kinds of faults that a judge finds."""
    read = {".md": markdown, ".html": html}[suffix]
    return [fault.kind for fault in compare(read(source.encode()), read(result.encode()), mode, named)]


@pytest.mark.parametrize(
    ("source", "result", "named", "kinds"),
    [
        (EXPRESSION % "{a}", EXPRESSION % "{a}", (), []),
        (EXPRESSION % "A dog", EXPRESSION % "A dog", (), ["untranslated"]),
        (EXPRESSION % "A dog", EXPRESSION % "A dog", ("A dog",), []),
        (EXPRESSION % "{a}", (EXPRESSION % "{a}").replace("[1]", "[2]"), (), ["marks"]),
        ("{/*\n * A comment\n * ```js\n * x\n */}\n", "{/*\n * A comment\n * ```js\n * x\n */}\n", (), []),
        ("{/* A comment */}\n\nA dog\n", "{/* A comment */}\n\nA dog\n", (), ["untranslated"]),
        ("import    {B}   from './b'\n", "import {C} from './b'\n", (), ["marks", "marks"]),
        ("import ('./foo') dogs\n", "импорт ('./фоо') догс\n", (), []),
    ],
)
def test_code_of_mdx_is_no_text_but_the_text_of_its_elements_is(
    source: str, result: str, named: tuple[str, ...], kinds: list[str]
) -> None:
    """@mdx-js/mdx reads these as mdxFlowExpression and mdxjsEsm."""
    assert faults_of(IMPORT + source, IMPORT + result, named=named) == kinds


def test_a_word_that_a_wide_full_stop_joins_to_a_link_may_move_with_it() -> None:
    source = "A client。[Open](a.md) and more\n"
    assert faults_of(source, "море анд [цлиент。Опен](a.md) А\n", mode="reversed") == []
    assert faults_of(source, "[цлиент。Опен](a.md) анд А\n", mode="reversed") == ["words lost"]


def test_a_declaration_of_angular_is_code() -> None:
    assert faults_of("@let dog = house;<p>A dog</p>", "@let dog = house;<p>А дог</p>", ".html") == []
    assert faults_of("@let dog = house;<p>A dog</p>", "@let cat = house;<p>А дог</p>", ".html") == ["marks"]
    assert faults_of("<p>Write @let for a dog</p>", "<p>Write @let for a dog</p>", ".html") == ["untranslated"]


PROGRAMS = (  # markup that a single program reads, and what a translation once made of it
    ("[!INCLUDE [the note](a.md)]\n", "[ноте\\] тхе](a.md) \\[!ИНЦЛУДЕ\n"),
    ('> [!div class="checklist"]\n> * 1\n', '> цласс="цхецклист"] [!див\n> * 1\n'),
    ('A :::no-loc text="Dog"::: b\n', 'А :no-loc тежт="Дог"::: :: b\n'),
    ('::: zone pivot="the-dog"\n\n1\n', '::: zone пивот="тхе-дог"\n\n1\n'),
    ("1\n\n---\nlayout: two\n---\n\n2\n", "1\n\n---\nтшо лаюоут:\n---\n\n2\n"),
    ("![bg left:40%](a.png)\n", "![лефт:40% бг](a.png)\n"),
    ("@Row {\n    @Column {\n        1\n    }\n}\n", "@Row { 1\n    @Column { } }\n"),
    ("id:: 1\n\n2\n", "1 ид::\n\n2\n"),
    ("- #+BEGIN_QUOTE\n  1\n  #+END_QUOTE\n", "- #+END_QUOTE\n  1\n  Тхе\n"),
    ("++ctrl+alt+del++\n", "++цтрл+алт+дел++\n"),
    ("@tab:active 1\n2\n", "@tab:ацтиве 1\n2\n"),
    ("--- abstract\n\n1\n", "абстрацт ---\n\n1\n"),
    ("[1]{.red}\n", "\\[1]{.ред}\n"),
    (':icon{name="dog"} 1\n', ':ицон{наме="дог"} 1\n'),
    ("::card\n1\n::\n", "::цард\n1\n::\n"),
)


@pytest.mark.parametrize(("source", "damaged"), PROGRAMS)
def test_the_markup_of_a_program_is_a_mark(source: str, damaged: str) -> None:
    assert faults_of(source, source) == []
    assert faults_of(source, damaged) != []


@pytest.mark.parametrize(
    ("msgid", "msgstr", "kinds"),
    [
        ("The dog of `:cats:` or `HOUSE`.", "`HOUSE` ор `:cats:` оф дог Тхе.", []),
        (":data:`a`, :data:`b` run", ":data:`b` рун :data:`a`,", []),
        (":data:`a`, :data:`b` run", ":data:`a`:data:`b` рун", ["markup"]),
        (":data:`a`, :data:`b` run", ":data:`b` рун", ["markup"]),
    ],
)
def test_roles_of_restructuredtext_are_those_that_docutils_reads(msgid: str, msgstr: str, kinds: list[str]) -> None:
    catalogue = 'msgid ""\nmsgstr "Content-Type: text/plain; charset=UTF-8\\n"\n\nmsgid "{}"\nmsgstr "{}"\n'
    source, result = (catalogue.format(msgid, text).encode() for text in ("", msgstr))
    assert [fault.kind for fault in gettext_faults(source, result, "reversed", [], ".po")] == kinds


W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'


def packed(body: str, numbering: str = "") -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("word/document.xml", f"<w:document {W}><w:p>{body}</w:p></w:document>")
        archive.writestr("word/numbering.xml", f"<w:numbering {W}>{numbering}</w:numbering>")
    return out.getvalue()


def run_of(text: str, properties: str = "") -> str:
    return f"<w:r><w:rPr>{properties}</w:rPr><w:t>{text}</w:t></w:r>"


LOW = '<w:vertAlign w:val="subscript"/>'
LINK = '<a:hlinkClick xmlns:a="urn:a" xmlns:r="urn:r" r:id="rId2"/>'
START, END = '<w:bookmarkStart w:id="1"/>', '<w:bookmarkEnd w:id="1"/>'
CODE = "<w:r><w:instrText> {} </w:instrText></w:r>"


@pytest.mark.parametrize(
    ("source", "result", "kinds"),
    [
        (run_of("H") + run_of("2", LOW) + run_of("O"), run_of("H2O"), ["restyled"]),
        (run_of("a dog "), run_of("дог а"), []),
        (run_of("a ") + run_of("dog", "<w:b/>"), run_of("дог", "<w:b/>") + run_of(" а"), []),
        (run_of("a ") + run_of("dog", "<w:b/>"), run_of("дог ") + run_of("а", "<w:b/>"), ["restyled"]),
        (START + run_of("a") + END + run_of(" dog"), run_of("дог ") + START + run_of("а") + END, []),
        (START + run_of("a") + END + run_of(" dog"), START + run_of("дог ") + END + run_of("а"), ["range"]),
        (run_of("a ") + run_of("dog", LINK), run_of("дог", LINK) + run_of(" а"), []),
        (run_of("a ") + run_of("dog", LINK), run_of("дог а"), ["restyled"]),
        (run_of("a ") + run_of("dog", LINK), run_of("дог ") + run_of("а", LINK), ["restyled"]),
        (run_of("a ") + run_of("dog", "<w:vanish/>"), run_of("дог а"), ["restyled"]),
        (CODE.format('XE "a dog"'), CODE.format('XE "a dog"'), ["untranslated"]),
        (CODE.format("MACROBUTTON A a dog"), CODE.format("MACROBUTTON A a dog"), ["untranslated"]),
        (CODE.format('DATE "MMMM"'), CODE.format('DATE "MMMM"'), []),
    ],
)
def test_the_judge_of_office_files_sees_styles_and_ranges_and_codes(source: str, result: str, kinds: list[str]) -> None:
    faults = office_faults(packed(source), packed(result), "reversed", [], ".docm2")
    assert [fault.kind for fault in faults] == kinds


def test_the_judge_of_office_files_sees_labels_of_lists() -> None:
    pair = (packed(run_of("a"), f'<w:lvlText w:val="{label} %1"/>') for label in ("Chapter", "Chapter"))
    assert [fault.kind for fault in office_faults(*pair, "letters", [], ".docm2")] == ["untranslated"]


@pytest.mark.parametrize(
    ("result", "kinds"),
    [
        (run_of("дог цат ", LINK) + run_of("а"), []),
        (run_of("дог ", LINK) + run_of("а"), ["words lost"]),
        (run_of("а"), ["emptied"]),
    ],
)
def test_the_judge_of_office_files_counts_links_of_slides(result: str, kinds: list[str]) -> None:
    source = office(packed(run_of("a ") + run_of("dog ", LINK) + run_of("cat", LINK)))
    assert [fault.kind for fault in compare(source, office(packed(result)), "reversed", [])] == kinds
