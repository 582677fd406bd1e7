"""Settings of the libraries under torch, as environment variables; what is already set stays. Imports no torch.

Measured on sentences, on two cores: docs/log.md.
"""

from __future__ import annotations

import contextlib
import gc
import os
from collections.abc import Iterator

DEFAULTS = {
    # Both keep a compiled product, and its memory, for each of a thousand batch shapes; with 32 memory stays flat.
    "ONEDNN_PRIMITIVE_CACHE_CAPACITY": "32",
    "LRU_CACHE_CAPACITY": "32",
    # How long OpenMP's threads spin before they sleep: a short while costs nothing on a quiet machine, and on a busy
    # one leaves the cores to whoever has work.
    "GOMP_SPINCOUNT": "1000",
}


def set_defaults() -> None:
    """Set what is not set. The first two are read at the first product, the last one when torch is imported."""
    for name, value in DEFAULTS.items():
        os.environ.setdefault(name, value)


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
