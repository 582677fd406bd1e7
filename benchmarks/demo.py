"""The demo, timed: share of held-out sentences exactly right, seconds of training."""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import time
from pathlib import Path

from benchmarks.harness.runs import events, last
from benchmarks.record import save


def main() -> None:
    """Run ``dragoman demo`` in ``--out`` and record what it printed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--to", default="de", choices=("de", "zh"))
    parser.add_argument("--out", type=Path, required=True, help="a run folder that does not exist yet")
    parser.add_argument("--install-s", type=float, help="seconds that `make .venv/ready` took on a fresh clone")
    args = parser.parse_args()
    dragoman = str(Path(sys.executable).with_name("dragoman"))
    started = time.perf_counter()
    command = [dragoman, "demo", "--to", args.to, "--out", str(args.out)]
    printed = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    wall = time.perf_counter() - started
    end = last(events(args.out), "end")
    shares = re.findall(r"^(.*): ([\d.]+)% of ([\d,]+) exactly right, BLEU ([\d.]+)", printed, re.MULTILINE)
    figures = {
        "exactly_right": {what: {"percent": float(p), "sentences": n, "bleu": float(b)} for what, p, n, b in shares},
        "training_s": round(end["seconds"], 1),
        "wall_s": round(wall, 1),
        "install_s": args.install_s,
        "steps": end["step"],
        "target_tokens": end["tokens"],
        "training_flops": end["flops"],
    }
    save(f"demo_{args.to}", figures, f"python -m benchmarks.demo --to {args.to} --out RUN")


if __name__ == "__main__":
    main()
