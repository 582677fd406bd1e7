"""``torch.nn.Transformer`` with the embeddings, positions and tied output of the paper around it."""

from __future__ import annotations

import math
from typing import Any

import torch
from serve import Run, serve
from steps import ModuleTrainer, read_batches, timed
from torch import Tensor, nn


class Translator(nn.Module):
    """Post-norm, ReLU; dropout where ours has it: on sub-layers and embeddings, none in attention or activation."""

    def __init__(self, sizes: dict[str, Any], vocab_size: int, dropout: float) -> None:
        super().__init__()
        d_model = sizes["d_model"]
        self.embedding = nn.Embedding(vocab_size, d_model, padding_idx=0)
        nn.init.normal_(self.embedding.weight, std=d_model**-0.5)
        self.core = nn.Transformer(
            d_model, sizes["n_heads"], sizes["n_encoder_layers"], sizes["n_decoder_layers"], sizes["d_ff"], dropout,
            batch_first=True,
        )  # fmt: skip
        self.core.encoder.norm = self.core.decoder.norm = None  # which the paper has not
        for layer in (*self.core.encoder.layers, *self.core.decoder.layers):
            layer.dropout.p = 0.0
            for module in layer.modules():
                if isinstance(module, nn.MultiheadAttention):
                    module.dropout = 0.0
        self.dropout, self.scale = nn.Dropout(dropout), math.sqrt(d_model)
        angles = torch.arange(1024)[:, None] / 10000 ** (torch.arange(0, d_model, 2) / d_model)
        self.register_buffer("positions", torch.stack((angles.sin(), angles.cos()), dim=-1).flatten(1))

    def _place(self, ids: Tensor) -> Tensor:
        return self.dropout(self.embedding(ids) * self.scale + self.positions[: ids.size(1)])

    def forward(self, src: Tensor, tgt_in: Tensor) -> Tensor:
        """Logits ``(B, T, V)``."""
        future = torch.ones(tgt_in.size(1), tgt_in.size(1), dtype=torch.bool).triu(1)
        features = self.core(
            self._place(src), self._place(tgt_in), tgt_mask=future, src_key_padding_mask=src == 0,
            memory_key_padding_mask=src == 0, tgt_key_padding_mask=tgt_in == 0, tgt_is_causal=True,
        )  # fmt: skip
        return nn.functional.linear(features, self.embedding.weight)


def prepare(batches: str, sizes: dict[str, Any], vocab_size: int, precision: str, rate: float = 1e-4) -> Run:
    """Build the model with dropout 0.1."""
    torch.manual_seed(0)
    ids = read_batches(batches)
    model = Translator(sizes, vocab_size, 0.1)
    trainer = ModuleTrainer(model, model, rate, precision == "bf16")
    return lambda warm: timed(trainer.step, ids, [batch.n_tokens for batch in ids], warm)


if __name__ == "__main__":
    serve(prepare, ["torch"])
