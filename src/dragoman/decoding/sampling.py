"""Sampling: tokens drawn by chance, the same whatever else is in the batch.

A token is drawn by one random number in [0, 1): a hash of the seed, the sentence's key, the number of the sample and
the position of the token, and of nothing else. The tokens' probabilities, in the order of their ids, share out that
range, so a difference in the last bits of a probability hardly ever changes a token.
"""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Sequence

import torch
from torch import Tensor

from dragoman.decoding.request import Hypothesis, Sampling, SearchBatch, SearchSettings
from dragoman.decoding.search import Model, greedy_search


def sample_search(
    model: Model, batch: SearchBatch, settings: SearchSettings, keys: Sequence[Hashable]
) -> list[list[Hypothesis]]:
    """Draw ``n_best`` translations for each row of the batch.

    Args:
        settings: Its ``sampling`` says how.
        keys: The name of each row, such as its line number; its ``repr`` goes into the random numbers.

    Returns:
        For each row its samples, best score first. Scores are the model's, not those of the sharpened distribution.
    """
    sampling, n_best = settings.sampling or Sampling(), settings.n_best

    def choose(log_p: Tensor, rows: list[int], n: int) -> Tensor:
        chances = [chance(sampling.seed, keys[row // n_best], row % n_best, n) for row in rows]
        return draw(log_p, sampling, torch.tensor(chances, dtype=torch.float64, device=log_p.device))

    samples = greedy_search(model, batch.repeated(n_best), settings, choose)
    groups = (samples[start : start + n_best] for start in range(0, len(samples), n_best))
    return [sorted(group, key=lambda hypothesis: -hypothesis.score) for group in groups]


def chance(seed: int, key: Hashable, sample: int, position: int) -> float:
    """Return a number in [0, 1) that depends on the arguments alone, on every machine."""
    digest = hashlib.blake2b(f"{seed} {key!r} {sample} {position}".encode(), digest_size=8).digest()
    return (int.from_bytes(digest, "big") >> 12) / 2**52


def draw(log_p: Tensor, sampling: Sampling, chances: Tensor) -> Tensor:
    """Draw a token for each row.

    Args:
        log_p: ``(R, V)``, -inf for tokens that may not follow.
        chances: ``(R,)`` float64 in [0, 1).

    Returns:
        ``(R,)`` ids.
    """
    scaled = log_p.double() / sampling.temperature
    if 0 < sampling.top_k < scaled.size(1):
        least = scaled.topk(sampling.top_k).values[:, -1:]
        above, tied = scaled > least, scaled == least
        room = sampling.top_k - above.sum(dim=-1, keepdim=True)  # of those that are alike, the first
        scaled = scaled.masked_fill(~(above | (tied & (tied.cumsum(dim=-1) <= room))), -torch.inf)
    p = scaled.softmax(dim=-1)
    if sampling.top_p < 1:
        falling, order = p.sort(dim=-1, descending=True, stable=True)
        before = falling.cumsum(dim=-1) - falling
        p = p.scatter(1, order, falling.masked_fill(before >= sampling.top_p, 0.0))
    shares = p.cumsum(dim=-1)
    return torch.searchsorted(shares, chances[:, None] * shares[:, -1:], right=True)[:, 0]
