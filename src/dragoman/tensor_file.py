"""The safetensors format, read strictly: nothing is mapped, and nothing is allocated before it is known to fit.

A file is eight bytes, little-endian, the length n of the header; n bytes of JSON, for each tensor its dtype, shape and
place in the data; the data. See https://github.com/huggingface/safetensors. Stricter than that library: a header of at
most ``MAX_HEADER_BYTES``, no name twice, no gap and no overlap, no byte after the last tensor. Since the bytes are
read and not mapped, a file that is cut or replaced meanwhile is an error and no SIGBUS.
"""

from __future__ import annotations

import json
import math
import os
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import torch
from torch import Tensor

from dragoman.errors import BundleError

MAX_HEADER_BYTES = 2**20
MAX_TENSORS = 7500
"""What such a header has room for; a training checkpoint of the paper's big model has 759."""

_DTYPES = {
    "F64": torch.float64, "F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16, "I64": torch.int64,
    "I32": torch.int32, "I16": torch.int16, "I8": torch.int8, "U8": torch.uint8,
}  # fmt: skip


class Entry(NamedTuple):
    """One tensor as the header describes it."""

    dtype: torch.dtype
    shape: tuple[int, ...]
    start: int  # of its bytes, from the beginning of the file
    end: int


def read_header(file: BinaryIO, path: Path) -> dict[str, Entry]:
    """The tensors of an open file, in the order of their bytes.

    Raises:
        BundleError: The header is damaged or too long, or it does not describe exactly the bytes that follow.
        OSError: The file cannot be read.
    """
    n_bytes = os.fstat(file.fileno()).st_size
    n_header = int.from_bytes(file.read(8), "little")
    if n_bytes < 8 or n_header > MAX_HEADER_BYTES:
        raise BundleError(f"{path}: not a model of dragoman (a header of {n_header:,} bytes in a file of {n_bytes:,})")
    try:
        header = json.loads(file.read(n_header).decode("utf-8"), object_pairs_hook=_without_repetition)
        if not isinstance(header, dict):
            raise ValueError("its header is no JSON object")
        entries = {name: _entry(name, about, 8 + n_header) for name, about in header.items() if name != "__metadata__"}
        ordered = dict(sorted(entries.items(), key=lambda item: (item[1].start, item[1].end)))
        _check_that_they_tile(ordered, 8 + n_header, n_bytes)
    except (ValueError, RecursionError) as error:  # ValueError: what is raised here, and what decoding and JSON raise
        raise BundleError(f"{path}: cannot be read as safetensors ({error}); copy the file again") from None
    return ordered


def _without_repetition(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a name stands twice in its header")
    return found


def _entry(name: str, about: Any, data_start: int) -> Entry:
    if not isinstance(about, dict) or about.keys() != {"dtype", "shape", "data_offsets"}:
        raise ValueError(f"{_shown(name)} is not described by dtype, shape and data_offsets")
    dtype, shape, offsets = about["dtype"], about["shape"], about["data_offsets"]
    if not isinstance(dtype, str) or dtype not in _DTYPES:
        raise ValueError(f"{_shown(name)} has the dtype {_shown(dtype)}")
    if not _counts(shape) or not _counts(offsets) or len(shape) > 8 or len(offsets) != 2:
        raise ValueError(f"{_shown(name)} has an impossible shape or place")
    n_bytes = math.prod(shape) * _DTYPES[dtype].itemsize
    if offsets[1] - offsets[0] != n_bytes:
        raise ValueError(f"{_shown(name)} needs {_shown(n_bytes)} bytes but has other ones")
    return Entry(_DTYPES[dtype], tuple(shape), data_start + offsets[0], data_start + offsets[1])


def _counts(value: Any) -> bool:
    """Whether this is a list of whole numbers that may count something; true and 1.0 are none."""
    return isinstance(value, list) and all(type(n) is int and 0 <= n < 2**48 for n in value)


def _shown(value: object) -> str:
    """A value out of a file that may be hostile, short and printable."""
    text = ascii(value)
    return text if len(text) <= 60 else f"{text[:60]}..."


def _check_that_they_tile(entries: dict[str, Entry], start: int, end: int) -> None:
    for name, entry in entries.items():
        if entry.start != start:
            raise ValueError(f"{_shown(name)} does not begin where the tensor before it ends")
        start = entry.end
    if start != end:
        raise ValueError(f"it should have {start:,} bytes and has {end:,}")


def read_tensor(file: BinaryIO, path: Path, entry: Entry) -> Tensor:
    """Read one tensor into memory of its own.

    Raises:
        BundleError: The file has become shorter meanwhile.
        OSError: The file cannot be read.
    """
    raw = torch.empty(entry.end - entry.start, dtype=torch.uint8)
    file.seek(entry.start)
    view = memoryview(raw.numpy())  # type: ignore[arg-type]
    while view:
        n_read = file.readinto(view)  # type: ignore[attr-defined]
        if not n_read:
            raise BundleError(f"{path}: became shorter while it was read; put it back, or copy it again")
        view = view[n_read:]
    return raw.view(entry.dtype).reshape(entry.shape)
