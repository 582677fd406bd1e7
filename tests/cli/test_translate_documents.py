"""``dragoman translate`` with documents."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import dragoman
from dragoman.documents.translate import translate_document
from dragoman.errors import ConfigError, DataError
from dragoman.translation.translator import Translator


@pytest.fixture(scope="module")
def translator(tiny_run: Path) -> Translator:
    """The run as Python has it."""
    return Translator.load(tiny_run)


PAGE = "<title>the dog</title>\n<p>a <b>red</b> cat sees the tree</p><p>the dog</p>\n<p>42</p>\n"


def test_a_document_becomes_a_document(command: Any, tiny_run: Path, tmp_path: Path, translator: Translator) -> None:
    source, out = tmp_path / "a.html", tmp_path / "b.html"
    source.write_text(PAGE)
    done = command("translate", tiny_run, source, "--out", out)
    assert done.status == 0
    assert done.out == b""
    assert "3 of 3 segments translated" in done.err
    found = {text: translator.translate(text).text for text in ("the dog", "a red cat sees the tree")}
    written = out.read_text()
    assert written.startswith(f"<title>{found['the dog']}</title>\n<p>")
    assert written.endswith(f"</p><p>{found['the dog']}</p>\n<p>42</p>\n")
    assert written.replace("<b>", "").replace("</b>", "").split("<p>")[1] == found["a red cat sees the tree"] + "</p>"


def test_the_same_sentence_has_the_same_translation_in_every_format(tmp_path: Path, translator: Translator) -> None:
    sentence = "the red cat sees the big tree"
    (tmp_path / "in" / "deeper").mkdir(parents=True)
    files = {
        "a.txt": sentence, "a.md": f"# {sentence}\n", "a.html": "<p>the <i>red</i> cat sees the big tree</p>",
        "a.srt": "1\n00:00:01,000 --> 00:00:02,000\nthe red cat\n\n"
        "2\n00:00:02,000 --> 00:00:03,000\nsees the big tree\n",
        "deeper/a.po": f'msgid "{sentence}"\nmsgstr ""\n', "picture.png": "no document",
    }  # fmt: skip
    for name, content in files.items():
        (tmp_path / "in" / name).write_text(content)
    report = translate_document(translator, tmp_path / "in", tmp_path / "out")
    assert (report.found, report.translated) == (5, 5)
    expected = translator.translate(sentence).text
    out = tmp_path / "out"
    assert (out / "a.txt").read_text() == expected
    assert (out / "a.md").read_text() == f"# {expected}\n"
    assert (out / "a.html").read_text().replace("<i>", "").replace("</i>", "") == f"<p>{expected}</p>"
    shown = [line for line in (out / "a.srt").read_text().split("\n") if line.replace(" ", "").isalpha()]
    assert " ".join(shown) == expected
    assert f'msgstr "{expected}"' in (out / "deeper" / "a.po").read_text()
    assert not (out / "picture.png").exists()


def test_columns(command: Any, tiny_run: Path, tmp_path: Path, translator: Translator) -> None:
    (tmp_path / "a.csv").write_text("id,text\n7,the dog\n")
    done = command("translate", tiny_run, tmp_path / "a.csv", "--column", "text", "--out", tmp_path / "b.csv")
    assert done.status == 0
    assert (tmp_path / "b.csv").read_text() == f"id,text\n7,{translator.translate('the dog').text}\n"


def test_what_was_left_is_named(command: Any, tiny_run: Path, tmp_path: Path) -> None:
    (tmp_path / "a.po").write_text('msgid "the dog"\nmsgstr "der hund"\n')
    done = command("translate", tiny_run, tmp_path / "a.po", "--out", tmp_path / "b.po")
    assert "not translated (translated already): the dog" in done.err
    assert "0 of 1 segments translated; 1 left: translated already" in done.err


@pytest.mark.parametrize(
    ("name", "args", "said"),
    [
        ("a.html", [], "give --out FILE"),
        ("a.html", ["--out", "b.txt"], "must end in .html"),
        ("a.html", ["--out", "a.html"], "a.html"),
        ("a.html", ["--out", "b.html", "--json"], "lines of text"),
        ("a.txt", ["--column", "text"], "--column names a column"),
        ("a.docx", ["--out", "b.docx"], "not a .docx file"),
        ("empty", ["--out", "b"], "no document in it"),
    ],
)
def test_refusals(command: Any, tiny_run: Path, tmp_path: Path, name: str, args: list[str], said: str) -> None:
    if name == "empty":
        (tmp_path / name).mkdir()
    else:
        (tmp_path / name).write_text("the dog")
    before = sorted(tmp_path.iterdir())
    args = [str(tmp_path / each) if each[0] != "-" and args[i - 1] == "--out" else each for i, each in enumerate(args)]
    done = command("translate", tiny_run, tmp_path / name, *args)
    assert done.status == 2
    assert said in done.error
    assert sorted(tmp_path.iterdir()) == before


def test_a_folder_is_refused_before_it_is_translated(tmp_path: Path, translator: Translator) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.txt").write_text("the dog")
    (tmp_path / "in" / "b.docx").write_text("no zip")
    with pytest.raises(DataError, match=r"b\.docx"):
        translate_document(translator, tmp_path / "in", tmp_path / "out")
    assert not (tmp_path / "out").exists()
    with pytest.raises(DataError, match="lies in the folder"):
        translate_document(translator, tmp_path / "in", tmp_path / "in" / "out")


def test_options_are_those_of_translating(tmp_path: Path, translator: Translator) -> None:
    (tmp_path / "a.txt").write_text("the dog")
    dragoman.translate_document(translator, tmp_path / "a.txt", tmp_path / "b.txt", glossary={"dog": "baum"})
    assert "baum" in (tmp_path / "b.txt").read_text().split()
    with pytest.raises(ConfigError, match="beam_size"):
        dragoman.translate_document(translator, tmp_path / "a.txt", tmp_path / "b.txt", beam_siz=3)


def test_what_is_neither_text_nor_a_known_document_is_refused(command: Any, tiny_run: Path, tmp_path: Path) -> None:
    (tmp_path / "a.PDF").write_bytes(b"%PDF-1.4\n")
    for more in ((), ("--out", tmp_path / "b.pdf")):
        done = command("translate", tiny_run, tmp_path / "a.PDF", *more)
        assert done.status == 2
        assert "a.PDF: .PDF is neither text nor a supported document: convert it to text or" in done.error
    assert not (tmp_path / "b.pdf").exists()


def test_no_format_declares_a_suffix_that_is_refused() -> None:
    from dragoman.documents.formats import UNSUPPORTED_SUFFIXES, supported_suffixes

    assert set(UNSUPPORTED_SUFFIXES).isdisjoint(supported_suffixes())
