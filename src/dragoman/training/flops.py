"""How many floating-point operations a training step takes, counted from the shapes."""

from __future__ import annotations

from dragoman.config import ModelConfig


def training_flops(config: ModelConfig, rows: int, src_len: int, tgt_len: int) -> float:
    """FLOPs of one forward and backward pass on ``rows`` padded pairs.

    A product of (m, k) and (k, n) counts 2 m k n; the backward pass takes two for each one forward. Norms, softmax,
    dropout and the optimiser, a few per cent, are left out, as is usual.
    """
    d, h = config.d_model, config.n_heads
    widths = 2 * config.head_d_k + 2 * config.head_d_v  # of w_q, w_k, w_v, w_o for one head
    feed_forward = (3 if config.activation == "swiglu" else 2) * d * config.d_ff

    def attention(queries: int, keys: int) -> float:
        projections = queries * d * h * (widths / 2) + keys * d * h * (widths / 2)
        return projections + queries * keys * h * (config.head_d_k + config.head_d_v)

    encoder = config.n_encoder_layers * (attention(src_len, src_len) + src_len * feed_forward)
    cross = attention(tgt_len, src_len) if config.n_encoder_layers else 0.0
    decoder = config.n_decoder_layers * (attention(tgt_len, tgt_len) + cross + tgt_len * feed_forward)
    generator = tgt_len * d * config.tgt_vocab_size if config.n_decoder_layers else 0.0
    return 3 * 2 * rows * (encoder + decoder + generator)
