"""Run the fault suite at its full figures and record what each row says, with the seconds of the whole.

    python -m benchmarks.faults                 all rows: faults.json
    python -m benchmarks.faults --rows S1 S2    some rows of one letter: faults-S.json; others stay

S7 needs what ``make test-browser`` installs.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.record import RESULTS, save

ROOT = Path(__file__).resolve().parent.parent


def figures_of(rows: list[str] | None) -> dict[str, list[str]]:
    """What each row says; only those rows, if some are given.

    Raises:
        CalledProcessError: One does not hold.
    """
    command = ["make", "test-faults"]
    if rows is not None:
        command = [sys.executable, "-m", "pytest", "-s", "tests/faults"]
        command += ["tests/browser/test_serve_page.py"] if "S7" in rows else []
        command += ["-m", "faults or browser", "-k", " or ".join(f"test_{row}_" for row in rows)]
    with tempfile.TemporaryDirectory() as folder:
        said = Path(folder) / "figures"
        subprocess.run(command, cwd=ROOT, env={**os.environ, "DRAGOMAN_FIGURES": str(said)}, check=True)
        found: dict[str, list[str]] = {}
        for line in said.read_text(encoding="utf-8").splitlines():
            entry = json.loads(line)
            found.setdefault(entry["row"], []).append(entry["figure"])
    return found


def main() -> None:
    """Run the rows; nothing is written unless every one holds."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", nargs="+", help="such as S1 S2, all of one letter")
    rows = parser.parse_args().rows
    if not rows:
        started = time.perf_counter()
        found = figures_of(None)
        seconds = round(time.perf_counter() - started)
        save("faults", {"seconds": seconds, "rows": dict(sorted(found.items()))}, "python -m benchmarks.faults")
        return
    (letter,) = {row[0] for row in rows}
    path = RESULTS / f"faults-{letter}.json"
    before = json.loads(path.read_text(encoding="utf-8"))["figures"]["rows"] if path.is_file() else {}
    found = {**before, **figures_of(rows)}
    in_order = dict(sorted(found.items(), key=lambda one: int(one[0][1:])))
    save(path.stem, {"rows": in_order}, f"python -m benchmarks.faults --rows {' '.join(in_order)}")


if __name__ == "__main__":
    main()
