"""One encoder layer and one decoder layer: residual, dropout and norm written out (section 3.1, Figure 1).

Each sub-layer (attention or feed-forward network) has a residual connection around it:

    post-norm, as in the paper               pre-norm (https://arxiv.org/abs/2002.04745)

        x                                        x
        +--------------+                         +--------------+
        |              |                         |              |
        |          sub-layer                     |            norm
        |              |                         |              |
        |           dropout                      |          sub-layer
        |              |                         |              |
       (+)-------------+                         |           dropout
        |                                        |              |
       norm                                     (+)-------------+
        |                                        |
        x                                        x

    norm(x + dropout(sublayer(x)))           x + dropout(sublayer(norm(x)))

Pre-norm adds one more norm at the end of the stack, as nothing has normalised the sum. An encoder layer has two
sub-layers, a decoder layer three:

    encoder:  self-attention -> feed-forward
    decoder:  masked self-attention -> attention to the memory -> feed-forward

Differs from the paper: pre-norm, if configured. The layer norms have eps 1e-5, which the paper does not give.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from dragoman.config import ModelConfig, unknown
from dragoman.model.attention import KeysValues, MultiHeadAttention, Record
from dragoman.model.dropout import Dropout
from dragoman.model.feed_forward import FeedForward


def is_pre_norm(config: ModelConfig) -> bool:
    """Return True if norms come before the sub-layers, False if they come after the residual sums as in the paper."""
    if config.norm not in ("pre", "post"):
        raise unknown("model.norm", config.norm)
    return config.norm == "pre"


class EncoderLayer(nn.Module):
    """Self-attention, then the feed-forward network."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.pre_norm = is_pre_norm(config)
        self.self_attn = MultiHeadAttention(config)
        self.feed_forward = FeedForward(config)
        self.norm1 = nn.LayerNorm(config.d_model, eps=config.norm_eps)
        self.norm2 = nn.LayerNorm(config.d_model, eps=config.norm_eps)
        self.dropout = Dropout(config.dropout)

    def forward(
        self, x: Tensor, mask: Tensor | None, angles: Tensor | None, record: Record | None = None, name: str = ""
    ) -> Tensor:
        """Map ``x`` (B, S, d_model) to the same shape; ``mask`` is (B, 1, 1, S), ``angles`` (S, d_k / 2) or None."""
        y = self.norm1(x) if self.pre_norm else x
        y = self.self_attn(y, self.self_attn.keys_values(y, angles), mask, angles, record, f"{name}.self_attn")
        x = x + self.dropout(y)
        x = x if self.pre_norm else self.norm1(x)

        y = self.norm2(x) if self.pre_norm else x
        x = x + self.dropout(self.feed_forward(y))
        return x if self.pre_norm else self.norm2(x)


class DecoderLayer(nn.Module):
    """Masked self-attention, then attention to the memory, then the feed-forward network.

    Without memory (a language model) the middle sub-layer and its norm do not exist.
    """

    def __init__(self, config: ModelConfig, with_memory: bool = True) -> None:
        super().__init__()
        self.pre_norm = is_pre_norm(config)
        self.self_attn = MultiHeadAttention(config)
        self.cross_attn = MultiHeadAttention(config) if with_memory else None
        self.feed_forward = FeedForward(config)
        self.norm1 = nn.LayerNorm(config.d_model, eps=config.norm_eps)
        self.norm2 = nn.LayerNorm(config.d_model, eps=config.norm_eps)
        self.norm3 = nn.LayerNorm(config.d_model, eps=config.norm_eps) if with_memory else None
        self.dropout = Dropout(config.dropout)

    def memory(self, memory: Tensor) -> KeysValues | None:
        """Return cross-attention's keys and values of ``memory`` (B, S, d_model), which are the same at every step."""
        return None if self.cross_attn is None else self.cross_attn.keys_values(memory)

    def forward(
        self,
        x: Tensor,
        past: KeysValues | None,
        memory: KeysValues | None,
        tgt_mask: Tensor | None,
        src_mask: Tensor | None,
        angles: Tensor | None,
        record: Record | None = None,
        name: str = "",
    ) -> tuple[Tensor, KeysValues]:
        """Run the layer on the positions of ``x``, which follow those of ``past``.

        Args:
            x: ``(B, T, d_model)``: in training all positions, in decoding the newest one.
            past: Self-attention's keys and values of earlier positions, or None.
            memory: Cross-attention's keys and values, or None in a language model.
            tgt_mask: ``(B, 1, T, past + T)``, or None where each query may see every key.
            src_mask: ``(B, 1, 1, S)``, or None.
            angles: Rotary positions of ``x``, ``(T, d_k / 2)``, or None.

        Returns:
            ``(B, T, d_model)``, and ``past`` with the keys and values of ``x`` appended.
        """
        y = self.norm1(x) if self.pre_norm else x
        past = append(past, self.self_attn.keys_values(y, angles))
        x = x + self.dropout(self.self_attn(y, past, tgt_mask, angles, record, f"{name}.self_attn"))
        x = x if self.pre_norm else self.norm1(x)

        last_norm = self.norm2
        if self.cross_attn is not None and self.norm3 is not None and memory is not None:
            y = self.norm2(x) if self.pre_norm else x
            x = x + self.dropout(self.cross_attn(y, memory, src_mask, None, record, f"{name}.cross_attn"))
            x = x if self.pre_norm else self.norm2(x)
            last_norm = self.norm3

        y = last_norm(x) if self.pre_norm else x
        x = x + self.dropout(self.feed_forward(y))
        return (x if self.pre_norm else last_norm(x)), past


def append(past: KeysValues | None, new: KeysValues) -> KeysValues:
    """Append ``new`` keys and values to those of the ``past`` along the length."""
    if past is None:
        return new
    return torch.cat((past[0], new[0]), dim=2), torch.cat((past[1], new[1]), dim=2)
