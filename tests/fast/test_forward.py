"""The fused forward pass of training against the plain model, and its pieces against torch's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from dragoman.config import ModelConfig
from dragoman.data.batching import collate
from dragoman.errors import ConfigError
from dragoman.fast import training_attention
from dragoman.fast.forward import features
from dragoman.fast.projection import ROWS, project
from dragoman.fast.training_attention import Layout, padded_keys, written_out
from dragoman.model.attention import attend
from dragoman.model.dropout import add_dropped
from dragoman.model.transformer import Transformer
from model_variants import FACTORS, VARIANTS, fields_of, label, pairwise

SRC = [[4, 5, 6], [9], [4, 4, 8, 7, 6, 5, 11], [6, 7, 8, 9, 10]]
TGT = [[7, 8], [10, 11, 12, 4, 5, 6, 7, 8, 9], [5], [11, 12, 4]]
BATCH = collate(SRC, TGT, range(4))
REAL = BATCH.tgt_out != 0

PADDING = ("another pad_id",)  # the batch above is padded with 0
FIELDS = [fields for name, fields in VARIANTS.items() if name not in PADDING and fields.get("n_encoder_layers", 2)]


def a_model(dtype: torch.dtype = torch.float64, **changes: Any) -> Transformer:
    torch.manual_seed(3)
    sizes = dict(d_model=8, d_ff=14, n_heads=2, n_encoder_layers=2, n_decoder_layers=2, dropout=0.0)
    model = Transformer(ModelConfig(**{**sizes, "src_vocab_size": 13, "tgt_vocab_size": 13, **changes}))
    for parameter in model.parameters():  # biases are no zeros in a trained model
        torch.nn.init.normal_(parameter, std=0.5)
    return model.to(dtype).train()


def gradients(model: Transformer, found: Tensor) -> list[Tensor]:
    weights = torch.randn(found.shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    grads = torch.autograd.grad((found.double() * weights).sum(), list(model.parameters()), allow_unused=True)
    return [torch.zeros_like(p) if g is None else g for p, g in zip(model.parameters(), grads, strict=True)]


@pytest.mark.parametrize("kernel", ["written out", "fused"])
@pytest.mark.parametrize("changes", [*FIELDS, *map(fields_of, pairwise(FACTORS))], ids=label)
def test_features_and_gradients_are_those_of_the_plain_model(
    changes: dict[str, Any], kernel: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if kernel == "fused":
        monkeypatch.setattr(training_attention, "LONG", 0)
    model = a_model(**changes)
    want = model.features(BATCH.src, BATCH.tgt_in)[REAL]
    got = features(model, BATCH.src, BATCH.tgt_in, torch.float64)[REAL]
    torch.testing.assert_close(got, want, rtol=1e-11, atol=1e-11)
    for mine, plain in zip(gradients(model, got), gradients(model, want), strict=True):
        torch.testing.assert_close(mine, plain, rtol=1e-9, atol=1e-9)


def test_bf16_stays_as_near_to_float64_as_autocast_does() -> None:
    model = a_model(torch.float32, d_model=64, d_ff=128)
    for parameter in model.parameters():
        parameter.data.mul_(0.3)
    with torch.autocast("cpu", torch.bfloat16):
        autocast = model.features(BATCH.src, BATCH.tgt_in)[REAL]
    mine = features(model, BATCH.src, BATCH.tgt_in, torch.bfloat16)[REAL]
    assert mine.dtype == torch.bfloat16
    exact = features(model.double(), BATCH.src, BATCH.tgt_in, torch.float64)[REAL]
    errors = [(found.double() - exact).norm().item() for found in (mine, autocast)]
    assert 0 < errors[0] < 2 * errors[1]
    assert errors[0] < 0.02 * exact.norm().item()


@pytest.mark.parametrize("lacks", ["encoder", "decoder"])
def test_a_model_that_lacks_a_stack_says_so(lacks: str) -> None:
    model = a_model(**{f"n_{lacks}_layers": 0})
    with pytest.raises(ConfigError, match=f"this model has no {lacks}"):
        features(model, BATCH.src, BATCH.tgt_in, torch.float64)


def test_a_language_model_goes_its_own_way() -> None:
    model = a_model(n_encoder_layers=0)
    want = model.features(None, BATCH.tgt_in)
    torch.testing.assert_close(features(model, None, BATCH.tgt_in, torch.float64), want)


CHANGES: dict[str, Callable[[Any], Any]] = {
    "another module": lambda model: setattr(model.encoder.layers[1], "norm1", torch.nn.Identity()),
    "another dropout": lambda model: setattr(model.decoder.layers[0], "dropout", torch.nn.Hardtanh()),
    "a method of a layer": lambda model: setattr(model.encoder.layers[0], "forward", lambda x, *_: 2 * x),
    "a method of the model": lambda model: setattr(model, "features", lambda _, tgt_in: model.tgt_embed(tgt_in)),
    "a hook behind": lambda model: model.decoder.layers[1].register_forward_hook(lambda *of: (2 * of[2][0], of[2][1])),
    "a hook before": lambda model: model.encoder.layers[0].norm2.register_forward_pre_hook(lambda _, of: of[0].cos()),
}
"""What a function ``build`` may do to a model."""


@pytest.mark.parametrize("name", CHANGES)
def test_a_model_with_a_changed_module_goes_its_own_way(name: str) -> None:
    model, unchanged = a_model(), a_model()
    CHANGES[name](model)
    want = model.features(BATCH.src, BATCH.tgt_in)[REAL]
    assert not torch.allclose(want, unchanged.features(BATCH.src, BATCH.tgt_in)[REAL])
    torch.testing.assert_close(features(model, BATCH.src, BATCH.tgt_in, torch.float64)[REAL], want)


def test_dropout_is_everywhere_where_the_plain_model_has_it() -> None:
    draws = 600
    src, tgt_in = (ids.repeat(draws, 1) for ids in (BATCH.src, BATCH.tgt_in))  # each copy draws for itself
    for name in ("dropout", "attention_dropout", "activation_dropout"):
        model = a_model(**{name: 0.4})
        # with all else equal the mean over many draws comes to that of the plain model
        found = []
        for function in (
            lambda m=model: features(m, src, tgt_in, torch.float64),
            lambda m=model: m.features(src, tgt_in),
        ):
            torch.manual_seed(5)
            with torch.no_grad():
                drawn = function()[REAL.repeat(draws, 1)].view(draws, -1, 8)
            assert drawn.std(0).max() > 0.01, name
            found.append((drawn.mean(0), drawn.std(0)))
        (mine, spread), (plain, spread_plain) = found
        far = (mine - plain).abs() / (spread / draws**0.5 + 1e-9)
        assert far.max() < 6.5, name  # standard errors of a difference, among a hundred numbers
        torch.testing.assert_close(spread.mean(), spread_plain.mean(), rtol=0.05, atol=0)


def test_cells_are_rounded_up_so_that_shapes_come_again() -> None:
    class Shapes(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            if getattr(func, "__name__", "") == "native_layer_norm":
                sizes.add(args[0].size(0))
            return func(*args, **(kwargs or {}))

    sizes: set[int] = set()
    with Shapes():
        features(a_model(), BATCH.src, BATCH.tgt_in, torch.float64)
    assert sizes == {ROWS}


@pytest.mark.parametrize("relu", [False, True])
@pytest.mark.parametrize("bias", [False, True])
def test_one_product_for_several_layers(bias: bool, relu: bool) -> None:
    torch.manual_seed(0)
    x = torch.randn(7, 5, dtype=torch.float64, requires_grad=True)
    weights = [torch.randn(n, 5, dtype=torch.float64, requires_grad=True) for n in (3, 1, 4)]
    biases = [torch.randn(len(w), dtype=torch.float64, requires_grad=True) if bias else None for w in weights]
    assert torch.autograd.gradcheck(lambda x, *w: project(x, w, biases, relu), (x, *weights))
    want = torch.cat([F.linear(x, w, b) for w, b in zip(weights, biases, strict=True)], -1)
    got = project(x, weights, biases, relu)
    torch.testing.assert_close(got, want.relu() if relu else want)
    parameters = [x, *weights, *(b for b in biases if b is not None)]
    side = torch.randn_like(got)
    for a, b in zip(
        torch.autograd.grad((got * side).sum(), parameters),
        torch.autograd.grad(((want.relu() if relu else want) * side).sum(), parameters),
        strict=True,
    ):
        torch.testing.assert_close(a, b)


@pytest.mark.parametrize("short", [0, 96], ids=["in the dtype given", "in float32"])
@pytest.mark.parametrize("cross", [False, True])
def test_attention_written_out_is_eq_1(cross: bool, short: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(training_attention, "SHORT", short)
    torch.manual_seed(0)
    n_rows, n_queries, n_keys = 4, 6, 6 if not cross else 19
    queries = torch.randn(n_rows * n_queries + 2, 2 * 3 + (0 if cross else 16), dtype=torch.float64, requires_grad=True)
    keys_values = torch.randn(n_rows * n_keys, 16, dtype=torch.float64, requires_grad=True) if cross else None
    seen = torch.rand(n_rows, n_keys) < 0.7
    seen[:, 0] = True
    bias = torch.full((n_rows, 2, 1, padded_keys(n_keys)), torch.finfo(torch.float32).min)
    bias[..., :n_keys].masked_fill_(seen[:, None, None], 0.0)

    got = written_out(queries, keys_values, Layout(n_rows, n_queries, n_keys, 2, 3, 5), bias.flatten(0, 1), 0.0)
    if keys_values is None:
        q, k, v = queries[: n_rows * n_queries].split([6, 6, 10], 1)
    else:
        q, (k, v) = queries[: n_rows * n_queries], keys_values.split([6, 10], 1)
    q, k, v = (
        part.reshape(n_rows, length, 2, -1).transpose(1, 2)
        for part, length in ((q, n_queries), (k, n_keys), (v, n_keys))
    )
    want = attend(q, k, v, seen[:, None, None])[0].transpose(1, 2).reshape(n_rows * n_queries, 10)
    torch.testing.assert_close(got[: len(want)], want)
    assert got[len(want) :].eq(0).all()
    side = torch.randn_like(want)
    inputs = [queries] if keys_values is None else [queries, keys_values]
    for a, b in zip(
        torch.autograd.grad((got[: len(want)] * side).sum(), inputs),
        torch.autograd.grad((want * side).sum(), inputs),
        strict=True,
    ):
        torch.testing.assert_close(a, b)


def test_a_residual_and_its_dropout_in_one_pass() -> None:
    torch.manual_seed(0)
    x, y = (torch.randn(300, 40, requires_grad=True) for _ in range(2))
    out = add_dropped(x, y, 0.3)
    added = (out - x).detach()
    dropped = added.abs() < 1e-6
    assert 0.28 < dropped.double().mean() < 0.32
    scale = 65536 / (65536 - round(0.3 * 65536))
    torch.testing.assert_close(added[~dropped], (y.detach() * scale)[~dropped], rtol=1e-4, atol=1e-5)
    side = torch.randn_like(out)
    d_x, d_y = torch.autograd.grad((out * side).sum(), [x, y])
    torch.testing.assert_close(d_x, side)
    torch.testing.assert_close(d_y, torch.where(dropped, 0.0, side * scale))
    torch.testing.assert_close(add_dropped(x, y, 0.0), x + y)


def test_a_surprise_too_great_for_a_probability_is_counted_in_full() -> None:
    from dragoman.fast.loss import Targets, chunked_loss

    features_ = torch.tensor([[[200.0, 0.0]]], requires_grad=True)
    weight = torch.tensor([[0.0, 0.0], [1.0, 0.0], [-1.0, 0.0]])
    smoothed, plain = chunked_loss(features_, weight, None, Targets(torch.tensor([[2]]), 0, 0.0))
    assert plain.item() == pytest.approx(400.0)
    assert smoothed.item() == pytest.approx(400.0)
