"""The loss: cross-entropy against smoothed targets (section 5.4)."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from dragoman.fast.loss import chunked_loss


def label_smoothed_loss(logits: Tensor, tgt_out: Tensor, pad_id: int, smoothing: float) -> tuple[Tensor, Tensor]:
    """Cross-entropy against ``(1 - e) * onehot + e / V``, and against ``onehot``.

    Args:
        logits: ``(B, T, V)``.
        tgt_out: ``(B, T)`` int64; padding is left out.
        pad_id: The id that marks padding.
        smoothing: ``e`` in [0, 1).

    Returns:
        Both losses in nats, summed over the target tokens; divide by their number, for all micro-batches together.
        Perplexity comes from the second.
    """
    log_p = _log_softmax(logits)  # (B, T, V)
    keep = tgt_out != pad_id  # (B, T)
    plain = -log_p.gather(-1, tgt_out[..., None])[..., 0][keep].sum()
    uniform = -log_p.mean(-1)[keep].sum()
    return (1 - smoothing) * plain + smoothing * uniform, plain


def _log_softmax(logits: Tensor) -> Tensor:
    """In float32 or better."""
    return logits.float().log_softmax(-1) if logits.dtype.itemsize < 4 else logits.log_softmax(-1)


def loss_from_features(
    features: Tensor, generator: nn.Linear, tgt_out: Tensor, pad_id: int, smoothing: float, fast: bool = True
) -> tuple[Tensor, Tensor]:
    """``label_smoothed_loss`` of ``generator(features)``; ``fast`` never holds the logits of all positions."""
    if fast:
        return chunked_loss(features, generator.weight, generator.bias, tgt_out, pad_id, smoothing)
    return label_smoothed_loss(generator(features), tgt_out, pad_id, smoothing)


def r_drop_loss(
    features: Tensor, generator: nn.Linear, tgt_out: Tensor, pad_id: int, smoothing: float, alpha: float,
    chunk: int = 1024,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """The loss of R-Drop (https://arxiv.org/abs/2106.14448): two passes with different dropout should agree.

    The mean of both passes' smoothed losses, plus ``alpha`` / 2 times the mean of ``KL(p || q)`` and ``KL(q || p)``:
    half of the paper's sum, so that ``alpha = 0`` is the ordinary loss. Logits are held for ``chunk`` positions at
    once and made again in the backward pass.

    Args:
        features: ``(2B, T, d_model)``: the batch, and the same batch again.
        tgt_out: ``(B, T)`` int64; padding is left out.
        alpha: Weight of the divergence; the paper takes 5 for translation.

    Returns:
        The loss and the mean unsmoothed one, in nats, summed over the target tokens.
    """
    keep = tgt_out.flatten() != pad_id
    targets = tgt_out.flatten()[keep]  # (N,)
    first, second = (half.flatten(0, 1)[keep] for half in features.chunk(2))  # (N, d_model) each

    def of(x: Tensor, y: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
        log_p, log_q = (_log_softmax(generator(side)) for side in (x, y))  # (n, V)
        both = (log_p + log_q) / 2
        plain = -both.gather(-1, target[:, None]).sum()
        smoothed = (1 - smoothing) * plain - smoothing * both.mean(-1).sum()
        divergence = ((log_p.exp() - log_q.exp()) * (log_p - log_q)).sum() / 2  # mean of the two directions
        return smoothed + alpha / 2 * divergence, plain

    parts = [
        checkpoint(of, *rows, use_reentrant=False)
        for rows in zip(*(torch.split(side, chunk) for side in (first, second, targets)), strict=True)
    ]
    losses, plains = zip(*parts, strict=True)
    return torch.stack(losses).sum(), torch.stack(plains).sum().detach()


def perplexity(nats_per_token: float) -> float:
    """``exp`` of the unsmoothed loss; infinite where that overflows."""
    return math.exp(nats_per_token) if nats_per_token < 700 else math.inf
