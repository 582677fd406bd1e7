"""Fast twins of ``torch.nn.functional.linear`` for weights that stay the same: prepared once, then used at each step.

- **fp32** is ``F.linear``; on a CPU of a transposed copy, which is read up to 1.7 times as fast where rows are few; on
  AMD's processors, where ``F.linear`` is not at its best, of a packed one.
- **bf16** multiplies bfloat16 by bfloat16 and sums in float32. On a CPU the weights are packed: laid out beforehand as
  oneDNN wants them, and what is to be added to the product is added in the same pass.
- **int8** (CPU) keeps the weights as 8-bit integers with one scale for each output; inputs are rounded to 8 bits at
  each call, with one scale for each row (dynamic quantisation). Sums are exact, outputs float32.
"""

from __future__ import annotations

from typing import Protocol

import torch
from torch import Tensor
from torch.nn import functional as F

from dragoman.device import capabilities, has_bf16
from dragoman.fast.private_ops import int8_product, packed_product


class Product(Protocol):
    """A prepared ``x W^T + b``."""

    def __call__(self, x: Tensor, plus: Tensor | None = None, relu: bool = False) -> Tensor:
        """Multiply.

        Args:
            x: ``(rows, in)``.
            plus: ``(rows, out)``, added to the product.
            relu: Zero what is negative; not together with ``plus``.

        Returns:
            ``(rows, out)``.
        """
        ...


def prepared(weight: Tensor, bias: Tensor | None, precision: str) -> Product:
    """Make the product of one matrix.

    Args:
        weight: ``(out, in)``; of its dtype and on its device are what comes and goes, except for bf16.
        bias: ``(out,)`` or None.
        precision: ``fp32``, ``bf16`` or ``int8``; see ``device.check_precision``.
    """
    weight, bias = weight.detach(), None if bias is None else bias.detach()
    if precision == "fp32":
        packs = weight.device.type == "cpu" and weight.dtype == torch.float32 and _is_amd()
        return _packed_but_for_one_row(weight, bias) if packs else _plain(weight, bias)
    if precision == "int8":
        return _int8(weight, bias)
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
    """For a single row oneDNN takes half as long again as ``F.linear``."""
    one, several = _product(weight, bias), packed_product(weight, bias)

    def product(x: Tensor, plus: Tensor | None = None, relu: bool = False) -> Tensor:
        return (one if x.size(0) == 1 else several)(x, plus, relu)

    return product


def _is_amd() -> bool:
    """Whether this is a processor for which oneDNN's float32 products are faster than MKL's: by up to a third on Zen 1.

    What a processor is, and not a product that is timed, says so: bits must not depend on what else the machine does.
    """
    return str(capabilities().get("cpu_name", "")).startswith("AMD")


def _int8(weight: Tensor, bias: Tensor | None) -> Product:
    weight = weight.float()
    scales = weight.abs().amax(dim=1).clamp_min(torch.finfo(torch.float32).tiny) / 127  # (out,)
    integers = (weight / scales[:, None]).round().to(torch.int8)
    return int8_product(integers, scales, None if bias is None else bias.float())
