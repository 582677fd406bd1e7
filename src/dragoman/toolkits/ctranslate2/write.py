"""Write a bundle in the format of CTranslate2, with that package's own specification of a Transformer.

A folder for https://github.com/OpenNMT/CTranslate2:

  model.bin                variables, and their aliases
  config.json              the special tokens, the epsilon of the norms
  shared_vocabulary.json   or source_vocabulary.json and target_vocabulary.json: the piece of each id
  vmap.txt                 the shortlist, if the bundle has one: a source piece, a tab, target pieces

In the specification a matrix is ``(out, in)`` as here. Queries, keys and values of self-attention are one matrix; so
are keys and values of cross-attention. A norm belongs to the sub-layer that it follows (pre-norm: precedes).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dragoman.bundle import Bundle
from dragoman.config import ModelConfig
from dragoman.data.shortlist import Shortlist
from dragoman.data.tokenizer import BOS_ID, EOS_ID, UNK_ID
from dragoman.toolkits.writing import n_positions, not_held, weights_of

if TYPE_CHECKING:
    from torch import Tensor

ACTIVATIONS = {"relu": "RELU", "swish": "SWISH", "swiglu": "SWISH", "gelu": "GELU"}
POSITIONS = ("sinusoidal", "learned", "rotary")
MOST_BYTES = 2**32 - 1  # largest variable
TITLE = "CTranslate2"
_BLANK = re.compile(r"[ \t\r\n]")
FILE = ""
PACKAGES = ()
QUANTIZATIONS = ("float32", "float16", "bfloat16", "int8", "int8_float32", "int8_float16", "int8_bfloat16")


def why_not(config: ModelConfig) -> str:
    """See ``Writer``."""
    if reason := not_held(config, ACTIVATIONS, POSITIONS):
        return reason
    if config.head_d_k != config.head_d_v:
        return f"its heads have one width, and here model.d_k is {config.head_d_k} and model.d_v {config.head_d_v}"
    widest = max(config.src_vocab_size, config.tgt_vocab_size, config.d_ff, 3 * config.n_heads * config.head_d_k)
    if 4 * widest * config.d_model > MOST_BYTES:
        return "a matrix of this model takes more than 4 GiB, which its format cannot hold"
    return ""


def write(bundle: Bundle, folder: Path, quantization: str = "float32") -> None:
    """See ``Writer``; subword models get the names that they have in a bundle.

    Sinusoidal positions become a table with as many rows as the run's settings can need, at least 1,024.
    """
    config = bundle.sizes
    spec = specification(config, weights_of(bundle), n_positions(bundle))
    src, tgt = (
        tokenizer.pieces(range(tokenizer.vocab_size)) for tokenizer in (bundle.src_tokenizer, bundle.tgt_tokenizer)
    )
    spec.register_source_vocabulary(src)
    spec.register_target_vocabulary(tgt)
    spec.config.add_source_eos = config.src_eos  # targets begin with bos
    spec.config.bos_token = spec.config.decoder_start_token = tgt[BOS_ID]
    spec.config.eos_token, spec.config.unk_token = tgt[EOS_ID], tgt[UNK_ID]
    spec.config.layer_norm_epsilon = config.norm_eps
    # the attention that it returns is ours: see ``decoding.alignment``
    spec.decoder.alignment_layer = np.int16(-2 if config.n_decoder_layers > 1 else -1)
    spec.decoder.alignment_heads = np.int16(config.n_heads)
    spec.validate()
    spec.optimize(quantization)
    spec.save(str(folder))
    if bundle.shortlist is not None:
        (folder / "vmap.txt").write_text(vocabulary_map(bundle.shortlist, src, tgt), encoding="utf-8")
    if bundle.src_tokenizer.shares_pieces(bundle.tgt_tokenizer):
        bundle.src_tokenizer.save(folder / "joint.spm")
    else:
        bundle.src_tokenizer.save(folder / "src.spm")
        bundle.tgt_tokenizer.save(folder / "tgt.spm")


def vocabulary_map(shortlist: Shortlist, src: Sequence[str], tgt: Sequence[str]) -> str:
    """Return a shortlist in CTranslate2's format, which separates pieces by blanks: pieces with a blank are left out.

    Args:
        src, tgt: Pieces in the order of their ids.
    """

    def line(key: str, ids: Iterable[int]) -> str:
        return f"{key}\t{' '.join(tgt[i] for i in ids if not _BLANK.search(tgt[i]))}\n"

    rows = zip(src, shortlist.rows(), strict=True)
    return line("", shortlist.usual) + "".join(
        line(piece, ids) for piece, ids in rows if len(ids) and not _BLANK.search(piece)
    )


def specification(config: ModelConfig, weights: Mapping[str, Tensor], n_positions: int) -> Any:
    """Return a ``TransformerSpec`` that holds a state dict.

    Args:
        n_positions: Number of rows of the table of sinusoids, ``(n_positions, d_model)``.
    """
    import torch  # not above, as ``why_not`` is asked where nothing is written

    from dragoman.model.embedding import sinusoids

    spec = _without_weights(config)

    def linear(target: Any, *sources: str) -> None:
        """Set one projection, or several side by side: ``(sum of outs, in)``."""
        for what in ("weight", "bias"):
            parts = [weights[f"{name}.{what}"] for name in sources if f"{name}.{what}" in weights]
            if parts:
                setattr(target, what, torch.cat(parts) if len(parts) > 1 else parts[0])

    def norm(target: Any, source: str) -> None:
        target.gamma, target.beta = weights[f"{source}.weight"], weights[f"{source}.bias"]

    def attention(target: Any, source: str, groups: Sequence[str]) -> None:
        for projection, group in zip(target.linear, groups, strict=True):
            linear(projection, *(f"{source}.w_{letter}" for letter in group))

    def feed_forward(target: Any, source: str) -> None:
        linear(target.linear_0, f"{source}.{'w_3' if config.is_gated else 'w_1'}")  # followed by the activation
        linear(target.linear_1, f"{source}.w_2")
        if config.is_gated:
            linear(target.linear_0_noact, f"{source}.w_1")

    table = sinusoids(0, n_positions, config.d_model).float() if config.positions == "sinusoidal" else None
    for stack, name, side in ((spec.encoder, "encoder", "src"), (spec.decoder, "decoder", "tgt")):
        stack.scale_embeddings = config.scale_embeddings
        positions = weights.get(f"{side}_positions.weight", table)
        if positions is not None:
            stack.position_encodings.encodings = positions
        if config.norm == "pre":
            norm(stack.layer_norm, f"{name}.norm")
        for i, layer in enumerate(stack.layer):
            attention(layer.self_attention, f"{name}.layers.{i}.self_attn", ("qkv", "o"))
            feed_forward(layer.ffn, f"{name}.layers.{i}.feed_forward")
            norms = [layer.self_attention.layer_norm, layer.ffn.layer_norm]
            if name == "decoder":
                attention(layer.attention, f"{name}.layers.{i}.cross_attn", ("q", "kv", "o"))
                norms.insert(1, layer.attention.layer_norm)
            for n, target in enumerate(norms, 1):
                norm(target, f"{name}.layers.{i}.norm{n}")
    spec.encoder.embeddings[0].weight = weights["src_embed.weight"]
    spec.decoder.embeddings.weight = weights["tgt_embed.weight"]
    linear(spec.decoder.projection, "generator")
    return spec


def _without_weights(config: ModelConfig) -> Any:
    """Return a ``TransformerSpec`` of the variant, still without weights."""
    from ctranslate2.specs import TransformerDecoderSpec, TransformerEncoderSpec, TransformerSpec, common_spec

    variant: dict[str, Any] = dict(
        pre_norm=config.norm == "pre",
        activation=common_spec.Activation[ACTIVATIONS[config.activation]],
        ffn_glu=config.is_gated,
        head_dim=config.head_d_k if config.head_d_k * config.n_heads != config.d_model else None,
        rotary_dim=config.head_d_k if config.positions == "rotary" else None,
    )
    return TransformerSpec(
        TransformerEncoderSpec(config.n_encoder_layers, config.n_heads, **variant),
        TransformerDecoderSpec(config.n_decoder_layers, config.n_heads, **variant),
    )
