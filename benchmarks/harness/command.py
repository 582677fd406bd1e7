"""A system that is a command line: run to its end, its memory looked at meanwhile."""

from __future__ import annotations

import os
import re
import statistics
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

SAMPLE_S = 0.25


class Watched(NamedTuple):
    """How a command went; memory is resident, of its own process, MiB, looked at every ``SAMPLE_S``."""

    seconds: float
    peak_mib: float
    samples_mib: list[float]


def watched(
    command: Sequence[str | Path], output: Path, threads: int = 2, env: Mapping[str, str] | None = None
) -> Watched:
    """Run a command; what it says goes to ``output``.

    Raises:
        RuntimeError: It failed; the message holds the end of what it said.
    """
    began = time.perf_counter()
    peak_kib, samples = 0, []
    with output.open("wb") as file:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.STDOUT,
            env={**os.environ, "OMP_NUM_THREADS": str(threads), **(env or {})},
        )  # fmt: skip
        while process.poll() is None:
            # not ru_maxrss, which counts what this process held when it started the other
            peak, resident = (_status_kib(process.pid, field) for field in ("VmHWM", "VmRSS"))
            peak_kib = max(peak_kib, peak)
            samples.append(resident / 1024)
            time.sleep(SAMPLE_S)
    if process.returncode:
        said = output.read_text(encoding="utf-8", errors="replace")[-2000:]
        raise RuntimeError(f"{' '.join(map(str, command))}: exit status {process.returncode}\n{said}")
    return Watched(time.perf_counter() - began, round(peak_kib / 1024, 1), samples)


def reported_speed(pattern: str, log: str) -> dict[str, float]:
    """The mean speed of the last two of three reports, which stand for as many updates each, and the last loss.

    Args:
        pattern: Finds the loss and the tokens a second of a report.

    Raises:
        RuntimeError: There are not three reports.
    """
    reports = re.findall(pattern, log)
    if len(reports) != 3:
        raise RuntimeError(f"it reported {len(reports)} times instead of 3:\n{log[-2000:]}")
    speeds = [float(speed) for _, speed in reports]
    return {"tokens_per_s": 2 / (1 / speeds[1] + 1 / speeds[2]), "last_loss": float(reports[-1][0])}


def growth_percent(samples: Sequence[float]) -> float:
    """The median of the last fifth over that of the second fifth; the first is warm-up."""
    fifth = max(1, len(samples) // 5)
    early, late = (statistics.median(samples[part]) for part in (slice(fifth, 2 * fifth), slice(-fifth, None)))
    return 100 * (late / early - 1)


def _status_kib(pid: int, field: str) -> int:
    try:
        status = Path(f"/proc/{pid}/status").read_text(encoding="ascii", errors="replace")
    except OSError:  # gone meanwhile
        return 0
    return next((int(line.split()[1]) for line in status.split("\n") if line.startswith(field)), 0)
