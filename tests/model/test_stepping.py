"""start, step and select, with their cache, against recomputing everything."""

from typing import Any

import pytest
import torch
from torch import Tensor

from dragoman.model.transformer import DecoderState, Transformer
from model_variants import Build

CLOSE = dict(rtol=0, atol=1e-12)
SRC = torch.tensor([[4, 7, 6, 9, 3], [8, 10, 3, 1, 1], [9, 3, 1, 1, 1]])  # 1 becomes padding
TGT = torch.tensor([[2, 6, 8, 9, 4, 11, 7], [2, 11, 10, 12, 3, 6, 6], [2, 4, 4, 7, 8, 12, 9]])


def source(model: Transformer) -> Tensor:
    return SRC.where(SRC != 1, model.config.pad_id)


def target(model: Transformer) -> Tensor:
    return TGT  # holds neither 0 nor 5: no variant's padding


def recomputed(model: Transformer, src: Tensor, prefix: Tensor) -> Tensor:
    return model(src if model.config.n_encoder_layers else None, prefix)[:, -1]


def run(model: Transformer, state: DecoderState, tokens: Tensor) -> tuple[Tensor, DecoderState]:
    for t in range(tokens.size(1)):
        logits, state = model.step(state, tokens[:, t])
    return logits, state


@torch.no_grad()
def test_steps_equal_recomputing_everything(build: Build, variant: dict[str, Any]) -> None:
    model = build(**variant)
    src, tgt = source(model), target(model)
    state = model.start(src)
    for t in range(7):
        assert state.length == t
        logits, state = model.step(state, tgt[:, t])
        assert logits.shape == (3, model.config.tgt_vocab_size)
        torch.testing.assert_close(logits, recomputed(model, src, tgt[:, : t + 1]), **CLOSE)


@pytest.mark.parametrize(
    "rows",
    [[2, 0, 0, 1, 2, 2, 0], [1], [2, 1, 0], [0, 2]],
    ids=["with repeats", "only one left", "another order", "one row dropped"],
)
@torch.no_grad()
def test_steps_after_select_equal_recomputing_everything(
    build: Build, variant: dict[str, Any], rows: list[int]
) -> None:
    model = build(**variant)
    src, tgt = source(model)[rows], target(model)[rows].clone()
    tgt[:, 3:] = torch.tensor([4, 6, 7, 8, 9, 10, 11])[: len(rows), None] + torch.tensor([0, 1, -2, 1])
    tgt[tgt == 5] = 12  # copies of a row go different ways
    _, state = run(model, model.start(source(model)), target(model)[:, :3])
    state = state.select(torch.tensor(rows))
    for t in range(3, 7):
        logits, state = model.step(state, tgt[:, t])
        torch.testing.assert_close(logits, recomputed(model, src, tgt[:, : t + 1]), **CLOSE)


@torch.no_grad()
def test_rows_may_be_selected_before_the_first_step(build: Build) -> None:
    """How a beam begins: each source as many times as the beam is wide."""
    model, rows = build(), [0, 0, 1, 1, 2, 2]
    state = model.start(source(model)).select(torch.tensor(rows))
    logits, _ = run(model, state, TGT[rows, :3])
    torch.testing.assert_close(logits, recomputed(model, source(model)[rows], TGT[rows, :3]), **CLOSE)


@torch.no_grad()
def test_rows_are_dropped_one_after_another_down_to_none(build: Build, variant: dict[str, Any]) -> None:
    model = build(**variant)
    src, tgt = source(model), target(model)
    state = model.start(src)
    left = [0, 1, 2]
    for t in range(3):
        logits, state = model.step(state, tgt[left, t])
        torch.testing.assert_close(logits, recomputed(model, src[left], tgt[left, : t + 1]), **CLOSE)
        state = state.select(torch.arange(1, len(left)))
        left = left[1:]
    assert model.step(state, tgt[:0, 3])[0].shape == (0, model.config.tgt_vocab_size)


@torch.no_grad()
def test_a_state_may_be_continued_twice(build: Build) -> None:
    """Steps make new states and leave the old one as it was."""
    model = build()
    _, state = run(model, model.start(source(model)), TGT[:, :3])
    one, _ = run(model, state, TGT[:, 3:6])
    run(model, state, TGT[:, 3:6].flip(1))
    again, _ = run(model, state, TGT[:, 3:6])
    assert torch.equal(one, again)
    assert state.length == 3


@torch.no_grad()
def test_padding_of_the_source_changes_no_step(build: Build, variant: dict[str, Any]) -> None:
    model = build(**variant)
    if not model.config.n_encoder_layers:
        pytest.skip("a language model has no source")
    alone, _ = run(model, model.start(torch.tensor([[9, 3]])), TGT[2:, :5])
    together, _ = run(model, model.start(source(model)), TGT[:, :5])
    torch.testing.assert_close(together[2:], alone, **CLOSE)


@torch.no_grad()
def test_of_a_language_models_source_only_the_number_of_rows_matters(build: Build) -> None:
    model = build(n_encoder_layers=0)
    one, _ = run(model, model.start(SRC), TGT)
    other, _ = run(model, model.start(torch.zeros(3, 1, dtype=torch.int64)), TGT)
    assert torch.equal(one, other)


@pytest.mark.parametrize("positions", ["sinusoidal", "rotary"])
@torch.no_grad()
def test_a_float32_model_keeps_its_positions_a_million_tokens_out(build: Build, positions: str) -> None:
    """Angles taken in float32 would be off by several hundredths of a radian out there."""
    exact, model = (build(dtype=dtype, positions=positions, d_k=22) for dtype in (torch.float64, torch.float32))
    logits = []
    for m in (exact, model):
        state = run(m, m.start(source(m)), TGT[:, :2])[1]._replace(length=1_000_003)
        logits.append(run(m, state, TGT[:, 2:5])[0])
    torch.testing.assert_close(logits[1].double(), logits[0], rtol=1e-4, atol=1e-4)
