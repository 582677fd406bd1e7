"""The optimised implementation of a Transformer's ``start``, ``step`` and ``select``: the same logits, faster.

    engine = FastTransformer(model, "fp32")
    state = engine.start(src)                             # src (B, S): one beam a sentence
    logits, state = engine.step(state, last_ids)          # (rows,) -> (rows, V)
    state = state.select(rows)                            # choose the beams that survive

The plain ``Transformer`` does the same in the paper's order, and tests compare the two. The differences:

- Weights are prepared once. Queries, keys and values are one product; so are the memory's keys and values.
- The memory's keys and values are stored once for each sentence, not once for each beam.
- Self-attention's keys and values stay where they were written. A step adds K *slots* to each sentence, one for each
  beam, and ``beam_bias`` says which slots each beam descends from. Choosing other beams changes ``beam_bias`` alone.

One sentence (G = 1) with K = 3 beams after two steps and a ``select``, for each layer and head. The slot of bos, which
all beams read, is left out:

    step                   1        2
    beam when written    0  1  2  0  1  2
    slot                 0  1  2  3  4  5  6 ... capacity
                        +--+--+--+--+--+--+-----
    keys (d_k, n)       |a |b |c |d |e |f | free          d was written by a beam that descended from a,
    values (n, d_v)     |a |b |c |d |e |f | free          e and f by beams that descended from b
                        +--+--+--+--+--+--+-----
    beam_bias  beam 0    0  -  -  0  -  -  - ...          beam 0 reads "a d"
    (K, n)     beam 1    -  0  -  -  0  -  - ...          beam 1 reads "b e"       0: added to the score
               beam 2    -  0  -  -  -  0  - ...          beam 2 reads "b f"       -: minus infinity is added

``select([1, 1, 2])`` makes the rows of ``beam_bias`` "b e", "b e" and "b f". The next step writes slots 6, 7 and 8.
Nobody reads slots 0, 2 and 3 any more: they are left out when the buffers are full and are copied to larger ones.

What is stored for G sentences, for each layer:

    buffers.layers   keys (G * H, d_k, capacity), values (G * H, capacity, d_v)
    memory           keys (G * H, d_k, S), values (G * H, S, d_v)

and once for all layers: ``beam_bias`` (G, K, capacity) and ``src_bias`` (G * H, 1, S).
"""

from __future__ import annotations

import copy
import math
from typing import NamedTuple, Self, cast

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from dragoman.errors import ConfigError
from dragoman.fast import LEAST_SOURCE
from dragoman.fast.linear import Product, prepared
from dragoman.fast.private_ops import version
from dragoman.model.embedding import LearnedPositions, positions, rotate, sinusoids
from dragoman.model.feed_forward import activate
from dragoman.model.layers import DecoderLayer, EncoderLayer
from dragoman.model.masks import read_tokens
from dragoman.model.transformer import NO_DECODER, Transformer
from dragoman.options import not_among

SOURCES = 32
"""Sources are padded to a multiple of this number of bytes: 8 float32 or 16 bfloat16.

oneDNN compiles a kernel for each new length, so there should be few. Softmax of bfloat16 is slow for lengths that are
not multiples of 16."""

STEPS = 12
"""Number of steps for which free slots are allocated at a time."""

SLOTS = 32
"""The number of slots of a buffer, and of those read in a step, is a multiple of this."""

FUSED_FROM = 256
"""Source length from which the encoder uses torch's fused attention, which never holds all weights."""

POSITIONS = 1024
"""Number of sinusoidal positions computed in advance."""

Pair = tuple[Tensor, Tensor]
"""Keys ``(G * H, d_k, n)`` and values ``(G * H, n, d_v)`` of G sentences."""


class Norm(NamedTuple):
    """The parameters of a layer norm."""

    weight: Tensor
    bias: Tensor
    eps: float

    def __call__(self, x: Tensor) -> Tensor:
        return F.layer_norm(x, self.weight.shape, self.weight, self.bias, self.eps)


class Layer(NamedTuple):
    """The prepared products and norms of a layer; cross-attention's are None in encoders and language models."""

    qkv: Product
    o: Product
    norm: Norm
    cross_q: Product | None
    cross_kv: Product | None
    cross_o: Product | None
    cross_norm: Norm | None
    hidden: Product  # w_1; for SwiGLU its gate behind it
    out: Product
    last_norm: Norm


class KeyValueBuffers:
    """Self-attention's keys and values of each layer, in buffers with free slots; the first ``n`` slots are written."""

    def __init__(self, layers: list[Pair], n: int) -> None:
        self.layers, self.n = layers, n

    def compacted(self, order: Tensor, n_heads: int, capacity: int) -> KeyValueBuffers:
        """Return a copy that holds the slots ``order`` (G, n) of each sentence, in buffers of ``capacity`` slots."""
        n_sentences, n = order.shape

        def move(pair: Pair) -> Pair:
            keys, values = (part.view(n_sentences, n_heads, *part.shape[1:]) for part in pair)
            new_keys = keys.new_zeros(n_sentences, n_heads, keys.size(2), capacity)
            new_keys[..., :n] = keys.gather(3, order[:, None, None].expand(-1, n_heads, keys.size(2), -1))
            # Values are copied by whole rows: index_select is faster than gather.
            starts = torch.arange(n_sentences * n_heads, device=order.device).view(n_sentences, n_heads, 1)
            rows = (starts * values.size(2) + order[:, None]).flatten()
            new_values = values.new_zeros(n_sentences * n_heads, capacity, values.size(3))
            new_values[:, :n] = pair[1].flatten(0, 1).index_select(0, rows).view(new_values[:, :n].shape)
            return new_keys.flatten(0, 1), new_values

        return KeyValueBuffers([move(pair) for pair in self.layers], n)


class State(NamedTuple):
    """State of the decoder between steps: G sentences with K beams each; row ``g * K + k`` is beam k of sentence g."""

    length: int  # tokens of each row so far
    buffers: KeyValueBuffers
    n: int  # slots written when this state was made; a later step of the same buffers may have written more
    beam_bias: Tensor  # (G, K, capacity): 0 for the slots that a beam descends from, else -inf
    memory: tuple[Pair, ...]  # cross-attention's keys and values of each layer, once for a sentence
    src_bias: Tensor | None  # (G * H, 1, S): 0 for source tokens, -inf for padding; None: no padding
    shortlist_bias: Tensor | None = (
        None  # (G, V): 0 for tokens of a sentence's shortlist, else -inf; None: no shortlist
    )

    def select(self, rows: Tensor) -> Self:
        """Return the state of ``rows`` (int64, any number, repeats allowed), in their order.

        If every sentence keeps K beams, only ``beam_bias`` changes and no keys or values are copied. Otherwise those of
        the remaining sentences are copied. If these keep unequal numbers of beams, each row becomes a sentence of its
        own.
        """
        n_sentences, k, capacity = self.beam_bias.shape
        sentences = rows.numpy(force=True) // k  # on the host: so few numbers are slower on a GPU
        beam_bias = self.beam_bias.flatten(0, 1).index_select(0, rows)
        if np.array_equal(sentences, np.arange(n_sentences).repeat(k)):
            return self._replace(beam_bias=beam_bias.view(n_sentences, k, capacity))
        begins = np.flatnonzero(np.diff(sentences, prepend=-1))
        new_k, remainder = divmod(len(sentences), max(len(begins), 1))
        if remainder or not np.array_equal(begins, np.arange(len(begins)) * new_k):
            begins, new_k = np.arange(len(sentences)), 1
        remaining = torch.from_numpy(sentences[begins]).to(rows.device)

        def pick(x: Tensor) -> Tensor:
            return x.view(n_sentences, len(x) // n_sentences, *x.shape[1:]).index_select(0, remaining).flatten(0, 1)

        return type(self)(
            self.length,
            KeyValueBuffers([(pick(keys), pick(values)) for keys, values in self.buffers.layers], self.n),
            self.n,
            beam_bias.view(len(begins), new_k, capacity),
            tuple((pick(keys), pick(values)) for keys, values in self.memory),
            None if self.src_bias is None else pick(self.src_bias),
            None if self.shortlist_bias is None else self.shortlist_bias.index_select(0, remaining),
        )


class FastTransformer:
    """A ``Transformer`` prepared for decoding, with ``start`` and ``step``, for weights that do not change.

    Most weights are copied, some are shared with the model. ``is_of`` checks that the model's have not changed since.
    """

    def __init__(self, model: Transformer, precision: str = "fp32") -> None:
        """Prepare the weights.

        Args:
            model: The model; it is not changed.
            precision: ``fp32`` computes in the dtype of the weights, and ``bf16`` in bfloat16.

        Raises:
            ConfigError: The model has no decoder, or the precision is another one.
        """
        self.config, self._versions = model.config, weight_versions(model)
        if not self.config.n_decoder_layers:
            raise ConfigError(NO_DECODER)
        weight = model.generator.weight
        dtypes = {"fp32": weight.dtype, "bf16": torch.bfloat16}
        if precision not in dtypes:
            raise not_among("precision", precision, tuple(dtypes))
        self.precision, self.device = precision, weight.device
        self.dtype = dtypes[precision]
        with torch.no_grad():
            self._encoder, self._src_embed = list[Layer](), torch.empty(0)
            if self.config.n_encoder_layers:
                self._encoder = [self._layer(cast(EncoderLayer, layer)) for layer in model.encoder.layers]
                self._src_embed = model.src_embed.weight.detach().to(self.dtype)
                self._encoder_norm = None if model.encoder.norm is None else self._norm(model.encoder.norm)
                self._src_positions = model.src_positions
            self._decoder = [self._layer(cast(DecoderLayer, layer)) for layer in model.decoder.layers]
            tied = self.config.share_embeddings == "all" and self.config.n_encoder_layers > 0
            self._tgt_embed = self._src_embed if tied else model.tgt_embed.weight.detach().to(self.dtype)
            self._decoder_norm = None if model.decoder.norm is None else self._norm(model.decoder.norm)
            self._tgt_positions = model.tgt_positions
            self._weight, self._bias = weight, model.generator.bias
            self._generator = prepared(weight, self._bias, precision)
            self._shortlist_bias: Tensor | None = None
            self._scale = model.tgt_embed.scale
        n_sinusoids = POSITIONS if self.config.positions == "sinusoidal" else 0
        self._sinusoids = sinusoids(0, n_sinusoids, self.config.d_model, self.device).to(self.dtype)

    def is_of(self, model: Transformer) -> bool:
        """Return True if this was prepared from ``model`` and no weight of it has been replaced or modified since."""
        return self._versions == weight_versions(model)

    def narrowed(self, ids: Tensor, own: Tensor) -> Self:
        """Return an engine for one batch of sources that knows part of the target vocabulary: token i is ``ids[i]``.

        Args:
            ids: ``(U,)``, the tokens that any sentence of the batch may use.
            own: ``(B, U)`` bool: the tokens that each sentence may use; the logits of the others are -inf.
        """
        narrow = copy.copy(self)
        with torch.no_grad():
            narrow._tgt_embed = self._tgt_embed[ids]
            bias = None if self._bias is None else self._bias[ids]
            narrow._generator = prepared(self._weight[ids], bias, self.precision)
            if not bool(own.all()):
                narrow._shortlist_bias = torch.zeros(own.shape, dtype=self.dtype, device=self.device)
                narrow._shortlist_bias.masked_fill_(~own, -torch.inf)
        return narrow

    def start(self, src: Tensor) -> State:
        """Encode the sources ``(B, S)`` and return the first state; a language model uses only the number of rows."""
        n, config = src.size(0), self.config
        memory: tuple[Pair, ...] = ()
        src_bias = None
        if config.n_encoder_layers:
            # Pad the sources to one of few lengths: see LEAST_SOURCE and SOURCES. Learned positions set a limit.
            multiple = SOURCES // self.dtype.itemsize
            length = max(LEAST_SOURCE, -(-src.size(1) // multiple) * multiple)
            if config.n_positions is not None:
                length = max(src.size(1), min(length, config.n_positions))
            src = F.pad(src, (0, length - src.size(1)), value=config.pad_id)
            is_padding = ~read_tokens(src, config)  # (B, S)
            if bool(is_padding.any()):
                src_bias = torch.zeros(is_padding.shape, dtype=self.dtype, device=src.device)
                src_bias = src_bias.masked_fill_(is_padding, -torch.inf)[:, None].repeat_interleave(
                    config.n_heads, dim=0
                )
            encoded = self._encode(src, src_bias)  # (B * S, d_model)
            memory = tuple(self._memory(layer, encoded, n) for layer in self._decoder)
        keys = torch.zeros(n * config.n_heads, config.head_d_k, 0, dtype=self.dtype, device=src.device)
        values = torch.zeros(n * config.n_heads, 0, config.head_d_v, dtype=self.dtype, device=src.device)
        beam_bias = torch.zeros(n, 1, 0, dtype=self.dtype, device=src.device)
        buffers = KeyValueBuffers([(keys, values)] * config.n_decoder_layers, 0)
        return State(0, buffers, 0, beam_bias, memory, src_bias, self._shortlist_bias)

    def step(self, state: State, last_ids: Tensor) -> tuple[Tensor, State]:
        """Append one token to each row and predict the next.

        Args:
            state: From ``start``, ``step`` or ``select``.
            last_ids: The newest token of each row, ``(G * K,)``; bos at first.

        Returns:
            Logits ``(G * K, V)`` in the engine's dtype, and the state of the longer rows.
        """
        buffers, beam_bias, n = self._with_free_slots(state)
        (n_sentences, k, capacity), h = beam_bias.shape, self.config.n_heads
        # The new slots n, n + 1, ... hold the new tokens of beam 0, 1, ...: each beam sees its own.
        beam_bias[..., n : n + k].diagonal(dim1=1, dim2=2).zero_()
        buffers.n = n + k
        n_read = min(capacity, -(-(n + k) // SLOTS) * SLOTS)
        head_bias = beam_bias[:, None, :, :n_read].expand(-1, h, -1, -1).reshape(-1, k, n_read)  # (G * H, K, n_read)
        # Inside a step the rows are beam by beam: the queries of a sentence and head are then a view of the product.
        ids = last_ids.view(n_sentences, k).T.flatten()
        x, angles = self._embed(ids, self._tgt_embed, self._tgt_positions, state.length, 1)  # (K * G, d_model)
        for i, layer in enumerate(self._decoder):
            qkv = layer.qkv(self._pre_norm(x, layer.norm)).view(k, n_sentences * h, -1).transpose(0, 1)
            q, new_k, new_v = self._parts(qkv, angles)
            keys, values = buffers.layers[i]
            keys[..., n : n + k], values[:, n : n + k] = new_k.mT, new_v
            context = self._attend(q, keys[..., :n_read], values[:, :n_read], head_bias)  # (G * H, K, d_v)
            x = self._post_norm(layer.o(context.transpose(0, 1).reshape(len(x), -1), plus=x), layer.norm)
            if layer.cross_q is not None:
                assert layer.cross_o is not None
                assert layer.cross_norm is not None
                q = layer.cross_q(self._pre_norm(x, layer.cross_norm)).view(k, n_sentences * h, -1).transpose(0, 1)
                context = self._attend(q, *state.memory[i], state.src_bias)
                x = layer.cross_o(context.transpose(0, 1).reshape(len(x), -1), plus=x)
                x = self._post_norm(x, layer.cross_norm)
            x = self._feed_forward(x, layer)
        x = x if self._decoder_norm is None else self._decoder_norm(x)
        logits = self._generator(x.view(k, n_sentences, -1).transpose(0, 1).reshape(x.shape))  # rows by sentence again
        if state.shortlist_bias is not None:
            logits.view(n_sentences, k, -1).add_(state.shortlist_bias[:, None])
        return logits, state._replace(length=state.length + 1, buffers=buffers, n=n + k, beam_bias=beam_bias)

    def _with_free_slots(self, state: State) -> tuple[KeyValueBuffers, Tensor, int]:
        """Return buffers with K free slots, a ``beam_bias`` of them that may be written to, and the slots in use."""
        buffers, beam_bias = state.buffers, state.beam_bias
        _, k, capacity = beam_bias.shape
        if buffers.n == state.n and state.n + k <= capacity:
            return buffers, beam_bias.clone(), state.n
        # The buffers are full, or another step from this state has written its own slots there. Copy the slots that a
        # beam still descends from, and leave out all others.
        in_use = (beam_bias == 0).any(dim=1)  # (G, capacity)
        n = int(in_use.sum(dim=1).max()) if in_use.numel() else 0
        order = in_use.to(torch.int8).sort(dim=1, descending=True, stable=True).indices[:, :n]
        capacity = -(-(n + STEPS * k) // SLOTS) * SLOTS
        beam_bias = beam_bias.gather(2, order[:, None].expand(-1, k, -1))
        beam_bias = F.pad(beam_bias, (0, capacity - n), value=-torch.inf)
        return buffers.compacted(order, self.config.n_heads, capacity), beam_bias, n

    def _encode(self, src: Tensor, src_bias: Tensor | None) -> Tensor:
        """Return the memory ``(B * S, d_model)`` of sources ``(B, S)``."""
        n, length = src.shape
        x, angles = self._embed(src.flatten(), self._src_embed, self._src_positions, 0, length)
        for layer in self._encoder:
            qkv = layer.qkv(self._pre_norm(x, layer.norm)).view(n, length, self.config.n_heads, -1).transpose(1, 2)
            q, k, v = self._parts(qkv, angles)  # (n, H, length, d)
            if length < FUSED_FROM:
                q, k, v = (contiguous_copy(part).flatten(0, 1) for part in (q, k.mT, v))
                context = self._attend(q, k, v, src_bias).view(n, -1, length, v.size(2))
            else:
                mask = None if src_bias is None else src_bias.view(n, -1, 1, length)[:, :1].to(q.dtype)
                context = F.scaled_dot_product_attention(q, k, v, mask)
            x = self._post_norm(layer.o(context.transpose(1, 2).reshape(len(x), -1), plus=x), layer.norm)
            x = self._feed_forward(x, layer)
        return x if self._encoder_norm is None else self._encoder_norm(x)

    def _memory(self, layer: Layer, encoded: Tensor, n: int) -> Pair:
        """Return cross-attention's keys and values of a layer, from the memory ``encoded`` (B * S, d_model)."""
        assert layer.cross_kv is not None
        keys_values = layer.cross_kv(encoded).view(n, encoded.size(0) // n, self.config.n_heads, -1).transpose(1, 2)
        k, v = torch.split(keys_values, [self.config.head_d_k, self.config.head_d_v], dim=3)
        return contiguous_copy(k.mT).flatten(0, 1), contiguous_copy(v).flatten(0, 1)

    def _parts(self, qkv: Tensor, angles: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
        """Split ``qkv`` (..., 2 d_k + d_v) into queries, keys and values; rotate queries and keys by ``angles``."""
        d_k, d_v = self.config.head_d_k, self.config.head_d_v
        q, k, v = torch.split(qkv, [d_k, d_k, d_v], dim=-1)
        return (q, k, v) if angles is None else (rotate(q, angles), rotate(k, angles), v)

    def _attend(self, q: Tensor, k: Tensor, v: Tensor, bias: Tensor | None) -> Tensor:
        """Return the attention ``(N, Q, d_v)`` of ``q`` (N, Q, d_k) to ``k`` (N, d_k, n) and ``v`` (N, n, d_v)."""
        scale = 1 / math.sqrt(q.size(2))
        if bias is None:
            scores = torch.bmm(q, k).mul_(scale)
        else:
            scores = torch.baddbmm(bias.expand(-1, q.size(1), -1), q, k, alpha=scale)
        return torch.bmm(scores.softmax(dim=-1), v)

    def _feed_forward(self, x: Tensor, layer: Layer) -> Tensor:
        y, activation = self._pre_norm(x, layer.last_norm), self.config.activation
        hidden = layer.hidden(y, relu=activation == "relu")
        if self.config.is_gated:
            hidden, gate = hidden.chunk(2, dim=1)
            hidden = activate(gate, activation) * hidden
        elif activation != "relu":
            hidden = activate(hidden, activation)
        return self._post_norm(layer.out(hidden, plus=x), layer.last_norm)

    def _pre_norm(self, x: Tensor, norm: Norm) -> Tensor:
        """Return the input of a sub-layer: ``norm(x)`` in a pre-norm model, else ``x``."""
        return norm(x) if self.config.norm == "pre" else x

    def _post_norm(self, x: Tensor, norm: Norm) -> Tensor:
        """Return the output of a sub-layer, given its residual sum: ``norm(x)`` in a post-norm model, else ``x``."""
        return x if self.config.norm == "pre" else norm(x)

    def _embed(
        self, ids: Tensor, table: Tensor, learned: LearnedPositions | None, start: int, length: int
    ) -> tuple[Tensor, Tensor | None]:
        """Return scaled embeddings with positions ``(rows, d_model)``, and rotary angles ``(length, d_k / 2)`` or None.

        Args:
            ids: ``(rows,)``: texts of ``length`` tokens one after the other.
            table: The embeddings, ``(V, d_model)``.
            learned: The learned positions, or None.
            start: Position of the first token of each text.
            length: Tokens of each text; 1 in decoding.
        """
        x = F.embedding(ids, table)
        angles: Tensor | None = None
        if start + length <= len(self._sinusoids):
            added: Tensor | None = self._sinusoids[start : start + length]
        else:
            added, angles = positions(self.config, learned, start, length, self.device)
        if added is None:
            return x * self._scale, angles
        x = torch.add(added.detach().to(self.dtype), x.view(-1, length, x.size(1)), alpha=self._scale)
        return x.flatten(0, 1), angles

    def _layer(self, layer: EncoderLayer | DecoderLayer) -> Layer:
        attention, cross = layer.self_attn, getattr(layer, "cross_attn", None)
        last_norm = self._norm(layer.norm2 if cross is None else cast(DecoderLayer, layer).norm3)
        feed_forward = layer.feed_forward
        hidden = [feed_forward.w_1] if feed_forward.w_3 is None else [feed_forward.w_1, feed_forward.w_3]
        return Layer(
            self._product(attention.w_q, attention.w_k, attention.w_v, n_heads=self.config.n_heads),
            self._product(attention.w_o),
            self._norm(layer.norm1),
            None if cross is None else self._product(cross.w_q),
            None if cross is None else self._product(cross.w_k, cross.w_v, n_heads=self.config.n_heads),
            None if cross is None else self._product(cross.w_o),
            None if cross is None else self._norm(layer.norm2),
            self._product(*hidden),
            self._product(feed_forward.w_2),
            last_norm,
        )

    def _product(self, *linears: nn.Linear, n_heads: int = 1) -> Product:
        """Prepare one product for several linear layers, side by side within each head."""

        def joined(parts: list[Tensor]) -> Tensor:
            if len(parts) == 1:
                return parts[0]
            heads = [part.view(n_heads, len(part) // n_heads, *part.shape[1:]) for part in parts]
            return torch.cat(heads, dim=1).flatten(0, 1)

        biases: list[Tensor] = [linear.bias for linear in linears if linear.bias is not None]
        bias = joined(biases) if biases else None
        return prepared(joined([linear.weight for linear in linears]), bias, self.precision)

    def _norm(self, norm: nn.LayerNorm | None) -> Norm:
        assert norm is not None
        return Norm(norm.weight.detach().to(self.dtype), norm.bias.detach().to(self.dtype), norm.eps)


def contiguous_copy(x: Tensor) -> Tensor:
    """Return a contiguous copy of ``x``."""
    return torch.empty(x.shape, dtype=x.dtype, device=x.device).copy_(x)


def weight_versions(model: nn.Module) -> list[tuple[int, float]]:
    """Return the address and version of each weight: different as soon as a weight is replaced or modified."""
    return [(weight.data_ptr(), version(weight)) for weight in model.parameters()]
