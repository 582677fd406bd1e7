"""Layer norm, the residual connection around each sub-layer, and the encoder and decoder layer: section 3.1."""

from collections.abc import Callable
from typing import Generic, NamedTuple, TypeVar

import numpy as np

from .arrays import Array, Config, Grads, Mask, Params, child, summed, under
from .attention import (
    AttentionCache,
    multi_head_attention,
    multi_head_attention_backward,
    self_attention,
    self_attention_backward,
)
from .feed_forward import FeedForwardCache, feed_forward, feed_forward_backward

C = TypeVar("C")  # cache of a sub-layer
R = TypeVar("R")  # result of its backward pass, after the gradient of its input


class NormCache(NamedTuple):
    """Values that :func:`layer_norm_backward` needs."""

    normed: Array  # (..., d_model): mean 0, variance 1
    inv_std: Array  # (..., 1)


def layer_norm(p: Params, x: Array, eps: float = 1e-5) -> tuple[Array, NormCache]:
    """Normalise the last axis (https://arxiv.org/abs/1607.06450), with the biased variance.

    ``y = weight * (x - mean) / sqrt(var + eps) + bias``: ``(..., d_model)`` -> ``(..., d_model)`` and the cache.
    """
    centred: Array = x - x.mean(axis=-1, keepdims=True)
    var: Array = (centred * centred).mean(axis=-1, keepdims=True)
    inv_std: Array = 1 / np.sqrt(var + eps)
    normed = centred * inv_std
    return p["weight"] * normed + p["bias"], NormCache(normed, inv_std)


def layer_norm_backward(p: Params, cache: NormCache, d_y: Array) -> tuple[Array, Grads]:
    """Return the gradients of ``x`` and of the parameters; a shift or a scaling of ``x`` changes no output."""
    leading = tuple(range(d_y.ndim - 1))
    grads = {"weight": (d_y * cache.normed).sum(axis=leading), "bias": d_y.sum(axis=leading)}
    d_normed = d_y * p["weight"]
    shift: Array = d_normed.mean(axis=-1, keepdims=True)
    stretch: Array = (d_normed * cache.normed).mean(axis=-1, keepdims=True)
    return cache.inv_std * (d_normed - shift - cache.normed * stretch), grads


def is_pre_norm(config: Config) -> bool:
    """Return True if norms come before the sub-layers, False if they come after them as in the paper."""
    if config["norm"] not in ("pre", "post"):
        raise ValueError(f"norm = {config['norm']!r} is unknown: use pre or post")
    return bool(config["norm"] == "pre")


class ResidualCache(NamedTuple, Generic[C]):
    """Values that :func:`residual_backward` needs."""

    norm: NormCache
    sublayer: C


def residual(
    norm: Params, x: Array, sublayer: Callable[[Array], tuple[Array, C]], config: Config
) -> tuple[Array, ResidualCache[C]]:
    """Connect a sub-layer: ``norm(x + sublayer(x))``, section 3.1.

    With ``config["norm"] == "pre"`` it is ``x + sublayer(norm(x))`` (https://arxiv.org/abs/2002.04745).

    Args:
        norm: ``weight (d_model)`` and ``bias (d_model)`` of the layer norm.
        x: ``(B, L, d_model)``.
        sublayer: A function of ``x`` alone that returns its output ``(B, L, d_model)`` and its cache.
        config: Its ``norm`` and ``norm_eps`` are used.

    Returns:
        ``(B, L, d_model)`` and the cache.
    """
    if is_pre_norm(config):
        h, norm_cache = layer_norm(norm, x, config["norm_eps"])
        y, cache = sublayer(h)
        return x + y, ResidualCache(norm_cache, cache)
    y, cache = sublayer(x)
    out, norm_cache = layer_norm(norm, x + y, config["norm_eps"])
    return out, ResidualCache(norm_cache, cache)


def residual_backward(
    norm: Params,
    cache: ResidualCache[C],
    d_out: Array,
    sublayer_backward: Callable[[C, Array], tuple[Array, R]],
    config: Config,
) -> tuple[Array, Grads, R]:
    """Return the gradients of a residual connection, which reach ``x`` past the sub-layer and through it.

    Returns:
        The gradient of ``x``, those of the norm, and everything that ``sublayer_backward(cache, d_y)`` returned after
        the gradient of its input.
    """
    if is_pre_norm(config):
        d_h, other_grads = sublayer_backward(cache.sublayer, d_out)
        d_x, norm_grads = layer_norm_backward(norm, cache.norm, d_h)
        return d_out + d_x, norm_grads, other_grads
    d_sum, norm_grads = layer_norm_backward(norm, cache.norm, d_out)
    d_x, other_grads = sublayer_backward(cache.sublayer, d_sum)
    return d_sum + d_x, norm_grads, other_grads


class EncoderLayerCache(NamedTuple):
    """Values that :func:`encoder_layer_backward` needs."""

    self_attn: ResidualCache[AttentionCache]
    feed_forward: ResidualCache[FeedForwardCache]


def encoder_layer(p: Params, config: Config, x: Array, src_mask: Mask) -> tuple[Array, EncoderLayerCache]:
    """Compute one layer of the encoder: self-attention, feed-forward.

    Args:
        p: The parameters below ``encoder.layers.I``.
        config: Sizes and variants.
        x: ``(B, S, d_model)``.
        src_mask: ``(B, 1, 1, S)``.

    Returns:
        ``(B, S, d_model)`` and the cache.
    """

    def attend_to_self(h: Array) -> tuple[Array, AttentionCache]:
        return self_attention(child(p, "self_attn"), h, src_mask, config["n_heads"], _is_rotary(config))

    def feed(h: Array) -> tuple[Array, FeedForwardCache]:
        return feed_forward(child(p, "feed_forward"), h, config["activation"])

    x, attn_cache = residual(child(p, "norm1"), x, attend_to_self, config)
    x, feed_cache = residual(child(p, "norm2"), x, feed, config)
    return x, EncoderLayerCache(attn_cache, feed_cache)


def encoder_layer_backward(p: Params, config: Config, cache: EncoderLayerCache, d_x: Array) -> tuple[Array, Grads]:
    """Return the gradients of ``x`` and of the parameters."""

    def attend_to_self_backward(c: AttentionCache, d_y: Array) -> tuple[Array, Grads]:
        return self_attention_backward(child(p, "self_attn"), c, d_y, _is_rotary(config))

    def feed_backward(c: FeedForwardCache, d_y: Array) -> tuple[Array, Grads]:
        return feed_forward_backward(child(p, "feed_forward"), c, d_y, config["activation"])

    d_x, norm2, feed = residual_backward(child(p, "norm2"), cache.feed_forward, d_x, feed_backward, config)
    d_x, norm1, attn = residual_backward(child(p, "norm1"), cache.self_attn, d_x, attend_to_self_backward, config)
    grads = summed(under("self_attn", attn), under("norm1", norm1), under("feed_forward", feed), under("norm2", norm2))
    return d_x, grads


class DecoderLayerCache(NamedTuple):
    """Values that :func:`decoder_layer_backward` needs."""

    self_attn: ResidualCache[AttentionCache]
    cross_attn: ResidualCache[AttentionCache] | None  # None: no memory
    feed_forward: ResidualCache[FeedForwardCache]


def decoder_layer(
    p: Params, config: Config, x: Array, tgt_mask: Mask, memory: Array | None, src_mask: Mask
) -> tuple[Array, DecoderLayerCache]:
    """Compute one layer of the decoder: self-attention, attention to the memory, feed-forward.

    Without memory (a language model) the second sub-layer and its norm are left out: the feed-forward network's norm is
    then ``norm2``.

    Args:
        p: The parameters below ``decoder.layers.I``.
        config: Sizes and variants.
        x: ``(B, T, d_model)``.
        tgt_mask: ``(B, 1, T, T)``.
        memory: ``(B, S, d_model)``, or None. Pre-norm does not normalise it, only the decoder's own stream.
        src_mask: ``(B, 1, 1, S)``; not used without memory.

    Returns:
        ``(B, T, d_model)`` and the cache.
    """

    def attend_to_self(h: Array) -> tuple[Array, AttentionCache]:
        return self_attention(child(p, "self_attn"), h, tgt_mask, config["n_heads"], _is_rotary(config))

    def feed(h: Array) -> tuple[Array, FeedForwardCache]:
        return feed_forward(child(p, "feed_forward"), h, config["activation"])

    x, self_cache = residual(child(p, "norm1"), x, attend_to_self, config)
    if memory is None:
        x, feed_cache = residual(child(p, "norm2"), x, feed, config)
        return x, DecoderLayerCache(self_cache, None, feed_cache)

    def attend_to_memory(h: Array) -> tuple[Array, AttentionCache]:
        return multi_head_attention(child(p, "cross_attn"), h, memory, src_mask, config["n_heads"])

    x, cross_cache = residual(child(p, "norm2"), x, attend_to_memory, config)
    x, feed_cache = residual(child(p, "norm3"), x, feed, config)
    return x, DecoderLayerCache(self_cache, cross_cache, feed_cache)


def decoder_layer_backward(
    p: Params, config: Config, cache: DecoderLayerCache, d_x: Array
) -> tuple[Array, Array | None, Grads]:
    """Return the gradients of ``x``, of ``memory`` (None without memory) and of the parameters."""

    def attend_to_self_backward(c: AttentionCache, d_y: Array) -> tuple[Array, Grads]:
        return self_attention_backward(child(p, "self_attn"), c, d_y, _is_rotary(config))

    def attend_to_memory_backward(c: AttentionCache, d_y: Array) -> tuple[Array, tuple[Array, Grads]]:
        d_h, d_memory, grads = multi_head_attention_backward(child(p, "cross_attn"), c, d_y)
        return d_h, (d_memory, grads)

    def feed_backward(c: FeedForwardCache, d_y: Array) -> tuple[Array, Grads]:
        return feed_forward_backward(child(p, "feed_forward"), c, d_y, config["activation"])

    last = "norm2" if cache.cross_attn is None else "norm3"
    d_x, norm, feed = residual_backward(child(p, last), cache.feed_forward, d_x, feed_backward, config)
    grads = summed(under(last, norm), under("feed_forward", feed))
    d_memory = None
    if cache.cross_attn is not None:
        d_x, norm, (d_memory, attn) = residual_backward(
            child(p, "norm2"), cache.cross_attn, d_x, attend_to_memory_backward, config
        )
        grads = summed(under("norm2", norm), under("cross_attn", attn), grads)
    d_x, norm, attn = residual_backward(child(p, "norm1"), cache.self_attn, d_x, attend_to_self_backward, config)
    return d_x, d_memory, summed(under("norm1", norm), under("self_attn", attn), grads)


def _is_rotary(config: Config) -> bool:
    return bool(config["positions"] == "rotary")
