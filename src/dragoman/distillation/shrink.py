"""A teacher with fewer layers, as the start of a student.

Shrink and fine-tune (Shleifer and Rush 2020, https://arxiv.org/abs/2010.13002): evenly spaced layers of the decoder are
kept, the first and the last among them; fine-tuning on the teacher's translations repairs the model. The encoder is
kept complete, or is shrunk in the same way.
"""

from __future__ import annotations

import re
from pathlib import Path

from dragoman.bundle import Bundle, Facts, Tables, save_bundle
from dragoman.config import Config, ModelConfig
from dragoman.errors import ConfigError
from dragoman.model.weights import untied

_LAYER = re.compile(r"(encoder|decoder)\.layers\.(\d+)\.")


def check_shrinkable(teacher: Config, encoder: int | None, decoder: int) -> None:
    """Refuse a teacher that cannot be shrunk to these numbers of layers.

    Args:
        encoder: Encoder layers to keep; None: all.
        decoder: Decoder layers to keep.

    Raises:
        ConfigError: The teacher is no Transformer, or does not have more layers.
    """
    model = teacher.model
    option = f"--shrink {decoder}" if encoder is None else f"--shrink {encoder}+{decoder}"
    if model.architecture != "transformer":
        raise ConfigError(f"{option}: the teacher is no Transformer ({model.architecture}); use --preset")
    if encoder is None and decoder >= model.n_decoder_layers:
        raise ConfigError(f"{option}: the teacher has {model.n_decoder_layers} decoder layers; name fewer")
    there = model.n_encoder_layers, model.n_decoder_layers
    if encoder is not None and (encoder > there[0] or decoder > there[1] or (encoder, decoder) == there):
        raise ConfigError(f"{option}: the teacher has {there[0]}+{there[1]} layers; name fewer")


def kept_layers(n_layers: int, total: int) -> list[int]:
    """Return the indices of the layers of a stack to keep: evenly spaced from first to last; [0] for one."""
    return [round(i * (total - 1) / (n_layers - 1)) for i in range(n_layers)] if n_layers > 1 else [0]


def write_shrunk(teacher: Bundle, encoder: int | None, decoder: int, folder: Path) -> None:
    """Write a bundle of the teacher with this many of its encoder layers (None: all) and decoder layers."""
    model = teacher.config.model
    sizes = {"n_encoder_layers": encoder or model.n_encoder_layers, "n_decoder_layers": decoder}
    layers = {
        "encoder": kept_layers(sizes["n_encoder_layers"], model.n_encoder_layers),
        "decoder": kept_layers(sizes["n_decoder_layers"], model.n_decoder_layers),
    }
    weights = {}
    for name, weight in untied(teacher.model).items():
        layer = _LAYER.match(name)
        if layer is None:
            weights[name] = weight
        elif int(layer[2]) in layers[layer[1]]:
            weights[f"{layer[1]}.layers.{layers[layer[1]].index(int(layer[2]))}.{name[layer.end() :]}"] = weight
    config = teacher.config.model_copy(update={"model": model.model_copy(update=sizes)})
    known = teacher.facts
    facts = Facts(
        usual_src_tokens=known.usual_src_tokens, least_length_ratio=known.least_length_ratio,
        usual_src_sentences=known.usual_src_sentences,
    )  # fmt: skip
    save_bundle(
        folder, config, ModelConfig(**{**teacher.model.config.model_dump(), **sizes}), weights,
        teacher.src_tokenizer, teacher.tgt_tokenizer, facts.as_manifest(), Tables(words=teacher.words),
    )  # fmt: skip
