"""Runs an example of each command and keeps what it prints, for the reference page of the command line."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from docs.site.tables import RECORDED

COMMANDS = {
    "train": "dragoman train train.en train.de --minutes 1 --out runs/short",
    "distill": "dragoman distill runs/first --src train.en --ref train.de --shrink 1 --minutes 3 --out runs/student",
    "augment": "dragoman augment --forward runs/first --src news.en --held-out test.en --out made",
    "translate": 'echo "The child sleeps." | dragoman translate runs/first --json',
    "score": "dragoman score runs/first --src two.en --ref two.de",
    "evaluate": "dragoman evaluate runs/first --src test.en --ref test.de",
    "runs": "dragoman runs",
    "report": "dragoman report runs/first",
    "calibrate": "dragoman calibrate runs/first --src test.en --ref test.de",
    "explain": 'dragoman explain runs/first "The child sleeps."',
    "doctor": "dragoman doctor --src train.en --tgt train.de",
    "lab": "dragoman lab attention --quick",
    "export": "dragoman export runs/first --format huggingface",
    "formats": "dragoman formats runs/first",
    "import": "dragoman import runs/first/exports/huggingface-float32 --out runs/imported",
    "serve": "timeout --signal INT 15 dragoman serve runs/first --port 5917",
}
"""What is run in a folder with a run, its corpus and a test set; ``demo`` is the run itself, whose log is kept."""

KEPT = 18
"""Of longer outputs so many lines are kept at each end."""


def record(run: Path, log: Path) -> None:
    """Run the examples with the run of a demo, of which ``log`` is what it printed."""
    RECORDED.mkdir(exist_ok=True)
    _keep("demo", "dragoman demo", log.read_text(encoding="utf-8"), str(run))
    with tempfile.TemporaryDirectory() as folder:
        here = Path(folder)
        shutil.copytree(run, here / "runs/first")
        for side in ("en", "de"):
            _first_lines(run / f"corpus/train.{side}", here / f"train.{side}", 20_000)
            _first_lines(run / f"corpus/held_out.{side}", here / f"test.{side}", 100)
            _first_lines(run / f"corpus/held_out.{side}", here / f"two.{side}", 2)
        _first_lines(run / "corpus/held_out.en", here / "news.en", 1_000)
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        environment = {**os.environ, "PATH": path, "COLUMNS": "110", "NO_COLOR": "1"}
        for name, command in COMMANDS.items():
            done = subprocess.run(
                ["bash", "-c", f"{command} 2>&1"], cwd=here, env=environment, capture_output=True, text=True
            )
            if done.returncode and name != "serve":
                sys.exit(f"{command}: exit {done.returncode}\n{done.stdout}")
            shown = re.sub(r"^timeout --signal INT 15 ", "", command)
            _keep(name, shown, done.stdout, str(here))


def _first_lines(source: Path, target: Path, n_lines: int) -> None:
    target.write_text("".join(source.open(encoding="utf-8").readlines()[:n_lines]), encoding="utf-8")


def _keep(name: str, command: str, printed: str, folder: str) -> None:
    lines = printed.replace(f"{folder}/", "").replace(folder, "runs/demo").rstrip().split("\n")
    if len(lines) > 2 * KEPT:
        lines = [*lines[:KEPT], "...", *lines[-KEPT:]]
    (RECORDED / f"{name}.txt").write_text("\n".join([f"$ {command}", *lines]) + "\n", encoding="utf-8")
