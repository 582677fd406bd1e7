"""Advice on the next training, as commands to paste: ``train`` and ``doctor`` give the same.

retrain(Path("runs/x"), lower_rate(config))
# "dragoman train runs/x/config.yaml --set train.lr=0.0015 --set train.clip_norm=1 --out runs/x-2"
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from dragoman.config import Config, TrainConfig
from dragoman.errors import as_command
from dragoman.files import free_name
from dragoman.training.budget import RATE_TIMES_WIDTH
from dragoman.training.finetune import parent_of, parent_words

FINE_TUNING = 0.2
"""Share of the learning rate that fine-tuning takes."""

WORKING_RATE = 1.5e-3
"""Largest peak rate that ``train`` chooses without a time limit."""

MOST_PASSES = 300
"""Number of times that a text is read after which more time is no help: it has too few pairs."""


def retrain(run: Path, settings: Mapping[str, Any]) -> str:
    """Return the command that trains a run again in another folder, with other settings."""
    words = ["dragoman", "train", run / "config.yaml", *parent_words(run)]
    for name, value in settings.items():
        words += ["--set", f"train.{name}={value:g}" if isinstance(value, float) else f"train.{name}={value}"]
    return as_command(*words, "--out", free_name(run))


def working_rate(train: TrainConfig, d_model: int, fine_tuned: bool = False) -> float:
    """Return a lower ``train.lr`` that is known to work: the lowest that ``train`` chooses for this width, or half."""
    if train.schedule == "noam":  # a factor, which is 1 in the paper
        known = 1.0
    else:
        known = min(WORKING_RATE, RATE_TIMES_WIDTH / d_model) * (FINE_TUNING if fine_tuned else 1.0)
    rate = 1.0 if train.lr is None else train.lr
    return float(f"{known if rate > 1.2 * known else rate / 2:.2g}")


def lower_rate(train: TrainConfig, d_model: int, fine_tuned: bool = False) -> dict[str, Any]:
    """Return the settings of ``train`` that keep a training from diverging: the rate, and clipping if it was off."""
    clipping = {} if train.clip_norm else {"clip_norm": 1}
    return {"lr": working_rate(train, d_model, fine_tuned), **clipping}


def lower_rate_of(run: Path, config: Config) -> str:
    """Return the command that trains a run again with a lower rate."""
    return retrain(run, lower_rate(config.train, config.model.d_model, bool(parent_of(run))))


def longer(train: TrainConfig, reason: str | None, step: int, seconds: float, times: float) -> dict[str, Any]:
    """Return the settings of ``train`` for a training that is ``times`` as long: those limits that would end it.

    Args:
        train: The settings so far.
        reason: The limit that ended it.
        step: Number of steps that it took.
        seconds: Time that it took.
        times: Factor, more than 1.
    """
    steps, minutes = math.ceil(times * step), times * seconds / 60
    settings: dict[str, Any] = {}
    if reason == "patience" and train.patience is not None:
        settings["patience"] = math.ceil(times * train.patience)
    if reason == "max_epochs" and train.max_epochs is not None:
        settings["max_epochs"] = math.ceil(times * train.max_epochs)
    if train.max_minutes is not None and (reason == "max_minutes" or minutes > train.max_minutes):
        settings["max_minutes"] = math.ceil(max(minutes, times * train.max_minutes))
    if not settings or reason == "max_steps" or steps > train.max_steps:
        settings["max_steps"] = steps
    return settings


def divergence(losses: Sequence[float], config: Config, n_skipped: int, n_steps: int) -> str | None:
    """Return how a training has diverged, if it has: its loss is worse than guessing or far above its best.

    Args:
        losses: Finite training losses of the log, in nats per token.
        config: The configuration of the run.
        n_skipped: Number of updates that were not finite.
        n_steps: Number of all updates.
    """
    if n_steps >= 4 and n_skipped > n_steps / 2:
        return f"{n_skipped:,} of {n_steps:,} updates were NaN or infinite"
    if not losses:
        return None
    guessing = math.log(config.data.tokenizer.vocab_size)
    if len(losses) < 6:
        return None if losses[-1] <= 2 * guessing else _worse_than_guessing(losses[-1], guessing)
    means = smooth(losses)
    best = min(means)
    if means[-1] > 1.5 * guessing:
        return _worse_than_guessing(means[-1], guessing)
    if means[-1] > best + max(0.5, 0.25 * best):
        return f"the training loss rose from {best:.2f} nats to {means[-1]:.2f}"
    return None


def _worse_than_guessing(loss: float, guessing: float) -> str:
    return f"the training loss is {loss:,.1f} nats; guessing would give {guessing:.1f}"


def smooth(losses: Sequence[float]) -> list[float]:
    """Return the mean of each loss and its two neighbours on either side."""
    return [statistics.mean(losses[max(0, i - 2) : i + 3]) for i in range(len(losses))]
