"""Scaled dot-product attention (Eq. 1) for training, chosen by device and length.

On a CPU sentences are too short for the fused kernel, whose backward pass costs a hundred times as much there as the
products written out; beyond ``LONG`` positions, and on a GPU, it is the fused kernel, whose memory grows linearly.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from dragoman.fast.private_ops import softmax_backward
from dragoman.model.dropout import keep_mask, keep_scale

LONG = 512
"""Keys from which on a CPU takes the fused kernel."""

SHORT = 96
"""Keys up to which products in float32 are faster than in bfloat16, for which oneDNN makes code for each new shape."""


class Heads(NamedTuple):
    """How queries, keys and values lie in the columns of a projection."""

    n_heads: int
    d_k: int
    d_v: int


def is_written_out(device: torch.device, n_keys: int) -> bool:
    """Whether the products are written out, rather than left to the fused kernel."""
    return device.type == "cpu" and n_keys < LONG


def written_out(
    queries: Tensor, keys_values: Tensor | None, heads: Heads, sizes: tuple[int, int, int], bias: Tensor, p: float
) -> Tensor:
    """Attention by explicit products, from and to the layout of the projections.

    Args:
        queries: ``(N, H * d_k)``, rows b, t in order; more rows may follow and are ignored. In self-attention it also
            holds the keys and values, ``(N, H * (2 d_k + d_v))``.
        keys_values: ``(M, H * (d_k + d_v))``, or None in self-attention.
        sizes: B, T queries and K keys of each sentence.
        bias: float32, added to the scores: 0 or very negative; broadcastable to ``(B * H, T, K16)``, K16 being K
            rounded up to a multiple of 16 (``padded_keys``).
        p: Dropout of the weights.

    Returns:
        ``(N, H * d_v)``; rows beyond B * T are zero.
    """
    return _WrittenOut.apply(queries, keys_values, heads, sizes, bias, p)  # type: ignore[no-untyped-call]


def fused(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, causal: bool, p: float) -> Tensor:
    """Attention by torch's fused kernel, whose memory grows with T + K.

    Args:
        q, k, v: ``(B, H, T, d_k)``, ``(B, H, K, d_k)``, ``(B, H, K, d_v)``.
        mask: Bool, true = may attend, broadcastable to ``(B, H, T, K)``; None with ``causal``.

    Returns:
        ``(B, H, T, d_v)``.
    """
    return F.scaled_dot_product_attention(q, k, v, mask, dropout_p=p, is_causal=causal)


def padded_keys(n_keys: int) -> int:
    """K16: a softmax over whole vectors is several times as fast as over 13 numbers."""
    return -(-n_keys // 16) * 16


class _WrittenOut(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, queries: Tensor, keys_values: Tensor | None, heads: Heads, sizes: tuple[int, int, int],
        bias: Tensor, p: float,
    ) -> Tensor:  # fmt: skip
        (n_heads, d_k, d_v), (n_rows, n_queries, _) = heads, sizes
        q, k, v = _copies(queries, keys_values, heads, sizes)
        scale = 1 / math.sqrt(d_k)
        weights = torch.baddbmm(bias.to(q.dtype), q, k.mT, alpha=scale).softmax(-1)  # (B * H, T, K16)
        keep = keep_mask(weights.shape, p, q.dtype, weights.device) if p else None
        ctx.keep_scale = keep_scale(p)
        context = torch.bmm(weights if keep is None else weights * keep * ctx.keep_scale, v)
        out = _zeros_behind(queries, (queries.size(0), n_heads * d_v), n_rows * n_queries)
        _heads(out, sizes[:2], n_heads).copy_(context.view(n_rows, n_heads, n_queries, d_v))
        # the projections are half as large as the copies made of them in bfloat16; to copy again costs little
        ctx.save_for_backward(queries, keys_values, weights, keep)
        ctx.heads, ctx.sizes, ctx.scale = heads, sizes, scale
        return out

    @staticmethod
    def backward(ctx: Any, d_out: Tensor) -> tuple[Tensor | None, ...]:
        queries, keys_values, weights, keep = ctx.saved_tensors
        q, k, v = _copies(queries, keys_values, ctx.heads, ctx.sizes)
        n_heads, (n_rows, n_queries, n_keys) = ctx.heads.n_heads, ctx.sizes
        d_context = _heads(d_out, ctx.sizes[:2], n_heads)
        d_context = d_context.to(q.dtype, memory_format=torch.contiguous_format).flatten(0, 1)
        dropped = weights if keep is None else weights * keep * ctx.keep_scale
        d_v = torch.bmm(dropped.mT, d_context)
        d_weights = torch.bmm(d_context, v.mT)
        if keep is not None:
            d_weights = d_weights * keep * ctx.keep_scale
        d_scores = softmax_backward(d_weights, weights).mul_(ctx.scale)
        d_q, d_k = torch.bmm(d_scores, k), torch.bmm(d_scores.mT, q)
        d_queries, d_keys_values = _zeros_behind(d_out, queries.shape, n_rows * n_queries), None
        if keys_values is not None:
            d_keys_values = _zeros_behind(d_out, keys_values.shape, n_rows * n_keys)
        places = columns(d_queries, d_keys_values, ctx.heads, ctx.sizes)
        for place, found in zip(places, (d_q, d_k, d_v), strict=True):
            place.copy_(found.view(n_rows, n_heads, *found.shape[1:])[:, :, : place.size(2)])
        return d_queries, d_keys_values, None, None, None, None


def _copies(
    queries: Tensor, keys_values: Tensor | None, heads: Heads, sizes: tuple[int, int, int]
) -> tuple[Tensor, Tensor, Tensor]:
    """What is multiplied: ``(B * H, T, d_k)``, ``(B * H, K16, d_k)``, ``(B * H, K16, d_v)``."""
    n_keys = sizes[2]
    dtype = queries.dtype if n_keys > SHORT else torch.promote_types(queries.dtype, torch.float32)
    q, k, v = columns(queries, keys_values, heads, sizes)
    room = padded_keys(n_keys)
    copies = _with_room(q, sizes[1], dtype), _with_room(k, room, dtype), _with_room(v, room, dtype)
    return tuple(copy.flatten(0, 1) for copy in copies)  # type: ignore[return-value]


def columns(
    queries: Tensor, keys_values: Tensor | None, heads: Heads, sizes: tuple[int, int, int]
) -> tuple[Tensor, Tensor, Tensor]:
    """Views of the queries, keys and values in a projection: ``(B, H, T or K, d)``."""
    (n_heads, d_k, d_v), (n_rows, n_queries, n_keys) = heads, sizes
    if keys_values is None:
        q, k, v = torch.split(queries, [n_heads * d_k, n_heads * d_k, n_heads * d_v], dim=1)
    else:
        q, (k, v) = queries, torch.split(keys_values, [n_heads * d_k, n_heads * d_v], dim=1)
    return tuple(  # type: ignore[return-value]
        _heads(part, (n_rows, length), n_heads) for part, length in ((q, n_queries), (k, n_keys), (v, n_keys))
    )


def _heads(x: Tensor, sizes: tuple[int, ...], n_heads: int) -> Tensor:
    """A view of ``(N, H * d)`` as ``(B, H, length, d)``."""
    n_rows, length = sizes
    return x[: n_rows * length].view(n_rows, length, n_heads, -1).transpose(1, 2)


def _zeros_behind(like: Tensor, shape: tuple[int, int], n: int) -> Tensor:
    """``n`` rows to be filled, and rows of zeros behind."""
    out = like.new_empty(shape)
    out[n:].zero_()
    return out


def _with_room(x: Tensor, length: int, dtype: torch.dtype) -> Tensor:
    """A copy of ``(B, H, K, d)`` with zeros behind it up to ``length``."""
    out = x.new_empty((x.size(0), x.size(1), length, x.size(3)), dtype=dtype)
    out[:, :, : x.size(2)].copy_(x)
    out[:, :, x.size(2) :].zero_()
    return out
