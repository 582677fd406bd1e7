"""A model that says what it reads: for tests of everything around the search."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import NamedTuple, Self

import torch
from torch import Tensor, nn

from dragoman.data.tokenizer import EOS_ID


class Place(NamedTuple):
    """What an Echo knows of its rows: their sources and how far they are."""

    src: Tensor
    n: int

    def select(self, rows: Tensor) -> Self:
        return self._replace(src=self.src[rows])


class Echo(nn.Module):
    """A model that "translates" each source to itself, token by token; counts how many rows it was asked for."""

    def __init__(self, vocab_size: int) -> None:
        super().__init__()
        self.config = SimpleNamespace(positions="sinusoidal", n_positions=None)
        self.device_tag = nn.Parameter(torch.zeros(1))
        self.vocab_size, self.n_rows = vocab_size, 0

    def start(self, src: Tensor) -> Place:
        self.n_rows += len(src)
        return Place(src, 0)

    def step(self, place: Place, last_ids: Tensor) -> tuple[Tensor, Place]:
        column = place.src[:, place.n] if place.n < place.src.size(1) else torch.full_like(last_ids, EOS_ID)
        logits = torch.zeros(len(last_ids), self.vocab_size).scatter_(1, column[:, None], 30.0)
        return logits, place._replace(n=place.n + 1)

    def forward(self, src: Tensor, tgt_in: Tensor, record: Callable[[str, Tensor], object]) -> None:
        """Tell ``record`` that each token attends to its own place in the source."""
        weights = torch.eye(max(src.size(1), tgt_in.size(1)))[: tgt_in.size(1), : src.size(1)]
        record("decoder.layers.0.cross_attn", weights.expand(len(src), 1, *weights.shape))
