"""The optimised decoder against the reference model."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

from dragoman.config import DecodeConfig, ModelConfig
from dragoman.decoding.ensemble import Ensemble, Mean
from dragoman.errors import ConfigError
from dragoman.fast.step import POSITIONS, STEPS, FastTransformer
from dragoman.model.transformer import Transformer
from model_variants import VARIANTS, unequal
from searching import search_all

CPU = torch.device("cpu")
SIZES: dict[str, Any] = dict(
    d_model=24, n_heads=3, d_ff=40, n_encoder_layers=2, n_decoder_layers=2, src_vocab_size=131, tgt_vocab_size=131,
    max_len=200,
)  # fmt: skip
BEAMS = [1, 5]
each_variant = pytest.mark.parametrize(
    "fields", [unequal(fields, 70) for fields in VARIANTS.values()], ids=list(VARIANTS)
)


def build(seed: int = 0, **fields: Any) -> Transformer:
    """A small model with random weights, none of them 0 or 1; peaked enough that no two tokens are nearly equal."""
    gen = torch.Generator().manual_seed(seed)
    model = Transformer(ModelConfig(**{**SIZES, "dropout": 0.0, **fields})).eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.dim() == 1:
                one = "norm" in name and name.endswith("weight")
                parameter.copy_(torch.randn(parameter.shape, generator=gen) / 5 + one)
            else:
                parameter.copy_(torch.randn(parameter.shape, generator=gen) * parameter.size(1) ** -0.5)
    return model


def sources(model: Transformer) -> Tensor:
    src = torch.randint(6, 70, (4, 9), generator=torch.Generator().manual_seed(3))
    src[1, 4:] = src[3, 7:] = model.config.pad_id
    return src


def walk(model: Any, src: Tensor, plan: list[Tensor | None], n_vocab: int) -> list[Tensor]:
    """The logits of some steps, with rows selected between them."""
    chance = torch.Generator().manual_seed(7)
    state, found = model.start(src), []
    n = len(src)
    for rows in plan:
        if rows is not None:
            state, n = state.select(rows), len(rows)
        logits, state = model.step(state, torch.randint(6, n_vocab, (n,), generator=chance))
        found.append(logits.float())
    return found


def beams(n_sentences: int, k: int, seed: int) -> Tensor:
    """Each sentence keeps K of its rows, some of them twice."""
    chosen = torch.randint(0, k, (n_sentences, k), generator=torch.Generator().manual_seed(seed))
    return (chosen + k * torch.arange(n_sentences)[:, None]).flatten()


def plan(k: int) -> list[Tensor | None]:
    """As a beam search goes, long enough that cells that no beam sees are left out; then as none would."""
    first: list[Tensor | None] = [torch.arange(4).repeat_interleave(k)]
    first += [beams(4, k, seed) for seed in range(2 * STEPS + 3)]
    first += [beams(4, k, 99)[torch.arange(k, 3 * k)]]  # the first and the last sentence are done
    first += [beams(2, k, seed) for seed in range(STEPS)]
    odd = [torch.tensor([2 * k - 1, 0, 0]), torch.tensor([2, 1, 0]), None, torch.tensor([0]), None]
    return first + (odd if k > 1 else [torch.tensor([1, 0, 0]), torch.tensor([2, 1, 0]), torch.tensor([0])])


@pytest.mark.parametrize("k", BEAMS)
@each_variant
@torch.inference_mode()
def test_each_step_gives_the_logits_of_the_model(fields: dict[str, Any], k: int) -> None:
    model = build(**fields)
    src, n_vocab = sources(model), model.config.tgt_vocab_size
    for found, want in zip(
        walk(FastTransformer(model), src, plan(k), n_vocab), walk(model, src, plan(k), n_vocab), strict=True
    ):
        torch.testing.assert_close(found, want, rtol=0, atol=1e-5)


@pytest.mark.parametrize("length", [9, 17, 19])
@torch.inference_mode()
def test_sources_may_be_as_long_as_there_are_learned_positions(length: int) -> None:
    model = build(positions="learned", max_len=19)
    src = torch.randint(6, 70, (3, length), generator=torch.Generator().manual_seed(1))
    steps: list[Tensor | None] = [None, None]
    for found, want in zip(walk(FastTransformer(model), src, steps, 131), walk(model, src, steps, 131), strict=True):
        torch.testing.assert_close(found, want, rtol=0, atol=1e-5)


@torch.inference_mode()
def test_in_float64_they_are_the_same_to_twelve_digits() -> None:
    model = build().double()
    for found, want in zip(
        walk(FastTransformer(model), sources(model), plan(4), 131),
        walk(model, sources(model), plan(4), 131),
        strict=True,
    ):
        torch.testing.assert_close(found, want, rtol=0, atol=1e-6)  # compared in float32
    logits = FastTransformer(model).step(FastTransformer(model).start(sources(model)), torch.full((4,), 2))[0]
    torch.testing.assert_close(
        logits, model.step(model.start(sources(model)), torch.full((4,), 2))[0], rtol=0, atol=1e-12
    )


@torch.inference_mode()
def test_a_state_may_be_continued_twice() -> None:
    engine = FastTransformer(build())
    _, state = engine.step(engine.start(sources(build())), torch.full((4,), 2))
    one, _ = engine.step(state, torch.tensor([6, 7, 8, 9]))
    engine.step(state, torch.tensor([9, 9, 9, 9]))
    again, _ = engine.step(state, torch.tensor([6, 7, 8, 9]))
    assert torch.equal(one, again)


@torch.inference_mode()
def test_long_sources_and_far_positions() -> None:
    """The encoder's fused attention, and positions beyond the table made beforehand."""
    model = build()
    src = torch.randint(6, 70, (2, 300), generator=torch.Generator().manual_seed(1))
    src[1, 280:] = 0
    found, want = (walk(m, src, [None] * 3, 131) for m in (FastTransformer(model), model))
    torch.testing.assert_close(found, want, rtol=0, atol=1e-5)
    states = [m.start(sources(model))._replace(length=POSITIONS + 1) for m in (FastTransformer(model), model)]
    logits = [
        m.step(state, torch.full((4,), 9))[0] for m, state in zip((FastTransformer(model), model), states, strict=True)
    ]
    torch.testing.assert_close(logits[0], logits[1], rtol=0, atol=1e-5)


def texts(n: int) -> list[list[int]]:
    gen = torch.Generator().manual_seed(n)
    return [torch.randint(6, 70, (1 + i % 13,), generator=gen).tolist() for i in range(n)]


@pytest.mark.parametrize(("beam_size", "n_best"), [(1, 1), (5, 5)])
@each_variant
def test_it_finds_the_translations_that_the_model_finds(fields: dict[str, Any], beam_size: int, n_best: int) -> None:
    model = build(**fields)
    config = DecodeConfig(beam_size=beam_size, max_extra_tokens=12, batch_tokens=60)
    want = search_all(model, texts(13), config, CPU, n_best)  # one of each length, in several batches
    found = search_all(FastTransformer(model), texts(13), config, CPU, n_best)
    assert [[h.ids for h in one] for one in found] == [[h.ids for h in one] for one in want]
    scores = [[h.score for one in all_ for h in one] for all_ in (found, want)]
    assert scores[0] == pytest.approx(scores[1], abs=1e-5)


def test_a_sentence_is_translated_alike_alone_and_in_any_batch() -> None:
    engine, sentences = FastTransformer(build()), texts(24)
    config = DecodeConfig(beam_size=4, max_extra_tokens=12)
    alone = [search_all(engine, [src], config, CPU)[0][0] for src in sentences]
    for batch_tokens in (1, 13, 60, 1000):
        together = search_all(engine, sentences, replace(config, batch_tokens=batch_tokens), CPU)
        assert [h[0].ids for h in together] == [h.ids for h in alone]
        assert [h[0].score for h in together] == pytest.approx([h.score for h in alone], abs=1e-5)


def test_an_ensemble_of_engines_is_the_ensemble() -> None:
    members = [build(seed) for seed in (0, 1)]
    config = DecodeConfig(beam_size=3, max_extra_tokens=8)
    want = search_all(Ensemble(members), texts(9), config, CPU)
    found = search_all(Mean(tuple(map(FastTransformer, members))), texts(9), config, CPU)
    assert [h[0].ids for h in found] == [h[0].ids for h in want]


@torch.inference_mode()
def test_bf16_stays_near_and_other_precisions_are_refused() -> None:
    model, tolerance = build(), 0.05
    with pytest.raises(ConfigError, match="precision must be fp32 or bf16, got 'int8'"):
        FastTransformer(model, "int8")
    engine = FastTransformer(model, "bf16")
    pairs = zip(walk(engine, sources(model), plan(5), 131), walk(model, sources(model), plan(5), 131), strict=True)
    for found, want in pairs:
        assert (found - want).abs().max() <= tolerance * want.abs().max()
        assert 0 < (found - want).abs().mean() <= tolerance / 4 * want.abs().mean() + 0.02


def test_it_knows_when_the_weights_have_changed() -> None:
    model = build()
    engine = FastTransformer(model)
    assert engine.is_of(model)
    assert not engine.is_of(build(1))
    with torch.no_grad():
        next(model.decoder.parameters()).mul_(1.5)
    assert not engine.is_of(model)


def test_a_model_without_a_decoder_is_refused() -> None:
    with pytest.raises(ConfigError, match="has no decoder"):
        FastTransformer(build(n_decoder_layers=0))
