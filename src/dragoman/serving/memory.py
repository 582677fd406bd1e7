"""Memory of a server, where glibc's malloc manages it: few arenas, and free memory goes back to the system.

Training lets malloc keep what it has freed (``cli.environment``). A server runs for months beside other programs, and
each of its threads would keep as much as it ever needed.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable

M_ARENA_MAX = -8
"""glibc's number for the largest number of arenas, each of which keeps free memory of its own."""

QUIET_S = 10.0
"""Seconds without a batch after which free memory goes back to the system."""

BUSY_S = 60.0
"""Seconds after which it does so in a server that is never quiet."""


def bound_arenas(n_arenas: int) -> bool:
    """Let all threads together use at most ``n_arenas`` arenas; return False where malloc has no such limit."""
    libc = _libc()
    return hasattr(libc, "mallopt") and hasattr(libc, "malloc_trim") and bool(libc.mallopt(M_ARENA_MAX, n_arenas))


def trim() -> bool:
    """Return free memory to the system; return False where malloc cannot, or had none."""
    libc = _libc()
    return hasattr(libc, "malloc_trim") and bool(libc.malloc_trim(0))


def _libc() -> ctypes.CDLL | None:
    return ctypes.CDLL(None) if sys.platform == "linux" else None


class Trimmer:
    """Trims the memory of a server after work: once it is quiet, and at intervals while it is not."""

    def __init__(self, work: Callable[[], tuple[int, bool]], trim: Callable[[], object] = trim) -> None:
        """Take a function that returns the number of batches so far, and whether one runs now."""
        self._work, self._trim = work, trim
        self._n_batches = self._n_trimmed = 0  # batches at the last look, and at the last time it was trimmed
        self._quiet_s = self._untrimmed_s = 0.0

    def look(self, seconds: float) -> None:
        """Trim if it is time; the last look was ``seconds`` ago."""
        n_batches, is_running = self._work()
        is_quiet = n_batches == self._n_batches and not is_running
        self._n_batches = n_batches
        self._quiet_s = self._quiet_s + seconds if is_quiet else 0.0
        self._untrimmed_s += seconds
        has_worked = n_batches != self._n_trimmed
        # Large bodies that were refused leave free memory too, and are not counted: hence the interval in any case.
        if (has_worked and self._quiet_s >= QUIET_S) or self._untrimmed_s >= BUSY_S:
            self._n_trimmed, self._untrimmed_s = n_batches, 0.0
            self._trim()
