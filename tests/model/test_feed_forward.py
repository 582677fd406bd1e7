"""Eq. 2 and its variants, against the formulas in float64."""

import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from dragoman.config import ModelConfig
from dragoman.model.feed_forward import FeedForward
from model_variants import ELEMENTWISE

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": lambda x: (x + x.abs()) / 2,
    "gelu": lambda x: x * (1 + torch.erf(x / math.sqrt(2))) / 2,
    "swish": lambda x: x / (1 + (-x).exp()),
}


def a_feed_forward(activation: str) -> tuple[FeedForward, Tensor]:
    torch.manual_seed(0)
    config = ModelConfig(
        src_vocab_size=7, tgt_vocab_size=7, d_model=14, n_heads=2, d_ff=29, activation=activation, dropout=0.0
    )
    return FeedForward(config).double(), torch.randn(3, 5, 14, dtype=torch.float64)


@pytest.mark.parametrize("activation", ELEMENTWISE)
def test_the_activation_stands_between_two_projections(activation: str) -> None:
    ffn, x = a_feed_forward(activation)
    hidden = ACTIVATIONS[activation](x @ ffn.w_1.weight.T + ffn.w_1.bias)
    torch.testing.assert_close(ffn(x), hidden @ ffn.w_2.weight.T + ffn.w_2.bias, rtol=1e-12, atol=1e-14)
    assert ffn.w_3 is None


def test_swiglu_multiplies_by_a_gate() -> None:
    ffn, x = a_feed_forward("swiglu")
    assert ffn.w_3 is not None
    gate = ACTIVATIONS["swish"](x @ ffn.w_3.weight.T + ffn.w_3.bias)
    hidden = gate * (x @ ffn.w_1.weight.T + ffn.w_1.bias)
    torch.testing.assert_close(ffn(x), hidden @ ffn.w_2.weight.T + ffn.w_2.bias, rtol=1e-12, atol=1e-14)
