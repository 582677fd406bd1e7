"""What is written for Hugging Face computes in transformers what our model computes, and does so when saved again."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from tokenizers import Tokenizer as JsonTokenizer

import dragoman
from dragoman.bundle import Bundle, load_bundle
from dragoman.config import DecodeConfig, ModelConfig, TokenizerConfig
from dragoman.data.tokenizer import Tokenizer
from dragoman.decoding.request import SearchSettings, Segment
from dragoman.errors import ConfigError
from dragoman.files import MANIFEST, sealed_folder
from dragoman.model.transformer import Transformer
from dragoman.toolkits.huggingface.search import HuggingFace, why_different
from dragoman.toolkits.huggingface.tokenizer_json import tokenizer_json
from dragoman.toolkits.huggingface.write import QUANTIZATIONS, why_not, write
from dragoman.toolkits.writing import check
from model_variants import VARIANTS, fill
from searching import search_all

transformers = pytest.importorskip("transformers")
transformers.logging.set_verbosity_error()
transformers.logging.disable_progress_bar()
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning", "ignore::FutureWarning", "ignore::DeprecationWarning")

CPU = torch.device("cpu")
SIZES = dict(d_model=24, n_heads=3, d_ff=40, n_encoder_layers=2, n_decoder_layers=2, max_len=40)
OF_ITS_OWN: dict[str, dict[str, Any]] = {
    "learned positions, pre-norm": dict(positions="learned", norm="pre"),
    "pre-norm, target embeddings shared": dict(share_embeddings="decoder", norm="pre"),
    "pre-norm, nothing shared": dict(share_embeddings="none", norm="pre", generator_bias=True),
    "two vocabularies": dict(share_embeddings="decoder", smaller_target=True),
    "two vocabularies, nothing shared": dict(share_embeddings="none", smaller_target=True),
}


def is_held(fields: dict[str, Any]) -> bool:
    return "pad_id" not in fields and not why_not(
        ModelConfig(**{"src_vocab_size": 9, "tgt_vocab_size": 9, **SIZES, **fields})
    )


FIELDS = {name: fields for name, fields in VARIANTS.items() if is_held(fields)} | OF_ITS_OWN
SOURCES = [[9, 7, 300], [4] * 21, [8], [44, 10, 6, 7, 8, 9]]

Make = Callable[..., Bundle]


@pytest.fixture(scope="module")
def small_tokenizer() -> Tokenizer:
    return Tokenizer.learn(["a small vocabulary"] * 3, TokenizerConfig(vocab_size=290))


@pytest.fixture
def make(tiny_run: Path, small_tokenizer: Tokenizer) -> Make:
    """A function of fields of the configuration: a bundle with a random model, in which nothing is 0 or 1."""
    real = load_bundle(tiny_run)

    def bundle(smaller_target: bool = False, **fields: Any) -> Bundle:
        tgt = small_tokenizer if smaller_target else real.tgt_tokenizer
        n = {"src_vocab_size": real.src_tokenizer.vocab_size, "tgt_vocab_size": tgt.vocab_size}
        model = Transformer(ModelConfig(**{**n, **SIZES, **fields})).eval()
        return real._replace(weights=fill(model, seed=1, spread=1 / 4), tgt_tokenizer=tgt)

    return bundle


def load(folder: Path) -> Any:
    return transformers.AutoModelForSeq2SeqLM.from_pretrained(folder).eval()


def logits(model: Any, src: torch.Tensor, tgt: torch.Tensor) -> torch.Tensor:
    with torch.inference_mode():
        if isinstance(model, Transformer):
            return model(src, tgt)
        return model(input_ids=src, attention_mask=(src != 0).long(), decoder_input_ids=tgt).logits  # type: ignore[no-any-return]


def padded(rows: list[list[int]]) -> torch.Tensor:
    return torch.nn.utils.rnn.pad_sequence([torch.tensor(row) for row in rows], batch_first=True)


@pytest.mark.parametrize("fields", FIELDS.values(), ids=list(FIELDS))
def test_a_model_computes_the_same_there(make: Make, tmp_path: Path, fields: dict[str, Any]) -> None:
    bundle = make(**fields)
    (tmp_path / "one").mkdir()
    write(bundle, tmp_path / "one")
    src = padded([[*row, 3] for row in SOURCES])
    tgt = torch.randint(4, 250, (len(SOURCES), 7), generator=torch.Generator().manual_seed(0))
    tgt[:, 0] = 2
    ours = logits(bundle.model, src, tgt)
    greedy = DecodeConfig(beam_size=1, max_extra_tokens=5)
    want = [found[0].ids for found in search_all(bundle.model, SOURCES, greedy, CPU, longest=40)]
    for here, again in (("one", "two"), ("two", "three")):  # as written, and as saved by transformers
        model = load(tmp_path / here)
        assert (logits(model, src, tgt) - ours).abs().max() < 1e-4
        for row, ids in zip(SOURCES, want, strict=True):
            found = model.generate(
                torch.tensor([[*row, 3]]),
                num_beams=1,
                max_new_tokens=len(row) + 5,
                length_penalty=1.0,
                early_stopping=False,
            )[0].tolist()
            assert found[0] == 2
            assert [*found[1:], 3].index(3) >= len(ids)
            assert found[1 : 1 + len(ids)] == ids
        model.save_pretrained(tmp_path / again)


@pytest.mark.parametrize("share", ["all", "decoder", "none"])
@pytest.mark.parametrize("norm", ["post", "pre"])
def test_the_card_and_a_warning_name_the_version_that_a_model_needs(
    make: Make, tmp_path: Path, caplog: pytest.LogCaptureFixture, norm: str, share: str
) -> None:
    """transformers 4 has one table for all embeddings of a Pegasus, and takes the last that it reads."""
    folder, is_lost = tmp_path / "there", norm == "pre" and share != "all"
    with sealed_folder(folder, {}) as aside, caplog.at_level("WARNING", "dragoman"):
        write(make(norm=norm, share_embeddings=share), aside)
    needed = "It needs transformers 5 or later"
    reason = ": transformers 4 loads one table in place of all its embeddings, without an error, and translates wrongly"
    assert f"\n{needed}{reason * is_lost}.\n" in (folder / "README.md").read_text(encoding="utf-8")
    assert ("there: this model needs transformers 5 or later" + reason in caplog.messages) == is_lost
    assert len(caplog.messages) == is_lost


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_its_tokenizer_gives_the_same_ids_and_texts(make: Make, tmp_path: Path, corpus: Any, norm: str) -> None:
    bundle = make(norm=norm)
    write(bundle, tmp_path)
    texts = [*corpus.valid_src.read_text().splitlines(), "Hello  world", "émigré 日本 🙂", "1234 5,6", "x" * 50]
    ids = bundle.src_tokenizer.encode(texts)
    for folder in (tmp_path, tmp_path / "again"):
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
        assert [tokenizer(text)["input_ids"] for text in texts] == [[*row, 3] for row in ids]
        assert tokenizer.batch_decode(ids) == bundle.src_tokenizer.decode(ids)
        tokenizer.save_pretrained(tmp_path / "again")


@pytest.mark.parametrize("normalisation", ["standard", "with_quotes", "none"])
@pytest.mark.parametrize("kind", ["bpe", "unigram"])
@pytest.mark.parametrize("byte_fallback", [True, False])
def test_tokenizer_json_cuts_the_same(corpus: Any, kind: str, byte_fallback: bool, normalisation: str) -> None:
    lines = corpus.src.read_text().splitlines()
    config: dict[str, Any] = dict(kind=kind, vocab_size=400, byte_fallback=byte_fallback, normalisation=normalisation)
    ours = Tokenizer.learn(lines, TokenizerConfig(**config))
    theirs = JsonTokenizer.from_str(json.dumps(tokenizer_json(ours)))
    texts = [*lines[:100], "Hello  world ", " leading", "tab\there", "émigré 日本 🙂 naïve", "1234 5,6 a1b2", "x" * 50]
    texts += ["“quoted” – yes…", "x\u00a0\u2009y", "cafe\u0301 Ａ１", "", " ", "\u200b", "ﬁ ﻼ ｶﾞ\u00ad"]
    ids = ours.encode(texts)
    assert [theirs.encode(text).ids for text in texts] == [[*row, 3] for row in ids]
    if byte_fallback:
        assert [theirs.decode(row) for row in ids] == ours.decode(ids)
        if normalisation == "none":
            assert ours.decode(ids) == texts


def test_an_export_translates_as_the_run_does(tiny_run: Path, tmp_path: Path, corpus: Any) -> None:
    folder = dragoman.export(tiny_run, "huggingface", tmp_path / "there")
    texts = corpus.valid_src.read_text().splitlines()
    model, tokenizer = load(folder), transformers.AutoTokenizer.from_pretrained(folder)
    ours = dragoman.Translator.load(tiny_run, "cpu").translate(texts, guard=False)
    found = [model.generate(**tokenizer(text, return_tensors="pt"))[0] for text in texts]
    same = sum(a == b.text for a, b in zip(tokenizer.batch_decode(found, skip_special_tokens=True), ours, strict=True))
    assert same >= len(texts) - 1
    card = (folder / "README.md").read_text(encoding="utf-8")
    assert f"language: [{load_bundle(tiny_run).config.data.src_lang or ''}" in card
    manifest = load_bundle(tiny_run).manifest
    assert manifest["sha256"] in card
    assert f"| training pairs | {manifest['train_pairs']:,} |" in card
    assert f"| validation, BLEU, greedy | {manifest['validation']['bleu']:.2f} (nrefs:1\\|" in card
    assert "Compared with" not in card


def test_the_card_says_how_the_export_compares(tiny_run: Path, tmp_path: Path, corpus: Any) -> None:
    folder = dragoman.export(tiny_run, "huggingface", tmp_path / "there")
    found = dragoman.certify(
        tiny_run, folder, src=corpus.valid_src, ref=corpus.valid_tgt, device="cpu", quiet=True, beam_size=1
    )
    card = (folder / "README.md").read_text(encoding="utf-8")
    assert "## Compared with the original" in card
    assert f"| BLEU | {found.comparisons[0].a:.2f} | {found.comparisons[0].b:.2f} |" in card
    assert f"{found.n_identical:,} translations (" in card
    dragoman.certify(tiny_run, folder, src=corpus.valid_src, device="cpu", quiet=True)  # whole still
    assert dragoman.export(tiny_run, "huggingface", folder) == folder  # which may be replaced


def reseal_as_before(folder: Path) -> None:
    """Make the manifest one of an earlier version, which has no sum of the card."""
    manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    del manifest["card"], manifest["sha256"]
    (folder / MANIFEST).write_text(json.dumps(manifest), encoding="utf-8")


@pytest.mark.parametrize("is_compared", [False, True])
def test_a_card_that_a_user_has_changed_stays(
    tiny_run: Path, tmp_path: Path, corpus: Any, caplog: pytest.LogCaptureFixture, is_compared: bool
) -> None:
    folder = dragoman.export(tiny_run, "huggingface", tmp_path / "there")
    options: dict[str, Any] = dict(src=corpus.valid_src, device="cpu", quiet=True, beam_size=1)
    if is_compared:
        dragoman.certify(tiny_run, folder, **options)
    card = folder / "README.md"
    changed = card.read_text(encoding="utf-8") + "\nNot for medical texts.\n"
    card.write_text(changed, encoding="utf-8")
    (folder / "certificate.json").unlink(missing_ok=True)
    found = dragoman.certify(tiny_run, folder, **options)
    assert caplog.messages == [f"{card}: was changed and stays as it is: the comparison is in certificate.json alone"]
    assert json.loads((folder / "certificate.json").read_text()) == json.loads(found.to_json())
    with pytest.raises(ConfigError, match=r"its README.md is yours or was changed"):
        dragoman.export(tiny_run, "huggingface", folder)
    assert card.read_text(encoding="utf-8") == changed
    card.unlink()
    dragoman.certify(tiny_run, folder, **options)
    assert "## Compared with the original" in card.read_text(encoding="utf-8")


@pytest.mark.parametrize("is_compared", [False, True])
def test_a_card_of_an_earlier_version_is_replaced(
    tiny_run: Path, tmp_path: Path, corpus: Any, is_compared: bool
) -> None:
    folder = dragoman.export(tiny_run, "huggingface", tmp_path / "there")
    reseal_as_before(folder)
    if is_compared:
        dragoman.certify(tiny_run, folder, src=corpus.valid_src, device="cpu", quiet=True, beam_size=1)
        assert "## Compared with the original" in (folder / "README.md").read_text(encoding="utf-8")
    dragoman.export(tiny_run, "huggingface", folder)
    assert "## Compared with the original" not in (folder / "README.md").read_text(encoding="utf-8")
    reseal_as_before(folder)
    (folder / "README.md").write_text("# Ours", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"its README.md is yours or was changed"):
        dragoman.export(tiny_run, "huggingface", folder)


@pytest.mark.parametrize(("patience", "rule"), [(None, "never"), (1.0, True), (2.0, "never")])
def test_a_certificate_searches_by_the_rule_that_is_written(
    make: Make, tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch,
    patience: float | None, rule: Any,
) -> None:  # fmt: skip
    bundle = make()
    decode = replace(bundle.config.decode, patience=patience, beam_size=2)
    write(bundle._replace(config=bundle.config.model_copy(update={"decode": decode})), tmp_path)
    written = json.loads((tmp_path / "generation_config.json").read_text(encoding="utf-8"))
    assert written["early_stopping"] == rule
    assert ("decode.patience = 2 is not held by Hugging Face, only 1" in caplog.text) == (patience == 2)
    there, rules = HuggingFace(tmp_path, CPU), []
    generate = there.model.generate

    def recorded(src: torch.Tensor, **options: Any) -> Any:
        rules.append(options["generation_config"].early_stopping)
        return generate(src, **options)

    monkeypatch.setattr(there.model, "generate", recorded)
    there.search([Segment(ids=[9, 7])], SearchSettings(decode=decode))
    assert rules == [rule]
    assert any("2 times as many" in reason for reason in why_different(decode)) == (patience == 2)


def test_a_translation_is_no_longer_than_the_table_of_positions(make: Make, tmp_path: Path) -> None:
    bundle = make(positions="learned", norm="pre")
    assert bundle.config.data.max_tokens + bundle.config.decode.max_extra_tokens > SIZES["max_len"]
    write(bundle, tmp_path)
    generation = json.loads((tmp_path / "generation_config.json").read_text(encoding="utf-8"))
    assert generation["max_length"] == SIZES["max_len"]


@pytest.mark.parametrize("quantization", QUANTIZATIONS)
def test_every_quantization_loads_and_is_near(make: Make, tmp_path: Path, quantization: str) -> None:
    bundle = make()
    write(bundle, tmp_path, quantization)
    model = load(tmp_path)
    assert str(model.dtype) == f"torch.{quantization}"
    src, tgt = torch.tensor([[9, 7, 30, 3]]), torch.tensor([[2, 5, 8]])
    ours = logits(bundle.model, src, tgt)
    assert (logits(model, src, tgt).float() - ours).abs().max() < ours.abs().max() / 20


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        (dict(positions="rotary"), "no rotary positions .*; it can be exported --format ctranslate2"),
        (dict(positions="learned"), "loses learned positions when it is saved again"),
        (dict(activation="swiglu"), "no activation swiglu"),
        (dict(norm_eps=1e-6), "epsilon of its norms is 1e-05, and here model.norm_eps is 1e-06"),
        (dict(d_k=4), "not model.d_k = 4, model.d_v = 8"),
        (dict(n_encoder_layers=0), "no model without encoder"),
        (dict(norm="pre", share_embeddings="decoder", tgt_vocab_size=8), "one size of vocabulary"),
    ],
)
def test_what_it_cannot_hold_is_refused(fields: dict[str, Any], reason: str) -> None:
    config = ModelConfig(**{"src_vocab_size": 9, "tgt_vocab_size": 9, **SIZES, **fields})
    with pytest.raises(ConfigError, match=f"cannot be written for Hugging Face: .*{reason}"):
        check("huggingface", config, "float32")
