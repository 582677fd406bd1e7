"""What the tests of the reference share. Sizes are distinct primes, or twice one, so that no swapped axis passes."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

Array = NDArray[Any]
AssertGradient = Callable[[Callable[[Array], Array], Array, Array, Array], None]


def assert_gradient(f: Callable[[Array], Array], x: Array, d_out: Array, d_x: Array) -> None:
    """Hold ``d_x`` to central differences of ``sum(d_out * f(x))``, one element of ``x`` at a time."""
    want = np.empty_like(x)
    for index in np.ndindex(x.shape):
        step = np.zeros_like(x)
        step[index] = 1e-5
        want[index] = ((f(x + step) - f(x - step)) * d_out).sum() / 2e-5
    assert d_x.shape == x.shape
    np.testing.assert_allclose(d_x, want, rtol=1e-7, atol=1e-8)


@pytest.fixture(name="assert_gradient")
def _assert_gradient() -> AssertGradient:
    return assert_gradient


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(7)


@pytest.fixture
def config() -> dict[str, Any]:
    return dict(
        d_model=6, n_heads=3, d_ff=11, n_encoder_layers=2, n_decoder_layers=2, d_k=None, d_v=None,
        norm="post", activation="relu", positions="sinusoidal", share_embeddings="all", scale_embeddings=True,
        attention_bias=True, generator_bias=False, norm_eps=1e-5, max_len=17, pad_id=0, eos_id=3,
        src_vocab_size=13, tgt_vocab_size=13,
    )  # fmt: skip
