"""The loss in nats per target token, section 5.4 of the paper."""

import math

import numpy as np

from .arrays import Array, Ids


def log_softmax(logits: Array) -> Array:
    """Return the log of the softmax over the last axis, ``(..., V)`` -> ``(..., V)``."""
    shifted: Array = logits - logits.max(axis=-1, keepdims=True)
    log_total: Array = np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
    return shifted - log_total


def smoothed_targets(tgt_out: Ids, vocab_size: int, smoothing: float) -> Array:
    """Return ``(1 - e) onehot + e / V``, over the whole vocabulary: ``(B, T)`` -> ``(B, T, V)``, float64."""
    onehot: Array = np.eye(vocab_size)[tgt_out]
    return (1 - smoothing) * onehot + smoothing / vocab_size


def label_smoothed_loss(logits: Array, tgt_out: Ids, pad_id: int, smoothing: float = 0.1) -> float:
    """Return the cross-entropy with smoothed targets, in nats per target token.

    Args:
        logits: ``(B, T, V)``.
        tgt_out: ``(B, T)``; padding does not count.
        pad_id: The id of padding.
        smoothing: ``e`` in [0, 1); 0 gives the plain cross-entropy, whose exponential is the perplexity.

    Returns:
        The sum over the tokens divided by their number (0 if there are none).
    """
    real = tgt_out != pad_id  # (B, T)
    targets = smoothed_targets(tgt_out, logits.shape[-1], smoothing)
    losses = -(targets * log_softmax(logits)).sum(axis=-1)  # (B, T)
    return float(losses[real].sum() / max(int(real.sum()), 1))


def label_smoothed_loss_backward(logits: Array, tgt_out: Ids, pad_id: int, smoothing: float = 0.1) -> Array:
    """Return the gradient of the logits, ``(B, T, V)``: (softmax - targets) / number of tokens, 0 at padding."""
    real = tgt_out != pad_id  # (B, T)
    targets = smoothed_targets(tgt_out, logits.shape[-1], smoothing)
    probs: Array = np.exp(log_softmax(logits))
    d_logits = np.where(real[..., None], probs - targets, 0) / max(int(real.sum()), 1)
    return d_logits.astype(logits.dtype)


def perplexity(logits: Array, tgt_out: Ids, pad_id: int) -> float:
    """Return ``exp`` of the unsmoothed loss: the number of equally likely tokens that would be as hard to predict."""
    return math.exp(label_smoothed_loss(logits, tgt_out, pad_id, smoothing=0.0))
