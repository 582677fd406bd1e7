"""The fast twin of a Transformer's ``start``, ``step`` and ``select``: the same logits, sooner.

What it does otherwise than the model, which says the same in the paper's order and is what this is held to:

- Weights are prepared once: queries, keys and values in one product, the memory's keys and values in one, head by head.
- The memory's keys and values are kept once for a sentence, not once for a beam: a sentence's ``K`` beams are the rows
  of queries that look at them. Within a step the first beams of all sentences stand before the second ones, so that
  the queries of a sentence and head are a view of the product that made them, not a copy.
- Self-attention's keys and values, once written, stay where they are. Each step adds K *cells* to a sentence, one for
  each beam, and ``unseen`` says which cells each beam does not descend from. Choosing other beams changes that alone.
- Cells lie in buffers with room for some steps to come, of which as much is read as is written. When one is full, cells
  that no beam sees any more are left out, and there is room again, or a larger buffer.
"""

from __future__ import annotations

import copy
import math
from typing import NamedTuple, Self, cast

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from dragoman.device import check_precision
from dragoman.errors import ConfigError
from dragoman.fast.linear import Product, prepared
from dragoman.fast.private_ops import version
from dragoman.model.embedding import LearnedPositions, positions, rotate, sinusoids
from dragoman.model.feed_forward import activate
from dragoman.model.layers import DecoderLayer, EncoderLayer
from dragoman.model.masks import read_tokens
from dragoman.model.transformer import NO_DECODER, Transformer

LEAST_SOURCE = 16
"""Shorter sources are padded to this number of tokens: softmax of fewer is many times slower on a CPU."""

SOURCES = 32
"""Bytes: sources are padded to multiples of 8 float32 or 16 bfloat16. There are few lengths then, for each of which
oneDNN compiles a kernel; and softmax of bfloat16 is slow for 8 more than a multiple of 16."""

STEPS = 12
"""Steps that room is made for at a time."""

ROOM = 32
"""Rooms, and as much of them as is read, are multiples of this."""

FUSED_FROM = 256
"""From this source length on the encoder never holds all weights of an attention."""

POSITIONS = 1024
"""Positions whose sinusoids are made once."""

Pair = tuple[Tensor, Tensor]
"""Keys ``(G * H, d_k, n)`` and values ``(G * H, n, d_v)`` of G sentences."""


class Norm(NamedTuple):
    """A layer norm's parameters."""

    weight: Tensor
    bias: Tensor
    eps: float

    def __call__(self, x: Tensor) -> Tensor:
        return F.layer_norm(x, self.weight.shape, self.weight, self.bias, self.eps)


class Layer(NamedTuple):
    """A layer's products and norms; an encoder's, and that of a language model, has no cross-attention."""

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


class Cells:
    """Each layer's keys and values of the tokens so far, in buffers with room for more; ``n`` cells are written."""

    def __init__(self, layers: list[Pair], n: int) -> None:
        self.layers, self.n = layers, n

    def moved(self, order: Tensor, n_heads: int, room: int) -> Cells:
        """A copy of the cells ``order`` (G, n) of each sentence, in buffers of ``room``."""
        n_sentences, n = order.shape

        def move(pair: Pair) -> Pair:
            keys, values = (each.view(n_sentences, n_heads, *each.shape[1:]) for each in pair)
            new_keys = keys.new_zeros(n_sentences, n_heads, keys.size(2), room)
            new_keys[..., :n] = keys.gather(3, order[:, None, None].expand(-1, n_heads, keys.size(2), -1))
            # whole rows one after the other are copied faster than they are gathered
            starts = torch.arange(n_sentences * n_heads, device=order.device).view(n_sentences, n_heads, 1)
            rows = (starts * values.size(2) + order[:, None]).flatten()
            new_values = values.new_zeros(n_sentences * n_heads, room, values.size(3))
            new_values[:, :n] = pair[1].flatten(0, 1).index_select(0, rows).view(new_values[:, :n].shape)
            return new_keys.flatten(0, 1), new_values

        return Cells([move(pair) for pair in self.layers], n)


class State(NamedTuple):
    """What ``step`` continues: G sentences of K rows each, the rows of a sentence one after the other."""

    length: int  # tokens so far
    cells: Cells
    n: int  # cells that are this state's; another may have gone on from it, and written more
    unseen: Tensor  # (G, K, room): 0 for the cells that each row descends from, else -inf
    memory: tuple[Pair, ...]  # of each layer
    hidden: Tensor | None  # (G * H, 1, S): -inf where the source is not read, else 0; None: all is
    closed: Tensor | None = None  # (G, V): -inf for tokens outside a sentence's shortlist, else 0; None: no shortlist

    def select(self, rows: Tensor) -> Self:
        """Keep ``rows`` (any length, repeats allowed), int64; where each sentence keeps K, no keys are copied."""
        n_sentences, k, room = self.unseen.shape
        owners = rows.numpy(force=True) // k  # so few numbers are no work for tensors
        unseen = self.unseen.flatten(0, 1).index_select(0, rows)
        if np.array_equal(owners, np.arange(n_sentences).repeat(k)):
            return self._replace(unseen=unseen.view(n_sentences, k, room))
        begins = np.flatnonzero(np.diff(owners, prepend=-1))
        each, rest = divmod(len(owners), max(len(begins), 1))
        if rest or not np.array_equal(begins, np.arange(len(begins)) * each):
            begins, each = np.arange(len(owners)), 1  # each row for itself
        kept = torch.from_numpy(owners[begins]).to(rows.device)

        def pick(x: Tensor) -> Tensor:
            return x.view(n_sentences, len(x) // n_sentences, *x.shape[1:]).index_select(0, kept).flatten(0, 1)

        return type(self)(
            self.length, Cells([(pick(keys), pick(values)) for keys, values in self.cells.layers], self.n), self.n,
            unseen.view(len(begins), each, room), tuple((pick(keys), pick(values)) for keys, values in self.memory),
            None if self.hidden is None else pick(self.hidden),
            None if self.closed is None else self.closed.index_select(0, kept),
        )  # fmt: skip


class FastTransformer:
    """Offers ``start`` and ``step`` as a ``Transformer`` does, for weights that stay as they are.

    Most of them it copies, some it shares with the model; ``is_of`` says whether they have changed since.
    """

    def __init__(self, model: Transformer, precision: str = "fp32") -> None:
        """Prepare the weights.

        Args:
            model: Stays as it is.
            precision: ``fp32`` computes in the dtype of the weights; ``bf16`` in bfloat16; ``int8`` rounds
                weights, and inputs of products, to 8 bits, and computes all else in float32.

        Raises:
            ConfigError: The model has no decoder, or this machine lacks the precision.
        """
        self.config, self._versions = model.config, weight_versions(model)
        if not self.config.n_decoder_layers:
            raise ConfigError(NO_DECODER)
        weight = model.generator.weight
        check_precision(precision, weight.device)
        self.precision, self.device = precision, weight.device
        self.dtype = {"fp32": weight.dtype, "bf16": torch.bfloat16, "int8": torch.float32}[precision]
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
            self._generator, self._closed = prepared(weight, self._bias, precision), cast(Tensor | None, None)
            self._scale = model.tgt_embed.scale
        made = POSITIONS if self.config.positions == "sinusoidal" else 0  # the others are at hand, or nothing is added
        self._sinusoids = sinusoids(0, made, self.config.d_model, self.device).to(self.dtype)

    def is_of(self, model: Transformer) -> bool:
        """Whether these are the model's weights as they are now, as far as torch counts their changes."""
        return self._versions == weight_versions(model)

    def narrowed(self, ids: Tensor, own: Tensor) -> Self:
        """The same for one batch of sources, with a part of the target vocabulary: token i is ``ids[i]``.

        Args:
            ids: ``(U,)``.
            own: ``(B, U)`` bool: which of them may come in each sentence's translation; the logits of others are -inf.
        """
        narrow = copy.copy(self)
        with torch.no_grad():
            narrow._tgt_embed = self._tgt_embed[ids]
            bias = None if self._bias is None else self._bias[ids]
            narrow._generator = prepared(self._weight[ids], bias, self.precision)
            if not bool(own.all()):
                narrow._closed = torch.zeros(own.shape, dtype=self.dtype, device=self.device)
                narrow._closed.masked_fill_(~own, -torch.inf)
        return narrow

    def start(self, src: Tensor) -> State:
        """Read the sources ``(B, S)``; of a language model's ``src`` only the number of rows matters."""
        n, config = src.size(0), self.config
        memory: tuple[Pair, ...] = ()
        hidden = None
        if config.n_encoder_layers:
            multiple = SOURCES // self.dtype.itemsize
            length = max(LEAST_SOURCE, -(-src.size(1) // multiple) * multiple)
            if config.n_positions is not None:
                length = max(src.size(1), min(length, config.n_positions))
            src = F.pad(src, (0, length - src.size(1)), value=config.pad_id)
            unread = ~read_tokens(src, config)  # (B, S)
            if bool(unread.any()):
                hidden = torch.zeros(unread.shape, dtype=self.dtype, device=src.device)
                hidden = hidden.masked_fill_(unread, -torch.inf)[:, None].repeat_interleave(config.n_heads, dim=0)
            encoded = self._encode(src, hidden)  # (B * S, d_model)
            memory = tuple(self._memory(layer, encoded, n) for layer in self._decoder)
        keys = torch.zeros(n * config.n_heads, config.head_d_k, 0, dtype=self.dtype, device=src.device)
        values = torch.zeros(n * config.n_heads, 0, config.head_d_v, dtype=self.dtype, device=src.device)
        unseen = torch.zeros(n, 1, 0, dtype=self.dtype, device=src.device)
        return State(0, Cells([(keys, values)] * config.n_decoder_layers, 0), 0, unseen, memory, hidden, self._closed)

    def step(self, state: State, last_ids: Tensor) -> tuple[Tensor, State]:
        """Append one token to each row and predict the next: logits ``(R, V)``, in the engine's dtype."""
        cells, unseen, n = self._room(state)
        (n_sentences, k, room), h = unseen.shape, self.config.n_heads
        unseen[..., n : n + k].diagonal(dim1=1, dim2=2).zero_()
        cells.n = n + k
        read = min(room, -(-(n + k) // ROOM) * ROOM)
        of_heads = unseen[:, None, :, :read].expand(-1, h, -1, -1).reshape(-1, k, read)  # (G * H, K, read)
        ids = last_ids.view(n_sentences, k).T.flatten()
        x, angles = self._embed(ids, self._tgt_embed, self._tgt_positions, state.length, 1)  # (K * G, d_model)
        for i, layer in enumerate(self._decoder):
            qkv = layer.qkv(self._before(x, layer.norm)).view(k, n_sentences * h, -1).transpose(0, 1)
            q, new_k, new_v = self._parts(qkv, angles)
            keys, values = cells.layers[i]
            keys[..., n : n + k], values[:, n : n + k] = new_k.mT, new_v
            context = self._attend(q, keys[..., :read], values[:, :read], of_heads)  # (G * H, K, d_v)
            x = self._after(layer.o(context.transpose(0, 1).reshape(len(x), -1), plus=x), layer.norm)
            if layer.cross_q is not None:
                assert layer.cross_o is not None
                assert layer.cross_norm is not None
                q = layer.cross_q(self._before(x, layer.cross_norm)).view(k, n_sentences * h, -1).transpose(0, 1)
                context = self._attend(q, *state.memory[i], state.hidden)
                x = self._after(layer.cross_o(context.transpose(0, 1).reshape(len(x), -1), plus=x), layer.cross_norm)
            x = self._feed_forward(x, layer)
        x = x if self._decoder_norm is None else self._decoder_norm(x)
        logits = self._generator(x.view(k, n_sentences, -1).transpose(0, 1).reshape(x.shape))  # as the rows came
        if state.closed is not None:
            logits.view(n_sentences, k, -1).add_(state.closed[:, None])
        return logits, state._replace(length=state.length + 1, cells=cells, n=n + k, unseen=unseen)

    def _room(self, state: State) -> tuple[Cells, Tensor, int]:
        """Cells with room for one step; what each row does not see of them, to be written in; how many are written."""
        cells, unseen = state.cells, state.unseen
        _, k, room = unseen.shape
        if cells.n == state.n and state.n + k <= room:
            return cells, unseen.clone(), state.n
        # Full; or another step was made from this state, whose cells are then not ours to write in.
        alive = (unseen == 0).any(dim=1)  # (G, room)
        n = int(alive.sum(dim=1).max()) if alive.numel() else 0
        order = alive.to(torch.int8).sort(dim=1, descending=True, stable=True).indices[:, :n]
        room = -(-(n + STEPS * k) // ROOM) * ROOM
        unseen = F.pad(unseen.gather(2, order[:, None].expand(-1, k, -1)), (0, room - n), value=-torch.inf)
        return cells.moved(order, self.config.n_heads, room), unseen, n

    def _encode(self, src: Tensor, hidden: Tensor | None) -> Tensor:
        """The memory ``(B * S, d_model)`` of sources ``(B, S)``."""
        n, length = src.shape
        x, angles = self._embed(src.flatten(), self._src_embed, self._src_positions, 0, length)
        for layer in self._encoder:
            qkv = layer.qkv(self._before(x, layer.norm)).view(n, length, self.config.n_heads, -1).transpose(1, 2)
            q, k, v = self._parts(qkv, angles)  # (n, H, length, d)
            if length < FUSED_FROM:
                q, k, v = (laid_out(each).flatten(0, 1) for each in (q, k.mT, v))
                context = self._attend(q, k, v, hidden).view(n, -1, length, v.size(2))
            else:
                mask = None if hidden is None else hidden.view(n, -1, 1, length)[:, :1].to(q.dtype)
                context = F.scaled_dot_product_attention(q, k, v, mask)
            x = self._after(layer.o(context.transpose(1, 2).reshape(len(x), -1), plus=x), layer.norm)
            x = self._feed_forward(x, layer)
        return x if self._encoder_norm is None else self._encoder_norm(x)

    def _memory(self, layer: Layer, encoded: Tensor, n: int) -> Pair:
        """A layer's keys and values of the memory ``(B * S, d_model)``."""
        assert layer.cross_kv is not None
        both = layer.cross_kv(encoded).view(n, encoded.size(0) // n, self.config.n_heads, -1).transpose(1, 2)
        k, v = torch.split(both, [self.config.head_d_k, self.config.head_d_v], dim=3)
        return laid_out(k.mT).flatten(0, 1), laid_out(v).flatten(0, 1)

    def _parts(self, qkv: Tensor, angles: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
        """Queries, keys and values of heads ``(..., 2 d_k + d_v)``."""
        d_k, d_v = self.config.head_d_k, self.config.head_d_v
        q, k, v = torch.split(qkv, [d_k, d_k, d_v], dim=-1)
        return (q, k, v) if angles is None else (rotate(q, angles), rotate(k, angles), v)

    def _attend(self, q: Tensor, k: Tensor, v: Tensor, hidden: Tensor | None) -> Tensor:
        """Attention ``(N, Q, d_v)`` of queries ``(N, Q, d_k)`` to keys ``(N, d_k, n)`` and values ``(N, n, d_v)``."""
        scale = 1 / math.sqrt(q.size(2))
        if hidden is None:
            scores = torch.bmm(q, k).mul_(scale)
        else:
            scores = torch.baddbmm(hidden.expand(-1, q.size(1), -1), q, k, alpha=scale)
        return torch.bmm(scores.softmax(dim=-1), v)

    def _feed_forward(self, x: Tensor, layer: Layer) -> Tensor:
        y, activation = self._before(x, layer.last_norm), self.config.activation
        hidden = layer.hidden(y, relu=activation == "relu")
        if self.config.is_gated:
            hidden, gate = hidden.chunk(2, dim=1)
            hidden = activate(gate, activation) * hidden
        elif activation != "relu":
            hidden = activate(hidden, activation)
        return self._after(layer.out(hidden, plus=x), layer.last_norm)

    def _before(self, x: Tensor, norm: Norm) -> Tensor:
        """What a sub-layer reads."""
        return norm(x) if self.config.norm == "pre" else x

    def _after(self, x: Tensor, norm: Norm) -> Tensor:
        """What the next one gets of the sum."""
        return x if self.config.norm == "pre" else norm(x)

    def _embed(
        self, ids: Tensor, table: Tensor, learned: LearnedPositions | None, start: int, length: int
    ) -> tuple[Tensor, Tensor | None]:
        """Scaled embeddings with positions, ``(rows, d_model)``; for rotary attention the angles ``(length, d_k / 2)``.

        Args:
            ids: ``(rows,)``: texts of ``length`` tokens one after the other, the first token at ``start``; one token
                of each if ``length`` is 1.
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
        """One product for several, side by side within each head."""

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


def laid_out(x: Tensor) -> Tensor:
    """A copy of ``x`` in the order of its axes."""
    return torch.empty(x.shape, dtype=x.dtype, device=x.device).copy_(x)


def weight_versions(model: nn.Module) -> list[tuple[int, float]]:
    """Where each weight is, and how often it was written."""
    return [(weight.data_ptr(), version(weight)) for weight in model.parameters()]
