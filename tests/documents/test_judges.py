"""The judges of real documents: what they once took for a loss, and what stays one."""

from __future__ import annotations

import pytest

from benchmarks.real_documents.gettext import gettext_faults
from benchmarks.real_documents.judging import compare
from benchmarks.real_documents.markdown import markdown
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
