"""Averages of weights: over the last checkpoints (section 6.1), and exponentially over all steps."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import torch
from torch import Tensor

from dragoman.fast.private_ops import lerp_all
from dragoman.model.weights import read_weights, untied


def average_checkpoints(folders: Iterable[Path]) -> dict[str, Tensor]:
    """Return the mean of the weights in checkpoint folders (the paper: the last 5 for base, 20 for big models).

    Sums are in float64, so that the order of the folders does not matter.

    Returns:
        Weights by their stored names, in the dtype they were stored in.
    """
    total: dict[str, Tensor] = {}
    dtypes: dict[str, torch.dtype] = {}
    count = 0
    for folder in folders:
        count += 1
        for name, tensor in read_weights(folder / "model.safetensors").items():
            dtypes[name] = tensor.dtype
            total[name] = total[name] + tensor.double() if name in total else tensor.double()
    return {name: (tensor / count).to(dtypes[name]) for name, tensor in total.items()}


def start_ema(model: torch.nn.Module) -> dict[str, Tensor]:
    """Return a moving average that begins at the model's present weights."""
    return {name: tensor.clone() for name, tensor in untied(model).items()}


@torch.no_grad()
def update_ema(ema: dict[str, Tensor], model: torch.nn.Module, decay: float, step: int) -> None:
    """Update in place: ``ema = d * ema + (1 - d) * weights`` with ``d = min(decay, (1 + step) / (10 + step))``.

    In the first steps the second term is smaller than ``decay``, so that the random initial weights are forgotten
    quickly.
    """
    d = min(decay, (1 + step) / (10 + step))
    lerp_all(list(ema.values()), list(untied(model).values()), 1 - d)
