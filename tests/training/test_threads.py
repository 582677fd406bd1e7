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
from dragoman.training.threads import CpuUse, Threads, cpu_use, free_cores, threads_of_training


@pytest.fixture(autouse=True)
def same_threads() -> Iterator[None]:
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


class Machine:
    """Four cores of which other programs use some, and a training whose speed depends on its threads then."""

    def __init__(self) -> None:
        self.others = 0.0
        self.speeds = {1: 1.0, 2: 1.9, 3: 2.7, 4: 3.4}  # work per second by number of threads
        self.clock = self.busy = self.own = 0.0

    def use(self) -> CpuUse:
        return CpuUse(self.clock, self.busy, self.own)

    def train(self, threads: Threads, seconds: float) -> list[int]:
        """Make updates of half a second; return the number of threads of each."""
        numbers = []
        for _ in range(int(2 * seconds)):
            numbers.append(threads.number)
            own = min(threads.number, 4 - self.others)
            self.clock, self.busy, self.own = self.clock + 0.5, self.busy + (own + self.others) / 2, self.own + own / 2
            threads.learn(self.speeds[threads.number] / 2, 0.5)
        return numbers


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    machine = Machine()
    monkeypatch.setattr(threads, "cpu_use", machine.use)
    monkeypatch.delenv("OMP_NUM_THREADS")
    return machine


@pytest.mark.parametrize(
    ("other", "free"), [(0, 4), (0.2, 4), (0.5, 3), (1, 3), (1.2, 3), (2, 2), (3, 1), (3.9, 1), (-0.5, 4)]
)
def test_cores_that_others_use_are_not_free(other: float, free: int) -> None:
    assert free_cores(CpuUse(0, 10, 5), CpuUse(10, 10 + 10 * 4, 5 + 10 * (4 - other)), 4) == free


def test_an_idle_machine_gives_all_cores(machine: Machine) -> None:
    assert set(machine.train(Threads(4), 300)) == {4}


def test_beside_other_programs_the_fastest_number_is_kept(machine: Machine) -> None:
    governed = Threads(4)
    machine.others, machine.speeds = 1.0, {1: 0.9, 3: 2.2, 4: 0.6}
    numbers = machine.train(governed, 300)
    assert governed.number == torch.get_num_threads() == 3
    assert numbers[:2] == [4, 4]
    assert numbers.count(3) / len(numbers) > 0.93  # the others were tried from time to time


def test_all_cores_are_kept_where_they_are_fastest_in_spite_of_other_programs(machine: Machine) -> None:
    governed = Threads(4)
    machine.others = 2.0  # of a lower priority
    numbers = machine.train(governed, 300)
    assert governed.number == 4
    assert numbers.count(4) / len(numbers) > 0.93


def test_when_the_others_end_all_cores_are_taken_at_once(machine: Machine) -> None:
    governed = Threads(4)
    machine.others, machine.speeds = 3.0, {1: 1.0, 4: 0.2}
    machine.train(governed, 30)
    assert governed.number == 1
    machine.others = 0.0
    machine.train(governed, 2)
    assert governed.number == torch.get_num_threads() == 4


def test_a_little_faster_changes_nothing(machine: Machine) -> None:
    governed = Threads(4)
    machine.others, machine.speeds = 1.0, {1: 1.0, 3: 1.05, 4: 1.0}
    machine.train(governed, 300)
    assert governed.number == 4


@pytest.mark.parametrize(("fixed", "alone", "variable"), [(3, True, ""), (None, False, ""), (None, True, "2")])
def test_a_number_that_was_asked_for_stays(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, fixed: int | None, alone: bool, variable: str
) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", variable)
    before, machine.others = torch.get_num_threads(), 3.0
    with threads_of_training(fixed, alone) as governed:
        assert torch.get_num_threads() == governed.number == (fixed or before)
        for _ in range(20):
            assert not governed.learn(1.0, 1.0)
    assert torch.get_num_threads() == before


def test_a_system_that_does_not_tell_keeps_its_threads(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(threads, "STAT", tmp_path / "missing")
    assert cpu_use() is None
    governed = Threads(4)
    assert governed.free() == 4
    assert not governed.learn(1.0, 10.0)


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
