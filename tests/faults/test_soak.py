"""Row T9: a long run needs no more memory than a short one, and leaves no file open."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent


@pytest.mark.faults
@pytest.mark.parametrize(("steps", "lines"), [(1500, 40_000)])
def test_T9_memory_does_not_grow_and_no_file_stays_open(
    steps: int, lines: int, figure: Callable[[str, str], None]
) -> None:
    """A shorter form of ``python -m benchmarks.soak``, which does 2,000 steps and 100,000 lines."""
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.soak", "--print", "--steps", str(steps), "--lines", str(lines)],
        cwd=ROOT, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    said = []
    for half in ("train", "translate"):
        assert found[half]["samples"] > 20
        assert found[half]["memory_growth_percent"] < 2, found
        descriptors = found[half]["file_descriptors"]
        assert descriptors["late"] <= descriptors["early"], found
        said.append(f"{found[half]['memory_growth_percent']} %")
    figure("T9", f"memory grows by {said[0]} over {steps:,} steps and by {said[1]} over {lines:,} translated lines, "
                 "file descriptors by 0; the long form stands in benchmarks/results/soak.json")  # fmt: skip
