"""A Transformer with dropout at a wrong place: on the skip path, instead of on the output of each sub-layer."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor, nn

from dragoman.config import ModelConfig
from dragoman.model.attention import KeysValues, Record
from dragoman.model.layers import DecoderLayer, EncoderLayer, append
from dragoman.model.transformer import Transformer


def _residual(
    layer: EncoderLayer | DecoderLayer, norm: nn.LayerNorm | None, x: Tensor, sublayer: Callable[[Tensor], Tensor]
) -> Tensor:
    """Return ``norm(dropout(x) + sublayer(x))``, where the paper has ``norm(x + dropout(sublayer(x)))``."""
    assert norm is not None
    y = sublayer(norm(x) if layer.pre_norm else x)
    x = layer.dropout(x) + y
    return x if layer.pre_norm else norm(x)


class SkipEncoderLayer(EncoderLayer):
    """An encoder layer with dropout on its skip paths."""

    def forward(
        self, x: Tensor, mask: Tensor | None, angles: Tensor | None, record: Record | None = None, name: str = ""
    ) -> Tensor:
        """Compute the layer; arguments and result are those of the parent."""

        def attend(y: Tensor) -> Tensor:
            return self.self_attn(y, self.self_attn.keys_values(y, angles), mask, angles, record, f"{name}.self_attn")

        return _residual(self, self.norm2, _residual(self, self.norm1, x, attend), self.feed_forward)


class SkipDecoderLayer(DecoderLayer):
    """A decoder layer with dropout on its skip paths."""

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
        cross_attn = self.cross_attn
        assert cross_attn is not None
        grown: list[KeysValues] = []

        def attend(y: Tensor) -> Tensor:
            grown.append(append(past, self.self_attn.keys_values(y, angles)))
            return self.self_attn(y, grown[0], tgt_mask, angles, record, f"{name}.self_attn")

        def look(y: Tensor) -> Tensor:
            assert memory is not None
            return cross_attn(y, memory, src_mask, None, record, f"{name}.cross_attn")

        x = _residual(self, self.norm1, x, attend)
        x = _residual(self, self.norm2, x, look)
        return _residual(self, self.norm3, x, self.feed_forward), grown[0]


class SkipDropout(Transformer):
    """A Transformer with dropout on the skip paths; in evaluation it equals the ordinary one."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__(config)
        self.encoder.layers = nn.ModuleList(SkipEncoderLayer(config) for _ in range(config.n_encoder_layers))
        self.decoder.layers = nn.ModuleList(SkipDecoderLayer(config) for _ in range(config.n_decoder_layers))
        self.initialise()
