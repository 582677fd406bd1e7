"""The largest batch whose training step fits in memory, by the formula of ``training.memory``."""

from __future__ import annotations

import math
from collections.abc import Iterator

from dragoman.config import Config, ModelConfig
from dragoman.doctor.findings import Finding
from dragoman.training.memory import GIB, estimate

USABLE = 0.9
"""Fraction of the memory that training may take; the system and other programs need the remainder."""


def largest_batch(config: Config, sizes: ModelConfig, length: int, available: float) -> int:
    """Return the largest ``batch_tokens`` whose training step fits, among steps of about 6%; 0 if none fits.

    Args:
        config: The training's configuration.
        sizes: The model's sizes.
        length: Subwords of the longest pair, which a batch must be able to hold.
        available: Memory in bytes.
    """
    # Powers of 1.06 from 2.5 to 3,300, in units of 256 tokens; a batch holds one pair of full length at least.
    candidates = sorted({max(256 * round(1.06**k), length) for k in range(16, 140)})
    largest = 0
    for tokens in candidates:
        if estimate(config, sizes, tokens, length).total > USABLE * available:
            break
        largest = tokens
    return largest


def batch_findings(config: Config, sizes: ModelConfig, length: int, available: float, owner: str) -> Iterator[Finding]:
    """Yield an error if the configured batch does not fit, with the largest batch that does.

    Args:
        config: The training's configuration.
        sizes: The model's sizes.
        length: Subwords of the longest pair that training keeps, with the end mark.
        available: Memory in bytes.
        owner: Words before the amount of memory, such as "this machine's".
    """
    now = estimate(config, sizes, config.train.batch_tokens, length)
    largest = largest_batch(config, sizes, length, available)
    needs = f"a step needs about {now.total / GIB:.1f} GiB of {owner} {available / GIB:.1f} GiB"
    model = f"{now.parameters:,} parameters, batches of {config.train.batch_tokens:,} tokens: {needs}"
    if not largest:
        least = estimate(config, sizes, length, length).total / GIB
        yield Finding(
            "error", "memory", f"{model}; not even one pair of {length} subwords fits ({least:.1f} GiB)",
            "choose a smaller model.preset, or lower data.max_tokens",
        )  # fmt: skip
    elif now.total > USABLE * available:
        times = math.ceil(config.train.batch_tokens / largest)
        yield Finding(
            "error", "memory", f"{model}; up to {largest:,} tokens would fit",
            f"make the same update in parts: dragoman train ... --set train.batch_tokens={largest} "
            f"--set train.accumulate={times * config.train.accumulate}",
        )  # fmt: skip
