"""Memory of a training step, by formula.

    needed = estimate(config, sizes, batch_tokens=4096, length=100).total

Weights, their gradients and Adam's two moments are held throughout: 16 bytes a parameter, and 4 more for a moving
average. Everything that the forward pass saves for the backward pass grows with the batch. It is counted here layer by
layer, in bytes for each position, as ``dragoman.fast.forward`` saves it. The loss holds the gradients of the generator
and of the features, and the logits of one chunk. Validation holds the logits of a whole batch.
"""

from __future__ import annotations

import functools
import os
from pathlib import Path
from typing import NamedTuple

import torch

from dragoman.config import Config, ModelConfig, TrainConfig
from dragoman.fast.loss import positions_at_once
from dragoman.fast.projection import ROWS
from dragoman.fast.training_attention import SHORT, is_written_out, padded_keys
from dragoman.model.weights import shapes

GIB = 2**30
VALIDATION_TOKENS = 4096
"""Largest number of tokens in a batch of validation, which holds all its logits at once."""

LIBRARIES = 0.4 * GIB  # Python, torch and the others on a CPU; on a GPU the context is about as large
HELD = 1.15  # memory held by the allocator, over the size of long-lived tensors
PASSING = 1.35  # the same for short-lived tensors, gradients of the backward pass included; measured on a CPU


class Estimate(NamedTuple):
    """Bytes of one training step in the worst case."""

    parameters: int  # number of parameters
    state: float  # weights, gradients, moments, moving average
    activations: float  # saved for the backward pass
    loss: float
    validation: float
    total: float  # libraries and slack included


@functools.cache
def n_parameters(config: ModelConfig) -> int:
    """Return the number of parameters of a model, tied ones counted once."""
    return sum(tensor.numel() for tensor in shapes(config).values())


def state_bytes(parameters: int, train: TrainConfig) -> float:
    """Return the bytes of weights, gradients, moments and, if configured, the moving average."""
    return parameters * (16.0 + (4 if train.ema else 0))


def activation_bytes(config: ModelConfig, shape: tuple[int, int, int], precision: str, device: str = "cpu") -> float:
    """Return the bytes that the forward pass of a Transformer saves for the backward pass, without the loss.

    Args:
        config: The model with its vocabularies.
        shape: Rows of the batch, and the lengths of its sources and of its targets.
        precision: "bf16" or "fp32".
        device: "cpu" or "cuda", which fuse different kernels.
    """
    rows, src_len, tgt_len = shape
    d, f, h = config.d_model, config.d_ff, config.n_heads
    qk, v = h * config.head_d_k, h * config.head_d_v
    low = 2 if precision == "bf16" else 4  # bytes of a number that products read and write
    n_src, n_tgt = (-(-rows * length // ROWS) * ROWS for length in (src_len, tgt_len))
    # around each sub-layer: its input, the sum or the norm's input, the norm's statistics, the dropout mask
    around = low * d * (3 if config.dropout else 2) + 8

    def attention(queries: int, keys: int, is_self: bool) -> float:
        """Return the bytes saved between the projections."""
        turned = low * qk * rows * (queries + keys) if config.is_rotary and is_self else 0
        if is_written_out(torch.device(device), keys) and not turned:
            masks = 2 if config.attention_dropout else 1
            return rows * queries * h * padded_keys(keys) * masks * (4 if keys <= SHORT else low)
        kernel = rows * queries * (low * v + 4 * h)
        if device == "cpu" and (config.attention_dropout or config.head_d_k != config.head_d_v):
            # torch has no fused kernel for this: float32 weights, and with dropout a mask and a product of that size
            kernel += rows * queries * keys * h * (12 if config.attention_dropout else 4)
        return turned + kernel

    def self_attention(n: int, length: int) -> float:
        return n * (low * (2 * qk + 2 * v) + around) + attention(length, length, True)

    # inputs that are saved: of w_2; of the activation, unless it is relu (fused); of the product with a gate, two
    n_inner = 4 if config.is_gated else 1 if config.activation == "relu" else 2
    if config.activation_dropout:
        n_inner += 2 if config.activation == "relu" else 1
    feed_forward = low * n_inner * f + around
    encoder = config.n_encoder_layers * (self_attention(n_src, src_len) + n_src * feed_forward)
    cross = n_tgt * (low * (qk + v) + around) + n_src * low * (qk + v) + attention(tgt_len, src_len, False)
    decoder = config.n_decoder_layers * (self_attention(n_tgt, tgt_len) + cross + n_tgt * feed_forward)
    ends = 2 * low * d * n_src + 4 * d * (rows * (src_len + tgt_len) if config.dropout else 0)  # memory; masks
    return float(encoder + decoder + ends)


def copy_bytes(config: ModelConfig, precision: str) -> float:
    """Return the bytes of the weights that a Transformer's forward pass copies: concatenated, or in bfloat16."""
    d, qk, v = config.d_model, config.n_heads * config.head_d_k, config.n_heads * config.head_d_v
    own, cross = (2 * qk + v) * d, (qk + v) * d
    if precision != "bf16":
        return 4.0 * (config.n_encoder_layers * own + config.n_decoder_layers * (own + cross))
    feed_forward = (3 if config.is_gated else 2) * d * config.d_ff
    return 2.0 * (
        config.n_encoder_layers * (own + v * d + feed_forward)
        + config.n_decoder_layers * (2 * (own + v * d) + feed_forward)
    )


def loss_bytes(config: ModelConfig, positions: int, precision: str, r_drop: bool, device: str = "cpu") -> float:
    """Return the bytes of the loss for so many target positions, both passes of R-Drop counted."""
    d, n_vocab, low = config.d_model, config.tgt_vocab_size, 2 if precision == "bf16" else 4
    # generator: its gradient in float32, a chunk's part of that, a copy in bfloat16
    generator = n_vocab * d * (4 + low + (2 if precision == "bf16" else 0))
    features = positions * d * (3 * low + 3 * 4)  # as given and padded to blocks; their gradient, and its parts
    at_once = 2 * positions_at_once(2 * n_vocab, device) if r_drop else positions_at_once(n_vocab, device)
    logits = min(at_once, positions) * n_vocab * low * (2 if r_drop else 1)  # R-Drop also holds their gradients
    return float(generator + features + logits)


def estimate(config: Config, sizes: ModelConfig, batch_tokens: int, length: int) -> Estimate:
    """Estimate the memory of one step of a Transformer.

    Args:
        config: ``train.precision`` and ``train.device`` are resolved; "auto" counts as fp32 on a CPU.
        sizes: The model with its vocabularies.
        batch_tokens: Rows times the longest side.
        length: Length of the longest pair's longer side in subwords. The worst case is a batch of rows of this length.
    """
    train, n = config.train, n_parameters(sizes)
    precision = "bf16" if train.precision == "bf16" else "fp32"
    rows = max(1, batch_tokens // length) * (2 if train.r_drop else 1)  # R-Drop reads each batch twice
    state = state_bytes(n, train)
    device = "cuda" if train.device == "cuda" else "cpu"
    activations = activation_bytes(sizes, (rows, length, length), precision, device)
    loss = loss_bytes(sizes, rows * length, precision, train.r_drop > 0, device)
    # logits and log-probabilities in float32
    validation = 2.0 * 4 * sizes.tgt_vocab_size * max(length, min(batch_tokens, VALIDATION_TOKENS))
    passing = max(PASSING * (activations + copy_bytes(sizes, precision) + loss), HELD * validation)
    return Estimate(n, state, activations, loss, validation, LIBRARIES + HELD * state + passing)


def machine_memory() -> float:
    """Return the bytes of memory of this machine, or of the control group of this process if that is less."""
    n_bytes = float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    for name in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        try:
            limit = Path(name).read_text(encoding="ascii").strip()
        except OSError:
            continue
        if limit.isdigit():
            n_bytes = min(n_bytes, float(limit))
    return n_bytes


def device_memory(device: torch.device | str) -> float:
    """Return the bytes of memory of a GPU, or of this machine."""
    if str(device).startswith("cuda"):
        return float(torch.cuda.get_device_properties(device).total_memory)
    return machine_memory()
