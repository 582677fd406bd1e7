"""The gradients of all ranks summed, from the first of a backward pass on and not only behind its last.

The parameters lie in buckets, those of the last layers first, as a backward pass comes to them; a bucket is sent when
the gradients of all its parameters are there, and the backward pass goes on meanwhile. A tied embedding comes last: its
first part is there at once, from the generator, its second only from the bottom of the encoder.
docs/decisions/0015-several-processes.md
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from types import TracebackType
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from dragoman.training.distributed import World, together

BUCKET_NUMBERS = 2**20
"""So many gradients, or one parameter with more, are a message: 4 MiB of float32, small enough that the sums begin
early, large enough that each message's fixed cost (a fraction of a millisecond by gloo) stays small beside it."""


class Exchange:
    """The sum over all ranks of the gradients of one update.

    Used around its last backward pass, which completes the gradients; those before it only add to them.

    Args:
        parameters: The same on each rank, in the same order. One that has no gradient on any rank is left out.
    """

    def __init__(self, world: World, parameters: Iterable[Tensor]) -> None:
        self._world, self._parameters = world, list(parameters)
        self._buckets = _buckets(self._parameters)
        self._complete: set[int] = set()
        self._sent: list[_Sent] = []
        self._hooks: list[Any] = []

    def __enter__(self) -> Exchange:
        if self._world.size > 1:
            for each in self._parameters:
                self._hooks.append(each.register_post_accumulate_grad_hook(self._completed))  # type: ignore[no-untyped-call]
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for hook in self._hooks:
            hook.remove()

    @property
    def gradients(self) -> list[Tensor]:
        """Those that there are, of this rank."""
        return [each.grad for each in self._parameters if each.grad is not None]

    def adopt(self, sums: Iterable[Tensor]) -> None:
        """Put the sums in the place of the gradients."""
        for each, found in zip((each for each in self._parameters if each.grad is not None), sums, strict=True):
            each.grad = found

    def sums(self, *others: Tensor) -> list[Tensor]:
        """Of ``others``, and of each gradient that there is, in the order of the parameters.

        Alone in the world these are the tensors themselves; otherwise those stay as they are.

        Raises:
            DragomanError: Another rank is lost.
        """
        if self._world.size == 1:
            return [*others, *self.gradients]
        while len(self._sent) < len(self._buckets):  # in these some parameters take no part
            self._send_bucket()
        self._send(others)
        with together(self._world):
            parts = [sent.received() for sent in self._sent]
        backwards = [part for bucket in parts[:-1] for part in bucket]
        return [*parts[-1], *reversed(backwards)]

    def _completed(self, parameter: Tensor) -> None:
        """Send the next buckets, if they wait for this one alone: all ranks must send in one order."""
        self._complete.add(id(parameter))
        for bucket in self._buckets[len(self._sent) :]:
            if not all(id(each) in self._complete for each in bucket):
                return
            self._send_bucket()

    def _send_bucket(self) -> None:
        self._send([each.grad for each in self._buckets[len(self._sent)] if each.grad is not None])

    def _send(self, tensors: Sequence[Tensor]) -> None:
        with together(self._world):
            self._sent.append(_Sent(tensors))


class _Sent:
    """Tensors on their way, in one message; they themselves stay as they are."""

    def __init__(self, tensors: Sequence[Tensor]) -> None:
        self._shapes = [tensor.shape for tensor in tensors]
        self._flat = torch.cat([tensor.detach().flatten() for tensor in tensors]) if tensors else None
        self._work = None if self._flat is None else dist.all_reduce(self._flat, async_op=True)

    def received(self) -> list[Tensor]:
        """Their sums."""
        if self._flat is None or self._work is None:
            return []
        self._work.wait()
        parts = torch.split(self._flat, [shape.numel() for shape in self._shapes])
        return [part.view(shape) for part, shape in zip(parts, self._shapes, strict=True)]


def _buckets(parameters: Sequence[Tensor]) -> list[list[Tensor]]:
    """The parameters, the last ones first, in groups of at most ``BUCKET_NUMBERS``."""
    found: list[list[Tensor]] = []
    room = 0
    for each in reversed(parameters):
        if each.numel() > room or not found:
            found.append([])
            room = BUCKET_NUMBERS
        found[-1].append(each)
        room -= each.numel()
    return found
