"""Which model ``model.architecture`` names."""

from __future__ import annotations

from dragoman.config import ModelConfig, unknown
from dragoman.model.baselines.convolutional import ConvolutionalModel
from dragoman.model.baselines.recurrent import RecurrentModel
from dragoman.model.transformer import Transformer

EncoderDecoder = Transformer | RecurrentModel | ConvolutionalModel
"""All offer ``forward``, ``features``, ``start`` and ``step``, and have ``config`` and ``generator``."""


def build(config: ModelConfig) -> EncoderDecoder:
    """A model of ``config`` with fresh weights."""
    if config.architecture == "transformer":
        return Transformer(config)
    if config.architecture == "conv":
        return ConvolutionalModel(config)
    if config.architecture in ("rnn", "gru", "lstm"):
        return RecurrentModel(config)
    raise unknown("model.architecture", config.architecture)
