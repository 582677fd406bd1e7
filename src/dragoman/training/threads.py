"""CPU threads of a training: as many as other programs leave cores free, looked at again and again while it trains.

The threads of a matrix product wait for the slowest of them. Where another program takes one of two cores, two threads
therefore train slower than one (benchmarks/records/busy-machine.md).
"""

from __future__ import annotations

import contextlib
import math
import os
import time
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import torch

PERIOD_S = 1.0
"""Seconds between two looks at the machine."""

CALM = 5
"""Number of looks in a row that must find more free cores before there are more threads."""

SPARE = 0.25
"""Share of a core that other programs may use without taking it away: a shell, a browser without work."""

STAT = Path("/proc/stat")


class CpuUse(NamedTuple):
    """Seconds since some moments in the past."""

    clock: float  # of the clock
    busy: float  # of all cores that this process may use, in which anything ran
    own: float  # in which this process and its children ran


def cpu_use() -> CpuUse | None:
    """Return the use of the cores so far; None where the system does not tell (it is not Linux)."""
    try:
        lines, cores = STAT.read_text(encoding="ascii").split("\n"), os.sched_getaffinity(0)
    except (OSError, AttributeError):
        return None
    fields = (line.split() for line in lines if line.startswith("cpu") and line[3:4].isdigit())
    # user, nice, system, (idle, iowait,) irq, softirq, steal: proc(5)
    ticks = sum(
        int(ticks)
        for name, *times in fields
        if int(name[3:]) in cores
        for ticks in (*times[:3], *times[5:8])
    )
    return CpuUse(time.monotonic(), ticks / os.sysconf("SC_CLK_TCK"), sum(os.times()[:4]))


def free_cores(before: CpuUse, now: CpuUse, cores: int) -> int:
    """Return how many of some cores other programs left to this process between two looks: at least 1."""
    others = ((now.busy - before.busy) - (now.own - before.own)) / max(now.clock - before.clock, 1e-9)
    return min(cores, max(1, cores - math.ceil(others - SPARE)))


class Threads:
    """Number of torch's threads, which follows the free cores: down at once, up when they have been free for a while.

    Args:
        most: Number of threads on a machine without other work.
        varies: False keeps them at ``most``.
    """

    def __init__(self, most: int, varies: bool = True) -> None:
        self.most = self.number = most
        self.changes = 0
        self._last = cpu_use() if varies and most > 1 else None
        self._looks: deque[int] = deque(maxlen=CALM)

    def adapt(self, period_s: float = PERIOD_S) -> bool:
        """Look at the machine if ``period_s`` have passed, and set torch's threads; return True if the number changed."""
        if self._last is None or time.monotonic() - self._last.clock < period_s:
            return False
        now = cpu_use()
        assert now is not None  # it was there before
        self._looks.append(free_cores(self._last, now, self.most))
        self._last = now
        free, before = self._looks[-1], self.number
        if free > self.number:
            free = max(self.number, min(self._looks)) if len(self._looks) == CALM else self.number
        self.number = free
        if self.number != before:
            self._looks.clear()
            self.changes += 1
            torch.set_num_threads(self.number)
        return self.number != before

    def look(self, seconds: float) -> None:
        """Wait for so long to see what else runs, and set torch's number of threads."""
        if self._last is not None:
            time.sleep(seconds)
            self.adapt(0)


@contextlib.contextmanager
def threads_of_training(fixed: int | None, alone: bool) -> Iterator[Threads]:
    """Set torch's number of threads for a training; afterwards it is again what it was.

    Args:
        fixed: So many, whatever else runs; None: at most as many as now, and fewer while other programs need cores.
        alone: False if other ranks train beside this one; they are no other programs, so the number stays.
    """
    before = torch.get_num_threads()
    threads = Threads(fixed or before, varies=fixed is None and alone)
    torch.set_num_threads(threads.number)
    try:
        yield threads
    finally:
        torch.set_num_threads(before)
