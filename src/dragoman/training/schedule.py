"""The learning rate at each step."""

from __future__ import annotations

import math

from dragoman.config import TrainConfig, unknown


def learning_rate(step: int, config: TrainConfig, d_model: int, seconds: float = 0.0) -> float:
    """Return the learning rate of update ``step``, counted from 1.

    ``noam`` is the paper's (section 5.3): ``d_model^-0.5 * min(step^-0.5, step * warmup^-1.5)``, times ``lr`` if given.
    ``inverse_sqrt`` rises linearly to the peak ``lr`` and then falls as ``step^-0.5``. ``cosine`` rises likewise and
    falls along half a cosine to 0 at ``max_steps``.

    With ``max_minutes`` a cosine follows the clock where that is ahead of the steps. The rate then depends on
    ``seconds``, the time trained so far, and two runs are not bitwise equal.
    """
    warmup = config.warmup_steps
    if config.schedule == "noam":
        return (config.lr or 1.0) * d_model**-0.5 * min(step**-0.5, step * warmup**-1.5)
    peak = config.lr or 0.0
    place: float = step
    if config.schedule == "cosine" and config.max_minutes is not None:
        place = max(place, config.max_steps * min(1.0, seconds / (60 * config.max_minutes)))
    if place <= warmup:
        return peak * place / warmup
    if config.schedule == "inverse_sqrt":
        return peak * math.sqrt(warmup / place)
    if config.schedule != "cosine":
        raise unknown("train.schedule", config.schedule)
    done = min(1.0, (place - warmup) / max(1, config.max_steps - warmup))
    return peak * 0.5 * (1 + math.cos(math.pi * done))
