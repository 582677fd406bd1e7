"""The learning rate of each step; the first step is 1."""

import math


def noam(step: int, d_model: int, warmup_steps: int = 4000, factor: float = 1.0) -> float:
    """Eq. (3): ``d_model^-0.5 min(step^-0.5, step warmup^-1.5)``, times ``factor``."""
    return float(factor * d_model**-0.5 * min(step**-0.5, step * warmup_steps**-1.5))


def inverse_sqrt(step: int, peak: float, warmup_steps: int = 4000) -> float:
    """Eq. (3) said by its peak: up in a line to ``peak`` at ``warmup_steps``, then down with the inverse root."""
    return peak * min(step / warmup_steps, math.sqrt(warmup_steps / step))


def cosine(step: int, peak: float, warmup_steps: int, max_steps: int) -> float:
    """Up in a line to ``peak``, then down half a cosine to 0 at ``max_steps`` (https://arxiv.org/abs/1608.03983)."""
    if step >= max_steps:
        return 0.0
    if step <= warmup_steps:
        return peak * step / warmup_steps
    return peak * 0.5 * (1 + math.cos(math.pi * (step - warmup_steps) / (max_steps - warmup_steps)))
