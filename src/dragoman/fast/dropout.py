"""Dropout whose random bits are drawn sixteen bits an element, four elements a draw."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F


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
    level = round(p * 65536)
    if level == 0:
        return x
    if x.device.type != "cpu" or level == 65536:
        return F.dropout(x, p)
    bits = torch.empty((x.numel() + 3) // 4, dtype=torch.int64).random_(-(2**63), None).view(torch.int16)
    keep = (bits[: x.numel()] >= level - 32768).view(x.shape)
    return x * keep.to(x.dtype).mul_(65536 / (65536 - level))
