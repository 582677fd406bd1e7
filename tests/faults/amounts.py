"""How much a row of the fault suite tries: little in ``make test``, its full figure in ``make test-faults``."""

from __future__ import annotations

import pytest


def amounts(quick: int, full: int) -> pytest.MarkDecorator:
    """Run a test with ``n`` = ``quick``, and with ``n`` = ``full`` in the marked half."""
    return pytest.mark.parametrize("n", [quick, pytest.param(full, marks=pytest.mark.faults)])
