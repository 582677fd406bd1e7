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
from dragoman.fast.loss import Targets, chunked_loss
from dragoman.fast.r_drop import chunked_r_drop_loss
from dragoman.training.distributed import ALONE, World, total_async
from dragoman.training.exchange import Exchange


class StepResult(NamedTuple):
    """One update by all ranks: losses in nats, summed over ``tokens`` target tokens."""

    smoothed: float
    plain: float
    tokens: int
    grad_norm: float
    finite: bool
    mine_finite: bool = True  # True if this rank's part was finite


def drop_tokens(ids: Tensor, share: float, is_tag: Tensor | None = None) -> Tensor:
    """Replace each token by ``<unk>`` with probability ``share``, so that the model learns to infer it from the others.

    https://arxiv.org/abs/1512.05287; for translation https://aclanthology.org/P19-1021 (there whole words). On the
    target side only the decoder's input is changed, not the tokens to be predicted.

    Args:
        ids: ``(B, T)`` int64; padding, bos and eos stay.
        share: Probability in [0, 1).
        is_tag: True for the ids of tags, which stay too, ``(V,)``; None: there are no tags.
    """
    dropped = (torch.rand(ids.shape, device=ids.device) < share) & (ids > EOS_ID)  # special tokens have the lowest ids
    if is_tag is not None:
        dropped &= ~is_tag[ids]
    return ids.masked_fill(dropped, UNK_ID)


def train_step(
    model: Any,
    batches: Sequence[Batch],
    optimizer: torch.optim.Optimizer,
    rate: float,
    config: TrainConfig,
    pad_id: int,
    world: World = ALONE,
    is_tag: Tensor | None = None,
) -> StepResult:
    """Make one update from one or more micro-batches of one or more ranks, as if they were one batch.

    The loss is divided by the number of tokens of all of them before any backward pass. If the loss or the gradient is
    not finite on any rank, no rank changes its weights or its optimiser.

    Args:
        is_tag: True for the ids of sources that ``train.token_dropout`` leaves, ``(src_vocab_size,)``; None: none.
    """
    model.train()
    device = next(model.parameters()).device
    counting = total_async(world, sum(batch.n_tgt_tokens for batch in batches))  # received after the first forward pass
    smoothed = plain = torch.zeros((), device=device)
    exchange = Exchange(world, model.parameters())
    for i, batch in enumerate(batches, start=1):
        loss, nll = _losses(model, batch.to(device), config, pad_id, is_tag)
        if i == 1:
            tokens = int(counting()[0])
        with exchange if i == len(batches) else nullcontext():
            torch.autograd.backward(loss / tokens)
        smoothed, plain = smoothed + loss.detach(), plain + nll.detach()
    own_loss = smoothed
    smoothed, plain, *grads = exchange.sums(smoothed, plain)
    grad_norm = torch.nn.utils.get_total_norm(grads)
    # Read results from the device once in an update: a read makes the host wait for a GPU. It cannot be put off to the
    # next report, as a step that is not finite must not change the weights. The host reads everything it needs here.
    smoothed_nats, plain_nats, norm = torch.stack([smoothed, plain, grad_norm]).tolist()
    finite = math.isfinite(smoothed_nats) and math.isfinite(norm)
    mine_finite = finite or all_finite([own_loss, *exchange.gradients])
    if finite:
        exchange.replace_gradients(grads)
        if config.clip_norm is not None:
            torch.nn.utils.clip_grads_with_norm_(model.parameters(), config.clip_norm, grad_norm)
        for group in optimizer.param_groups:
            group["lr"] = rate
        optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    return StepResult(smoothed_nats, plain_nats, tokens, norm, finite, mine_finite)


def _losses(model: Any, batch: Batch, config: TrainConfig, pad_id: int, is_tag: Tensor | None) -> tuple[Tensor, Tensor]:
    """Return the loss to minimise and the unsmoothed one, each summed over the batch's tokens, in nats."""
    weight, src, tgt_in = next(model.parameters()), batch.src, batch.tgt_in
    dtype = torch.bfloat16 if config.precision == "bf16" else weight.dtype
    if config.r_drop:  # two passes with different dropout, as one batch of twice the size
        src, tgt_in = src.repeat(2, 1), tgt_in.repeat(2, 1)
    if config.token_dropout:
        src, tgt_in = drop_tokens(src, config.token_dropout, is_tag), drop_tokens(tgt_in, config.token_dropout)
    decoded, generator = features(model, src, tgt_in, dtype), model.generator
    targets = Targets(batch.tgt_out, pad_id, config.label_smoothing, batch.where)
    with torch.autocast(weight.device.type, torch.bfloat16, enabled=dtype == torch.bfloat16):
        if config.r_drop:
            return chunked_r_drop_loss(decoded, generator.weight, generator.bias, targets, config.r_drop)
        return chunked_loss(decoded, generator.weight, generator.bias, targets)


def all_finite(tensors: Sequence[Tensor]) -> bool:
    """Return True if the norm of every tensor is finite."""
    return all(map(math.isfinite, torch.stack([torch.linalg.vector_norm(tensor) for tensor in tensors]).tolist()))
