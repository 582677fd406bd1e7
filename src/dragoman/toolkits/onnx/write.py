"""Write ONNX: two graphs for onnxruntime and transformers.js, with the names of optimum.

  encoder_model.onnx, decoder_model_merged.onnx         int8: ..._quantized.onnx; see ``graph.py``
  config.json, generation_config.json                   sizes; greedy search, as in transformers.js
  joint.spm, or src.spm and tgt.spm                     the subwords
  tokenizer.json, tokenizer_config.json                 the same, if both sides have the same subwords and it can hold
                                                        their normalisation

transformers.js derives only the names of the files from ``model_type: marian``. It computes our graphs, so every
variant of the Transformer can be written.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from dragoman.bundle import Bundle
from dragoman.config import ModelConfig
from dragoman.data.tokenizer import BOS_ID, EOS_ID, PAD_ID, UNK_ID
from dragoman.toolkits.huggingface.tokenizer_json import write_tokenizer_json
from dragoman.toolkits.writing import most_tokens, n_positions, not_held, weights_of, write_json

TITLE = "ONNX"
FILE = ""
PACKAGES = ("onnx",)
QUANTIZATIONS = ("float32", "int8")
ACTIVATIONS = ("relu", "gelu", "swish", "swiglu")  # of graph.py
POSITIONS = ("sinusoidal", "learned", "rotary")
ENDINGS = {"float32": "", "int8": "_quantized"}
"""Endings of the file names, those of transformers.js for its ``dtype`` fp32 and q8."""
MOST_BYTES = 2**31 - 2**24  # largest file: protocol buffers end at 2 GiB


def why_not(config: ModelConfig) -> str:
    """See ``Writer``."""
    if reason := not_held(config, ACTIVATIONS, POSITIONS):
        return reason
    heads = 2 * config.n_heads * (config.head_d_k + config.head_d_v)
    layer = config.d_model * (2 * heads + (3 if config.is_gated else 2) * config.d_ff)
    tables = 2 * config.d_model * max(config.src_vocab_size, config.tgt_vocab_size)
    if 4 * (tables + max(config.n_encoder_layers, config.n_decoder_layers) * layer) > MOST_BYTES:
        return "this model takes more than 2 GiB, which one file of it cannot hold"
    return ""


def write(bundle: Bundle, folder: Path, quantization: str = "float32") -> None:
    """See ``Writer``."""
    from dragoman.toolkits.onnx.graph import decoder, encoder

    config, most = bundle.sizes, n_positions(bundle)
    weights = {name: tensor.numpy() for name, tensor in weights_of(bundle).items()}
    for name, graph in (("encoder_model", encoder), ("decoder_model_merged", decoder)):
        model = graph(config, weights, most, quantization == "int8")
        (folder / f"{name}{ENDINGS[quantization]}.onnx").write_bytes(model.SerializeToString())
    write_json(folder / "config.json", _config(config, most))
    write_json(folder / "generation_config.json", {
        **SPECIAL, "bad_words_ids": [[PAD_ID], [UNK_ID], [BOS_ID]], "num_beams": 1,
        "max_length": most_tokens(bundle),
    })  # fmt: skip
    if bundle.src_tokenizer.shares_pieces(bundle.tgt_tokenizer):
        bundle.src_tokenizer.save(folder / "joint.spm")
        if write_tokenizer_json(bundle.src_tokenizer, folder, config.src_eos):
            write_json(folder / "tokenizer_config.json", dict(
                tokenizer_class="PreTrainedTokenizer", pad_token="<pad>", unk_token="<unk>", bos_token="<s>",
                eos_token="</s>", clean_up_tokenization_spaces=False,
            ))  # fmt: skip
    else:
        bundle.src_tokenizer.save(folder / "src.spm")
        bundle.tgt_tokenizer.save(folder / "tgt.spm")


SPECIAL = {
    "pad_token_id": PAD_ID, "bos_token_id": BOS_ID, "eos_token_id": EOS_ID, "decoder_start_token_id": BOS_ID,
}  # fmt: skip


def _config(config: ModelConfig, most: int) -> dict[str, Any]:
    return {
        "architectures": ["MarianMTModel"], "model_type": "marian", "is_encoder_decoder": True,
        "vocab_size": config.tgt_vocab_size, "d_model": config.d_model, "max_position_embeddings": most,
        "encoder_layers": config.n_encoder_layers, "decoder_layers": config.n_decoder_layers,
        "num_hidden_layers": config.n_encoder_layers, "encoder_attention_heads": config.n_heads,
        "decoder_attention_heads": config.n_heads, "encoder_ffn_dim": config.d_ff, "decoder_ffn_dim": config.d_ff,
        **SPECIAL,
    }  # fmt: skip
