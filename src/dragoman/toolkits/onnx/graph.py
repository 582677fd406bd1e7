"""Graphs of the ONNX export: encoder and decoder as ONNX operators, added one by one, as model/ computes them.

Without tracing no exporter is needed, and every operator can be read: MatMul, Softmax, LayerNormalization ... Shapes
are those of model/. A decoder step gets the keys and values of earlier steps and returns them with its own. Cross keys
are computed from the part of the memory that has none yet: all of it in the first step, nothing later. So one graph
serves all steps, without an If.

In int8 a matrix is stored as uint8 around 128, with one scale for each output. An input is quantized to uint8 at run
time (DynamicQuantizeLinear). Processors without VNNI add int8 products in 16 bits, which overflow: hence uint8.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dragoman import __version__
from dragoman.config import ModelConfig, unknown
from dragoman.model.embedding import position_angles, sinusoids

OPSET, IR_VERSION = 17, 8  # of 2022: LayerNormalization is one operator
FAR = -1e9  # added to a masked score: its weight is 0 in float32
ZERO = 128  # zero point of a quantized matrix
LAST = 2**62  # the end of an axis

Arrays = Mapping[str, NDArray[np.float32]]


def encoder(config: ModelConfig, weights: Arrays, n_positions: int, rounded: bool) -> Any:
    """Return the encoder, a ModelProto.

    Inputs: ``input_ids``, ``attention_mask``, ``(B, S)``, int64. Output: ``last_hidden_state``, ``(B, S, d_model)``.

    Args:
        weights: A state dict.
        n_positions: Number of rows of the table of positions.
        rounded: Quantize matrices to int8.
    """
    graph = Graph(config, weights, rounded)
    indices = graph.range(graph.integer(0), graph.size("input_ids", 1))
    x, rotation = graph.embedded("input_ids", "src", indices, n_positions)
    mask = graph.padding("attention_mask")
    for i in range(config.n_encoder_layers):
        name = f"encoder.layers.{i}"

        def attend(y: str, name: str = name) -> str:
            k, v = graph.keys_values(f"{name}.self_attn", y, rotation)
            return graph.attention(f"{name}.self_attn", y, k, v, mask, rotation)

        x = graph.residual(x, f"{name}.norm1", attend)
        x = graph.residual(x, f"{name}.norm2", lambda y, name=name: graph.feed_forward(f"{name}.feed_forward", y))
    graph.name("last_hidden_state", graph.norm("encoder.norm", x) if config.norm == "pre" else x)
    size = ("batch_size", "encoder_sequence_length")
    inputs = {"input_ids": size, "attention_mask": size}
    return graph.model("encoder", inputs, {"last_hidden_state": (*size, config.d_model)})


def decoder(config: ModelConfig, weights: Arrays, n_positions: int, rounded: bool) -> Any:
    """Return the decoder, a ModelProto with the names of optimum's merged decoders; it appends tokens.

    Inputs: ``input_ids`` ``(B, T)``, ``encoder_attention_mask`` ``(B, S)``, ``encoder_hidden_states``, for each layer
    ``past_key_values.I.{decoder,encoder}.{key,value}``, of length 0 in the first step. Outputs: ``logits``
    ``(B, T, V)``, ``present.I...``.
    """
    graph = Graph(config, weights, rounded)
    inputs: dict[str, tuple[str | int, ...]] = {
        "input_ids": ("batch_size", "decoder_sequence_length"),
        "encoder_attention_mask": ("batch_size", "encoder_sequence_length"),
        "encoder_hidden_states": ("batch_size", "encoder_sequence_length", config.d_model),
    }
    outputs: dict[str, tuple[str | int, ...]] = {
        "logits": ("batch_size", "decoder_sequence_length", config.tgt_vocab_size)
    }
    for i in range(config.n_decoder_layers):
        for side in ("decoder", "encoder"):
            for kind, width in (("key", config.head_d_k), ("value", config.head_d_v)):
                shape = ("batch_size", config.n_heads, f"past_{side}_sequence_length", width)
                inputs[f"past_key_values.{i}.{side}.{kind}"] = shape
                outputs[f"present.{i}.{side}.{kind}"] = (*shape[:2], f"all_{side}_sequence_length", width)
    before, new = graph.size("past_key_values.0.decoder.key", 2), graph.size("input_ids", 1)
    after = graph.op("Add", before, new)
    indices = graph.range(before, after)
    x, rotation = graph.embedded("input_ids", "tgt", indices, n_positions)
    # A token attends to itself and earlier tokens: FAR is added to the scores of later ones.
    is_later = graph.op(
        "Greater",
        graph.op("Unsqueeze", graph.range(graph.integer(0), after), graph.axes(0)),
        graph.op("Unsqueeze", indices, graph.axes(1)),
    )
    causal = graph.op("Mul", graph.op("Cast", is_later, to=1), graph.number(FAR))  # (T, past + T)
    padding = graph.padding("encoder_attention_mask")
    read = graph.op("Shape", "past_key_values.0.encoder.key", start=2, end=3)
    fresh = graph.op("Slice", "encoder_hidden_states", read, graph.axes(LAST), graph.axes(1))
    for i in range(config.n_decoder_layers):
        name = f"decoder.layers.{i}"

        def attend(y: str, name: str = name, i: int = i) -> str:
            both = graph.keys_values(f"{name}.self_attn", y, rotation)
            k, v = (graph.extended(i, "decoder", kind, new) for kind, new in zip(("key", "value"), both, strict=True))
            return graph.attention(f"{name}.self_attn", y, k, v, causal, rotation)

        def look(y: str, name: str = name, i: int = i) -> str:
            both = graph.keys_values(f"{name}.cross_attn", fresh, None)
            k, v = (graph.extended(i, "encoder", kind, new) for kind, new in zip(("key", "value"), both, strict=True))
            return graph.attention(f"{name}.cross_attn", y, k, v, padding, None)

        x = graph.residual(x, f"{name}.norm1", attend)
        x = graph.residual(x, f"{name}.norm2", look)
        x = graph.residual(x, f"{name}.norm3", lambda y, name=name: graph.feed_forward(f"{name}.feed_forward", y))
    x = graph.norm("decoder.norm", x) if config.norm == "pre" else x
    table = None if config.share_embeddings == "none" else "tgt_embed"
    graph.name("logits", graph.linear("generator", x, table))
    return graph.model("decoder", inputs, outputs)


class Graph:
    """Nodes and constants of a graph; each method adds nodes and returns the name of their result."""

    def __init__(self, config: ModelConfig, weights: Arrays, rounded: bool) -> None:
        self.config, self.weights, self.rounded = config, weights, rounded
        self._nodes: list[Any] = []
        self._constants: dict[str, NDArray[Any]] = {}
        self._inputs: dict[str, tuple[str, str, str]] = {}  # quantized inputs by name: each is quantized once

    def model(
        self, name: str, inputs: Mapping[str, Sequence[str | int]], outputs: Mapping[str, Sequence[str | int]]
    ) -> Any:
        """Return the graph as a ModelProto; an axis of any length has a name instead of a size."""
        from onnx import TensorProto, helper, numpy_helper

        def described(values: Mapping[str, Sequence[str | int]]) -> list[Any]:
            type_of = {True: TensorProto.INT64, False: TensorProto.FLOAT}
            return [
                helper.make_tensor_value_info(value, type_of[value.endswith(("_ids", "_mask"))], list(shape))
                for value, shape in values.items()
            ]

        constants = [numpy_helper.from_array(array, key) for key, array in self._constants.items()]
        graph = helper.make_graph(self._nodes, name, described(inputs), described(outputs), constants)
        opset = [helper.make_opsetid("", OPSET)]
        return helper.make_model(
            graph, opset_imports=opset, ir_version=IR_VERSION, producer_name="dragoman", producer_version=__version__
        )

    # --- one operator ---

    def op(self, kind: str, *inputs: str, **attributes: Any) -> str:
        """Add a node with one result."""
        return self.ops(kind, inputs, 1, **attributes)[0]

    def ops(self, kind: str, inputs: Sequence[str], n: int, **attributes: Any) -> list[str]:
        """Add a node with ``n`` results."""
        from onnx import helper

        results = [f"{kind}_{len(self._nodes)}{f'_{i}' if n > 1 else ''}" for i in range(n)]
        self._nodes.append(helper.make_node(kind, list(inputs), results, **attributes))
        return results

    def name(self, name: str, value: str) -> None:
        """Give a result the name of an output."""
        from onnx import helper

        self._nodes.append(helper.make_node("Identity", [value], [name]))

    def constant(self, name: str, array: NDArray[Any]) -> str:
        """Add an array to the file, once for each name."""
        self._constants.setdefault(name, np.array(array, order="C"))
        return name

    def number(self, value: float) -> str:
        """Add a single float."""
        return self.constant(f"float_{value!r}", np.array(value, np.float32))

    def integer(self, value: int) -> str:
        """Add a single integer."""
        return self.constant(f"int_{value}", np.array(value, np.int64))

    def axes(self, *values: int) -> str:
        """Add a list of integers: axes, a shape, the end of a slice."""
        return self.constant(f"ints_{'_'.join(map(str, values))}", np.array(values, np.int64))

    def size(self, value: str, axis: int) -> str:
        """Compute the length of an axis, a single integer."""
        return self.op("Squeeze", self.op("Shape", value, start=axis, end=axis + 1), self.axes(0))

    def range(self, start: str, stop: str) -> str:
        """Compute the integers from ``start`` to ``stop - 1``."""
        return self.op("Range", start, stop, self.integer(1))

    # --- parts of the model ---

    def embedded(self, ids: str, side: str, indices: str, n_positions: int) -> tuple[str, tuple[str, str] | None]:
        """Embed tokens with their positions, ``(B, L, d_model)``; return cosines and sines too if they are rotary.

        Args:
            indices: Position of each token, ``(L,)``.
        """
        config = self.config
        share = config.share_embeddings == "all"
        table = "src_embed" if share else f"{side}_embed"
        x = self.rows(table, ids)
        if config.scale_embeddings:
            x = self.op("Mul", x, self.number(math.sqrt(config.d_model)))
        if config.positions == "rotary":
            angles = position_angles(0, n_positions, config.head_d_k).numpy()  # (n_positions, d_k / 2)
            cos, sin = (
                self.op("Gather", self.constant(name, table.astype(np.float32)), indices)
                for name, table in (("cosines", np.cos(angles)), ("sines", np.sin(angles)))
            )
            return x, (cos, sin)
        if config.positions == "learned":
            positions = self.constant("positions", self.weights[f"{side}_positions.weight"])
        elif config.positions == "sinusoidal":
            positions = self.constant("positions", sinusoids(0, n_positions, config.d_model).float().numpy())
        else:
            raise unknown("model.positions", config.positions)
        return self.op("Add", x, self.op("Gather", positions, indices)), None

    def rows(self, table: str, ids: str) -> str:
        """Look up the embeddings of ids."""
        if not self.rounded:
            return self.op("Gather", self.constant(f"{table}.weight", self.weights[f"{table}.weight"]), ids)
        values, scales = self._rounded(table)
        whole = self.op("Cast", self.op("Gather", values, ids), to=1)
        away = self.op("Sub", whole, self.number(float(ZERO)))
        scale = self.op("Unsqueeze", self.op("Gather", scales, ids), self.axes(-1))
        return self.op("Mul", away, scale)

    def padding(self, mask: str) -> str:
        """Compute the bias of scores, ``(B, 1, 1, S)``: 0 where a mask ``(B, S)`` is 1, ``FAR`` elsewhere."""
        away = self.op("Sub", self.number(1.0), self.op("Cast", mask, to=1))
        return self.op("Unsqueeze", self.op("Mul", away, self.number(FAR)), self.axes(1, 2))

    def residual(self, x: str, norm: str, sublayer: Any) -> str:
        """Compute ``norm(x + sublayer(x))``; pre-norm: ``x + sublayer(norm(x))``."""
        if self.config.norm == "pre":
            return self.op("Add", x, sublayer(self.norm(norm, x)))
        return self.norm(norm, self.op("Add", x, sublayer(x)))

    def norm(self, name: str, x: str) -> str:
        """Normalise over the last axis."""
        gain, shift = (self.constant(f"{name}.{what}", self.weights[f"{name}.{what}"]) for what in ("weight", "bias"))
        return self.op("LayerNormalization", x, gain, shift, axis=-1, epsilon=self.config.norm_eps)

    def linear(self, name: str, x: str, table: str | None = None) -> str:
        """Compute ``x W + b``; with ``table`` W is that embedding, transposed."""
        if self.rounded:
            product = self._rounded_product(table or name, x)
        elif table is not None:
            table = "src_embed" if self.config.share_embeddings == "all" else table
            embedding = self.constant(f"{table}.weight", self.weights[f"{table}.weight"])
            product = self.op("MatMul", x, self.op("Transpose", embedding, perm=[1, 0]))
        else:
            product = self.op("MatMul", x, self.constant(f"{name}.weight", self.weights[f"{name}.weight"].T))
        if f"{name}.bias" not in self.weights:
            return product
        return self.op("Add", product, self.constant(f"{name}.bias", self.weights[f"{name}.bias"]))

    def _rounded(self, name: str) -> tuple[str, str]:
        """Add a matrix ``(out, in)`` as uint8 around ``ZERO``, and the scale of each row."""
        name = "src_embed" if name == "tgt_embed" and self.config.share_embeddings == "all" else name
        matrix = self.weights[f"{name}.weight"]
        scales = np.abs(matrix).max(1) / 127
        scales[scales == 0] = 1
        values = (np.rint(matrix / scales[:, None]) + ZERO).astype(np.uint8)
        return self.constant(f"{name}.rounded", values), self.constant(f"{name}.scales", scales.astype(np.float32))

    def _rounded_product(self, name: str, x: str) -> str:
        values, scales = self._rounded(name)
        if x not in self._inputs:
            values_of_x, scale_of_x, zero_of_x = self.ops("DynamicQuantizeLinear", [x], 3)
            self._inputs[x] = (values_of_x, scale_of_x, zero_of_x)
        whole, scale, zero = self._inputs[x]
        transposed = self.op("Transpose", values, perm=[1, 0])  # computed once, when the file is loaded
        middle = self.constant("zero", np.array(ZERO, np.uint8))
        product = self.op("Cast", self.op("MatMulInteger", whole, transposed, zero, middle), to=1)
        return self.op("Mul", product, self.op("Mul", scale, scales))

    def heads(self, x: str, width: int) -> str:
        """Split ``(B, L, H * width)`` into heads, ``(B, H, L, width)``."""
        parted = self.op("Reshape", x, self.axes(0, 0, self.config.n_heads, width))
        return self.op("Transpose", parted, perm=[0, 2, 1, 3])

    def rotated(self, x: str, rotation: tuple[str, str] | None) -> str:
        """Rotate pairs of channels ``(0, 1), (2, 3), ...`` by rotary positions, see ``model.embedding.rotate``."""
        if rotation is None:
            return x
        cos, sin = rotation
        even, odd = (self.op("Slice", x, self.axes(i), self.axes(LAST), self.axes(3), self.axes(2)) for i in (0, 1))
        first = self.op("Sub", self.op("Mul", even, cos), self.op("Mul", odd, sin))
        second = self.op("Add", self.op("Mul", even, sin), self.op("Mul", odd, cos))
        pairs = self.op("Concat", *(self.op("Unsqueeze", half, self.axes(-1)) for half in (first, second)), axis=-1)
        return self.op("Reshape", pairs, self.axes(0, 0, 0, self.config.head_d_k))

    def keys_values(self, name: str, x: str, rotation: tuple[str, str] | None) -> tuple[str, str]:
        """Compute keys ``(B, H, L, d_k)`` and values ``(B, H, L, d_v)`` of ``x``."""
        k = self.rotated(self.heads(self.linear(f"{name}.w_k", x), self.config.head_d_k), rotation)
        return k, self.heads(self.linear(f"{name}.w_v", x), self.config.head_d_v)

    def extended(self, i: int, side: str, kind: str, new: str) -> str:
        """Append new keys or values to those of layer ``i``; the result is an output too."""
        extended = self.op("Concat", f"past_key_values.{i}.{side}.{kind}", new, axis=2)
        self.name(f"present.{i}.{side}.{kind}", extended)
        return extended

    def attention(self, name: str, x: str, k: str, v: str, mask: str, rotation: tuple[str, str] | None) -> str:
        """Compute attention in several heads (equation 1); ``mask`` is added to the scores."""
        q = self.rotated(self.heads(self.linear(f"{name}.w_q", x), self.config.head_d_k), rotation)
        scores = self.op("MatMul", q, self.op("Transpose", k, perm=[0, 1, 3, 2]))
        scores = self.op("Div", scores, self.number(math.sqrt(self.config.head_d_k)))
        weights = self.op("Softmax", self.op("Add", scores, mask), axis=-1)
        context = self.op("Transpose", self.op("MatMul", weights, v), perm=[0, 2, 1, 3])
        joined = self.op("Reshape", context, self.axes(0, 0, self.config.n_heads * self.config.head_d_v))
        return self.linear(f"{name}.w_o", joined)

    def feed_forward(self, name: str, x: str) -> str:
        """Compute the feed-forward sub-layer (equation 2), with any activation of the model."""
        hidden = self.linear(f"{name}.w_1", x)
        if self.config.is_gated:
            hidden = self.op("Mul", self.activated(self.linear(f"{name}.w_3", x)), hidden)
        else:
            hidden = self.activated(hidden)
        return self.linear(f"{name}.w_2", hidden)

    def activated(self, x: str) -> str:
        """Apply the activation of ``config``."""
        kind = self.config.activation
        if kind == "relu":
            return self.op("Relu", x)
        if kind in ("swish", "swiglu"):
            return self.op("Mul", x, self.op("Sigmoid", x))
        if kind == "gelu":  # x (1 + erf(x / sqrt 2)) / 2
            part = self.op("Erf", self.op("Div", x, self.number(math.sqrt(2))))
            return self.op("Mul", self.op("Mul", x, self.op("Add", part, self.number(1.0))), self.number(0.5))
        raise unknown("model.activation", kind)
