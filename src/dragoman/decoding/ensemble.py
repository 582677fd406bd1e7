"""Several models as one: the mean of their probabilities at each step."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Self

import torch
from torch import Tensor, nn


class EnsembleState(NamedTuple):
    """The states of all members."""

    states: tuple[Any, ...]

    def select(self, rows: Tensor) -> Self:
        """Keep ``rows`` in every member."""
        return type(self)(tuple(state.select(rows) for state in self.states))


class Mean(NamedTuple):
    """An ensemble as a search sees it; members are models or their optimised implementations."""

    members: tuple[Any, ...]

    def narrowed(self, ids: Tensor, own: Tensor) -> Mean:
        """Return the ensemble with a part of the vocabulary: see ``FastTransformer``."""
        return Mean(tuple(member.narrowed(ids, own) for member in self.members))

    def start(self, src: Tensor) -> EnsembleState:
        """Each member reads the sources ``(B, S)``."""
        return EnsembleState(tuple(member.start(src) for member in self.members))

    def step(self, state: EnsembleState, last_ids: Tensor) -> tuple[Tensor, EnsembleState]:
        """Append a token to each row: log-probabilities ``(B, V)`` and the next state."""
        steps = [member.step(own, last_ids) for member, own in zip(self.members, state.states, strict=True)]
        return mean_probability([logits for logits, _ in steps]), EnsembleState(tuple(next_ for _, next_ in steps))


class Ensemble(nn.Module):
    """Offers what its members offer: ``start``, ``step`` and ``select``, and a call with ``src`` and ``tgt_in``.

    Its logits are the logarithm of the mean of its members' probabilities, so they are log-probabilities already.
    """

    def __init__(self, members: Sequence[nn.Module]) -> None:
        super().__init__()
        self.members = nn.ModuleList(members)

    def start(self, src: Tensor) -> EnsembleState:
        """Each member reads the sources ``(B, S)``."""
        return Mean(tuple(self.members)).start(src)

    def step(self, state: EnsembleState, last_ids: Tensor) -> tuple[Tensor, EnsembleState]:
        """Append a token to each row: log-probabilities ``(B, V)`` and the next state."""
        return Mean(tuple(self.members)).step(state, last_ids)

    def forward(self, src: Tensor, tgt_in: Tensor, record: Callable[[str, Tensor], None] | None = None) -> Tensor:
        """Return log-probabilities ``(B, T, V)``; ``record`` gets each member's attentions under ``members.I.``."""

        def named(i: int) -> Callable[[str, Tensor], None] | None:
            return None if record is None else lambda name, weights: record(f"members.{i}.{name}", weights)

        return mean_probability([member(src, tgt_in, record=named(i)) for i, member in enumerate(self.members)])


def mean_probability(logits: Sequence[Tensor]) -> Tensor:
    """Return ``log(mean(softmax(logits)))``, each ``(..., V)``."""
    precise = [tensor.float() if tensor.dtype.itemsize < 4 else tensor for tensor in logits]
    return torch.stack([tensor.log_softmax(dim=-1) for tensor in precise]).logsumexp(dim=0) - math.log(len(logits))
