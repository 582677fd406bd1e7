"""ONNX: graphs for onnxruntime and transformers.js, and our search on them."""
