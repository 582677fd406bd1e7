"""Sweeps of training: each system gets its settings, and all speeds are kept."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import pytest

from benchmarks import sweeps


@pytest.mark.parametrize("what", ["vocabulary", "layers"])
def test_a_sweep_of_training_gives_each_system_its_settings(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[Any] = []

    def once(system: Any, warm: int) -> dict[str, float]:
        begun.append(system)
        return {"tokens_per_s": 10.0, "peak_mib": 1.0}

    monkeypatch.setattr(sweeps, "once", once)
    args = argparse.Namespace(
        data=None, preset="tiny", vocab_size=600, batch_tokens=256, warm=1, updates=1, rounds=2, out=Path()
    )
    table = sweeps.by_training(args, (1, 2), what)["systems"]
    assert len(begun) == 2 * 2 * len(table)
    assert all(system.settings["attention"] == "eager" for system in begun if system.name.startswith("Hugging Face"))
    assert {size for sizes in table.values() for size in sizes} == {"1", "2"}
