"""Vectors of tokens and positions: sections 3.4 and 3.5 of the paper."""

import math

import numpy as np
from numpy.typing import DTypeLike

from .arrays import Array, Ids


def embed(weight: Array, ids: Ids, scale: bool = True) -> Array:
    """Look up the embedding of each token, times ``sqrt(d_model)`` (section 3.4).

    Args:
        weight: ``(V, d_model)``.
        ids: ``(B, L)``.
        scale: False omits the factor.

    Returns:
        ``(B, L, d_model)``.
    """
    x = weight[ids]
    return x * math.sqrt(weight.shape[1]) if scale else x


def embed_backward(weight: Array, ids: Ids, pad_id: int, d_x: Array, scale: bool = True) -> Array:
    """Return the gradient of ``weight``: each row is the sum over the places where its token occurs; padding's is 0."""
    d_weight = np.zeros_like(weight)  # (V, d_model)
    np.add.at(d_weight, ids, d_x * math.sqrt(weight.shape[1]) if scale else d_x)
    d_weight[pad_id] = 0
    return d_weight


def position_angles(length: int, width: int) -> Array:
    """Return ``pos / 10000^(2i / width)`` for each pair of channels: ``(length, width // 2)``, float64."""
    pos = np.arange(length, dtype=np.float64)[:, None]  # (length, 1)
    even = np.arange(0, width, 2, dtype=np.float64)  # 2i, (width // 2)
    angles: Array = pos / 10000.0 ** (even / width)
    return angles


def sinusoidal_positions(length: int, d_model: int, dtype: DTypeLike = np.float64) -> Array:
    """Return the positional encoding ``(length, d_model)``, section 3.5: even channels are sines, odd ones cosines."""
    angles = position_angles(length, d_model)
    table: Array = np.empty((length, d_model))
    table[:, 0::2] = np.sin(angles)
    table[:, 1::2] = np.cos(angles)
    return table.astype(dtype)


def learned_positions(weight: Array, length: int) -> Array:
    """Return the first ``length`` rows of a learned table (section 3.5, Table 3 row E): ``(length, d_model)``.

    Args:
        weight: ``(max_len, d_model)``.
        length: At most ``max_len``.

    Raises:
        ValueError: The sequence is longer than the table.
    """
    if length > len(weight):
        raise ValueError(f"{length} positions, but the learned table ends at max_len = {len(weight)}")
    return weight[:length]


def learned_positions_backward(weight: Array, d_x: Array) -> Array:
    """Return the gradient of the table: each row is the sum over the batch of ``d_x`` (B, L, d_model)."""
    d_weight = np.zeros_like(weight)  # (max_len, d_model)
    d_weight[: d_x.shape[1]] = d_x.sum(axis=0)
    return d_weight


def rotate(x: Array) -> Array:
    """Apply rotary positions, Eq. (15) of RoFormer (https://arxiv.org/abs/2104.09864).

    Each pair of channels ``(2i, 2i + 1)`` is a point of the plane, rotated by ``pos * 10000^(-2i / d_k)``. So a
    product of
    a query with a key depends only on their distance: ``(..., L, d_k)`` -> ``(..., L, d_k)``.
    """
    return _turn(x, position_angles(*x.shape[-2:]))


def rotate_backward(d_y: Array) -> Array:
    """Return the gradient of ``x``: the transpose of a rotation rotates back."""
    return _turn(d_y, -position_angles(*d_y.shape[-2:]))


def _turn(x: Array, angles: Array) -> Array:
    """Rotate the channel pairs of ``x`` (..., L, d_k) by ``angles`` (L, d_k // 2)."""
    cos, sin = np.cos(angles).astype(x.dtype), np.sin(angles).astype(x.dtype)
    x0, x1 = x[..., 0::2], x[..., 1::2]
    y = np.empty_like(x)
    y[..., 0::2] = x0 * cos - x1 * sin
    y[..., 1::2] = x0 * sin + x1 * cos
    return y
