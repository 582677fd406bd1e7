"""The complete model, Figure 1 of the paper: forward, and backward by hand.

Parameters have the names of ``Transformer.state_dict()``. Of tied tensors only the first is read, and it alone has a
gradient, the sum over its uses. ``n_encoder_layers = 0`` makes a language model, ``n_decoder_layers = 0`` an encoder
alone. There is no dropout.
"""

import math
from typing import NamedTuple

import numpy as np

from .arrays import Array, Config, Grads, Ids, Mask, Params, child, summed, under
from .embedding import (
    embed,
    embed_backward,
    learned_positions,
    learned_positions_backward,
    sinusoidal_positions,
)
from .layers import (
    DecoderLayerCache,
    EncoderLayerCache,
    NormCache,
    decoder_layer,
    decoder_layer_backward,
    encoder_layer,
    encoder_layer_backward,
    layer_norm,
    layer_norm_backward,
)
from .linear import linear, linear_backward
from .masks import source_mask, target_mask


def embedding_names(config: Config) -> tuple[str, str, str]:
    """Return the names under which source embedding, target embedding and generator are stored (section 3.4)."""
    src, tgt, generator = "src_embed.weight", "tgt_embed.weight", "generator.weight"
    if config["share_embeddings"] == "none":
        return src, tgt, generator
    if config["share_embeddings"] == "decoder" or not config["n_encoder_layers"]:
        return src, tgt, tgt
    return src, src, src


def parameter_shapes(config: Config) -> dict[str, tuple[int, ...]]:
    """Return the name and shape of every stored parameter."""
    d_model, d_ff, n_heads = config["d_model"], config["d_ff"], config["n_heads"]
    d_k = config.get("d_k") or d_model // n_heads
    d_v = config.get("d_v") or d_model // n_heads
    has_encoder, has_decoder = config["n_encoder_layers"] > 0, config["n_decoder_layers"] > 0
    shapes: dict[str, tuple[int, ...]] = {}

    def add_linear(name: str, n_out: int, n_in: int, bias: bool) -> None:
        shapes[f"{name}.weight"] = (n_out, n_in)
        if bias:
            shapes[f"{name}.bias"] = (n_out,)

    def add_attention(name: str) -> None:
        add_linear(f"{name}.w_q", n_heads * d_k, d_model, config["attention_bias"])
        add_linear(f"{name}.w_k", n_heads * d_k, d_model, config["attention_bias"])
        add_linear(f"{name}.w_v", n_heads * d_v, d_model, config["attention_bias"])
        add_linear(f"{name}.w_o", d_model, n_heads * d_v, config["attention_bias"])

    def add_feed_forward(name: str) -> None:
        add_linear(f"{name}.w_1", d_ff, d_model, True)
        add_linear(f"{name}.w_2", d_model, d_ff, True)
        if config["activation"] == "swiglu":
            add_linear(f"{name}.w_3", d_ff, d_model, True)

    def add_norms(*names: str) -> None:
        shapes.update({f"{name}.{part}": (d_model,) for name in names for part in ("weight", "bias")})

    src_embed, tgt_embed, generator = embedding_names(config)
    if has_encoder:
        shapes[src_embed] = (config["src_vocab_size"], d_model)
        if config["positions"] == "learned":
            shapes["src_positions.weight"] = (config["max_len"], d_model)
    if has_decoder:
        shapes[tgt_embed] = (config["tgt_vocab_size"], d_model)
        shapes[generator] = (config["tgt_vocab_size"], d_model)
        if config["generator_bias"]:
            shapes["generator.bias"] = (config["tgt_vocab_size"],)
        if config["positions"] == "learned":
            shapes["tgt_positions.weight"] = (config["max_len"], d_model)
    for name in (f"encoder.layers.{i}" for i in range(config["n_encoder_layers"])):
        add_attention(f"{name}.self_attn")
        add_feed_forward(f"{name}.feed_forward")
        add_norms(f"{name}.norm1", f"{name}.norm2")
    for name in (f"decoder.layers.{i}" for i in range(config["n_decoder_layers"])):
        add_attention(f"{name}.self_attn")
        add_norms(f"{name}.norm1", f"{name}.norm2")
        if has_encoder:
            add_attention(f"{name}.cross_attn")
            add_norms(f"{name}.norm3")
        add_feed_forward(f"{name}.feed_forward")
    if config["norm"] == "pre":
        add_norms(*["encoder.norm"] * has_encoder, *["decoder.norm"] * has_decoder)
    return shapes


def initialise(config: Config, rng: np.random.Generator) -> dict[str, Array]:
    """Return freshly initialised parameters, float64.

    Matrices are Xavier uniform. Embeddings and learned positions are normal with standard deviation ``d_model^-0.5``;
    so scaled embeddings are about as large as positions. The row of padding is 0, norm weights are 1, biases 0.
    """
    params: dict[str, Array] = {}
    for name, shape in parameter_shapes(config).items():
        if name.endswith(("_embed.weight", "_positions.weight")):
            params[name] = rng.normal(0.0, config["d_model"] ** -0.5, shape)
        elif len(shape) == 2:
            bound = math.sqrt(6 / sum(shape))
            params[name] = rng.uniform(-bound, bound, shape)
        else:
            params[name] = np.ones(shape) if name.endswith(".weight") else np.zeros(shape)
        if name.endswith("_embed.weight"):
            params[name][config["pad_id"]] = 0
    return params


class EncodeCache(NamedTuple):
    """Values that :func:`encode_backward` needs."""

    src: Ids  # (B, S)
    layers: list[EncoderLayerCache]
    norm: NormCache | None  # the last norm, in pre-norm only


class DecodeCache(NamedTuple):
    """Values that :func:`decode_backward` needs."""

    tgt_in: Ids  # (B, T)
    layers: list[DecoderLayerCache]
    norm: NormCache | None  # the last norm, in pre-norm only
    top: Array  # input of the generator, (B, T, d_model)


class ForwardCache(NamedTuple):
    """Values that :func:`backward` needs."""

    encoder: EncodeCache | None  # None in a language model
    decoder: DecodeCache


def embed_sequence(params: Params, config: Config, side: str, ids: Ids) -> Array:
    """Return embeddings with positions, sections 3.4 and 3.5: ``(B, L)`` -> ``(B, L, d_model)``.

    Args:
        params: The parameters of the complete model.
        config: Sizes and variants.
        side: ``"src"`` or ``"tgt"``.
        ids: ``(B, L)``.
    """
    x = embed(params[_embedding_name(config, side)], ids, config["scale_embeddings"])  # (B, L, d_model)
    length = ids.shape[1]
    if config["positions"] == "sinusoidal":
        return x + sinusoidal_positions(length, x.shape[-1], x.dtype)
    if config["positions"] == "learned":
        return x + learned_positions(params[f"{side}_positions.weight"], length)
    if config["positions"] == "rotary":
        return x  # self-attention applies them
    raise ValueError(f"positions = {config['positions']!r} is unknown: use sinusoidal, learned or rotary")


def embed_sequence_backward(params: Params, config: Config, side: str, ids: Ids, d_x: Array) -> Grads:
    """Return the gradients of the embedding and of learned positions."""
    name = _embedding_name(config, side)
    grads = {name: embed_backward(params[name], ids, config["pad_id"], d_x, config["scale_embeddings"])}
    if config["positions"] == "learned":
        name = f"{side}_positions.weight"
        grads[name] = learned_positions_backward(params[name], d_x)
    return grads


def _embedding_name(config: Config, side: str) -> str:
    src_embed, tgt_embed, _ = embedding_names(config)
    return src_embed if side == "src" else tgt_embed


def encode(params: Params, config: Config, src: Ids) -> tuple[Array, EncodeCache]:
    """Compute the encoder: ``src (B, S)`` -> the memory ``(B, S, d_model)`` and the cache."""
    src_mask = source_mask(src, config)  # (B, 1, 1, S)
    x = embed_sequence(params, config, "src", src)  # (B, S, d_model)
    layers = []
    for i in range(config["n_encoder_layers"]):
        x, cache = encoder_layer(child(params, f"encoder.layers.{i}"), config, x, src_mask)
        layers.append(cache)
    norm = None
    if config["norm"] == "pre":
        x, norm = layer_norm(child(params, "encoder.norm"), x, config["norm_eps"])
    return x, EncodeCache(src, layers, norm)


def encode_backward(params: Params, config: Config, cache: EncodeCache, d_memory: Array) -> Grads:
    """Return the gradients of the encoder's parameters, source embedding included."""
    d_x = d_memory
    grads: Grads = {}
    if cache.norm is not None:
        d_x, norm = layer_norm_backward(child(params, "encoder.norm"), cache.norm, d_x)
        grads = under("encoder.norm", norm)
    for i in reversed(range(config["n_encoder_layers"])):
        name = f"encoder.layers.{i}"
        d_x, layer = encoder_layer_backward(child(params, name), config, cache.layers[i], d_x)
        grads = summed(under(name, layer), grads)
    return summed(embed_sequence_backward(params, config, "src", cache.src, d_x), grads)


def decode(
    params: Params, config: Config, tgt_in: Ids, memory: Array | None = None, src_mask: Mask | None = None
) -> tuple[Array, DecodeCache]:
    """Compute the decoder and the generator.

    Args:
        params: The parameters of the complete model.
        config: Sizes and variants.
        tgt_in: ``(B, T)``, beginning with bos.
        memory: ``(B, S, d_model)``; None for a language model.
        src_mask: ``(B, 1, 1, S)``, True = may be attended to; None: all of the memory.

    Returns:
        Logits ``(B, T, V)`` and the cache.

    Raises:
        ValueError: An encoder-decoder lacks its memory, or a language model is given one.
    """
    if (memory is None) != (config["n_encoder_layers"] == 0):
        raise ValueError("an encoder-decoder needs its memory, and a language model has none")
    tgt_mask = target_mask(tgt_in, config["pad_id"])  # (B, 1, T, T)
    x = embed_sequence(params, config, "tgt", tgt_in)  # (B, T, d_model)
    if src_mask is None:
        src_mask = np.ones((1, 1, 1, 1), dtype=np.bool_)
    layers = []
    for i in range(config["n_decoder_layers"]):
        x, cache = decoder_layer(child(params, f"decoder.layers.{i}"), config, x, tgt_mask, memory, src_mask)
        layers.append(cache)
    norm = None
    if config["norm"] == "pre":
        x, norm = layer_norm(child(params, "decoder.norm"), x, config["norm_eps"])
    logits = linear(_generator(params, config), x)  # (B, T, V)
    return logits, DecodeCache(tgt_in, layers, norm, x)


def decode_backward(params: Params, config: Config, cache: DecodeCache, d_logits: Array) -> tuple[Array | None, Grads]:
    """Return the gradient of the memory (None without memory) and those of the decoder's parameters."""
    d_x, generator = linear_backward(_generator(params, config), cache.top, d_logits)
    grads = {embedding_names(config)[2]: generator["weight"]}
    if "bias" in generator:
        grads["generator.bias"] = generator["bias"]
    if cache.norm is not None:
        d_x, norm = layer_norm_backward(child(params, "decoder.norm"), cache.norm, d_x)
        grads = summed(under("decoder.norm", norm), grads)
    d_memory: Array | None = None
    for i in reversed(range(config["n_decoder_layers"])):
        name = f"decoder.layers.{i}"
        d_x, d_part, layer = decoder_layer_backward(child(params, name), config, cache.layers[i], d_x)
        grads = summed(under(name, layer), grads)
        if d_part is not None:  # every layer attends to the memory, so its gradients add up
            d_memory = d_part if d_memory is None else d_memory + d_part
    return d_memory, summed(embed_sequence_backward(params, config, "tgt", cache.tgt_in, d_x), grads)


def _generator(params: Params, config: Config) -> Params:
    """Return the parameters of the pre-softmax projection, which may share the embedding's matrix (section 3.4)."""
    p = {"weight": params[embedding_names(config)[2]]}
    return {**p, "bias": params["generator.bias"]} if config["generator_bias"] else p


def forward(params: Params, config: Config, src: Ids | None, tgt_in: Ids) -> tuple[Array, ForwardCache]:
    """Compute the logits of the complete model.

    Args:
        params: By their names in the state dict.
        config: Sizes and variants.
        src: ``(B, S)``; None for a language model, which ignores it.
        tgt_in: ``(B, T)``, beginning with bos.

    Returns:
        Logits ``(B, T, V)`` and the cache.
    """
    if src is None or not config["n_encoder_layers"]:
        logits, decoder = decode(params, config, tgt_in)
        return logits, ForwardCache(None, decoder)
    memory, encoder = encode(params, config, src)
    logits, decoder = decode(params, config, tgt_in, memory, source_mask(src, config))
    return logits, ForwardCache(encoder, decoder)


def backward(params: Params, config: Config, cache: ForwardCache, d_logits: Array) -> Grads:
    """Return the gradient of every stored parameter, given the gradient of the logits ``(B, T, V)``."""
    d_memory, grads = decode_backward(params, config, cache.decoder, d_logits)
    if cache.encoder is None or d_memory is None:
        return grads
    return summed(encode_backward(params, config, cache.encoder, d_memory), grads)
