"""What the tests of the baselines share: small models of each kind in float64, and a batch with padding."""

from typing import Any

import torch

from dragoman.config import ModelConfig
from dragoman.model.build import EncoderDecoder, build

SIZES = dict(d_model=12, n_encoder_layers=2, n_decoder_layers=3, dropout=0.0, max_len=19)

VARIANTS: dict[str, dict[str, Any]] = {
    "rnn": dict(architecture="rnn"),
    "gru": dict(architecture="gru"),
    "lstm": dict(architecture="lstm"),
    "lstm of one layer": dict(architecture="lstm", n_encoder_layers=1, n_decoder_layers=1),
    "lstm, nothing shared": dict(architecture="lstm", share_embeddings="none", tgt_vocab_size=17, generator_bias=True),
    "conv": dict(architecture="conv"),
    "wide conv": dict(architecture="conv", kernel_width=5, positions="learned"),
    "conv of single positions": dict(architecture="conv", kernel_width=1, share_embeddings="decoder"),
}

SRC = torch.tensor([[4, 7, 6, 9, 3], [8, 10, 3, 0, 0], [9, 3, 0, 0, 0]])
TGT = torch.tensor([[2, 6, 8, 9, 4, 11, 7], [2, 11, 10, 12, 3, 6, 6], [2, 4, 4, 7, 8, 12, 9]])


def a_baseline(seed: int = 0, **fields: Any) -> EncoderDecoder:
    """A model in eval mode, its biases drawn too, so that none may be forgotten."""
    torch.manual_seed(seed)
    model = build(ModelConfig(**{**SIZES, "src_vocab_size": 13, "tgt_vocab_size": 13, **fields})).double().eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if name.endswith("bias"):
                parameter.normal_(std=0.3)
    return model
