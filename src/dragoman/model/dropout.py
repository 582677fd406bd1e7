"""Dropout (section 5.4) as the model uses it: random bits are drawn sixteen bits an element, four elements a draw."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F


class Dropout(nn.Dropout):
    """``torch.nn.Dropout`` by cheaper random bits."""

    def forward(self, x: Tensor) -> Tensor:
        """Drop elements of ``x`` in training; elsewhere return it as it is."""
        return dropout(x, self.p) if self.training else x


def dropout(x: Tensor, p: float) -> Tensor:
    """Zero each element with probability ``p`` and scale the others, as ``torch.nn.functional.dropout`` in training.

    On a CPU ``F.dropout`` spends its time in drawing one float for each element. Sixteen bits are enough to compare
    with ``p`` (which is rounded to 1 / 65536, and the scale with it, so that the mean stays exact), and torch's own
    generator gives four of them in one 64-bit draw. Elsewhere ``F.dropout`` is taken as it is.

    Args:
        x: Any floating-point tensor.
        p: Probability in [0, 1).

    Returns:
        A tensor like ``x``.
    """
    if x.device.type != "cpu":
        return F.dropout(x, p)
    if _level(p) == 0:
        return x
    return x * keep_mask(x.shape, p, x.dtype, x.device).mul_(keep_scale(p))


def add_dropped(x: Tensor, y: Tensor, p: float) -> Tensor:
    """``x + dropout(y, p)`` in one pass forward and one back; ``x`` and ``y`` are alike, (N, d_model)."""
    return _AddDropped.apply(x, y, p) if p else x + y  # type: ignore[no-untyped-call]


def keep_mask(shape: Sequence[int], p: float, dtype: torch.dtype, device: torch.device) -> Tensor:
    """1 where an element stays and 0 where it is dropped, each dropped with probability ``p``, unscaled."""
    if device.type != "cpu":
        return torch.empty(shape, dtype=dtype, device=device).bernoulli_(1 / keep_scale(p))
    keep = torch.empty(shape, dtype=dtype)
    n = keep.numel()
    bits = torch.empty((n + 3) // 4, dtype=torch.int64).random_(-(2**63), None).view(torch.int16)[:n]
    torch.ge(bits, _level(p) - 32768, out=keep.view(-1))
    return keep


def keep_scale(p: float) -> float:
    """What makes up for those that ``keep_mask`` drops."""
    return 65536 / (65536 - _level(p))


def _level(p: float) -> int:
    return min(round(p * 65536), 65535)


class _AddDropped(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, y: Tensor, p: float) -> Tensor:
        # the scale is kept apart from the mask: in bfloat16 it would be rounded, and the mean with it
        keep, ctx.scale = keep_mask(y.shape, p, y.dtype, y.device), keep_scale(p)
        ctx.save_for_backward(keep)
        return torch.addcmul(x, y, keep, value=ctx.scale)

    @staticmethod
    def backward(ctx: Any, d_out: Tensor) -> tuple[Tensor, Tensor, None]:
        (keep,) = ctx.saved_tensors
        return d_out, torch.addcmul(d_out.new_zeros(()), d_out, keep, value=ctx.scale), None
