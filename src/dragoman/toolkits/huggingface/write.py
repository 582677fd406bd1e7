"""Write a bundle for Hugging Face: a folder that transformers loads as ``AutoModelForSeq2SeqLM`` and ``AutoTokenizer``.

  config.json, generation_config.json      the model's class and sizes; settings of its search
  model.safetensors                        weights, tied ones once
  source.spm, target.spm                   the subwords, for MarianTokenizer
  vocab.json [target_vocab.json]           the id of each piece
  tokenizer_config.json [tokenizer.json]   the latter if both sides have the same subwords and it can hold their
                                           normalisation
  README.md                                the model card

A post-norm model becomes a Marian, a pre-norm one a Pegasus, which is Marian with the norms before the sub-layers.
Both have the paper's sinusoids with all sines first, then all cosines; ours alternate. So each axis of a tensor that
belongs to the residual stream is reordered: even channels, then odd ones. This order changes no result.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor

from dragoman.bundle import Bundle
from dragoman.config import DecodeConfig, ModelConfig, unknown
from dragoman.data.tokenizer import BOS_ID, EOS_ID, PAD_ID, UNK_ID
from dragoman.files import final_name
from dragoman.model.embedding import sinusoids
from dragoman.model.weights import save_weights
from dragoman.toolkits.huggingface import NEEDED, ONE_TABLE
from dragoman.toolkits.huggingface.model_card import has_lost_tables, model_card
from dragoman.toolkits.huggingface.tokenizer_json import write_tokenizer_json
from dragoman.toolkits.writing import most_tokens, n_positions, not_held, weights_of, write_json

logger = logging.getLogger(__name__)

TITLE = "Hugging Face"
FILE = ""
PACKAGES = ()
QUANTIZATIONS = ("float32", "float16", "bfloat16")

ACTIVATIONS = ("relu", "gelu", "swish")
POSITIONS = ("sinusoidal", "learned")
EPSILON = 1e-5  # epsilon of its norms, which has no setting
CLASSES = {"post": ("marian", "MarianMTModel"), "pre": ("pegasus", "PegasusForConditionalGeneration")}
"""Model type and class of post-norm and pre-norm models."""


class Parameter(NamedTuple):
    """Our and their name of a tensor, and the axes that are the residual stream."""

    ours: str
    theirs: str
    rows: bool  # the first axis; the only one of a vector
    columns: bool = False


def why_not(config: ModelConfig) -> str:
    """See ``Writer``."""
    if reason := not_held(config, ACTIVATIONS, POSITIONS):
        return reason
    if {config.head_d_k * config.n_heads, config.head_d_v * config.n_heads} != {config.d_model}:
        return f"its heads are d_model / n_heads wide, not model.d_k = {config.head_d_k}, model.d_v = {config.head_d_v}"
    if config.positions == "learned" and config.norm == "post":
        return "its Marian loses learned positions when it is saved again (model.positions, with model.norm: post)"
    if not config.src_eos:
        return "its tokenizers end each source with eos, which this model does not read (model.src_eos = false)"
    if config.norm_eps != EPSILON:
        return f"the epsilon of its norms is {EPSILON:g}, and here model.norm_eps is {config.norm_eps:g}"
    if config.norm == "pre" and config.src_vocab_size != config.tgt_vocab_size:
        return "its Pegasus has one size of vocabulary, and here source and target have two"
    return ""


def write(bundle: Bundle, folder: Path, quantization: str = "float32") -> None:
    """See ``Writer``."""
    config, dtype = bundle.sizes, getattr(torch, quantization)
    if has_lost_tables(config):
        logger.warning("%s: this model needs %s: %s", final_name(folder), NEEDED, ONE_TABLE)
    weights = foreign_weights(config, weights_of(bundle), n_positions(bundle))
    save_weights(
        folder / "model.safetensors", {name: tensor.to(dtype) for name, tensor in weights.items()}, {"format": "pt"}
    )
    write_json(folder / "config.json", foreign_config(config, n_positions(bundle), quantization))
    write_json(folder / "generation_config.json", _generation(bundle))
    sides = (
        ("source.spm", "vocab.json", bundle.src_tokenizer),
        ("target.spm", "target_vocab.json", bundle.tgt_tokenizer),
    )
    is_joint = bundle.src_tokenizer.shares_pieces(bundle.tgt_tokenizer)
    for model, vocabulary, tokenizer in sides:
        tokenizer.save(folder / model)
        if vocabulary == "vocab.json" or not is_joint:
            pieces = tokenizer.pieces(range(tokenizer.vocab_size))
            write_json(folder / vocabulary, {piece: i for i, piece in enumerate(pieces)})
    data = bundle.config.data
    write_json(
        folder / "tokenizer_config.json",
        dict(
            tokenizer_class="MarianTokenizer", source_lang=data.src_lang or "", target_lang=data.tgt_lang or "",
            separate_vocabs=not is_joint, model_max_length=n_positions(bundle),
            unk_token="<unk>", pad_token="<pad>", eos_token="</s>", clean_up_tokenization_spaces=False,
        ),
    )  # fmt: skip
    if is_joint:
        write_tokenizer_json(bundle.src_tokenizer, folder)
    (folder / "README.md").write_text(model_card(bundle, quantization), encoding="utf-8")


def foreign_config(config: ModelConfig, positions: int, dtype: str) -> dict[str, Any]:
    """Return the content of ``config.json``."""
    kind, name = CLASSES[config.norm]
    sizes: dict[str, Any] = dict(
        vocab_size=config.src_vocab_size, d_model=config.d_model, max_position_embeddings=positions,
        encoder_layers=config.n_encoder_layers, decoder_layers=config.n_decoder_layers,
        encoder_attention_heads=config.n_heads, decoder_attention_heads=config.n_heads,
        encoder_ffn_dim=config.d_ff, decoder_ffn_dim=config.d_ff, num_hidden_layers=config.n_encoder_layers,
        activation_function=config.activation, scale_embedding=config.scale_embeddings,
        dropout=config.dropout, attention_dropout=config.attention_dropout,
        activation_dropout=config.activation_dropout,
    )  # fmt: skip
    if kind == "marian":
        sizes |= dict(
            decoder_vocab_size=config.tgt_vocab_size,
            share_encoder_decoder_embeddings=config.share_embeddings == "all",
            tie_word_embeddings=config.share_embeddings != "none",
        )
    else:
        sizes |= dict(tie_word_embeddings=config.share_embeddings == "all")
    return {
        "architectures": [name], "model_type": kind, "is_encoder_decoder": True, "dtype": dtype, **sizes,
        "pad_token_id": PAD_ID, "bos_token_id": BOS_ID, "eos_token_id": EOS_ID, "decoder_start_token_id": BOS_ID,
        "forced_eos_token_id": None,
    }  # fmt: skip


def power(decode: DecodeConfig) -> float:
    """Return the p of its length penalty n ** p; at 15 tokens 3/4 alpha grows as fast as ((5 + n) / 6) ** alpha."""
    if decode.length_penalty_form == "gnmt":
        return 0.75 * decode.length_penalty
    if decode.length_penalty_form == "power":
        return decode.length_penalty
    raise unknown("decode.length_penalty_form", decode.length_penalty_form)


def early_stopping(decode: DecodeConfig) -> bool | Literal["never"]:
    """Return its rule of stopping: it stops at as many finished hypotheses as the beam, or when none can be better."""
    return True if decode.patience == 1 else "never"


def _generation(bundle: Bundle) -> dict[str, Any]:
    """Return the content of ``generation_config.json``: our search, except for the form of the length penalty."""
    decode = bundle.config.decode
    is_beam = decode.beam_size > 1
    if is_beam and decode.patience not in (None, 1):
        logger.warning(
            "decode.patience = %g is not held by %s, only 1: it will search until no better hypothesis is possible",
            decode.patience, TITLE,
        )  # fmt: skip
    return {
        "pad_token_id": PAD_ID, "bos_token_id": BOS_ID, "eos_token_id": EOS_ID, "decoder_start_token_id": BOS_ID,
        "suppress_tokens": [PAD_ID, UNK_ID, BOS_ID], "num_beams": decode.beam_size,
        **({"length_penalty": power(decode), "early_stopping": early_stopping(decode)} if is_beam else {}),
        "max_length": most_tokens(bundle),
    }  # fmt: skip


def parameters(config: ModelConfig) -> Iterator[Parameter]:
    """Yield the tensors of the two stacks, biases and norms included, without embeddings, generator and positions."""
    attentions = {"self_attn": "self_attn", "cross_attn": "encoder_attn"}
    for side, n_layers in (("encoder", config.n_encoder_layers), ("decoder", config.n_decoder_layers)):
        kinds = list(attentions)[: 1 if side == "encoder" else 2]
        for i in range(n_layers):
            our_layer, their_layer = f"{side}.layers.{i}", f"model.{side}.layers.{i}"
            for kind in kinds:
                for letter, projection in zip("qkvo", ("q_proj", "k_proj", "v_proj", "out_proj"), strict=True):
                    names = f"{our_layer}.{kind}.w_{letter}", f"{their_layer}.{attentions[kind]}.{projection}"
                    yield from _linear(*names, rows=letter == "o")
            yield from _linear(f"{our_layer}.feed_forward.w_1", f"{their_layer}.fc1", rows=False)
            yield from _linear(f"{our_layer}.feed_forward.w_2", f"{their_layer}.fc2", rows=True)
            norms = [*(f"{attentions[kind]}_layer_norm" for kind in kinds), "final_layer_norm"]
            for n, norm in enumerate(norms, 1):
                for what in ("weight", "bias"):
                    yield Parameter(f"{our_layer}.norm{n}.{what}", f"{their_layer}.{norm}.{what}", rows=True)
        if config.norm == "pre":
            for what in ("weight", "bias"):
                yield Parameter(f"{side}.norm.{what}", f"model.{side}.layer_norm.{what}", rows=True)


def _linear(ours: str, theirs: str, rows: bool) -> Iterator[Parameter]:
    """Yield weight and bias of a projection into the residual stream (its rows), or out of it (its columns)."""
    yield Parameter(f"{ours}.weight", f"{theirs}.weight", rows, not rows)
    yield Parameter(f"{ours}.bias", f"{theirs}.bias", rows)


def order(config: ModelConfig) -> Tensor:
    """Return our number of each of their channels, ``(d_model,)``: even ones first, unless positions are learned."""
    channels = torch.arange(config.d_model)
    return channels if config.positions == "learned" else torch.cat((channels[0::2], channels[1::2]))


def foreign_weights(config: ModelConfig, weights: Mapping[str, Tensor], positions: int) -> dict[str, Tensor]:
    """Return a state dict of ours under their names; of tied tensors only the one that loading copies to the others."""
    channels = order(config)
    theirs = {}
    for parameter in parameters(config):
        tensor = weights.get(parameter.ours)
        if tensor is None:  # a projection without bias
            tensor = torch.zeros(weights[parameter.ours.replace(".bias", ".weight")].size(0))
        tensor = tensor[channels] if parameter.rows else tensor
        theirs[parameter.theirs] = tensor[:, channels] if parameter.columns else tensor
    src, tgt, generator = (weights[f"{name}.weight"][:, channels] for name in ("src_embed", "tgt_embed", "generator"))
    if config.share_embeddings == "all":
        theirs["model.shared.weight"] = src
    else:
        theirs["model.encoder.embed_tokens.weight"], theirs["model.decoder.embed_tokens.weight"] = src, tgt
        if config.norm == "pre":
            theirs["model.shared.weight"] = src.clone()  # a name that must exist, but is not used
        if config.norm == "pre" or config.share_embeddings == "none":
            theirs["lm_head.weight"] = generator.clone()
    theirs["final_logits_bias"] = weights.get("generator.bias", torch.zeros(len(generator)))[None]
    if config.norm == "pre":
        table = sinusoids(0, positions, config.d_model).float()[:, channels]
        for side, letters in (("encoder", "src"), ("decoder", "tgt")):
            learned = weights.get(f"{letters}_positions.weight")
            theirs[f"model.{side}.embed_positions.weight"] = table.clone() if learned is None else learned
    return theirs
