"""Kill a resumed run with SIGKILL at the n-th disk operation, resume it again, and print what came of it.

    python failpoints.py STOPPED FOLDER LAST N...

For each N a process of its own goes on with a copy of the run STOPPED, up to step LAST, and kills itself right before
its N-th flush or renaming; then another one resumes it. Printed as JSON: for each N how the first process ended, which
folders were half-written then, which checkpoints were whole, and how the second process ended.
"""

import contextlib
import json
import os
import shutil
import signal
import sys
from pathlib import Path

import torch._dynamo  # noqa: F401  (an optimiser loads it; once for all processes)

import dragoman.api
from dragoman.errors import BundleError
from dragoman.files import check_sealed
from dragoman.training.log import RunLog


def arm(count: int) -> None:
    left = count

    def deadly(real):
        def call(*args, **kwargs):
            nonlocal left
            left -= 1
            if not left:
                os.kill(os.getpid(), signal.SIGKILL)
            return real(*args, **kwargs)

        return call

    for owner, name in ((os, "fsync"), (Path, "rename"), (Path, "replace")):
        setattr(owner, name, deadly(getattr(owner, name)))


def in_a_process(work) -> int:
    child = os.fork()
    if not child:
        try:
            work()
        except BaseException as error:
            print(repr(error), file=sys.stderr, flush=True)
            os._exit(1)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def main() -> None:
    stopped, folder, last, *counts = sys.argv[1:]
    found = {}
    for count in counts:
        run = Path(folder, count)
        shutil.copytree(stopped, run)

        def go_on(run=run) -> None:
            dragoman.api.train(out=run, resume=True, overrides=[f"train.max_steps={last}"])

        def die(count=int(count), go_on=go_on) -> None:
            say = RunLog.say

            def armed_from_now_on(self, text):
                if text.startswith("resuming at step"):
                    arm(count)
                say(self, text)

            RunLog.say = armed_from_now_on
            go_on()

        died = in_a_process(die)
        half = [path.name for path in run.rglob(".*")]
        whole = []
        for path in sorted((run / "checkpoints").glob("step_*")):
            with contextlib.suppress(BundleError):
                check_sealed(path, "checkpoint")
                whole.append(path.name)
        found[count] = {"died": died, "whole": whole, "half": half, "went_on": in_a_process(go_on)}
    print(json.dumps(found))


if __name__ == "__main__":
    main()
