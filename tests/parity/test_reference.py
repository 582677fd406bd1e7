"""The torch model against the NumPy reference, float64, in every variant: logits, loss, gradients, weights, search."""

from typing import Any

import numpy as np
import pytest
import torch

from dragoman import reference as ref
from dragoman.config import ModelConfig
from dragoman.model.transformer import Transformer
from dragoman.training.loss import label_smoothed_loss, perplexity
from model_variants import CHOICES, FACTORS, fields_of, fill, in_combination, unequal
from searching import beam_search, greedy_search

SRC = np.array([[5, 12, 7, 3, 0], [9, 3, 0, 0, 0], [0, 0, 0, 0, 0]])  # the last row gives the decoder nothing to see
TGT_IN = np.array([[2, 4, 8, 4, 11, 6, 1], [2, 12, 5, 0, 0, 0, 0], [2, 7, 7, 10, 0, 0, 0]])
TGT_OUT = np.array([[4, 8, 4, 11, 6, 1, 3], [12, 5, 3, 0, 0, 0, 0], [7, 7, 10, 3, 0, 0, 0]])
SIZES = dict(d_model=6, n_heads=3, d_ff=11, n_encoder_layers=2, n_decoder_layers=2, dropout=0.0, max_len=17, pad_id=0)
OF_ENCODERS = {name: FACTORS[name] for name in FACTORS if name not in ("share_embeddings", "generator_bias")}


def a_pair(seed: int = 0, **fields: Any) -> tuple[Transformer, dict[str, np.ndarray], dict[str, Any]]:
    """A torch model with random parameters, none of them 0 or 1 by accident; its parameters and its configuration."""
    config = ModelConfig(**{**SIZES, "src_vocab_size": 13, "tgt_vocab_size": 13, **unequal(fields)})
    model = fill(Transformer(config).double(), seed)
    params = {name: parameter.detach().numpy() for name, parameter in model.named_parameters()}
    return model, params, config.model_dump()


def grads_of(model: Transformer) -> dict[str, np.ndarray]:
    return {name: parameter.grad.numpy() for name, parameter in model.named_parameters()}


def assert_same_gradients(got: dict[str, np.ndarray], want: dict[str, np.ndarray]) -> None:
    """Within 1e-8 of the norm; within 1e-12 where theory says 0, as for the bias of keys."""
    assert got.keys() == want.keys()
    for name in want:
        assert got[name].shape == want[name].shape
        error = np.linalg.norm(got[name] - want[name])
        assert error <= 1e-8 * np.linalg.norm(want[name]) + 1e-12, f"{name}: {error}"


def assert_same_training(src: np.ndarray | None, **fields: Any) -> None:
    """Logits to 1e-10, the loss to 1e-12, every gradient to 1e-8."""
    model, params, config = a_pair(**fields)
    want_logits, cache = ref.forward(params, config, src, TGT_IN)
    want_loss = ref.label_smoothed_loss(want_logits, TGT_OUT, 0, 0.1)
    want_grads = ref.backward(params, config, cache, ref.label_smoothed_loss_backward(want_logits, TGT_OUT, 0, 0.1))

    logits = model(None if src is None else torch.from_numpy(src), torch.from_numpy(TGT_IN))
    total, plain = label_smoothed_loss(logits, torch.from_numpy(TGT_OUT), 0, 0.1)
    loss = total / int((TGT_OUT != 0).sum())
    loss.backward()
    np.testing.assert_allclose(logits.detach().numpy(), want_logits, rtol=1e-10, atol=1e-10)
    assert loss.item() == pytest.approx(want_loss, rel=1e-12)
    plain_per_token = plain.item() / int((TGT_OUT != 0).sum())
    assert perplexity(plain_per_token) == pytest.approx(ref.perplexity(want_logits, TGT_OUT, 0), rel=1e-12)
    assert_same_gradients(grads_of(model), want_grads)


@in_combination(FACTORS)
def test_training_equals_the_reference(rows: list[dict[str, Any]]) -> None:
    for row in rows:
        assert_same_training(SRC, **fields_of(row))


@in_combination(FACTORS)
def test_a_language_model_equals_the_reference(rows: list[dict[str, Any]]) -> None:
    for row in rows:
        assert_same_training(None, n_encoder_layers=0, **fields_of(row))


@in_combination(OF_ENCODERS)
def test_the_encoder_alone_equals_the_reference(rows: list[dict[str, Any]]) -> None:
    for row in rows:
        model, params, config = a_pair(n_decoder_layers=0, **fields_of(row))
        d_memory = np.random.default_rng(1).normal(size=(3, 5, 6))
        want, cache = ref.encode(params, config, SRC)
        memory = model.encode(torch.from_numpy(SRC))
        memory.backward(torch.from_numpy(d_memory))
        np.testing.assert_allclose(memory.detach().numpy(), want, rtol=1e-10, atol=1e-10)
        assert_same_gradients(grads_of(model), ref.encode_backward(params, config, cache, d_memory))


@pytest.mark.parametrize("norm", CHOICES["norm"])
def test_gradients_from_every_position_padding_included(norm: str) -> None:
    model, params, config = a_pair(norm=norm)
    tgt_in = TGT_IN.copy()
    tgt_in[2, 0] = 0  # a first target token that may attend nowhere
    d_logits = np.random.default_rng(1).normal(size=(3, 7, 13))
    want, cache = ref.forward(params, config, SRC, tgt_in)
    logits = model(torch.from_numpy(SRC), torch.from_numpy(tgt_in))
    logits.backward(torch.from_numpy(d_logits))
    np.testing.assert_allclose(logits.detach().numpy(), want, rtol=1e-10, atol=1e-10)
    assert_same_gradients(grads_of(model), ref.backward(params, config, cache, d_logits))


def test_another_padding_id() -> None:
    model, params, config = a_pair(pad_id=5)
    want, _ = ref.forward(params, config, SRC, TGT_IN)
    got = model(torch.from_numpy(SRC), torch.from_numpy(TGT_IN))
    np.testing.assert_allclose(got.detach().numpy(), want, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("norm", CHOICES["norm"])
def test_encode_decode_and_steps_equal_the_reference(norm: str) -> None:
    model, params, config = a_pair(norm=norm, positions="rotary")
    memory, _ = ref.encode(params, config, SRC)
    want, _ = ref.decode(params, config, TGT_IN[:, :3], memory, ref.padding_mask(SRC, 0))
    unmasked, _ = ref.decode(params, config, TGT_IN[:, :3], memory)
    src, tgt_in = torch.from_numpy(SRC), torch.from_numpy(TGT_IN[:, :3])
    with torch.no_grad():
        got = model.decode(tgt_in, model.encode(src), torch.from_numpy(SRC != 0)[:, None, None])
        np.testing.assert_allclose(got.numpy(), want, rtol=1e-10, atol=1e-10)
        np.testing.assert_allclose(model.decode(tgt_in, model.encode(src)).numpy(), unmasked, rtol=1e-10, atol=1e-10)
        state = model.start(src)
        for t in range(3):
            logits, state = model.step(state, tgt_in[:, t])
            np.testing.assert_allclose(logits.numpy(), want[:, t], rtol=1e-10, atol=1e-10)


def test_recorded_attention_equals_the_reference() -> None:
    model, params, config = a_pair()
    recorded: dict[str, np.ndarray] = {}
    model(torch.from_numpy(SRC), torch.from_numpy(TGT_IN), record=lambda n, w: recorded.update({n: w.detach().numpy()}))
    _, cache = ref.forward(params, config, SRC, TGT_IN)
    want = {}
    for i in range(2):
        want[f"encoder.layers.{i}.self_attn"] = cache.encoder.layers[i].self_attn.sublayer.weights
        want[f"decoder.layers.{i}.self_attn"] = cache.decoder.layers[i].self_attn.sublayer.weights
        want[f"decoder.layers.{i}.cross_attn"] = cache.decoder.layers[i].cross_attn.sublayer.weights
    assert recorded.keys() == want.keys()
    for name in want:
        np.testing.assert_allclose(recorded[name], want[name], rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("share", CHOICES["share_embeddings"])
@pytest.mark.parametrize("stacks", [(2, 2), (0, 2), (2, 0)])
@pytest.mark.parametrize("norm", CHOICES["norm"])
def test_names_and_shapes_of_the_state_dict(norm: str, stacks: tuple[int, int], share: str) -> None:
    n_encoder_layers, n_decoder_layers = stacks
    for activation, positions in (("relu", "learned"), ("swiglu", "rotary")):
        model, params, config = a_pair(
            norm=norm,
            n_encoder_layers=n_encoder_layers,
            n_decoder_layers=n_decoder_layers,
            share_embeddings=share,
            activation=activation,
            positions=positions,
            generator_bias=True,
        )
        shapes = ref.parameter_shapes(config)
        assert {name: value.shape for name, value in params.items()} == shapes
        state = {name: value.numpy() for name, value in model.state_dict().items()}  # tied tensors under each name
        assert state.keys() >= shapes.keys()
        assert {name.split(".")[0] for name in state.keys() - shapes.keys()} <= {"tgt_embed", "generator"}


def test_parameters_made_by_the_reference_run_in_torch() -> None:
    model, _, config = a_pair(share_embeddings="decoder", norm="pre")
    params = ref.initialise(config, np.random.default_rng(3))
    missing, unexpected = model.load_state_dict({k: torch.from_numpy(v) for k, v in params.items()}, strict=False)
    assert missing == ["generator.weight"]
    assert not unexpected
    want, _ = ref.forward(params, config, SRC, TGT_IN)
    got = model(torch.from_numpy(SRC), torch.from_numpy(TGT_IN))
    np.testing.assert_allclose(got.detach().numpy(), want, rtol=1e-10, atol=1e-10)


def test_initialisations_have_the_same_spread() -> None:
    fields = dict(d_model=64, n_heads=2, d_ff=128, share_embeddings="none", src_vocab_size=501, norm="pre")
    fields |= dict(positions="learned", generator_bias=True, max_len=257)
    config = a_pair(**fields)[2]
    params = ref.initialise(config, np.random.default_rng(3))
    torch.manual_seed(3)
    state = Transformer(ModelConfig(**config)).state_dict()
    assert state.keys() == params.keys()
    for name, value in state.items():
        if value.dim() == 1:
            np.testing.assert_array_equal(value.numpy(), params[name])
        else:
            assert value.std().item() == pytest.approx(params[name].std(), rel=0.06), name
            assert abs(value).max().item() == pytest.approx(abs(params[name]).max(), rel=0.35), name
    assert not params["src_embed.weight"][0].any()
    assert not state["src_embed.weight"][0].any()


SENTENCES = [[5, 12, 7], [9], [4, 4, 10, 6, 8], [11, 1]]


def talkative_pair(seed: int, **fields: Any) -> tuple[Transformer, dict[str, np.ndarray], dict[str, Any]]:
    """A model that says various things and ends them at various lengths."""
    model, params, config = a_pair(seed, d_model=24, generator_bias=True, share_embeddings="none", **fields)
    for name, value in params.items():  # the arrays are the model's own memory
        if ".norm" in name or name == "generator.bias":
            value[:] = name.endswith("weight")
    params["generator.bias"][3] = 1.5
    return model, params, config


def padded(sentences: list[list[int]]) -> torch.Tensor:
    width = max(map(len, sentences)) + 1
    return torch.tensor([[*ids, 3, *[0] * (width - len(ids) - 1)] for ids in sentences])


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("positions", ["sinusoidal", "rotary"])
def test_greedy_search_equals_the_reference(seed: int, positions: str) -> None:
    model, params, config = talkative_pair(seed, positions=positions)
    max_lens = [len(ids) + 7 for ids in SENTENCES]
    got = greedy_search(model, padded(SENTENCES), max_lens, 0.6)
    for ids, max_len, hypothesis in zip(SENTENCES, max_lens, got, strict=True):
        (want,) = ref.translate(params, config, ids, ref.SearchSettings(0, 2, 3, 1, beam_size=1, alpha=0.6), max_len)
        assert hypothesis.ids == want.ids
        assert hypothesis.score == pytest.approx(want.score, rel=1e-10)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("beam_size", "alpha", "n_best"), [(2, 0.0, 1), (3, 0.6, 3), (5, 1.3, 2), (13, 0.6, 13)])
def test_beam_search_equals_the_reference(seed: int, beam_size: int, alpha: float, n_best: int) -> None:
    model, params, config = talkative_pair(seed, norm=["post", "pre"][seed % 2])
    max_lens = [len(ids) + 5 for ids in SENTENCES]
    got = beam_search(model, padded(SENTENCES), max_lens, beam_size, alpha, n_best)
    for ids, max_len, hypotheses in zip(SENTENCES, max_lens, got, strict=True):
        want = ref.translate(params, config, ids, ref.SearchSettings(0, 2, 3, 1, beam_size, alpha, n_best), max_len)
        assert [h.ids for h in hypotheses] == [h.ids for h in want]
        assert [h.score for h in hypotheses] == pytest.approx([h.score for h in want], rel=1e-10)


class PrefixModel:
    """Log-probabilities drawn anew for each source and prefix: search meets every kind of turn."""

    def __init__(self, seed: int) -> None:
        self.seed = seed

    def log_probs(self, src_id: int, ids: list[int]) -> np.ndarray:
        return ref.log_softmax(np.random.default_rng([self.seed, src_id, *ids]).normal(size=11) * 2)

    def start(self, src: torch.Tensor) -> "Prefixes":
        return Prefixes([(int(row[0]), []) for row in src])

    def step(self, state: "Prefixes", last_ids: torch.Tensor) -> tuple[torch.Tensor, "Prefixes"]:
        rows = [(s, [*ids, last]) for (s, ids), last in zip(state, last_ids.tolist(), strict=True)]
        return torch.from_numpy(np.array([self.log_probs(s, ids[1:]) for s, ids in rows])), Prefixes(rows)


class Prefixes(list[tuple[int, list[int]]]):
    def select(self, rows: torch.Tensor) -> "Prefixes":
        return Prefixes([self[row] for row in rows.tolist()])


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("alpha", [0.0, 0.6, 2.0])
@pytest.mark.parametrize("beam_size", [1, 2, 5])
@pytest.mark.parametrize("patience", [None, 0.4, 1.0, 2.0])
def test_search_equals_the_reference_on_random_languages(
    seed: int, beam_size: int, alpha: float, patience: float | None
) -> None:
    n_best = beam_size if patience is None else 1
    model = PrefixModel(seed)
    src, max_lens = torch.tensor([[5, 3], [7, 3], [4, 3], [9, 3], [6, 3]]), [1, 2, 5, 9, 13]
    if beam_size == 1:
        got = [[h] for h in greedy_search(model, src, max_lens, alpha)]
    else:
        got = beam_search(model, src, max_lens, beam_size, alpha, n_best, patience=patience)
    for src_id, max_len, hypotheses in zip(src[:, 0].tolist(), max_lens, got, strict=True):

        def next_log_probs(ids: list[int], src_id: int = src_id) -> np.ndarray:
            return model.log_probs(src_id, ids)

        settings = ref.SearchSettings(0, 2, 3, 1, beam_size, alpha, n_best, patience)
        if beam_size == 1:
            want = [ref.greedy_search(next_log_probs, max_len, settings)]
        else:
            want = ref.beam_search(next_log_probs, max_len, settings)
        assert [h.ids for h in hypotheses] == [h.ids for h in want]
        assert [h.score for h in hypotheses] == pytest.approx([h.score for h in want], rel=1e-10)
