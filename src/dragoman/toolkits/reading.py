"""Shared by readers: the contents of a foreign model, and its small files, read within limits."""

from __future__ import annotations

import json
import reprlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from dragoman.config import Config, ModelConfig
from dragoman.data.normalisation import normalisation_of
from dragoman.data.sentencepiece_check import IDENTITY, Parts, normalizer_name
from dragoman.data.tokenizer import Tokenizer
from dragoman.errors import BundleError
from dragoman.files import unreadable
from dragoman.model.embedding import sinusoids

MAX_FILE_BYTES = 64 * 2**20
"""Largest accepted file that does not hold weights."""


class Imported(NamedTuple):
    """Contents of a foreign model: all parts of a bundle."""

    config: Config
    model: ModelConfig
    weights: dict[str, Tensor]  # tied tensors once, as ``model.weights.untied`` returns them
    src_tokenizer: Tokenizer
    tgt_tokenizer: Tokenizer
    facts: dict[str, Any]  # provenance, for the manifest


def read_bytes(path: Path, wanted: str) -> bytes:
    """Return the content of a file that holds no weights.

    Args:
        wanted: Advice if the file is missing.

    Raises:
        BundleError: The file is missing, or larger than ``MAX_FILE_BYTES``.
        UnreadableError: It cannot be read now.
    """
    try:
        if path.stat().st_size > MAX_FILE_BYTES:
            raise BundleError(f"{path}: must have at most {MAX_FILE_BYTES:,} bytes, got {path.stat().st_size:,}")
        return path.read_bytes()
    except FileNotFoundError as error:
        raise BundleError(f"{path}: cannot be read ({error.strerror}); {wanted}") from None
    except OSError as error:
        raise unreadable(path, error) from error


def read_object(path: Path, wanted: str) -> dict[str, Any]:
    """Return the object in a JSON file.

    Raises:
        BundleError: See ``read_bytes``; or the file holds something else.
    """
    try:
        content = json.loads(read_bytes(path, wanted))
    except (ValueError, RecursionError):
        raise BundleError(f"{path}: not JSON; copy it again") from None
    if not isinstance(content, dict):
        raise BundleError(f"{path}: should hold a JSON object")
    return content


class _Short(reprlib.Repr):
    """Writes values in few characters: deep, long and huge ones are cut before they become text."""

    def repr_int(self, x: int, level: int) -> str:
        """Return a number, or its size if it has thousands of digits, which Python refuses to write."""
        return str(x) if x.bit_length() <= 128 else f"a number of {x.bit_length():,} bits"


_SHORT = _Short()
_SHORT.maxlevel, _SHORT.maxstring, _SHORT.maxother, _SHORT.maxlist, _SHORT.maxdict = 2, 40, 40, 3, 3


def shown(value: object) -> str:
    """Return a value of a foreign file as short text for a message, whatever its size."""
    return _SHORT.repr(value)


def whole_number(value: object, name: str, least: int = 0) -> int:
    """Return a number of a foreign file that must be whole: a size, a depth, an id.

    Args:
        name: Name of the file and the number in messages.

    Raises:
        BundleError: The value is something else, such as NaN or a text, or less than ``least``.
    """
    if type(value) is not int or value < least:
        at_least = f" of at least {least}" if least else ""
        raise BundleError(f"{name} = {shown(value)} should be a whole number{at_least}")
    return value


def facts_of(name: str, form: str, digest: str, models: Sequence[Parts], **more: Any) -> dict[str, Any]:
    """Return the provenance of a model for the manifest.

    Args:
        digest: SHA-256 of its weights, in hex.
        models: Its SentencePiece models.
    """
    facts = {"from": name, "format": form, "weights_sha256": digest, **more}
    rules = [(normalizer_name(model.normalizer), normalisation_of(model.normalizer)) for model in models]
    if normalizers := sorted({name for name, (_, is_ours) in rules if not is_ours} - {IDENTITY}):
        facts["normalises_text"] = normalizers
    return {"weights": f"imported from {name}", "imported": facts}


def order_of_sinusoids(table: Tensor) -> Tensor | None:
    """Return the order of the channels in a table of positions that holds the paper's sinusoids.

    Args:
        table: ``(n, d_model)``: sines and cosines in turn, as ours, or first all sines; perhaps rounded to 16 bits.

    Returns:
        For each channel of the table its number in our table, ``(d_model,)``; None: the table holds something else.
    """
    if table.size(1) % 2:
        return None
    # bfloat16 rounds numbers between 1/2 and 1 by up to 2 ** -9.
    sinusoidal, channels = sinusoids(0, len(table), table.size(1)).float(), torch.arange(table.size(1))
    for order in (channels, torch.cat((channels[0::2], channels[1::2]))):
        if torch.allclose(table, sinusoidal[:, order], atol=2**-9 + 5e-4):
            return order
    return None
