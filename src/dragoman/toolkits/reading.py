"""Shared by readers: what a foreign model becomes, and its small files, read within limits."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from dragoman.config import Config, ModelConfig
from dragoman.data.sentencepiece_check import IDENTITY, Parts, normalizer_name
from dragoman.data.tokenizer import Tokenizer
from dragoman.errors import BundleError
from dragoman.model.embedding import sinusoids

MAX_FILE_BYTES = 64 * 2**20
"""Largest accepted file that does not hold weights."""


class Imported(NamedTuple):
    """What a format has read: all that a bundle is made of."""

    config: Config
    model: ModelConfig
    weights: dict[str, Tensor]  # as ``model.weights.untied``
    src_tokenizer: Tokenizer
    tgt_tokenizer: Tokenizer
    facts: dict[str, Any]  # what the manifest says of where it is from


def read_bytes(path: Path, wanted: str) -> bytes:
    """A file that is not weights.

    Args:
        wanted: Said if it is missing.

    Raises:
        BundleError: It cannot be read, or is larger than such a file is.
    """
    try:
        if path.stat().st_size > MAX_FILE_BYTES:
            raise BundleError(f"{path}: larger than {MAX_FILE_BYTES:,} bytes, which it should not be")
        return path.read_bytes()
    except OSError as error:
        raise BundleError(f"{path}: cannot be read ({error.strerror}); {wanted}") from None


def read_object(path: Path, wanted: str) -> dict[str, Any]:
    """A file of JSON that holds an object.

    Raises:
        BundleError: As ``read_bytes``, or it is something else.
    """
    try:
        found = json.loads(read_bytes(path, wanted))
    except (ValueError, RecursionError):
        raise BundleError(f"{path}: not JSON; copy it again") from None
    if not isinstance(found, dict):
        raise BundleError(f"{path}: should hold a JSON object")
    return found


def facts_of(name: str, form: str, digest: str, models: Sequence[Parts], **more: Any) -> dict[str, Any]:
    """What the manifest says of where a model is from.

    Args:
        digest: SHA-256 of its weights, in hex.
        models: Its subwords.
    """
    facts = {"from": name, "format": form, "weights_sha256": digest, **more}
    if normalizers := sorted({normalizer_name(one.normalizer) for one in models} - {IDENTITY}):
        facts["normalises_text"] = normalizers
    return {"weights": f"imported from {name}", "imported": facts}


def order_of_sinusoids(table: Tensor) -> Tensor | None:
    """Which channel of ours each channel of a table of positions is, if it holds the paper's sinusoids.

    Args:
        table: ``(n, d_model)``: sines and cosines in turn, as ours, or first all sines; perhaps in 16 bits.

    Returns:
        ``(d_model,)``, or None: it holds something else.
    """
    if table.size(1) % 2:
        return None
    ours, channels = sinusoids(0, len(table), table.size(1)).float(), torch.arange(table.size(1))
    for order in (channels, torch.cat((channels[0::2], channels[1::2]))):
        if torch.allclose(table, ours[:, order], atol=1e-3):
            return order
    return None
