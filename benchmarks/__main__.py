"""All comparisons, or those that are named: ``python -m benchmarks [NAME ...] [--data DATA] [--run RUN]``."""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from pathlib import Path

from benchmarks.harness.arguments import one_of

COMPARISONS = ("startup", "roofline", "training", "loop", "minutes", "decoding", "latency", "long", "sweeps", "growth")
"""In this order; each is a module that runs by itself too."""

TRAINED = Path(__file__).resolve().parent.parent / "runs/bench/multi30k-20min-20"
"""What ``minutes`` trains, and the others decode with if no other run is named."""

NEED_NO_DATA = ("startup", "growth")
TAKE_A_RUN = ("decoding", "latency")


def command(name: str, data: Path | None, run: Path | None) -> list[str]:
    """One comparison at its full figures."""
    options = [] if data is None or name in NEED_NO_DATA else ["--data", str(data)]
    run = TRAINED if run is None and (TRAINED / "bundle").is_dir() else run
    options += [] if run is None or name not in TAKE_A_RUN else ["--run", str(run)]
    return [sys.executable, "-m", f"benchmarks.{name}", *options]


def main() -> None:
    """Run each in a process of its own, then make the page."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument(
        "names", nargs="*", type=one_of(COMPARISONS), metavar="NAME", help=f"of {', '.join(COMPARISONS)}"
    )
    parser.add_argument("--data", type=Path, help="a folder with the corpora (what is not there is embedded text)")
    parser.add_argument(
        "--run", type=Path, help="a trained run to decode with (without it: what minutes trained, else random weights)"
    )
    args = parser.parse_args()
    if args.data is not None and not args.data.is_dir():
        print(f"{args.data}: no such folder; the embedded corpus takes its place", file=sys.stderr)
        args.data = None
    failed = []
    for name in args.names or COMPARISONS:
        began = time.perf_counter()
        if subprocess.run(command(name, args.data, args.run), check=False).returncode:
            failed.append(name)
        print(f"{name}: {(time.perf_counter() - began) / 60:.1f} minutes", file=sys.stderr, flush=True)
    subprocess.run([sys.executable, "-m", "benchmarks.page"], check=True)
    if failed:
        raise SystemExit(f"failed, and not recorded: {', '.join(failed)}")


if __name__ == "__main__":
    main()
