"""What the model reads is the same wherever it runs: odd white space is cut in every export as the run cuts it."""

from __future__ import annotations

import io
import os
import shutil
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import sentencepiece

import dragoman
from dragoman.bundle import load_bundle
from dragoman.config import ModelConfig, TokenizerConfig
from dragoman.data.normalisation import NO_RULES, with_normaliser
from dragoman.data.tokenizer import Tokenizer
from dragoman.evaluation.certify import Certificate
from dragoman.evaluation.odd_text import CHANGES
from dragoman.model.transformer import Transformer
from dragoman.toolkits.huggingface.tokenizer_json import write_tokenizer_json
from export_readers import Encode, compared, readers, written
from odd_sentences import SENTENCES, learning_lines

transformers = pytest.importorskip("transformers")
pytest.importorskip("onnx")
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning", "ignore::FutureWarning", "ignore::DeprecationWarning")

TEXTS = [line for lines in SENTENCES.values() for line in lines]
KINDS = {"byte pairs": ("bpe", True), "unigram": ("unigram", False)}
READERS = ("CTranslate2 with SentencePiece", "Argos Translate with SentencePiece", "transformers, slow",
           "transformers, fast", "tokenizers", "imported again", "HTML page")  # fmt: skip


@cache
def tokenizer(kind: str) -> Tokenizer:
    model_type, byte_fallback = KINDS[kind]
    config = TokenizerConfig(kind=model_type, vocab_size=1000, byte_fallback=byte_fallback)
    return Tokenizer.learn([*learning_lines(), *TEXTS], config)


@pytest.fixture(scope="module")
def exported(tiny_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[Tokenizer], dict[str, Encode]]:
    """A function of a tokenizer: the tokenizers of other programs on exports of a model with it."""
    transformers.logging.set_verbosity_error()
    made: dict[str, dict[str, Encode]] = {}

    def of(own: Tokenizer) -> dict[str, Encode]:
        if own.fingerprint not in made:
            folder, n = tmp_path_factory.mktemp("exports"), own.vocab_size
            sizes = dict(d_model=8, n_heads=2, d_ff=8, n_encoder_layers=1, n_decoder_layers=1)
            model = Transformer(ModelConfig(src_vocab_size=n, tgt_vocab_size=n, **sizes)).eval()
            bundle = load_bundle(tiny_run)._replace(src_tokenizer=own, tgt_tokenizer=own, model=model)
            modules = os.environ.get("TOKENIZERS_JS")
            made[own.fingerprint] = readers(written(bundle, folder), folder, Path(modules) if modules else None)
        return made[own.fingerprint]

    return of


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("reader", READERS)
def test_every_program_cuts_odd_text_as_the_run_does(exported: Any, kind: str, reader: str) -> None:
    encode, ours = exported(tokenizer(kind)).get(reader), tokenizer(kind)
    if encode is None:
        pytest.skip("needs node")
    changed = [change(text) for change in CHANGES.values() for text in TEXTS]
    assert compared(encode, ours, [*TEXTS, *changed, "", " ", "\u00a0", "\u200b \u200b"]) == []


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("reader", READERS)
def test_what_no_reader_sees_no_program_lets_the_model_see(exported: Any, kind: str, reader: str) -> None:
    encode = exported(tokenizer(kind)).get(reader)
    if encode is None:
        raise AssertionError("needs node")
    rows = encode([*TEXTS, *(change(text) for change in CHANGES.values() for text in TEXTS)])
    n = len(TEXTS)
    differing = {
        name: [text for text, plain, odd in zip(TEXTS, rows, rows[start : start + n], strict=False) if plain != odd]
        for name, start in zip(CHANGES, range(n, len(rows), n), strict=True)
    }
    assert {name: texts for name, texts in differing.items() if texts} == {}


def foreign(name: str) -> Tokenizer:
    """A tokenizer of another program, which normalises text by one of SentencePiece's own rules."""
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter([*learning_lines(), *TEXTS]), model_writer=model, model_type="unigram", vocab_size=1000,
        normalization_rule_name=name, hard_vocab_limit=False, pad_id=0, unk_id=1, bos_id=2, eos_id=3, minloglevel=2,
    )  # fmt: skip
    return Tokenizer(model.getvalue())


@pytest.mark.parametrize("name", ["nmt_nfkc", "nfkc_cf"])
def test_a_foreign_normaliser_is_carried_or_left_out_by_name(
    exported: Any, caplog: pytest.LogCaptureFixture, name: str
) -> None:
    ours = foreign(name)
    texts = [*TEXTS, *(change(text) for change in CHANGES.values() for text in TEXTS), "\ufb01 \u2460 \u00bd  A"]
    with caplog.at_level("WARNING", "dragoman"):
        programs = exported(ours)
    differing = {reader: compared(encode, ours, texts) for reader, encode in programs.items()}
    assert {reader: texts for reader, texts in differing.items() if texts} == {}
    for folder in ("huggingface", "onnx"):
        assert f"{folder}: no tokenizer.json is written: its subwords normalise text by {name}, which" in caplog.text


def test_a_certificate_tries_odd_text_and_names_what_is_cut_otherwise(
    tiny_run: Path, tmp_path: Path, corpus: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def certified(form: str, name: str) -> Certificate:
        folder = dragoman.export(tiny_run, form, tmp_path / name)
        return dragoman.certify(tiny_run, folder, src=corpus.valid_src, quiet=True, device="cpu", beam_size=1)

    for form in ("ctranslate2", "huggingface", "onnx", *(["page"] if shutil.which("node") else [])):
        found = certified(form, form)
        assert (found.n_cut_differently, found.odd_text_cut_differently) == (0, dict.fromkeys(CHANGES, 0))
        assert "letters in other forms (11 kinds): the same subwords" in str(found)

    def without_rules(tokenizer: Tokenizer, folder: Path, src_eos: bool = True) -> bool:
        return write_tokenizer_json(Tokenizer(with_normaliser(tokenizer.proto, NO_RULES)), folder, src_eos)

    monkeypatch.setattr("dragoman.toolkits.onnx.write.write_tokenizer_json", without_rules)
    found = certified("onnx", "other")
    assert found.n_cut_differently == 0
    assert found.odd_text_cut_differently is not None
    assert found.odd_text_cut_differently["no-break spaces"] == found.n_lines
    assert f"split into other subwords: no-break spaces ({found.n_lines} lines), " in str(found)
