"""Tokens and positions: scaled embeddings (section 3.4) and three kinds of positions (section 3.5)."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from dragoman.config import ModelConfig, unknown
from dragoman.errors import ConfigError


def position_angles(start: int, length: int, width: int, device: torch.device | None = None) -> Tensor:
    """Return the angles ``pos / 10000^(2i / width)``, in float64 so that far positions stay accurate.

    Sinusoidal positions are the sine and cosine of these angles; rotary positions rotate by them.

    Returns:
        Radians ``(length, width / 2)`` for positions ``start`` to ``start + length - 1`` and pairs of channels ``i``.
    """
    positions = torch.arange(start, start + length, dtype=torch.float64, device=device)
    pairs = torch.arange(0, width, 2, dtype=torch.float64, device=device)
    return positions[:, None] / 10000.0 ** (pairs / width)


def sinusoids(start: int, length: int, d_model: int, device: torch.device | None = None) -> Tensor:
    """Return sinusoidal positions (section 3.5): ``(length, d_model)`` in float64.

    Even channels are sines, odd ones cosines.
    """
    angles = position_angles(start, length, d_model, device)
    return torch.stack((angles.sin(), angles.cos()), dim=-1).flatten(1)


def rotate(x: Tensor, angles: Tensor) -> Tensor:
    """Rotate the channel pairs (0, 1), (2, 3), ... of ``x`` (RoFormer, https://arxiv.org/abs/2104.09864, Eq. 15).

    Args:
        x: Queries or keys, ``(B, H, L, d_k)``.
        angles: From ``position_angles``, ``(L, d_k / 2)``.

    Returns:
        ``(B, H, L, d_k)``.
    """
    cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)  # (L, d_k / 2)
    even, odd = x[..., 0::2], x[..., 1::2]  # (B, H, L, d_k / 2)
    return torch.stack((even * cos - odd * sin, even * sin + odd * cos), dim=-1).flatten(-2)


class TokenEmbedding(nn.Embedding):
    """Rows of tokens, times ``sqrt(d_model)`` (section 3.4).

    Differs from the paper: the row of padding is zero and is not trained, unless it is tied to the generator's.
    """

    def __init__(self, vocab_size: int, config: ModelConfig) -> None:
        super().__init__(vocab_size, config.d_model, padding_idx=config.pad_id)
        self.scale = math.sqrt(config.d_model) if config.scale_embeddings else 1.0

    def forward(self, ids: Tensor) -> Tensor:
        """Return the scaled embeddings ``(B, L, d_model)`` of ``ids`` (B, L)."""
        return super().forward(ids) * self.scale


class LearnedPositions(nn.Embedding):
    """One trained vector for each position (Table 3, row E)."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__(config.max_len, config.d_model)

    def window(self, start: int, length: int) -> Tensor:
        """Return the vectors of positions ``start`` to ``start + length - 1``: ``(length, d_model)``.

        Raises:
            ConfigError: The text is longer than ``max_len``.
        """
        if start + length > self.num_embeddings:
            raise ConfigError(
                f"a text of {start + length} tokens is longer than model.max_len = {self.num_embeddings}, which binds "
                "learned positions: shorten the text, or train with a larger max_len or other positions"
            )
        return self.weight[start : start + length]


def learned_positions(config: ModelConfig) -> LearnedPositions | None:
    """Return the learned positions of one side (source or target), or None if positions are not learned."""
    return LearnedPositions(config) if config.positions == "learned" else None


def positions(
    config: ModelConfig, learned: LearnedPositions | None, start: int, length: int, device: torch.device
) -> tuple[Tensor | None, Tensor | None]:
    """Return the positions of ``length`` tokens, the first of which has position ``start``.

    Args:
        learned: From ``learned_positions``.

    Returns:
        Vectors to add to the tokens, ``(length, d_model)``, or None; and angles by which self-attention rotates queries
        and keys, ``(length, d_k / 2)``, or None. Exactly one of the two is given.
    """
    if learned is not None:
        return learned.window(start, length), None
    if config.positions == "sinusoidal":
        return sinusoids(start, length, config.d_model, device), None
    if config.positions == "rotary":
        return None, position_angles(start, length, config.head_d_k, device)
    raise unknown("model.positions", config.positions)
