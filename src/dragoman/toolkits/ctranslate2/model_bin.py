"""The variables of CTranslate2's ``model.bin``, read strictly: each is taken once, and what is left over is refused.

The file, little-endian: version, kind and revision; for each variable its name, shape, type and bytes; names that stand
for the same variable. See ``python/ctranslate2/specs/model_spec.py`` of https://github.com/OpenNMT/CTranslate2. Files
of versions 1.20 to 2.24 differ in some names, and hold what is in ``config.json`` since 3.0.
"""

from __future__ import annotations

import hashlib
import math
import struct
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from dragoman.errors import BundleError

SPECIFICATION, VERSIONS, REVISIONS = "TransformerSpec", range(4, 7), range(3, 8)
SINCE_CONFIG = 6
"""The version of the file from which on a ``config.json`` is beside it."""
TYPES = ("float32", "int8", "int16", "int32", "float16", "bfloat16")


class Variable(NamedTuple):
    """One variable as the file has it."""

    type: str
    values: np.ndarray[Any, Any]  # of bfloat16 its bits


class Variables:
    """The variables of a ``model.bin``, each taken once; what is left at the end is refused."""

    def __init__(self, path: Path) -> None:
        """Read the file.

        Raises:
            BundleError: It is damaged, or of another version or kind.
        """
        self.path = path
        try:
            body = path.read_bytes()
        except OSError as error:
            raise BundleError(f"{path}: cannot be read ({error.strerror})") from None
        self.digest = hashlib.sha256(body).hexdigest()
        try:
            self.version, self._of, self._names = parse(body)
        except (struct.error, ValueError, UnicodeDecodeError) as error:
            raise BundleError(f"{path}: not a model of CTranslate2 that is known here, or damaged ({error})") from None
        self._taken: set[str] = set()
        kinds = {one.type for name, one in self._of.items() if one.values.ndim and not name.endswith("_scale")}
        self.kind = next((kind for kind in ("int8", "int16", "float16", "bfloat16") if kind in kinds), "float32")

    def __contains__(self, name: str) -> bool:
        return name in self._names

    def type(self, name: str) -> str:
        """Of what type it is; "" if it is not there."""
        return self._of[self._names[name]].type if name in self._names else ""

    def shape(self, name: str) -> tuple[int, ...]:
        """Its shape.

        Raises:
            BundleError: It is not there.
        """
        if name not in self._names:
            raise BundleError(f"{self.path}: lacks {name}")
        return self._of[self._names[name]].values.shape

    def tensor(self, name: str, n_axes: int = 2) -> Tensor:
        """A variable in float32; of a rounded one, what its numbers mean.

        Raises:
            BundleError: It is not there, or has another number of axes.
        """
        self._taken.add(name)
        found = self._of.get(self._names.get(name, ""))
        if found is None:
            raise BundleError(f"{self.path}: lacks {name}")
        if found.values.ndim != n_axes or not found.values.size:
            raise BundleError(f"{self.path}: {name} has the shape {list(found.values.shape)}, not one of {n_axes} axes")
        if found.type == "bfloat16":
            return torch.from_numpy(found.values.view(np.int16).copy()).view(torch.bfloat16).float()
        values = torch.from_numpy(found.values.astype(np.float32))
        if found.type in ("float32", "float16"):
            return values
        if found.type == "int16":
            return values / self.number(f"{name}_scale")  # of all of it
        scale = self.tensor(f"{name}_scale", 1)  # of each row
        if found.type != "int8" or n_axes != 2 or len(scale) != len(values):
            raise BundleError(f"{self.path}: {name} is {found.type} with {len(scale)} scales, which cannot be read")
        return values / scale[:, None]

    def number(self, name: str, default: float | None = None) -> float:
        """A single number.

        Raises:
            BundleError: It is not there, without a default, or it is several.
        """
        self._taken.add(name)
        found = self._of.get(self._names.get(name, ""))
        if found is None and default is not None:
            return default
        if found is None or found.values.size != 1 or found.type == "bfloat16":
            raise BundleError(f"{self.path}: {name} should be one number")
        return float(found.values.reshape(()))

    def flag(self, name: str, default: bool = False) -> bool:
        """Whether something is so.

        Raises:
            BundleError: It is neither 0 nor 1.
        """
        value = self.number(name, float(default))
        if value not in (0, 1):
            raise BundleError(f"{self.path}: {name} = {value:g} cannot be held here, only 0 and 1")
        return bool(value)

    def must_be(self, name: str, wanted: float) -> None:
        """Refuse a setting with another value than the only one that can be held here; without it, it has that.

        Raises:
            BundleError: It is another.
        """
        if (value := self.number(name, wanted)) != wanted:
            raise BundleError(f"{self.path}: {name} = {value:g} cannot be held here, only {wanted:g}")

    def take(self, *names: str) -> None:
        """Count variables as taken that change no result."""
        self._taken |= set(names)

    def refuse_the_rest(self) -> None:
        """Refuse a model that has more than was taken.

        Raises:
            BundleError: There is more.
        """
        if rest := sorted(self._names.keys() - self._taken):
            more = f" and {len(rest) - 3} more" if len(rest) > 3 else ""
            raise BundleError(f"{self.path}: has {', '.join(rest[:3])}{more}, which cannot be held here")


def parse(body: bytes) -> tuple[int, dict[str, Variable], dict[str, str]]:
    """The version and variables of a file, and under which name each name is found: its own, or that it stands for.

    Raises:
        ValueError, struct.error: It is damaged.
    """
    place = 0

    def take(form: str) -> Any:
        nonlocal place
        values = struct.unpack_from(f"<{form}", body, place)
        place += struct.calcsize(f"<{form}")
        return values[0]

    def string() -> str:
        raw: bytes = take(f"{take('H')}s")
        return raw.removesuffix(b"\0").decode()

    version = take("I")
    if version not in VERSIONS:
        raise ValueError(f"its binary version is {version}; {VERSIONS[0]} to {VERSIONS[-1]} can be read")
    kind, revision = string(), take("I")
    if kind != SPECIFICATION or revision not in REVISIONS:
        known = f"{REVISIONS[0]} to {REVISIONS[-1]}"
        raise ValueError(f"it is a {kind[:40]}, revision {revision}; only {SPECIFICATION} {known} can be read")
    found: dict[str, Variable] = {}
    for _ in range(take("I")):
        name = string()
        shape = [take("I") for _ in range(take("B"))]
        code, n_bytes = take("B"), take("I")
        if code >= len(TYPES) or name in found:
            raise ValueError(f"{name[:60]} is there twice, or of type {code}")
        dtype = np.dtype({"bfloat16": "uint16"}.get(TYPES[code], TYPES[code])).newbyteorder("<")
        if math.prod(shape) * dtype.itemsize != n_bytes or n_bytes > len(body) - place:
            raise ValueError(f"{name[:60]} has {n_bytes:,} bytes, which is not its shape {shape} or more than there is")
        found[name] = Variable(TYPES[code], np.frombuffer(body, dtype, math.prod(shape), place).reshape(shape))
        place += n_bytes
    names = {name: name for name in found}
    for _ in range(take("I")):
        alias, name = string(), string()
        names |= {alias + end: name + end for end in ("", "_scale") if name + end in found}
    if place != len(body):
        raise ValueError(f"{len(body) - place:,} bytes are left over")
    _rename(names)
    return version, found, names


def _rename(names: dict[str, str]) -> None:
    """Call what older revisions wrote as it is called now."""
    both = ("encoder", "decoder")
    of = {"embeddings_merge": ("encoder",), "alignment_layer": ("decoder",), "alignment_heads": ("decoder",)}
    for name in ("num_heads", "pre_norm", "activation", "embeddings_merge", "alignment_layer", "alignment_heads"):
        if name in names:  # once
            one = names.pop(name)
            names |= {f"{side}/{name}": one for side in of.get(name, both)}
    for end in ("weight", "weight_scale"):
        if f"encoder/embeddings/{end}" in names:
            names[f"encoder/embeddings_0/{end}"] = names.pop(f"encoder/embeddings/{end}")
    for side, embeddings in (("encoder", "embeddings"), ("encoder", "embeddings_0"), ("decoder", "embeddings")):
        if f"{side}/{embeddings}/multiply_by_sqrt_depth" in names:
            names[f"{side}/scale_embeddings"] = names.pop(f"{side}/{embeddings}/multiply_by_sqrt_depth")
