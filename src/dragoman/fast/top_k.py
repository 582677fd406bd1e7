"""The best extensions of a beam, exactly, without sorting the whole vocabulary or computing its softmax.

It works on two levels: first the maximum of each block of the vocabulary, then the tokens of the winning blocks alone.
A token among the best ``n`` lies in a block whose maximum is among the best ``n`` maxima, so none is missed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

BLOCK = 64
"""Number of tokens in a block."""

CPU_ROWS = 32
"""Number of rows processed at once on a CPU: few enough to stay in the cache of one core."""

LOG2_E = math.log2(math.e)
"""``exp2(LOG2_E * x)`` equals ``exp(x)``. torch leaves ``exp`` to MKL, which is three times slower except on Intel."""

IN_RANGE = 60.0
"""Largest absolute logit whose ``exp`` is safe.

Summed over a vocabulary, it stays far from the limits of float32 and bfloat16, and so does its inverse."""


def best_extensions(logits: Tensor, scores: Tensor, n: int, never: Sequence[int] = ()) -> tuple[Tensor, Tensor, Tensor]:
    """Compute ``(scores[:, :, None] + logits.log_softmax(-1).view(B, K, V)).flatten(1).topk(n)``, optimised.

    Args:
        logits: ``(B * K, V)``; overwritten at ``never``.
        scores: ``(B, K)``, the log-probabilities of the hypotheses to extend.
        n: Number of extensions to return for each sentence; at most ``K * V``.
        never: Tokens that may not be chosen; the probabilities of the others do not change.

    Returns:
        - The totals ``(B, n)``, best first, in float32 or better.
        - Their indices ``beam * V + token``.
        - The log of the sum of exponentials of each row, ``(B * K,)``. It is not finite where a logit is NaN or
          infinite; minus infinity is allowed.
    """
    n_sentences, k = scores.shape
    maxima, log_sum = maxima_and_log_sum(logits)  # (R, blocks), (R,)
    if never:
        for token in never:  # one at a time: indexing with a list would copy a tensor to the GPU
            logits[:, token] = -torch.inf
        for i in {token // BLOCK for token in never}:
            maxima[:, i] = logits[:, i * BLOCK : (i + 1) * BLOCK].amax(dim=1)
    n_vocab, n_blocks = logits.size(1), maxima.size(1)
    sums = log_sum.view(n_sentences, k)
    # The totals of the best token of each block choose the blocks.
    candidates = (maxima.view(n_sentences, k, n_blocks) - sums[:, :, None]).add_(scores[:, :, None]).flatten(1)
    chosen = candidates.topk(min(n, k * n_blocks), sorted=False).indices  # (B, n): beam * blocks + block
    beams, blocks = chosen // n_blocks, chosen % n_blocks
    # The last block may be short: it is then read from a whole block before the end of the row, whose first tokens
    # belong to another block.
    size = min(BLOCK, n_vocab)
    starts = (blocks * size).clamp_max_(n_vocab - size)
    rows = torch.arange(0, len(logits), k, device=logits.device)[:, None] + beams
    everywhere = logits.view(-1).as_strided((logits.numel() - size + 1, size), (1, 1))  # a block from each token on
    block_logits = everywhere.index_select(0, (rows * n_vocab + starts).flatten()).view(*chosen.shape, size)
    totals = (block_logits - sums.gather(1, beams)[:, :, None]).add_(scores.gather(1, beams)[:, :, None])
    n_others = n_blocks * size - n_vocab
    if n_others:
        totals[..., :n_others].masked_fill_((blocks == n_blocks - 1)[:, :, None], -torch.inf)
    best, where = totals.flatten(1).topk(n)
    chosen = where // size
    places = beams.gather(1, chosen) * n_vocab + starts.gather(1, chosen) + where % size  # beam * V + token
    return best, places, log_sum


def maxima_and_log_sum(logits: Tensor) -> tuple[Tensor, Tensor]:
    """Return the maximum of each block and the log of the sum of exponentials of each row of ``logits`` (R, V).

    Returns:
        The maxima ``(R, blocks)`` and the log-sums ``(R,)``, both in float32 or better. Log-softmax is the logit minus
        the log-sum.
    """
    n_rows, n_vocab = logits.shape
    whole = n_vocab // BLOCK * BLOCK
    size = CPU_ROWS if logits.device.type == "cpu" else max(1, n_rows)
    dtype = torch.promote_types(logits.dtype, torch.float32)
    buffer = logits.new_empty(min(size, n_rows), n_vocab, dtype=dtype)
    parts = []
    for chunk in torch.split(logits, size):
        exps = buffer[: len(chunk)]
        precise = chunk if chunk.dtype == dtype else exps.copy_(chunk)
        maxima = [precise[:, :whole].view(len(chunk), -1, BLOCK).amax(dim=2)] if whole else []
        if whole < n_vocab:
            maxima.append(precise[:, whole:].amax(dim=1, keepdim=True))
        block_maxima = torch.cat(maxima, dim=1) if len(maxima) > 1 else maxima[0]
        top = block_maxima.amax(dim=1)
        # Subtract a row's maximum before ``exp`` only if ``exp`` could leave the range of float32. Each row decides by
        # itself, so that its last bits do not depend on the other rows of the batch.
        shift = None
        if logits.device.type != "cpu" or not bool(
            top.abs().amax() < IN_RANGE
        ):  # reading this from a GPU would make the host wait
            shift = top.masked_fill(top.abs() < IN_RANGE, 0.0)
            precise = torch.sub(precise, shift[:, None], out=exps)
        log_sum = torch.mul(precise, LOG2_E, out=exps).exp2_().sum(dim=1).log_()
        parts.append((block_maxima, log_sum if shift is None else log_sum.add_(shift)))
    if len(parts) == 1:
        return parts[0]
    maxima_, log_sums = (torch.cat(some) for some in zip(*parts, strict=True))
    return maxima_, log_sums
