"""Settings for the libraries under torch, and for Rich. Imports no torch.

Usable variables stay as they are, except those of OpenMP with which products would be wrong: ``use_whole_teams``.

The effects were measured on two cores: benchmarks/records/training-speed.md and memory.md.
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
"""Number of compiled matrix products to cache: enough for the few shapes that training and search use."""

PRODUCTS = ("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "LRU_CACHE_CAPACITY")
"""Variables with the size of two caches of compiled products, oneDNN's and torch's above it; 250 KiB per entry.

Both are read once, at the first product. Their default of 1,024 lets memory grow for hours, since text has many shapes.
The library does not set them; a long-lived program that imports dragoman may do so.
"""

MALLOPT = {-1: 2**31 - 1, -2: 2**26, -3: 2**25}
"""glibc's M_TRIM_THRESHOLD, M_TOP_PAD and M_MMAP_THRESHOLD (at its maximum), in bytes."""

LEAST_WIDTH = 20
"""Smallest number of columns at which help can be read."""


def set_defaults() -> None:
    """Set the environment variables that are not set yet; call this before torch is imported."""
    for name in PRODUCTS:
        os.environ.setdefault(name, str(KEPT))
    if _is_busy():
        # OpenMP's threads spin at a barrier before they sleep. On a quiet machine that saves a seventh of the time; on
        # a busy one they should spin briefly, and leave the cores to other programs.
        os.environ.setdefault("GOMP_SPINCOUNT", "1000")
    use_whole_teams()


def use_whole_teams() -> None:
    """Keep OpenMP from giving a product fewer threads than it asks for; a limit becomes the number of threads."""
    # oneDNN divides a product among the threads that it asks for. With fewer, the parts of the others are never
    # computed, and the output holds what was in memory before, often finite numbers.
    os.environ["OMP_DYNAMIC"] = "false"
    if os.environ.get("OMP_MAX_ACTIVE_LEVELS", "").strip() == "0":
        os.environ["OMP_MAX_ACTIVE_LEVELS"] = "1"
    limit = _whole_number(os.environ.pop("OMP_THREAD_LIMIT", ""))  # --threads may be larger: it was given for this run
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if 0 < limit < (_whole_number(os.environ.get("OMP_NUM_THREADS", "").split(",")[0]) or cores):
        os.environ["OMP_NUM_THREADS"] = str(limit)


def _whole_number(text: str) -> int:
    """Return the number that a variable holds; 0 if it holds none that OpenMP would take."""
    text = text.strip()
    return int(text) if len(text) < 10 and text.isascii() and text.isdigit() else 0


def prepare(command: str) -> None:
    """Prepare the process for a command."""
    set_defaults()
    forget_odd_width()
    # A server runs beside other programs for months, and each of its threads would keep as much as it ever needed; it
    # settles for fewer arenas (``serving.memory``).
    if command != "serve":
        keep_memory()


def forget_odd_width() -> None:
    """Remove COLUMNS from the environment if no text can be read at that width: help would be empty, or have no end."""
    # Some programs that start commands without a terminal set it to 0.
    width = os.environ.get("COLUMNS", "")
    if width.isdigit() and not (len(width) < 6 and width.isascii() and int(width) >= LEAST_WIDTH):
        del os.environ["COLUMNS"]


def keep_memory() -> None:
    """Let glibc's malloc keep freed memory for reuse; other C libraries are left alone."""
    # Training and search free and allocate the same hundreds of MiB at each step. By default malloc returns them to the
    # system and gets them back page by page, which costs a tenth of a training step, and sometimes half of one.
    if sys.platform == "linux":
        libc = ctypes.CDLL(None)
        for name, value in MALLOPT.items() if hasattr(libc, "mallopt") else ():  # (musl has none)
            libc.mallopt(name, value)


def use_threads(threads: int | None) -> None:
    """Set the number of torch's threads, and so of batches that are decoded at a time; None: leave it."""
    if threads is not None:
        import torch

        torch.set_num_threads(threads)


def _is_busy() -> bool:
    """Return True if the machine has other threads that want to run now."""
    try:
        running = Path("/proc/loadavg").read_text(encoding="ascii").split()[3].split("/")[0]
    except OSError:
        return os.getloadavg()[0] > 0.5
    return int(running) > 1


@contextlib.contextmanager
def importing() -> Iterator[None]:
    """Turn the garbage collector off during imports, and exempt the imported objects from it afterwards."""
    # Importing torch makes 300,000 objects and no garbage; the collector would take a tenth of the time.
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
        gc.freeze()
