"""What the tests of the model share: a list of variants, and small models with random weights in float64."""

from collections.abc import Callable
from typing import Any

import torch

from dragoman.config import ModelConfig
from dragoman.model.transformer import Transformer

Build = Callable[..., Transformer]

SIZES = dict(d_model=12, n_heads=3, d_ff=23, n_encoder_layers=2, n_decoder_layers=2, dropout=0.0, max_len=19)

VARIANTS: dict[str, dict[str, Any]] = {
    "the paper's": {},
    "pre-norm": dict(norm="pre"),
    "GELU": dict(activation="gelu"),
    "swish": dict(activation="swish"),
    "SwiGLU": dict(activation="swiglu"),
    "learned positions": dict(positions="learned"),
    "rotary positions": dict(positions="rotary"),
    "heads of own width": dict(d_k=5, d_v=7),
    "rotary heads of own width": dict(positions="rotary", d_k=2, d_v=5, norm="pre"),
    "decoder shared": dict(share_embeddings="decoder", tgt_vocab_size=17),
    "nothing shared": dict(share_embeddings="none", tgt_vocab_size=17),
    "unscaled": dict(scale_embeddings=False),
    "attention without bias": dict(attention_bias=False),
    "generator with bias": dict(generator_bias=True),
    "another pad_id": dict(pad_id=5),
    "one encoder layer and three decoder layers": dict(n_encoder_layers=1, n_decoder_layers=3),
    "modern": dict(
        norm="pre", activation="swiglu", positions="rotary", attention_bias=False, share_embeddings="none"
    ),
    "language model": dict(n_encoder_layers=0),
    "modern language model": dict(n_encoder_layers=0, norm="pre", positions="rotary", activation="swiglu"),
}  # fmt: skip


def build_model(seed: int = 0, dtype: torch.dtype = torch.float64, **fields: Any) -> Transformer:
    """A model in eval mode; no parameter is 0 or 1, so that none may be forgotten."""
    fields = {**SIZES, "src_vocab_size": 13, "tgt_vocab_size": 13, **fields}
    model = Transformer(ModelConfig(**fields)).to(dtype).eval()
    gen = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            one = "norm" in name and name.endswith("weight")
            parameter.copy_(torch.randn(parameter.shape, generator=gen, dtype=torch.float64) / 2 + one)
    return model
