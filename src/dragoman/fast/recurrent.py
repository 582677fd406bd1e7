"""A recurrent layer along a whole sequence by torch's own kernel."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor


def recurrence(
    kind: str, x: Tensor, state: tuple[Tensor, ...], w_x: Tensor, bias: Tensor, w_h: Tensor
) -> tuple[Tensor, tuple[Tensor, ...]]:
    """Fast twin of ``Recurrence.steps``: the same cells in one call, several times as fast in bf16 and on a GPU.

    Args:
        kind: ``rnn``, ``gru`` or ``lstm``; the order of the gates is torch's.
        x: ``(B, L, d_in)``.
        state: ``(h,)`` or ``(h, c)``, each ``(B, width)``.
        w_x: ``(gates * width, d_in)``.
        bias: ``(gates * width,)``.
        w_h: ``(gates * width, width)``.

    Returns:
        ``(B, L, width)`` and the last state; under autocast in its dtype.
    """
    kernel: Any = {"rnn": torch.rnn_tanh, "gru": torch.gru, "lstm": torch.lstm}[kind]
    device = x.device.type
    dtype = torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else w_x.dtype
    weights = [weight.to(dtype) for weight in (w_x, w_h, bias, torch.zeros_like(bias))]
    before = tuple(part.to(dtype)[None] for part in state)
    begin = before if kind == "lstm" else before[0]
    # (biases: yes, layers: 1, dropout: 0, training: yes, both directions: no, batch first: yes)
    found, *after = kernel(x.to(dtype), begin, weights, True, 1, 0.0, True, False, True)
    return found, tuple(part[0] for part in after)
