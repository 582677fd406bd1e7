"""Rows T9 and R3: a long run, and a server, need no more memory than a short one; no file stays open."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent


@pytest.mark.faults
@pytest.mark.alone  # of a library that other processes use too, each counts a share: when they end, the share grows
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


@pytest.mark.faults
@pytest.mark.parametrize(("requests", "seconds"), [(2000, 10)])
def test_R3_a_server_gives_memory_back(
    requests: int, seconds: int, tiny_run: Path, figure: Callable[[str, str], None]
) -> None:
    """A shorter form of ``python -m benchmarks.soak --requests 10000``, whose overloads last a minute."""
    command = ["--requests", requests, "--seconds", seconds, "--run", tiny_run, "--print"]
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.soak", *map(str, command)], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout)
    statuses = {status for own in seen["statuses"].values() for status in own}
    assert {"200", "400", "413", "499"} <= statuses  # each kind was sent
    assert not {status for status in statuses if status >= "500"}, seen
    assert seen["rss_growth_factor"] < 1.3, seen
    assert seen["slope_mib_per_1000_requests"] < 15, seen  # of so few requests; of 10,000: below 1
    assert max(seen["overload_memory_growth_mib"]) < 100, seen
    assert seen["rss_mib"]["after_15_quiet_s"] <= 1.1 * seen["rss_mib"]["last"], seen
    figure(
        "R3",
        f"{requests:,} mixed requests: {seen['rss_growth_factor']} times the memory of the first full batch, "
        f"{seen['slope_mib_per_1000_requests']} MiB per 1,000 requests; five overloads of {seconds} s: "
        f"{seen['overload_memory_growth_mib']} MiB; the long form stands in benchmarks/results/hostile/memory.json",
    )
