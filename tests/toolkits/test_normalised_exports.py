"""What the model reads is the same wherever it runs: odd white space is cut in every export as the run cuts it."""

from __future__ import annotations

import io
import os
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import sentencepiece

from dragoman.bundle import load_bundle
from dragoman.config import ModelConfig, TokenizerConfig
from dragoman.data.tokenizer import Tokenizer
from dragoman.evaluation.odd_text import CHANGES
from dragoman.model.transformer import Transformer
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


@pytest.mark.xfail(strict=True, reason="the model reads what readers do not see")
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


@pytest.mark.xfail(strict=True, reason="tokenizer.json does not hold the normaliser of an imported model")
@pytest.mark.parametrize("name", ["nmt_nfkc", "nfkc_cf"])
def test_a_foreign_normaliser_is_carried_by_every_program(exported: Any, name: str) -> None:
    ours = foreign(name)
    texts = [*TEXTS, *(change(text) for change in CHANGES.values() for text in TEXTS), "ﬁ ① ½  A"]
    differing = {reader: compared(encode, ours, texts) for reader, encode in exported(ours).items()}
    assert {reader: texts for reader, texts in differing.items() if texts} == {}
