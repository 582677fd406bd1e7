"""Read the variables of CTranslate2's ``model.bin``; a variable that nobody reads is refused.

The file, little-endian: version, kind and revision; for each variable its name, shape, type and bytes; aliases of
variables. See ``python/ctranslate2/specs/model_spec.py`` of https://github.com/OpenNMT/CTranslate2. Files
of versions 1.20 to 2.24 differ in some names, and hold the settings that ``config.json`` has since 3.0.
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

from dragoman.errors import BundleError, listing
from dragoman.files import unreadable
from dragoman.toolkits.reading import whole_number

SPECIFICATION, VERSIONS, REVISIONS = "TransformerSpec", range(4, 7), range(3, 8)
SINCE_CONFIG = 6
"""First version of the file that comes with a ``config.json``."""
TYPES = ("float32", "int8", "int16", "int32", "float16", "bfloat16")


class Variable(NamedTuple):
    """Variable as stored in the file."""

    type: str
    values: np.ndarray[Any, Any]  # for bfloat16 the bits


class Variables:
    """Variables of a ``model.bin``; those that were not read can be refused at the end."""

    def __init__(self, path: Path) -> None:
        """Read the file.

        Raises:
            BundleError: The file is damaged, or of an unsupported version or kind.
        """
        self.path = path
        try:
            body = path.read_bytes()
        except OSError as error:
            raise unreadable(path, error) from error
        self.digest = hashlib.sha256(body).hexdigest()
        try:
            self.version, self._variables, self._names = parse(body)
        except (struct.error, ValueError, UnicodeDecodeError) as error:
            raise BundleError(f"{path}: not a model of CTranslate2 that is known here, or damaged ({error})") from None
        self._read: set[str] = set()
        kinds = {
            variable.type
            for name, variable in self._variables.items()
            if variable.values.ndim and not name.endswith("_scale")
        }
        self.kind = next((kind for kind in ("int8", "int16", "float16", "bfloat16") if kind in kinds), "float32")

    def __contains__(self, name: str) -> bool:
        return name in self._names

    def type(self, name: str) -> str:
        """Return the type of a variable; "" if there is none."""
        return self._variables[self._names[name]].type if name in self._names else ""

    def shape(self, name: str) -> tuple[int, ...]:
        """Return the shape of a variable.

        Raises:
            BundleError: There is none.
        """
        if name not in self._names:
            raise BundleError(f"{self.path}: lacks {name}")
        return self._variables[self._names[name]].values.shape

    def tensor(self, name: str, n_axes: int = 2) -> Tensor:
        """Return a variable in float32; a quantized one is multiplied out.

        Raises:
            BundleError: There is none, or it has another number of axes.
        """
        self._read.add(name)
        variable = self._variables.get(self._names.get(name, ""))
        if variable is None:
            raise BundleError(f"{self.path}: lacks {name}")
        if variable.values.ndim != n_axes or not variable.values.size:
            raise BundleError(
                f"{self.path}: {name} has the shape {list(variable.values.shape)}, not one of {n_axes} axes"
            )
        if variable.type == "bfloat16":
            return torch.from_numpy(variable.values.view(np.int16).copy()).view(torch.bfloat16).float()
        values = torch.from_numpy(variable.values.astype(np.float32))
        if variable.type in ("float32", "float16"):
            return values
        if variable.type == "int16":
            return values / self.number(f"{name}_scale")  # one scale for all values
        scale = self.tensor(f"{name}_scale", 1)  # one scale for each row
        if variable.type != "int8" or n_axes != 2 or len(scale) != len(values):
            raise BundleError(f"{self.path}: {name} is {variable.type} with {len(scale)} scales, which cannot be read")
        return values / scale[:, None]

    def number(self, name: str, default: float | None = None) -> float:
        """Return the value of a variable of one number.

        Raises:
            BundleError: There is none and no default, or it has several numbers.
        """
        self._read.add(name)
        variable = self._variables.get(self._names.get(name, ""))
        if variable is None and default is not None:
            return default
        if variable is None or variable.values.size != 1 or variable.type == "bfloat16":
            raise BundleError(f"{self.path}: {name} should be one number")
        return float(variable.values.reshape(()))

    def whole_number(self, name: str, default: int | None = None) -> int:
        """Return the value of a variable of one whole number, of 0 or more; a file may store it as a float.

        Raises:
            BundleError: See ``number``; or the number is not whole, or not finite.
        """
        value = float(self.number(name, default))
        return whole_number(int(value) if value.is_integer() else value, f"{self.path}: {name}")

    def flag(self, name: str, default: bool = False) -> bool:
        """Return the value of a switch.

        Raises:
            BundleError: It is neither 0 nor 1.
        """
        value = self.number(name, float(default))
        if value not in (0, 1):
            raise BundleError(f"{self.path}: {name} must be 0 or 1, got {value:g}")
        return bool(value)

    def must_be(self, name: str, supported: float) -> None:
        """Check that a setting is missing or has the one supported value.

        Raises:
            BundleError: It has another.
        """
        if (value := self.number(name, supported)) != supported:
            raise BundleError(f"{self.path}: {name} = {value:g} is not supported, only {supported:g}")

    def take(self, *names: str) -> None:
        """Mark variables as read that change no result."""
        self._read |= set(names)

    def refuse_unread(self) -> None:
        """Check that every variable was read.

        Raises:
            BundleError: There are others.
        """
        if unread := self._names.keys() - self._read:
            raise BundleError(f"{self.path}: has {listing(unread)}, which cannot be imported")


def parse(body: bytes) -> tuple[int, dict[str, Variable], dict[str, str]]:
    """Return the version of a file, its variables, and for each name or alias the name of its variable.

    Raises:
        ValueError, struct.error: The file is damaged.
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
    variables: dict[str, Variable] = {}
    for _ in range(take("I")):
        name = string()
        shape = [take("I") for _ in range(take("B"))]
        code, n_bytes = take("B"), take("I")
        if code >= len(TYPES) or name in variables:
            raise ValueError(f"{name[:60]} is there twice, or of type {code}")
        dtype = np.dtype({"bfloat16": "uint16"}.get(TYPES[code], TYPES[code])).newbyteorder("<")
        if math.prod(shape) * dtype.itemsize != n_bytes or n_bytes > len(body) - place:
            raise ValueError(f"{name[:60]} has {n_bytes:,} bytes, which is not its shape {shape} or more than there is")
        variables[name] = Variable(TYPES[code], np.frombuffer(body, dtype, math.prod(shape), place).reshape(shape))
        place += n_bytes
    names = {name: name for name in variables}
    for _ in range(take("I")):
        alias, name = string(), string()
        names |= {alias + end: name + end for end in ("", "_scale") if name + end in variables}
    if place != len(body):
        raise ValueError(f"{len(body) - place:,} bytes are left over")
    _rename(names)
    return version, variables, names


def _rename(names: dict[str, str]) -> None:
    """Give variables of older revisions their present names."""
    both = ("encoder", "decoder")
    sides_of = {"embeddings_merge": ("encoder",), "alignment_layer": ("decoder",), "alignment_heads": ("decoder",)}
    for name in ("num_heads", "pre_norm", "activation", "embeddings_merge", "alignment_layer", "alignment_heads"):
        if name in names:  # one for both sides
            variable = names.pop(name)
            names |= {f"{side}/{name}": variable for side in sides_of.get(name, both)}
    for end in ("weight", "weight_scale"):
        if f"encoder/embeddings/{end}" in names:
            names[f"encoder/embeddings_0/{end}"] = names.pop(f"encoder/embeddings/{end}")
    for side, embeddings in (("encoder", "embeddings"), ("encoder", "embeddings_0"), ("decoder", "embeddings")):
        if f"{side}/{embeddings}/multiply_by_sqrt_depth" in names:
            names[f"{side}/scale_embeddings"] = names.pop(f"{side}/{embeddings}/multiply_by_sqrt_depth")
