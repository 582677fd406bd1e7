"""Waits and bounds for tests that may run on a slow machine, or on one that has other work.

A test waits for an event and never for a time, and holds against a clock only what would take minutes if it were wrong.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator

LONG_S = 300.0
"""Seconds after which what must come never will; nobody waits so long for what does come."""


def wait_until(true: Callable[[], object], seconds: float = LONG_S) -> None:
    """Wait for an event; fail if it never comes."""
    deadline = time.perf_counter() + seconds
    while not true():
        assert time.perf_counter() < deadline, f"it has not come in {seconds:.0f} s"
        time.sleep(0.01)


@contextlib.contextmanager
def cpu_limit(seconds: float = 20.0) -> Iterator[None]:
    """Fail if the body takes more seconds of the processor, in this process.

    Meant for work that takes under a second where it grows with its input, and minutes where it grows with its square.
    """
    began = time.process_time()
    yield
    spent = time.process_time() - began
    assert spent < seconds, f"{spent:.1f} s of the processor"
