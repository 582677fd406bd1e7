"""Kill ``dragoman translate RUN FILE --out OUT`` again and again, and print what came of it.

    python kill_translations.py RUN FILE OUT KILLS

Half of the kills come at a random moment, the others right before the n-th flush, the renaming, or the removal of the
journal. Each next process goes on with what the last one left; when one finishes, its file is kept under a number and
the next begins anew. The last process of all goes on after a kill, and what it says goes to OUT.said. Printed as JSON:
kills, how often OUT was there too early, how many lines were taken over in all, and the numbered files.
"""

import json
import os
import random
import signal
import sys
import time
from pathlib import Path

import dragoman.translation.translator  # noqa: F401  (imports torch, once for all processes)
from dragoman.cli import run

POINTS = [(os, "fsync"), (os, "fsync"), (Path, "replace"), (os, "fsync"), (Path, "unlink")]


def start(arguments: list[str], point: tuple | None = None, count: int = 1, said: str | None = None) -> int:
    child = os.fork()
    if not child:
        left = count
        if said:
            os.dup2(os.open(said, os.O_WRONLY | os.O_CREAT), 2)

        def deadly(real):
            def call(*args, **kwargs):
                nonlocal left
                left -= 1
                if not left:
                    os.kill(os.getpid(), signal.SIGKILL)
                return real(*args, **kwargs)

            return call

        if point:
            setattr(*point, deadly(getattr(*point)))
        os._exit(run(arguments))
    return child


def main() -> None:
    model, src, out, kills = sys.argv[1:]
    chance = random.Random(3)
    found = {"kills": 0, "at_points": 0, "too_early": 0, "taken_over": 0, "files": []}
    while found["kills"] < int(kills):
        at_point = found["kills"] % 2 == 1
        arguments = ["translate", model, src, "--beam-size", "1", "--no-guard", "--out", out]
        point = POINTS[found["at_points"] % len(POINTS)]
        if at_point:
            child = start(arguments, point, chance.randint(1, 9) if point[0] is os else 1)
        else:
            child = start(arguments)
        if not at_point:
            time.sleep(chance.uniform(0.05, 1.5))
            os.kill(child, signal.SIGKILL)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        if status == 0:
            keep(Path(out), found)
            continue
        assert status == -signal.SIGKILL, status
        found["kills"] += 1
        found["at_points"] += at_point
        if Path(out).exists() and Path(f"{out}.partial").exists():
            found["too_early"] += 1
        journal = Path(f"{out}.journal")
        records = journal.read_bytes().split(b"\n")[1:-1] if journal.exists() else []
        found["taken_over"] += json.loads(records[-1])["lines"] if records else 0
    # The last kill may have left a finished file, whose next process renames nothing.
    while os.waitstatus_to_exitcode(os.waitpid(start(arguments, (Path, "replace")), 0)[1]) == 0:
        keep(Path(out), found)
    found["last_from"] = json.loads(Path(f"{out}.journal").read_bytes().split(b"\n")[-2])["lines"]
    assert os.waitstatus_to_exitcode(os.waitpid(start(arguments, said=f"{out}.said"), 0)[1]) == 0
    keep(Path(out), found)
    print(json.dumps(found))


def keep(out: Path, found: dict) -> None:
    path = out.with_name(f"{len(found['files'])}")
    out.rename(path)
    found["files"].append(str(path))


main()
