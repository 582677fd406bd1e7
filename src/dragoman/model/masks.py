"""Masks: who may attend to whom.

Every mask is ``bool`` and ``True`` means "may attend", as in ``torch.nn.functional.scaled_dot_product_attention``. It
has four axes ``(B, H, Q, K)``, any of which may be 1. Masks are combined with ``&``.
"""

from __future__ import annotations

import torch
from torch import Tensor

from dragoman.config import ModelConfig


def padding_mask(ids: Tensor, pad_id: int) -> Tensor:
    """Return a mask that lets every query attend to all keys but padding.

    Args:
        ids: Token ids of the keys, ``(B, K)``.

    Returns:
        ``(B, 1, 1, K)``.
    """
    return (ids != pad_id)[:, None, None, :]


def read_tokens(src: Tensor, config: ModelConfig) -> Tensor:
    """Return True for the source tokens that the model reads: all but padding, and without eos if ``src_eos`` is False.

    Some imported models read sources without eos. This is the only place where they differ: everywhere else a source is
    its ids and eos. A last token to which nothing attends changes no other token.

    Args:
        src: ``(B, S)``.

    Returns:
        ``(B, S)``.
    """
    read = src != config.pad_id
    return read if config.src_eos else read & (src != config.eos_id)


def source_mask(src: Tensor, config: ModelConfig) -> Tensor:
    """Return a mask that lets every query attend to the source tokens that are read.

    Args:
        src: ``(B, S)``.

    Returns:
        ``(B, 1, 1, S)``.
    """
    return read_tokens(src, config)[:, None, None, :]


def causal_mask(length: int, device: torch.device | None = None) -> Tensor:
    """Return a mask that lets each position attend to itself and to earlier ones (section 3.2.3).

    Returns:
        ``(1, 1, length, length)``, true on and below the diagonal.
    """
    return torch.ones(length, length, dtype=torch.bool, device=device).tril()[None, None]


def target_mask(tgt_in: Tensor, pad_id: int) -> Tensor:
    """Return the mask of the decoder's self-attention: itself and earlier positions, without padding.

    Args:
        tgt_in: Shifted target ids, ``(B, T)``.

    Returns:
        ``(B, 1, T, T)``.
    """
    return causal_mask(tgt_in.size(1), tgt_in.device) & padding_mask(tgt_in, pad_id)
