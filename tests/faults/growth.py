"""How the time of a function grows with its text: the exponent e of time ~ n ** e, from CPU time alone.

A ratio of two times is compared, never a time with a limit, so a slow or busy machine changes nothing. What grows too
fast at small sizes is measured again at larger ones, where fixed costs no longer count.
"""

from __future__ import annotations

import gc
import math
import signal
import time
from collections.abc import Callable
from contextlib import contextmanager
from typing import Any

MOST = 1.2
"""Largest exponent that counts as linear time."""

STEPS = 16
"""Factor between the two sizes that are compared."""

LARGEST = 65_536
"""Largest text in characters: more than a request may have (50,000)."""

LIMIT_S = 1.0
"""CPU seconds after which a call is ended: it then counts as exponential."""


class TooLong(BaseException):
    """Ends a call; nothing in the product may catch it."""


@contextmanager
def _limited(seconds: float) -> Any:
    """End what runs inside after so many CPU seconds; regular expressions look for signals too."""

    def end(*_: Any) -> None:
        raise TooLong

    before = signal.signal(signal.SIGVTALRM, end)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds, 1.0)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def seconds(call: Callable[[Any], Any], text: Any, repeats: int) -> float:
    """Return the smallest CPU time of several calls; infinity if one takes ``LIMIT_S``."""
    smallest = math.inf
    gc.disable()  # as timeit does: only large texts reach the collections of old objects
    try:
        with _limited(LIMIT_S):
            for _ in range(repeats):
                start = time.thread_time()
                call(text)
                smallest = min(smallest, time.thread_time() - start)
    except TooLong:
        pass
    finally:
        gc.enable()
    return smallest


def is_suspect(call: Callable[[Any], Any], made: Callable[[int], Any], size: int) -> bool:
    """True if the time from ``size`` to 16 times as many characters grows by more than ``MOST``, measured fast."""
    last = seconds(call, made(size), 2)
    if last == math.inf:
        return True
    for _ in range(2):
        first = seconds(call, made(size // STEPS), 3)
        if last <= first * STEPS**MOST:
            return False
        last = min(last, seconds(call, made(size), 1))
    return True


def exponent(call: Callable[[Any], Any], made: Callable[[int], Any], largest: int = LARGEST) -> float:
    """Return the exponent between the largest size that is measured in reasonable time and a sixteenth of it.

    Args:
        call: The function.
        made: Makes a text of so many characters.
        largest: Largest size, in characters: the limit of the product where it has a smaller one.
    """
    times: dict[int, float] = {}
    size = min(64, largest // STEPS)
    seconds(call, made(size), 1)  # imports what it needs
    while size <= largest:
        times[size] = seconds(call, made(size), 1)
        if times[size] > 0.1:
            break
        size *= 2
    last = max(times)
    if math.inf in times.values() or len(times) == 1:  # exponential, or too slow at once
        return 99.0
    first = max(min(times), last // STEPS)
    short, long, results = math.inf, times[last], []
    for _ in range(3):
        # a text with one character more may be refused at once: the slowest of eight lengths is compared
        short = min(short, max(seconds(call, made(first + more), 5) for more in range(8)))
        long = min(long, seconds(call, made(last), 2))
        results.append(math.log(long / short) / math.log(last / first))
        if results[-1] <= MOST:
            break
    return round(results[-1], 2)
