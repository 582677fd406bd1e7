"""Attention: section 3.2 of the paper."""

import math
from typing import NamedTuple

import numpy as np

from .arrays import Array, Grads, Mask, Params, child, summed, under
from .embedding import rotate, rotate_backward
from .linear import linear, linear_backward


def masked_softmax(scores: Array, mask: Mask) -> Array:
    """Compute the softmax over the keys that each query may attend to.

    Args:
        scores: ``(..., Q, K)``.
        mask: Broadcastable to ``(..., Q, K)``; True = may attend.

    Returns:
        ``(..., Q, K)``; a query that may attend nowhere gets zeros, never NaN.
    """
    scores = np.where(mask, scores, -math.inf)
    peak = scores.max(axis=-1, keepdims=True)  # (..., Q, 1), subtracted so that exp cannot overflow
    peak = np.where(np.isfinite(peak), peak, 0)
    exps: Array = np.exp(scores - peak)
    total = exps.sum(axis=-1, keepdims=True)
    return exps / np.where(total > 0, total, 1)


def masked_softmax_backward(weights: Array, d_weights: Array) -> Array:
    """Return the gradient of the scores, ``d_s_j = w_j (d_w_j - sum_k w_k d_w_k)``; it is zero where ``w`` is."""
    mean: Array = (weights * d_weights).sum(axis=-1, keepdims=True)
    return weights * (d_weights - mean)


def attend(q: Array, k: Array, v: Array, mask: Mask) -> tuple[Array, Array]:
    """Compute scaled dot-product attention, Eq. (1): ``softmax(q k^T / sqrt(d_k)) v``.

    Args:
        q: Queries, ``(B, H, Q, d_k)``.
        k: Keys, ``(B, H, K, d_k)``.
        v: Values, ``(B, H, K, d_v)``.
        mask: Broadcastable to ``(B, H, Q, K)``; True = may attend.

    Returns:
        The context ``(B, H, Q, d_v)`` and the weights ``(B, H, Q, K)``. A row of weights sums to 1, or is all 0
        where ``mask`` allows no key.
    """
    scores = q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1])  # (B, H, Q, K)
    weights = masked_softmax(scores, mask)
    return weights @ v, weights


def attend_backward(q: Array, k: Array, v: Array, weights: Array, d_context: Array) -> tuple[Array, Array, Array]:
    """Return the gradients of ``q``, ``k`` and ``v``, in their shapes."""
    d_v = weights.swapaxes(-1, -2) @ d_context  # (B, H, K, d_v)
    d_weights = d_context @ v.swapaxes(-1, -2)  # (B, H, Q, K)
    d_scores = masked_softmax_backward(weights, d_weights) / math.sqrt(q.shape[-1])
    return d_scores @ k, d_scores.swapaxes(-1, -2) @ q, d_v


def split_heads(x: Array, n_heads: int) -> Array:
    """Split the channels between the heads: ``(B, L, H * width)`` -> ``(B, H, L, width)``."""
    B, L, width = x.shape
    return x.reshape(B, L, n_heads, width // n_heads).swapaxes(1, 2)


def merge_heads(x: Array) -> Array:
    """Concatenate the heads: ``(B, H, L, width)`` -> ``(B, L, H * width)``; the inverse of :func:`split_heads`."""
    B, H, L, width = x.shape
    return x.swapaxes(1, 2).reshape(B, L, H * width)


class AttentionCache(NamedTuple):
    """Values that :func:`multi_head_attention_backward` needs; ``weights`` are also what figures show."""

    x: Array  # (B, Q, d_model)
    memory: Array  # (B, K, d_model)
    q: Array  # (B, H, Q, d_k), rotated if positions are rotary
    k: Array  # (B, H, K, d_k), likewise
    v: Array  # (B, H, K, d_v)
    weights: Array  # (B, H, Q, K)
    heads: Array  # (B, Q, H * d_v), concatenated


def multi_head_attention(
    p: Params, x: Array, memory: Array, mask: Mask, n_heads: int, rotary: bool = False
) -> tuple[Array, AttentionCache]:
    """Compute multi-head attention, section 3.2.2: ``concat(head_1, ..., head_H) W_o``; each head is an :func:`attend`.

    Args:
        p: ``w_q w_k (n_heads * d_k, d_model)``, ``w_v (n_heads * d_v, d_model)``, ``w_o (d_model, n_heads * d_v)``.
        x: Input of the queries, ``(B, Q, d_model)``.
        memory: Input of the keys and values, ``(B, K, d_model)``.
        mask: Broadcastable to ``(B, H, Q, K)``; True = may attend.
        n_heads: ``H``.
        rotary: Rotate queries and keys by their positions.

    Returns:
        ``(B, Q, d_model)`` and the cache.
    """
    q = split_heads(linear(child(p, "w_q"), x), n_heads)  # (B, H, Q, d_k)
    k = split_heads(linear(child(p, "w_k"), memory), n_heads)  # (B, H, K, d_k)
    v = split_heads(linear(child(p, "w_v"), memory), n_heads)  # (B, H, K, d_v)
    if rotary:
        q, k = rotate(q), rotate(k)
    context, weights = attend(q, k, v, mask)  # (B, H, Q, d_v)
    heads = merge_heads(context)  # (B, Q, H * d_v)
    return linear(child(p, "w_o"), heads), AttentionCache(x, memory, q, k, v, weights, heads)


def multi_head_attention_backward(
    p: Params, cache: AttentionCache, d_out: Array, rotary: bool = False
) -> tuple[Array, Array, Grads]:
    """Return the gradients of ``x``, of ``memory`` and of the parameters."""
    n_heads = cache.q.shape[1]
    d_heads, d_w_o = linear_backward(child(p, "w_o"), cache.heads, d_out)
    d_context = split_heads(d_heads, n_heads)  # (B, H, Q, d_v)
    d_q, d_k, d_v = attend_backward(cache.q, cache.k, cache.v, cache.weights, d_context)
    if rotary:
        d_q, d_k = rotate_backward(d_q), rotate_backward(d_k)
    d_x, d_w_q = linear_backward(child(p, "w_q"), cache.x, merge_heads(d_q))
    d_memory_k, d_w_k = linear_backward(child(p, "w_k"), cache.memory, merge_heads(d_k))
    d_memory_v, d_w_v = linear_backward(child(p, "w_v"), cache.memory, merge_heads(d_v))
    grads = summed(under("w_q", d_w_q), under("w_k", d_w_k), under("w_v", d_w_v), under("w_o", d_w_o))
    return d_x, d_memory_k + d_memory_v, grads


def self_attention(p: Params, x: Array, mask: Mask, n_heads: int, rotary: bool = False) -> tuple[Array, AttentionCache]:
    """Compute multi-head attention of a sequence to itself: ``(B, L, d_model)`` -> ``(B, L, d_model)``."""
    return multi_head_attention(p, x, x, mask, n_heads, rotary)


def self_attention_backward(
    p: Params, cache: AttentionCache, d_out: Array, rotary: bool = False
) -> tuple[Array, Grads]:
    """Return the gradients of ``x``, as query plus as key and value, and of the parameters."""
    d_query, d_memory, grads = multi_head_attention_backward(p, cache, d_out, rotary)
    return d_query + d_memory, grads
