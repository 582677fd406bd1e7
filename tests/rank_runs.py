"""Runs of ``dragoman train`` in several processes, for tests."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

from dragoman.model.weights import read_weights
from dragoman.training.checkpoint import latest_checkpoint
from limits import LONG_S
from processes import Forked, start_script

RANKS = Path(__file__).with_name("ranks.py")


def forked(size: int) -> list[str]:
    """``size`` ranks forked from one process: quicker to start than by torchrun."""
    return [str(size)]


def torchrun(restarts: int = 0) -> list[str]:
    """Two ranks, as users start them."""
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    return [*launcher, "--max-restarts", str(restarts), str(RANKS)]


def one_of_two_machines(port: int) -> list[str]:
    """One rank, by one of two torchruns that meet at ``port``, each of which takes itself for a machine."""
    launcher = [sys.executable, "-m", "torch.distributed.run", "--nnodes", "2", "--nproc-per-node", "1"]
    meeting = ["--rdzv-backend", "c10d", "--rdzv-endpoint", f"localhost:{port}", "--rdzv-id", "test"]
    return [*launcher, *meeting, str(RANKS)]


class Ended(NamedTuple):
    """What several processes left."""

    status: int  # of what started them
    statuses: list[int]  # of the ranks, where that is known
    out: list[str]  # lines on stdout
    err: str  # of all together

    @property
    def errors(self) -> list[str]:
        return [line for line in self.err.split("\n") if line.startswith("error:")]


Process = subprocess.Popen[bytes] | Forked


def start(command: list[str], *args: Any, **environment: str) -> Process:
    """``command`` is ``forked()`` or ``torchrun()``; what may stand in the environment is told in ``ranks.py``."""
    words = [*command, *map(str, args)]
    if command[0].isdecimal():
        return start_script(RANKS, *words, **environment)
    return subprocess.Popen(words, env=os.environ | environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def ended(process: Process, timeout: float = LONG_S) -> Ended:
    out, err = (said.decode() for said in process.communicate(timeout=timeout))
    lines = out.split("\n")[:-1]
    told = [json.loads(line) for line in lines if line.startswith("[")]
    words = [line for line in lines if not line.startswith("[")]
    assert process.returncode is not None
    return Ended(process.returncode, told[1] if len(told) == 2 else [], words, err)


def train(command: list[str], *args: Any, timeout: float = LONG_S, **environment: str) -> Ended:
    return ended(start(command, "train", *args, **environment), timeout)


def batches_of(ids: Path) -> dict[int, list[list[int]]]:
    """The pairs of each batch of each step, in the one order of all ranks; the last time that a step was made."""
    noted: dict[int, dict[int, list[list[int]]]] = {}
    for line in ids.read_text(encoding="utf-8").split("\n")[:-1]:
        step, rank, pairs = json.loads(line)
        noted.setdefault(step, {})[rank] = pairs
    return {
        step: [batch for group in zip(*(of[rank] for rank in sorted(of)), strict=True) for batch in group]
        for step, of in noted.items()
    }


def difference(one: Path, two: Path) -> float:
    """The largest difference between any weights of the last checkpoints of two runs, biases of keys left out.

    These add the same to all scores of a query, which softmax does not see: their gradient is rounding alone, of which
    Adam makes full steps, and no output depends on them.
    """
    a, b = (read_weights(latest_checkpoint(run / "checkpoints") / "model.safetensors") for run in (one, two))
    return max(float((a[name] - b[name]).abs().max()) for name in a if not name.endswith("w_k.bias"))
