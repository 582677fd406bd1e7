"""A new document format is one object, appended to the one list ``formats.FORMATS``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import dragoman
from dragoman.documents.document import Document, DocumentInfo, decode, text_document
from dragoman.documents.formats import FORMATS, format_of, supported_suffixes
from dragoman.documents.units import Part, Unit


class Properties:
    """Java properties, ``key=text``: the text of each line is translated."""

    SUFFIXES = (".properties",)

    def read(self, data: bytes, info: DocumentInfo) -> Document:
        """Cut each line after its equals sign."""
        text = decode(data, info)
        parts: list[Part] = []
        for line in text.text.splitlines():
            key, _, value = line.partition("=")
            parts += [f"{key}=", Unit(value, raw=[value], escape=str), "\n"]
        return text_document(parts, text)


@pytest.fixture
def properties() -> Iterator[Properties]:
    added = Properties()
    FORMATS.append(added)
    yield added
    FORMATS.remove(added)


def test_the_list_is_all_that_knows_a_format(
    properties: Properties, command: Any, tiny_run: Path, tmp_path: Path
) -> None:
    assert format_of("a.PROPERTIES") is properties
    assert ".properties" in supported_suffixes()
    translator = dragoman.Translator.load(tiny_run)
    source, out = tmp_path / "a.properties", tmp_path / "b.properties"
    source.write_text("greeting=the dog\nversion=2\n")
    report = dragoman.translate_document(translator, source, out)
    assert (report.found, report.translated) == (1, 1)
    assert out.read_text() == f"greeting={translator.translate('the dog').text}\nversion=2\n"
    done = command("translate", tiny_run, source)  # the command line asks for --out, as for every document
    assert done.status == 2
    assert "a.properties is a document: give --out FILE" in done.error


def test_a_suffix_without_a_format_is_no_document() -> None:
    assert format_of("a.properties") is None
    assert ".properties" not in supported_suffixes()
