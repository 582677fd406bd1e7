"""Masks: bool, four axes ``(B, H, Q, K)``, True = may attend, combined with ``&``."""

import numpy as np

from .arrays import Config, Ids, Mask


def padding_mask(ids: Ids, pad_id: int) -> Mask:
    """Let every query attend to every key but padding: ``(B, K)`` -> ``(B, 1, 1, K)``."""
    mask: Mask = ids != pad_id
    return mask[:, None, None, :]


def source_mask(src: Ids, config: Config) -> Mask:
    """Hide padding in the source, and eos too if ``src_eos`` is False: ``(B, S)`` -> ``(B, 1, 1, S)``."""
    mask = padding_mask(src, config["pad_id"])
    return mask if config.get("src_eos", True) else mask & padding_mask(src, config["eos_id"])


def causal_mask(length: int) -> Mask:
    """Let each position attend to itself and to earlier ones (section 3.2.3): ``(1, 1, length, length)``."""
    return np.tri(length, dtype=np.bool_)[None, None]


def target_mask(tgt_in: Ids, pad_id: int) -> Mask:
    """Let each position attend to itself and earlier ones, without padding: ``(B, T)`` -> ``(B, 1, T, T)``."""
    return causal_mask(tgt_in.shape[1]) & padding_mask(tgt_in, pad_id)
