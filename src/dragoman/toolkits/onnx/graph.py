"""The graphs of ``onnx.py``: a Transformer in the operators of ONNX, written one by one, as model/ computes it.

No tracing, so no exporter to install, and each operator can be read: MatMul, Softmax, LayerNormalization ... Shapes are
those of model/. A decoder step gets the keys and values of the steps before and gives them back with its own. Cross
keys are made of the part of the memory that has none yet: all of it in the first step, nothing later. So one graph
serves both, without an If.

In int8 a matrix is kept as uint8 around 128, with one scale for each output, and an input is rounded to uint8 while it
runs (DynamicQuantizeLinear). uint8 and not int8, for processors without VNNI add products of the latter in 16 bits,
which overflow.
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
FAR = -1e9  # added to a score that may not be: its weight is 0 in float32
ZERO = 128  # what stands for 0 in a rounded matrix
LAST = 2**62  # the end of an axis

Arrays = Mapping[str, NDArray[np.float32]]


def encoder(config: ModelConfig, weights: Arrays, n_positions: int, rounded: bool) -> Any:
    """``input_ids``, ``attention_mask`` ``(B, S)``, int64, to ``last_hidden_state`` ``(B, S, d_model)``: a ModelProto.

    Args:
        weights: A state dict.
        n_positions: Rows of the table of positions.
        rounded: Matrices in int8.
    """
    graph = Graph(config, weights, rounded)
    places = graph.range(graph.whole(0), graph.size("input_ids", 1))
    x, turn = graph.placed("input_ids", "src", places, n_positions)
    mask = graph.padding("attention_mask")
    for i in range(config.n_encoder_layers):
        name = f"encoder.layers.{i}"

        def attend(y: str, name: str = name) -> str:
            k, v = graph.keys_values(f"{name}.self_attn", y, turn)
            return graph.attention(f"{name}.self_attn", y, k, v, mask, turn)

        x = graph.residual(x, f"{name}.norm1", attend)
        x = graph.residual(x, f"{name}.norm2", lambda y, name=name: graph.feed_forward(f"{name}.feed_forward", y))
    graph.name("last_hidden_state", graph.norm("encoder.norm", x) if config.norm == "pre" else x)
    size = ("batch_size", "encoder_sequence_length")
    inputs = {"input_ids": size, "attention_mask": size}
    return graph.model("encoder", inputs, {"last_hidden_state": (*size, config.d_model)})


def decoder(config: ModelConfig, weights: Arrays, n_positions: int, rounded: bool) -> Any:
    """New tokens behind others to their logits: a ModelProto with the names of optimum's merged decoders.

    Inputs: ``input_ids`` ``(B, T)``, ``encoder_attention_mask`` ``(B, S)``, ``encoder_hidden_states``, of each layer
    ``past_key_values.I.{decoder,encoder}.{key,value}``, in the first step of length 0. Outputs: ``logits``
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
    places = graph.range(before, after)
    x, turn = graph.placed("input_ids", "tgt", places, n_positions)
    seen = graph.op(
        "Greater",
        graph.op("Unsqueeze", graph.range(graph.whole(0), after), graph.axes(0)),
        graph.op("Unsqueeze", places, graph.axes(1)),
    )
    causal = graph.op("Mul", graph.op("Cast", seen, to=1), graph.number(FAR))  # (T, past + T)
    padding = graph.padding("encoder_attention_mask")
    read = graph.op("Shape", "past_key_values.0.encoder.key", start=2, end=3)
    fresh = graph.op("Slice", "encoder_hidden_states", read, graph.axes(LAST), graph.axes(1))
    for i in range(config.n_decoder_layers):
        name = f"decoder.layers.{i}"

        def attend(y: str, name: str = name, i: int = i) -> str:
            both = graph.keys_values(f"{name}.self_attn", y, turn)
            k, v = (graph.grown(i, "decoder", kind, one) for kind, one in zip(("key", "value"), both, strict=True))
            return graph.attention(f"{name}.self_attn", y, k, v, causal, turn)

        def look(y: str, name: str = name, i: int = i) -> str:
            both = graph.keys_values(f"{name}.cross_attn", fresh, None)
            k, v = (graph.grown(i, "encoder", kind, one) for kind, one in zip(("key", "value"), both, strict=True))
            return graph.attention(f"{name}.cross_attn", y, k, v, padding, None)

        x = graph.residual(x, f"{name}.norm1", attend)
        x = graph.residual(x, f"{name}.norm2", look)
        x = graph.residual(x, f"{name}.norm3", lambda y, name=name: graph.feed_forward(f"{name}.feed_forward", y))
    x = graph.norm("decoder.norm", x) if config.norm == "pre" else x
    table = None if config.share_embeddings == "none" else "tgt_embed"
    graph.name("logits", graph.linear("generator", x, table))
    return graph.model("decoder", inputs, outputs)


class Graph:
    """Nodes and constants; each method adds what it needs, and returns the name of its result."""

    def __init__(self, config: ModelConfig, weights: Arrays, rounded: bool) -> None:
        self.config, self.weights, self.rounded = config, weights, rounded
        self._nodes: list[Any] = []
        self._constants: dict[str, NDArray[Any]] = {}
        self._inputs: dict[str, tuple[str, str, str]] = {}  # of rounded products: an input is rounded once

    def model(
        self, name: str, inputs: Mapping[str, Sequence[str | int]], outputs: Mapping[str, Sequence[str | int]]
    ) -> Any:
        """All of it as a ModelProto; names of axes that may have any length are texts."""
        from onnx import TensorProto, helper, numpy_helper

        def described(values: Mapping[str, Sequence[str | int]]) -> list[Any]:
            of = {True: TensorProto.INT64, False: TensorProto.FLOAT}
            return [
                helper.make_tensor_value_info(one, of[one.endswith(("_ids", "_mask"))], list(shape))
                for one, shape in values.items()
            ]

        constants = [numpy_helper.from_array(array, one) for one, array in self._constants.items()]
        graph = helper.make_graph(self._nodes, name, described(inputs), described(outputs), constants)
        opset = [helper.make_opsetid("", OPSET)]
        return helper.make_model(
            graph, opset_imports=opset, ir_version=IR_VERSION, producer_name="dragoman", producer_version=__version__
        )

    # --- one operator ---

    def op(self, kind: str, *inputs: str, **attributes: Any) -> str:
        """A node with one result."""
        return self.ops(kind, inputs, 1, **attributes)[0]

    def ops(self, kind: str, inputs: Sequence[str], n: int, **attributes: Any) -> list[str]:
        """A node with several results."""
        from onnx import helper

        found = [f"{kind}_{len(self._nodes)}{f'_{i}' if n > 1 else ''}" for i in range(n)]
        self._nodes.append(helper.make_node(kind, list(inputs), found, **attributes))
        return found

    def name(self, name: str, value: str) -> None:
        """Give a result the name of an output."""
        from onnx import helper

        self._nodes.append(helper.make_node("Identity", [value], [name]))

    def constant(self, name: str, array: NDArray[Any]) -> str:
        """An array that is kept in the file, once for each name."""
        self._constants.setdefault(name, np.array(array, order="C"))
        return name

    def number(self, value: float) -> str:
        """A single float."""
        return self.constant(f"float_{value!r}", np.array(value, np.float32))

    def whole(self, value: int) -> str:
        """A single integer."""
        return self.constant(f"int_{value}", np.array(value, np.int64))

    def axes(self, *values: int) -> str:
        """A list of integers: axes, a shape, where a slice ends."""
        return self.constant(f"ints_{'_'.join(map(str, values))}", np.array(values, np.int64))

    def size(self, value: str, axis: int) -> str:
        """The length of an axis, a single integer."""
        return self.op("Squeeze", self.op("Shape", value, start=axis, end=axis + 1), self.axes(0))

    def range(self, start: str, stop: str) -> str:
        """``start`` to ``stop - 1``."""
        return self.op("Range", start, stop, self.whole(1))

    # --- parts of the model ---

    def placed(self, ids: str, side: str, places: str, n_positions: int) -> tuple[str, tuple[str, str] | None]:
        """Embedded tokens ``(B, L, d_model)`` with their positions; cosines and sines to turn by, if they are rotary.

        Args:
            places: Of each token its position, ``(L,)``.
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
                self.op("Gather", self.constant(name, table.astype(np.float32)), places)
                for name, table in (("cosines", np.cos(angles)), ("sines", np.sin(angles)))
            )
            return x, (cos, sin)
        if config.positions == "learned":
            found = self.constant("positions", self.weights[f"{side}_positions.weight"])
        elif config.positions == "sinusoidal":
            found = self.constant("positions", sinusoids(0, n_positions, config.d_model).float().numpy())
        else:
            raise unknown("model.positions", config.positions)
        return self.op("Add", x, self.op("Gather", found, places)), None

    def rows(self, table: str, ids: str) -> str:
        """The embeddings of ids."""
        if not self.rounded:
            return self.op("Gather", self.constant(f"{table}.weight", self.weights[f"{table}.weight"]), ids)
        values, scales = self._rounded(table)
        whole = self.op("Cast", self.op("Gather", values, ids), to=1)
        away = self.op("Sub", whole, self.number(float(ZERO)))
        scale = self.op("Unsqueeze", self.op("Gather", scales, ids), self.axes(-1))
        return self.op("Mul", away, scale)

    def padding(self, mask: str) -> str:
        """What is added to scores: 0 where a mask ``(B, S)`` is 1; ``(B, 1, 1, S)``."""
        away = self.op("Sub", self.number(1.0), self.op("Cast", mask, to=1))
        return self.op("Unsqueeze", self.op("Mul", away, self.number(FAR)), self.axes(1, 2))

    def residual(self, x: str, norm: str, sublayer: Any) -> str:
        """``norm(x + sublayer(x))``; pre-norm: ``x + sublayer(norm(x))``."""
        if self.config.norm == "pre":
            return self.op("Add", x, sublayer(self.norm(norm, x)))
        return self.norm(norm, self.op("Add", x, sublayer(x)))

    def norm(self, name: str, x: str) -> str:
        """Layer normalisation over the last axis."""
        gain, shift = (self.constant(f"{name}.{what}", self.weights[f"{name}.{what}"]) for what in ("weight", "bias"))
        return self.op("LayerNormalization", x, gain, shift, axis=-1, epsilon=self.config.norm_eps)

    def linear(self, name: str, x: str, table: str | None = None) -> str:
        """``x W + b``; with ``table`` W is that embedding, turned over."""
        if self.rounded:
            product = self._rounded_product(table or name, x)
        elif table is not None:
            table = "src_embed" if self.config.share_embeddings == "all" else table
            kept = self.constant(f"{table}.weight", self.weights[f"{table}.weight"])
            product = self.op("MatMul", x, self.op("Transpose", kept, perm=[1, 0]))
        else:
            product = self.op("MatMul", x, self.constant(f"{name}.weight", self.weights[f"{name}.weight"].T))
        if f"{name}.bias" not in self.weights:
            return product
        return self.op("Add", product, self.constant(f"{name}.bias", self.weights[f"{name}.bias"]))

    def _rounded(self, name: str) -> tuple[str, str]:
        """A matrix ``(out, in)`` as uint8 around ``ZERO``, and the scale of each row."""
        name = "src_embed" if name == "tgt_embed" and self.config.share_embeddings == "all" else name
        matrix = self.weights[f"{name}.weight"]
        scales = np.abs(matrix).max(1) / 127
        scales[scales == 0] = 1
        values = (np.rint(matrix / scales[:, None]) + ZERO).astype(np.uint8)
        return self.constant(f"{name}.rounded", values), self.constant(f"{name}.scales", scales.astype(np.float32))

    def _rounded_product(self, name: str, x: str) -> str:
        values, scales = self._rounded(name)
        if x not in self._inputs:
            found = self.ops("DynamicQuantizeLinear", [x], 3)
            self._inputs[x] = (found[0], found[1], found[2])
        whole, scale, zero = self._inputs[x]
        turned = self.op("Transpose", values, perm=[1, 0])  # once, when the file is loaded
        middle = self.constant("zero", np.array(ZERO, np.uint8))
        product = self.op("Cast", self.op("MatMulInteger", whole, turned, zero, middle), to=1)
        return self.op("Mul", product, self.op("Mul", scale, scales))

    def heads(self, x: str, width: int) -> str:
        """``(B, L, H * width)`` to ``(B, H, L, width)``."""
        parted = self.op("Reshape", x, self.axes(0, 0, self.config.n_heads, width))
        return self.op("Transpose", parted, perm=[0, 2, 1, 3])

    def turned(self, x: str, turn: tuple[str, str] | None) -> str:
        """Rotary positions: pairs of channels ``(0, 1), (2, 3), ...`` turned, see ``model.embedding.rotate``."""
        if turn is None:
            return x
        cos, sin = turn
        even, odd = (self.op("Slice", x, self.axes(i), self.axes(LAST), self.axes(3), self.axes(2)) for i in (0, 1))
        first = self.op("Sub", self.op("Mul", even, cos), self.op("Mul", odd, sin))
        second = self.op("Add", self.op("Mul", even, sin), self.op("Mul", odd, cos))
        pairs = self.op("Concat", *(self.op("Unsqueeze", one, self.axes(-1)) for one in (first, second)), axis=-1)
        return self.op("Reshape", pairs, self.axes(0, 0, 0, self.config.head_d_k))

    def keys_values(self, name: str, x: str, turn: tuple[str, str] | None) -> tuple[str, str]:
        """Keys ``(B, H, L, d_k)`` and values ``(B, H, L, d_v)`` of ``x``."""
        k = self.turned(self.heads(self.linear(f"{name}.w_k", x), self.config.head_d_k), turn)
        return k, self.heads(self.linear(f"{name}.w_v", x), self.config.head_d_v)

    def grown(self, i: int, side: str, kind: str, new: str) -> str:
        """What layer ``i`` was given of a kind, and the new behind it; it is an output too."""
        found = self.op("Concat", f"past_key_values.{i}.{side}.{kind}", new, axis=2)
        self.name(f"present.{i}.{side}.{kind}", found)
        return found

    def attention(self, name: str, x: str, k: str, v: str, mask: str, turn: tuple[str, str] | None) -> str:
        """Equation 1 in several heads; ``mask`` is added to the scores."""
        q = self.turned(self.heads(self.linear(f"{name}.w_q", x), self.config.head_d_k), turn)
        scores = self.op("MatMul", q, self.op("Transpose", k, perm=[0, 1, 3, 2]))
        scores = self.op("Div", scores, self.number(math.sqrt(self.config.head_d_k)))
        weights = self.op("Softmax", self.op("Add", scores, mask), axis=-1)
        context = self.op("Transpose", self.op("MatMul", weights, v), perm=[0, 2, 1, 3])
        joined = self.op("Reshape", context, self.axes(0, 0, self.config.n_heads * self.config.head_d_v))
        return self.linear(f"{name}.w_o", joined)

    def feed_forward(self, name: str, x: str) -> str:
        """Equation 2, or one of its later activations."""
        hidden = self.linear(f"{name}.w_1", x)
        if self.config.is_gated:
            hidden = self.op("Mul", self.activated(self.linear(f"{name}.w_3", x)), hidden)
        else:
            hidden = self.activated(hidden)
        return self.linear(f"{name}.w_2", hidden)

    def activated(self, x: str) -> str:
        """The activation of ``config``."""
        kind = self.config.activation
        if kind == "relu":
            return self.op("Relu", x)
        if kind in ("swish", "swiglu"):
            return self.op("Mul", x, self.op("Sigmoid", x))
        if kind == "gelu":  # x (1 + erf(x / sqrt 2)) / 2
            part = self.op("Erf", self.op("Div", x, self.number(math.sqrt(2))))
            return self.op("Mul", self.op("Mul", x, self.op("Add", part, self.number(1.0))), self.number(0.5))
        raise unknown("model.activation", kind)
