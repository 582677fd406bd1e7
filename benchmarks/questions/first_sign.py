"""How soon each command shows that it lives, in a terminal of its own; and the first line of a training.

    python -m benchmarks.questions.first_sign RUN --src TEXT.en --tgt TEXT.de --out benchmarks/results/first-sign.json

Of each command the seconds from its start to the first byte on the terminal are noted; of ``train`` also those from
"parameters, ... pairs", which is said when the loop begins, to the first line with a perplexity. The machine's load is
noted beside them. With ``--before SRC`` the same is done with the package in another folder.
"""

from __future__ import annotations

import argparse
import json
import os
import pty
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import torch

from dragoman.lab.machine import machine

LIMIT_S = 60.0


def watch(command: list[str], src: Path, until: str, cwd: str) -> dict[str, float | None]:
    """Run a command in a terminal; seconds to its first byte, and to a text that the pattern ``until`` finds."""
    master, slave = pty.openpty()
    environment = {**os.environ, "PYTHONPATH": str(src), "TERM": "xterm"}
    began = time.perf_counter()
    process = subprocess.Popen(command, stdin=slave, stdout=slave, stderr=slave, env=environment, cwd=cwd)
    os.close(slave)
    said, first, loop, found = "", None, None, None
    while found is None and time.perf_counter() - began < LIMIT_S:
        if not select.select([master], [], [], 0.05)[0]:
            if process.poll() is not None:
                break
            continue
        try:
            said += os.read(master, 2**16).decode("utf-8", "replace")
        except OSError:  # it has ended
            break
        now = time.perf_counter() - began
        first = first or now
        if loop is None and re.search(r"parameters, .* pairs", said):
            loop = now
        if until and re.search(until, said):
            found = now
    if process.poll() is None:
        process.send_signal(signal.SIGKILL)
    process.wait()
    os.close(master)
    seconds: dict[str, float | None] = {"first_sign_s": first and round(first, 2)}
    if until:
        seconds["loop_to_first_line_s"] = round(found - loop, 2) if found and loop else None
    return seconds


def commands(run: Path, src: Path, tgt: Path) -> dict[str, tuple[list[str], str]]:
    """What is asked of each command, and the text to wait for beside the first sign."""
    texts = ["--src", str(src), "--tgt", str(tgt)]
    return {
        "translate": (["translate", str(run), str(src)], ""),
        "score": (["score", str(run), *texts], ""),
        "evaluate": (["evaluate", str(run), "--src", str(src), "--ref", str(tgt)], ""),
        "explain": (["explain", str(run), "A dog runs."], ""),
        "doctor": (["doctor", *texts], ""),
        "lab": (["lab", "scaling", "--quick"], ""),
        "export": (["export", str(run), "--format", "ctranslate2", "--out", "export"], ""),
        "train": (["train", *texts, "--out", "run"], r"step [^\n]*perplexity \d"),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path)
    parser.add_argument("--src", type=Path, required=True)
    parser.add_argument("--tgt", type=Path, required=True)
    parser.add_argument("--before", type=Path, help="src folder of another version")
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    here = Path(__file__).resolve().parents[2] / "src"
    found: dict[str, Any] = {}
    for name, (arguments, until) in commands(given.run.resolve(), given.src.resolve(), given.tgt.resolve()).items():
        found[name] = {}
        for label, src in (("before", given.before), ("now", here)):
            if src is not None:
                folder = tempfile.mkdtemp()
                command = [sys.executable, "-m", "dragoman", *arguments]
                found[name][label] = watch(command, src.resolve(), until, folder)
                shutil.rmtree(folder)
        print(name, found[name], flush=True)
    about = {"machine": machine(torch.device("cpu")), "load": os.getloadavg(), "limit_s": LIMIT_S}
    command = "python -m benchmarks.questions.first_sign RUN --src LINES.en --tgt LINES.de --before OLD/src --out FILE"
    given.out.write_text(
        json.dumps({"command": command, **about, "commands": found}, indent=2) + "\n", encoding="utf-8"
    )


if __name__ == "__main__":
    main()
