"""Given translations read by the model, all tokens at once: their probabilities, and what was attended to.

    (read,) = read_all(model, [([17, 4, 9], [5, 8])], device)      # None if it ran out of memory
    print(read.log_prob)                                           # nats

This is teacher forcing: each token's probability is the one that a search would see after the tokens before it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol, TypeVar

import torch
from torch import Tensor

from dragoman.config import SPECIAL_IDS
from dragoman.decoding.alignment import Attention
from dragoman.decoding.batched_search import padded
from dragoman.decoding.batches import length_batches, run_halving
from dragoman.decoding.cancellation import Cancellation
from dragoman.decoding.request import NOT_FINITE, Progress, Segment
from dragoman.errors import DecodeError

T = TypeVar("T")

Pair = tuple[Sequence[int], Sequence[int]]
"""Ids of a source and a translation, without bos and eos."""


class CrossAttention:
    """Records the cross-attention of each layer while a model runs; pass its ``record``."""

    def __init__(self) -> None:
        self._weights: dict[str, Tensor] = {}

    def record(self, name: str, weights: Tensor) -> None:
        """Take the weights ``(B, H, T, S)`` of one attention."""
        if name.endswith("cross_attn"):
            self._weights[name] = weights.mean(dim=1)

    def mean(self) -> Tensor:
        """Return the attention of the last layer but one, ``(B, T, S)``; of an ensemble the mean of its members'.

        Raises:
            DecodeError: The model attends to no source.
        """
        members: dict[str, list[Tensor]] = {}
        for name, weights in self._weights.items():  # layers come in order
            members.setdefault(name.partition("decoder.")[0], []).append(weights)
        if not members:
            raise DecodeError("this model has no cross-attention, so its words cannot be aligned")
        return torch.stack([layers[-2] if len(layers) > 1 else layers[0] for layers in members.values()]).mean(dim=0)


class Reader(Protocol):
    """All that scoring knows of a model."""

    def __call__(self, src: Tensor, tgt_in: Tensor, record: Callable[[str, Tensor], None] | None = None) -> Tensor:
        """Return logits ``(B, T, V)`` of ``src`` (B, S) and ``tgt_in`` (B, T), both padded."""
        ...


class Read(NamedTuple):
    """One given translation as the model sees it."""

    log_probs: list[float]  # nats of each token, eos last
    attention: Attention | None  # (T, S), both with eos; None: not asked for

    @property
    def log_prob(self) -> float:
        """Log-probability of the whole translation in nats."""
        return sum(self.log_probs)


def read_all(
    model: Reader,
    pairs: Sequence[Pair],
    device: torch.device,
    batch_tokens: int = 4096,
    *,
    attention: bool = False,
    progress: Progress | None = None,
    searches: Sequence[Segment] | None = None,
) -> list[Read | None]:
    """Score pairs of sources and translations (forced decoding).

    Args:
        batch_tokens: Rows x longest side of one batch.
        attention: Also return cross-attention.
        searches: Segment for which each pair is read: it lets others pass between two batches, and may be cancelled.

    Returns:
        One for each pair, in order; None for a pair that ran out of memory even alone, or was cancelled.

    Raises:
        DecodeError: The model's scores are not finite.
    """
    return _in_batches(pairs, batch_tokens, lambda batch: _read(model, batch, device, attention), progress, searches)


def attend_all(
    model: Reader, pairs: Sequence[Pair], device: torch.device, batch_tokens: int = 4096,
    cancellation: Cancellation | None = None,
) -> list[Attention | None]:  # fmt: skip
    """Return the cross-attention that ``read_all`` returns, without the probabilities.

    A Transformer then leaves out its predictions: a product over the whole vocabulary, and its softmax.

    Args:
        cancellation: Once cancelled, no further batch is read.

    Returns:
        ``(T, S)`` for each pair, in order, both with eos; None for a pair without memory, or left.

    Raises:
        DecodeError: As ``read_all``.
    """
    features = getattr(model, "features", model)

    @torch.inference_mode()
    def attend(batch: Sequence[Pair]) -> list[Attention]:
        src, tgt_in = _both_sides(batch, device)
        cross = CrossAttention()
        features(src, tgt_in, record=cross.record)
        attention = cross.mean()
        if not bool(attention.isfinite().all()):
            raise DecodeError(NOT_FINITE)
        return _rows(attention, batch)

    searches = None if cancellation is None else [Segment(ids=[], cancellation=cancellation)] * len(pairs)
    return _in_batches(pairs, batch_tokens, attend, searches=searches)


def _in_batches(
    pairs: Sequence[Pair],
    batch_tokens: int,
    read: Callable[[list[Pair]], Sequence[T]],
    progress: Progress | None = None,
    searches: Sequence[Segment] | None = None,
) -> list[T | None]:
    """Return what ``read`` makes of each pair; pairs of like length are read together, as many as memory holds.

    Pairs whose segment in ``searches`` is cancelled are left out.
    """
    results: list[T | None] = [None] * len(pairs)

    def run(batch: list[int]) -> None:
        for i, result in zip(batch, read([pairs[i] for i in batch]), strict=True):
            results[i] = result

    done = 0
    for batch in length_batches([max(len(src), len(tgt)) + 1 for src, tgt in pairs], batch_tokens):
        run_halving(batch if searches is None else _still_wanted(batch, searches), run)
        done += len(batch)
        if progress is not None:
            progress(done, len(pairs), "pairs read")
    return results


def _still_wanted(batch: list[int], searches: Sequence[Segment]) -> list[int]:
    """Let others do what they have to do between two batches, then return the pairs that are still to be read."""
    for pause in dict.fromkeys(searches[i].between_steps for i in batch):
        if pause is not None:
            pause()
    return [i for i in batch if not searches[i].is_cancelled]


def _both_sides(pairs: Sequence[Pair], device: torch.device) -> tuple[Tensor, Tensor]:
    """Return ``src`` (B, S), eos last, and ``tgt_in`` (B, T), bos first."""
    special = SPECIAL_IDS
    src = padded([[*ids, special.eos] for ids, _ in pairs], special.pad, device)
    return src, padded([[special.bos, *ids] for _, ids in pairs], special.pad, device)


def _rows(attention: Tensor, pairs: Sequence[Pair]) -> list[Attention]:
    """Return each pair's part of ``(B, T, S)``, without padding."""
    whole: Attention = attention.float().numpy(force=True)
    return [whole[row, : len(tgt_ids) + 1, : len(src_ids) + 1].copy() for row, (src_ids, tgt_ids) in enumerate(pairs)]


@torch.inference_mode()
def _read(model: Reader, pairs: Sequence[Pair], device: torch.device, attention: bool) -> list[Read]:
    src, tgt_in = _both_sides(pairs, device)
    tgt_out = padded([[*ids, SPECIAL_IDS.eos] for _, ids in pairs], SPECIAL_IDS.pad, device)  # (B, T)
    cross = CrossAttention()
    logits = model(src, tgt_in, record=cross.record if attention else None)
    precise = logits.float() if logits.dtype.itemsize < 4 else logits
    log_p = precise.log_softmax(dim=-1).gather(2, tgt_out[:, :, None])[:, :, 0]  # (B, T)
    if not bool(log_p.isfinite().all()):
        raise DecodeError(NOT_FINITE)
    attentions = _rows(cross.mean(), pairs) if attention else [None] * len(pairs)
    rows = zip(log_p.tolist(), pairs, attentions, strict=True)
    return [Read(row[: len(ids) + 1], weights) for row, (_, ids), weights in rows]
