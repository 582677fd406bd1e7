"""Settings that stand before torch is imported, and imports that the garbage collector stays out of."""

from __future__ import annotations

import gc
import os

import pytest

from dragoman import environment


def test_what_is_set_stays_and_what_is_not_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = environment.PRODUCTS
    for name in (*environment.DEFAULTS, second):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv(first, "7")
    environment.set_defaults(None)
    assert second not in os.environ
    environment.set_defaults(environment.SEARCHING)
    environment.set_defaults()  # comes too late
    assert (os.environ[first], os.environ[second]) == ("7", str(environment.SEARCHING))
    assert all(os.environ[name] == value for name, value in environment.DEFAULTS.items())


@pytest.mark.parametrize("fails", [False, True])
def test_the_collector_is_off_while_importing_and_on_afterwards(fails: bool) -> None:
    try:
        with environment.importing():
            assert not gc.isenabled()
            if fails:
                raise ImportError
    except ImportError:
        assert fails
    assert gc.isenabled()
    assert gc.get_freeze_count() > 0
    gc.unfreeze()
