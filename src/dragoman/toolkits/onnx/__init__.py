"""ONNX: graphs for onnxruntime and transformers.js, and our search on them."""

from __future__ import annotations

from dragoman.toolkits.toolkit import Toolkit, lazily

TOOLKIT = Toolkit(name="onnx", writer=lazily(__name__, "write"), comparer=lazily(__name__, "search"))
