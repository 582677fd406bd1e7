"""Weights on disk and in models: the safetensors format, read strictly; tied tensors once.

    save_weights(path, untied(model))
    load_into(model, read_weights(path, untied(model)))

A file begins with the length n of its header: eight bytes, little-endian. Then come n bytes of JSON with the dtype,
shape and byte range of each tensor, then the data. See https://github.com/huggingface/safetensors.

This reader is stricter than that library: the header has at most ``MAX_HEADER_BYTES``, no name twice, and the tensors
fill the file without gap or overlap. Nothing is memory-mapped, and nothing is allocated before it is known to fit: a
file that is truncated or replaced while it is read is an error, not a SIGBUS.
"""

from __future__ import annotations

import contextlib
import io
import json
import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import torch
from safetensors import SafetensorError
from safetensors.torch import save_file
from torch import Tensor
from torch.overrides import TorchFunctionMode

from dragoman.config import ModelConfig
from dragoman.errors import BundleError
from dragoman.files import unreadable
from dragoman.model.build import build

NEVER = -1e4
"""Bias, far below any logit, of subwords that an imported model reads and its own toolkit never writes."""


def never_chosen(bias: Tensor | None) -> list[int]:
    """Return the ids that a bias of the generator, ``(V,)``, rules out."""
    return [] if bias is None else (bias <= NEVER).nonzero().flatten().tolist()


def untied(model: torch.nn.Module) -> dict[str, Tensor]:
    """Return the state dict with each tied tensor once, under the first of its names."""
    seen: set[int] = set()
    weights = {}
    for name, tensor in model.state_dict(keep_vars=True).items():
        if id(tensor) not in seen:
            seen.add(id(tensor))
            weights[name] = tensor.detach()
    return weights


class WithoutInitialisation(TorchFunctionMode):
    """Skips random initialisation, which takes time and, on the meta device, loads torch's compiler."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if getattr(func, "__name__", "") in ("normal_", "uniform_", "kaiming_uniform_"):
            return args[0] if args else kwargs["tensor"]
        return func(*args, **kwargs)


def shapes(config: ModelConfig) -> dict[str, Tensor]:
    """Return the tensors that ``untied`` would give for a model of ``config``, on the meta device: without memory."""
    with torch.device("meta"), WithoutInitialisation():
        return untied(build(config))


def save_weights(path: Path, weights: Mapping[str, Tensor], metadata: dict[str, str] | None = None) -> None:
    """Write tensors as safetensors.

    Args:
        metadata: Text for the header's ``__metadata__``, which some other programs need.

    Raises:
        OSError: The disk is full or the file cannot be written.
    """
    path.touch()
    mode = path.stat().st_mode
    try:
        save_file({name: tensor.detach().cpu().contiguous() for name, tensor in weights.items()}, path, metadata)
    except SafetensorError as error:
        raise OSError(str(error)) from None
    with contextlib.suppress(PermissionError):  # a file system without modes of files
        path.chmod(mode)  # safetensors makes files that only their owner can read


def read_weights(
    path: Path, expected: Mapping[str, Tensor] | None = None, descriptor: int | None = None
) -> dict[str, Tensor]:
    """Read safetensors into memory; not mapped, as a file replaced under a running server must not crash it.

    Args:
        expected: If given, names, shapes and dtypes must equal these; checked before anything is allocated.
        descriptor: The open file, which stays open; None: it is opened here.

    Raises:
        BundleError: The file is missing, damaged, or holds other tensors.
        UnreadableError: It cannot be read now.
    """
    try:
        with path.open("rb") if descriptor is None else io.BufferedReader(_FromTheStart(descriptor)) as file:
            entries = read_header(file, path)
            if expected is not None:
                _compare(path, entries, expected)
            return {name: read_tensor(file, path, entries[name]) for name in sorted(entries)}
    except OSError as error:
        raise unreadable(path, error) from error


class _FromTheStart(io.RawIOBase):
    """Reads an open file from its start, with a place of its own: forked processes share that of the descriptor."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor, self._place = descriptor, 0

    def fileno(self) -> int:
        return self._descriptor

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        if whence != os.SEEK_SET:
            offset += self._place if whence == os.SEEK_CUR else os.fstat(self._descriptor).st_size
        self._place = offset
        return offset

    def readinto(self, buffer: Any) -> int:
        n = os.preadv(self._descriptor, [buffer], self._place)
        self._place += n
        return n


def _compare(path: Path, entries: Mapping[str, Entry], expected: Mapping[str, Tensor]) -> None:
    """Check that names, shapes and dtypes are the expected ones, before anything is allocated."""
    if entries.keys() != expected.keys():
        missing, extra = (sorted(a.keys() - b.keys())[:3] for a, b in ((expected, entries), (entries, expected)))
        extra = [f"{name[:60]}..." if len(name) > 60 else name for name in extra]
        raise BundleError(f"{path}: does not fit the configuration (missing {missing}, unexpected {extra})")
    for name, like in expected.items():
        if entries[name].shape != tuple(like.shape):
            raise BundleError(
                f"{path}: {name} is {entries[name].shape}, but the configuration says {tuple(like.shape)}"
            )
        if entries[name].dtype != like.dtype:
            raise BundleError(f"{path}: {name} is {entries[name].dtype}, expected {like.dtype}")


SCALES = ".scales"
"""End of the name of a rounded matrix's scales."""


def rounded(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return weights whose matrices are 8-bit integers, with a scale for each row: a quarter of their size.

    Vectors, and tensors of more axes, stay as they are. Rounding what ``restored`` returns gives the same integers. Of
    meta tensors only the shapes are made: to compute with them torch loads its compiler, which takes a second.
    """
    result = {}
    for name, tensor in weights.items():
        if tensor.ndim != 2 or tensor.dtype != torch.float32:
            result[name] = tensor
            continue
        if tensor.is_meta:
            result[name] = tensor.new_empty(tensor.shape, dtype=torch.int8)
            result[name + SCALES] = tensor.new_empty(tensor.size(0))
            continue
        scales = tensor.abs().amax(dim=1).clamp_min(torch.finfo(torch.float32).tiny * 127) / 127  # (rows,)
        result[name] = (tensor / scales[:, None]).round().to(torch.int8)
        result[name + SCALES] = scales
    return result


def restored(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return what ``rounded`` stored as float32."""
    scales = {name.removesuffix(SCALES): tensor for name, tensor in weights.items() if name.endswith(SCALES)}
    return {
        name: tensor * scales[name][:, None] if name in scales else tensor
        for name, tensor in weights.items()
        if not name.endswith(SCALES)
    }


def n_bytes(*groups: Mapping[str, Tensor]) -> int:
    """Return the size of tensors on disk, in bytes."""
    return sum(tensor.numel() * tensor.element_size() for group in groups for tensor in group.values())


def load_into(model: torch.nn.Module, weights: Mapping[str, Tensor]) -> None:
    """Copy weights, each tied tensor once, into a model whose tied tensors have several names."""
    model.load_state_dict(dict(weights), strict=False)


def adopt(model: torch.nn.Module, weights: Mapping[str, Tensor]) -> None:
    """Replace the parameters of a model by ``weights`` without copying; tied parameters stay tied."""
    parameters = dict(model.named_parameters())  # tied ones under the first of their names, as in ``untied``
    for name, tensor in weights.items():
        parameters[name].data = tensor


MAX_HEADER_BYTES = 2**20
MAX_TENSORS = 7500
"""Number of tensors that such a header can describe; a training checkpoint of the paper's big model has 759."""

_DTYPES = {
    "F64": torch.float64, "F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16, "I64": torch.int64,
    "I32": torch.int32, "I16": torch.int16, "I8": torch.int8, "U8": torch.uint8,
}  # fmt: skip


class Entry(NamedTuple):
    """One tensor as the header describes it: dtype, shape and byte range."""

    dtype: torch.dtype
    shape: tuple[int, ...]
    start: int  # byte offset of its first byte in the file
    end: int  # byte offset after its last byte


def read_header(file: BinaryIO, path: Path) -> dict[str, Entry]:
    """Return the tensors that an open file describes, in the order of their bytes.

    Raises:
        BundleError: The header is damaged or too long, or it does not describe exactly the bytes that follow.
        OSError: The file cannot be read.
    """
    n_bytes = os.fstat(file.fileno()).st_size
    n_header = int.from_bytes(file.read(8), "little")
    if n_bytes < 8 or n_header > MAX_HEADER_BYTES:
        raise BundleError(f"{path}: not safetensors (a header of {n_header:,} bytes in a file of {n_bytes:,})")
    try:
        header = json.loads(file.read(n_header).decode("utf-8"), object_pairs_hook=_unique_keys)
        if not isinstance(header, dict):
            raise ValueError("its header is no JSON object")
        entries = {name: _entry(name, about, 8 + n_header) for name, about in header.items() if name != "__metadata__"}
        ordered = dict(sorted(entries.items(), key=lambda item: (item[1].start, item[1].end)))
        _check_contiguous(ordered, 8 + n_header, n_bytes)
    except (ValueError, RecursionError) as error:  # ValueError: what is raised here, and what decoding and JSON raise
        raise BundleError(f"{path}: cannot be read as safetensors ({error}); copy the file again") from None
    return ordered


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    mapping = dict(pairs)
    if len(mapping) < len(pairs):
        raise ValueError("a name appears twice in its header")
    return mapping


def _entry(name: str, about: Any, data_start: int) -> Entry:
    if not isinstance(about, dict) or about.keys() != {"dtype", "shape", "data_offsets"}:
        raise ValueError(f"{_shown(name)} is not described by dtype, shape and data_offsets")
    dtype, shape, offsets = about["dtype"], about["shape"], about["data_offsets"]
    if not isinstance(dtype, str) or dtype not in _DTYPES:
        raise ValueError(f"{_shown(name)} has the dtype {_shown(dtype)}")
    if not _is_list_of_sizes(shape) or not _is_list_of_sizes(offsets) or len(shape) > 8 or len(offsets) != 2:
        raise ValueError(f"{_shown(name)} has an impossible shape or place")
    n_bytes = math.prod(shape) * _DTYPES[dtype].itemsize
    if offsets[1] - offsets[0] != n_bytes:
        raise ValueError(f"{_shown(name)} needs {_shown(n_bytes)} bytes but has a different range")
    return Entry(_DTYPES[dtype], tuple(shape), data_start + offsets[0], data_start + offsets[1])


def _is_list_of_sizes(value: Any) -> bool:
    """Return True if ``value`` is a list of whole numbers from 0 to below 2^48; booleans and floats are none."""
    return isinstance(value, list) and all(type(n) is int and 0 <= n < 2**48 for n in value)


def _shown(value: object) -> str:
    """Return a value of a possibly hostile file as short, printable text."""
    text = ascii(value)
    return text if len(text) <= 60 else f"{text[:60]}..."


def _check_contiguous(entries: dict[str, Entry], start: int, end: int) -> None:
    for name, entry in entries.items():
        if entry.start != start:
            raise ValueError(f"{_shown(name)} does not start where the previous tensor ends")
        start = entry.end
    if start != end:
        raise ValueError(f"it should have {start:,} bytes and has {end:,}")


def read_tensor(file: BinaryIO, path: Path, entry: Entry) -> Tensor:
    """Read one tensor into newly allocated memory.

    Raises:
        BundleError: The file was truncated meanwhile.
        OSError: The file cannot be read.
    """
    raw = torch.empty(entry.end - entry.start, dtype=torch.uint8)
    file.seek(entry.start)
    if file.readinto(raw.numpy()) < len(raw):  # type: ignore[attr-defined]
        raise BundleError(f"{path}: was truncated while it was read; restore it, or copy it again")
    return raw.view(entry.dtype).reshape(entry.shape)
