"""Additive attention (Bahdanau et al., 2015, https://arxiv.org/abs/1409.0473, appendix A.1.2)."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class AdditiveAttention(nn.Module):
    """Attention whose scores come from a small network: ``score = v . tanh(W_q q + W_k m + b)``."""

    def __init__(self, d_model: int) -> None:
        super().__init__()
        self.w_q = nn.Linear(d_model, d_model, bias=False)
        self.w_k = nn.Linear(d_model, d_model)
        self.v = nn.Linear(d_model, 1, bias=False)
        for layer in (self.w_q, self.w_k, self.v):
            nn.init.xavier_uniform_(layer.weight)
        nn.init.zeros_(self.w_k.bias)

    def keys(self, memory: Tensor) -> Tensor:
        """Return ``W_k m + b`` for ``memory`` (B, S, d_model), which is the same at every step."""
        return self.w_k(memory)

    def forward(self, query: Tensor, keys: Tensor, memory: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """Attend from ``query`` to the memory.

        Args:
            query: ``(B, d_model)``.
            keys: From the method of that name, ``(B, S, d_model)``.
            memory: ``(B, S, d_model)``, which are also the values.
            mask: ``(B, S)`` bool, true = may be attended to.

        Returns:
            The context ``(B, d_model)`` and the weights ``(B, S)``, which sum to 1, or are all 0 where ``mask`` allows
            nothing.
        """
        scores = self.v(torch.tanh(self.w_q(query)[:, None] + keys))[..., 0]  # (B, S)
        scores = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
        weights = scores.softmax(dim=-1).masked_fill(~mask, 0.0)
        return (weights[:, None] @ memory)[:, 0], weights
