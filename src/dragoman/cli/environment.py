"""Settings of the libraries under torch; environment variables that are already set stay. Imports no torch.

Measured on sentences, on two cores: docs/log.md.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import os
import sys
from collections.abc import Iterator
from pathlib import Path

KEPT = 256
"""Number of compiled products to keep: training and searching choose few shapes, which come back, and all find room."""

PRODUCTS = ("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "LRU_CACHE_CAPACITY")
"""Variables by which oneDNN, and torch's layer above it, keep compiled products of up to N shapes, 250 KiB each.

Both are read once, when the first product is computed, and are 1,024 where they are not set: as text has many shapes,
memory grows for hours then. A long-lived program that imports dragoman may set them too; the library does not.
"""

MALLOPT = {-1: 2**31 - 1, -2: 2**26, -3: 2**25}
"""glibc's M_TRIM_THRESHOLD, M_TOP_PAD, M_MMAP_THRESHOLD (whose greatest value this is), in bytes."""


def set_defaults() -> None:
    """Set what is not set, before torch is imported."""
    for name in PRODUCTS:
        os.environ.setdefault(name, str(KEPT))
    if _others_are_at_work():
        # OpenMP's threads spin at a barrier before they sleep. On a quiet machine that is worth a seventh of the time;
        # on a busy one a short while is enough, and leaves the cores to whoever has work.
        os.environ.setdefault("GOMP_SPINCOUNT", "1000")


def prepare() -> None:
    """All that training and searching want."""
    set_defaults()
    keep_memory()


def keep_memory() -> None:
    """Have malloc keep what is freed, up to the greatest that was needed, where it is glibc's.

    Training and searching free and take back the same hundreds of MiB at each step. Left alone malloc gives them to the
    system and is given them again page by page: a tenth of a training step, and now and then half of one.
    """
    if sys.platform == "linux":
        libc = ctypes.CDLL(None)
        for name, value in MALLOPT.items() if hasattr(libc, "mallopt") else ():  # (musl has none)
            libc.mallopt(name, value)


def _others_are_at_work() -> bool:
    """Whether more threads want to run at this moment than this one, as far as the system says."""
    try:
        running = Path("/proc/loadavg").read_text(encoding="ascii").split()[3].split("/")[0]
    except OSError:
        return os.getloadavg()[0] > 0.5
    return int(running) > 1


@contextlib.contextmanager
def importing() -> Iterator[None]:
    """Keep the garbage collector out of imports: they make 300,000 objects, all of which stay, and no garbage.

    It takes a tenth of the time of importing torch, and afterwards need not look at those objects again.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
        gc.freeze()
