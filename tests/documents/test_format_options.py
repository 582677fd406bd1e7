"""Options of formats reach a format from every door, and one that no format of the files reads is refused."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import dragoman
from dragoman.documents.document import DocumentOptions
from dragoman.documents.formats import FORMATS
from dragoman.documents.options import FormatOptions
from dragoman.errors import ConfigError
from echo_format import GIVEN, Echo

FLAGS = ("--set-lang", "--front-matter", "--line-length", "42", "--reading-speed", "17.5", "--column", "b")


@pytest.fixture(autouse=True)
def echo() -> Iterator[None]:
    added = Echo()
    FORMATS.append(added)
    yield
    FORMATS.remove(added)


def test_the_declaration_has_the_fields_that_formats_receive() -> None:
    assert FormatOptions().for_formats() == DocumentOptions()
    assert FormatOptions.names() == tuple(field.name for field in dataclasses.fields(DocumentOptions))
    assert FormatOptions(**GIVEN).for_formats() == DocumentOptions(**GIVEN)  # type: ignore[arg-type]


def test_options_reach_a_format_from_the_command_line_and_python(command: Any, tiny_run: Path, tmp_path: Path) -> None:
    source = tmp_path / "a.echo"
    source.write_text("dog")
    done = command("translate", tiny_run, source, "--out", tmp_path / "b.echo", *FLAGS)
    assert done.status == 0
    assert json.loads((tmp_path / "b.echo").read_text()) == {**GIVEN, "columns": ["b"]}
    translator = dragoman.Translator.load(tiny_run)
    dragoman.translate_document(translator, source, tmp_path / "c.echo", columns=["b"], **GIVEN)
    assert (tmp_path / "c.echo").read_bytes() == (tmp_path / "b.echo").read_bytes()


def test_an_option_that_no_format_of_the_files_reads_is_refused(command: Any, tiny_run: Path, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.txt").write_text("dog")
    translator = dragoman.Translator.load(tiny_run)
    with pytest.raises(ConfigError, match=r"^line_length is for .*\.srt.* and has no effect on a\.txt: leave it out$"):
        dragoman.translate_document(translator, tmp_path / "in" / "a.txt", tmp_path / "b.txt", line_length=42)
    (tmp_path / "in" / "b.po").write_text("")
    done = command("translate", tiny_run, tmp_path / "in", "--out", tmp_path / "out", "--reading-speed", "17")
    assert done.status == 2
    assert done.error.endswith(" and has no effect on these files: leave it out")
    (tmp_path / "in" / "c.echo").write_text("dog")
    done = command("translate", tiny_run, tmp_path / "in", "--out", tmp_path / "out", "--reading-speed", "17")
    assert done.status == 0  # one of the files is concerned
    assert json.loads((tmp_path / "out" / "c.echo").read_text())["reading_speed"] == 17
    done = command("translate", tiny_run, "--set-lang", stdin=b"the dog\n")
    assert done.error == "error: --set-lang: only for documents, give such a FILE"
    done = command("translate", tiny_run, tmp_path / "in", "--out", tmp_path / "out", "--ray", "local", "--set-lang")
    assert done.error == "error: --ray writes plain lines: leave out --set-lang"
