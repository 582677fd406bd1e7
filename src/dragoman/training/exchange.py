"""Sums of the gradients of all ranks, sent during the backward pass and not only after it.

    exchange = Exchange(world, model.parameters())
    with exchange:
        loss.backward()
    n_tokens, *gradients = exchange.sums(n_tokens)

The parameters are divided into buckets, those of the last layers first: that is the order in which a backward pass
completes gradients. A bucket is sent when the gradients of all its parameters are complete, while the backward pass
continues. A tied embedding comes last: the generator's part of its gradient is there at once, the encoder's only at the
end. docs/decisions/0015-several-processes.md
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from types import TracebackType
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from dragoman.training.distributed import World, failures_named

BUCKET_NUMBERS = 2**20
"""Largest number of gradients in a message, unless a single parameter has more: 4 MiB of float32.

That is small enough for the sums to begin early. It is large enough for the fixed cost of a message by gloo, a fraction
of a millisecond, to be small in comparison."""


class Exchange:
    """The sum over all ranks of the gradients of one update.

    Open it around the last backward pass of the update, which completes the gradients; earlier ones only add to them.

    Args:
        parameters: The same on each rank, in the same order. One without a gradient on any rank is left out.
    """

    def __init__(self, world: World, parameters: Iterable[Tensor]) -> None:
        self._world, self._parameters = world, list(parameters)
        self._buckets = _buckets(self._parameters)
        self._complete: set[int] = set()
        self._messages: list[_Message] = []
        self._hooks: list[Any] = []

    def __enter__(self) -> Exchange:
        if self._world.size > 1:
            for parameter in self._parameters:
                self._hooks.append(parameter.register_post_accumulate_grad_hook(self._complete_parameter))  # type: ignore[no-untyped-call]
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for hook in self._hooks:
            hook.remove()

    @property
    def gradients(self) -> list[Tensor]:
        """The gradients of this rank, in the order of the parameters that have one."""
        return [parameter.grad for parameter in self._parameters if parameter.grad is not None]

    def replace_gradients(self, sums: Iterable[Tensor]) -> None:
        """Replace the gradients by their sums."""
        trained = (parameter for parameter in self._parameters if parameter.grad is not None)
        for parameter, gradient in zip(trained, sums, strict=True):
            parameter.grad = gradient

    def sums(self, *others: Tensor) -> list[Tensor]:
        """Return the sums over all ranks of ``others``, then of the gradients in the order of the parameters.

        With a single rank these are the tensors themselves; otherwise the tensors are not changed.

        Raises:
            DragomanError: Another rank is lost.
        """
        if self._world.size == 1:
            return [*others, *self.gradients]
        while len(self._messages) < len(self._buckets):  # some of their parameters have no gradient
            self._send_bucket()
        self._send(others)
        with failures_named(self._world):
            parts = [message.received() for message in self._messages]
        backwards = [part for bucket in parts[:-1] for part in bucket]
        return [*parts[-1], *reversed(backwards)]

    def _complete_parameter(self, parameter: Tensor) -> None:
        """Send the next buckets if this gradient completes them; all ranks must send in the same order."""
        self._complete.add(id(parameter))
        for bucket in self._buckets[len(self._messages) :]:
            if not all(id(member) in self._complete for member in bucket):
                return
            self._send_bucket()

    def _send_bucket(self) -> None:
        bucket = self._buckets[len(self._messages)]
        self._send([parameter.grad for parameter in bucket if parameter.grad is not None])

    def _send(self, tensors: Sequence[Tensor]) -> None:
        with failures_named(self._world):
            self._messages.append(_Message(tensors))


class _Message:
    """Tensors being summed over all ranks in one message; the tensors themselves are not changed."""

    def __init__(self, tensors: Sequence[Tensor]) -> None:
        self._shapes = [tensor.shape for tensor in tensors]
        self._flat = torch.cat([tensor.detach().flatten() for tensor in tensors]) if tensors else None
        self._work = None if self._flat is None else dist.all_reduce(self._flat, async_op=True)

    def received(self) -> list[Tensor]:
        """Wait for the sums and return them."""
        if self._flat is None or self._work is None:
            return []
        self._work.wait()
        parts = torch.split(self._flat, [shape.numel() for shape in self._shapes])
        return [part.view(shape) for part, shape in zip(parts, self._shapes, strict=True)]


def _buckets(parameters: Sequence[Tensor]) -> list[list[Tensor]]:
    """Return the parameters, the last ones first, in groups of at most ``BUCKET_NUMBERS`` numbers."""
    buckets: list[list[Tensor]] = []
    n_free = 0
    for parameter in reversed(parameters):
        if parameter.numel() > n_free or not buckets:
            buckets.append([])
            n_free = BUCKET_NUMBERS
        buckets[-1].append(parameter)
        n_free -= parameter.numel()
    return buckets
