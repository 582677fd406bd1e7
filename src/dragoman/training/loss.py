"""The loss: cross-entropy against smoothed targets (section 5.4)."""

from __future__ import annotations

import math

from torch import Tensor, nn

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
    log_p = logits.float().log_softmax(-1) if logits.dtype.itemsize < 4 else logits.log_softmax(-1)  # (B, T, V)
    keep = tgt_out != pad_id  # (B, T)
    plain = -log_p.gather(-1, tgt_out[..., None])[..., 0][keep].sum()
    uniform = -log_p.mean(-1)[keep].sum()
    return (1 - smoothing) * plain + smoothing * uniform, plain


def loss_from_features(
    features: Tensor, generator: nn.Linear, tgt_out: Tensor, pad_id: int, smoothing: float, fast: bool = True
) -> tuple[Tensor, Tensor]:
    """``label_smoothed_loss`` of ``generator(features)``; ``fast`` never holds the logits of all positions."""
    if fast:
        return chunked_loss(features, generator.weight, generator.bias, tgt_out, pad_id, smoothing)
    return label_smoothed_loss(generator(features), tgt_out, pad_id, smoothing)


def perplexity(nats_per_token: float) -> float:
    """``exp`` of the unsmoothed loss; infinite where that overflows."""
    return math.exp(nats_per_token) if nats_per_token < 700 else math.inf
