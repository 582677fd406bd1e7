"""Models of several target languages in other formats: the language that is asked for arrives, or one line refuses."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import dragoman
from dragoman.bundle import load_bundle
from dragoman.errors import ConfigError

transformers = pytest.importorskip("transformers")


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory, toy_sentences: Callable[..., Any]) -> Path:
    path = tmp_path_factory.mktemp("text") / "test.en"
    path.write_text("".join(f"{src}\n" for src, _ in toy_sentences(8, 2)), encoding="utf-8")
    return path


@pytest.mark.parametrize("form", ["huggingface", "ctranslate2", "onnx", "page"])
def test_an_export_translates_into_the_language_that_is_asked_for(
    several_run: Path, sources: Path, tmp_path: Path, form: str
) -> None:
    if form == "page" and shutil.which("node") is None:
        pytest.skip("needs node")
    folder = dragoman.export(several_run, form, tmp_path / "there")
    for to in ("de", "fr"):
        found = dragoman.certify(several_run, folder, src=sources, to=to, beam_size=1, quiet=True, device="cpu")
        assert found.most_nats < 1e-4
        assert found.n_identical == found.n_lines


@pytest.mark.parametrize("form", ["huggingface", "onnx"])
def test_the_tag_is_written_before_the_text(several_run: Path, tmp_path: Path, form: str) -> None:
    folder, ours = dragoman.export(several_run, form, tmp_path / "there"), load_bundle(several_run).src_tokenizer
    kinds = [transformers.PreTrainedTokenizerFast, *([transformers.AutoTokenizer] if form == "huggingface" else [])]
    for kind in kinds:
        theirs = kind.from_pretrained(folder)
        for to in ("de", "fr"):
            (ids,) = ours.towards(to).encode(["the dog runs"])
            assert theirs(f">>{to}<<the dog runs").input_ids == [*ids, 3]
        assert theirs("<bt> dog").input_ids[:-1] == ours.encode(["<bt> dog"])[0]  # no tag of a corpus
    card = folder / "README.md"
    if card.exists():
        text = card.read_text(encoding="utf-8")
        assert "language: [en, de, fr]" in text
        assert "begins with the code of its target language (`>>de<<`, `>>fr<<`)" in text
        assert 'tokenizer([">>de<<..."]' in text


def test_a_page_offers_the_languages(several_run: Path, tmp_path: Path) -> None:
    page = dragoman.export(several_run, "page", tmp_path / "page.html")
    found = re.search(r'id="content">([^<]+)<', page.read_text(encoding="utf-8"))
    assert found is not None
    assert json.loads(found[1])["targets"] == load_bundle(several_run).src_tokenizer.targets


def test_argos_is_refused_and_a_check_asks_for_the_language_before_it_writes(
    command: Callable[..., Any], several_run: Path, sources: Path, tmp_path: Path
) -> None:
    with pytest.raises(
        ConfigError, match="one pair of languages, and here sources say one of de, fr; it can be"
    ) as error:
        dragoman.export(several_run, "argos", tmp_path / "argos")
    assert "\n" not in str(error.value)
    refused = command("export", several_run, "--format", "ctranslate2", "--out", tmp_path / "ct", "--check", sources)
    assert "choose one with --to (de, fr)" in refused.error
    alone = command("export", several_run, "--format", "ctranslate2", "--out", tmp_path / "ct", "--to", "fr")
    assert "--to need --check" in alone.error
    assert list(tmp_path.iterdir()) == []
    done = command(
        "export", several_run, "--format", "ctranslate2", "--out", tmp_path / "ct", "--check", sources, "--to", "fr"
    )
    assert done.status == 0
    assert (tmp_path / "ct/certificate.json").is_file()
