"""Prune the heads of a trained model, and measure the keys that each head attends to.

    with without(model, [Head("encoder.layers.0.self_attn", 3)]):
        losses, counts = sentence_losses(model, batches)

After "Are Sixteen Heads Really Better than One?" (https://arxiv.org/abs/1905.10650).
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dragoman.data.batching import Batch
from dragoman.model.attention import MultiHeadAttention
from dragoman.model.transformer import Transformer

Numbers = NDArray[np.float64]


class Head(NamedTuple):
    """A head of an attention."""

    attention: str  # module path, such as decoder.layers.0.cross_attn
    number: int  # from 0


def attentions(model: Transformer) -> dict[str, MultiHeadAttention]:
    """Return the attentions by module path: first the encoder's, then the decoder's self- and its cross-attentions."""
    modules = {name: module for name, module in model.named_modules() if isinstance(module, MultiHeadAttention)}
    kinds = ("encoder", "self_attn", "cross_attn")
    return dict(sorted(modules.items(), key=lambda item: next(i for i, kind in enumerate(kinds) if kind in item[0])))


def all_heads(model: Transformer) -> list[Head]:
    """Return every head of a model, attention by attention."""
    return [Head(name, i) for name, attention in attentions(model).items() for i in range(attention.n_heads)]


@contextlib.contextmanager
def without(model: Transformer, heads: Iterable[Head]) -> Iterator[None]:
    """Switch heads off for the duration of a ``with`` block: the columns of ``w_o`` that read them are zero."""
    modules = attentions(model)
    originals = []
    with torch.no_grad():
        for head in heads:
            attention = modules[head.attention]
            read = slice(head.number * attention.d_v, (head.number + 1) * attention.d_v)
            columns = attention.w_o.weight[:, read]
            originals.append((columns, columns.clone()))
            columns.zero_()
    try:
        yield
    finally:
        with torch.no_grad():
            for columns, values in reversed(originals):  # in reverse, so that a head named twice is restored too
                columns.copy_(values)


@torch.inference_mode()
def sentence_losses(model: Transformer, batches: Sequence[Batch]) -> tuple[Numbers, Numbers]:
    """Return the unsmoothed loss in nats and the target tokens of each sentence, each ``(N,)``, batch by batch."""
    losses, counts = [], []
    for batch in batches:
        log_p = model(batch.src, batch.tgt_in).float().log_softmax(-1)  # (B, T, V)
        keep = batch.tgt_out != model.config.pad_id
        nats = -log_p.gather(-1, batch.tgt_out[..., None])[..., 0] * keep  # (B, T)
        losses.append(nats.sum(1).cpu().double().numpy())
        counts.append(keep.sum(1).cpu().double().numpy())
    return np.concatenate(losses), np.concatenate(counts)


def bootstrapped(
    differences: Numbers, counts: Numbers, comparisons: int = 1, n_samples: int = 10_000, seed: int = 1
) -> tuple[float, float]:
    """Return the 95% bootstrap interval, over sentences, of a difference in nats per token.

    Args:
        differences: Difference of the loss of each sentence in nats, ``(N,)``.
        counts: Target tokens of each sentence, ``(N,)``.
        comparisons: Number of intervals of which all hold with 95% probability (Bonferroni).
        n_samples: Number of resamples.
        seed: Seed of the resampling.
    """
    rows = np.random.default_rng(seed).integers(0, len(counts), (n_samples, len(counts)))
    tail = 0.025 / comparisons
    low, high = np.quantile(differences[rows].sum(1) / counts[rows].sum(1), (tail, 1 - tail))
    return float(low), float(high)


# --- habits -----------------------------------------------------------------------------------------------------------

HABITS = {
    "encoder": ("itself", "the one before", "the one after", "the first", "the last (end)", "one key"),
    "decoder": ("itself", "the one before", "two before", "the first (start)", "one key"),
    "cross": ("the first", "the last (end)", "one key"),
}
"""Keys to which a head may give its weight: in the encoder, in the decoder, and from the decoder to the source (the
kinds of ``explanation.trace.KINDS``); ``one key`` is the greatest weight, at any key."""


def kind_of(attention: str) -> str:
    """Return the kind of an attention, a key of ``HABITS``, from its module path."""
    return "cross" if attention.endswith("cross_attn") else attention.partition(".")[0]


@torch.inference_mode()
def habits(model: Transformer, batches: Sequence[Batch]) -> dict[str, Numbers]:
    """Return the mean weight that each head gives to the keys of ``HABITS``, over all queries except padding.

    Returns:
        ``(H, habits)`` by the module path of the attention.
    """
    sums: dict[str, Tensor] = {}
    counts: dict[str, int] = {}
    for batch in batches:
        recorded: dict[str, Tensor] = {}
        model(batch.src, batch.tgt_in, record=recorded.__setitem__)
        for name, weights in recorded.items():  # (B, H, Q, K)
            keys = batch.tgt_in if kind_of(name) == "decoder" else batch.src
            queries = batch.src if kind_of(name) == "encoder" else batch.tgt_in
            real = queries != model.config.pad_id  # (B, Q)
            last = (keys != model.config.pad_id).sum(1) - 1  # (B,)
            shares = habit_weights(weights, kind_of(name), last) * real[:, None, :, None]  # (B, H, Q, habits)
            sums[name] = sums.get(name, 0) + shares.sum((0, 2)).double()
            counts[name] = counts.get(name, 0) + int(real.sum())
    return {name: (total / counts[name]).cpu().numpy() for name, total in sums.items()}


def habit_weights(weights: Tensor, kind: str, last: Tensor) -> Tensor:
    """Return the weight that each query gives to the keys of ``HABITS``, ``(B, H, Q, habits)``.

    Args:
        weights: Attention weights ``(B, H, Q, K)``.
        kind: Key of ``HABITS``.
        last: Index of the last key that is not padding, ``(B,)``.
    """

    def shifted(by: int) -> Tensor:
        """Return the weight of the key ``by`` positions after each query, 0 where there is no such key."""
        shifted_weights = torch.zeros_like(weights[..., 0])
        diagonal = weights.diagonal(by, -2, -1)
        start = max(-by, 0)
        shifted_weights[..., start : start + diagonal.size(-1)] = diagonal
        return shifted_weights

    first, greatest = weights[..., 0], weights.amax(-1)
    end = weights.gather(-1, last[:, None, None, None].expand(*weights.shape[:3], 1))[..., 0]
    if kind == "cross":
        return torch.stack((first, end, greatest), -1)
    if kind == "encoder":
        return torch.stack((shifted(0), shifted(-1), shifted(1), first, end, greatest), -1)
    return torch.stack((shifted(0), shifted(-1), shifted(-2), first, greatest), -1)
