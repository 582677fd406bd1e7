"""One update of the weights, by one rank or by all of them together."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any, NamedTuple

import torch
from torch import Tensor

from dragoman.config import TrainConfig
from dragoman.data.batching import Batch
from dragoman.data.tokenizer import EOS_ID, UNK_ID
from dragoman.fast.forward import features
from dragoman.fast.loss import Targets
from dragoman.training.distributed import ALONE, World, total_later
from dragoman.training.exchange import Exchange
from dragoman.training.loss import loss_from_features, r_drop_loss


class StepResult(NamedTuple):
    """One update by all ranks: losses summed over ``tokens`` target tokens, in nats."""

    smoothed: float
    plain: float
    tokens: int
    grad_norm: float
    finite: bool
    mine_finite: bool = True  # what this rank added to it


def drop_tokens(ids: Tensor, share: float) -> Tensor:
    """Each token replaced by ``<unk>`` with probability ``share``: what is missing must be told from the rest.

    https://arxiv.org/abs/1512.05287, for translation https://aclanthology.org/P19-1021 (there whole words). Of the
    target only what the decoder reads is touched, and not what it shall say.

    Args:
        ids: ``(B, T)`` int64; padding, bos and eos stay.
        share: In [0, 1).
    """
    dropped = (torch.rand(ids.shape, device=ids.device) < share) & (ids > EOS_ID)  # the special ones come first
    return ids.masked_fill(dropped, UNK_ID)


def train_step(
    model: Any,
    batches: Sequence[Batch],
    optimizer: torch.optim.Optimizer,
    rate: float,
    config: TrainConfig,
    pad_id: int,
    world: World = ALONE,
) -> StepResult:
    """Make one update from one or more micro-batches of one or more ranks, as if they were one batch.

    The loss is divided by the tokens of all of them before any backward pass. Where the loss or the gradient is not
    finite on any rank, the weights and the optimiser stay as they are on all.
    """
    model.train()
    device = next(model.parameters()).device
    counting = total_later(world, sum(batch.n_tgt_tokens for batch in batches))  # meanwhile the first forward pass
    smoothed = plain = torch.zeros((), device=device)
    exchange = Exchange(world, model.parameters())
    for i, batch in enumerate(batches, start=1):
        loss, nll = _losses(model, batch.to(device), config, pad_id)
        if i == 1:
            tokens = int(counting()[0])
        with exchange if i == len(batches) else nullcontext():
            torch.autograd.backward(loss / tokens)
        smoothed, plain = smoothed + loss.detach(), plain + nll.detach()
    mine = smoothed
    smoothed, plain, *grads = exchange.sums(smoothed, plain)
    grad_norm = torch.nn.utils.get_total_norm(grads)
    # the one look at the device in an update: whether this one is made must be known before it is, so that it cannot
    # wait for the next report; all that the host wants to know comes with it, and it queues what follows meanwhile
    smoothed_nats, plain_nats, norm = torch.stack([smoothed, plain, grad_norm]).tolist()
    finite = math.isfinite(smoothed_nats) and math.isfinite(norm)
    mine_finite = finite or all_finite([mine, *exchange.gradients])
    if finite:
        exchange.adopt(grads)
        if config.clip_norm is not None:
            torch.nn.utils.clip_grads_with_norm_(model.parameters(), config.clip_norm, grad_norm)
        for group in optimizer.param_groups:
            group["lr"] = rate
        optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    return StepResult(smoothed_nats, plain_nats, tokens, norm, finite, mine_finite)


def _losses(model: Any, batch: Batch, config: TrainConfig, pad_id: int) -> tuple[Tensor, Tensor]:
    """The loss to minimise and the unsmoothed one, each summed over the batch's tokens."""
    weight, src, tgt_in = next(model.parameters()), batch.src, batch.tgt_in
    dtype = torch.bfloat16 if config.precision == "bf16" else weight.dtype
    if config.r_drop:  # two passes
        src, tgt_in = src.repeat(2, 1), tgt_in.repeat(2, 1)
    if config.token_dropout:
        src, tgt_in = (drop_tokens(ids, config.token_dropout) for ids in (src, tgt_in))
    decoded = features(model, src, tgt_in, dtype)
    targets = Targets(batch.tgt_out, pad_id, config.label_smoothing, batch.where)
    with torch.autocast(weight.device.type, torch.bfloat16, enabled=dtype == torch.bfloat16):
        if config.r_drop:
            return r_drop_loss(decoded, model.generator, targets, config.r_drop)
        return loss_from_features(decoded, model.generator, targets)


def all_finite(tensors: Sequence[Tensor]) -> bool:
    """Whether the norm of each is."""
    return all(map(math.isfinite, torch.stack([torch.linalg.vector_norm(tensor) for tensor in tensors]).tolist()))
