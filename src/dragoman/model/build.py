"""The model class for each value of ``model.architecture``."""

from __future__ import annotations

from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from dragoman.config import ModelConfig, unknown
from dragoman.model.baselines.convolutional import ConvolutionalModel
from dragoman.model.baselines.recurrent import RecurrentModel
from dragoman.model.transformer import Transformer

EncoderDecoder = Transformer | RecurrentModel | ConvolutionalModel
"""A model: it has ``forward``, ``features``, ``start`` and ``step``, a ``config`` and a ``generator``."""


class InFloat32(TorchFunctionMode):
    """Makes empty, zeros and ones float32, of which our models are made, and not of torch's default dtype.

    The program around us may have set that default. It is of the whole process, so a change would be seen in other
    threads.
    """

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func in (torch.empty, torch.zeros, torch.ones) and kwargs.get("dtype") is None:
            kwargs = {**kwargs, "dtype": torch.float32}
        return func(*args, **kwargs)


def build(config: ModelConfig) -> EncoderDecoder:
    """Return a model of ``config`` with freshly initialised weights, in float32."""
    with InFloat32():
        if config.architecture == "transformer":
            return Transformer(config)
        if config.architecture == "conv":
            return ConvolutionalModel(config)
        if config.architecture in ("rnn", "gru", "lstm"):
            return RecurrentModel(config)
    raise unknown("model.architecture", config.architecture)
