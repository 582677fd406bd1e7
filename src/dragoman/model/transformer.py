"""The complete model: two stacks, encode / decode / forward, and start / step / select for search.

Decoding works on one token at a time:

    state = model.start(src)                              # (B, S)
    logits, state = model.step(state, last_ids)           # (B,) -> (B, V)
    state = state.select(rows)                            # keep the rows that survive
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Self, cast

import torch
from torch import Tensor, nn

from dragoman.config import ModelConfig
from dragoman.errors import ConfigError
from dragoman.model.attention import KeysValues, Record
from dragoman.model.dropout import Dropout
from dragoman.model.embedding import LearnedPositions, TokenEmbedding, learned_positions, positions
from dragoman.model.layers import DecoderLayer, EncoderLayer
from dragoman.model.masks import source_mask, target_mask

NO_DECODER = "this model has no decoder (model.n_decoder_layers = 0): call encode(src)"


class DecoderState(NamedTuple):
    """State of the decoder between steps: ``B`` rows of ``length`` tokens each."""

    length: int
    past: tuple[KeysValues | None, ...]  # keys and values of each layer's self-attention
    memory: tuple[KeysValues | None, ...]  # keys and values of each layer's cross-attention, projected once
    src_mask: Tensor | None  # (B, 1, 1, S)

    def select(self, rows: Tensor) -> Self:
        """Return the state of ``rows`` (int64, any number, repeats allowed): surviving beams, unfinished sentences."""

        def pick(pair: KeysValues | None) -> KeysValues | None:
            return None if pair is None else (pair[0].index_select(0, rows), pair[1].index_select(0, rows))

        mask = None if self.src_mask is None else self.src_mask.index_select(0, rows)
        return type(self)(self.length, tuple(map(pick, self.past)), tuple(map(pick, self.memory)), mask)


class Encoder(nn.Module):
    """A stack of encoder layers; a pre-norm stack ends with one more norm."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.layers = nn.ModuleList(EncoderLayer(config) for _ in range(config.n_encoder_layers))
        self.norm = nn.LayerNorm(config.d_model, eps=config.norm_eps) if config.norm == "pre" else None

    def forward(self, x: Tensor, mask: Tensor | None, angles: Tensor | None, record: Record | None = None) -> Tensor:
        """Map ``x`` (B, S, d_model) to the memory of the same shape."""
        for i, layer in enumerate(self.layers):
            x = layer(x, mask, angles, record, f"encoder.layers.{i}")
        return x if self.norm is None else self.norm(x)


class Decoder(nn.Module):
    """A stack of decoder layers, with or without memory; a pre-norm stack ends with one more norm."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        with_memory = config.n_encoder_layers > 0
        self.layers = nn.ModuleList(DecoderLayer(config, with_memory) for _ in range(config.n_decoder_layers))
        self.norm = nn.LayerNorm(config.d_model, eps=config.norm_eps) if config.norm == "pre" else None

    def memory(self, memory: Tensor | None) -> tuple[KeysValues | None, ...]:
        """Return the keys and values of ``memory`` (B, S, d_model) for each layer's cross-attention."""
        if memory is None:
            return (None,) * len(self.layers)
        return tuple(cast(DecoderLayer, layer).memory(memory) for layer in self.layers)

    def forward(
        self,
        x: Tensor,
        past: Sequence[KeysValues | None],
        memory: Sequence[KeysValues | None],
        tgt_mask: Tensor | None,
        src_mask: Tensor | None,
        angles: Tensor | None,
        record: Record | None = None,
    ) -> tuple[Tensor, tuple[KeysValues | None, ...]]:
        """Run all layers on ``x`` (B, T, d_model); arguments and result as in ``DecoderLayer.forward``, one a layer."""
        grown = []
        for i, layer in enumerate(self.layers):
            x, new = layer(x, past[i], memory[i], tgt_mask, src_mask, angles, record, f"decoder.layers.{i}")
            grown.append(new)
        return (x if self.norm is None else self.norm(x)), tuple(grown)


class Transformer(nn.Module):
    """The encoder-decoder of "Attention Is All You Need" (https://arxiv.org/abs/1706.03762) and its common variants.

    With ``n_decoder_layers = 0`` it is an encoder alone (``encode``). With ``n_encoder_layers = 0`` it is a decoder
    without memory, a language model (``decode(tgt_in)``).

    Differs from the paper: the variants of ``ModelConfig``, and the initialisation, which the paper does not give.
    """

    def __init__(self, config: ModelConfig) -> None:
        if isinstance(config, str):
            raise ConfigError(
                f"config must be a ModelConfig, got {config!r}; Translator({config!r}) loads a trained model"
            )
        super().__init__()
        self.config = config
        if config.n_encoder_layers:
            self.src_embed = TokenEmbedding(config.src_vocab_size, config)
            self.src_positions = learned_positions(config)
            self.encoder = Encoder(config)
        if config.n_decoder_layers:
            self.tgt_embed = TokenEmbedding(config.tgt_vocab_size, config)
            self.tgt_positions = learned_positions(config)
            self.decoder = Decoder(config)
            self.generator = nn.Linear(config.d_model, config.tgt_vocab_size, bias=config.generator_bias)
            if config.n_encoder_layers and config.share_embeddings == "all":
                self.tgt_embed.weight = self.src_embed.weight
            if config.share_embeddings != "none":
                self.generator.weight = self.tgt_embed.weight
        self.dropout = Dropout(config.dropout)
        self.initialise()

    def __repr__(self) -> str:
        """Return one line; ``print(model.encoder)`` and ``print(model.decoder)`` show the modules."""
        c, n = self.config, sum(weight.numel() for weight in self.parameters())
        return (
            f"<Transformer: {c.n_encoder_layers} + {c.n_decoder_layers} layers, {c.d_model} wide, {c.n_heads} heads, "
            f"{c.norm}-norm, {c.positions} positions, {n:,} parameters>"
        )

    @torch.no_grad()
    def initialise(self) -> None:
        """Draw matrices Xavier uniform, embeddings N(0, d_model^-0.5); set biases and the row of padding to zero."""
        for name, parameter in self.named_parameters():  # a tied tensor comes once, under its first name
            if "embed" in name or "positions" in name:
                nn.init.normal_(parameter, std=self.config.d_model**-0.5)
            elif parameter.dim() > 1:
                nn.init.xavier_uniform_(parameter)
            elif name.endswith("bias"):
                nn.init.zeros_(parameter)
        for module in self.modules():
            if isinstance(module, TokenEmbedding):
                module.weight[self.config.pad_id] = 0.0

    def forward(self, src: Tensor | None, tgt_in: Tensor, record: Record | None = None) -> Tensor:
        """Predict each next target token.

        Args:
            src: Source ids, ``(B, S)`` int64, padded with ``pad_id``; None for a language model.
            tgt_in: Shifted target ids, ``(B, T)`` int64.
            record: Receives each attention's weights ``(B, H, Q, K)`` under its module path.

        Returns:
            Logits ``(B, T, V)``.
        """
        features = self.features(src, tgt_in, record)
        return self.generator(features)

    def features(self, src: Tensor | None, tgt_in: Tensor, record: Record | None = None) -> Tensor:
        """Return the decoder's output ``(B, T, d_model)``, from which training computes its loss; see ``forward``."""
        if src is None:
            return self._decode(tgt_in, None, None, record)
        src_mask = source_mask(src, self.config)
        return self._decode(tgt_in, self._encode(src, src_mask, record), src_mask, record)

    def encode(self, src: Tensor, record: Record | None = None) -> Tensor:
        """Encode the source ids ``(B, S)`` and return the memory ``(B, S, d_model)``."""
        return self._encode(src, source_mask(src, self.config), record)

    def decode(
        self,
        tgt_in: Tensor,
        memory: Tensor | None = None,
        src_mask: Tensor | None = None,
        record: Record | None = None,
    ) -> Tensor:
        """Predict each next target token from a memory.

        Args:
            tgt_in: Shifted target ids, ``(B, T)``.
            memory: From ``encode``, ``(B, S, d_model)``; None for a language model.
            src_mask: ``(B, 1, 1, S)``, true = may be attended to; None: all of the memory.
            record: Receives each attention's weights ``(B, H, Q, K)`` under its module path.

        Returns:
            Logits ``(B, T, V)``.
        """
        features = self._decode(tgt_in, memory, src_mask, record)
        return self.generator(features)

    def start(self, src: Tensor) -> DecoderState:
        """Encode ``src`` (B, S) and return the first state; for a language model only its number of rows matters."""
        n_layers = self.config.n_decoder_layers
        if not n_layers:
            raise ConfigError(NO_DECODER)
        if not self.config.n_encoder_layers:
            return DecoderState(0, (None,) * n_layers, (None,) * n_layers, None)
        return DecoderState(0, (None,) * n_layers, self.decoder.memory(self.encode(src)), source_mask(src, self.config))

    def step(self, state: DecoderState, last_ids: Tensor, record: Record | None = None) -> tuple[Tensor, DecoderState]:
        """Append one token to each row and predict the next.

        Args:
            state: From ``start``, ``step`` or ``select``.
            last_ids: The newest token of each row, ``(B,)``; bos at first.
            record: Receives each attention's weights ``(B, H, 1, K)`` under its module path.

        Returns:
            Logits ``(B, V)`` and the state of the longer rows.
        """
        x, angles = self._embed_tgt(last_ids[:, None], state.length)  # (B, 1, d_model)
        x, past = self.decoder(x, state.past, state.memory, None, state.src_mask, angles, record)
        return self.generator(x[:, 0]), DecoderState(state.length + 1, past, state.memory, state.src_mask)

    def _encode(self, src: Tensor, src_mask: Tensor, record: Record | None) -> Tensor:
        if not self.config.n_encoder_layers:
            raise ConfigError("this model has no encoder (model.n_encoder_layers = 0): call decode(tgt_in)")
        x, angles = self.add_positions(self.src_embed(src), self.src_positions, 0)
        return self.encoder(x, src_mask, angles, record)

    def _decode(self, tgt_in: Tensor, memory: Tensor | None, src_mask: Tensor | None, record: Record | None) -> Tensor:
        if not self.config.n_decoder_layers:
            raise ConfigError(NO_DECODER)
        if (memory is None) != (self.config.n_encoder_layers == 0):
            raise ConfigError("an encoder-decoder needs its memory, and a language model has none")
        x, angles = self._embed_tgt(tgt_in, 0)
        past: tuple[None, ...] = (None,) * self.config.n_decoder_layers
        tgt_mask = target_mask(tgt_in, self.config.pad_id)
        return self.decoder(x, past, self.decoder.memory(memory), tgt_mask, src_mask, angles, record)[0]

    def _embed_tgt(self, ids: Tensor, start: int) -> tuple[Tensor, Tensor | None]:
        return self.add_positions(self.tgt_embed(ids), self.tgt_positions, start)

    def add_positions(self, x: Tensor, learned: LearnedPositions | None, start: int) -> tuple[Tensor, Tensor | None]:
        """Add positions to the embeddings ``x`` (B, L, d_model), and apply dropout to the sum (section 5.4).

        Args:
            x: ``(B, L, d_model)``, scaled.
            learned: The learned positions of this side, or None.
            start: Position of the first token of ``x``.

        Returns:
            ``(B, L, d_model)``, and the angles of rotary positions or None; these add nothing to ``x``.
        """
        added, angles = positions(self.config, learned, start, x.size(1), x.device)
        return self.dropout(x if added is None else x + added.to(x.dtype)), angles
