"""A glossary reads the same everywhere: file, text, page, API; and it says how many terms were read and found."""

from __future__ import annotations

import json
import logging
import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dragoman.errors import DataError
from dragoman.translation.keeping.glossary import Glossary, Match
from dragoman.translation.translator import Translator

Command = Callable[..., Any]
LINES = b"the dog sees a cat\n\nthe red house\n"

FORMS = {
    "dog\tHund": ("dog", "Hund"), "dog = Hund": ("dog", "Hund"), "dog=Hund": ("dog", "Hund"),
    "dog -> Hund": ("dog", "Hund"), "dog->Hund": ("dog", "Hund"), "dog => Hund": ("dog", "Hund"),
    "  dog  =  der Hund \r": ("dog", "der Hund"), "GPU": ("GPU", None), "#news": ("#news", None),
    "E=mc2 = E=mc2": ("E=mc2", "E=mc2"), "a = b\tc -> d": ("a = b", "c -> d"), "x <= y": ("x <= y", None),
    "小狗 = puppy": ("小狗", "puppy"), "हिन्दी -> Hindi": ("हिन्दी", "Hindi"), "سلام = hello": ("سلام", "hello"),
}  # fmt: skip


@pytest.mark.parametrize("line", FORMS)
def test_a_line_reads_the_same_in_a_file_and_in_a_text(line: str, tmp_path: Path) -> None:
    path = tmp_path / "terms"
    path.write_text(f"# animals\n\n{line}\n", encoding="utf-8")
    expected = repr(Glossary([FORMS[line]]))
    assert repr(Glossary.load(path)) == repr(Glossary.parse(f"# animals\n\n{line}")) == expected
    assert repr(Glossary.of(str(path))) == repr(Glossary.of(f"# x\n{line}\n")) == expected


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("house;Häuschen\nbig; riesig", "glossary:1: 'house;Häuschen' has no sign between its terms: write 'source ="),
        ("house,Häuschen", "glossary:1: 'house,Häuschen' has no sign"),
        ("a = b = c", "glossary:1: 3 parts between signs"),
        ("a\tb\n\na ->", "glossary:3: a sign but no target term"),
        ("= b", "glossary:1: a term is blank"),
        ("dog = Hund\ndog -> Köter", "glossary:2: 'dog' is translated as 'Köter' here and as 'Hund' above"),
        ("cafe\u0301 = x\ncaf\u00e9 = y", "glossary:2: 'café' is translated as 'y' here and as 'x' above"),
    ],
)
def test_a_line_that_is_no_entry_or_contradicts_another_is_named(text: str, why: str) -> None:
    with pytest.raises(DataError) as refused:
        Glossary.parse(text)
    assert str(refused.value).startswith(why)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("terms.csv", "house;Haus\r\nAcme, Inc.;Acme\r\nGPU;\r\n"),
        ("Terms.CSV", '\ufeffEnglish,German\nhouse,Haus\n"Acme, Inc.","Acme"\n\n# a comment, too\nGPU\n'),
        ("terms.tsv", "English\tGerman\nhouse\tHaus\nAcme, Inc.\tAcme\nGPU\n"),
        ("terms.txt", "Source = Target\nhouse = Haus\nAcme, Inc. -> Acme\nGPU\n"),
    ],
)
def test_the_file_of_a_spreadsheet_is_read_with_its_headings(name: str, text: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8", newline="")
    expected = Glossary([("house", "Haus"), ("Acme, Inc.", "Acme"), ("GPU", None)])
    assert repr(Glossary.load(tmp_path / name)) == repr(expected)


@pytest.mark.parametrize("heading", ["it\tes", "MT\tTA", "en\tde"])
def test_a_heading_of_a_file_is_named_in_the_log(
    heading: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "terms.tsv").write_text(f"{heading}\nhouse\tHaus\n")
    with caplog.at_level(logging.INFO, "dragoman"):
        assert len(Glossary.load(tmp_path / "terms.tsv")) == 1
    source, target = heading.split("\t")
    assert f"terms.tsv:1: {source!r} and {target!r} are read as headings" in caplog.text
    caplog.clear()
    with caplog.at_level(logging.INFO, "dragoman"):
        assert len(Glossary.parse(f"house\tHaus\n{heading}")) == 2
    assert caplog.text == ""


def test_terms_alone_may_have_commas(tmp_path: Path) -> None:
    assert len(Glossary.parse("Acme, Inc.\nX; Y\nGPU")) == 3
    assert len(Glossary.parse("1,000")) == 1
    (tmp_path / "x.csv").write_text("a,b,c\n")
    with pytest.raises(DataError, match=r"x\.csv:1: 3 columns, but a glossary line must be"):
        Glossary.load(tmp_path / "x.csv")


@pytest.mark.parametrize("form", ["NFC", "NFD"])
@pytest.mark.parametrize("other", ["NFC", "NFD"])
@pytest.mark.parametrize("term", ["café", "Ångström", "각", "ガラス", "ড়", "ṩ"])
def test_composed_and_decomposed_characters_meet(term: str, form: Any, other: Any) -> None:
    term, text = unicodedata.normalize(form, term), unicodedata.normalize(other, f"é {term}, é {term}!")
    source = unicodedata.normalize(other, term)
    found = Glossary([(term, "x")]).find(text)
    assert found == [Match(source, "x", text.index(source)), Match(source, "x", text.rindex(source))]
    assert Glossary([(term, None)]).find(text)[0].target == source  # copied as it stands there
    assert Glossary([("cafe", "x")]).find(unicodedata.normalize("NFD", "café")) == []


def test_the_terms_of_a_text_are_named_in_its_translation(tiny_run: Path) -> None:
    terms = Glossary([("dog", "wauwau"), ("tree", "baum"), ("zebra", None)])
    found = Translator.load(tiny_run, "cpu").translate(["Dog, dog and tree", "", "a cat"], glossary=terms, guard=False)
    assert [translation.terms for translation in found] == [("dog", "tree"), (), ()]
    assert Translator.load(tiny_run, "cpu").translate("the dog").terms == ()


def test_the_command_line_says_how_many_terms_were_read_and_found(
    command: Command, tiny_run: Path, tmp_path: Path
) -> None:
    (tmp_path / "terms").write_text("# animals\ndog -> wauwau\ncat = miau\n\nzebra\n", encoding="utf-8")
    (tmp_path / "lines").write_bytes(LINES)
    expected = "glossary: 3 terms read, 2 found in the text"
    texts = []
    for terms in ("terms", "dog\twauwau\ncat -> miau\nzebra"):
        done = command("translate", tiny_run, "--glossary", terms, stdin=LINES, cwd=tmp_path)
        assert expected in done.err
        texts.append(done.out)
    assert texts[0] == texts[1]
    done = command("translate", tiny_run, "lines", "--out", "out", "--glossary", "terms", "--json", cwd=tmp_path)
    assert expected in done.err
    assert json.loads((tmp_path / "out").read_text(encoding="utf-8").split("\n")[0])["terms"] == ["dog", "cat"]
    (tmp_path / "page.html").write_bytes(b"<p>the dog</p>")
    done = command("translate", tiny_run, "page.html", "--out", "p.html", "--glossary", "terms", cwd=tmp_path)
    assert "glossary: 3 terms read, 1 found in the text" in done.err
