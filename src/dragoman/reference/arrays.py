"""Types of this package, and parameters under their names in the state dict."""

from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[np.floating[Any]]
Ids: TypeAlias = NDArray[np.integer[Any]]
Mask: TypeAlias = NDArray[np.bool_]  # True = may attend
Params: TypeAlias = Mapping[str, Array]
Grads: TypeAlias = dict[str, Array]  # under the names of the parameters they belong to
Config: TypeAlias = Mapping[str, Any]  # the fields of ModelConfig


def child(params: Params, name: str) -> dict[str, Array]:
    """Return the parameters below ``name``, by the rest of their names: ``w_q.weight`` for ``self_attn.w_q.weight``."""
    prefix = name + "."
    return {key.removeprefix(prefix): value for key, value in params.items() if key.startswith(prefix)}


def under(name: str, grads: Params) -> Grads:
    """Prefix every name with ``name``: the inverse of :func:`child`."""
    return {f"{name}.{key}": value for key, value in grads.items()}


def summed(*parts: Params) -> Grads:
    """Merge gradients by name; a parameter that is used in several places gets the sum of their gradients."""
    total: Grads = {}
    for part in parts:
        for name, grad in part.items():
            total[name] = total[name] + grad if name in total else grad
    return total
