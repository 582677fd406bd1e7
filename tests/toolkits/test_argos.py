"""A package of Argos Translate: what is in it, and that its parts translate as Argos puts them together."""

from __future__ import annotations

import json
import logging
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ctranslate2
import numpy as np
import pytest
import sentencepiece

import dragoman
from dragoman.bundle import Bundle, load_bundle
from dragoman.config import TokenizerConfig
from dragoman.data.tokenizer import Tokenizer
from dragoman.errors import ConfigError
from dragoman.toolkits.argos.write import splitter, write

pytest.importorskip("onnx")

SIZES = dict(d_model=24, n_heads=3, d_ff=40, n_encoder_layers=1, n_decoder_layers=1)


def test_the_parts_of_a_package_translate(tiny_run: Path, tmp_path: Path, corpus: Any) -> None:
    bundle = load_bundle(tiny_run)
    data = bundle.config.data.model_copy(update={"src_lang": "en", "tgt_lang": "pt_BR"})
    bundle = bundle._replace(config=bundle.config.model_copy(update={"data": data}))
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    write(bundle, tmp_path / "a")
    write(bundle, tmp_path / "b")
    (package,) = (tmp_path / "a").iterdir()
    assert package.name == "translate-en_pb-1_0.argosmodel"
    assert package.read_bytes() == (tmp_path / "b" / package.name).read_bytes()
    zipfile.ZipFile(package).extractall(tmp_path / "installed")
    (folder,) = (tmp_path / "installed").iterdir()  # one folder, which Argos takes as the package
    about = json.loads((folder / "metadata.json").read_text(encoding="utf-8"))
    assert (about["from_code"], about["from_name"], about["to_code"]) == ("en", "English", "pb")
    # as argostranslate.translate does it
    cut = sentencepiece.SentencePieceProcessor(model_file=str(folder / "sentencepiece.model"))
    model = ctranslate2.Translator(str(folder / "model"))
    texts = corpus.valid_src.read_text().splitlines()
    found = model.translate_batch([cut.encode(text, out_type=str) for text in texts], beam_size=4, length_penalty=0.2)
    theirs = ["".join(one.hypotheses[0]).replace("▁", " ").strip() for one in found]
    ours = dragoman.Translator(bundle).translate(texts, guard=False)
    assert sum(a == b.text for a, b in zip(theirs, ours, strict=True)) >= len(texts) - 1


@pytest.mark.parametrize("byte_fallback", [True, False])
def test_characters_that_appear_as_bytes_are_named(
    make: Callable[..., Bundle], tmp_path: Path, caplog: pytest.LogCaptureFixture, byte_fallback: bool
) -> None:
    subwords = Tokenizer.learn(["a few words"] * 9, TokenizerConfig(vocab_size=280, byte_fallback=byte_fallback))
    bundle = make(src_vocab_size=subwords.vocab_size, tgt_vocab_size=subwords.vocab_size)
    data = bundle.config.data.model_copy(update={"src_lang": "en", "tgt_lang": "de"})
    bundle = bundle._replace(
        config=bundle.config.model_copy(update={"data": data}), src_tokenizer=subwords, tgt_tokenizer=subwords
    )
    (ids,) = subwords.encode(["few €"])
    joined = "".join(subwords.pieces(ids)).replace("▁", " ").strip()  # as Argos does it
    assert ("<0xE2><0x82><0xAC>" in joined) == byte_fallback
    with caplog.at_level(logging.WARNING):
        write(bundle, tmp_path)
    (package,) = tmp_path.iterdir()
    with zipfile.ZipFile(package) as file:
        readme = file.read(f"{package.stem}/README.md").decode()
    fault = "as its bytes, such as <0xE2><0x82><0xAC> for €. The format ctranslate2 does not have this fault."
    assert [fault in text for text in (caplog.text, readme)] == [byte_fallback, byte_fallback]


def test_the_splitter_ends_sentences_at_marks() -> None:
    onnxruntime = pytest.importorskip("onnxruntime")
    session = onnxruntime.InferenceSession(splitter("en"))
    about = session.get_modelmeta().custom_metadata_map
    ids = json.loads(about["vocab"])["_unit2id"]
    assert about["lang_code"] == "en"
    units = np.array([[ids.get(character, 1) for character in "a. b?"]])
    scores = session.run(["scores"], {"units": units, "features": np.zeros((1, 5, 1), np.float32)})[0]
    assert scores.argmax(-1).tolist() == [[0, 2, 0, 0, 2]]


def test_what_a_package_cannot_hold_is_refused(tiny_run: Path, tmp_path: Path) -> None:
    bundle = load_bundle(tiny_run)
    data = bundle.config.data.model_copy(update={"src_lang": None, "tgt_lang": "de"})
    nameless = bundle._replace(config=bundle.config.model_copy(update={"data": data}))
    with pytest.raises(ConfigError, match=r"needs data.src_lang, which this run does not have"):
        write(nameless, tmp_path)
    known = bundle.config.data.model_copy(update={"src_lang": "en", "tgt_lang": "de"})
    other = Tokenizer.learn(["other words"] * 9, TokenizerConfig(vocab_size=280))
    two = bundle._replace(config=bundle.config.model_copy(update={"data": known}), tgt_tokenizer=other)
    with pytest.raises(ConfigError, match="one model of subwords, and here source and target have two"):
        write(two, tmp_path)
    assert list(tmp_path.iterdir()) == []
