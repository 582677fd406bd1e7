"""Run the fault suite at its full figures and record what each row says, with the seconds of the whole."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.record import save

ROOT = Path(__file__).resolve().parent.parent


def main() -> None:
    """Run pytest as ``make test-faults`` does; nothing is written unless every row holds."""
    argparse.ArgumentParser(description=__doc__).parse_args()
    command = [sys.executable, "-m", "pytest", "tests/faults", "-m", "faults or not faults", "-s"]
    with tempfile.TemporaryDirectory() as folder:
        said = Path(folder) / "figures"
        started = time.perf_counter()
        subprocess.run(command, cwd=ROOT, env={**os.environ, "DRAGOMAN_FIGURES": str(said)}, check=True)
        seconds = time.perf_counter() - started
        rows: dict[str, list[str]] = {}
        for line in said.read_text(encoding="utf-8").splitlines():
            entry = json.loads(line)
            rows.setdefault(entry["row"], []).append(entry["figure"])
    save("faults", {"seconds": round(seconds), "rows": dict(sorted(rows.items()))}, "python -m benchmarks.faults")


if __name__ == "__main__":
    main()
