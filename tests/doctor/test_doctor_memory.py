"""The formula for the memory of a training step, held to what a step really keeps and takes."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from dragoman.config import Config, ModelConfig
from dragoman.doctor.memory import USABLE, batch_findings, largest_batch
from dragoman.errors import ConfigError
from dragoman.fast.forward import features
from dragoman.fast.training_attention import LONG, SHORT
from dragoman.model.transformer import Transformer
from dragoman.training import memory
from dragoman.training.memory import GIB, activation_bytes, copy_bytes, estimate, n_parameters, state_bytes
from dragoman.training.preparation import check_trainable

SIZES = dict(src_vocab_size=1000, tgt_vocab_size=1000)
CONFIG = Config.from_mapping({"data": {"train": {"src": "a.en", "tgt": "a.de"}}})


def measured_bytes(sizes: ModelConfig, rows: int, src_len: int, tgt_len: int, precision: str) -> int:
    """Run one forward pass of training and count the bytes it keeps for the backward pass, without the weights."""
    model = Transformer(sizes).train()
    weights = {parameter.untyped_storage().data_ptr() for parameter in model.parameters()}
    # Each tensor is kept alive, so that its address is not used again and every address is counted once.
    saved: dict[int, tuple[int, torch.Tensor]] = {}

    def save(tensor: torch.Tensor) -> torch.Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in weights:
            saved[storage.data_ptr()] = storage.nbytes(), tensor
        return tensor

    low = min(sizes.src_vocab_size, sizes.tgt_vocab_size)
    src, tgt = (torch.randint(4, low, (rows, length)) for length in (src_len, tgt_len))
    with torch.autograd.graph.saved_tensors_hooks(save, lambda tensor: tensor):
        output = features(model, src, tgt, torch.bfloat16 if precision == "bf16" else torch.float32)
    total = sum(size for size, _ in saved.values())
    del output
    return total


@pytest.mark.parametrize(
    "changes",
    [
        {},
        dict(norm="pre", share_embeddings="none", generator_bias=True),
        dict(activation="swiglu", share_embeddings="decoder", attention_bias=False),
        dict(positions="learned", max_len=33, d_k=7, d_v=9, n_encoder_layers=2),
    ],
)
def test_parameters_are_counted_as_the_model_has_them(changes: dict[str, object]) -> None:
    config = ModelConfig(**{**dict(preset="tiny", **SIZES), **changes})
    assert n_parameters(config) == sum(parameter.numel() for parameter in Transformer(config).parameters())


@pytest.mark.parametrize(
    ("preset", "changes"),
    [
        ("tiny", dict(dropout=0.1)),
        ("small", dict(dropout=0.0)),
        ("small", dict(dropout=0.1, activation="gelu", norm="pre")),
        ("tiny", dict(dropout=0.1, activation="swiglu")),
        ("tiny", dict(dropout=0.1, attention_dropout=0.1, activation_dropout=0.1)),
        ("small", dict(activation="swish", activation_dropout=0.1, positions="learned")),
        ("tiny", dict(positions="rotary", norm="pre")),
    ],
)
@pytest.mark.parametrize("shape", [(7, 33, 35), (3, SHORT + 5, 99), (2, LONG + 89, LONG + 7)])
def test_activations_are_as_many_bytes_as_the_forward_pass_keeps(
    preset: str, changes: dict[str, object], shape: tuple[int, int, int]
) -> None:
    config = ModelConfig(preset=preset, **SIZES, **changes)
    for precision in ("fp32", "bf16"):
        kept = measured_bytes(config, *shape, precision)
        formula = activation_bytes(config, shape, precision) + copy_bytes(config, precision)
        print(f"{preset} {changes} {shape} {precision}: {kept / 2**20:.1f} MiB kept, {formula / 2**20:.1f} by formula")
        assert formula == pytest.approx(kept, rel=0.03)


_STEPS = r"""
import json, re, sys
import torch
from dragoman.config import ModelConfig, TrainConfig
from dragoman.data.batching import Batch
from dragoman.model.transformer import Transformer
from dragoman.training.update import train_step
def peak(): return 1024 * int(re.search(r'VmHWM:\s+(\d+)', open('/proc/self/status').read())[1])
rows, length, vocab = map(int, sys.argv[1:4])
sizes = ModelConfig(preset="small", src_vocab_size=vocab, tgt_vocab_size=vocab)
model = Transformer(sizes)
train = TrainConfig(precision=sys.argv[4], r_drop=float(sys.argv[5]))
optimizer = torch.optim.Adam(model.parameters(), fused=True)
for _ in range(2):  # with the second the optimiser has its state
    ids = torch.randint(4, vocab, (rows, length))
    batch = Batch(ids, ids, ids, torch.arange(rows), rows * length)
    train_step(model, [batch], optimizer, 1e-4, train, 0)
print(json.dumps(peak()))
"""


@pytest.mark.parametrize(
    ("rows", "length", "vocab", "precision", "r_drop"),
    [
        (40, 48, 4000, "fp32", 0.0),
        (24, 48, 4000, "bf16", 0.0),
        (24, 48, 4000, "fp32", 5.0),
        (7, 251, 4000, "fp32", 0.0),
    ],
)
def test_the_estimate_is_near_the_peak_of_real_steps(
    rows: int, length: int, vocab: int, precision: str, r_drop: float
) -> None:
    """Of the resident memory of a process that makes two updates."""
    if not Path("/proc/self/status").exists():
        pytest.skip("this system does not say how much memory a process has taken")
    arguments = [str(value) for value in (rows, length, vocab, precision, r_drop)]
    out = subprocess.run([sys.executable, "-c", _STEPS, *arguments], check=True, capture_output=True, text=True).stdout
    peak = json.loads(out)
    sizes = ModelConfig(preset="small", src_vocab_size=vocab, tgt_vocab_size=vocab)
    config = CONFIG.model_copy(
        update={"train": CONFIG.train.model_copy(update={"precision": precision, "r_drop": r_drop})}
    )
    found = estimate(config, sizes, rows * length, length)
    print(f"peak {peak / 2**20:.0f} MiB, estimated {found.total / 2**20:.0f} MiB")
    assert 0.95 <= found.total / peak <= 1.3


def test_the_largest_batch_fits_and_the_next_does_not() -> None:
    sizes = ModelConfig(preset="base", **SIZES)
    for gib, length in itertools.product((2.0, 8.0, 24.0), (30, 257)):
        largest = largest_batch(CONFIG, sizes, length, gib * GIB)
        assert estimate(CONFIG, sizes, largest, length).total <= USABLE * gib * GIB
        assert estimate(CONFIG, sizes, round(1.15 * largest) + 256, length).total > USABLE * gib * GIB
    assert largest_batch(CONFIG, sizes, 30, 0.5 * GIB) == 0


def test_a_batch_that_does_not_fit_is_an_error_with_the_one_that_does() -> None:
    sizes = ModelConfig(preset="base", **SIZES)
    big = Config.from_mapping({"data": {"train": {"src": "a", "tgt": "b"}}, "train": {"batch_tokens": 100_000}})
    (found,) = batch_findings(big, sizes, 60, 8 * GIB, "this machine's")
    fits = largest_batch(big, sizes, 60, 8 * GIB)
    assert found.level == "error"
    assert f"--set train.batch_tokens={fits} --set train.accumulate={-(-100_000 // fits)}" in found.advice
    assert not list(batch_findings(big, sizes, 60, 800 * GIB, "this machine's"))
    (found,) = batch_findings(big, sizes, 60, 0.3 * GIB, "this machine's")
    assert found.advice.startswith("choose a smaller model.preset")


def test_r_drop_reads_every_batch_twice() -> None:
    sizes = ModelConfig(preset="tiny", **SIZES)
    twice = CONFIG.model_copy(update={"train": CONFIG.train.model_copy(update={"r_drop": 5.0})})
    one, two = (estimate(config, sizes, 4096, 32) for config in (CONFIG, twice))
    assert two.activations == 2 * one.activations
    assert two.total > one.total
    assert largest_batch(twice, sizes, 32, GIB) < 0.6 * largest_batch(CONFIG, sizes, 32, GIB)


def test_training_refuses_by_the_same_formula_what_no_batch_makes_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = ModelConfig(**CONFIG.model.model_dump(), src_vocab_size=8000, tgt_vocab_size=8000)
    ema = CONFIG.model_copy(update={"train": CONFIG.train.model_copy(update={"ema": 0.99})})
    for config, bytes_each in ((CONFIG, 16), (ema, 20)):
        state = state_bytes(n_parameters(sizes), config.train)
        assert state == estimate(config, sizes, 4096, 64).state == bytes_each * n_parameters(sizes)
        monkeypatch.setattr(memory, "machine_memory", lambda state=state: state)
        check_trainable(config)
        monkeypatch.setattr(memory, "machine_memory", lambda state=state: state - 1)
        with pytest.raises(ConfigError, match=f"{n_parameters(sizes):,} parameters need .* GiB to be trained"):
            check_trainable(config)


def test_the_loss_holds_more_logits_at_once_on_a_gpu() -> None:
    sizes = ModelConfig(preset="base", **SIZES)
    here, there = (
        estimate(
            CONFIG.model_copy(update={"train": CONFIG.train.model_copy(update={"device": device})}), sizes, 25_000, 50
        )
        for device in ("cpu", "cuda")
    )
    assert there.loss > here.loss
    assert (there.parameters, there.state, there.validation) == (here.parameters, here.state, here.validation)
