"""The best extensions of a beam, without a sort or a softmax of the whole vocabulary. Exact.

Two levels: the maximum of each block of the vocabulary, then the tokens of the winning blocks alone. A token among the
best ``n`` lies in a block whose maximum is among the best ``n`` maxima, so nothing can be missed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional as F

BLOCK = 64
"""Tokens of a block."""

CPU_ROWS = 32
"""Rows that are worked on at once, so that they stay in the cache of one core from the maxima to the sum."""

LOG2_E = math.log2(math.e)
"""``exp2(LOG2_E * x)`` is ``exp(x)``, which torch has MKL do: three times slower on other processors than Intel's."""

IN_RANGE = 60.0
"""``exp`` of so much, summed over a vocabulary, is far from the end of float32's and bfloat16's range, and so is its
inverse."""


def best_extensions(logits: Tensor, scores: Tensor, n: int, never: Sequence[int] = ()) -> tuple[Tensor, Tensor, Tensor]:
    """Fast twin of ``(scores[:, :, None] + logits.log_softmax(-1).view(B, K, V)).flatten(1).topk(n)``.

    Args:
        logits: ``(B * K, V)``; overwritten at ``never``.
        scores: ``(B, K)``, of what is extended.
        n: At most ``K * V``.
        never: Tokens that are not chosen; the probabilities of the others stay what they are.

    Returns:
        The totals ``(B, n)``, best first, float32 or better; their places ``beam * V + token``; and of each row
        ``(B * K,)`` the logarithm of the sum of its exponentials, which is not finite where a logit is NaN or infinite
        (minus infinity left out).
    """
    n_sentences, k = scores.shape
    maxima, log_sum = maxima_and_log_sum(logits)  # (R, blocks), (R,)
    if never:
        for token in never:  # (a list as an index is a tensor that a GPU would have to be given)
            logits[:, token] = -torch.inf
        for i in {token // BLOCK for token in never}:
            maxima[:, i] = logits[:, i * BLOCK : (i + 1) * BLOCK].amax(dim=1)
    n_vocab, n_blocks = logits.size(1), maxima.size(1)
    rest = n_blocks * BLOCK - n_vocab  # by so much the last block is shorter
    sums = log_sum.view(n_sentences, k)
    # what the best token of each block would come to
    blocks = (maxima.view(n_sentences, k, n_blocks) - sums[:, :, None]).add_(scores[:, :, None]).flatten(1)
    chosen = blocks.topk(min(n, k * n_blocks), sorted=False).indices  # (B, n): beam * blocks + block
    if rest:
        logits = F.pad(logits, (0, rest), value=-torch.inf)
    firsts = torch.arange(n_sentences, device=logits.device)[:, None] * (k * n_blocks)
    found = F.embedding(chosen + firsts, logits.view(-1, BLOCK))  # (B, n, BLOCK)
    beams = chosen // n_blocks
    totals = (found - sums.gather(1, beams)[:, :, None]).add_(scores.gather(1, beams)[:, :, None])
    best, where = totals.flatten(1).topk(n)
    places = chosen.gather(1, where // BLOCK) * BLOCK + where % BLOCK  # beam * blocks * BLOCK + token
    if rest:
        places = places // (n_blocks * BLOCK) * n_vocab + (places % (n_blocks * BLOCK)).clamp_max_(n_vocab - 1)
    return best, places, log_sum


def maxima_and_log_sum(logits: Tensor) -> tuple[Tensor, Tensor]:
    """What the log-softmax of each row of ``(R, V)`` takes away, and the maxima of its blocks.

    Returns:
        The maxima ``(R, blocks)``, and the logarithm of the sum of exponentials ``(R,)``: log-softmax is logit minus
        logarithm. Both in float32 or better.
    """
    n_rows, n_vocab = logits.shape
    whole = n_vocab // BLOCK * BLOCK
    size = CPU_ROWS if logits.device.type == "cpu" else max(1, n_rows)
    dtype = torch.promote_types(logits.dtype, torch.float32)
    room = logits.new_empty(min(size, n_rows), n_vocab, dtype=dtype)
    parts = []
    for chunk in torch.split(logits, size):
        odds = room[: len(chunk)]
        precise = chunk if chunk.dtype == dtype else odds.copy_(chunk)
        maxima = [precise[:, :whole].view(len(chunk), -1, BLOCK).amax(dim=2)] if whole else []
        if whole < n_vocab:
            maxima.append(precise[:, whole:].amax(dim=1, keepdim=True))
        each = torch.cat(maxima, dim=1) if len(maxima) > 1 else maxima[0]
        top = each.amax(dim=1)
        # a row's largest is taken away before ``exp`` only where that could leave the range of float32: by itself, so
        # that its last bits do not depend on the rows beside it
        shift = None
        if logits.device.type != "cpu" or not bool(top.abs().amax() < IN_RANGE):  # (a GPU is not asked)
            shift = top.masked_fill(top.abs() < IN_RANGE, 0.0)
            precise = torch.sub(precise, shift[:, None], out=odds)
        log_sum = torch.mul(precise, LOG2_E, out=odds).exp2_().sum(dim=1).log_()
        parts.append((each, log_sum if shift is None else log_sum.add_(shift)))
    if len(parts) == 1:
        return parts[0]
    maxima_, log_sums = (torch.cat(some) for some in zip(*parts, strict=True))
    return maxima_, log_sums
