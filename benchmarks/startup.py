"""How long ``dragoman --help`` takes, whole process; target 0.3 s."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

from benchmarks.record import save, spread

RUNS = 15


def main() -> None:
    """Time the help page, after one warm-up."""
    program = Path(sys.executable).with_name("dragoman")
    seconds = []
    for _ in range(RUNS + 1):
        started = time.perf_counter()
        subprocess.run([program, "--help"], check=True, stdout=subprocess.DEVNULL)
        seconds.append(time.perf_counter() - started)
    save("startup", {"help_s": spread(seconds[1:])}, "python -m benchmarks.startup", ("typer", "rich"))


if __name__ == "__main__":
    main()
