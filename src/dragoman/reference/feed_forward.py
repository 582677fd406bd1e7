"""The position-wise feed-forward network, section 3.3 of the paper, and its later activations."""

import math
from typing import NamedTuple

import numpy as np

from .arrays import Array, Grads, Params, child, summed, under
from .linear import linear, linear_backward

_erf = np.vectorize(math.erf, otypes=[np.float64])


def relu(x: Array) -> Array:
    """Return ``max(0, x)`` elementwise."""
    return np.maximum(x, 0)


def relu_backward(x: Array, d_y: Array) -> Array:
    """Return the gradient of ``x``: the slope is 1 where ``x > 0``, else 0."""
    return np.where(x > 0, d_y, 0)


def gelu(x: Array) -> Array:
    """Return ``x Phi(x)``, where Phi is the normal distribution function, exact (https://arxiv.org/abs/1606.08415)."""
    return x * _normal_cdf(x)


def gelu_backward(x: Array, d_y: Array) -> Array:
    """Return the gradient of ``x``: the slope is ``Phi(x) + x phi(x)``."""
    density: Array = np.exp(-0.5 * x * x) / math.sqrt(2 * math.pi)
    return d_y * (_normal_cdf(x) + x * density)


def _normal_cdf(x: Array) -> Array:
    erf: Array = _erf(x / math.sqrt(2)).astype(x.dtype)
    return 0.5 * (1 + erf)


def swish(x: Array) -> Array:
    """Return ``x sigmoid(x)`` (https://arxiv.org/abs/1710.05941)."""
    return x * _sigmoid(x)


def swish_backward(x: Array, d_y: Array) -> Array:
    """Return the gradient of ``x``: the slope is ``s + x s (1 - s)`` with ``s = sigmoid(x)``."""
    s = _sigmoid(x)
    return d_y * (s + x * s * (1 - s))


def _sigmoid(x: Array) -> Array:
    tanh: Array = np.tanh(0.5 * x)  # cannot overflow, unlike exp(-x)
    return 0.5 * (1 + tanh)


def activate(x: Array, activation: str) -> Array:
    """Apply the activation function of that name elementwise."""
    if activation == "relu":
        return relu(x)
    if activation == "gelu":
        return gelu(x)
    if activation == "swish":
        return swish(x)
    raise ValueError(f"activation = {activation!r} is unknown: use relu, gelu or swish")


def activate_backward(x: Array, d_y: Array, activation: str) -> Array:
    """Return the gradient of ``x`` for :func:`activate`."""
    if activation == "relu":
        return relu_backward(x, d_y)
    if activation == "gelu":
        return gelu_backward(x, d_y)
    if activation == "swish":
        return swish_backward(x, d_y)
    raise ValueError(f"activation = {activation!r} is unknown: use relu, gelu or swish")


class FeedForwardCache(NamedTuple):
    """Values that :func:`feed_forward_backward` needs."""

    x: Array  # (B, L, d_model)
    inner: Array  # w_1 x, (B, L, d_ff)
    gate: Array | None  # w_3 x, (B, L, d_ff), in SwiGLU only
    hidden: Array  # input of w_2, (B, L, d_ff)


def feed_forward(p: Params, x: Array, activation: str = "relu") -> tuple[Array, FeedForwardCache]:
    """Compute Eq. (2): ``max(0, x W_1 + b_1) W_2 + b_2``, or with another activation instead of the maximum.

    SwiGLU (https://arxiv.org/abs/2002.05202) is ``(swish(x W_3 + b_3) * (x W_1 + b_1)) W_2 + b_2``.

    Args:
        p: ``w_1 [w_3] (d_ff, d_model)``, ``w_2 (d_model, d_ff)``.
        x: ``(B, L, d_model)``.
        activation: ``"relu"``, ``"gelu"``, ``"swish"`` or ``"swiglu"``.

    Returns:
        ``(B, L, d_model)`` and the cache.
    """
    inner = linear(child(p, "w_1"), x)  # (B, L, d_ff)
    gate = linear(child(p, "w_3"), x) if activation == "swiglu" else None
    hidden = activate(inner, activation) if gate is None else swish(gate) * inner
    return linear(child(p, "w_2"), hidden), FeedForwardCache(x, inner, gate, hidden)


def feed_forward_backward(
    p: Params, cache: FeedForwardCache, d_y: Array, activation: str = "relu"
) -> tuple[Array, Grads]:
    """Return the gradients of ``x`` and of the parameters."""
    d_hidden, d_w_2 = linear_backward(child(p, "w_2"), cache.hidden, d_y)
    if cache.gate is None:
        d_inner = activate_backward(cache.inner, d_hidden, activation)
        d_x, d_w_1 = linear_backward(child(p, "w_1"), cache.x, d_inner)
        return d_x, summed(under("w_1", d_w_1), under("w_2", d_w_2))
    d_inner = d_hidden * swish(cache.gate)
    d_gate = swish_backward(cache.gate, d_hidden * cache.inner)
    d_x_1, d_w_1 = linear_backward(child(p, "w_1"), cache.x, d_inner)
    d_x_3, d_w_3 = linear_backward(child(p, "w_3"), cache.x, d_gate)
    return d_x_1 + d_x_3, summed(under("w_1", d_w_1), under("w_2", d_w_2), under("w_3", d_w_3))
