"""The same weights for every system: ours under the names of Hugging Face's models, and random ones that never end."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from dragoman.bundle import load_bundle, save_bundle
from dragoman.config import Config, ModelConfig
from dragoman.data.tokenizer import EOS_ID, Tokenizer
from dragoman.errors import ConfigError
from dragoman.model.embedding import sinusoids
from dragoman.model.transformer import Transformer
from dragoman.model.weights import untied

MAX_POSITIONS = 512
"""Theirs are a table; ours are made as needed."""

_ATTENTION = {"w_q": "q_proj", "w_k": "k_proj", "w_v": "v_proj", "w_o": "out_proj"}


def hugging_face_names(config: ModelConfig) -> dict[str, str]:
    """The name of each of our tensors, tied ones once, in the ``state_dict()`` of Marian, or of M2M100 if pre-norm.

    Raises:
        ConfigError: They cannot express the model.
    """
    wanted = {
        "positions": "sinusoidal", "share_embeddings": "all", "attention_bias": True,
        "generator_bias": False, "scale_embeddings": True, "activation": "relu",
    }  # fmt: skip
    for name, value in wanted.items():
        if getattr(config, name) != value:
            raise ConfigError(
                f"model.{name} = {getattr(config, name)!r}: Marian and M2M100 have only {value!r}; take such a run"
            )
    names = {"src_embed.weight": "model.shared.weight"}
    for side, n_layers in (("encoder", config.n_encoder_layers), ("decoder", config.n_decoder_layers)):
        modules = {f"self_attn.{ours}": f"self_attn.{theirs}" for ours, theirs in _ATTENTION.items()}
        modules |= {"norm1": "self_attn_layer_norm", "feed_forward.w_1": "fc1", "feed_forward.w_2": "fc2"}
        if side == "decoder":
            modules |= {f"cross_attn.{ours}": f"encoder_attn.{theirs}" for ours, theirs in _ATTENTION.items()}
            modules |= {"norm2": "encoder_attn_layer_norm", "norm3": "final_layer_norm"}
        else:
            modules |= {"norm2": "final_layer_norm"}
        for i in range(n_layers):
            for ours, theirs in modules.items():
                for kind in ("weight", "bias"):
                    names[f"{side}.layers.{i}.{ours}.{kind}"] = f"model.{side}.layers.{i}.{theirs}.{kind}"
        if config.norm == "pre":
            names |= {f"{side}.norm.{kind}": f"model.{side}.layer_norm.{kind}" for kind in ("weight", "bias")}
    return names


def to_hugging_face(config: ModelConfig, weights: Mapping[str, Tensor]) -> dict[str, np.ndarray]:
    """Our weights, and as ``positions`` our sinusoids, which are interleaved and theirs are not."""
    names = hugging_face_names(config)
    if names.keys() != weights.keys():
        raise ConfigError(
            f"these weights are not those of the configuration: {sorted(names.keys() ^ weights.keys())[:3]}"
        )
    carried = {names[name]: tensor.float().numpy() for name, tensor in weights.items()}
    return carried | {"positions": sinusoids(0, MAX_POSITIONS, config.d_model).float().numpy()}


def write_hugging_face(bundle: Path, folder: Path) -> Path:
    """Write ``weights.npz`` and ``sizes.json`` of a bundle for ``peers/hf_decode.py``."""
    model = load_bundle(bundle).model
    folder.mkdir(parents=True, exist_ok=True)
    np.savez(folder / "weights.npz", **to_hugging_face(model.config, untied(model)))
    sizes = model.config.model_dump(
        include={"d_model", "d_ff", "n_heads", "n_encoder_layers", "n_decoder_layers", "norm", "norm_eps"}
    )
    sizes |= {"vocab_size": model.config.tgt_vocab_size, "max_positions": MAX_POSITIONS}
    (folder / "sizes.json").write_text(json.dumps(sizes), encoding="utf-8")
    return folder


def random_bundle(folder: Path, tokenizer: Tokenizer, preset: str, seed: int = 0) -> Path:
    """A bundle of random weights whose translations end only where they must: for timing so many steps of any system.

    The last norm's bias and the embedding of eos point in opposite directions, so that eos is never likely.
    """
    config = Config.from_mapping({"model": {"preset": preset}, "data": {"train": {"src": "none", "tgt": "none"}}})
    vocab_size = tokenizer.vocab_size
    model_config = ModelConfig(**config.model.model_dump(), src_vocab_size=vocab_size, tgt_vocab_size=vocab_size)
    torch.manual_seed(seed)
    weights = {name: tensor.clone() for name, tensor in untied(Transformer(model_config)).items()}
    direction = torch.randn(model_config.d_model)
    direction *= 8 / direction.norm()
    weights[f"decoder.layers.{model_config.n_decoder_layers - 1}.norm3.bias"] = direction
    weights["src_embed.weight"][EOS_ID] = -direction
    save_bundle(folder, config, model_config, weights, tokenizer, tokenizer, {"weights": "random"})
    return folder
