"""Tokens and positions become vectors: sections 3.4 and 3.5 of the paper."""

import math

import numpy as np
from numpy.typing import DTypeLike

from .arrays import Array, Ids


def embed(weight: Array, ids: Ids, scale: bool = True) -> Array:
    """Look up the row of each token, times ``sqrt(d_model)`` (section 3.4).

    Args:
        weight: ``(V, d_model)``.
        ids: ``(B, L)``.
        scale: False leaves the factor out.

    Returns:
        ``(B, L, d_model)``.
    """
    x = weight[ids]
    return x * math.sqrt(weight.shape[1]) if scale else x


def embed_backward(weight: Array, ids: Ids, pad_id: int, d_x: Array, scale: bool = True) -> Array:
    """Each row collects the gradients of the places where its token stands; the row of padding stays as it is."""
    d_weight = np.zeros_like(weight)  # (V, d_model)
    np.add.at(d_weight, ids, d_x * math.sqrt(weight.shape[1]) if scale else d_x)
    d_weight[pad_id] = 0
    return d_weight


def position_angles(length: int, width: int) -> Array:
    """``pos / 10000^(2i / width)`` for the ``width / 2`` pairs of channels: ``(length, width // 2)``, float64."""
    pos = np.arange(length, dtype=np.float64)[:, None]  # (length, 1)
    even = np.arange(0, width, 2, dtype=np.float64)  # 2i, (width // 2)
    angles: Array = pos / 10000.0 ** (even / width)
    return angles


def sinusoidal_positions(length: int, d_model: int, dtype: DTypeLike = np.float64) -> Array:
    """Positional encoding, section 3.5: sines on even channels, cosines on odd ones, ``(length, d_model)``."""
    angles = position_angles(length, d_model)
    table: Array = np.empty((length, d_model))
    table[:, 0::2] = np.sin(angles)
    table[:, 1::2] = np.cos(angles)
    return table.astype(dtype)


def learned_positions(weight: Array, length: int) -> Array:
    """The first ``length`` rows of a learned table (section 3.5, Table 3 row E): ``(length, d_model)``.

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
    """Each row collects the gradient of its position over the batch; ``d_x`` is ``(B, L, d_model)``."""
    d_weight = np.zeros_like(weight)  # (max_len, d_model)
    d_weight[: d_x.shape[1]] = d_x.sum(axis=0)
    return d_weight


def rotate(x: Array) -> Array:
    """Rotary positions, Eq. (15) of RoFormer (https://arxiv.org/abs/2104.09864).

    Each pair of channels ``(2i, 2i + 1)`` is a point of the plane, turned by ``pos * 10000^(-2i / d_k)``, so that the
    product of a query with a key depends on their distance alone: ``(..., L, d_k)`` -> ``(..., L, d_k)``.
    """
    return _turn(x, position_angles(*x.shape[-2:]))


def rotate_backward(d_y: Array) -> Array:
    """The transpose of a rotation is the rotation back."""
    return _turn(d_y, -position_angles(*d_y.shape[-2:]))


def _turn(x: Array, angles: Array) -> Array:
    # x (..., L, d_k)  angles (L, d_k // 2)
    cos, sin = np.cos(angles).astype(x.dtype), np.sin(angles).astype(x.dtype)
    x0, x1 = x[..., 0::2], x[..., 1::2]
    y = np.empty_like(x)
    y[..., 0::2] = x0 * cos - x1 * sin
    y[..., 1::2] = x0 * sin + x1 * cos
    return y
