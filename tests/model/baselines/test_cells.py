"""The recurrent cells against their equations in NumPy, and the kernel against the cells."""

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from dragoman.model.baselines.cells import GATES, Kind, Recurrence, recurrence

Array = NDArray[np.float64]
KINDS: tuple[Kind, ...] = ("rnn", "gru", "lstm")
B, L, D_IN, WIDTH = 3, 5, 7, 11


def sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def by_hand(kind: Kind, x: Array, state: list[Array], w_x: Array, b: Array, w_h: Array) -> list[Array]:
    """One step, gate by gate; ``x`` (B, d_in)."""
    n = state[0].shape[1]

    def part(k: int, reset: Array | float = 1.0) -> Array:
        rows = slice(k * n, (k + 1) * n)
        return x @ w_x[rows].T + b[rows] + reset * (state[0] @ w_h[rows].T)

    if kind == "rnn":
        return [np.tanh(part(0))]
    if kind == "gru":
        r, z = sigmoid(part(0)), sigmoid(part(1))
        return [(1 - z) * np.tanh(part(2, r)) + z * state[0]]
    i, f, g, o = sigmoid(part(0)), sigmoid(part(1)), np.tanh(part(2)), sigmoid(part(3))
    c = f * state[1] + i * g
    return [o * np.tanh(c), c]


def a_layer(kind: Kind) -> tuple[Recurrence, torch.Tensor, tuple[torch.Tensor, ...]]:
    """A layer with biases that are not 0, an input, and a state to begin with."""
    gen = torch.Generator().manual_seed(3)
    layer = Recurrence(kind, D_IN, WIDTH).double()
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=gen, dtype=torch.float64) / 2)
    x = torch.randn(B, L, D_IN, generator=gen, dtype=torch.float64)
    n_parts = len(layer.started(x[:, 0, :1]))
    state = tuple(torch.randn(B, WIDTH, generator=gen, dtype=torch.float64) for _ in range(n_parts))
    return layer, x, state


@pytest.mark.parametrize("kind", KINDS)
def test_each_step_is_that_of_the_equations(kind: Kind) -> None:
    layer, x, state = a_layer(kind)
    weights = [w.detach().numpy() for w in (layer.w_x.weight, layer.w_x.bias, layer.w_h.weight)]
    want = [part.numpy() for part in state]
    with torch.no_grad():
        found, last = layer.steps(x, state)
    for t in range(L):
        want = by_hand(kind, x[:, t].numpy(), want, *weights)
        np.testing.assert_allclose(found[:, t].numpy(), want[0], rtol=0, atol=1e-13)
    for got, part in zip(last, want, strict=True):
        np.testing.assert_allclose(got.numpy(), part, rtol=0, atol=1e-13)


@pytest.mark.parametrize("kind", KINDS)
def test_the_kernel_gives_what_the_cells_give_and_their_gradients(kind: Kind) -> None:
    layer, x, state = a_layer(kind)
    x.requires_grad_()
    found = []
    for run in (layer.forward, layer.steps):
        outs, last = run(x, state)
        loss = (outs * torch.linspace(-1, 2, WIDTH)).sum() + sum(part.square().sum() for part in last)
        grads = torch.autograd.grad(loss, [x, *layer.parameters()])
        found.append([outs, *last, *grads])
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-11)


@pytest.mark.parametrize("kind", KINDS)
def test_the_kernel_follows_autocast(kind: Kind) -> None:
    layer, x, state = a_layer(kind)
    layer, x, state = layer.float(), x.float(), tuple(part.float() for part in state)
    exact, _ = layer.steps(x, state)
    with torch.autocast("cpu", torch.bfloat16):
        outs, _ = recurrence(kind, x, state, layer.w_x.weight, layer.w_x.bias, layer.w_h.weight)
    assert outs.dtype == torch.bfloat16
    torch.testing.assert_close(outs.float(), exact, rtol=0, atol=0.05)


@pytest.mark.parametrize("kind", KINDS)
def test_at_first_the_state_neither_grows_nor_fades_by_its_own_weights(kind: Kind) -> None:
    layer = Recurrence(kind, D_IN, WIDTH)
    for gate in layer.w_h.weight.detach().chunk(GATES[kind]):
        torch.testing.assert_close(gate @ gate.T, torch.eye(WIDTH))
    forget = layer.w_x.bias.detach()[WIDTH : 2 * WIDTH]
    assert (forget == (1.0 if kind == "lstm" else 0.0)).all()
