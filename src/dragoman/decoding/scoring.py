"""Given translations read by the model, all tokens at once: their probabilities, and what was attended to.

This is teacher forcing: each token's probability is the one that a search would see after the tokens before it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

import torch
from torch import Tensor

from dragoman.decoding.alignment import CrossAttention
from dragoman.decoding.batches import length_batches, padded, report_lost, run_halving
from dragoman.decoding.search import DEFAULT, NOT_FINITE, Specials
from dragoman.errors import DecodeError


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
    found: list[Read | None] = [None] * len(pairs)

    def read(batch: list[int]) -> None:
        for i, result in zip(batch, _read(model, [pairs[i] for i in batch], device, attention, specials), strict=True):
            found[i] = result

    lost: list[int] = []
    done = 0
    for batch in length_batches([max(len(src), len(tgt)) + 1 for src, tgt in pairs], batch_tokens):
        lost += run_halving(batch, read)
        done += len(batch)
        if progress is not None:
            progress(done, len(pairs), "pairs read")
    report_lost(lost, failed, "pair")
    return found


@torch.inference_mode()
def _read(
    model: Reader,
    pairs: Sequence[tuple[Sequence[int], Sequence[int]]],
    device: torch.device,
    attention: bool,
    specials: Specials,
) -> list[Read]:
    src = padded([[*ids, specials.eos_id] for ids, _ in pairs], specials.pad_id, device)  # (B, S)
    tgt_in = padded([[specials.bos_id, *ids] for _, ids in pairs], specials.pad_id, device)  # (B, T)
    tgt_out = padded([[*ids, specials.eos_id] for _, ids in pairs], specials.pad_id, device)
    cross = CrossAttention()
    logits = model(src, tgt_in, record=cross.record if attention else None)
    precise = logits.float() if logits.dtype.itemsize < 4 else logits
    log_p = precise.log_softmax(dim=-1).gather(2, tgt_out[:, :, None])[:, :, 0]  # (B, T)
    if not bool(log_p.isfinite().all()):
        raise DecodeError(NOT_FINITE)
    log_p, mean = log_p.cpu(), cross.mean() if attention else None  # one copy, and not one for each row
    results = []
    for row, (src_ids, tgt_ids) in enumerate(pairs):
        n = len(tgt_ids) + 1
        seen = None if mean is None else mean[row, :n, : len(src_ids) + 1].float().cpu()
        results.append(Read(log_p[row, :n].tolist(), seen))
    return results
