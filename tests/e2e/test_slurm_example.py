"""The job for Slurm, run by stand-ins for Slurm's own commands: what torchrun is told, at first and submitted again."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from torch.distributed.run import get_args_parser

SCRIPT = Path(__file__).resolve().parent.parent.parent / "examples/slurm.sh"


def stand_in(folder: Path, name: str, does: str) -> None:
    (folder / name).write_text(f"#!/bin/bash\n{does}\n", encoding="utf-8")
    (folder / name).chmod(0o755)


@pytest.mark.parametrize("again", [False, True])
def test_the_job_starts_one_torchrun_on_each_machine_and_resumes(tmp_path: Path, again: bool) -> None:
    commands = tmp_path / "bin"
    commands.mkdir()
    stand_in(commands, "scontrol", '[ "$*" = "show hostnames node[1-2]" ] && printf "node1\\nnode2\\n"')
    stand_in(commands, "srun", 'printf "%s\\n" "$@"; echo "OMP_NUM_THREADS=$OMP_NUM_THREADS"')
    run = tmp_path / "runs with a blank/first"
    if again:
        (run / "checkpoints/step_00000010").mkdir(parents=True)
    environment = {
        "PATH": f"{commands}{os.pathsep}{os.environ['PATH']}", "SLURM_JOB_NODELIST": "node[1-2]", "SLURM_NNODES": "2",
        "SLURM_JOB_ID": "77",
    }  # fmt: skip
    done = subprocess.run(["bash", str(SCRIPT), "my.yaml", str(run)], env=environment, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    kill, torchrun, *words, threads = done.stdout.rstrip("\n").split("\n")
    assert (kill, torchrun, threads) == ("--kill-on-bad-exit=1", "torchrun", "OMP_NUM_THREADS=8")
    told = get_args_parser().parse_args(words)
    assert (told.nnodes, told.nproc_per_node, told.max_restarts) == ("2", "4", 3)
    assert (told.rdzv_backend, told.rdzv_endpoint, told.rdzv_id) == ("c10d", "node1:29500", "77")
    assert (told.module, told.training_script) == (True, "dragoman")
    first = ["train", "my.yaml", "--out", str(run)]
    assert told.training_script_args == (["train", "--out", str(run), "--resume"] if again else first)


def test_the_header_asks_for_what_the_script_uses() -> None:
    lines = SCRIPT.read_text(encoding="utf-8").split("\n")
    asked = dict(line.removeprefix("#SBATCH --").partition("=")[::2] for line in lines if line.startswith("#SBATCH"))
    assert asked["ntasks-per-node"] == "1"  # torchrun starts the others
    assert asked["gpus-per-node"] == "4"
    assert int(asked["cpus-per-task"]) == 4 * 8
    assert asked["signal"] == "TERM@120"
    assert {"requeue", "nodes", "time", "open-mode"} <= set(asked)
    with_two = subprocess.run(["bash", str(SCRIPT)], capture_output=True, text=True)
    assert with_two.returncode != 0  # a job without its configuration does not start
