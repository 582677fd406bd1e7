"""A convolutional encoder-decoder with attention in each decoder layer, after ConvS2S.

Each layer reads a window of ``kernel_width`` positions; in the decoder these are the newest position and those before
it. One half of a layer's output gates the other half. A sum of two terms is multiplied by sqrt(1/2), which keeps its
variance.

Differs from ConvS2S (https://arxiv.org/abs/1705.03122): weights are not normalised. Attention is Eq. 1 with one head:
scores are divided by sqrt(d_model), and the context is not scaled. Embeddings and layers have the same width.
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
"""sqrt(1/2): times the sum of two independent terms of equal variance it keeps that variance."""


class ConvolutionalState(NamedTuple):
    """State of the decoder between steps; each layer needs only the last few positions."""

    length: int
    past: tuple[Tensor, ...]  # the last positions of each layer's input, (B, kernel_width - 1, d_model)
    keys: Tensor  # (B, S, d_model)
    values: Tensor  # (B, S, d_model)
    src_mask: Tensor  # (B, 1, 1, S)

    def select(self, rows: Tensor) -> Self:
        """Return the state of ``rows`` (int64, any number, repeats allowed)."""
        past = tuple(part.index_select(0, rows) for part in self.past)
        return type(self)(self.length, past, *(part.index_select(0, rows) for part in self[2:]))


class GatedConvolution(nn.Module):
    """A convolution written as a matrix product over windows; one half of its output gates the other (``glu``)."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.width = config.kernel_width
        self.w = nn.Linear(self.width * config.d_model, 2 * config.d_model)
        # A gate passes a quarter of the variance, and dropout has raised the variance of the input (appendix A).
        nn.init.normal_(self.w.weight, std=math.sqrt(4 * (1 - config.dropout) / (self.width * config.d_model)))
        nn.init.zeros_(self.w.bias)

    def forward(self, x: Tensor) -> Tensor:
        """Map ``x`` (B, L + kernel_width - 1, d_model) to one output for each window, ``(B, L, d_model)``."""
        n = x.size(1) - self.width + 1
        windows = torch.cat([x[:, i : i + n] for i in range(self.width)], dim=-1)  # (B, L, kernel_width * d_model)
        return F.glu(self.w(windows), dim=-1)


def _linear(config: ModelConfig) -> nn.Linear:
    """Return a projection that keeps the variance (appendix A)."""
    linear = nn.Linear(config.d_model, config.d_model)
    nn.init.normal_(linear.weight, std=config.d_model**-0.5)
    nn.init.zeros_(linear.bias)
    return linear


class Encoder(nn.Module):
    """Gated convolutions that read both sides; padding is set to zero before each, so that it has no influence."""

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
    """Attention of one decoder layer: the query is its output plus the newest token, the keys are the memory."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.w_q, self.w_o = _linear(config), _linear(config)

    def forward(self, y: Tensor, token: Tensor, keys: Tensor, values: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """Attend from ``y`` (B, T, d_model); return the same shape, and the weights ``(B, 1, T, S)``."""
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

        ``past`` holds the last positions of this layer's earlier input, ``(B, kernel_width - 1, d_model)``. ``token``
        holds the embeddings of the tokens, which are added to the queries.

        Returns:
            ``(B, T, d_model)``, and the ``past`` of the next positions.
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
        """Run all layers on the tokens ``x`` (B, T, d_model); return features of the same shape and the next state."""
        token, past = x, []
        for i, layer in enumerate(self.layers):
            x, window = layer(x, state.past[i], token, state, record, f"decoder.layers.{i}")
            past.append(window)
        after = state._replace(length=state.length + x.size(1), past=tuple(past))
        return self.dropout(self.w_o(x)), after


class ConvolutionalModel(nn.Module):
    """An encoder-decoder of gated convolutions, with the interface of ``Transformer``."""

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
        """Return logits ``(B, T, V)``, as ``Transformer.forward``.

        ``record`` receives the weights ``(B, 1, T, S)`` of each layer's attention under its module path.
        """
        return self.generator(self.features(src, tgt_in, record))

    def features(self, src: Tensor, tgt_in: Tensor, record: Record | None = None) -> Tensor:
        """Return the decoder's output ``(B, T, d_model)``, before the generator; arguments as in ``forward``."""
        return self._decode(tgt_in, self.start(src), record)[0]

    def start(self, src: Tensor) -> ConvolutionalState:
        """Encode the sources (B, S); values are the encoder's output plus the embeddings (section 3.3)."""
        x, mask = self._add_positions(self.src_embed(src), self.src_positions, 0), padding_mask(src, self.config.pad_id)
        keys = self.encoder(x, mask)
        nothing = keys.new_zeros(src.size(0), self.config.kernel_width - 1, self.config.d_model)
        return ConvolutionalState(0, (nothing,) * self.config.n_decoder_layers, keys, (keys + x) * HALF, mask)

    def step(
        self, state: ConvolutionalState, last_ids: Tensor, record: Record | None = None
    ) -> tuple[Tensor, ConvolutionalState]:
        """Append one token (B,) to each row; return the logits ``(B, V)`` of the next token, and the next state."""
        features, state = self._decode(last_ids[:, None], state, record)
        return self.generator(features[:, 0]), state

    def _decode(
        self, tgt_in: Tensor, state: ConvolutionalState, record: Record | None
    ) -> tuple[Tensor, ConvolutionalState]:
        x = self._add_positions(self.tgt_embed(tgt_in), self.tgt_positions, state.length)
        decoded: tuple[Tensor, ConvolutionalState] = self.decoder(x, state, record)
        return decoded

    def _add_positions(self, x: Tensor, learned: LearnedPositions | None, start: int) -> Tensor:
        """Add positions to the tokens ``x`` (B, L, d_model), the first of which has position ``start``."""
        added, _ = positions(self.config, learned, start, x.size(1), x.device)
        if added is None:
            raise unknown("model.positions", self.config.positions)
        return self.dropout(x + added.to(x.dtype))
