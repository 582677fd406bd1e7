"""Shared by writers: checks before writing, and the weights to write.

form = check("onnx", config, "float32")      # refuses a model that the format cannot hold
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dragoman.bundle import Bundle
from dragoman.config import ModelConfig
from dragoman.errors import BundleError, ConfigError
from dragoman.options import not_among
from dragoman.toolkits import writers
from dragoman.toolkits.toolkit import Writer, import_package

if TYPE_CHECKING:
    from torch import Tensor

LEAST_POSITIONS = 1024
NORMS = ("post", "pre")


def format_of(name: str, quantization: str | None = None) -> Writer:
    """Return the writer of this name; check that it has the quantization.

    Raises:
        ConfigError: There is no such format or quantization.
    """
    if name not in writers():
        raise not_among("format", name, tuple(writers()))
    form = writers()[name]()
    if quantization is not None and quantization not in form.QUANTIZATIONS:
        raise not_among("quantization", quantization, form.QUANTIZATIONS)
    return form


def check(name: str, config: ModelConfig, quantization: str) -> Writer:
    """Return the writer of this name; check that its format can hold the model and its packages are installed.

    Raises:
        ConfigError: There is no such format, the quantization is unknown, the format cannot hold the model (the message
            names one that can), or a package is missing.
    """
    form = format_of(name, quantization)
    if reason := form.why_not(config):
        able = [other for other, writer in writers().items() if not writer().why_not(config)]
        instead = f"; it can be exported --format {' or '.join(able)}" if able else ""
        raise ConfigError(f"this model cannot be written for {form.TITLE}: {reason}{instead}")
    for package in form.PACKAGES:
        import_package(package, f"writing the format of {form.TITLE}")
    return form


def not_held(config: ModelConfig, activations: Collection[str], positions: Collection[str]) -> str:
    """Return the reason why a format of Transformers with these variants cannot hold a model; "" if it can.

    A variant that is new in the configuration is refused by every format that does not list it.
    """
    if config.architecture != "transformer":
        return f"it has Transformers only, and here model.architecture is {config.architecture}"
    for side in ("encoder", "decoder"):
        if not getattr(config, f"n_{side}_layers"):
            return f"it has no model without {side} (model.n_{side}_layers = 0)"
    if config.activation not in activations:
        return f"it has no activation {config.activation} (model.activation)"
    if config.positions not in positions:
        return f"it has no {config.positions} positions (model.positions)"
    if config.norm not in NORMS:
        return f"it has no {config.norm}-norm (model.norm)"
    return ""


def weights_of(bundle: Bundle) -> dict[str, Tensor]:
    """Return a copy of the state dict in float32 on the CPU.

    Raises:
        BundleError: A value is not finite.
    """
    weights = {name: tensor.detach().cpu().float().clone() for name, tensor in bundle.model.state_dict().items()}
    for name, tensor in weights.items():
        if not bool(tensor.isfinite().all()):
            raise BundleError(f"{name} holds values that are not finite (NaN or infinite): the model is damaged")
    return weights


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    """Write an object as indented JSON."""
    path.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def n_positions(bundle: Bundle) -> int:
    """Return the number of rows of a table of positions: as many as the run's settings can need, at least 1,024."""
    config = bundle.sizes
    if config.n_positions is not None:
        return config.n_positions
    data, decode = bundle.config.data, bundle.config.decode
    return max(LEAST_POSITIONS, data.max_tokens + decode.max_extra_tokens + 1)


def most_tokens(bundle: Bundle) -> int:
    """Return the largest length of a translation in tokens, bos included: learned positions limit it too."""
    most = bundle.config.data.max_tokens + bundle.config.decode.max_extra_tokens
    return min(most, n_positions(bundle))
