"""A model that is a table, small enough to list all its translations."""

from __future__ import annotations

import itertools
from typing import NamedTuple, Self

import torch
from torch import Tensor

from dragoman.config import LengthPenalty

V = 7  # pad, unk, bos, eos and three words
PAD, BOS, EOS = 0, 2, 3


class TableState(NamedTuple):
    src: Tensor
    prefix: Tensor

    def select(self, rows: Tensor) -> Self:
        return type(self)(self.src[rows], self.prefix[rows])


class TableModel:
    """Logits that are a fixed function of the source and the last two tokens."""

    def __init__(self, seed: int, sharpness: float = 2.0) -> None:
        self.table = sharpness * torch.randn(11, V, V, V, generator=torch.Generator().manual_seed(seed)).double()

    def start(self, src: Tensor) -> TableState:
        return TableState(src.sum(1) % 11, torch.zeros(len(src), 1, dtype=torch.int64))

    def step(self, state: TableState, last_ids: Tensor) -> tuple[Tensor, TableState]:
        prefix = torch.cat((state.prefix, last_ids[:, None]), 1)
        return self.table[state.src, prefix[:, -2], prefix[:, -1]], TableState(state.src, prefix)

    def log_prob(self, src: list[int], ids: list[int]) -> float:
        total, history = 0.0, [0, BOS]
        for token in [*ids, EOS]:
            total += self.table[sum(src) % 11, history[-2], history[-1]].log_softmax(0)[token].item()
            history.append(token)
        return total


def every_translation(model: TableModel, src: list[int], max_len: int, alpha: float) -> list[tuple[float, list[int]]]:
    words = [4, 5, 6]
    found = []
    for n in range(max_len):
        for ids in itertools.product(words, repeat=n):
            found.append((model.log_prob(src, list(ids)) / LengthPenalty(alpha)(n + 1), list(ids)))
    return sorted(found, key=lambda pair: -pair[0])
