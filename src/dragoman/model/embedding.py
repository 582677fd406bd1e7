"""Tokens and positions: scaled embeddings (section 3.4) and three ways to say where a token stands (section 3.5)."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from dragoman.config import ModelConfig, unknown
from dragoman.errors import ConfigError


def position_angles(start: int, length: int, width: int, device: torch.device | None = None) -> Tensor:
    """``pos / 10000^(2i / width)`` in float64, so that far positions keep their digits.

    Sinusoidal positions take sine and cosine of these angles, rotary ones turn by them.

    Returns:
        Radians for positions ``start`` to ``start + length - 1`` and pairs of channels ``i``: ``(length, width / 2)``.
    """
    positions = torch.arange(start, start + length, dtype=torch.float64, device=device)
    pairs = torch.arange(0, width, 2, dtype=torch.float64, device=device)
    return positions[:, None] / 10000.0 ** (pairs / width)


def sinusoids(start: int, length: int, d_model: int, device: torch.device | None = None) -> Tensor:
    """Sinusoidal positions (section 3.5): sine on even, cosine on odd channels, ``(length, d_model)``, float64."""
    angles = position_angles(start, length, d_model, device)
    return torch.stack((angles.sin(), angles.cos()), dim=-1).flatten(1)


def rotate(x: Tensor, angles: Tensor) -> Tensor:
    """Turn the channel pairs (0, 1), (2, 3), ... of ``x`` (RoFormer, https://arxiv.org/abs/2104.09864, Eq. 15).

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
    """One row for each token, times ``sqrt(d_model)`` (section 3.4); the padding row is zero."""

    def __init__(self, vocab_size: int, config: ModelConfig) -> None:
        super().__init__(vocab_size, config.d_model, padding_idx=config.pad_id)
        self.scale = math.sqrt(config.d_model) if config.scale_embeddings else 1.0

    def forward(self, ids: Tensor) -> Tensor:
        """Look up ``(B, L)``: ``(B, L, d_model)``."""
        return super().forward(ids) * self.scale


class LearnedPositions(nn.Embedding):
    """One trained row for each position (Table 3, row E)."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__(config.max_len, config.d_model)

    def window(self, start: int, length: int) -> Tensor:
        """Rows ``start`` to ``start + length - 1``: ``(length, d_model)``.

        Raises:
            ConfigError: The text is longer than the table.
        """
        if start + length > self.num_embeddings:
            raise ConfigError(
                f"a text of {start + length} tokens is longer than model.max_len = {self.num_embeddings}, which binds "
                "learned positions: shorten the text, or train with a larger max_len or other positions"
            )
        return self.weight[start : start + length]


def learned_positions(config: ModelConfig) -> LearnedPositions | None:
    """The table of one side; None where positions are not learned."""
    return LearnedPositions(config) if config.positions == "learned" else None


def positions(
    config: ModelConfig, learned: LearnedPositions | None, start: int, length: int, device: torch.device
) -> tuple[Tensor | None, Tensor | None]:
    """How the model is told where tokens stand, the first of ``length`` at position ``start``.

    Args:
        learned: From ``learned_positions``.

    Returns:
        What is added to the tokens, ``(length, d_model)``, or None; and the angles that self-attention turns queries
        and keys by, ``(length, d_k / 2)``, or None.
    """
    if learned is not None:
        return learned.window(start, length), None
    if config.positions == "sinusoidal":
        return sinusoids(start, length, config.d_model, device), None
    if config.positions == "rotary":
        return None, position_angles(start, length, config.head_d_k, device)
    raise unknown("model.positions", config.positions)
