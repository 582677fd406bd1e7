"""The model class for each value of ``model.architecture``."""

from __future__ import annotations

from dragoman.config import ModelConfig, unknown
from dragoman.model.baselines.convolutional import ConvolutionalModel
from dragoman.model.baselines.recurrent import RecurrentModel
from dragoman.model.transformer import Transformer

EncoderDecoder = Transformer | RecurrentModel | ConvolutionalModel
"""A model: it has ``forward``, ``features``, ``start`` and ``step``, a ``config`` and a ``generator``."""


def build(config: ModelConfig) -> EncoderDecoder:
    """Return a model of ``config`` with freshly initialised weights."""
    if config.architecture == "transformer":
        return Transformer(config)
    if config.architecture == "conv":
        return ConvolutionalModel(config)
    if config.architecture in ("rnn", "gru", "lstm"):
        return RecurrentModel(config)
    raise unknown("model.architecture", config.architecture)
