"""The loss and its optimised implementation."""

from __future__ import annotations

import contextlib
import math

import pytest
import torch
from torch import nn

from dragoman.fast import loss as loss_module
from dragoman.fast.loss import CPU_LOGITS, GPU_LOGITS, Targets, chunked_loss, positions_at_once
from dragoman.fast.projection import ROWS
from dragoman.fast.r_drop import chunked_r_drop_loss
from dragoman.training.loss import label_smoothed_loss, perplexity, r_drop_loss


def a_problem(bias: bool, dtype: torch.dtype = torch.float64) -> tuple[torch.Tensor, nn.Linear, torch.Tensor]:
    gen = torch.Generator().manual_seed(0)
    features = torch.randn(3, 7, 5, generator=gen, dtype=dtype, requires_grad=True)
    generator = nn.Linear(5, 13, bias=bias, dtype=dtype)
    tgt_out = torch.randint(1, 13, (3, 7), generator=gen)
    tgt_out[0, 4:] = 0
    tgt_out[2, 1:] = 0
    return features, generator, tgt_out


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.5])
def test_plain_loss_equals_torch(smoothing: float) -> None:
    features, generator, tgt_out = a_problem(bias=True)
    logits = generator(features)
    got, plain = label_smoothed_loss(logits, tgt_out, 0, smoothing)
    flat = (logits.flatten(0, 1), tgt_out.flatten())
    want = nn.functional.cross_entropy(*flat, ignore_index=0, label_smoothing=smoothing, reduction="sum")
    torch.testing.assert_close(got, want, rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(plain, nn.functional.cross_entropy(*flat, ignore_index=0, reduction="sum"))


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_chunked_loss_and_its_gradients_equal_the_plain_ones(bias: bool, smoothing: float) -> None:
    results = []
    for fast in (False, True):
        torch.manual_seed(1)
        features, generator, tgt_out = a_problem(bias)
        if fast:
            loss, plain = chunked_loss(features, generator.weight, generator.bias, Targets(tgt_out, 0, smoothing))
        else:
            loss, plain = label_smoothed_loss(generator(features), tgt_out, 0, smoothing)
        (loss / 11).backward()
        results.append([loss, plain, features.grad, *(p.grad for p in generator.parameters())])
    for got, want in zip(*results, strict=True):
        torch.testing.assert_close(got, want, rtol=1e-12, atol=1e-12)


def test_chunks_do_not_change_the_loss() -> None:
    features, generator, tgt_out = a_problem(bias=True)
    whole = chunked_loss(features, generator.weight, generator.bias, Targets(tgt_out, 0, 0.1), chunk=1000)[0]
    parts = chunked_loss(features, generator.weight, generator.bias, Targets(tgt_out, 0, 0.1), chunk=3)[0]
    torch.testing.assert_close(whole, parts, rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("chunk", [1, 2, 3, 5, 11, 128, 1000])
def test_whatever_the_chunk_loss_and_gradients_are_the_same(bias: bool, chunk: int) -> None:
    found = []
    for size in (chunk, None):
        torch.manual_seed(1)
        features, generator, tgt_out = a_problem(bias)
        loss, plain = chunked_loss(features, generator.weight, generator.bias, Targets(tgt_out, 0, 0.1), chunk=size)
        found.append((loss, plain, *torch.autograd.grad(loss, (features, *generator.parameters()))))
    for got, want in zip(*found, strict=True):
        torch.testing.assert_close(got, want, rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("n_vocab", [13, 8_000, 37_000, 2**23, 2**24])
def test_chunks_are_whole_blocks_of_rows_and_as_many_logits_as_a_device_should_hold(n_vocab: int) -> None:
    for device, logits in (("cpu", CPU_LOGITS), ("cuda", GPU_LOGITS), ("meta", GPU_LOGITS)):
        n = positions_at_once(n_vocab, device)
        assert n % ROWS == 0
        assert n == ROWS or logits - ROWS * n_vocab < n * n_vocab <= logits
    assert (CPU_LOGITS, GPU_LOGITS) == (2**23, 2**28)


@pytest.mark.parametrize(("device", "n_chunks"), [("cpu", 8), ("meta", 1)])
def test_elsewhere_than_on_a_cpu_chunks_are_few(device: str, n_chunks: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """1,000 positions of a vocabulary of 65,536: 8 chunks of 128 on a CPU, all at once on a GPU."""
    sizes: list[int] = []
    monkeypatch.setattr(loss_module, "into_range", lambda logits: sizes.append(len(logits)) or 0.0)
    monkeypatch.setattr(torch, "is_autocast_enabled", lambda device: False)
    monkeypatch.setattr(torch, "autocast", lambda *args, **settings: contextlib.nullcontext())
    features, weight = torch.zeros(10, 100, 2, device=device), torch.zeros(2**16, 2, device=device)
    tgt_out, where = torch.ones(10, 100, dtype=torch.int64, device=device), torch.arange(1000, device=device)
    chunked_loss(features, weight, None, Targets(tgt_out, 0, 0.1, where))
    assert len(sizes) == n_chunks
    assert sum(sizes) == 1024


def test_chunked_loss_in_bf16_stays_near_float32() -> None:
    features, generator, tgt_out = a_problem(bias=False, dtype=torch.float32)
    want, _ = chunked_loss(features, generator.weight, generator.bias, Targets(tgt_out, 0, 0.1))
    with torch.autocast("cpu", torch.bfloat16):
        got, _ = chunked_loss(features, generator.weight, generator.bias, Targets(tgt_out, 0, 0.1))
    assert got.dtype == torch.float32
    assert abs(got.item() - want.item()) < 0.02 * want.item()


def test_perplexity_is_the_exponential_and_never_overflows() -> None:
    assert perplexity(math.log(7)) == pytest.approx(7)
    assert perplexity(1e6) == math.inf


def two_passes(dtype: torch.dtype = torch.float64) -> torch.Tensor:
    return torch.randn(6, 7, 5, generator=torch.Generator().manual_seed(2), dtype=dtype, requires_grad=True)


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_r_drop_is_two_losses_and_both_divergences(smoothing: float) -> None:
    _, generator, tgt_out = a_problem(bias=True)
    features, keep = two_passes(), (tgt_out != 0).flatten()
    got = r_drop_loss(features, generator, Targets(tgt_out, 0, smoothing), alpha=5.0)
    log_p, log_q = (generator(half).log_softmax(-1).flatten(0, 1)[keep] for half in features.chunk(2))
    losses = [label_smoothed_loss(generator(half), tgt_out, 0, smoothing) for half in features.chunk(2)]
    kl = nn.functional.kl_div
    both = (kl(log_q, log_p, log_target=True, reduction="sum") + kl(log_p, log_q, log_target=True, reduction="sum")) / 2
    want = (losses[0][0] + losses[1][0]) / 2 + 5.0 / 2 * both
    torch.testing.assert_close(got[0], want, rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(got[1], (losses[0][1] + losses[1][1]) / 2, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize(
    ("smoothing", "alpha", "scale"), [(0.0, 5.0, 1), (0.1, 5.0, 1), (0.1, 0.0, 1), (0.1, 2.0, 300)]
)
def test_r_drop_in_chunks_and_its_gradients_equal_the_plain_ones(
    bias: bool, smoothing: float, alpha: float, scale: float
) -> None:
    _, generator, tgt_out = a_problem(bias)
    features = two_passes()
    scaled = features * scale  # so large that exponentials alone would overflow

    def of(loss: torch.Tensor, plain: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return loss, plain, *torch.autograd.grad(loss / 11, (features, *generator.parameters()), retain_graph=True)

    want = of(*r_drop_loss(scaled, generator, Targets(tgt_out, 0, smoothing), alpha))
    for chunk in (3, 1000):
        parts = scaled, generator.weight, generator.bias, Targets(tgt_out, 0, smoothing), alpha, chunk
        for value, plainly in zip(of(*chunked_r_drop_loss(*parts)), want, strict=True):
            torch.testing.assert_close(value, plainly, rtol=1e-10, atol=1e-10)


def test_r_drop_in_bf16_stays_near_float32() -> None:
    _, generator, tgt_out = a_problem(bias=False, dtype=torch.float32)
    features = two_passes(torch.float32)
    found = []
    for enabled in (False, True):
        with torch.autocast("cpu", torch.bfloat16, enabled=enabled):
            parts = features, generator.weight, generator.bias, Targets(tgt_out, 0, 0.1)
            loss, _ = chunked_r_drop_loss(*parts, alpha=5.0)
        found.append((loss, *torch.autograd.grad(loss, (features, generator.weight))))
    for got, want in zip(*reversed(found), strict=True):
        assert got.dtype == torch.float32
        assert (got - want).norm() < 0.03 * want.norm()


def test_r_drop_of_equal_passes_is_the_ordinary_loss() -> None:
    features, generator, tgt_out = a_problem(bias=False)
    parts = generator.weight, generator.bias, Targets(tgt_out, 0, 0.1)
    got = chunked_r_drop_loss(features.repeat(2, 1, 1), *parts, alpha=5.0)
    for value, want in zip(got, chunked_loss(features, *parts), strict=True):
        torch.testing.assert_close(value, want, rtol=1e-12, atol=1e-12)
