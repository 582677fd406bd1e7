"""The page of costs is what its program says, and the program's arithmetic is right."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import costs
from dragoman.config import PRESETS, ModelConfig
from dragoman.model.build import build
from dragoman.model.weights import WithoutInitialisation

ROOT = Path(__file__).resolve().parent.parent.parent


def test_the_page_is_as_the_program_writes_it() -> None:
    assert (ROOT / "docs/results/costs.md").read_text(encoding="utf-8") == costs.page()


@pytest.mark.parametrize("preset", ["base", "big"])
def test_operations_are_near_six_for_each_weight_and_token(preset: str) -> None:
    """The usual rule of thumb, for a model whose every weight is used once a token on one of the two sides."""
    job = costs.Job("", preset, 1.0)
    sizes = {"src_vocab_size": costs.VOCABULARY, "tgt_vocab_size": costs.VOCABULARY}
    with WithoutInitialisation():
        model = build(ModelConfig(**PRESETS[preset], **sizes))
    weights = sum(weight.numel() for weight in model.parameters())
    assert job.flops(25) == pytest.approx(6 * weights, rel=0.03)


def test_prices_and_tokens_are_parameters() -> None:
    plain, dear = (costs.training_rows(25, costs.machines(prices)) for prices in ({}, {"H100": 25.0}))
    assert [a == b for a, b in zip(plain[0], dear[0], strict=True)] == [True] * 5 + [False, True]
    own = costs.machines({"mine": 2.0}, {"mine": 381.0})[-1]
    assert costs.training_rows(25, [own])[0][2].split(", ") == ["0.69 h", "1.4"]
    flops = [costs.jobs(n)[2].flops(n) for n in (25, 50)]
    assert 2 < flops[1] / flops[0] < 2.02
    with pytest.raises(ValueError, match="no machine abacus; there are AMX"):
        costs.machines({"abacus": 1.0})
    assert costs.span(0.123, 4567.0) == "0.12 to 4,600"
    assert costs.span(2.0, 2.0) == "2"
