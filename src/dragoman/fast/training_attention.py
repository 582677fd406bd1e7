"""Scaled dot-product attention (Eq. 1) for training, chosen by device and length.

On a CPU the sentences of training are too short for torch's fused kernel: its backward pass takes a hundred times as
long as the matrix products written out. From ``LONG`` keys on, and on a GPU, the fused kernel is used, whose memory
grows linearly with the length.
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
"""Number of keys from which a CPU uses the fused kernel."""

SHORT = 96
"""Number of keys up to which products are in float32, also with bfloat16 activations.

Short products are faster so: oneDNN compiles bfloat16 code for each new shape."""


class Layout(NamedTuple):
    """Sizes by which queries, keys and values are found in the rows and columns of a projection."""

    n_rows: int  # B
    n_queries: int  # T
    n_keys: int  # K
    n_heads: int  # H
    d_k: int
    d_v: int


def is_written_out(device: torch.device, n_keys: int) -> bool:
    """Return True if attention is computed as explicit products, False if by torch's fused kernel."""
    return device.type == "cpu" and n_keys < LONG


def written_out(queries: Tensor, keys_values: Tensor | None, layout: Layout, bias: Tensor, p: float) -> Tensor:
    """Compute attention as explicit matrix products, from and to the layout of the projections.

    Args:
        queries: ``(N, H * d_k)``, row after row of the batch; further rows are ignored. In self-attention also the keys
            and values: ``(N, H * (2 d_k + d_v))``.
        keys_values: ``(M, H * (d_k + d_v))``, or None in self-attention.
        layout: The sizes B, T, K, H, d_k and d_v.
        bias: float32, added to the scores: 0, or very negative where a query may not attend. It is broadcastable to
            ``(B * H, T, K16)``, where K16 is K rounded up to a multiple of 16 (see ``padded_keys``).
        p: Probability of dropout on the attention weights.

    Returns:
        ``(N, H * d_v)``; rows beyond B * T are zero.
    """
    return _WrittenOut.apply(queries, keys_values, layout, bias, p)  # type: ignore[no-untyped-call]


def fused(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, p: float) -> Tensor:
    """Compute attention by torch's fused kernel, whose memory grows with T + K.

    Args:
        q, k, v: ``(B, H, T, d_k)``, ``(B, H, K, d_k)``, ``(B, H, K, d_v)``.
        mask: Bool, true = may attend, broadcastable to ``(B, H, T, K)``; None: causal.
        p: Probability of dropout on the attention weights.

    Returns:
        ``(B, H, T, d_v)``.
    """
    return F.scaled_dot_product_attention(q, k, v, mask, dropout_p=p, is_causal=mask is None)


def padded_keys(n_keys: int) -> int:
    """Return K16, ``n_keys`` rounded up to a multiple of 16: softmax is several times as fast on whole vectors."""
    return -(-n_keys // 16) * 16


class _WrittenOut(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, queries: Tensor, keys_values: Tensor | None, layout: Layout, bias: Tensor, p: float
    ) -> Tensor:
        n_rows, n_queries, _, n_heads, d_k, d_v = layout
        q, k, v = _copies(queries, keys_values, layout)
        scale = 1 / math.sqrt(d_k)
        weights = torch.baddbmm(bias.to(q.dtype), q, k.mT, alpha=scale).softmax(-1)  # (B * H, T, K16)
        keep = keep_mask(weights.shape, p, q.dtype, weights.device) if p else None
        ctx.keep_scale = keep_scale(p)
        context = torch.bmm(weights if keep is None else weights * keep * ctx.keep_scale, v)
        out = _zeros_behind(queries, (queries.size(0), n_heads * d_v), n_rows * n_queries)
        _heads(out, n_rows, n_queries, n_heads).copy_(context.view(n_rows, n_heads, n_queries, d_v))
        # Save the projections, not the copies q, k, v: in bfloat16 they are half as large, and copying again is cheap.
        ctx.save_for_backward(queries, keys_values, weights, keep)
        ctx.layout, ctx.scale = layout, scale
        return out

    @staticmethod
    def backward(ctx: Any, d_out: Tensor) -> tuple[Tensor | None, ...]:
        queries, keys_values, weights, keep = ctx.saved_tensors
        q, k, v = _copies(queries, keys_values, ctx.layout)
        n_rows, n_queries, n_keys, n_heads, _, _ = ctx.layout
        d_context = _heads(d_out, n_rows, n_queries, n_heads)
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
        # Write the gradients of queries, keys and values into the columns that they were read from.
        for target, gradient in zip(columns(d_queries, d_keys_values, ctx.layout), (d_q, d_k, d_v), strict=True):
            target.copy_(gradient.view(n_rows, n_heads, *gradient.shape[1:])[:, :, : target.size(2)])
        return d_queries, d_keys_values, None, None, None


def _copies(queries: Tensor, keys_values: Tensor | None, layout: Layout) -> tuple[Tensor, Tensor, Tensor]:
    """Return contiguous copies ``(B * H, T, d_k)``, ``(B * H, K16, d_k)``, ``(B * H, K16, d_v)`` for the products."""
    dtype = queries.dtype if layout.n_keys > SHORT else torch.promote_types(queries.dtype, torch.float32)
    lengths = layout.n_queries, padded_keys(layout.n_keys), padded_keys(layout.n_keys)
    parts = zip(columns(queries, keys_values, layout), lengths, strict=True)
    copies = (_zero_padded(part, length, dtype) for part, length in parts)
    return tuple(copy.flatten(0, 1) for copy in copies)  # type: ignore[return-value]


def columns(queries: Tensor, keys_values: Tensor | None, layout: Layout) -> tuple[Tensor, Tensor, Tensor]:
    """Return views of the queries, keys and values in a projection: ``(B, H, T or K, d)``."""
    n_rows, n_queries, n_keys, n_heads, d_k, d_v = layout
    if keys_values is None:
        q, k, v = torch.split(queries, [n_heads * d_k, n_heads * d_k, n_heads * d_v], dim=1)
    else:
        q, (k, v) = queries, torch.split(keys_values, [n_heads * d_k, n_heads * d_v], dim=1)
    return tuple(  # type: ignore[return-value]
        _heads(part, n_rows, length, n_heads) for part, length in ((q, n_queries), (k, n_keys), (v, n_keys))
    )


def _heads(x: Tensor, n_rows: int, length: int, n_heads: int) -> Tensor:
    """Return the first ``B * length`` rows of ``(N, H * d)`` as a view ``(B, H, length, d)``; B is ``n_rows``."""
    return x[: n_rows * length].view(n_rows, length, n_heads, -1).transpose(1, 2)


def _zeros_behind(like: Tensor, shape: tuple[int, int], n: int) -> Tensor:
    """Return memory of ``shape``: ``n`` rows to be written by the caller, then rows of zeros."""
    out = like.new_empty(shape)
    out[n:].zero_()
    return out


def _zero_padded(x: Tensor, length: int, dtype: torch.dtype) -> Tensor:
    """Return a copy of ``(B, H, K, d)``, padded with zeros to ``length`` keys."""
    out = x.new_empty((x.size(0), x.size(1), length, x.size(3)), dtype=dtype)
    out[:, :, : x.size(2)].copy_(x)
    out[:, :, x.size(2) :].zero_()
    return out
