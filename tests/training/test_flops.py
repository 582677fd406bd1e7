"""Counted operations: those that torch counts."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from dragoman.config import ModelConfig
from dragoman.model.transformer import Transformer
from dragoman.training.flops import training_flops
from dragoman.training.loss import label_smoothed_loss

SIZES = dict(d_model=10, d_ff=14, n_heads=2, n_encoder_layers=2, n_decoder_layers=1, dropout=0.0)


@pytest.mark.parametrize(
    "variant",
    [
        {},
        {"activation": "swiglu", "share_embeddings": "none", "norm": "pre"},
        {"n_heads": 5, "d_k": 6, "d_v": 7, "n_encoder_layers": 3},
        {"n_encoder_layers": 0, "share_embeddings": "decoder"},
    ],
)
def test_counted_operations_are_those_that_torch_counts(variant: dict[str, Any]) -> None:
    model = Transformer(ModelConfig(**{**SIZES, "src_vocab_size": 13, "tgt_vocab_size": 13, **variant}))
    rows, src_len, tgt_len = 3, 7, 5
    gen = torch.Generator().manual_seed(0)
    src, tgt = (torch.randint(4, 13, (rows, n), generator=gen) for n in (src_len, tgt_len))
    with FlopCounterMode(display=False) as counter:
        logits = model(src if model.config.n_encoder_layers else None, tgt)
        torch.autograd.backward(label_smoothed_loss(logits, tgt, 0, 0.1)[0])
    assert training_flops(model.config, rows, src_len, tgt_len) == counter.get_total_flops()
