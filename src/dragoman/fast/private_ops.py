"""torch's private operators, each with a public replacement.

Any release of torch may rename a private operator or change its arguments. So each one is used in one function here,
and nowhere else. ``works`` tries the operator once, before its first use. If that fails, a warning is logged and the
public operations are used: equal up to rounding, but slower. A test compares each with its public replacement; another
test finds private names elsewhere in the code.

``softmax_backward``   ``torch._softmax_backward_data``; else the formula, in three passes over memory instead of one
``relu_backward``      ``torch.ops.aten.threshold_backward``; else ``masked_fill``, in two passes instead of one
``lerp_all``           ``torch._foreach_lerp_``; else one tensor after another
``version``            ``Tensor._version``; else the sum of the elements
``packed_product``     ``torch.ops.mkldnn._reorder_linear_weight`` and ``_linear_pointwise``, which need a CPU and
                       oneDNN, and for bfloat16 also ``device.has_bf16``; else ``F.linear`` and a separate addition
"""

from __future__ import annotations

import functools
import logging
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

logger = logging.getLogger(__name__)


def softmax_backward(d_weights: Tensor, weights: Tensor) -> Tensor:
    """Return the gradient of ``scores``, given ``weights = softmax(scores)`` over the last axis and their gradient."""
    if works("softmax_backward"):
        return torch._softmax_backward_data(d_weights, weights, -1, weights.dtype)
    product = d_weights * weights
    return product.sub_(weights * product.sum(-1, keepdim=True))


def relu_backward(d_out: Tensor, out: Tensor) -> Tensor:
    """Return the gradient of the input of a ReLU, from its output and the gradient of that."""
    if works("relu_backward"):
        return torch.ops.aten.threshold_backward(d_out, out, 0)
    return d_out.masked_fill(out <= 0, 0)


def lerp_all(targets: Sequence[Tensor], others: Sequence[Tensor], weight: float) -> None:
    """Move each target towards its other tensor, in place: ``target + weight * (other - target)``."""
    if works("lerp_all"):
        torch._foreach_lerp_(list(targets), list(others), weight)
        return
    for target, other in zip(targets, others, strict=True):
        target.lerp_(other, weight)


def version(weight: Tensor) -> float:
    """Return a number that changes whenever the tensor is modified in place.

    torch counts no changes of tensors made in inference mode: for these it is always 0.
    """
    if not works("version"):
        return float(weight.detach().sum(dtype=torch.float64))
    return 0 if weight.is_inference() else weight._version


def packed_product(weight: Tensor, bias: Tensor | None) -> Callable[..., Tensor]:
    """Return a ``linear.Product`` whose matrix is laid out for oneDNN; bias, residual and ReLU take no further pass."""
    if not works("packed_product"):
        return functools.partial(_linear, weight, bias)
    ops: Any = torch.ops.mkldnn
    packed = ops._reorder_linear_weight(weight)

    def product(x: Tensor, plus: Tensor | None = None, relu: bool = False) -> Tensor:
        if plus is not None:
            return ops._linear_pointwise.binary(x, plus, packed, bias, "add")
        return ops._linear_pointwise(x, packed, bias, "relu" if relu else "none", [], "")

    return product


class WrongProductsError(RuntimeError):
    """The operator is there, but the settings of OpenMP make its results wrong."""


@functools.cache
def works(name: str) -> bool:
    """Return True if this torch has the private operator behind the function ``name``, with the expected arguments."""
    try:
        with torch.no_grad():
            TRIALS[name]()
    except WrongProductsError as error:
        logger.warning("%s", error)
        return False
    except (AttributeError, TypeError, RuntimeError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        logger.warning(
            "torch %s has no %s as dragoman uses it (%s): a slower implementation is used",
            torch.__version__,
            name,
            reason,
        )
        return False
    return True


def _try_packed() -> None:
    ops: Any = torch.ops.mkldnn
    x, weight = _ones(2, 16), ops._reorder_linear_weight(_ones(16, 16))
    ops._linear_pointwise(x, weight, None, "relu", [], "")
    ops._linear_pointwise.binary(x, x, weight, None, "add")
    _check_threads()


def _check_threads() -> None:
    """Check that packed products of a real size equal the public ones, with the threads that they get.

    Raises:
        WrongProductsError: They differ, or may do so later. oneDNN divides a product among the threads that OpenMP
            promises, and computes only the parts of those that it gets.
    """
    ops: Any = torch.ops.mkldnn
    x, weight = (
        torch.arange(128.0 * rows, device="cpu", dtype=torch.float32).sin().view(rows, 128) for rows in (64, 512)
    )
    packed = ops._reorder_linear_weight(weight)

    def product() -> Tensor:
        return ops._linear_pointwise(x, packed, None, "none", [], "")

    # A new thread, such as a search thread, may take another number for its first product. The public product comes
    # last: otherwise the memory of the others could still hold the right numbers.
    with ThreadPoolExecutor(1) as new_thread:
        products = new_thread.submit(product).result(), product()
    are_right = all(torch.allclose(y, F.linear(x, weight), atol=1e-3) for y in products)
    # With OMP_DYNAMIC the number of threads changes with the load: right products now promise nothing.
    if not are_right or os.environ.get("OMP_DYNAMIC", "").strip().lower() == "true":
        # ``F.linear`` uses oneDNN too, for bfloat16.
        torch.backends.mkldnn.set_flags(False)  # type: ignore[no-untyped-call]
        raise WrongProductsError(FEWER_THREADS)


FEWER_THREADS = (
    "OMP_DYNAMIC, OMP_THREAD_LIMIT or OMP_MAX_ACTIVE_LEVELS makes products of oneDNN wrong, so all of this process is "
    "computed without it, more slowly; unset them before Python starts"
)


def _ones(*shape: int) -> Tensor:
    return torch.ones(shape, device="cpu", dtype=torch.float32)


TRIALS: dict[str, Callable[[], object]] = {
    "softmax_backward": lambda: torch._softmax_backward_data(_ones(2, 3), _ones(2, 3), -1, torch.float32),
    "relu_backward": lambda: torch.ops.aten.threshold_backward(_ones(2), _ones(2), 0),
    "lerp_all": lambda: torch._foreach_lerp_([_ones(2)], [_ones(2)], 0.5),
    "version": lambda: torch.Tensor._version,
    "packed_product": _try_packed,
}


def _linear(weight: Tensor, bias: Tensor | None, x: Tensor, plus: Tensor | None = None, relu: bool = False) -> Tensor:
    """Compute the result of a ``linear.Product`` with public operations."""
    y = F.linear(x, weight, bias)
    if relu:
        y.relu_()
    return y if plus is None else y.add_(plus)
