"""What training and decoding do on a GPU: on a stand-in everywhere, and on a real one where there is one."""

from __future__ import annotations

import math
import warnings
from typing import Any

import pytest
import torch
from torch import Tensor

from dragoman.config import DecodeConfig, ModelConfig, SpecialIds, TrainConfig
from dragoman.data.batching import Batch, collate
from dragoman.decoding import search
from dragoman.decoding.request import SearchBatch, SearchSettings
from dragoman.fast import forward
from dragoman.fast.step import FastTransformer
from dragoman.model.transformer import Transformer
from dragoman.training import update
from dragoman.training.averaging import start_ema, update_ema
from dragoman.training.update import train_step
from gpu_like import META, GpuLike, as_a_gpu
from searching import beam_search

needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU here")

VARIANTS: dict[str, dict[str, Any]] = {
    "post-norm": {},
    "pre-norm": dict(norm="pre"),
    "rotary": dict(positions="rotary"),
    "learned": dict(positions="learned"),
    "SwiGLU": dict(activation="swiglu", share_embeddings="none", generator_bias=True),
    "heads of own width": dict(d_k=6, d_v=10),
}
FINDS_EOS = SpecialIds(pad=0, unk=3, bos=2, eos=1)
"""The stand-in answers every question with 1: so that its searches end."""


def a_model(**changes: Any) -> Transformer:
    torch.manual_seed(3)
    sizes = dict(d_model=20, d_ff=28, n_heads=2, n_encoder_layers=2, n_decoder_layers=2, dropout=0.1)
    sizes |= dict(src_vocab_size=53, tgt_vocab_size=53)
    return Transformer(ModelConfig(**{**sizes, **changes}))


def batches(n: int = 1) -> list[Batch]:
    gen = torch.Generator().manual_seed(5)

    def side(lengths: tuple[int, ...]) -> list[list[int]]:
        return [torch.randint(4, 53, (length,), generator=gen).tolist() for length in lengths]

    return [collate(side((3, 7, 5)), side((11, 2, 6)), range(3)) for _ in range(n)]


@pytest.mark.parametrize(
    ("name", "settings", "precision"),
    [
        *((name, {}, "bf16") for name in VARIANTS),
        ("pre-norm", {"r_drop": 2.0, "token_dropout": 0.1}, "fp32"),
        ("post-norm", {"clip_norm": 1.0}, "bf16"),
        ("post-norm", {"clip_norm": 1.0}, "fp32"),
    ],
)
def test_a_step_waits_for_the_device_once(
    name: str, settings: dict[str, Any], precision: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And sends it nothing of another device, nor layer norms of two dtypes."""
    as_a_gpu(monkeypatch)
    model = a_model(**VARIANTS[name]).to(META)
    optimizer, ema = torch.optim.SGD(model.parameters(), lr=0.0), start_ema(model)
    config, is_tag = TrainConfig(precision=precision, **settings), torch.zeros(53, dtype=torch.bool, device=META)
    with GpuLike() as seen:
        result = train_step(model, batches(2), optimizer, 1e-3, config, 0, is_tag=is_tag)
        update_ema(ema, model, 0.9, 1)
    assert (result.finite, result.tokens) == (True, 44)
    assert (seen.waits, seen.mixed, seen.norms) == (["aten._to_copy.default"], [], [])  # one look at three numbers


def test_the_stand_in_sees_what_would_be_waited_for() -> None:
    here, there = torch.ones(3, 5), torch.ones(3, 5, device=META)
    norm = torch.nn.LayerNorm(5, device=META)
    with GpuLike() as seen:
        float(there.sum())
        bool((there > 0).any())
        there[there[:, 0] > 0]
        (there > 0).nonzero()
        there.cpu()
        there.sum(0).tolist()
        here.to(META)
        torch.unique_consecutive(there)
        assert len(seen.waits) == 8
        here.to(META, non_blocking=True)
        there + torch.ones(())
        norm(there)
        assert (len(seen.waits), seen.mixed, seen.norms) == (8, [], [])
        torch.native_layer_norm(there.bfloat16(), (5,), norm.weight, norm.bias, 1e-5)
        torch.mm(here, there.T)
    assert len(seen.norms) == len(seen.mixed) == 1


@pytest.mark.parametrize(
    ("name", "precision"), [*((name, "bf16") for name in VARIANTS), ("post-norm", "fp32"), ("rotary", "fp32")]
)
@torch.no_grad()
def test_a_search_keeps_to_the_device(name: str, precision: str) -> None:
    # not in inference mode, in which operators are seen before they are taken apart
    greedy, beam = (search.__wrapped__ for search in (search.greedy_search, search.beam_search))  # type: ignore[attr-defined]
    model = a_model(**VARIANTS[name]).to(META).eval()
    src = torch.full((3, 7), 4)
    with GpuLike() as seen:
        for engine in (FastTransformer(model, precision), model):
            batch = SearchBatch(src=src.to(META), max_lens=[9, 8, 9])
            settings = SearchSettings(decode=DecodeConfig(beam_size=4), special=FINDS_EOS)
            greedy(engine, batch, settings)
            beam(engine, batch, settings)
            state = engine.start(src.to(META)).select(torch.tensor([0, 0, 1, 1, 2, 2], device=META))
            for _ in range(3):
                logits, state = engine.step(state, torch.zeros(6, dtype=torch.int64, device=META))
                state = state.select(torch.tensor([0, 1, 3, 2, 5, 4], device=META))
            assert (logits.shape, logits.device) == ((6, 53), META)
    assert (seen.mixed, seen.norms) == ([], [])


def test_norms_in_the_dtype_of_their_input_are_those_of_both(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a GPU is given, computed on a CPU."""
    norm = torch.nn.LayerNorm(97)
    torch.nn.init.normal_(norm.weight, generator=torch.Generator().manual_seed(1))
    torch.nn.init.normal_(norm.bias, generator=torch.Generator().manual_seed(2))
    given = torch.randn(13, 97, generator=torch.Generator().manual_seed(3)).bfloat16()
    side = torch.randn(13, 97, generator=torch.Generator().manual_seed(4)).bfloat16()
    found: list[tuple[Tensor, ...]] = []
    for both in (True, False):
        monkeypatch.setattr(forward, "takes_both_dtypes", lambda device, both=both: both)
        x = given.clone().requires_grad_()
        out = forward.layer_norm(x, norm)
        found.append((out.detach(), *torch.autograd.grad((out * side).sum(), [x, norm.weight, norm.bias])))
    for mine, want in zip(*reversed(found), strict=True):
        assert mine.dtype == want.dtype
        assert (mine - want).float().norm() < 0.01 * want.float().norm()
    assert found[0][2].dtype == torch.float32
    assert not forward.takes_both_dtypes(torch.device("cuda"))


def test_where_the_targets_are_is_found_at_collation_and_goes_with_the_batch() -> None:
    (batch,) = batches()
    assert batch.where is not None
    assert torch.equal(batch.where, batch.tgt_out.flatten().nonzero()[:, 0])
    assert len(batch.where) == batch.n_tgt_tokens
    moved = batch.to(META)
    assert moved.where is not None
    assert (moved.where.device, moved.where.shape) == (META, batch.where.shape)


def test_a_batch_without_that_makes_the_same_update() -> None:
    found = []
    for where in (True, False):
        model, (batch,) = a_model(dropout=0.0), batches()
        if not where:
            batch = Batch(batch.src, batch.tgt_in, batch.tgt_out, batch.indices, batch.n_tgt_tokens)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
        found.append((train_step(model, [batch], optimizer, 0.1, TrainConfig(precision="fp32"), 0), model.state_dict()))
    assert found[0][0] == found[1][0]
    torch.testing.assert_close(found[0][1], found[1][1], rtol=0, atol=0)


def test_a_rank_says_of_its_own_part_whether_it_is_finite() -> None:
    fine = [torch.ones(3), torch.zeros(2, 5), torch.tensor(2.0)]
    assert update.all_finite(fine)
    for bad in (math.nan, math.inf):
        assert not update.all_finite([*fine, torch.tensor([1.0, bad])])


@needs_gpu
@pytest.mark.parametrize("precision", ["fp32", "bf16"])
@pytest.mark.parametrize("norm", ["post", "pre"])
@pytest.mark.parametrize("settings", [{}, {"r_drop": 2.0, "clip_norm": 1.0}], ids=str)
def test_three_steps_on_a_gpu(norm: Any, precision: Any, settings: dict[str, Any]) -> None:
    """They find the losses that a CPU finds, and wait once each, as torch itself counts."""
    losses = []
    for device in ("cpu", "cuda"):
        model = a_model(norm=norm, dropout=0.0).to(device)
        optimizer, config = (
            torch.optim.Adam(model.parameters(), lr=0.0, fused=True), TrainConfig(precision=precision, **settings),
        )  # fmt: skip
        losses.append([train_step(model, batches(), optimizer, 1e-2, config, 0).smoothed for _ in range(3)])
    assert losses[1][2] < losses[1][0]
    assert losses[1] == pytest.approx(losses[0], rel=0.03 if precision == "bf16" else 1e-3)
    torch.cuda.set_sync_debug_mode("warn")
    try:
        with warnings.catch_warnings(record=True) as waits:
            warnings.simplefilter("always")
            train_step(model, batches(), optimizer, 1e-2, config, 0)
    finally:
        torch.cuda.set_sync_debug_mode("default")
    assert len([wait for wait in waits if "synchroniz" in str(wait.message)]) <= 1


@needs_gpu
@pytest.mark.parametrize("precision", ["fp32", "bf16"])
@pytest.mark.parametrize("norm", ["post", "pre"])
def test_a_search_on_a_gpu_finds_what_it_finds_on_a_cpu(norm: Any, precision: str) -> None:
    src, found = torch.randint(4, 53, (5, 9), generator=torch.Generator().manual_seed(0)), []
    for device in ("cpu", "cuda"):
        engine = FastTransformer(a_model(norm=norm).to(device).eval(), precision)
        found.append(beam_search(engine, src.to(device), [12] * 5, beam_size=4))
    if precision == "fp32":
        assert [h[0].ids for h in found[0]] == [h[0].ids for h in found[1]]
    scores = [[h[0].score for h in one] for one in found]
    assert scores[0] == pytest.approx(scores[1], rel=0.05 if precision == "bf16" else 1e-3)
