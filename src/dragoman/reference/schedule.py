"""The learning rate of each step, counted from 1."""

import math


def noam(step: int, d_model: int, warmup_steps: int = 4000, factor: float = 1.0) -> float:
    """Return the paper's rate, Eq. (3), times ``factor``: ``d_model^-0.5 min(step^-0.5, step warmup^-1.5)``."""
    return float(factor * d_model**-0.5 * min(step**-0.5, step * warmup_steps**-1.5))


def inverse_sqrt(step: int, peak: float, warmup_steps: int = 4000) -> float:
    """Return Eq. (3) scaled to its peak: linear up to ``peak`` at ``warmup_steps``, then falling as ``step^-0.5``."""
    return peak * min(step / warmup_steps, math.sqrt(warmup_steps / step))


def cosine(step: int, peak: float, warmup_steps: int, max_steps: int) -> float:
    """Return linear warm-up to ``peak``, then half a cosine down to 0 (https://arxiv.org/abs/1608.03983)."""
    if step <= warmup_steps:  # first, as in training: a warm-up may end with the last step
        return peak * step / warmup_steps
    if step >= max_steps:
        return 0.0
    return peak * 0.5 * (1 + math.cos(math.pi * (step - warmup_steps) / (max_steps - warmup_steps)))
