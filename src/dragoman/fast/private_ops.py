"""What torch has but does not promise: its private operators, each with what is promised in its place.

Any release of torch may rename them or change their arguments. So each use of one is a function here, and nowhere else;
``works`` tries the operator once before it is first used, and where that fails a warning says so and the public way is
taken: the same to rounding, slower. A test holds each to its public way, and another finds private names elsewhere.

``softmax_backward``   ``torch._softmax_backward_data``; else the formula, in three passes for one
``relu_backward``      ``torch.ops.aten.threshold_backward``; else ``masked_fill``, in two passes for one
``lerp_all``           ``torch._foreach_lerp_``; else tensor by tensor
``version``            ``Tensor._version``; else the sum of the elements
``packed_product``     ``torch.ops.mkldnn._reorder_linear_weight`` and ``_linear_pointwise``, which need a CPU and
                       oneDNN, for bfloat16 also ``device.has_bf16``; else ``F.linear``, and a pass for what is added
``int8_product``       ``torch._int_mm``, which needs 8-bit products (see ``device.check_precision``) lest its sums
                       overflow; else inputs are rounded to 8 bits, and multiplied, in float32
"""

from __future__ import annotations

import functools
import logging
import os
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

logger = logging.getLogger(__name__)

for cache in ("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "LRU_CACHE_CAPACITY"):
    # oneDNN and torch's layer above it each remember what they made for 1,024 shapes of a product, 250 KiB apiece, and
    # text has as many shapes as batches: memory grew for hours. 128 are as fast (docs/log.md). Both read it once.
    os.environ.setdefault(cache, "128")


def softmax_backward(d_weights: Tensor, weights: Tensor) -> Tensor:
    """The gradient of scores, of whose softmax over the last axis, ``weights``, the gradient is ``d_weights``."""
    if works("softmax_backward"):
        return torch._softmax_backward_data(d_weights, weights, -1, weights.dtype)
    passed = d_weights * weights
    return passed.sub_(weights * passed.sum(-1, keepdim=True))


def relu_backward(d_out: Tensor, out: Tensor) -> Tensor:
    """The gradient of what a ReLU made ``out`` of."""
    if works("relu_backward"):
        return torch.ops.aten.threshold_backward(d_out, out, 0)
    return d_out.masked_fill(out <= 0, 0)


def lerp_all(targets: Sequence[Tensor], others: Sequence[Tensor], weight: float) -> None:
    """Move each target towards its other, in place: ``target + weight * (other - target)``."""
    if works("lerp_all"):
        torch._foreach_lerp_(list(targets), list(others), weight)
        return
    for target, other in zip(targets, others, strict=True):
        target.lerp_(other, weight)


def version(weight: Tensor) -> float:
    """A number that is another one after the tensor was written, which torch does not count in inference mode."""
    if not works("version"):
        return float(weight.detach().sum(dtype=torch.float64))
    return 0 if weight.is_inference() else weight._version


def packed_product(weight: Tensor, bias: Tensor | None) -> Callable[..., Tensor]:
    """A ``linear.Product`` of a matrix laid out as oneDNN wants it, which adds and cuts off in the same pass."""
    if not works("packed_product"):
        return functools.partial(_linear, weight, bias)
    ops: Any = torch.ops.mkldnn
    packed = ops._reorder_linear_weight(weight)

    def product(x: Tensor, plus: Tensor | None = None, relu: bool = False) -> Tensor:
        if plus is not None:
            return ops._linear_pointwise.binary(x, plus, packed, bias, "add")
        return ops._linear_pointwise(x, packed, bias, "relu" if relu else "none", [], "")

    return product


def int8_product(integers: Tensor, scales: Tensor, bias: Tensor | None) -> Callable[..., Tensor]:
    """A ``linear.Product`` of 8-bit integers ``(out, in)``, each row times its scale ``(out,)``, and rounded inputs.

    Each row of inputs is rounded by a step of its own, so that none depends on the others; sums of integers are exact.
    """
    if not works("int8_product"):
        rounded = functools.partial(_linear, integers * scales[:, None], bias)
        return lambda x, plus=None, relu=False: rounded(_in_8_bits(x, steps := _steps(x)) * steps, plus, relu)
    turned = integers.T

    def sums(x: Tensor) -> Tensor:
        if integers.size(1) == 1:  # of one column the operator takes wrong ones (torch 2.13); these are exact too
            return x * turned.to(x.dtype)
        return torch._int_mm(x.to(torch.int8), turned).to(x.dtype)

    def product(x: Tensor, plus: Tensor | None = None, relu: bool = False) -> Tensor:
        steps = _steps(x)
        y = sums(_in_8_bits(x, steps)).mul_(scales)
        y = y.mul_(steps) if bias is None else torch.addcmul(bias, y, steps, out=y)
        if relu:
            y.relu_()
        return y if plus is None else y.add_(plus)

    return product


@functools.cache
def works(name: str) -> bool:
    """Whether torch has what the function of this name uses, and takes it as it is used here."""
    try:
        with torch.no_grad():
            _TRIALS[name]()
    except (AttributeError, TypeError, RuntimeError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        logger.warning(
            "torch %s has no %s as it is known here (%s): a slower way is taken", torch.__version__, name, reason
        )
        return False
    return True


def _try_packed() -> None:
    ops: Any = torch.ops.mkldnn
    x, weight = _ones(2, 16), ops._reorder_linear_weight(_ones(16, 16))
    ops._linear_pointwise(x, weight, None, "relu", [], "")
    ops._linear_pointwise.binary(x, x, weight, None, "add")


def _try_int8() -> None:
    most = torch.full((5, 64), 127, dtype=torch.int8, device="cpu")
    if torch._int_mm(most, most[:3].T).ne(64 * 127 * 127).any():
        raise RuntimeError("its sums overflow")


def _ones(*shape: int) -> Tensor:
    return torch.ones(shape, device="cpu")


_TRIALS: dict[str, Callable[[], object]] = {
    "softmax_backward": lambda: torch._softmax_backward_data(_ones(2, 3), _ones(2, 3), -1, torch.float32),
    "relu_backward": lambda: torch.ops.aten.threshold_backward(_ones(2), _ones(2), 0),
    "lerp_all": lambda: torch._foreach_lerp_([_ones(2)], [_ones(2)], 0.5),
    "version": lambda: torch.Tensor._version,
    "packed_product": _try_packed,
    "int8_product": _try_int8,
}


def _linear(weight: Tensor, bias: Tensor | None, x: Tensor, plus: Tensor | None = None, relu: bool = False) -> Tensor:
    """A ``linear.Product``'s result."""
    y = F.linear(x, weight, bias)
    if relu:
        y.relu_()
    return y if plus is None else y.add_(plus)


def _steps(x: Tensor) -> Tensor:
    """A 127th of the greatest number of each row, whatever its sign: ``(rows, 1)``, above 0."""
    return x.abs().amax(dim=1, keepdim=True).clamp_min_(torch.finfo(x.dtype).tiny * 127).div_(127)


def _in_8_bits(x: Tensor, steps: Tensor) -> Tensor:
    """How many of its row's steps each number has: whole ones from -127 to 127, still in floating point."""
    return (x / steps).round_()
