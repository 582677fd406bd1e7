"""What the model reads is the same wherever it runs: odd white space is cut in every export as the run cuts it."""

from __future__ import annotations

import io
import json
import os
import random
import shutil
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import sentencepiece
from tokenizers import Tokenizer as JsonTokenizer

import dragoman
from dragoman.bundle import load_bundle
from dragoman.config import ModelConfig, TokenizerConfig
from dragoman.data.normalisation import NO_RULES, replacements, with_normaliser
from dragoman.data.sentencepiece_check import bytes_field, fields, normaliser_of, number_field
from dragoman.data.tokenizer import Tokenizer
from dragoman.errors import BundleError
from dragoman.evaluation.certify import Certificate
from dragoman.evaluation.odd_text import CHANGES
from dragoman.model.transformer import Transformer
from dragoman.toolkits.huggingface.tokenizer_json import tokenizer_json, write_tokenizer_json
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
            bundle = load_bundle(tiny_run)._replace(src_tokenizer=own, tgt_tokenizer=own, weights=model)
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


def test_a_foreign_normaliser_is_carried_or_left_out_by_name(exported: Any, caplog: pytest.LogCaptureFixture) -> None:
    name = "nmt_nfkc"
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

    for form in ("huggingface", *(["page"] if shutil.which("node") else [])):
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


def with_name(own: Tokenizer, name: bytes) -> bytes:
    """The subwords with another name of the rules that they normalise by."""
    body = b"".join(
        bytes_field(number, name if number == 1 else value) if isinstance(value, bytes) else number_field(number, value)
        for number, _, value in fields(normaliser_of(own.proto))
    )
    return with_normaliser(own.proto, body)


def test_rules_that_this_version_does_not_know_are_refused_by_name(tiny_run: Path, tmp_path: Path) -> None:
    own = load_bundle(tiny_run).src_tokenizer
    later = with_name(own, b"dragoman_standard_9")
    says = "its normalisation 'dragoman_standard_9' is not known to this dragoman: upgrade it"
    with pytest.raises(BundleError, match=f"^joint.spm: {says}$"):
        Tokenizer(later, "joint.spm")
    for form, name in (("huggingface", "source.spm"), ("ctranslate2", "joint.spm")):
        folder = dragoman.export(tiny_run, form, tmp_path / form)
        (folder / "manifest.json").unlink()
        (folder / name).write_bytes(later)
        with pytest.raises(BundleError, match=f"^{folder}: {says}$"):
            dragoman.import_model(folder, tmp_path / "run")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("form", ["huggingface", "ctranslate2"])
def test_an_export_comes_back_with_the_rules_of_both_sides(
    tiny_run: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture, form: str
) -> None:
    with caplog.at_level("INFO", "dragoman"):
        run = dragoman.import_model(dragoman.export(tiny_run, form, tmp_path / form), tmp_path / "run")
    first, again = load_bundle(tiny_run), load_bundle(run)
    assert again.src_tokenizer.normalisation == "standard"
    assert again.config.data.tokenizer.joint
    assert "normalises_text" not in again.manifest["imported"]
    assert "normalises text" not in caplog.text
    texts = [*TEXTS, *(change(text) for change in CHANGES.values() for text in TEXTS)]
    for one, other in ((first.src_tokenizer, again.src_tokenizer), (first.tgt_tokenizer, again.tgt_tokenizer)):
        rows = [[tokenizer.pieces(row) for row in tokenizer.encode(texts)] for tokenizer in (one, other)]
        assert rows[0] == rows[1]


def test_subwords_without_rules_are_written_as_before(tmp_path: Path) -> None:
    own = Tokenizer.learn(learning_lines(100), TokenizerConfig(vocab_size=600, normalisation="none"))
    assert own.is_exact
    assert write_tokenizer_json(own, tmp_path)
    content = json.loads((tmp_path / "tokenizer.json").read_text(encoding="utf-8"))
    assert content["normalizer"] == {
        "type": "Sequence",
        "normalizers": [
            {"type": "Prepend", "prepend": "▁"}, {"type": "Replace", "pattern": {"String": " "}, "content": "▁"},
        ],
    }  # fmt: skip
    assert content["decoder"]["decoders"][-1] == {"type": "Strip", "content": " ", "start": 1, "stop": 0}


@pytest.mark.parametrize("normalisation", ["standard", "with_quotes"])
def test_tokenizer_json_replaces_as_one_pass_over_the_text_does(normalisation: str) -> None:
    table = replacements(normalisation)
    assert not {character for new in table.values() for character in new} & set(table)
    own = Tokenizer.learn(learning_lines(60), TokenizerConfig(vocab_size=560, normalisation=normalisation))
    chance = random.Random(11)
    marks = "\u200c\u200d\uff9e\uff9f\uff76\u0301\u0323\u0302\u0327\u0915\u093c\u1112\u1161\u11ab\u1ead"
    others = [*" aeo1A", *marks, *SENTENCES]
    texts = ["".join(chance.choice([*table, *others]) for _ in range(7)) for _ in range(150)]
    texts += ["".join(chance.choice(others) for _ in range(5)) for _ in range(150)]
    theirs = JsonTokenizer.from_str(json.dumps(tokenizer_json(own)))
    assert [text for text in texts if theirs.encode(text).ids[:-1] != own.encode([text])[0]] == []
