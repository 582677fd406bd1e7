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
``int8_product``       ``torch._make_per_channel_quantized_tensor``, ``torch.ops.quantized.linear_prepack`` and
                       ``linear_dynamic``, which need a CPU, oneDNN and 8-bit products (see ``device.check_precision``);
                       else inputs are rounded to 8 bits, and multiplied, in float32
"""

from __future__ import annotations

import functools
import logging
import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
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

    The operator rounds all inputs by one step, from the least of them to the greatest. So that no row depends on the
    others, each is divided by its greatest, and two more, of -1 and of 1, make the step 2 / 255, always.
    """
    if not works("int8_product"):
        rounded = functools.partial(_linear, integers * scales[:, None], bias)
        return lambda x, plus=None, relu=False: rounded(_rounded_to_8_bits(x), plus, relu)
    ops: Any = torch.ops.quantized
    with _engine("onednn"), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the tensors that only carry the integers into the packing are deprecated
        zeros = torch.zeros(len(scales), dtype=torch.int64)
        carried = torch._make_per_channel_quantized_tensor(integers, scales.double(), zeros, 0)
        packed = ops.linear_prepack(carried, None)
    ends = torch.tensor([[-1.0], [1.0]])

    def product(x: Tensor, plus: Tensor | None = None, relu: bool = False) -> Tensor:
        rows, greatest = x.new_empty(len(x) + 2, x.size(1)), _greatest(x)
        torch.div(x, greatest, out=rows[:-2])
        rows[-2:] = ends
        y: Tensor = ops.linear_dynamic(rows, packed, False)[:-2]  # its twin with ReLU forgets that after a call without
        y = y * greatest if bias is None else torch.addcmul(bias, y, greatest)
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
    ops: Any = torch.ops.quantized
    with _engine("onednn"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        scales, zeros = torch.ones(16, dtype=torch.float64, device="cpu"), torch.zeros(16, dtype=torch.int64)
        carried = torch._make_per_channel_quantized_tensor(_ones(16, 16).to(torch.int8), scales, zeros, 0)
        ops.linear_dynamic(_ones(2, 16), ops.linear_prepack(carried, None), False)


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


def _rounded_to_8_bits(x: Tensor) -> Tensor:
    """Each number as near as 256 steps from its row's greatest below zero to the greatest above come to it."""
    step = _greatest(x) * 2 / 255
    return (x / step).round().clamp(-127, 128) * step


def _greatest(x: Tensor) -> Tensor:
    """The greatest number of each row, whatever its sign: ``(rows, 1)``, above 0."""
    return x.abs().amax(dim=1, keepdim=True).clamp_min_(torch.finfo(x.dtype).tiny)


@contextmanager
def _engine(name: str) -> Iterator[None]:
    """Pack for this one of torch's quantisation libraries; what is packed keeps it."""
    before = torch.backends.quantized.engine
    torch.backends.quantized.engine = name
    try:
        yield
    finally:
        torch.backends.quantized.engine = before
