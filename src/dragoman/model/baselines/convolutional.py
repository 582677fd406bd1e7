"""A convolutional encoder-decoder with attention in each decoder layer.

It follows ConvS2S (https://arxiv.org/abs/1705.03122). Each layer looks at a window of ``kernel_width`` positions, in
the decoder at the newest and those before it; half of its output gates the other half. Sums of two are halved in
variance. Otherwise than there, weights are not normalised, attention is Eq. 1 with one head (scores over sqrt(d_model),
no factor on what is gathered), and one width serves for embeddings and layers alike.
"""

from __future__ import annotations

import math
from typing import NamedTuple, Self

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from dragoman.config import ModelConfig, unknown
from dragoman.model.attention import Record, attend
from dragoman.model.baselines.embeddings import ends
from dragoman.model.dropout import Dropout
from dragoman.model.embedding import LearnedPositions, learned_positions, positions
from dragoman.model.masks import padding_mask

HALF = math.sqrt(0.5)
"""Makes the sum of two as large as each."""


class ConvolutionalState(NamedTuple):
    """All that ``step`` needs to know of the rows it continues: of each layer only the last few positions."""

    length: int
    past: tuple[Tensor, ...]  # of each layer what its next window still sees, (B, kernel_width - 1, d_model)
    keys: Tensor  # (B, S, d_model)
    values: Tensor  # (B, S, d_model)
    src_mask: Tensor  # (B, 1, 1, S)

    def select(self, rows: Tensor) -> Self:
        """Keep ``rows`` (any length, repeats allowed), int64."""
        past = tuple(part.index_select(0, rows) for part in self.past)
        return type(self)(self.length, past, *(part.index_select(0, rows) for part in self[2:]))


class GatedConvolution(nn.Module):
    """A window goes through a matrix, and one half of what comes out gates the other (``glu``)."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.width = config.kernel_width
        self.w = nn.Linear(self.width * config.d_model, 2 * config.d_model)
        # a gate lets a quarter of the variance through, and dropout has raised what comes in (appendix A)
        nn.init.normal_(self.w.weight, std=math.sqrt(4 * (1 - config.dropout) / (self.width * config.d_model)))
        nn.init.zeros_(self.w.bias)

    def forward(self, x: Tensor) -> Tensor:
        """Map ``x`` (B, L + kernel_width - 1, d_model) to one output for each window, ``(B, L, d_model)``."""
        n = x.size(1) - self.width + 1
        windows = torch.cat([x[:, i : i + n] for i in range(self.width)], dim=-1)  # (B, L, kernel_width * d_model)
        return F.glu(self.w(windows), dim=-1)


def _linear(config: ModelConfig) -> nn.Linear:
    """A projection that keeps the variance (appendix A)."""
    linear = nn.Linear(config.d_model, config.d_model)
    nn.init.normal_(linear.weight, std=config.d_model**-0.5)
    nn.init.zeros_(linear.bias)
    return linear


class Encoder(nn.Module):
    """Gated convolutions that look to both sides; padding is zero in front of each, so that it never counts."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.layers = nn.ModuleList(GatedConvolution(config) for _ in range(config.n_encoder_layers))
        self.dropout = Dropout(config.dropout)
        self.w_o = _linear(config)
        self.side = config.kernel_width // 2

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """Map ``x`` (B, S, d_model) to the memory of the same shape; ``mask`` is (B, 1, 1, S)."""
        is_padding = ~mask[:, 0, 0, :, None]  # (B, S, 1)
        for layer in self.layers:
            seen = self.dropout(x).masked_fill(is_padding, 0.0)
            x = (x + layer(F.pad(seen, (0, 0, self.side, self.side)))) * HALF
        return self.w_o(x)


class CrossAttention(nn.Module):
    """Attention of one decoder layer: the query is its output and the newest token, the keys are the memory."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.w_q, self.w_o = _linear(config), _linear(config)

    def forward(self, y: Tensor, token: Tensor, keys: Tensor, values: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """Gather for ``y`` (B, T, d_model): the same shape, and the weights ``(B, 1, T, S)``."""
        query = (self.w_q(y) + token) * HALF
        context, weights = attend(query[:, None], keys[:, None], values[:, None], mask)
        return self.w_o(context[:, 0]), weights


class DecoderLayer(nn.Module):
    """A gated convolution over the past, and attention to the memory."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.convolution = GatedConvolution(config)
        self.cross_attn = CrossAttention(config)
        self.dropout = Dropout(config.dropout)

    def forward(
        self, x: Tensor, past: Tensor, token: Tensor, state: ConvolutionalState, record: Record | None, name: str
    ) -> tuple[Tensor, Tensor]:
        """Run the layer on the positions of ``x`` (B, T, d_model), which follow those of ``past``.

        Returns:
            ``(B, T, d_model)``, and what the next window still sees.
        """
        seen = torch.cat((past.to(x.dtype), self.dropout(x)), dim=1)
        y = self.convolution(seen)
        context, weights = self.cross_attn(y, token, state.keys, state.values, state.src_mask)
        if record is not None:
            record(f"{name}.cross_attn", weights)
        return (x + (y + context) * HALF) * HALF, seen[:, x.size(1) :]


class Decoder(nn.Module):
    """A stack of decoder layers."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.layers = nn.ModuleList(DecoderLayer(config) for _ in range(config.n_decoder_layers))
        self.w_o = _linear(config)
        self.dropout = Dropout(config.dropout)

    def forward(self, x: Tensor, state: ConvolutionalState, record: Record | None) -> tuple[Tensor, ConvolutionalState]:
        """Take the tokens ``x`` (B, T, d_model): features of the same shape, and the state after the last."""
        token, past = x, []
        for i, layer in enumerate(self.layers):
            x, kept = layer(x, state.past[i], token, state, record, f"decoder.layers.{i}")
            past.append(kept)
        after = state._replace(length=state.length + x.size(1), past=tuple(past))
        return self.dropout(self.w_o(x)), after


class ConvolutionalModel(nn.Module):
    """An encoder-decoder of gated convolutions; offers what ``Transformer`` offers."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.config = config
        self.src_embed, self.tgt_embed, self.generator = ends(config)
        self.src_positions, self.tgt_positions = learned_positions(config), learned_positions(config)
        for table in (self.src_positions, self.tgt_positions):
            if table is not None:
                nn.init.normal_(table.weight, std=config.d_model**-0.5)
        self.encoder, self.decoder = Encoder(config), Decoder(config)
        self.dropout = Dropout(config.dropout)

    def forward(self, src: Tensor, tgt_in: Tensor, record: Record | None = None) -> Tensor:
        """Predict each next target token.

        Args:
            src: ``(B, S)`` int64, padded on the right.
            tgt_in: Shifted target ids, ``(B, T)``, padded on the right.
            record: Receives the weights ``(B, 1, T, S)`` of each layer's attention under its module path.

        Returns:
            Logits ``(B, T, V)``.
        """
        return self.generator(self.features(src, tgt_in, record))

    def features(self, src: Tensor, tgt_in: Tensor, record: Record | None = None) -> Tensor:
        """As ``forward``, but before the generator: ``(B, T, d_model)``."""
        return self._decode(tgt_in, self.start(src), record)[0]

    def start(self, src: Tensor) -> ConvolutionalState:
        """Read the sources (B, S): keys are the encoder's output, values that and the embedding (section 3.3)."""
        x, mask = self._place(self.src_embed(src), self.src_positions, 0), padding_mask(src, self.config.pad_id)
        keys = self.encoder(x, mask)
        nothing = keys.new_zeros(src.size(0), self.config.kernel_width - 1, self.config.d_model)
        return ConvolutionalState(0, (nothing,) * self.config.n_decoder_layers, keys, (keys + x) * HALF, mask)

    def step(
        self, state: ConvolutionalState, last_ids: Tensor, record: Record | None = None
    ) -> tuple[Tensor, ConvolutionalState]:
        """Append one token (B,) to each row: logits ``(B, V)`` of the next, and the state of the longer rows."""
        features, state = self._decode(last_ids[:, None], state, record)
        return self.generator(features[:, 0]), state

    def _decode(
        self, tgt_in: Tensor, state: ConvolutionalState, record: Record | None
    ) -> tuple[Tensor, ConvolutionalState]:
        x = self._place(self.tgt_embed(tgt_in), self.tgt_positions, state.length)
        found: tuple[Tensor, ConvolutionalState] = self.decoder(x, state, record)
        return found

    def _place(self, x: Tensor, learned: LearnedPositions | None, start: int) -> Tensor:
        """Add positions to the tokens ``x`` (B, L, d_model), the first of which stands at ``start``."""
        added, _ = positions(self.config, learned, start, x.size(1), x.device)
        if added is None:
            raise unknown("model.positions", self.config.positions)
        return self.dropout(x + added.to(x.dtype))
