"""A teacher with fewer decoder layers, for a student to start with.

Shrink and fine-tune (Shleifer and Rush 2020, https://arxiv.org/abs/2010.13002): the encoder stays, and of the decoder
evenly spaced layers, the first and the last among them; fine-tuning on the teacher's translations mends the rest.
"""

from __future__ import annotations

import re
from pathlib import Path

from dragoman.bundle import Bundle, save_bundle
from dragoman.config import Config, ModelConfig
from dragoman.errors import ConfigError
from dragoman.model.weights import untied

_LAYER = re.compile(r"decoder\.layers\.(\d+)\.")


def check_shrinkable(teacher: Config, n_layers: int) -> None:
    """Refuse a teacher that has no such layers.

    Raises:
        ConfigError: It is no Transformer, or has not more decoder layers.
    """
    model = teacher.model
    if model.architecture != "transformer":
        raise ConfigError(f"--shrink {n_layers}: the teacher is no Transformer ({model.architecture}); use --preset")
    if n_layers >= model.n_decoder_layers:
        raise ConfigError(f"--shrink {n_layers}: the teacher has {model.n_decoder_layers} decoder layers; name fewer")


def kept_layers(n_layers: int, of: int) -> list[int]:
    """Which layers of a stack stay: evenly spaced, the first and the last among them; of one the first."""
    return [round(i * (of - 1) / (n_layers - 1)) for i in range(n_layers)] if n_layers > 1 else [0]


def write_shrunk(teacher: Bundle, n_layers: int, folder: Path) -> None:
    """Write a bundle of the teacher with ``n_layers`` of its decoder layers."""
    kept = {old: new for new, old in enumerate(kept_layers(n_layers, teacher.config.model.n_decoder_layers))}
    weights = {}
    for name, weight in untied(teacher.model).items():
        layer = _LAYER.match(name)
        if layer is None:
            weights[name] = weight
        elif int(layer[1]) in kept:
            weights[f"decoder.layers.{kept[int(layer[1])]}.{name[layer.end() :]}"] = weight
    model = teacher.config.model.model_copy(update={"n_decoder_layers": n_layers})
    config = teacher.config.model_copy(update={"model": model})
    sizes = ModelConfig(**{**teacher.model.config.model_dump(), "n_decoder_layers": n_layers})
    facts = {name: fact for name, fact in teacher.manifest.items() if name.startswith(("usual", "least"))}
    save_bundle(folder, config, sizes, weights, teacher.src_tokenizer, teacher.tgt_tokenizer, facts)
