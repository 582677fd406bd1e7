"""Start ``dragoman train`` in several processes, and let something happen to one of them.

    ranks.py 2 train ...                                       forks two ranks; ``rank_runs.py`` runs it so
    torchrun --nproc-per-node 2 ranks.py train ...             as users do

Environment:

    RANKS_FAULT  "WHAT RANK STEP ..." what happens to which rank right before which steps, on the first start only:
                 kill, exit (in silence), stop (as SIGSTOP does), raise, memory (as if there were none left),
                 nan (in the features of that step), drift (of one weight)
    RANKS_IDS    a file to which each rank appends, for each step, [STEP, RANK, pairs of each batch] as a line of JSON
    RANKS_SLEEP  seconds by which to lengthen each step
    RANKS_APART  a folder in which each rank works in a folder of its own, 0, 1 ..., as on a disk of its own

Printed in the first case: the pids, and when all have ended their exit statuses, each as a line of JSON.
"""

import json
import os
import signal
import socket
import sys
import time
import traceback
from pathlib import Path

import torch._dynamo  # (an optimiser loads it; once for all processes)

import dragoman.training.run  # noqa: F401
from dragoman.cli import main
from dragoman.training import loop, update


def happen(what: str, model) -> None:
    if what in ("kill", "stop"):
        os.kill(os.getpid(), signal.SIGKILL if what == "kill" else signal.SIGSTOP)
    elif what == "exit":
        os._exit(0)
    elif what == "raise":
        raise ValueError("an error that nobody foresaw")
    elif what == "memory":
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 GiB")
    elif what == "drift":
        with torch.no_grad():
            next(model.parameters())[-1, -1] += 1e-6
    elif what == "nan":
        features = update.features

        def poisoned(*args):
            update.features = features
            return features(*args) * float("nan")

        update.features = poisoned


def arm() -> None:
    rank = int(os.environ.get("RANK", 0))
    what, which, *steps = os.environ.get("RANKS_FAULT", "nothing 0").split()
    again = int(os.environ.get("TORCHELASTIC_RESTART_COUNT", 0))
    train_step, agree, ids = loop.train_step, loop.agree, os.environ.get("RANKS_IDS")
    pairs = []

    def armed(model, batches, *args):
        time.sleep(float(os.environ.get("RANKS_SLEEP", 0)))
        armed.step += 1
        if rank == int(which) and str(armed.step) in steps and not again:
            happen(what, model)
        pairs[:] = [batch.indices.tolist() for batch in batches]
        return train_step(model, batches, *args)

    def noted(world, state, *args):
        if ids and pairs:
            with Path(ids).open("a") as file:
                file.write(json.dumps([state.step, rank, pairs]) + "\n")
        return agree(world, state, *args)

    armed.step = 0  # of this process: a resumed run counts from its own start
    loop.train_step, loop.agree = armed, noted


def run() -> int:
    arm()
    if apart := os.environ.get("RANKS_APART"):
        os.chdir(Path(apart, os.environ["RANK"]))
    try:
        main()
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 1
    except BaseException:
        traceback.print_exc()
        return 1
    return 0


def fork_ranks(size: int) -> None:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    pids = []
    for rank in range(size):
        pids.append(os.fork())
        if not pids[-1]:
            place = dict(RANK=rank, WORLD_SIZE=size, LOCAL_RANK=rank, MASTER_ADDR="127.0.0.1", MASTER_PORT=port)
            os.environ |= {name: str(value) for name, value in place.items()}
            status = run()
            sys.stdout.flush()
            os._exit(status)
    print(json.dumps(pids), flush=True)
    ended = dict(os.waitpid(-1, 0) for _ in pids)
    print(json.dumps([os.waitstatus_to_exitcode(ended[pid]) for pid in pids]), flush=True)


if __name__ == "__main__":
    if "RANK" in os.environ:
        sys.exit(run())
    size = int(sys.argv.pop(1))
    fork_ranks(size)
