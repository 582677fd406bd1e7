"""A Transformer with dropout at a wrong place: on the skip path, instead of on the output of each sub-layer."""

from __future__ import annotations

from torch import Tensor, nn

from dragoman.config import ModelConfig
from dragoman.lab.joined import Joined, Sublayer
from dragoman.model.layers import DecoderLayer, EncoderLayer


def drop_on_skip(layer: EncoderLayer | DecoderLayer, norm: nn.Module, x: Tensor, sublayer: Sublayer) -> Tensor:
    """Return ``norm(dropout(x) + sublayer(x))``, where the paper has ``norm(x + dropout(sublayer(x)))``."""
    y = sublayer(norm(x) if layer.pre_norm else x)
    x = layer.dropout(x) + y
    return x if layer.pre_norm else norm(x)


class SkipDropout(Joined):
    """A Transformer with dropout on the skip paths; in evaluation it equals the ordinary one."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__(config, drop_on_skip)
