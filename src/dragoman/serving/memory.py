"""Memory of a server: caches with a limit in bytes; and of glibc's malloc few arenas and little free memory.

Training lets malloc keep what it has freed (``cli.environment``). A server runs for months beside other programs, and
each of its threads would keep as much as it ever needed.
"""

from __future__ import annotations

import ctypes
import sys
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any, Generic, TypeVar

V = TypeVar("V")

M_ARENA_MAX = -8
"""glibc's number for the largest number of arenas, each of which keeps free memory of its own."""

QUIET_S = 10.0
"""Seconds without a batch after which free memory goes back to the system."""

BUSY_S = 60.0
"""Seconds after which it does so in a server that is never quiet."""


def bound_arenas(n_arenas: int) -> bool:
    """Let all threads together use at most ``n_arenas`` arenas; return False where malloc has no such limit."""
    malloc = libc()
    return hasattr(malloc, "malloc_trim") and bool(malloc.mallopt(M_ARENA_MAX, n_arenas))


def trim() -> bool:
    """Return free memory to the system; return False where malloc cannot, or had none."""
    malloc = libc()
    return hasattr(malloc, "malloc_trim") and bool(malloc.malloc_trim(0))


def libc() -> Any:
    """Return the C library of Linux, which may be another than glibc; None elsewhere."""
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


TERM_BYTES = 160
"""Memory of a term of a glossary besides its characters, in bytes: two texts, and their places in the tables."""


def bytes_of_terms(text: str, n_terms: int) -> int:
    """Return about how many bytes the terms take that a text holds."""
    return sys.getsizeof(text) + n_terms * TERM_BYTES


class TextCache(Generic[V]):
    """Keeps the values that were used last, up to a number of values and of bytes.

    The newest value always stays. Any thread may use it.
    """

    def __init__(self, most_bytes: int, most: int) -> None:
        self.most_bytes, self.most, self.n_bytes = most_bytes, most, 0
        self._values: OrderedDict[Hashable, tuple[V, int]] = OrderedDict()
        self._changing = threading.Lock()

    def __len__(self) -> int:
        return len(self._values)

    def get(self, key: Hashable) -> V | None:
        """Return the value of a key, which is then the newest; None if it is not kept."""
        with self._changing:
            if key not in self._values:
                return None
            self._values.move_to_end(key)
            return self._values[key][0]

    def put(self, key: Hashable, value: V, n_bytes: int) -> V:
        """Keep and return a value that takes ``n_bytes`` with its key."""
        with self._changing:  # as a whole: of two threads that keep the same key, one replaces what the other kept
            self._forget(key)
            self._values[key] = value, n_bytes
            self.n_bytes += n_bytes
            while len(self._values) > 1 and (self.n_bytes > self.most_bytes or len(self._values) > self.most):
                _, (_, n_oldest) = self._values.popitem(last=False)
                self.n_bytes -= n_oldest
        return value

    def pop(self, key: Hashable) -> None:
        """Forget the value of a key, if it is kept."""
        with self._changing:
            self._forget(key)

    def _forget(self, key: Hashable) -> None:
        _, n_bytes = self._values.pop(key, (None, 0))
        self.n_bytes -= n_bytes
