"""What the training scripts of all systems share: the batches, and the clock. NumPy and torch only."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor


class Ids(NamedTuple):
    """One batch, padded with 0: ``(B, S)``, ``(B, T)``, ``(B, T)`` int64, and its target tokens without padding."""

    src: Tensor
    tgt_in: Tensor
    tgt_out: Tensor
    n_tokens: int


def read_batches(path: str) -> list[Ids]:
    """The batches that ``harness.corpus.write_batches`` wrote."""
    with np.load(path) as arrays:
        count = sum(name.startswith("src.") for name in arrays)
        rows = [
            [torch.from_numpy(arrays[f"{name}.{i}"]) for name in ("src", "tgt_in", "tgt_out")] for i in range(count)
        ]
    return [Ids(*three, int((three[2] != 0).sum())) for three in rows]


def timed(step: Callable[[Any], float], batches: list[Any], tokens: list[int], warm: int) -> dict[str, Any]:
    """Train on every batch, the first ``warm`` not counted, and on those counted once more.

    The second time stands for the epochs after the first: libraries that make code for a shape have made it.

    Args:
        step: One update; returns the loss in nats per target token, which makes it wait for the result.
    """
    losses = [step(batch) for batch in batches[:warm]]
    passes = []
    for _ in range(2):
        began = time.perf_counter()
        losses += [step(batch) for batch in batches[warm:]]
        passes.append(time.perf_counter() - began)
    counted, n_steps = sum(tokens[warm:]), len(batches) - warm
    return {
        "tokens_per_s": counted / passes[1],
        "first_pass_tokens_per_s": counted / passes[0],
        "step_ms": 1000 * passes[1] / n_steps,
        "first_loss": losses[0],
        "last_loss": losses[-1],
    }


class ModuleTrainer:
    """The loop around a ``logits(src, tgt_in)`` of plain PyTorch: label smoothing, clipping, fused Adam."""

    def __init__(self, model: Any, logits: Callable[[Tensor, Tensor], Tensor], rate: float, bf16: bool) -> None:
        self.model, self.logits, self.bf16 = model.train(), logits, bf16
        self.optimizer = torch.optim.Adam(model.parameters(), lr=rate, betas=(0.9, 0.98), eps=1e-9, fused=True)

    def step(self, batch: Ids) -> float:
        """One update."""
        with torch.autocast("cpu", torch.bfloat16, enabled=self.bf16):
            logits = self.logits(batch.src, batch.tgt_in)
        loss = torch.nn.functional.cross_entropy(
            logits.flatten(0, 1).float(), batch.tgt_out.flatten(), ignore_index=0, label_smoothing=0.1
        )
        torch.autograd.backward(loss)
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        return loss.item()
