"""Each schedule against its formula."""

from __future__ import annotations

import math

import pytest

from dragoman.config import TrainConfig
from dragoman.training.schedule import learning_rate


def test_noam_is_the_papers_formula() -> None:
    config = TrainConfig()
    for step in (1, 2, 3999, 4000, 4001, 100_000):
        want = 512**-0.5 * min(step**-0.5, step * 4000**-1.5)
        assert learning_rate(step, config, 512) == pytest.approx(want, rel=1e-12)
    assert learning_rate(4000, config, 512) == pytest.approx(6.9877e-4, rel=1e-4)  # the peak of the base model


def test_noam_takes_a_factor() -> None:
    assert learning_rate(7, TrainConfig(lr=2.0), 512) == 2 * learning_rate(7, TrainConfig(), 512)


def test_inverse_square_root_peaks_at_the_rate_given() -> None:
    config = TrainConfig(schedule="inverse_sqrt", lr=5e-3, warmup_steps=100)
    assert [learning_rate(step, config, 64) for step in (1, 50, 100, 400)] == pytest.approx(
        [5e-5, 2.5e-3, 5e-3, 2.5e-3]
    )


def test_cosine_rises_linearly_and_ends_at_zero() -> None:
    config = TrainConfig(schedule="cosine", lr=1e-3, warmup_steps=10, max_steps=110)
    assert learning_rate(5, config, 64) == pytest.approx(5e-4)
    assert learning_rate(10, config, 64) == pytest.approx(1e-3)
    assert learning_rate(60, config, 64) == pytest.approx(5e-4)
    assert learning_rate(35, config, 64) == pytest.approx(1e-3 * 0.5 * (1 + math.cos(math.pi / 4)))
    assert learning_rate(110, config, 64) == pytest.approx(0, abs=1e-18)
    assert learning_rate(500, config, 64) == pytest.approx(0, abs=1e-18)


def test_cosine_follows_the_clock_where_it_is_ahead_of_the_steps() -> None:
    config = TrainConfig(schedule="cosine", lr=1e-3, warmup_steps=10, max_steps=110, max_minutes=1)
    assert learning_rate(1, config, 64, seconds=60 * 60 / 110) == pytest.approx(5e-4)  # as at step 60
    assert learning_rate(60, config, 64, seconds=1) == pytest.approx(5e-4)
    assert learning_rate(1, config, 64, seconds=60 * 5 / 110) == pytest.approx(5e-4)  # the warm-up too: step 5
    assert learning_rate(35, config, 64, seconds=60) == pytest.approx(0, abs=1e-18)
    assert learning_rate(35, config, 64, seconds=600) == pytest.approx(0, abs=1e-18)
