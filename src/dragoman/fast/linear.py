"""Linear layers whose weights do not change: prepared once, then used at each decoding step.

    product = prepared(layer.weight, layer.bias, "fp32")
    y = product(x)                                        # (rows, in) -> (rows, out)

- **fp32** is ``F.linear``. On a CPU it reads a transposed copy, up to 1.7 times as fast where there are few rows. On
  AMD processors, where ``F.linear`` is slow, it is a packed product.
- **bf16** multiplies bfloat16 by bfloat16 and sums in float32. On a CPU the weights are packed: laid out beforehand as
  oneDNN reads them. A residual is added in the same pass.
"""

from __future__ import annotations

from typing import Protocol

import torch
from torch import Tensor
from torch.nn import functional as F

from dragoman.device import capabilities, has_bf16
from dragoman.fast.private_ops import packed_product


class Product(Protocol):
    """A prepared product ``x W^T + b``."""

    def __call__(self, x: Tensor, plus: Tensor | None = None, relu: bool = False) -> Tensor:
        """Multiply ``x`` by the weights.

        Args:
            x: ``(rows, in)``.
            plus: A residual ``(rows, out)`` to add to the product, or None.
            relu: Set negative outputs to zero; cannot be combined with ``plus``.

        Returns:
            ``(rows, out)``.
        """
        ...


def prepared(weight: Tensor, bias: Tensor | None, precision: str) -> Product:
    """Prepare the product of one weight matrix.

    Args:
        weight: ``(out, in)``. Inputs and outputs have its dtype (except for bf16) and its device.
        bias: ``(out,)`` or None.
        precision: ``fp32`` or ``bf16``.
    """
    weight, bias = weight.detach(), None if bias is None else bias.detach()
    if precision == "fp32":
        packs = weight.device.type == "cpu" and weight.dtype == torch.float32 and is_amd()
        return _packed_but_for_one_row(weight, bias) if packs else _plain(weight, bias)
    weight, bias = weight.bfloat16(), None if bias is None else bias.bfloat16()
    if weight.device.type == "cpu" and has_bf16():
        return packed_product(weight, bias)
    return _plain(weight, bias)


def _plain(weight: Tensor, bias: Tensor | None) -> Product:
    return _product(weight.T.contiguous().T if weight.device.type == "cpu" else weight, bias)


def _product(weight: Tensor, bias: Tensor | None) -> Product:
    def product(x: Tensor, plus: Tensor | None = None, relu: bool = False) -> Tensor:
        y = F.linear(x, weight, bias)
        if relu:
            y.relu_()
        return y if plus is None else y.add_(plus)

    return product


def _packed_but_for_one_row(weight: Tensor, bias: Tensor | None) -> Product:
    """Return a packed product that uses ``F.linear`` for a single row, where oneDNN takes half as long again."""
    one_row, several = _product(weight, bias), packed_product(weight, bias)

    def product(x: Tensor, plus: Tensor | None = None, relu: bool = False) -> Tensor:
        return (one_row if x.size(0) == 1 else several)(x, plus, relu)

    return product


def is_amd() -> bool:
    """Return True on AMD processors, where oneDNN's float32 products beat MKL's (by up to a third on Zen 1).

    The name of the processor decides, not a timed product: the bits of a result must not depend on the machine's load.
    """
    return str(capabilities().get("cpu_name", "")).startswith("AMD")
