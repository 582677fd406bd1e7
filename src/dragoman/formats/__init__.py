"""Foreign formats: conversion only. A format is one file here that fits ``format.Format``, and its name in ``FORMATS``.

``export`` writes any of them, and knows where it lies and whether it still is the bundle's. ``table`` says which model
goes into which.
"""

FORMATS = ("ctranslate2", "huggingface", "argos", "page", "onnx")
"""Of each the name of its file here, which is imported when it is asked for."""
