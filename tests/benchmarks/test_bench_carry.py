"""The same weights, sentences and batches for every system."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from benchmarks.harness import carry, corpus
from benchmarks.harness.environments import PEERS
from benchmarks.training import in_order
from dragoman.bundle import load_bundle
from dragoman.config import DecodeConfig, ModelConfig
from dragoman.data.tokenizer import Tokenizer
from dragoman.errors import ConfigError
from dragoman.model.transformer import Transformer
from dragoman.model.weights import untied
from searching import search_all

SIZES = dict(d_model=16, n_heads=2, d_ff=24, n_encoder_layers=2, n_decoder_layers=1)


@pytest.fixture(scope="module")
def tokenizer(toy_sentences: Callable[[int, int], list[tuple[str, str]]]) -> Tokenizer:
    return corpus.subwords(toy_sentences(300, 1), 400)


def config(**other: object) -> ModelConfig:
    return ModelConfig(**SIZES, src_vocab_size=40, tgt_vocab_size=40, **other)


def theirs(weights: dict[str, Tensor], src: Tensor, tgt_in: Tensor, n_heads: int, pre: bool) -> Tensor:
    """Marian's or M2M100's forward pass by the names of its state dict, for rows without padding: ``(B, T, V)``."""

    def linear(x: Tensor, name: str) -> Tensor:
        return F.linear(x, weights[f"{name}.weight"], weights[f"{name}.bias"])

    def norm(x: Tensor, name: str) -> Tensor:
        return F.layer_norm(x, x.shape[-1:], weights[f"{name}.weight"], weights[f"{name}.bias"])

    def attention(x: Tensor, memory: Tensor, name: str, causal: bool = False) -> Tensor:
        q, k, v = (
            linear(y, f"{name}.{letter}_proj").unflatten(-1, (n_heads, -1)).transpose(1, 2)
            for y, letter in ((x, "q"), (memory, "k"), (memory, "v"))
        )
        found = F.scaled_dot_product_attention(q, k, v, is_causal=causal)
        return linear(found.transpose(1, 2).flatten(2), f"{name}.out_proj")

    def sub_layer(x: Tensor, name: str, compute: Callable[[Tensor], Tensor]) -> Tensor:
        return x + compute(norm(x, name)) if pre else norm(x + compute(x), name)

    def embed(ids: Tensor) -> Tensor:
        shared = weights["model.shared.weight"]
        return F.embedding(ids, shared) * shared.size(1) ** 0.5 + weights["positions"][: ids.size(1)]

    def feed_forward(at: str) -> Callable[[Tensor], Tensor]:
        return lambda x: linear(linear(x, f"{at}.fc1").relu(), f"{at}.fc2")

    memory = embed(src)
    for i in range(SIZES["n_encoder_layers"]):
        at = f"model.encoder.layers.{i}"
        memory = sub_layer(memory, f"{at}.self_attn_layer_norm", lambda x, at=at: attention(x, x, f"{at}.self_attn"))
        memory = sub_layer(memory, f"{at}.final_layer_norm", feed_forward(at))
    memory = norm(memory, "model.encoder.layer_norm") if pre else memory
    x = embed(tgt_in)
    for i in range(SIZES["n_decoder_layers"]):
        at = f"model.decoder.layers.{i}"
        x = sub_layer(x, f"{at}.self_attn_layer_norm", lambda x, at=at: attention(x, x, f"{at}.self_attn", causal=True))
        x = sub_layer(x, f"{at}.encoder_attn_layer_norm", lambda x, at=at: attention(x, memory, f"{at}.encoder_attn"))
        x = sub_layer(x, f"{at}.final_layer_norm", feed_forward(at))
    return (norm(x, "model.decoder.layer_norm") if pre else x) @ weights["model.shared.weight"].T


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_the_weights_under_hugging_faces_names_are_the_same_model(norm: str) -> None:
    torch.manual_seed(1)
    model = Transformer(config(norm=norm)).eval()
    with torch.no_grad():
        for parameter in model.parameters():  # zeros and ones would hide what is in the wrong place
            parameter.add_(0.1 * torch.randn_like(parameter))
    arrays = carry.to_hugging_face(model.config, untied(model))
    weights = {name: torch.from_numpy(array) for name, array in arrays.items()}
    src, tgt_in = torch.randint(4, 40, (3, 7)), torch.randint(4, 40, (3, 5))
    with torch.no_grad():
        found = theirs(weights, src, tgt_in, 2, norm == "pre")
        assert torch.allclose(found, model(src, tgt_in), atol=1e-5)


@pytest.mark.parametrize("other", [{"share_embeddings": "none"}, {"positions": "rotary"}, {"generator_bias": True}])
def test_what_hugging_face_cannot_express_is_refused(other: dict[str, object]) -> None:
    with pytest.raises(ConfigError, match=next(iter(other))):
        carry.hugging_face_names(config(**other))


def test_random_weights_never_end_a_translation(tmp_path: Path, tokenizer: Tokenizer) -> None:
    bundle = load_bundle(carry.random_bundle(tmp_path / "run", tokenizer, "tiny"))
    src_ids = [[5, 6, 7], [8], list(range(10, 30))]
    for beam_size in (1, 3):
        found = search_all(bundle.model, src_ids, DecodeConfig(beam_size=beam_size), torch.device("cpu"), longest=9)
        assert [len(hypotheses[0].ids) for hypotheses in found] == [8, 8, 8]
    written = carry.write_hugging_face(tmp_path / "run", tmp_path / "theirs")
    with np.load(written / "weights.npz") as arrays:
        assert np.array_equal(arrays["model.shared.weight"], bundle.model.src_embed.weight.detach().numpy())


def test_every_system_reads_the_same_batches(
    tmp_path: Path, tokenizer: Tokenizer, toy_sentences: Callable[[int, int], list[tuple[str, str]]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    pairs = toy_sentences(300, 1)
    chosen = corpus.batches(pairs, tokenizer, 200, 3)
    monkeypatch.syspath_prepend(PEERS)
    read = importlib.import_module("steps").read_batches(str(corpus.write_batches(chosen, tmp_path / "b.npz")))
    for ours, theirs in zip(chosen, read, strict=True):
        assert torch.equal(ours.src, theirs.src)
        assert torch.equal(ours.tgt_in, theirs.tgt_in)
        assert torch.equal(ours.tgt_out, theirs.tgt_out)
        assert ours.n_tgt_tokens == theirs.n_tokens
    text = in_order(pairs, chosen)
    assert tokenizer.encode([text[0][0]])[0] == chosen[0].src[0, : len(tokenizer.encode([text[0][0]])[0])].tolist()
    with pytest.raises(ValueError, match="ask for fewer"):
        corpus.batches(pairs, tokenizer, 200, 10_000)


def test_without_the_real_corpus_the_embedded_one_is_taken_and_named(tmp_path: Path) -> None:
    embedded = corpus.captions(tmp_path, 50, 20)
    assert "embedded" in embedded.name
    assert (len(embedded.train), len(embedded.test)) == (50, 20)
    (tmp_path / "multi30k").mkdir()
    for split in ("train", corpus.MULTI30K_TEST):
        for end in ("en", "de"):
            (tmp_path / f"multi30k/{split}.{end}").write_text(f"{split} {end} 1\n{split} {end} 2\n", encoding="utf-8")
    real = corpus.captions(tmp_path, n_test=1)
    assert real.name == "multi30k en-de"
    assert real.train == [("train en 1", "train de 1"), ("train en 2", "train de 2")]
    assert len(real.test) == 1
    name, pairs = corpus.long_lines(None)
    assert "embedded" in name
    assert min(len(src.split()) for src, _ in pairs) > 20
