"""Scaled dot-product attention (Eq. 1) and multi-head attention (section 3.2.2)."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn

from dragoman.config import ModelConfig
from dragoman.model.dropout import Dropout
from dragoman.model.embedding import rotate

Record = Callable[[str, Tensor], None]
"""Callback that receives the module path and the weights ``(B, H, Q, K)`` of each attention."""

KeysValues = tuple[Tensor, Tensor]
"""Projected keys ``(B, H, K, d_k)`` and values ``(B, H, K, d_v)``."""


def attend(
    q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, dropout: Dropout | None = None
) -> tuple[Tensor, Tensor]:
    """Compute scaled dot-product attention, Eq. (1): ``softmax(Q K^T / sqrt(d_k)) V``.

    Differs from the paper: dropout on the attention weights is not in the paper's text; tensor2tensor has it as an
    option.

    Args:
        q: Queries, ``(B, H, Q, d_k)``.
        k: Keys, ``(B, H, K, d_k)``.
        v: Values, ``(B, H, K, d_v)``.
        mask: Bool, broadcastable to ``(B, H, Q, K)``, true = may attend; None lets every query see every key.
        dropout: Applied to the weights.

    Returns:
        The context ``(B, H, Q, d_v)`` and the weights ``(B, H, Q, K)`` before dropout. A row of weights sums to 1,
        or is all 0 where ``mask`` allows no key.
    """
    scores = q @ k.mT / math.sqrt(q.size(-1))  # (B, H, Q, K)
    if mask is None:
        weights = scores.softmax(dim=-1)
    else:
        scores = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
        weights = scores.softmax(dim=-1).masked_fill(~mask, 0.0)  # a row that sees nothing: zeros, never NaN
    return (weights if dropout is None else dropout(weights)) @ v, weights


class MultiHeadAttention(nn.Module):
    """``h`` attentions on learned projections of the same input, concatenated and projected once more.

    Differs from the paper: the projections have biases unless ``attention_bias`` is False; the formulas of section
    3.2.2 show none. Rotary positions, if configured, rotate queries and keys after the projection.
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.n_heads, self.d_k, self.d_v = config.n_heads, config.head_d_k, config.head_d_v
        self.dropout = Dropout(config.attention_dropout)
        d_model, bias = config.d_model, config.attention_bias
        self.w_q = nn.Linear(d_model, self.n_heads * self.d_k, bias=bias)
        self.w_k = nn.Linear(d_model, self.n_heads * self.d_k, bias=bias)
        self.w_v = nn.Linear(d_model, self.n_heads * self.d_v, bias=bias)
        self.w_o = nn.Linear(self.n_heads * self.d_v, d_model, bias=bias)

    def keys_values(self, x: Tensor, angles: Tensor | None = None) -> KeysValues:
        """Project ``x`` (B, K, d_model) to keys and values; a decoder stores these between steps.

        Args:
            x: ``(B, K, d_model)``.
            angles: Rotary positions of ``x``, ``(K, d_k / 2)``, or None.
        """
        k = self.w_k(x).unflatten(-1, (self.n_heads, self.d_k)).transpose(1, 2)  # (B, H, K, d_k)
        v = self.w_v(x).unflatten(-1, (self.n_heads, self.d_v)).transpose(1, 2)  # (B, H, K, d_v)
        return (k if angles is None else rotate(k, angles)), v

    def forward(
        self,
        x: Tensor,
        keys_values: KeysValues,
        mask: Tensor | None,
        angles: Tensor | None = None,
        record: Record | None = None,
        name: str = "",
    ) -> Tensor:
        """Attend from each position of ``x`` to ``keys_values``.

        Args:
            x: ``(B, Q, d_model)``, from which the queries are projected.
            keys_values: Keys and values, from the method of that name.
            mask: Broadcastable to ``(B, H, Q, K)``, true = may attend, or None.
            angles: Rotary positions of ``x``, ``(Q, d_k / 2)``, or None.
            record: Receives the weights ``(B, H, Q, K)`` under ``name``.

        Returns:
            ``(B, Q, d_model)``.
        """
        q = self.w_q(x).unflatten(-1, (self.n_heads, self.d_k)).transpose(1, 2)  # (B, H, Q, d_k)
        q = q if angles is None else rotate(q, angles)
        context, weights = attend(q, *keys_values, mask, self.dropout)
        if record is not None:
            record(name, weights)
        return self.w_o(context.transpose(1, 2).flatten(2))  # heads side by side: (B, Q, H * d_v)
