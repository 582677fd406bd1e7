"""The number of threads of a training follows the cores that other programs leave free."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from dragoman.training import threads
from dragoman.training.threads import CALM, CpuUse, Threads, cpu_use, free_cores, threads_of_training


@pytest.fixture(autouse=True)
def same_threads() -> Iterator[None]:
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


@pytest.fixture
def others(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Cores that other programs use at each look, of four; this process uses all that is left."""
    at_each_look: list[float] = []
    clock = [0.0, 0.0, 0.0]

    def use() -> CpuUse:
        clock[0] += 1
        if clock[0] > 1:
            other = at_each_look.pop(0)
            clock[1] += 4
            clock[2] += 4 - other
        return CpuUse(*clock)

    monkeypatch.setattr(threads, "cpu_use", use)
    monkeypatch.setattr(threads.time, "monotonic", lambda: clock[0] + 1)
    return at_each_look


@pytest.mark.parametrize(
    ("other", "free"), [(0, 4), (0.2, 4), (0.5, 3), (1, 3), (1.2, 3), (2, 2), (3, 1), (3.9, 1), (-0.5, 4)]
)
def test_cores_that_others_use_are_not_free(other: float, free: int) -> None:
    assert free_cores(CpuUse(0, 10, 5), CpuUse(10, 10 + 10 * (4), 5 + 10 * (4 - other)), 4) == free


def test_fewer_threads_at_once_and_more_after_a_while(others: list[float]) -> None:
    torch.set_num_threads(4)
    governed = Threads(4)
    others += [2, *[0] * CALM, 0]
    assert governed.adapt()
    assert governed.number == torch.get_num_threads() == 2
    for _ in range(CALM - 1):
        assert not governed.adapt()
    assert governed.adapt()
    assert governed.number == torch.get_num_threads() == 4
    assert not governed.adapt()
    assert governed.changes == 2


def test_a_short_calm_changes_nothing(others: list[float]) -> None:
    governed = Threads(4)
    others += [3, *[0] * (CALM - 1), 3, *[0] * (CALM - 1), 3, 0]
    assert [governed.adapt() for _ in range(len(others))].count(True) == 1
    assert governed.number == 1


def test_more_threads_are_as_many_as_were_free_at_every_look(others: list[float]) -> None:
    governed = Threads(4)
    others += [3, 0, 0, 2, 0, 1]
    while others:
        governed.adapt()
    assert governed.number == 2


def test_a_fixed_number_stays(others: list[float]) -> None:
    before = torch.get_num_threads()
    with threads_of_training(3, alone=True) as fixed:
        assert torch.get_num_threads() == fixed.number == 3
        fixed.look(0)
        assert not fixed.adapt(0)
        assert torch.get_num_threads() == 3
    assert torch.get_num_threads() == before
    assert not others


def test_ranks_beside_each_other_keep_their_threads(others: list[float]) -> None:
    with threads_of_training(None, alone=False) as governed:
        assert not governed.adapt(0)


def test_a_system_that_does_not_tell_keeps_its_threads(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(threads, "STAT", tmp_path / "missing")
    assert cpu_use() is None
    assert not Threads(4).adapt(0)


@pytest.mark.skipif(not Path("/proc/stat").exists(), reason="not Linux")
def test_the_use_of_the_cores_is_that_of_the_processes() -> None:
    before = cpu_use()
    assert before is not None
    program = "import time\nwhile time.process_time() < 0.3: pass"
    subprocess.run([sys.executable, "-c", program], check=True)  # a child: its time is our own
    now = cpu_use()
    assert now is not None
    assert 0.25 < now.own - before.own < 5
    assert now.busy - before.busy > 0.2
    assert now.busy - before.busy <= (now.clock - before.clock + 0.1) * len(os.sched_getaffinity(0))
