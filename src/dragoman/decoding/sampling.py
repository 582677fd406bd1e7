"""Sampling: tokens drawn by chance, the same whatever else is in the batch.

A token is drawn by one random number in [0, 1), a hash of the seed, of what names the sentence, of the sample's number
and of the token's position, and of nothing else. Of the tokens' probabilities, in the order of their ids, it says into
whose share it falls, so a difference in the last bits of a probability hardly ever changes a token.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Hashable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from dragoman.config import LengthPenalty
from dragoman.decoding.constraints import Rules
from dragoman.decoding.search import DEFAULT, Hypothesis, Model, Specials, greedy_search
from dragoman.errors import ConfigError


class Sampling(NamedTuple):
    """How tokens are drawn. With all three limits, temperature comes first, then ``top_k``, then ``top_p``."""

    temperature: float = 1.0  # above 1 flatter, below 1 sharper
    top_k: int = 0  # only of the likeliest so many; 0: of all
    top_p: float = 1.0  # only of the fewest whose probabilities reach this sum (https://arxiv.org/abs/1904.09751)
    seed: int = 0
    keys: Sequence[Hashable] | None = None  # what names each source in the random numbers; None: its index

    def checked(self) -> Sampling:
        """Itself.

        Raises:
            ConfigError: A value is impossible.
        """
        if not 0.01 <= self.temperature <= 100:
            raise ConfigError(
                f"temperature = {self.temperature} must lie between 0.01 and 100; greedy search is beam 1"
            )
        if self.top_k < 0:
            raise ConfigError(f"top_k = {self.top_k} must be 1 or more, or 0 for all tokens")
        if not 0 < self.top_p <= 1:
            raise ConfigError(f"top_p = {self.top_p} must be above 0 and at most 1")
        return self


def sample_search(
    model: Model,
    src: Tensor,
    max_lens: Sequence[int],
    sampling: Sampling,
    keys: Sequence[Hashable],
    n_best: int = 1,
    alpha: float | LengthPenalty = 0.0,
    specials: Specials = DEFAULT,
    rules: Sequence[Rules] | None = None,
    alive: Callable[[int], bool] | None = None,
) -> list[list[Hypothesis]]:
    """Draw ``n_best`` translations of each row of ``src``; arguments as for ``greedy_search``.

    Args:
        keys: What names each row, such as its line number; its ``repr`` goes into the random numbers.

    Returns:
        For each row its samples, best score first. Scores are the model's, not those of the sharpened distribution.
    """

    def choose(log_p: Tensor, rows: list[int], n: int) -> Tensor:
        chances = [chance(sampling.seed, keys[row // n_best], row % n_best, n) for row in rows]
        return draw(log_p, sampling, torch.tensor(chances, dtype=torch.float64, device=log_p.device))

    def repeated(items: Sequence[Rules]) -> list[Rules]:
        return [item for item in items for _ in range(n_best)]

    limits = [limit for limit in max_lens for _ in range(n_best)]
    found = greedy_search(
        model, src.repeat_interleave(n_best, dim=0), limits, alpha, specials, rules and repeated(rules), choose,
        None if alive is None else lambda row: alive(row // n_best),
    )  # fmt: skip
    groups = (found[start : start + n_best] for start in range(0, len(found), n_best))
    return [sorted(group, key=lambda hypothesis: -hypothesis.score) for group in groups]


def chance(seed: int, key: Hashable, sample: int, position: int) -> float:
    """A number in [0, 1), a function of the arguments alone, on every machine."""
    digest = hashlib.blake2b(f"{seed} {key!r} {sample} {position}".encode(), digest_size=8).digest()
    return (int.from_bytes(digest, "big") >> 12) / 2**52


def draw(log_p: Tensor, sampling: Sampling, chances: Tensor) -> Tensor:
    """Draw a token for each row.

    Args:
        log_p: ``(R, V)``, -inf for what may not be.
        chances: ``(R,)`` float64 in [0, 1).

    Returns:
        ``(R,)`` ids.
    """
    scaled = log_p.double() / sampling.temperature
    if 0 < sampling.top_k < scaled.size(1):
        least = scaled.topk(sampling.top_k).values[:, -1:]
        scaled = scaled.masked_fill(scaled < least, -torch.inf)
    p = scaled.softmax(dim=-1)
    if sampling.top_p < 1:
        falling, order = p.sort(dim=-1, descending=True, stable=True)
        before = falling.cumsum(dim=-1) - falling
        p = p.scatter(1, order, falling.masked_fill(before >= sampling.top_p, 0.0))
    shares = p.cumsum(dim=-1)
    return torch.searchsorted(shares, chances[:, None] * shares[:, -1:], right=True)[:, 0]
