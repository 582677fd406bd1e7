"""The forward pass of training in fused pieces: fast twin of ``Transformer.features``.

The same layers with the same weights, written for speed: queries, keys and values of one input are one product, heads
go to attention and come back in one copy each, a residual and its dropout are one pass. Activations are kept in the
dtype of the products, weights stay float32 and are rounded where they are used.

Rows are flattened, ``(B, L)`` cells to N rows, and N is rounded up to a multiple of ``ROWS``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from dragoman.fast.projection import ROWS, project
from dragoman.fast.training_attention import Heads, columns, fused, is_written_out, padded_keys, written_out
from dragoman.model.attention import MultiHeadAttention
from dragoman.model.dropout import add_dropped, dropout
from dragoman.model.embedding import rotate
from dragoman.model.feed_forward import FeedForward, activate
from dragoman.model.layers import DecoderLayer, EncoderLayer
from dragoman.model.masks import read_tokens
from dragoman.model.transformer import Transformer


class Keys(NamedTuple):
    """Which keys the queries of an attention may see."""

    n_rows: int
    n_queries: int
    n_keys: int
    bias: Tensor | None  # of attention written out: float32, see fast.training_attention
    mask: Tensor | None  # of the fused kernel: bool, (B, 1, 1, K)
    causal: bool


def features(model: Any, src: Tensor | None, tgt_in: Tensor, dtype: torch.dtype) -> Tensor:
    """What the generator reads, for each target position.

    Args:
        model: In training mode. What is not just a ``Transformer`` is asked for its own ``features``.
            So is a language model, whose ``src`` is None.
        src, tgt_in: ``(B, S)``, ``(B, T)`` int64. At padded target positions the result means nothing.
        dtype: Of products and activations.

    Returns:
        ``(B, T, d_model)`` in ``dtype``.
    """
    # (a subclass may do something else, and a model that lacks a stack says so itself)
    config = model.config if type(model) is Transformer else None
    if src is None or config is None or not (config.n_encoder_layers and config.n_decoder_layers):
        with torch.autocast(tgt_in.device.type, torch.bfloat16, enabled=dtype == torch.bfloat16):
            found: Tensor = model.features(src, tgt_in)
            return found
    n_rows, n_src, n_tgt = src.size(0), src.size(1), tgt_in.size(1)
    seen = read_tokens(src, config)  # (B, S)
    x, angles = model._place(model.src_embed(src), model.src_positions, 0)
    x, keys = _flat(x, dtype), _keys(seen, n_src, config.n_heads)
    for layer in model.encoder.layers:
        x = _encoder_layer(cast(EncoderLayer, layer), x, keys, angles)
    memory = _norm(x, model.encoder.norm)

    x, angles = model._place(model.tgt_embed(tgt_in), model.tgt_positions, 0)
    x, past, keys = _flat(x, dtype), _past(tgt_in), keys._replace(n_queries=n_tgt)
    for layer in model.decoder.layers:
        x = _decoder_layer(cast(DecoderLayer, layer), x, memory, past, keys, angles)
    x = _norm(x, model.decoder.norm)
    return x[: n_rows * n_tgt].view(n_rows, n_tgt, -1)


def _encoder_layer(layer: EncoderLayer, x: Tensor, keys: Keys, angles: Tensor | None) -> Tensor:
    x = _residual(layer, layer.norm1, x, lambda y: _attention(layer.self_attn, y, None, keys, angles))
    return _residual(layer, layer.norm2, x, lambda y: _feed_forward(layer.feed_forward, y))


def _decoder_layer(
    layer: DecoderLayer, x: Tensor, memory: Tensor, past: Keys, keys: Keys, angles: Tensor | None
) -> Tensor:
    cross_attn = layer.cross_attn
    assert cross_attn is not None
    x = _residual(layer, layer.norm1, x, lambda y: _attention(layer.self_attn, y, None, past, angles))
    x = _residual(layer, layer.norm2, x, lambda y: _attention(cross_attn, y, memory, keys, None))
    return _residual(layer, layer.norm3, x, lambda y: _feed_forward(layer.feed_forward, y))


def _residual(
    layer: EncoderLayer | DecoderLayer, norm: nn.LayerNorm | None, x: Tensor, sublayer: Callable[[Tensor], Tensor]
) -> Tensor:
    """``x`` and what a sub-layer makes of it, normalised before or after."""
    if layer.pre_norm:
        return add_dropped(x, sublayer(_norm(x, norm)), layer.dropout.p)
    return _norm(add_dropped(x, sublayer(x), layer.dropout.p), norm)


def _attention(
    attention: MultiHeadAttention, x: Tensor, memory: Tensor | None, keys: Keys, angles: Tensor | None
) -> Tensor:
    """``MultiHeadAttention`` on flat rows; ``memory`` None: self-attention."""
    heads = Heads(attention.n_heads, attention.d_k, attention.d_v)
    of_keys = (attention.w_k, attention.w_v)
    if memory is None:
        queries, keys_values = _linear(x, attention.w_q, *of_keys), None
    else:
        queries, keys_values = _linear(x, attention.w_q), _linear(memory, *of_keys)
    p = attention.dropout.p
    if keys.bias is not None and angles is None:
        context = written_out(queries, keys_values, heads, keys[:3], keys.bias, p)
    else:
        context = _by_kernel(queries, keys_values, heads, keys, angles, p)
    return _linear(context, attention.w_o)


def _by_kernel(
    queries: Tensor, keys_values: Tensor | None, heads: Heads, keys: Keys, angles: Tensor | None, p: float
) -> Tensor:
    q, k, v = columns(queries, keys_values, heads, keys[:3])  # (B, H, T or K, d_k or d_v)
    if angles is not None:
        q, k = rotate(q, angles), rotate(k, angles)
    context = fused(q, k, v, keys.mask, keys.causal, p).transpose(1, 2).flatten(2).flatten(0, 1)
    return F.pad(context, (0, 0, 0, len(queries) - len(context)))


def _feed_forward(layer: FeedForward, x: Tensor) -> Tensor:
    relu = layer.activation == "relu"  # which costs nothing within the product
    hidden = _linear(x, layer.w_1, relu=relu)
    if layer.w_3 is not None:
        hidden = activate(_linear(x, layer.w_3), layer.activation) * hidden
    elif not relu:
        hidden = activate(hidden, layer.activation)
    return _linear(dropout(hidden, layer.dropout.p), layer.w_2)


def _linear(x: Tensor, *layers: nn.Linear, relu: bool = False) -> Tensor:
    return project(x, [layer.weight for layer in layers], [layer.bias for layer in layers], relu)


def _norm(x: Tensor, norm: nn.LayerNorm | None) -> Tensor:
    """In the dtype of ``x``; the statistics are float32's."""
    if norm is None:
        return x
    weight: Tensor = norm.weight
    bias: Tensor = norm.bias
    if not takes_both_dtypes(x.device):  # their gradients are float32's all the same
        weight, bias = weight.to(x.dtype), bias.to(x.dtype)
    return torch.native_layer_norm(x, norm.normalized_shape, weight, bias, norm.eps)[0]


def takes_both_dtypes(device: torch.device) -> bool:
    """Whether a layer norm of bfloat16 may have float32 weights, which save a copy; CUDA's refuses them."""
    return device.type == "cpu"


def _flat(x: Tensor, dtype: torch.dtype) -> Tensor:
    """``(B, L, d_model)`` as ``(N, d_model)`` in ``dtype``, with rows of zeros behind."""
    n = x.size(0) * x.size(1)
    return F.pad(x.flatten(0, 1).to(dtype), (0, 0, 0, -n % ROWS))


def _keys(seen: Tensor, n_queries: int, n_heads: int) -> Keys:
    """Any query sees the source tokens that are no padding: ``seen`` (B, S)."""
    n_rows, n_keys = seen.shape
    bias = None
    if is_written_out(seen.device, n_keys):
        bias = torch.full((n_rows, n_heads, 1, padded_keys(n_keys)), torch.finfo(torch.float32).min)
        bias[..., :n_keys].masked_fill_(seen[:, None, None], 0.0)
        bias = bias.flatten(0, 1)  # (B * H, 1, K16)
    return Keys(n_rows, n_queries, n_keys, bias, seen[:, None, None], False)


def _past(tgt_in: Tensor) -> Keys:
    """Each query sees itself and what stands before it; padding stands behind all tokens, and none of them sees it."""
    n_rows, n_tgt = tgt_in.shape
    bias = None
    if is_written_out(tgt_in.device, n_tgt):
        bias = torch.full((n_tgt, padded_keys(n_tgt)), torch.finfo(torch.float32).min).triu(1)[None]
    return Keys(n_rows, n_tgt, n_tgt, bias, None, True)
