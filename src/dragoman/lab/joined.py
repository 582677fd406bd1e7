"""A Transformer whose sub-layers are joined to their input in another way than the paper's.

    model = Joined(config, lambda layer, norm, x, sublayer: norm(sublayer(x)))      # no residuals

The weights have the names and shapes of an ordinary model's.
"""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor, nn

from dragoman.config import ModelConfig
from dragoman.model.attention import KeysValues, Record
from dragoman.model.layers import DecoderLayer, EncoderLayer, append
from dragoman.model.transformer import Transformer

Sublayer = Callable[[Tensor], Tensor]
"""Attention or the feed-forward network, from ``(B, L, d_model)`` to the same shape."""

Join = Callable[[EncoderLayer | DecoderLayer, nn.Module, Tensor, Sublayer], Tensor]
"""A function of a layer, a sub-layer's norm, its input and the sub-layer, to what the next one gets."""


class JoinedEncoderLayer(EncoderLayer):
    """An encoder layer with another join."""

    def __init__(self, config: ModelConfig, join: Join) -> None:
        super().__init__(config)
        self.join = join

    def forward(
        self, x: Tensor, mask: Tensor | None, angles: Tensor | None, record: Record | None = None, name: str = ""
    ) -> Tensor:
        """Compute the layer; arguments and result are those of the parent."""

        def attend(y: Tensor) -> Tensor:
            return self.self_attn(y, self.self_attn.keys_values(y, angles), mask, angles, record, f"{name}.self_attn")

        return self.join(self, self.norm2, self.join(self, self.norm1, x, attend), self.feed_forward)


class JoinedDecoderLayer(DecoderLayer):
    """A decoder layer with another join."""

    def __init__(self, config: ModelConfig, join: Join) -> None:
        super().__init__(config)
        self.join = join

    def forward(
        self,
        x: Tensor,
        past: KeysValues | None,
        memory: KeysValues | None,
        tgt_mask: Tensor | None,
        src_mask: Tensor | None,
        angles: Tensor | None,
        record: Record | None = None,
        name: str = "",
    ) -> tuple[Tensor, KeysValues]:
        """Compute the layer; arguments and result are those of the parent."""
        cross_attn, norm3 = self.cross_attn, self.norm3
        assert cross_attn is not None
        assert norm3 is not None
        grown: list[KeysValues] = []

        def attend(y: Tensor) -> Tensor:
            grown.append(append(past, self.self_attn.keys_values(y, angles)))
            return self.self_attn(y, grown[0], tgt_mask, angles, record, f"{name}.self_attn")

        def look(y: Tensor) -> Tensor:
            assert memory is not None
            return cross_attn(y, memory, src_mask, None, record, f"{name}.cross_attn")

        x = self.join(self, self.norm1, x, attend)
        x = self.join(self, self.norm2, x, look)
        return self.join(self, norm3, x, self.feed_forward), grown[0]


class Joined(Transformer):
    """A Transformer with another join in all its layers."""

    def __init__(self, config: ModelConfig, join: Join) -> None:
        super().__init__(config)
        self.encoder.layers = nn.ModuleList(JoinedEncoderLayer(config, join) for _ in range(config.n_encoder_layers))
        self.decoder.layers = nn.ModuleList(JoinedDecoderLayer(config, join) for _ in range(config.n_decoder_layers))
        self.initialise()
