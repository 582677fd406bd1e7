"""``dragoman explain``: a page, a figure, a folder; what it refuses, and that nothing is lost then."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dragoman.explanation.attention import FIGURES
from dragoman.explanation.explain import explain
from dragoman.explanation.outputs import write
from dragoman.explanation.trace import Trace
from dragoman.translation.translator import Translator

TEXT = "the big dog sees a cat"


@pytest.fixture(scope="module")
def found(tiny_run: Path) -> Trace:
    return explain(Translator.load(tiny_run, "cpu"), TEXT)


def test_it_prints_the_translation_and_what_it_wrote(
    command: Callable[..., Any], tiny_run: Path, tmp_path: Path
) -> None:
    done = command("explain", tiny_run, TEXT, cwd=tmp_path)
    assert done.status == 0, done.err
    translation, path = done.out.decode().splitlines()
    assert translation
    assert path == "explanation.html"
    assert (tmp_path / path).read_text(encoding="utf-8").startswith("<!doctype html>")


def test_several_sentences_are_explained_as_one_and_named(
    command: Callable[..., Any], tiny_run: Path, tmp_path: Path
) -> None:
    for text, n in ((TEXT, 0), ("The dog sees a cat. The cat sleeps. A man sees it.", 3)):
        done = command("explain", tiny_run, text, cwd=tmp_path)
        assert done.status == 0, done.err
        assert ("note: TEXT has" in done.err) == (n > 0)
        assert not n or f"TEXT has {n} sentences, which translate takes one by one" in done.err


@pytest.mark.parametrize("show", FIGURES)
def test_each_figure_can_be_had(found: Trace, tmp_path: Path, show: str) -> None:
    assert write(found, tmp_path / "a.png", show) == [tmp_path / "a.png"]
    assert (tmp_path / "a.png").read_bytes()[:4] == b"\x89PNG"


def test_a_folder_gets_the_page_and_every_figure(found: Trace, tmp_path: Path) -> None:
    cross = {name: weights for name, weights in found.weights.items() if "cross" in name}
    written = write(replace(found, weights=cross), tmp_path / "all", subwords=True)  # as of a recurrent model
    names = ["explanation.html", *(f"{n}{e}" for n in ("alignment", "cross", "candidates") for e in (".svg", ".png"))]
    assert [path.name for path in written] == names
    assert sorted(path.name for path in (tmp_path / "all").iterdir()) == sorted(names)


@pytest.mark.parametrize(("options", "message"), [
    (["--out", "a.jpeg"], ".html"), (["--show", "cross"], "give --out cross.svg too"),
    (["--show", "cross", "--out", "folder"], "give --out cross.svg too"),
    (["--show", "everything"], "show must be alignment, cross, encoder, decoder or"),
])  # fmt: skip
def test_refusals_come_before_the_work(
    command: Callable[..., Any], tmp_path: Path, options: list[str], message: str
) -> None:
    done = command("explain", tmp_path / "no-such-run", TEXT, *options, cwd=tmp_path)
    assert done.status == 2
    assert message in done.error
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("name", "options"), [
    ("explanation.html", []), ("figures/explanation.html", ["--out", "figures"]),
    ("figures/encoder.svg", ["--out", "figures"]), ("figures/alignment.png", ["--out", "figures"]),
])  # fmt: skip
def test_files_of_others_under_names_that_nobody_gave_are_refused_before_the_work(
    command: Callable[..., Any], tmp_path: Path, name: str, options: list[str]
) -> None:
    (tmp_path / "figures").mkdir()
    (tmp_path / name).write_text("mine", encoding="utf-8")
    done = command("explain", tmp_path / "no-such-run", TEXT, *options, cwd=tmp_path)
    assert done.status == 2
    assert re.search(f"{name}: .* replace this file, which .*; move it away, or choose another name", done.error)
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == [tmp_path / name]
    assert (tmp_path / name).read_text(encoding="utf-8") == "mine"


def test_a_page_and_a_folder_are_written_again_and_a_file_that_was_named_is_replaced(
    command: Callable[..., Any], tiny_run: Path, tmp_path: Path
) -> None:
    for _ in range(2):
        assert command("explain", tiny_run, TEXT, cwd=tmp_path).status == 0
        assert command("explain", tiny_run, TEXT, "--out", "figures", cwd=tmp_path).status == 0
    for name in ("explanation.html", "figures/encoder.svg"):
        (tmp_path / name).write_text("mine", encoding="utf-8")
        assert command("explain", tiny_run, TEXT, "--out", name, cwd=tmp_path).status == 0
        assert (tmp_path / name).stat().st_size > 1000


def test_a_translation_that_translate_does_not_give_is_told(
    command: Callable[..., Any], tiny_run: Path, tmp_path: Path
) -> None:
    """The search of ``explain`` sees the text as it is; ``translate`` keeps an address and follows capitals."""
    done = command("explain", tiny_run, "see https://example.org/x now", cwd=tmp_path)
    usual = command("translate", tiny_run, stdin=b"see https://example.org/x now\n").out.decode().strip()
    assert "https://example.org/x" in usual
    assert f"note: translate, which also mends and keeps what must not change, gives: {usual}\n" in done.err
    first = command("explain", tiny_run, TEXT, cwd=tmp_path)
    assert first.out.splitlines()[0] == command("translate", tiny_run, stdin=TEXT.encode() + b"\n").out.splitlines()[0]
    assert "note" not in first.err
    given = command("explain", tiny_run, "see https://example.org/x now", "--translation", "der hund", cwd=tmp_path)
    assert "note" not in given.err


def test_a_blank_text_is_refused(command: Callable[..., Any], tiny_run: Path, tmp_path: Path) -> None:
    done = command("explain", tiny_run, "  ", cwd=tmp_path)
    assert done.status == 2
    assert "blank" in done.error
    assert list(tmp_path.iterdir()) == []
