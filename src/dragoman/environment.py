"""Settings of the libraries under torch, as environment variables; what is already set stays. Imports no torch.

Measured on sentences, on two cores: docs/log.md.
"""

from __future__ import annotations

import contextlib
import gc
import os
from collections.abc import Iterator

TRAINING = 32
"""So many compiled products are kept: training goes through thousands of shapes, and with 32 memory stays flat."""

SEARCHING = 256
"""A search has few shapes, by its choice, which come back with every batch: all find room."""

PRODUCTS = ("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "LRU_CACHE_CAPACITY")
"""Both keep compiled products, up to 1,024 if not told otherwise."""

DEFAULTS = {
    # How long OpenMP's threads spin before they sleep: a short while costs nothing on a quiet machine, and on a busy
    # one leaves the cores to whoever has work.
    "GOMP_SPINCOUNT": "1000",
}


def set_defaults(products: int | None = TRAINING) -> None:
    """Set what is not set, before torch is imported; ``products``, if given, is read at the first product only."""
    for name, value in DEFAULTS.items():
        os.environ.setdefault(name, value)
    for name in PRODUCTS if products is not None else ():
        os.environ.setdefault(name, str(products))


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
