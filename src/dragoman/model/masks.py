"""Who may attend to whom.

Every mask is ``bool``, ``True`` = may attend (the rule of ``torch.nn.functional.scaled_dot_product_attention``), has
four axes ``(B, H, Q, K)`` of which any may be 1, and masks are combined with ``&``.
"""

from __future__ import annotations

import torch
from torch import Tensor

from dragoman.config import ModelConfig


def padding_mask(ids: Tensor, pad_id: int) -> Tensor:
    """Let every query attend to the keys that are no padding.

    Args:
        ids: Token ids of the keys, ``(B, K)``.
        pad_id: The id that marks padding.

    Returns:
        ``(B, 1, 1, K)``.
    """
    return (ids != pad_id)[:, None, None, :]


def read_tokens(src: Tensor, config: ModelConfig) -> Tensor:
    """Which tokens of the sources are read: those that are no padding, nor the eos where ``src_eos`` is false.

    This is the one place where a model differs that has sources without eos: everywhere a source is its ids and eos,
    and what nothing attends to, at the end of a row, changes no other token.

    Args:
        src: ``(B, S)``.

    Returns:
        ``(B, S)``.
    """
    read = src != config.pad_id
    return read if config.src_eos else read & (src != config.eos_id)


def source_mask(src: Tensor, config: ModelConfig) -> Tensor:
    """Let every query attend to the tokens of the source that are read.

    Args:
        src: ``(B, S)``.

    Returns:
        ``(B, 1, 1, S)``.
    """
    return read_tokens(src, config)[:, None, None, :]


def causal_mask(length: int, device: torch.device | None = None) -> Tensor:
    """Let each position attend to itself and the past (section 3.2.3).

    Returns:
        ``(1, 1, length, length)``, true on and below the diagonal.
    """
    return torch.ones(length, length, dtype=torch.bool, device=device).tril()[None, None]


def target_mask(tgt_in: Tensor, pad_id: int) -> Tensor:
    """The decoder's self-attention: the past, without padding.

    Args:
        tgt_in: Shifted target ids, ``(B, T)``.

    Returns:
        ``(B, 1, T, T)``.
    """
    return causal_mask(tgt_in.size(1), tgt_in.device) & padding_mask(tgt_in, pad_id)
