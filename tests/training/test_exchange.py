"""Gradients that are summed over ranks while the backward pass still runs."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from dragoman.training import exchange
from dragoman.training.distributed import ALONE, World
from dragoman.training.exchange import Exchange

TWO = World(0, 2)


class Wire:
    """In the place of the other rank, which has the same gradients: what is sent comes back twice as large."""

    def __init__(self) -> None:
        self.sizes: list[int] = []
        self.waiting: list[Tensor] = []

    def all_reduce(self, tensor: Tensor, async_op: bool) -> Wire:
        assert async_op
        self.sizes.append(tensor.numel())
        self.waiting.append(tensor)
        return self

    def wait(self) -> None:
        self.waiting.pop(0).mul_(2)


@pytest.fixture
def wire(monkeypatch: pytest.MonkeyPatch) -> Wire:
    found = Wire()
    monkeypatch.setattr(exchange, "dist", found)
    monkeypatch.setattr(exchange, "BUCKET_NUMBERS", 12)
    return found


@pytest.fixture
def model() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(*(nn.Linear(3, 3) for _ in range(3)))


def loss_of(model: Any) -> Tensor:
    return model(torch.arange(6.0).view(2, 3)).square().sum()


def test_they_are_sent_while_others_are_still_to_come(wire: Wire, model: nn.Sequential) -> None:
    sent_before = []
    model[0].weight.register_post_accumulate_grad_hook(lambda _: sent_before.append(list(wire.sizes)))
    with Exchange(TWO, model.parameters()) as both:
        loss_of(model).backward()
    assert sent_before == [[12, 12]]  # those of the last two layers, each in a bucket
    smoothed, *sums = both.sums(torch.tensor(5.0))
    assert wire.sizes == [12, 12, 12, 1]
    assert smoothed == 10
    for parameter, found in zip(model.parameters(), sums, strict=True):
        assert torch.equal(found, 2 * parameter.grad)
    both.replace_gradients(sums)
    assert all(found is parameter.grad for parameter, found in zip(model.parameters(), sums, strict=True))


def test_all_ranks_send_in_one_order_whatever_comes_first(wire: Wire, model: nn.Sequential) -> None:
    with Exchange(TWO, model.parameters()) as both:
        for layer, sizes in ((model[0], []), (model[1], []), (model[2], [12, 12, 12])):
            loss_of(layer).backward()
            assert wire.sizes == sizes
    assert len(both.sums()) == 6


def test_what_a_parameter_has_of_earlier_batches_is_in_the_sum(wire: Wire, model: nn.Sequential) -> None:
    both = Exchange(TWO, model.parameters())
    loss_of(model).backward()
    assert wire.sizes == []
    with both:
        loss_of(model).backward()
    loss_of(model).backward()  # after it nothing listens any more
    assert len(wire.sizes) == 3
    whole, part = model[2].weight.grad, both.sums()[4]
    torch.testing.assert_close(part, whole * 4 / 3)


def test_parameters_without_a_gradient_are_left_out(wire: Wire, model: nn.Sequential) -> None:
    unused = nn.Parameter(torch.ones(2))
    parameters = [model[0].weight, unused, model[0].bias, model[1].weight, model[1].bias]
    with Exchange(TWO, parameters) as both:
        loss_of(model[:2]).backward()
    assert len(both.gradients) == 4
    for found, parameter in zip(both.sums(), [parameters[0], *parameters[2:]], strict=True):
        assert torch.equal(found, 2 * parameter.grad)


def test_alone_nothing_is_sent(wire: Wire, model: nn.Sequential) -> None:
    with Exchange(ALONE, model.parameters()) as alone:
        loss_of(model).backward()
    loss, *sums = alone.sums(torch.tensor(5.0))
    assert loss == 5
    assert all(found is parameter.grad for parameter, found in zip(model.parameters(), sums, strict=True))
    assert wire.sizes == []
