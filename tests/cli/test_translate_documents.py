"""``dragoman translate`` with documents."""

from __future__ import annotations

import errno
import os
import threading
from pathlib import Path
from typing import Any

import pytest

import dragoman
from dragoman.data.text_names import is_plain_text
from dragoman.documents.translate import translate_document
from dragoman.errors import ConfigError, DataError, DragomanError
from dragoman.translation.translator import Translator
from failing import fail_long_lines
from limits import LONG_S


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


def test_a_text_that_runs_out_of_memory_is_no_success(
    command: Any, tiny_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Row X4; the status was 0."""
    fail_long_lines(monkeypatch)
    lost = " ".join(["the dog sees a cat"] * 4)
    (tmp_path / "a.md").write_text(f"the dog\n\n{lost}\n", encoding="utf-8")
    done = command("translate", tiny_run, "a.md", "--out", "b.md", cwd=tmp_path)
    assert done.status == 2
    assert done.error.startswith("error: b.md: 1 texts ran out of memory and are not translated; free some memory")
    assert f"not translated (out of memory): {lost}" in done.err
    assert "1 of 2 segments translated; 1 left: out of memory" in done.err
    assert (tmp_path / "b.md").read_text(encoding="utf-8").endswith(f"\n\n{lost}\n")


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


def test_documents_whose_translations_would_be_one_file_are_refused_first(
    tmp_path: Path, translator: Translator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last of them replaced the others on macOS."""
    (tmp_path / "in").mkdir()
    for name in ("Read.md", "READ.md", "other.md"):
        (tmp_path / "in" / name).write_text("the dog")
    with monkeypatch.context() as patch:
        patch.setattr("dragoman.files.taken_for_one", tuple)
        with pytest.raises(ConfigError, match=r"out/READ\.md, .*out/Read\.md: must be two files"):
            translate_document(translator, tmp_path / "in", tmp_path / "out")
    assert [path.name for path in tmp_path.iterdir()] == ["in"]
    translate_document(translator, tmp_path / "in", tmp_path / "out")
    assert len([*(tmp_path / "out").iterdir()]) == 3


@pytest.mark.parametrize("way", ["the folder above", "a link"])
def test_a_translation_that_would_replace_a_document_to_read_is_refused(
    tmp_path: Path, translator: Translator, way: str
) -> None:
    """The first was written before the second was read, and that was one and the same file."""
    inner = tmp_path / "in" / "in"
    inner.mkdir(parents=True)
    (inner / "a.md").write_text("the cat")
    (tmp_path / "in" / "a.md").write_text("the dog")
    out = tmp_path if way == "the folder above" else tmp_path / "out"
    if way == "a link":
        out.mkdir()
        (out / "in").symlink_to(inner)
    with pytest.raises(DataError, match=r"a\.md: lies in the folder that is read"):
        translate_document(translator, tmp_path / "in", out)
    assert [(tmp_path / name).read_text() for name in ("in/a.md", "in/in/a.md")] == ["the dog", "the cat"]


def test_a_document_goes_where_its_name_leads(tmp_path: Path, translator: Translator) -> None:
    """A pipe and a link were replaced by a file."""
    source, pipe, real = tmp_path / "a.md", tmp_path / "pipe.md", tmp_path / "real.md"
    source.write_text("the dog")
    os.mkfifo(pipe)
    read: list[bytes] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_bytes()), daemon=True)
    reader.start()
    translate_document(translator, source, pipe)
    reader.join(LONG_S)
    real.write_text("old")
    (tmp_path / "link.md").symlink_to(real)
    translate_document(translator, source, tmp_path / "link.md")
    assert [*read, real.read_bytes()] == [translator.translate("the dog").text.encode()] * 2
    assert pipe.is_fifo()


@pytest.mark.parametrize("name", ["folder.md", "a.md/b.md", "terms.md"])
def test_where_a_document_cannot_go_is_said_before_it_is_translated(
    tmp_path: Path, translator: Translator, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    (tmp_path / "a.md").write_text("the dog")
    (tmp_path / "folder.md").mkdir()
    (tmp_path / "terms.md").write_text("dog\tbaum\n")
    monkeypatch.setattr(translator, "translate_planned", lambda *_: pytest.fail("translated"))
    with pytest.raises(ConfigError, match=r"cannot be written|is the input"):
        translate_document(translator, tmp_path / "a.md", tmp_path / name, glossary=tmp_path / "terms.md")
    assert (tmp_path / "terms.md").read_text() == "dog\tbaum\n"


def test_a_folder_that_cannot_be_read_and_what_is_no_file_are_named(
    tmp_path: Path, translator: Translator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They were left out without a word."""
    source = tmp_path / "in"
    (source / "closed").mkdir(parents=True)
    (source / "a.md").write_text("the dog")
    os.mkfifo(source / "b.md")
    assert translate_document(translator, source, tmp_path / "out").skipped == {".md": 1}
    scan = os.scandir

    def refuse(path: Any) -> Any:
        if Path(path).name == "closed":
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return scan(path)

    monkeypatch.setattr(os, "scandir", refuse)
    with pytest.raises(DragomanError, match=r"in/closed: cannot be read \(Permission denied\); check its permissions"):
        translate_document(translator, source, tmp_path / "out2")
    assert not (tmp_path / "out2").exists()


def test_options_are_those_of_translating(tmp_path: Path, translator: Translator) -> None:
    (tmp_path / "a.txt").write_text("the dog")
    dragoman.translate_document(translator, tmp_path / "a.txt", tmp_path / "b.txt", glossary={"dog": "baum"})
    assert "baum" in (tmp_path / "b.txt").read_text().split()
    with pytest.raises(ConfigError, match="beam_size"):
        dragoman.translate_document(translator, tmp_path / "a.txt", tmp_path / "b.txt", beam_siz=3)


def test_what_is_neither_text_nor_a_known_document_is_refused(command: Any, tiny_run: Path, tmp_path: Path) -> None:
    for name, advice in (
        ("a.PDF", "convert it to .docx"), ("a.json", "convert it to .po or .xliff"), ("a.rst", "convert it to .md"),
        ("a.png", "supported are .txt"), ("a.xlsx.gz", "supported are .txt"), ("a.1", "supported are .txt"),
    ):  # fmt: skip
        (tmp_path / name).write_bytes(b"%PDF-1.4\n")
        for more in ((), ("--out", tmp_path / f"b{name[1:]}")):
            done = command("translate", tiny_run, tmp_path / name, *more)
            assert done.status == 2
            assert f"{name}: {Path(name).suffix} is neither plain text nor a supported document: {advice}" in done.error
            assert done.error.endswith("; --as lines translates it line by line")
        assert not (tmp_path / f"b{name[1:]}").exists()
    (tmp_path / "a.html.gz").write_bytes(b"")
    done = command("translate", tiny_run, tmp_path / "a.html.gz", "--out", tmp_path / "b.html.gz")
    assert done.error.endswith("a.html.gz: a document must be unpacked first; --as lines translates it line by line")


def test_as_lines_a_file_of_any_suffix_is_plain_text(
    command: Any, tiny_run: Path, tmp_path: Path, translator: Translator
) -> None:
    expected = f"{translator.translate('the dog').text}\n".encode()
    for name in ("a.strange", "a.html", "a.docx"):
        (tmp_path / name).write_text("the dog\n")
        done = command("translate", tiny_run, tmp_path / name, "--as", "lines", "--out", tmp_path / "b")
        assert (done.status, (tmp_path / "b").read_bytes()) == (0, expected)
        (tmp_path / "b").unlink()
        assert command("translate", tiny_run, tmp_path / name, "--as", "lines").out == expected
    done = command("translate", tiny_run, tmp_path, "--as", "lines", "--out", tmp_path / "c")
    assert done.error == "error: --as lines reads a document as plain text: give such a FILE"
    done = command("translate", tiny_run, tmp_path / "a.html", "--as", "pages")
    assert done.error == "error: read_as must be lines, got 'pages'"


@pytest.mark.parametrize(
    ("name", "is_text"),
    [
        ("a", True), ("README", True), ("a.txt", True), ("a.en", True), ("a.DE", True), ("a.zh_CN", True),
        ("a.hau_Latn", True), ("a.deu", True), ("a.ast", True), ("a.trg", True), ("a.tok.en.gz", True),
        ("a.en.01", True), ("part-00012", True), ("a.00", True), ("a.utf8", True), (".profile", True),
        ("a.json", False), ("a.ts", False), ("a.arb", False), ("a.py", False), ("a.sh", False), ("a.html", False),
        ("a.md", False), ("git.1", False), ("a.xml", False), ("a.tex", False), ("a.tar.gz", False), ("a.x", False),
    ],
)  # fmt: skip
def test_names_of_plain_text(name: str, is_text: bool) -> None:
    assert is_plain_text(name) == is_text


def test_plain_text_of_any_name_is_a_document_to_python(tmp_path: Path, translator: Translator) -> None:
    (tmp_path / "a.en").write_text("the dog")
    translate_document(translator, tmp_path / "a.en", tmp_path / "b.de")
    assert (tmp_path / "b.de").read_text() == translator.translate("the dog").text
    (tmp_path / "a.json").write_text("{}")
    with pytest.raises(DataError, match=r"a\.json: \.json is neither plain text nor .*: convert it to \.po"):
        translate_document(translator, tmp_path / "a.json", tmp_path / "b.json")


def test_what_a_folder_has_besides_is_named_and_links_are_not_followed(
    command: Any, tiny_run: Path, tmp_path: Path
) -> None:
    source, out = tmp_path / "in", tmp_path / "out"
    (source / "deeper").mkdir(parents=True)
    (tmp_path / "outside.txt").write_text("the dog")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "c.txt").write_text("the dog")
    for name in ("a.txt", "a.png", "deeper/b.png", "LICENSE", "a.json"):
        (source / name).write_text("the dog")
    (source / "link.txt").symlink_to(tmp_path / "outside.txt")
    (source / "deeper" / "folder").symlink_to(tmp_path / "other")
    (source / "round").symlink_to(source)
    (source / "same.txt").symlink_to(source / "a.txt")
    done = command("translate", tiny_run, source, "--out", out)
    assert done.status == 0
    assert done.err.rstrip().endswith(
        "2 of 2 segments translated; 4 files skipped, which are no documents: 1 without a suffix, 1 .json, 2 .png"
    )
    lines = done.err.splitlines()
    assert [line for line in lines if line.startswith(f"{out}/")] == [
        f"{out / name}: 1 of 1 segments translated" for name in ("a.txt", "same.txt")
    ]
    for name in ("link.txt", "deeper/folder", "round"):
        assert f"{source / name}: a link to a folder or out of it, which is not followed" in done.err
    assert sorted(path.name for path in out.rglob("*")) == ["a.txt", "same.txt"]
