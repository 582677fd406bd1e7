"""Floating-point operations of a training step, counted from the shapes."""

from __future__ import annotations

from dragoman.config import ModelConfig, unknown

GATES = {"rnn": 1, "gru": 3, "lstm": 4}
"""Number of weight matrices of a recurrent cell."""


def training_flops(config: ModelConfig, rows: int, src_len: int, tgt_len: int) -> float:
    """Return the FLOPs of one forward and backward pass on ``rows`` padded pairs.

    A product of (m, k) and (k, n) counts 2 m k n, and twice that in the backward pass. Norms, softmax, dropout and the
    optimiser, a few per cent, are not counted, as is usual.
    """
    if config.architecture == "transformer":
        count = _transformer
    elif config.architecture == "conv":
        count = _convolutional
    elif config.architecture in GATES:
        count = _recurrent
    else:
        raise unknown("model.architecture", config.architecture)
    generator = tgt_len * config.d_model * config.tgt_vocab_size if config.n_decoder_layers else 0
    return 3 * 2 * rows * (count(config, src_len, tgt_len) + generator)


def _transformer(config: ModelConfig, src_len: int, tgt_len: int) -> float:
    """Return the multiplications for one pair in ``model.transformer``, before the generator."""
    d, h = config.d_model, config.n_heads
    widths = 2 * config.head_d_k + 2 * config.head_d_v  # of w_q, w_k, w_v, w_o for one head
    feed_forward = (3 if config.is_gated else 2) * d * config.d_ff

    def attention(queries: int, keys: int) -> float:
        projections = queries * d * h * (widths / 2) + keys * d * h * (widths / 2)
        return projections + queries * keys * h * (config.head_d_k + config.head_d_v)

    encoder = config.n_encoder_layers * (attention(src_len, src_len) + src_len * feed_forward)
    cross = attention(tgt_len, src_len) if config.n_encoder_layers else 0.0
    decoder = config.n_decoder_layers * (attention(tgt_len, tgt_len) + cross + tgt_len * feed_forward)
    return encoder + decoder


def _recurrent(config: ModelConfig, src_len: int, tgt_len: int) -> float:
    """Return the multiplications for one pair in ``model.baselines.recurrent``, before the generator."""
    d, n_above = config.d_model, config.n_decoder_layers - 1
    gates = GATES[config.architecture]
    encoder = src_len * config.n_encoder_layers * gates * d * (d + d // 2)  # two directions of width d / 2
    decoder = tgt_len * gates * d * d * (3 + 2 * n_above) + (n_above + 1) * d * d  # token, context, state; the starts
    attention = src_len * d * d + tgt_len * (d * d + src_len * 2 * d)
    return encoder + decoder + attention + tgt_len * 2 * d * d


def _convolutional(config: ModelConfig, src_len: int, tgt_len: int) -> float:
    """Return the multiplications for one pair in ``model.baselines.convolutional``, before the generator."""
    d, window = config.d_model, 2 * config.kernel_width * config.d_model**2
    encoder = src_len * (config.n_encoder_layers * window + d * d)
    decoder = tgt_len * config.n_decoder_layers * (window + 2 * d * d + src_len * 2 * d)
    return encoder + decoder + tgt_len * d * d
