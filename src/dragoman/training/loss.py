"""The loss: cross-entropy against smoothed targets (section 5.4)."""

from __future__ import annotations

import math

from torch import Tensor, nn

from dragoman.fast.loss import chunked_loss
from dragoman.fast.r_drop import chunked_r_drop_loss


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
    features: Tensor, generator: nn.Linear, tgt_out: Tensor, pad_id: int, smoothing: float, fast: bool = True,
    where: Tensor | None = None,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """``label_smoothed_loss`` of ``generator(features)``; ``fast`` never holds the logits of all positions.

    Args:
        where: ``Batch.where``, if it is known.
    """
    if fast:
        return chunked_loss(features, generator.weight, generator.bias, tgt_out, pad_id, smoothing, where=where)
    return label_smoothed_loss(generator(features), tgt_out, pad_id, smoothing)


def r_drop_loss(
    features: Tensor, generator: nn.Linear, tgt_out: Tensor, pad_id: int, smoothing: float, alpha: float,
    fast: bool = True, where: Tensor | None = None,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """The loss of R-Drop (https://arxiv.org/abs/2106.14448): two passes with different dropout should agree.

    The mean of both passes' smoothed losses, plus ``alpha`` / 2 times the mean of ``KL(p || q)`` and ``KL(q || p)``:
    half of the paper's sum, so that ``alpha = 0`` is the ordinary loss.

    Args:
        features: ``(2B, T, d_model)``: the batch, and the same batch again.
        tgt_out: ``(B, T)`` int64; padding is left out.
        alpha: Weight of the divergence; the paper takes 5 for translation.
        fast: Never hold the logits of all positions.
        where: ``Batch.where``, if it is known.

    Returns:
        The loss and the mean unsmoothed one, in nats, summed over the target tokens.
    """
    if fast:
        generators = generator.weight, generator.bias
        return chunked_r_drop_loss(features, *generators, tgt_out, pad_id, smoothing, alpha, where=where)
    passes = [generator(half) for half in features.chunk(2)]
    (loss_p, plain_p), (loss_q, plain_q) = (label_smoothed_loss(z, tgt_out, pad_id, smoothing) for z in passes)
    keep = tgt_out != pad_id  # (B, T)
    log_p, log_q = (_log_softmax(z)[keep] for z in passes)  # (N, V)
    divergence = ((log_p.exp() - log_q.exp()) * (log_p - log_q)).sum() / 2  # mean of the two directions
    return (loss_p + loss_q) / 2 + alpha / 2 * divergence, (plain_p + plain_q) / 2


def perplexity(nats_per_token: float) -> float:
    """``exp`` of the unsmoothed loss; infinite where that overflows."""
    return math.exp(nats_per_token) if nats_per_token < 700 else math.inf
