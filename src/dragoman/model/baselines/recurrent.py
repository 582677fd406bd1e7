"""A recurrent encoder-decoder with additive attention, of plain cells, GRUs or LSTMs.

Each encoder layer reads in both directions, with half of the width for each. From the second layer on there are
residual connections (https://arxiv.org/abs/1609.08144). The decoder's first layer reads the newest token and the last
context, and its new state is the query of the next context. So it runs step by step, in training too. The layers above
it read its states. The features are ``tanh(W_o [top state; context])`` (https://arxiv.org/abs/1508.04025, Eq. 5).
"""

from __future__ import annotations

from typing import NamedTuple, Self, cast

import torch
from torch import Tensor, nn

from dragoman.config import ModelConfig
from dragoman.model.attention import Record
from dragoman.model.baselines.additive_attention import AdditiveAttention
from dragoman.model.baselines.cells import Kind, Recurrence, State
from dragoman.model.baselines.embeddings import ends
from dragoman.model.dropout import Dropout


class RecurrentState(NamedTuple):
    """State of the decoder between steps."""

    layers: tuple[State, ...]
    context: Tensor  # (B, d_model): the last context
    keys: Tensor  # (B, S, d_model)
    memory: Tensor  # (B, S, d_model)
    src_mask: Tensor  # (B, S)

    def select(self, rows: Tensor) -> Self:
        """Return the state of ``rows`` (int64, any number, repeats allowed)."""
        layers = tuple(tuple(part.index_select(0, rows) for part in state) for state in self.layers)
        return type(self)(layers, *(part.index_select(0, rows) for part in self[1:]))


def reversed_rows(x: Tensor, lengths: Tensor) -> Tensor:
    """Reverse the first ``lengths`` positions of each row; padding stays where it is.

    Args:
        x: ``(B, L, width)``.
        lengths: ``(B,)`` int64.

    Returns:
        ``(B, L, width)``; reversing twice gives ``x`` again.
    """
    places = torch.arange(x.size(1), device=x.device).expand(x.size(0), -1)  # (B, L)
    mirrored = lengths[:, None] - 1 - places
    return x.gather(1, mirrored.where(mirrored >= 0, places)[..., None].expand_as(x))


class BothWays(nn.Module):
    """One bidirectional encoder layer: half of the width reads forwards, half backwards from the last token."""

    def __init__(self, kind: Kind, d_model: int) -> None:
        super().__init__()
        self.forwards = Recurrence(kind, d_model, d_model // 2)
        self.backwards = Recurrence(kind, d_model, d_model // 2)

    def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
        """Map ``x`` (B, S, d_model) to the same shape; ``lengths`` (B,) counts the tokens without padding."""
        zeros = x.new_zeros(x.size(0), x.size(2) // 2)
        forward_half, _ = self.forwards(x, self.forwards.started(zeros))
        backward_half, _ = self.backwards(reversed_rows(x, lengths), self.backwards.started(zeros))
        return torch.cat((forward_half, reversed_rows(backward_half, lengths)), dim=-1)


class Encoder(nn.Module):
    """A stack of bidirectional layers."""

    def __init__(self, kind: Kind, config: ModelConfig) -> None:
        super().__init__()
        self.layers = nn.ModuleList(BothWays(kind, config.d_model) for _ in range(config.n_encoder_layers))
        self.dropout = Dropout(config.dropout)

    def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
        """Map ``x`` (B, S, d_model) to the memory of the same shape."""
        for i, layer in enumerate(self.layers):
            y = self.dropout(layer(x, lengths))
            x = y if i == 0 else x + y
        return x


class AttentiveLayer(nn.Module):
    """The decoder's first layer: each new state attends to the memory, and the context enters the next state."""

    def __init__(self, kind: Kind, d_model: int) -> None:
        super().__init__()
        self.recurrence = Recurrence(kind, 2 * d_model, d_model)
        self.cross_attn = AdditiveAttention(d_model)

    def forward(
        self, x: Tensor, before: State, context: Tensor, keys: Tensor, memory: Tensor, mask: Tensor
    ) -> tuple[Tensor, Tensor, Tensor, State]:
        """Run along the tokens ``x`` (B, T, d_model), one step after another.

        ``before`` and ``context`` (B, d_model) are the state and the context before the first token; ``keys`` and
        ``memory`` are (B, S, d_model), ``mask`` (B, S).

        Returns:
            The states and the contexts of all steps, ``(B, T, d_model)`` each, the weights ``(B, T, S)``, and the last
            state.
        """
        w_x = self.recurrence.w_x
        of_token, of_context = torch.split(w_x.weight, x.size(2), dim=1)
        projected = nn.functional.linear(x, of_token, w_x.bias)  # for all steps at once
        state, steps = before, []
        for token in projected.unbind(dim=1):
            state = self.recurrence.cell(token + nn.functional.linear(context, of_context), state)
            context, weights = self.cross_attn(state[0], keys, memory, mask)
            steps.append((state[0], context, weights))
        states, contexts, all_weights = (torch.stack(parts, dim=1) for parts in zip(*steps, strict=True))
        return states, contexts, all_weights, state


class Decoder(nn.Module):
    """An attentive layer, and plain recurrent layers above it."""

    def __init__(self, kind: Kind, config: ModelConfig) -> None:
        super().__init__()
        d, n = config.d_model, config.n_decoder_layers
        above = (Recurrence(kind, d, d) for _ in range(n - 1))
        self.layers = nn.ModuleList([AttentiveLayer(kind, d), *above])
        self.starts = nn.ModuleList(nn.Linear(d, d) for _ in range(n))
        self.w_o = nn.Linear(2 * d, d)
        self.dropout = Dropout(config.dropout)
        for linear in (*self.starts, self.w_o):
            nn.init.xavier_uniform_(cast(nn.Linear, linear).weight)
            nn.init.zeros_(cast(nn.Linear, linear).bias)

    def start(self, memory: Tensor, src_mask: Tensor) -> RecurrentState:
        """Return the first state, from the memory at the first token, where half of it has read the whole source."""
        first = cast(AttentiveLayer, self.layers[0])
        cells = (first.recurrence, *(cast(Recurrence, layer) for layer in self.layers[1:]))
        begins = (torch.tanh(start(memory[:, 0])) for start in self.starts)
        states = tuple(cell.started(begin) for cell, begin in zip(cells, begins, strict=True))
        nothing = torch.zeros_like(memory[:, 0])
        return RecurrentState(states, nothing, first.cross_attn.keys(memory), memory, src_mask)

    def forward(self, x: Tensor, state: RecurrentState, record: Record | None) -> tuple[Tensor, RecurrentState]:
        """Run along the tokens ``x`` (B, T, d_model); return features of the same shape and the next state."""
        y, contexts, weights, first = self.layers[0](
            x, state.layers[0], state.context, state.keys, state.memory, state.src_mask
        )
        if record is not None:
            record("decoder.layers.0.cross_attn", weights[:, None])
        y, layers = self.dropout(y), [first]
        for layer, before in zip(self.layers[1:], state.layers[1:], strict=True):
            above, after = layer(y, before)
            y = y + self.dropout(above)
            layers.append(after)
        features = torch.tanh(self.w_o(torch.cat((y, contexts), dim=-1)))
        return self.dropout(features), state._replace(layers=tuple(layers), context=contexts[:, -1])


class RecurrentModel(nn.Module):
    """An encoder-decoder of recurrent layers, with the interface of ``Transformer``."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.config = config
        kind = cast(Kind, config.architecture)
        self.src_embed, self.tgt_embed, self.generator = ends(config)
        self.encoder = Encoder(kind, config)
        self.decoder = Decoder(kind, config)
        self.dropout = Dropout(config.dropout)

    def forward(self, src: Tensor, tgt_in: Tensor, record: Record | None = None) -> Tensor:
        """Return logits ``(B, T, V)``, as ``Transformer.forward``.

        ``record`` receives the weights ``(B, 1, T, S)`` of cross-attention under its module path.
        """
        return self.generator(self.features(src, tgt_in, record))

    def features(self, src: Tensor, tgt_in: Tensor, record: Record | None = None) -> Tensor:
        """Return the decoder's output ``(B, T, d_model)``, before the generator; arguments as in ``forward``."""
        return self.decoder(self.dropout(self.tgt_embed(tgt_in)), self.start(src), record)[0]

    def start(self, src: Tensor) -> RecurrentState:
        """Encode the sources ``src`` (B, S) and return the state before the first token."""
        mask = src != self.config.pad_id  # (B, S)
        memory = self.encoder(self.dropout(self.src_embed(src)), mask.sum(dim=1))
        return self.decoder.start(memory, mask)

    def step(
        self, state: RecurrentState, last_ids: Tensor, record: Record | None = None
    ) -> tuple[Tensor, RecurrentState]:
        """Append one token (B,) to each row; return the logits ``(B, V)`` of the next token, and the next state."""
        features, state = self.decoder(self.dropout(self.tgt_embed(last_ids[:, None])), state, record)
        return self.generator(features[:, 0]), state
