"""The heads of a trained model: what each looks at, and what the model loses without it.

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
    """One head of one attention."""

    attention: str  # module path, such as decoder.layers.0.cross_attn
    number: int  # from 0


def attentions(model: Transformer) -> dict[str, MultiHeadAttention]:
    """The attentions of a model by module path: the encoder's, the decoder's to itself, the decoder's to the source."""
    found = {name: module for name, module in model.named_modules() if isinstance(module, MultiHeadAttention)}
    kinds = ("encoder", "self_attn", "cross_attn")
    return dict(sorted(found.items(), key=lambda item: next(i for i, kind in enumerate(kinds) if kind in item[0])))


def all_heads(model: Transformer) -> list[Head]:
    """Every head, attention by attention."""
    return [Head(name, i) for name, attention in attentions(model).items() for i in range(attention.n_heads)]


@contextlib.contextmanager
def without(model: Transformer, heads: Iterable[Head]) -> Iterator[None]:
    """Within it these heads add nothing: the columns of ``w_o`` that read them are zero."""
    modules = attentions(model)
    kept = []
    with torch.no_grad():
        for head in heads:
            attention = modules[head.attention]
            read = slice(head.number * attention.d_v, (head.number + 1) * attention.d_v)
            columns = attention.w_o.weight[:, read]
            kept.append((columns, columns.clone()))
            columns.zero_()
    try:
        yield
    finally:
        with torch.no_grad():
            for columns, values in reversed(kept):  # a head that was named twice comes back too
                columns.copy_(values)


@torch.inference_mode()
def sentence_losses(model: Transformer, batches: Sequence[Batch]) -> tuple[Numbers, Numbers]:
    """Unsmoothed loss in nats and number of target tokens of each sentence, in the order of the batches: twice (N,)."""
    losses, counts = [], []
    for batch in batches:
        log_p = model(batch.src, batch.tgt_in).float().log_softmax(-1)  # (B, T, V)
        keep = batch.tgt_out != model.config.pad_id
        nats = -log_p.gather(-1, batch.tgt_out[..., None])[..., 0] * keep  # (B, T)
        losses.append(nats.sum(1).cpu().double().numpy())
        counts.append(keep.sum(1).cpu().double().numpy())
    return np.concatenate(losses), np.concatenate(counts)


def bootstrapped(differences: Numbers, counts: Numbers, n_samples: int = 1000, seed: int = 1) -> tuple[float, float]:
    """Where a difference in nats a token lies with 95% confidence, resampling sentences."""
    rows = np.random.default_rng(seed).integers(0, len(counts), (n_samples, len(counts)))
    low, high = np.quantile(differences[rows].sum(1) / counts[rows].sum(1), (0.025, 0.975))
    return float(low), float(high)


# --- habits -----------------------------------------------------------------------------------------------------------

HABITS = {
    "encoder": ("itself", "the one before", "the one after", "the first", "the last (end)", "one key"),
    "decoder": ("itself", "the one before", "two before", "the first (start)", "one key"),
    "cross": ("the first", "the last (end)", "one key"),
}
"""What a head may give its weight to, in the encoder, in the decoder, and from the decoder to the source (as
``explanation.trace.KINDS``); ``one key`` is the greatest weight, whichever key has it."""


def kind_of(attention: str) -> str:
    """The key of ``HABITS``."""
    return "cross" if attention.endswith("cross_attn") else attention.partition(".")[0]


@torch.inference_mode()
def habits(model: Transformer, batches: Sequence[Batch]) -> dict[str, Numbers]:
    """The mean weight that each head gives to what ``HABITS`` names, over all queries that are no padding.

    Returns:
        ``(H, habits)`` for each attention.
    """
    sums: dict[str, Tensor] = {}
    counts: dict[str, int] = {}
    for batch in batches:
        seen: dict[str, Tensor] = {}
        model(batch.src, batch.tgt_in, record=seen.__setitem__)
        for name, weights in seen.items():  # (B, H, Q, K)
            keys = batch.tgt_in if kind_of(name) == "decoder" else batch.src
            queries = batch.src if kind_of(name) == "encoder" else batch.tgt_in
            real = queries != model.config.pad_id  # (B, Q)
            last = (keys != model.config.pad_id).sum(1) - 1  # (B,)
            shares = _shares(weights, kind_of(name), last) * real[:, None, :, None]  # (B, H, Q, habits)
            sums[name] = sums.get(name, 0) + shares.sum((0, 2)).double()
            counts[name] = counts.get(name, 0) + int(real.sum())
    return {name: (total / counts[name]).cpu().numpy() for name, total in sums.items()}


def _shares(weights: Tensor, kind: str, last: Tensor) -> Tensor:
    """The weights ``(B, H, Q, K)`` by what they go to: ``(B, H, Q, habits)``, in the order of ``HABITS``."""

    def shifted(by: int) -> Tensor:
        """What each query gives to the key that stands ``by`` positions from it; nothing where there is none."""
        found = torch.zeros_like(weights[..., 0])
        diagonal = weights.diagonal(by, -2, -1)
        start = max(-by, 0)
        found[..., start : start + diagonal.size(-1)] = diagonal
        return found

    first, greatest = weights[..., 0], weights.amax(-1)
    end = weights.gather(-1, last[:, None, None, None].expand(*weights.shape[:3], 1))[..., 0]
    if kind == "cross":
        return torch.stack((first, end, greatest), -1)
    if kind == "encoder":
        return torch.stack((shifted(0), shifted(-1), shifted(1), first, end, greatest), -1)
    return torch.stack((shifted(0), shifted(-1), shifted(-2), first, greatest), -1)
