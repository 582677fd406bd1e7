"""CPU threads of a training: as many as train fastest beside whatever else the machine does.

The threads of a matrix product wait for the slowest of them, so beside other programs more threads may train slower
than fewer. How much, depends on their number, their priority and the system's scheduler, so it is tried: while other
programs compute, training compares numbers of threads from time to time, and goes on with the fastest.
"""

from __future__ import annotations

import contextlib
import math
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import torch

LOOK_S = 1.0
"""Seconds of updates after which training looks at the machine; so long each number of threads is tried."""

STAY_S, MOST_STAY_S = 10.0, 60.0
"""Seconds from one comparison to the next: at first, and at most; they double while the same number wins."""

GAIN = 1.1
"""How many times as fast another number of threads must have been to be taken."""

SPARE = 0.25
"""Share of a core that other programs may use on a machine that counts as idle."""

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
    ticks = sum(int(ticks) for name, *times in fields if int(name[3:]) in cores for ticks in (*times[:3], *times[5:8]))
    return CpuUse(time.monotonic(), ticks / os.sysconf("SC_CLK_TCK"), sum(os.times()[:4]))


def free_cores(before: CpuUse, now: CpuUse, cores: int) -> int:
    """Return how many of some cores other programs left to this process between two looks: at least 1."""
    others = ((now.busy - before.busy) - (now.own - before.own)) / max(now.clock - before.clock, 1e-9)
    return min(cores, max(1, cores - math.ceil(others - SPARE)))


class Threads:
    """Number of torch's threads. While the machine does nothing else, it is ``most``.

    Args:
        most: Number of threads on a machine without other work.
        varies: False keeps them at ``most``.
    """

    def __init__(self, most: int, varies: bool = True) -> None:
        self.most = self.number = most
        self.changes = 0
        self._before = cpu_use() if varies and most > 1 else None
        self._work = self._seconds = 0.0  # since the last look
        self._rates: dict[int, float] = {}  # of the numbers of threads that were tried in this comparison
        self._to_try: list[int] = []
        self._standing = most  # number of threads when the comparison began
        self._left = 0.0  # seconds of updates until the next comparison
        self._stay = STAY_S

    def learn(self, work: float, seconds: float) -> bool:
        """Take in one update, and set the threads of the next one; return True if their number changed.

        Args:
            work: Of the update, in any unit.
            seconds: That it took.
        """
        if self._before is None:
            return False
        self._work, self._seconds, self._left = self._work + work, self._seconds + seconds, self._left - seconds
        if self._seconds < LOOK_S:
            return False
        rate, self._work, self._seconds = self._work / self._seconds, 0.0, 0.0
        return self._set(self._next(self.free(), rate))

    def free(self) -> int:
        """Return how many cores were free since the last look; all where that is not known."""
        before, self._before = self._before, cpu_use()
        return self.most if before is None or self._before is None else free_cores(before, self._before, self.most)

    def _next(self, free: int, rate: float) -> int:
        """Return the number of threads to go on with after a look."""
        if free == self.most:  # nothing else computes
            self._rates, self._to_try, self._left, self._stay = {}, [], 0.0, STAY_S
            return self.most
        if not self._rates and self._left > 0:
            return self.number
        if not self._rates:  # a comparison begins
            self._to_try = [n for n in dict.fromkeys((free, self.most, 1)) if n != self.number]
            self._standing = self.number
        self._rates[self.number] = rate
        if self._to_try:
            return self._to_try.pop(0)
        fastest = max(self._rates, key=self._rates.__getitem__)
        if self._rates[fastest] < GAIN * self._rates[self._standing]:
            fastest = self._standing
        self._stay = min(2 * self._stay, MOST_STAY_S) if fastest == self._standing else STAY_S
        self._rates, self._left = {}, self._stay
        return fastest

    def _set(self, number: int) -> bool:
        if number == self.number:
            return False
        self.number = number
        self.changes += 1
        torch.set_num_threads(number)
        return True


@contextlib.contextmanager
def threads_of_training(fixed: int | None, alone: bool) -> Iterator[Threads]:
    """Set torch's number of threads for a training; afterwards it is again what it was.

    Args:
        fixed: So many, whatever else runs; None: at most as many as now, and fewer where they train faster, unless
            the variable OMP_NUM_THREADS says how many.
        alone: False if other ranks train beside this one; they are no other programs, so the number stays.
    """
    before = torch.get_num_threads()
    threads = Threads(fixed or before, varies=fixed is None and alone and not os.environ.get("OMP_NUM_THREADS"))
    torch.set_num_threads(threads.number)
    try:
        yield threads
    finally:
        torch.set_num_threads(before)
