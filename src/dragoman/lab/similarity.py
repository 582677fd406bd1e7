"""Additive and dot-product attention, on letters to be reversed, for the experiment reach (section 3.2.1)."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from dragoman.config import ModelConfig
from dragoman.lab.letters import accuracy, endless, learn, reversals, small_model, warm_cosine
from dragoman.lab.phrases import mean_loss
from dragoman.model.attention import KeysValues, MultiHeadAttention

SIMILARITIES = ("additive", "dot product", "divided dot product")
"""Ways to compare a query with a key: ``v · tanh(q + k)``, ``q · k``, and ``q · k / sqrt(d_k)`` as in the paper."""


class LetterSizes(NamedTuple):
    """Sizes of the comparison."""

    d_k: int = 8
    steps: int = 250
    longest: int = 8  # letters
    batch: int = 32  # sentences of a batch


class ComparingAttention(MultiHeadAttention):
    """Attention by one of ``SIMILARITIES``."""

    def __init__(self, config: ModelConfig, kind: str) -> None:
        super().__init__(config)
        self.kind = kind
        self.v = nn.Parameter(torch.randn(self.d_k) / math.sqrt(self.d_k)) if kind == "additive" else None

    def scores(self, q: Tensor, k: Tensor) -> Tensor:
        """Return the scores ``(B, H, Q, K)`` of queries ``(B, H, Q, d_k)`` and keys ``(B, H, K, d_k)``."""
        if self.v is not None:
            return torch.tanh(q[..., :, None, :] + k[..., None, :, :]) @ self.v
        return q @ k.mT / (math.sqrt(self.d_k) if self.kind == "divided dot product" else 1.0)

    def forward(self, x: Tensor, keys_values: KeysValues, mask: Tensor | None, *_: Any, **__: Any) -> Tensor:
        """Attend as the parent does, with positions added to the input and nothing recorded."""
        q = self.w_q(x).unflatten(-1, (self.n_heads, self.d_k)).transpose(1, 2)
        scores = self.scores(q, keys_values[0])
        if mask is not None:
            scores = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
        context = scores.softmax(-1) @ keys_values[1]
        return self.w_o(context.transpose(1, 2).flatten(2))


def comparing(kind: str, d_k: int, seed: int) -> nn.Module:
    """Return a fresh small Transformer with one head of width ``d_k``, whose attentions compare by ``kind``."""
    model = small_model(seed, d_model=32, d_ff=64, n_heads=1, d_k=d_k, d_v=32, n_encoder_layers=1, n_decoder_layers=1)
    for layer in (*model.encoder.layers, *model.decoder.layers):
        for name in ("self_attn", "cross_attn"):
            if isinstance(getattr(layer, name, None), MultiHeadAttention):
                ours = ComparingAttention(model.config, kind)
                ours.load_state_dict(getattr(layer, name).state_dict(), strict=False)
                setattr(layer, name, ours)
    return model


def reversed_letters(kind: str, seed: int, sizes: LetterSizes) -> dict[str, Any]:
    """Train a model to write letters backwards, and return its quality on new ones."""
    model = comparing(kind, sizes.d_k, seed)
    batches = endless(sizes.batch, 3, sizes.longest, seed=seed)
    losses = learn(model, batches, sizes.steps, warm_cosine(sizes.steps, 6e-3, max(sizes.steps // 10, 1)))
    test = reversals(300, 3, sizes.longest, 20, torch.Generator().manual_seed(99))
    return {"seed": seed, "loss": mean_loss(model, test), "accuracy": accuracy(model, test), "curve": losses[::10]}
