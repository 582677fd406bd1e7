"""Which batch size fits in memory, by the formula of ``training.memory``.

``measure`` runs a small step and counts what was really kept: the formula is held to it.
"""

from __future__ import annotations

import math

from dragoman.config import Config, ModelConfig
from dragoman.doctor.findings import Finding
from dragoman.training.memory import GIB, estimate

USABLE = 0.9  # of the memory: the rest is for the system and for what else runs


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
    """Run one forward pass of training with random ids and count the bytes it keeps for the backward pass.

    Weights are left out, copies of them are not.
    """
    import torch

    from dragoman.fast.forward import features
    from dragoman.model.transformer import Transformer

    model = Transformer(sizes).train()
    weights = {parameter.untyped_storage().data_ptr() for parameter in model.parameters()}
    kept: dict[int, tuple[int, torch.Tensor]] = {}  # held, so that no address comes back

    def note(tensor: torch.Tensor) -> torch.Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in weights:
            kept[storage.data_ptr()] = storage.nbytes(), tensor
        return tensor

    low = min(sizes.src_vocab_size, sizes.tgt_vocab_size)
    src, tgt = (torch.randint(4, low, (rows, length)) for length in (src_len, tgt_len))
    with torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor):
        found = features(model, src, tgt, torch.bfloat16 if precision == "bf16" else torch.float32)
    total = sum(size for size, _ in kept.values())
    del found
    return total
