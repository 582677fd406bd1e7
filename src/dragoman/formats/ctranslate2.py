"""A bundle in the format of CTranslate2, written from its specification: the package ``ctranslate2`` is not needed.

A folder for https://github.com/OpenNMT/CTranslate2 (python/ctranslate2/specs/model_spec.py and transformer_spec.py
describe it):

  model.bin                variables, and names that stand for the same one
  config.json              the special tokens, the epsilon of the norms
  shared_vocabulary.json   or source_vocabulary.json and target_vocabulary.json: the piece of each id

model.bin, all numbers little-endian: version (u32), name and revision of the specification (string, u32); the number of
variables (u32), and each as name, rank (u8), dimensions (u32), type (u8), bytes (u32), values in rows; the number of
aliases (u32), each as two names. A string is its length with the final zero (u16), UTF-8, a zero.

In the specification a matrix is ``(out, in)`` as here; queries, keys and values of self-attention are one matrix, keys
and values of cross-attention another; a norm belongs to the sub-layer it follows (or precedes, pre-norm).
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import BinaryIO

import torch
from torch import Tensor

from dragoman.bundle import Bundle
from dragoman.config import ModelConfig
from dragoman.data.tokenizer import BOS_ID, EOS_ID, UNK_ID
from dragoman.errors import BundleError, ConfigError
from dragoman.model.embedding import sinusoids

BINARY_VERSION, SPECIFICATION, REVISION = 6, "TransformerSpec", 7
TYPES = (torch.float32, torch.int8, torch.int16, torch.int32, torch.float16, torch.bfloat16)  # in the order of ids
ACTIVATIONS = {"relu": 0, "swish": 2, "swiglu": 2, "gelu": 3}
MOST_BYTES = 2**32 - 1  # of one variable
LEAST_POSITIONS = 1024

QUANTIZATIONS = {  # to what the matrices are rounded, and everything else
    "float32": (torch.float32, torch.float32),
    "float16": (torch.float16, torch.float16),
    "bfloat16": (torch.bfloat16, torch.bfloat16),
    "int8": (torch.int8, torch.float32),
    "int8_float32": (torch.int8, torch.float32),
    "int8_float16": (torch.int8, torch.float16),
    "int8_bfloat16": (torch.int8, torch.bfloat16),
}


def why_not(config: ModelConfig) -> str:
    """What of a model CTranslate2 cannot express, with the setting's value; nothing if it can express it."""
    if config.architecture != "transformer":
        return f"it has Transformers only, and here model.architecture is {config.architecture}"
    for side in ("encoder", "decoder"):
        if not getattr(config, f"n_{side}_layers"):
            return f"it has no model without {side} (model.n_{side}_layers = 0)"
    if config.head_d_k != config.head_d_v:
        return f"its heads have one width, and here model.d_k is {config.head_d_k} and model.d_v {config.head_d_v}"
    widest = max(config.src_vocab_size, config.tgt_vocab_size, config.d_ff, 3 * config.n_heads * config.head_d_k)
    if 4 * widest * config.d_model > MOST_BYTES:
        return "a matrix of this model takes more than 4 GiB, which its format cannot hold"
    return ""


def check(config: ModelConfig, quantization: str) -> None:
    """Refuse what ``write`` would, before there is a folder.

    Raises:
        ConfigError: The quantization is unknown, or the format cannot express the model.
    """
    if quantization not in QUANTIZATIONS:
        raise ConfigError(f"quantization = {quantization!r} is unknown: use one of {', '.join(QUANTIZATIONS)}")
    if reason := why_not(config):
        raise ConfigError(f"this model cannot be written for CTranslate2: {reason}")


def write(bundle: Bundle, folder: Path, quantization: str = "float32") -> None:
    """Write the model of ``bundle`` into ``folder``, which is there and empty.

    Its subword models are written too, under the names they have in a bundle. Sinusoidal positions become a table: of
    as many rows as the run's settings can ask for, at least 1,024.

    Args:
        quantization: One of ``QUANTIZATIONS``. With ``int8`` each row of a matrix is rounded to 127 steps of its
            largest value.

    Raises:
        BundleError: A weight is not finite.
        ConfigError: The quantization is unknown, or the format cannot express the model.
        OSError: A file cannot be written.
    """
    config = bundle.model.config
    check(config, quantization)
    data, decode = bundle.config.data, bundle.config.decode
    n_positions = max(LEAST_POSITIONS, data.max_tokens + decode.max_extra_tokens + 1)
    weights = {name: tensor.detach().cpu().float() for name, tensor in bundle.model.state_dict().items()}
    for name, tensor in weights.items():
        if not bool(tensor.isfinite().all()):
            raise BundleError(f"{name} holds values that are not finite (NaN or infinite): the model is damaged")
    stored, aliases = split_aliases(variables(config, weights, n_positions))
    with (folder / "model.bin").open("wb") as file:
        write_binary(file, quantized(stored, quantization), aliases)
    pieces = {
        side: tokenizer.pieces(range(tokenizer.vocab_size))
        for side, tokenizer in (("source", bundle.src_tokenizer), ("target", bundle.tgt_tokenizer))
    }
    joint = bundle.src_tokenizer == bundle.tgt_tokenizer
    for name, one in [("shared", pieces["source"])] if joint else pieces.items():
        (folder / f"{name}_vocabulary.json").write_text(json.dumps(one), encoding="utf-8")
    (folder / "config.json").write_text(json.dumps(settings(config, pieces["target"]), indent=2) + "\n")
    if joint:
        bundle.src_tokenizer.save(folder / "joint.spm")
    else:
        bundle.src_tokenizer.save(folder / "src.spm")
        bundle.tgt_tokenizer.save(folder / "tgt.spm")


def settings(config: ModelConfig, pieces: Sequence[str]) -> dict[str, str | float | bool]:
    """What config.json says: sources are ids and eos, targets begin with bos."""
    return {
        "add_source_bos": False,
        "add_source_eos": True,
        "bos_token": pieces[BOS_ID],
        "decoder_start_token": pieces[BOS_ID],
        "eos_token": pieces[EOS_ID],
        "layer_norm_epsilon": config.norm_eps,
        "multi_query_attention": False,
        "unk_token": pieces[UNK_ID],
    }


def variables(config: ModelConfig, weights: Mapping[str, Tensor], n_positions: int) -> dict[str, Tensor]:
    """The weights under the names of the specification, and its scalars; float32.

    Args:
        weights: A state dict. Tensors that share their memory are tied, and are so in the result.
        n_positions: Rows of the table of sinusoids, ``(n_positions, d_model)``.
    """
    found: dict[str, Tensor] = {}

    def flag(value: bool) -> Tensor:
        return torch.tensor(value, dtype=torch.int8)

    def linear(name: str, *ours: str) -> None:
        """One projection, or several side by side: ``(sum of outs, in)``."""
        for what in ("weight", "bias"):
            parts = [weights[f"{one}.{what}"] for one in ours if f"{one}.{what}" in weights]
            if parts:
                found[f"{name}/{what}"] = torch.cat(parts) if len(parts) > 1 else parts[0]

    def norm(name: str, ours: str) -> None:
        found[f"{name}/layer_norm/gamma"], found[f"{name}/layer_norm/beta"] = (
            weights[f"{ours}.{what}"] for what in ("weight", "bias")
        )

    def attention(name: str, ours: str, groups: Sequence[str]) -> None:
        for i, group in enumerate(groups):
            linear(f"{name}/linear_{i}", *(f"{ours}.w_{letter}" for letter in group))
        if config.head_d_k * config.n_heads != config.d_model:
            found[f"{name}/head_dim"] = torch.tensor(config.head_d_k, dtype=torch.int32)
        if config.positions == "rotary" and ours.endswith("self_attn"):
            found[f"{name}/rotary_dim"] = torch.tensor(config.head_d_k, dtype=torch.int32)
            found[f"{name}/rotary_interleave"] = flag(True)
            found[f"{name}/rotary_base"] = torch.tensor(10000.0)

    def feed_forward(name: str, ours: str) -> None:
        gated = config.activation == "swiglu"
        linear(f"{name}/linear_0", f"{ours}.{'w_3' if gated else 'w_1'}")  # the one that the activation follows
        linear(f"{name}/linear_1", f"{ours}.w_2")
        if gated:
            linear(f"{name}/linear_0_noact", f"{ours}.w_1")

    table = sinusoids(0, n_positions, config.d_model).float() if config.positions == "sinusoidal" else None
    for stack, side in (("encoder", "src"), ("decoder", "tgt")):
        found[f"{stack}/num_heads"] = torch.tensor(config.n_heads, dtype=torch.int16)
        found[f"{stack}/pre_norm"] = flag(config.norm == "pre")
        found[f"{stack}/activation"] = torch.tensor(ACTIVATIONS[config.activation], dtype=torch.int8)
        found[f"{stack}/scale_embeddings"] = flag(config.scale_embeddings)
        if config.norm == "pre":
            norm(stack, f"{stack}.norm")
        positions = weights.get(f"{side}_positions.weight", table)
        if positions is not None:
            found[f"{stack}/position_encodings/encodings"] = positions
    found["encoder/embeddings_0/weight"] = weights["src_embed.weight"]
    found["encoder/embeddings_merge"] = flag(False)  # there is one embedding of a token and nothing to merge
    found["encoder/multi_query_attention"] = flag(False)
    found["decoder/embeddings/weight"] = weights["tgt_embed.weight"]
    found["decoder/start_from_zero_embedding"] = flag(False)
    for name in ("alibi", "alibi_use_positive_positions", "scale_alibi"):
        found[f"decoder/{name}"] = flag(False)
    found["decoder/alignment_layer"] = torch.tensor(-1, dtype=torch.int16)
    found["decoder/alignment_heads"] = torch.tensor(1, dtype=torch.int16)
    linear("decoder/projection", "generator")
    for i in range(config.n_encoder_layers):
        name, ours = f"encoder/layer_{i}", f"encoder.layers.{i}"
        attention(f"{name}/self_attention", f"{ours}.self_attn", ("qkv", "o"))
        norm(f"{name}/self_attention", f"{ours}.norm1")
        feed_forward(f"{name}/ffn", f"{ours}.feed_forward")
        norm(f"{name}/ffn", f"{ours}.norm2")
    for i in range(config.n_decoder_layers):
        name, ours = f"decoder/layer_{i}", f"decoder.layers.{i}"
        attention(f"{name}/self_attention", f"{ours}.self_attn", ("qkv", "o"))
        norm(f"{name}/self_attention", f"{ours}.norm1")
        attention(f"{name}/attention", f"{ours}.cross_attn", ("q", "kv", "o"))
        norm(f"{name}/attention", f"{ours}.norm2")
        feed_forward(f"{name}/ffn", f"{ours}.feed_forward")
        norm(f"{name}/ffn", f"{ours}.norm3")
    return found


def split_aliases(found: Mapping[str, Tensor]) -> tuple[dict[str, Tensor], dict[str, str]]:
    """Tied variables once, under the first of their names in alphabetical order; and the other names with that one."""
    first: dict[tuple[int, torch.Size], str] = {}
    stored, aliases = {}, {}
    for name in sorted(found):
        tensor = found[name]
        known = first.setdefault((tensor.data_ptr(), tensor.shape), name) if tensor.dim() else name
        if known == name:
            stored[name] = tensor
        else:
            aliases[name] = known
    return stored, aliases


def quantized(stored: Mapping[str, Tensor], quantization: str) -> dict[str, Tensor]:
    """Matrices (what is called ``weight``) and the other tensors rounded; scalars, which are settings, as they are.

    An int8 matrix stands beside its ``weight_scale`` ``(out,)``: 127 over the largest value of the row. The scale of a
    tied one goes with its alias.
    """
    matrices, others = QUANTIZATIONS[quantization]
    result = {}
    for name, tensor in stored.items():
        if not tensor.dim():
            result[name] = tensor
        elif name.endswith("/weight") and matrices == torch.int8:
            result[name], result[f"{name}_scale"] = rounded_rows(tensor)
        else:
            result[name] = tensor.to(matrices if name.endswith("/weight") else others)
    return result


def rounded_rows(matrix: Tensor) -> tuple[Tensor, Tensor]:
    """Each row in int8, and the scale by which it was multiplied (halves go to the even number)."""
    largest = matrix.abs().amax(dim=1)  # (out,)
    largest = largest.masked_fill(largest == 0, 127.0).clamp_min(127 / torch.finfo(torch.float32).max)
    scale = torch.full_like(largest, 127.0) / largest  # a number over a tensor would be rounded twice
    return (matrix * scale[:, None]).round().to(torch.int8), scale


def write_binary(file: BinaryIO, stored: Mapping[str, Tensor], aliases: Mapping[str, str]) -> None:
    """Write model.bin as the head of this module describes it."""

    def string(text: str) -> bytes:
        raw = text.encode() + b"\0"
        return struct.pack("<H", len(raw)) + raw

    file.write(struct.pack("<I", BINARY_VERSION) + string(SPECIFICATION) + struct.pack("<II", REVISION, len(stored)))
    for name in sorted(stored):
        tensor = stored[name].contiguous()
        shape, kind = tuple(tensor.shape), TYPES.index(tensor.dtype)
        n_bytes = tensor.numel() * tensor.element_size()
        file.write(string(name) + struct.pack(f"<B{len(shape)}IBI", len(shape), *shape, kind, n_bytes))
        file.write(tensor.reshape(-1).view(torch.uint8).numpy().data)
    file.write(struct.pack("<I", len(aliases)))
    for alias in sorted(aliases):
        file.write(string(alias) + string(aliases[alias]))
