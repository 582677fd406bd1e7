"""How much memory a training step takes, by formula, and which batch size fits.

What stays through a step are the weights, their gradients and Adam's two moments: 16 bytes a parameter, and 4 more for
a moving average. What grows with the batch is what the forward pass keeps for the backward pass; it is counted here
layer by layer, in bytes for each position, as the plain code of ``dragoman.model`` keeps it. The loss holds the
gradient of the generator and the logits of one chunk; validation holds the logits of a whole batch.

``measure`` runs a small step and counts what was really kept: the formula is held to it.
"""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import NamedTuple

from dragoman.config import Config, ModelConfig
from dragoman.doctor.findings import Finding

GIB = 2**30
LOSS_CHUNK = 1024  # positions whose logits the loss holds at once on a CPU
VALIDATION_TOKENS = 4096  # of a batch of validation at most
LIBRARIES = 0.4 * GIB  # Python, torch and the others on a CPU; on a GPU the context is about as large
HELD = 1.15  # what an allocator holds for large tensors that stay, over what is asked of it
PASSING = 1.35  # the same for what comes and goes, gradients of the backward pass included; measured on a CPU
USABLE = 0.9  # of the memory: the rest is for the system and for what else runs


class Estimate(NamedTuple):
    """Bytes of one training step at its worst."""

    parameters: int  # how many
    state: float  # weights, gradients, moments, moving average
    activations: float  # kept for the backward pass
    loss: float
    validation: float
    total: float  # libraries and slack included


def n_parameters(config: ModelConfig) -> int:
    """Parameters of a Transformer, tied ones once."""
    d, bias = config.d_model, int(config.attention_bias)
    qk, v = config.n_heads * config.head_d_k, config.n_heads * config.head_d_v
    attention = 2 * qk * (d + bias) + v * (d + bias) + d * (v + bias)
    n_inner = 2 if config.activation == "swiglu" else 1
    feed_forward = n_inner * config.d_ff * (d + 1) + d * (config.d_ff + 1)
    encoder = config.n_encoder_layers * (attention + feed_forward + 4 * d)
    decoder = config.n_decoder_layers * (2 * attention + feed_forward + 6 * d)
    last_norms = 4 * d if config.norm == "pre" else 0
    src, tgt = config.src_vocab_size, config.tgt_vocab_size
    n_rows = {"all": tgt, "decoder": src + tgt, "none": src + 2 * tgt}[config.share_embeddings]
    positions = 2 * config.max_len * d if config.positions == "learned" else 0
    return n_rows * d + int(config.generator_bias) * tgt + encoder + decoder + last_norms + positions


def activation_bytes(config: ModelConfig, rows: int, src_len: int, tgt_len: int, precision: str) -> float:
    """Bytes that the forward pass keeps for the backward pass, up to the decoder's last output."""
    d, f, h = config.d_model, config.d_ff, config.n_heads
    qk, v = h * config.head_d_k, h * config.head_d_v
    bf16 = precision == "bf16"
    low = 2 if bf16 else 4  # of what products read and give
    cast = 2 * d if bf16 else 0  # a product's input, once more in bf16
    # of a sub-layer: the sum before the norm; the norm's output, unless casts of it are kept; the mask of dropout
    around = 4 * d + (0 if bf16 else 4 * d) + (low * d if config.dropout else 0)

    def attention(queries: int, keys: int) -> float:
        weights = queries * keys * h * (4 + low + (low if config.attention_dropout else 0))
        return queries * (low * (qk + v) + around + cast) + keys * (low * (qk + v) + 2 * cast) + weights

    n_inner = {"relu": 1, "gelu": 2, "swish": 2, "swiglu": 4}[config.activation] + 2 * bool(config.activation_dropout)
    feed_forward = low * n_inner * f + around + cast
    encoder = config.n_encoder_layers * (attention(src_len, src_len) + src_len * feed_forward)
    cross = attention(tgt_len, src_len)
    decoder = config.n_decoder_layers * (attention(tgt_len, tgt_len) + cross + tgt_len * feed_forward)
    embedding = (src_len + tgt_len) * 4 * d * (2 if config.dropout else 1)
    return float(rows * (encoder + decoder + embedding))


def estimate(config: Config, sizes: ModelConfig, batch_tokens: int, length: int) -> Estimate:
    """The memory of one step.

    Args:
        config: Its ``train.device`` is taken for a CPU unless it is ``cuda``.
        sizes: The model with its vocabularies.
        batch_tokens: Rows times longest side.
        length: Of the longest pair's longer side in subwords; rows of this length fill the batch, the worst case.
    """
    from dragoman.fast.loss import positions_at_once  # which imports torch

    n, n_vocab, d = n_parameters(sizes), sizes.tgt_vocab_size, sizes.d_model
    precision = "bf16" if config.train.precision == "bf16" else "fp32"
    low = 2 if precision == "bf16" else 4
    rows = max(1, batch_tokens // length) * (2 if config.train.r_drop else 1)  # R-Drop reads each batch twice
    state = n * (16 + (4 if config.train.ema else 0) + (2 if precision == "bf16" else 0))
    activations = activation_bytes(sizes, rows, length, length, precision)
    chunk, copies = LOSS_CHUNK, 3
    if config.train.device == "cuda":  # by reading: not measured
        chunk, copies = positions_at_once(n_vocab, "cuda"), 2 if config.train.r_drop else 1
    logits = min(chunk, rows * length) * n_vocab * copies * low
    loss = 2 * 4 * n_vocab * d + 2 * 4 * rows * length * d + logits
    validation = 3 * 4 * n_vocab * min(VALIDATION_TOKENS, max(batch_tokens, length))
    total = LIBRARIES + HELD * state + PASSING * max(activations + loss, validation)
    return Estimate(n, state, activations, float(loss), float(validation), total)


def largest_batch(config: Config, sizes: ModelConfig, length: int, available: float) -> int:
    """The largest ``batch_tokens`` whose step fits, in steps of 256; 0 if none does.

    Args:
        available: Bytes.
    """
    fits = 0
    for tokens in _candidates(length):
        if estimate(config, sizes, tokens, length).total > USABLE * available:
            break
        fits = tokens
    return fits


def _candidates(length: int) -> list[int]:
    """Sizes that are tried, ascending: steps of about 6%, at least one pair long."""
    sizes = [256 * round(1.06**k) for k in range(16, 140)]
    return sorted({max(size, length) for size in sizes})


def machine_memory() -> float:
    """Bytes of memory of this machine, or of the control group this process is confined to, if that is less."""
    there = float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    for name in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        try:
            limit = Path(name).read_text(encoding="ascii").strip()
        except OSError:
            continue
        if limit.isdigit():
            there = min(there, float(limit))
    return there


def batch_finding(config: Config, sizes: ModelConfig, length: int, available: float, where: str) -> Finding:
    """Whether the configured batch fits, and which is the largest that does.

    Args:
        length: Of the longest pair that is kept, in subwords, eos counted.
        available: Bytes.
        where: What memory this is, in words.
    """
    now = estimate(config, sizes, config.train.batch_tokens, length)
    largest = largest_batch(config, sizes, length, available)
    needs = f"a step needs about {now.total / GIB:.1f} GiB of {where}'s {available / GIB:.1f} GiB"
    model = f"{now.parameters:,} parameters, batches of {config.train.batch_tokens:,} tokens: {needs}"
    if not largest:
        least = estimate(config, sizes, length, length).total / GIB
        return Finding(
            "error", "memory", f"{model}; not even one pair of {length} subwords fits ({least:.1f} GiB)",
            "choose a smaller model.preset, or lower data.max_tokens",
        )  # fmt: skip
    if now.total > USABLE * available:
        times = math.ceil(config.train.batch_tokens / largest)
        return Finding(
            "error", "memory", f"{model}; up to {largest:,} tokens would fit",
            f"set train.batch_tokens to {largest} and train.accumulate to {times * config.train.accumulate}: the same "
            "update in parts",
        )  # fmt: skip
    return Finding("note", "memory", f"{model}; up to {largest:,} tokens would fit", "nothing: the batch fits")


def measure(sizes: ModelConfig, rows: int, src_len: int, tgt_len: int, precision: str = "fp32") -> int:
    """Run one forward pass with random ids and count the bytes it keeps for the backward pass.

    Weights, and bf16 copies of them, are left out.
    """
    import torch

    from dragoman.model.transformer import Transformer

    model = Transformer(sizes).train()
    weights = {parameter.untyped_storage().data_ptr() for parameter in model.parameters()}
    matrices = [parameter for parameter in model.parameters() if parameter.ndim == 2]
    copies = {shape for matrix in matrices for shape in (matrix.shape, matrix.mT.shape)}
    kept: dict[int, tuple[int, torch.Tensor]] = {}  # held, so that no address comes back

    def note(tensor: torch.Tensor) -> torch.Tensor:
        storage = tensor.untyped_storage()
        is_copy = tensor.dtype == torch.bfloat16 and tensor.shape in copies
        if storage.data_ptr() not in weights and not is_copy:
            kept[storage.data_ptr()] = storage.nbytes(), tensor
        return tensor

    low = min(sizes.src_vocab_size, sizes.tgt_vocab_size)
    src, tgt = (torch.randint(4, low, (rows, length)) for length in (src_len, tgt_len))
    with (
        torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor),
        torch.autocast("cpu", torch.bfloat16, enabled=precision == "bf16"),
    ):
        features = model.features(src, tgt)
    total = sum(size for size, _ in kept.values())
    del features
    return total
