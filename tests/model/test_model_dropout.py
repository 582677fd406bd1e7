"""Dropout in the model: where it stands, how often it strikes, and that evaluation knows nothing of it."""

import pytest
import torch
from torch import Tensor

from dragoman.model.dropout import Dropout, dropout
from dragoman.model.transformer import Transformer
from model_variants import CHOICES, Build

SRC = torch.tensor([[4, 7, 6, 9, 3], [8, 3, 0, 0, 0]])
TGT = torch.tensor([[2, 6, 8, 9, 1, 11, 4], [2, 11, 10, 0, 0, 0, 0]])
ALL = dict(dropout=0.3, attention_dropout=0.2, activation_dropout=0.1)


def test_evaluation_is_deterministic_and_as_without_dropout(build: Build) -> None:
    model, plain = build(**ALL), build()
    one = model(SRC, TGT)
    assert torch.equal(one, model(SRC, TGT))
    assert torch.equal(one, plain(SRC, TGT))


def test_without_dropout_training_is_as_evaluation(build: Build) -> None:
    model = build()
    assert torch.equal(model.train()(SRC, TGT), model.eval()(SRC, TGT))


@pytest.mark.parametrize("field", ALL)
def test_each_kind_of_dropout_strikes_in_training(build: Build, field: str) -> None:
    model = build(**{**dict.fromkeys(ALL, 0.0), field: 0.3}).train()
    torch.manual_seed(0)
    one, two = model(SRC, TGT), model(SRC, TGT)
    assert not torch.allclose(one, two)
    torch.manual_seed(0)
    assert torch.equal(model(SRC, TGT), one)


@pytest.mark.parametrize("positions", CHOICES["positions"])
@pytest.mark.parametrize("norm", ["post", "pre"])
def test_dropout_stands_where_the_paper_puts_it(
    build: Build, norm: str, positions: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On embedding + position, on each sub-layer's output, and by choice on attention weights and hidden units."""
    calls: list[tuple[float, tuple[int, ...]]] = []

    def watched(x: Tensor, p: float) -> Tensor:
        calls.append((p, tuple(x.shape)))
        return x

    monkeypatch.setattr("dragoman.model.dropout.dropout", watched)
    model = build(**ALL, norm=norm, positions=positions, n_encoder_layers=1, n_decoder_layers=1).train()
    model(SRC, TGT)
    assert calls == [
        (0.3, (2, 5, 12)),  # source embedding + position
        (0.2, (2, 3, 5, 5)), (0.3, (2, 5, 12)),  # encoder self-attention: weights, output
        (0.1, (2, 5, 23)), (0.3, (2, 5, 12)),  # feed-forward: hidden units, output
        (0.3, (2, 7, 12)),  # target embedding + position
        (0.2, (2, 3, 7, 7)), (0.3, (2, 7, 12)),  # decoder self-attention
        (0.2, (2, 3, 7, 5)), (0.3, (2, 7, 12)),  # cross-attention
        (0.1, (2, 7, 23)), (0.3, (2, 7, 12)),  # feed-forward
    ]  # fmt: skip


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_dropping_every_sub_layer_leaves_the_residual(build: Build, norm: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Dropout comes before the add: with nothing left of a sub-layer its input goes through unharmed."""
    model = build(dropout=0.3, norm=norm, n_encoder_layers=1).train()
    monkeypatch.setattr("dragoman.model.dropout.dropout", lambda x, p: x * 0 if p else x)
    layer = model.encoder.layers[0]
    x = torch.randn(2, 5, 12, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    want = x if norm == "pre" else layer.norm2(layer.norm1(x))
    assert torch.equal(layer(x, None, None), want)


@pytest.mark.parametrize("p", [0.1, 0.3, 0.5])
def test_training_drops_at_the_right_rate_and_keeps_the_mean(p: float) -> None:
    torch.manual_seed(1)
    n = 200_003
    y = Dropout(p)(torch.ones(n))
    sigma = (p * (1 - p) / n) ** 0.5
    assert abs((y == 0).double().mean().item() - p) < 5 * sigma + 1 / 65536
    assert abs(y.double().mean().item() - 1) < 5 * sigma / (1 - p) + 1e-6
    torch.testing.assert_close(y[y != 0], torch.full_like(y[y != 0], 1 / (1 - p)), rtol=1e-4, atol=0)


def test_the_module_and_the_function_draw_the_same(build: Build) -> None:
    x = torch.randn(7, 11, generator=torch.Generator().manual_seed(0))
    torch.manual_seed(3)
    want = dropout(x, 0.4)
    torch.manual_seed(3)
    assert torch.equal(Dropout(0.4)(x), want)
    assert Dropout(0.4).eval()(x) is x


def test_the_mean_of_many_trainings_passes_is_near_evaluation(build: Build) -> None:
    """On the sum of embedding and position, the one place where nothing nonlinear follows."""
    model: Transformer = build(dropout=0.4, n_decoder_layers=0, n_encoder_layers=1).train()
    torch.manual_seed(0)
    x = model.src_embed(SRC)
    many = torch.stack([model.add_positions(x, None, 0)[0] for _ in range(2000)]).mean(0)
    want = model.eval().add_positions(x, None, 0)[0]
    sigma = want.abs() * (0.4 / 0.6 / 2000) ** 0.5
    assert ((many - want).abs() <= 5 * sigma + 1e-4).all()
