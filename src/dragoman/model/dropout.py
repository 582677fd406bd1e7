"""Dropout (section 5.4) with cheap random numbers: sixteen bits for each element, four elements in one draw.

Differs from the paper: the probability is rounded to a multiple of 1 / 65536 on a CPU, and the scale with it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F


class Dropout(nn.Dropout):
    """``torch.nn.Dropout`` with the random numbers of ``dropout`` below."""

    def forward(self, x: Tensor) -> Tensor:
        """Drop elements of ``x`` in training mode; in eval mode return ``x`` unchanged."""
        return dropout(x, self.p) if self.training else x


def dropout(x: Tensor, p: float) -> Tensor:
    """Set each element to zero with probability ``p`` and scale the others, as ``torch.nn.functional.dropout`` does.

    On a CPU ``F.dropout`` spends most of its time drawing one float for each element. Sixteen random bits are enough to
    compare with ``p``, and one 64-bit draw of torch's generator has bits for four elements. ``p`` is rounded to a
    multiple of 1 / 65536, and the scale with it, so that the mean stays exact. On other devices this is ``F.dropout``.

    Args:
        x: Any floating-point tensor.
        p: Probability in [0, 1).

    Returns:
        A tensor of the shape and dtype of ``x``.
    """
    if x.device.type != "cpu":
        return F.dropout(x, p)
    if _level(p) == 0:
        return x
    return x * keep_mask(x.shape, p, x.dtype, x.device).mul_(keep_scale(p))


def add_dropped(x: Tensor, y: Tensor, p: float) -> Tensor:
    """Return ``x + dropout(y, p)`` in one pass forward and one backward; ``x`` and ``y`` are both (N, d_model)."""
    return _AddDropped.apply(x, y, p) if p else x + y  # type: ignore[no-untyped-call]


def keep_mask(shape: Sequence[int], p: float, dtype: torch.dtype, device: torch.device) -> Tensor:
    """Return a tensor of ones, in which each element is 0 instead with probability ``p``; not scaled."""
    if device.type != "cpu":
        return torch.empty(shape, dtype=dtype, device=device).bernoulli_(1 / keep_scale(p))
    keep = torch.empty(shape, dtype=dtype)
    n = keep.numel()
    bits = torch.empty((n + 3) // 4, dtype=torch.int64).random_(-(2**63), None).view(torch.int16)[:n]
    torch.ge(bits, _level(p) - 32768, out=keep.view(-1))
    return keep


def keep_scale(p: float) -> float:
    """Return the factor ``1 / (1 - p)`` that makes up for dropped elements, with ``p`` as ``keep_mask`` rounds it."""
    return 65536 / (65536 - _level(p))


def _level(p: float) -> int:
    """Return ``p`` in units of 1 / 65536; below 65536."""
    return min(round(p * 65536), 65535)


class _AddDropped(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, y: Tensor, p: float) -> Tensor:
        # Keep the scale apart from the mask: in bfloat16 it would be rounded, and the mean would be wrong.
        keep, ctx.scale = keep_mask(y.shape, p, y.dtype, y.device), keep_scale(p)
        ctx.save_for_backward(keep)
        return torch.addcmul(x, y, keep, value=ctx.scale)

    @staticmethod
    def backward(ctx: Any, d_out: Tensor) -> tuple[Tensor, Tensor, None]:
        (keep,) = ctx.saved_tensors
        return d_out, torch.addcmul(d_out.new_zeros(()), d_out, keep, value=ctx.scale), None
