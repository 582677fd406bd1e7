"""The loss: cross-entropy against smoothed targets (section 5.4), and R-Drop, written plainly.

Training uses their optimised implementations in ``dragoman.fast``, which never hold the logits of all positions.
"""

from __future__ import annotations

import math

from torch import Tensor, nn

from dragoman.fast.loss import Targets


def label_smoothed_loss(logits: Tensor, tgt_out: Tensor, pad_id: int, smoothing: float) -> tuple[Tensor, Tensor]:
    """Return the cross-entropy against ``(1 - e) * onehot + e / V``, and the one against ``onehot``.

    The paper gives only ``e = 0.1``. The formula is that of the work it cites (https://arxiv.org/abs/1512.00567,
    section 7): the smoothing is spread over the whole vocabulary, the right token and padding included.

    Args:
        logits: ``(B, T, V)``.
        tgt_out: ``(B, T)`` int64; padding does not count.
        smoothing: ``e`` in [0, 1).

    Returns:
        Both losses in nats, summed over the target tokens. Divide by the number of tokens of all micro-batches. The
        second one gives perplexity.
    """
    log_p = _log_softmax(logits)  # (B, T, V)
    keep = tgt_out != pad_id  # (B, T)
    plain = -log_p.gather(-1, tgt_out[..., None])[..., 0][keep].sum()
    uniform = -log_p.mean(-1)[keep].sum()
    return (1 - smoothing) * plain + smoothing * uniform, plain


def _log_softmax(logits: Tensor) -> Tensor:
    """Return the log-softmax over the vocabulary, in float32 or better."""
    return logits.float().log_softmax(-1) if logits.dtype.itemsize < 4 else logits.log_softmax(-1)


def r_drop_loss(features: Tensor, generator: nn.Linear, targets: Targets, alpha: float) -> tuple[Tensor, Tensor]:
    """Return the R-Drop loss (https://arxiv.org/abs/2106.14448): two passes with different dropout should agree.

    It is the mean of both passes' smoothed losses, plus ``alpha / 2`` times the mean of ``KL(p || q)`` and
    ``KL(q || p)``. Differs from the paper: that is half of the paper's sum, so that ``alpha = 0`` gives the ordinary
    loss.

    Args:
        features: ``(2B, T, d_model)``: the batch, then the same batch again with other dropout.
        targets: The target tokens ``(B, T)`` and the label smoothing.
        alpha: Weight of the divergence; the paper uses 5 for translation.

    Returns:
        The loss and the mean unsmoothed loss, in nats, summed over the target tokens.
    """
    tgt_out, pad_id = targets.tgt_out, targets.pad_id
    passes = [generator(half) for half in features.chunk(2)]
    (loss_p, plain_p), (loss_q, plain_q) = (label_smoothed_loss(z, tgt_out, pad_id, targets.smoothing) for z in passes)
    keep = tgt_out != pad_id  # (B, T)
    log_p, log_q = (_log_softmax(z)[keep] for z in passes)  # (N, V)
    divergence = ((log_p.exp() - log_q.exp()) * (log_p - log_q)).sum() / 2  # mean of the two directions
    return (loss_p + loss_q) / 2 + alpha / 2 * divergence, (plain_p + plain_q) / 2


def perplexity(nats_per_token: float) -> float:
    """Return ``exp`` of the unsmoothed loss, or infinity where that overflows."""
    return math.exp(nats_per_token) if nats_per_token < 700 else math.inf
