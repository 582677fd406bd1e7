"""Recurrent cells, each as its equations, and a layer that runs a cell along a sequence.

The input ``x`` of a cell is already multiplied by the input weights, with the bias added. That product does not depend
on the state, so a layer computes it for all positions at once. A step then only multiplies the previous state.
"""

from __future__ import annotations

from typing import Any, Literal, cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F

Kind = Literal["rnn", "gru", "lstm"]

GATES: dict[Kind, int] = {"rnn": 1, "gru": 3, "lstm": 4}
"""Number of weight matrices of a cell: one for each gate and for the candidate."""

State = tuple[Tensor, ...]
"""``(h,)``, or ``(h, c)`` of an LSTM, each ``(B, width)``; ``h`` is the output of the cell."""


def rnn_cell(x: Tensor, h: Tensor, w_h: Tensor) -> Tensor:
    """Compute a step of the plain cell (Elman, 1990): ``h_t = tanh(W_xh x_t + b + W_hh h_{t-1})``.

    Args:
        x: ``W_xh x_t + b``, ``(B, width)``.
        h: The previous state, ``(B, width)``.
        w_h: ``W_hh``, ``(width, width)``.

    Returns:
        The next ``h``.
    """
    return torch.tanh(x + F.linear(h, w_h))


def gru_cell(x: Tensor, h: Tensor, w_h: Tensor) -> Tensor:
    """Compute a step of a gated recurrent unit: ``h_t = (1 - z) n + z h_{t-1}`` (https://arxiv.org/abs/1406.1078).

    Differs from that paper: the reset gate acts on ``W h``, not on ``h``, as in cuDNN and torch. So ``W h`` is one
    product for all gates.

    Args:
        x: ``(B, 3 * width)``: reset gate r, update gate z, candidate n.
        h: The previous state, ``(B, width)``.
        w_h: ``(3 * width, width)``.

    Returns:
        The next ``h``.
    """
    x_r, x_z, x_n = x.chunk(3, dim=-1)
    h_r, h_z, h_n = F.linear(h, w_h).chunk(3, dim=-1)
    r, z = torch.sigmoid(x_r + h_r), torch.sigmoid(x_z + h_z)
    n = torch.tanh(x_n + r * h_n)
    return (1 - z) * n + z * h


def lstm_cell(x: Tensor, h: Tensor, c: Tensor, w_h: Tensor) -> tuple[Tensor, Tensor]:
    """Compute a step of an LSTM with a forget gate (Gers et al., 2000).

    ``c_t = f c_{t-1} + i g`` and ``h_t = o tanh(c_t)``.

    Args:
        x: ``(B, 4 * width)``: input gate i, forget gate f, candidate g, output gate o.
        h, c: The previous state, ``(B, width)`` each.
        w_h: ``(4 * width, width)``.

    Returns:
        The next ``h`` and ``c``.
    """
    i, f, g, o = (x + F.linear(h, w_h)).chunk(4, dim=-1)
    c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
    return torch.sigmoid(o) * torch.tanh(c), c


class Recurrence(nn.Module):
    """One recurrent layer in one direction.

    At first ``w_h`` is orthogonal for each gate, so that it neither enlarges nor shrinks the state. ``w_x`` is Xavier
    uniform. An LSTM's forget gate has bias 1 (https://proceedings.mlr.press/v37/jozefowicz15.html).
    """

    def __init__(self, kind: Kind, d_in: int, width: int) -> None:
        super().__init__()
        self.kind, self.width = kind, width
        self.w_x = nn.Linear(d_in, GATES[kind] * width)
        self.w_h = nn.Linear(width, GATES[kind] * width, bias=False)
        self.initialise()

    @torch.no_grad()
    def initialise(self) -> None:
        """Initialise the weights as described at the class."""
        for gate in self.w_h.weight.chunk(GATES[self.kind]):
            nn.init.orthogonal_(gate)
        for gate in self.w_x.weight.chunk(GATES[self.kind]):
            nn.init.xavier_uniform_(gate)
        nn.init.zeros_(self.w_x.bias)
        if self.kind == "lstm":
            nn.init.ones_(self.w_x.bias[self.width : 2 * self.width])

    def started(self, h: Tensor) -> State:
        """Return a state that begins with ``h`` (B, width); an LSTM's ``c`` is zero."""
        return (h, torch.zeros_like(h)) if self.kind == "lstm" else (h,)

    def cell(self, x: Tensor, state: State) -> State:
        """Compute one step; ``x`` is ``w_x`` of the input, ``(B, gates * width)``."""
        if self.kind == "lstm":
            return lstm_cell(x, state[0], state[1], self.w_h.weight)
        return ((rnn_cell if self.kind == "rnn" else gru_cell)(x, state[0], self.w_h.weight),)

    def forward(self, x: Tensor, state: State) -> tuple[Tensor, State]:
        """Run along ``x`` (B, L, d_in) from ``state``; return every ``h``, ``(B, L, width)``, and the last state."""
        if x.size(1) > 1:
            return recurrence(self.kind, x, state, self.w_x.weight, self.w_x.bias, self.w_h.weight)
        return self.steps(x, state)

    def steps(self, x: Tensor, state: State) -> tuple[Tensor, State]:
        """Compute ``forward`` cell by cell: the plain version that ``recurrence`` is compared with."""
        states = []
        for projected in cast(Tensor, self.w_x(x)).unbind(dim=1):
            state = self.cell(projected, state)
            states.append(state[0])
        return torch.stack(states, dim=1), state


def recurrence(
    kind: str, x: Tensor, state: tuple[Tensor, ...], w_x: Tensor, bias: Tensor, w_h: Tensor
) -> tuple[Tensor, tuple[Tensor, ...]]:
    """Compute ``Recurrence.steps`` in one call of torch, several times as fast in bf16 and on a GPU.

    Args:
        kind: ``rnn``, ``gru`` or ``lstm``; the order of the gates is torch's.
        x: ``(B, L, d_in)``.
        state: ``(h,)`` or ``(h, c)``, each ``(B, width)``.
        w_x: ``(gates * width, d_in)``.
        bias: ``(gates * width,)``.
        w_h: ``(gates * width, width)``.

    Returns:
        ``(B, L, width)`` and the last state; under autocast in its dtype.
    """
    kernel: Any = {"rnn": torch.rnn_tanh, "gru": torch.gru, "lstm": torch.lstm}[kind]
    device = x.device.type
    dtype = torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else w_x.dtype
    weights = [weight.to(dtype) for weight in (w_x, w_h, bias, torch.zeros_like(bias))]
    before = tuple(part.to(dtype)[None] for part in state)
    begin = before if kind == "lstm" else before[0]
    # (biases: yes, layers: 1, dropout: 0, training: yes, both directions: no, batch first: yes)
    outputs, *after = kernel(x.to(dtype), begin, weights, True, 1, 0.0, True, False, True)
    return outputs, tuple(part[0] for part in after)
