"""The optimised forward pass of training: same results as ``Transformer.features``, in fused pieces.

    x = features(model, src, tgt_in, torch.bfloat16)      # (B, S), (B, T) -> (B, T, d_model)

It uses the same layers and the same weights. Three things make it faster:

- The projections of one input (queries, keys and values) are one matrix product.
- Each head is copied once before attention and once after it.
- A residual connection and its dropout are one pass over memory.

Activations have the dtype of the products. Weights stay float32 and are rounded where they are used.

Batch and length are flattened: ``(B, L)`` becomes N rows, and N is rounded up to a multiple of ``ROWS``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, cast
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from dragoman.fast.projection import ROWS, project
from dragoman.fast.training_attention import Layout, columns, fused, is_written_out, padded_keys, written_out
from dragoman.model.attention import MultiHeadAttention
from dragoman.model.dropout import Dropout, add_dropped, dropout
from dragoman.model.embedding import LearnedPositions, TokenEmbedding, rotate
from dragoman.model.feed_forward import FeedForward, activate
from dragoman.model.layers import DecoderLayer, EncoderLayer
from dragoman.model.masks import read_tokens
from dragoman.model.transformer import Decoder, Encoder, Transformer

MODULES = (
    Transformer, Encoder, Decoder, EncoderLayer, DecoderLayer, MultiHeadAttention, FeedForward, TokenEmbedding,
    LearnedPositions, Dropout, nn.Linear, nn.LayerNorm, nn.ModuleList,
)  # fmt: skip
"""Types of the modules that are computed here instead of being called."""


class Keys(NamedTuple):
    """Shapes of an attention, and the keys that its queries may attend to."""

    n_rows: int
    n_queries: int
    n_keys: int
    bias: Tensor | None  # float32, added to the scores of written-out attention; see fast.training_attention
    mask: Tensor | None  # bool, (B, 1, 1, K), for the fused kernel; None: causal


def features(model: Any, src: Tensor | None, tgt_in: Tensor, dtype: torch.dtype) -> Tensor:
    """Return the decoder's output, which the generator reads, for each target position.

    Args:
        model: A model in training mode. Anything but a plain encoder-decoder ``Transformer`` computes its own
            ``features``: baselines, subclasses, language models, whose ``src`` is None, and models that at the first
            call have a module of another type, with a method of its own, or with a hook.
        src, tgt_in: ``(B, S)``, ``(B, T)`` int64.
        dtype: The dtype of products and activations.

    Returns:
        ``(B, T, d_model)`` in ``dtype``. Values at padded target positions are meaningless.
    """
    # Only a plain encoder-decoder is computed here: a subclass or a changed module may compute something else, and a
    # model that lacks one stack raises its own error.
    config = model.config if type(model) is Transformer and _is_plain(model) else None
    if src is None or config is None or not (config.n_encoder_layers and config.n_decoder_layers):
        with torch.autocast(tgt_in.device.type, torch.bfloat16, enabled=dtype == torch.bfloat16):
            plain_features: Tensor = model.features(src, tgt_in)
            return plain_features
    n_rows, n_src, n_tgt = src.size(0), src.size(1), tgt_in.size(1)
    is_read = read_tokens(src, config)  # (B, S)
    x, angles = model.add_positions(model.src_embed(src), model.src_positions, 0)
    x, keys = _flat(x, dtype), _keys(is_read, n_src, config.n_heads)
    for layer in model.encoder.layers:
        x = _encoder_layer(cast(EncoderLayer, layer), x, keys, angles)
    memory = layer_norm(x, model.encoder.norm)

    x, angles = model.add_positions(model.tgt_embed(tgt_in), model.tgt_positions, 0)
    x, past, keys = _flat(x, dtype), _past(tgt_in), keys._replace(n_queries=n_tgt)
    for layer in model.decoder.layers:
        x = _decoder_layer(cast(DecoderLayer, layer), x, memory, past, keys, angles)
    x = layer_norm(x, model.decoder.norm)
    return x[: n_rows * n_tgt].view(n_rows, n_tgt, -1)


_plain: WeakKeyDictionary[Transformer, bool] = WeakKeyDictionary()
"""What ``_is_plain`` returns for each model: the modules are looked at once, not in every step."""


def _is_plain(model: Transformer) -> bool:
    if model not in _plain:
        _plain[model] = not any(map(_is_changed, model.modules()))
    return _plain[model]


def _is_changed(module: nn.Module) -> bool:
    """Return True if a module may compute something else than here: by its type, a method of its own, or a hook."""
    own_method = any(callable(getattr(type(module), name, None)) for name in vars(module))
    hooks = module._forward_hooks, module._forward_pre_hooks, module._backward_hooks, module._backward_pre_hooks
    return type(module) not in MODULES or own_method or any(hooks)


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
    """Return ``norm(x + dropout(sublayer(x)))``, or pre-norm's ``x + dropout(sublayer(norm(x)))``."""
    if layer.pre_norm:
        return add_dropped(x, sublayer(layer_norm(x, norm)), layer.dropout.p)
    return layer_norm(add_dropped(x, sublayer(x), layer.dropout.p), norm)


def _attention(
    attention: MultiHeadAttention, x: Tensor, memory: Tensor | None, keys: Keys, angles: Tensor | None
) -> Tensor:
    """Compute ``MultiHeadAttention`` on flat rows; ``memory`` is None in self-attention."""
    key_layers = (attention.w_k, attention.w_v)
    if memory is None:
        queries, keys_values = _linear(x, attention.w_q, *key_layers), None
    else:
        queries, keys_values = _linear(x, attention.w_q), _linear(memory, *key_layers)
    # Written-out attention reads the projections as they are. Rotary positions must rotate queries and keys before
    # that, so they take the fused kernel.
    if keys.bias is not None and angles is None:
        context = written_out(queries, keys_values, _layout(attention, keys), keys.bias, attention.dropout.p)
    else:
        context = _fused_attention(attention, queries, keys_values, keys, angles)
    return _linear(context, attention.w_o)


def _layout(attention: MultiHeadAttention, keys: Keys) -> Layout:
    return Layout(keys.n_rows, keys.n_queries, keys.n_keys, attention.n_heads, attention.d_k, attention.d_v)


def _fused_attention(
    attention: MultiHeadAttention, queries: Tensor, keys_values: Tensor | None, keys: Keys, angles: Tensor | None
) -> Tensor:
    q, k, v = columns(queries, keys_values, _layout(attention, keys))  # (B, H, T or K, d_k or d_v)
    if angles is not None:
        q, k = rotate(q, angles), rotate(k, angles)
    context = fused(q, k, v, keys.mask, attention.dropout.p).transpose(1, 2).flatten(2).flatten(0, 1)
    return F.pad(context, (0, 0, 0, len(queries) - len(context)))


def _feed_forward(layer: FeedForward, x: Tensor) -> Tensor:
    relu = layer.activation == "relu"  # fused into the product at no cost
    hidden = _linear(x, layer.w_1, relu=relu)
    if layer.w_3 is not None:
        hidden = activate(_linear(x, layer.w_3), layer.activation) * hidden
    elif not relu:
        hidden = activate(hidden, layer.activation)
    return _linear(dropout(hidden, layer.dropout.p), layer.w_2)


def _linear(x: Tensor, *layers: nn.Linear, relu: bool = False) -> Tensor:
    return project(x, [layer.weight for layer in layers], [layer.bias for layer in layers], relu)


def layer_norm(x: Tensor, norm: nn.LayerNorm | None) -> Tensor:
    """Return the layer norm of ``x`` in the dtype of ``x``; mean and variance are computed in float32."""
    if norm is None:
        return x
    weight: Tensor = norm.weight
    bias: Tensor = norm.bias
    if not takes_both_dtypes(x.device):  # gradients are float32 in either case
        weight, bias = weight.to(x.dtype), bias.to(x.dtype)
    return torch.native_layer_norm(x, norm.normalized_shape, weight, bias, norm.eps)[0]


def takes_both_dtypes(device: torch.device) -> bool:
    """Return True if a layer norm of bfloat16 accepts float32 weights; CUDA's does not, and needs a copy of them."""
    return device.type == "cpu"


def _flat(x: Tensor, dtype: torch.dtype) -> Tensor:
    """Reshape ``(B, L, d_model)`` to ``(N, d_model)`` in ``dtype``, padded with zeros to a multiple of ``ROWS``."""
    n = x.size(0) * x.size(1)
    return F.pad(x.flatten(0, 1).to(dtype), (0, 0, 0, -n % ROWS))


def _keys(is_read: Tensor, n_queries: int, n_heads: int) -> Keys:
    """Return the keys of the source: every query may attend to the positions where ``is_read`` (B, S) is True."""
    n_rows, n_keys = is_read.shape
    bias = None
    if is_written_out(is_read.device, n_keys):
        shape = (n_rows, n_heads, 1, padded_keys(n_keys))
        bias = torch.full(shape, torch.finfo(torch.float32).min, dtype=torch.float32)
        bias[..., :n_keys].masked_fill_(is_read[:, None, None], 0.0)
        bias = bias.flatten(0, 1)  # (B * H, 1, K16)
    return Keys(n_rows, n_queries, n_keys, bias, is_read[:, None, None])


def _past(tgt_in: Tensor) -> Keys:
    """Return the keys of causal self-attention; padding follows all tokens of its row, so the causal mask hides it."""
    n_rows, n_tgt = tgt_in.shape
    bias = None
    if is_written_out(tgt_in.device, n_tgt):
        shape = (n_tgt, padded_keys(n_tgt))
        bias = torch.full(shape, torch.finfo(torch.float32).min, dtype=torch.float32).triu(1)[None]
    return Keys(n_rows, n_tgt, n_tgt, bias, None)
