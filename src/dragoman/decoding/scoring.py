"""Given translations read by the model, all tokens at once: their probabilities, and what was attended to.

This is teacher forcing: each token's probability is the one that a search would see after the tokens before it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol, TypeVar

import torch
from torch import Tensor

from dragoman.decoding.alignment import CrossAttention
from dragoman.decoding.batches import length_batches, padded, report_lost, run_halving
from dragoman.decoding.search import DEFAULT, NOT_FINITE, Specials
from dragoman.errors import DecodeError

T = TypeVar("T")


class Reader(Protocol):
    """All that scoring knows of a model."""

    def __call__(self, src: Tensor, tgt_in: Tensor, record: Callable[[str, Tensor], None] | None = None) -> Tensor:
        """Logits ``(B, T, V)`` of ``src`` (B, S) and ``tgt_in`` (B, T), both padded."""
        ...


class Read(NamedTuple):
    """One given translation as the model sees it."""

    log_probs: list[float]  # of each token in nats, eos last
    attention: Tensor | None  # (T, S), both with eos, on the CPU: see ``CrossAttention``; None: not asked for

    @property
    def log_prob(self) -> float:
        """Of the whole."""
        return sum(self.log_probs)


def read_all(
    model: Reader,
    pairs: Sequence[tuple[Sequence[int], Sequence[int]]],
    device: torch.device,
    batch_tokens: int = 4096,
    *,
    attention: bool = False,
    specials: Specials = DEFAULT,
    progress: Callable[[int, int, str], object] | None = None,
    failed: Callable[[int], None] | None = None,
) -> list[Read | None]:
    """Score pairs of sources and translations (forced decoding), as ids without bos and eos.

    Args:
        batch_tokens: Rows x longest side of one batch.
        attention: Also return cross-attention.
        failed: Called with the index of each pair that ran out of memory even alone; its result is None.

    Returns:
        One for each pair, in order.

    Raises:
        DecodeError: A pair ran out of memory even alone (raised after the others, unless ``failed`` is given); or the
            model's scores are not finite.
    """
    return _in_batches(
        pairs, batch_tokens, lambda batch: _read(model, batch, device, attention, specials), progress, failed
    )


def attend_all(
    model: Reader,
    pairs: Sequence[tuple[Sequence[int], Sequence[int]]],
    device: torch.device,
    batch_tokens: int = 4096,
    *,
    specials: Specials = DEFAULT,
    failed: Callable[[int], None] | None = None,
) -> list[Tensor | None]:
    """The cross-attention that ``read_all`` returns, where no probabilities are wanted.

    What a Transformer predicts is not computed then: a product over the whole vocabulary, and its softmax.

    Args:
        failed: As of ``read_all``.

    Returns:
        ``(T, S)`` for each pair, in order, both with eos, on the CPU.

    Raises:
        DecodeError: As ``read_all``.
    """
    features = getattr(model, "features", model)

    @torch.inference_mode()
    def attend(batch: Sequence[tuple[Sequence[int], Sequence[int]]]) -> list[Tensor]:
        src, tgt_in = _both_sides(batch, device, specials)
        cross = CrossAttention()
        features(src, tgt_in, record=cross.record)
        found = cross.mean()
        if not bool(found.isfinite().all()):
            raise DecodeError(NOT_FINITE)
        return _rows(found, batch)

    return _in_batches(pairs, batch_tokens, attend, None, failed)


def _in_batches(
    pairs: Sequence[tuple[Sequence[int], Sequence[int]]], batch_tokens: int,
    read: Callable[[list[tuple[Sequence[int], Sequence[int]]]], Sequence[T]],
    progress: Callable[[int, int, str], object] | None, failed: Callable[[int], None] | None,
) -> list[T | None]:  # fmt: skip
    """What ``read`` makes of each pair, read beside others of like length, as many as memory has room for."""
    found: list[T | None] = [None] * len(pairs)

    def run(batch: list[int]) -> None:
        for i, result in zip(batch, read([pairs[i] for i in batch]), strict=True):
            found[i] = result

    lost: list[int] = []
    done = 0
    for batch in length_batches([max(len(src), len(tgt)) + 1 for src, tgt in pairs], batch_tokens):
        lost += run_halving(batch, run)
        done += len(batch)
        if progress is not None:
            progress(done, len(pairs), "pairs read")
    report_lost(lost, failed, "pair")
    return found


def _both_sides(
    pairs: Sequence[tuple[Sequence[int], Sequence[int]]], device: torch.device, specials: Specials
) -> tuple[Tensor, Tensor]:
    """``src`` (B, S), eos last, and ``tgt_in`` (B, T), bos first."""
    src = padded([[*ids, specials.eos_id] for ids, _ in pairs], specials.pad_id, device)
    return src, padded([[specials.bos_id, *ids] for _, ids in pairs], specials.pad_id, device)


def _rows(attention: Tensor, pairs: Sequence[tuple[Sequence[int], Sequence[int]]]) -> list[Tensor]:
    """Each pair's part of ``(B, T, S)``, without padding, on the CPU."""
    return [
        attention[row, : len(tgt_ids) + 1, : len(src_ids) + 1].float().cpu()
        for row, (src_ids, tgt_ids) in enumerate(pairs)
    ]


@torch.inference_mode()
def _read(
    model: Reader,
    pairs: Sequence[tuple[Sequence[int], Sequence[int]]],
    device: torch.device,
    attention: bool,
    specials: Specials,
) -> list[Read]:
    src, tgt_in = _both_sides(pairs, device, specials)
    tgt_out = padded([[*ids, specials.eos_id] for _, ids in pairs], specials.pad_id, device)  # (B, T)
    cross = CrossAttention()
    logits = model(src, tgt_in, record=cross.record if attention else None)
    precise = logits.float() if logits.dtype.itemsize < 4 else logits
    log_p = precise.log_softmax(dim=-1).gather(2, tgt_out[:, :, None])[:, :, 0]  # (B, T)
    if not bool(log_p.isfinite().all()):
        raise DecodeError(NOT_FINITE)
    rows = log_p.tolist()
    seen = _rows(cross.mean(), pairs) if attention else [None] * len(pairs)
    return [Read(row[: len(ids) + 1], one) for row, (_, ids), one in zip(rows, pairs, seen, strict=True)]
