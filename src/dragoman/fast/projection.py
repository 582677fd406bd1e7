"""Several linear layers that read the same input, as one product: float32 weights, products in any precision."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from dragoman.fast.private_ops import relu_backward

ROWS = 128
"""The number of rows of a product is rounded up to a multiple of this.

oneDNN compiles code for each new shape, which takes longer than the product itself. Rounding makes shapes repeat."""


def project(x: Tensor, weights: Sequence[Tensor], biases: Sequence[Tensor | None], relu: bool = False) -> Tensor:
    """Compute ``torch.cat([F.linear(x, w, b) for ...], dim=-1)`` as one product, with an optional ReLU.

    Products are computed in the dtype of ``x``, to which the weights are rounded. Gradients have the dtype of the
    weights, which may be float32 while the products are bfloat16.

    Args:
        x: ``(N, d_in)``.
        weights: ``(d_i, d_in)`` each.
        biases: ``(d_i,)`` each; either all or none are None.
        relu: Apply a ReLU to the result.

    Returns:
        ``(N, sum of d_i)``.
    """
    present = [bias for bias in biases if bias is not None]
    return _Project.apply(x, relu, len(weights), *weights, *present)  # type: ignore[no-untyped-call]


class _Project(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, relu: bool, n: int, *parameters: Tensor) -> Tensor:
        weight = _joined(parameters[:n], x.dtype)
        out = torch.addmm(_joined(parameters[n:], x.dtype), x, weight.T) if parameters[n:] else x @ weight.T
        if relu:
            out = out.relu_()
        ctx.save_for_backward(x, out if relu else None, weight)
        ctx.sizes, ctx.dtype, ctx.biased = (
            [part.size(0) for part in parameters[:n]],
            parameters[0].dtype,
            len(parameters) > n,
        )
        return out

    @staticmethod
    def backward(ctx: Any, d_out: Tensor) -> tuple[Tensor | None, ...]:
        x, out, weight = ctx.saved_tensors
        if out is not None:
            d_out = relu_backward(d_out, out)
        dx = d_out @ weight if ctx.needs_input_grad[0] else None
        dw = torch.split((d_out.T @ x).to(ctx.dtype), ctx.sizes)
        db = torch.split(d_out.sum(0).to(ctx.dtype), ctx.sizes) if ctx.biased else ()
        return dx, None, None, *dw, *db


def _joined(parts: Sequence[Tensor], dtype: torch.dtype) -> Tensor:
    """Concatenate ``parts`` along the first axis, in ``dtype``."""
    if len(parts) == 1:
        return parts[0].to(dtype)
    whole = parts[0].new_empty((sum(part.size(0) for part in parts), *parts[0].shape[1:]), dtype=dtype)
    for target, part in zip(torch.split(whole, [part.size(0) for part in parts]), parts, strict=True):
        target.copy_(part)
    return whole
