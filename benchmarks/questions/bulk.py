"""A folder translated by two Ray workers against one process, in turns; then once more with a worker killed.

One process has one core, as each worker has; beside it stands what `dragoman translate` does by itself on this machine,
a batch on each core. Times are of whole commands, so Ray's start is in them; how long that is stands apart. After the
last round one of two workers is killed while it works, and the lines that are lost, repeated or different are counted.
"""

from __future__ import annotations

import argparse
import itertools
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import psutil

from benchmarks.harness.arguments import command
from benchmarks.harness.command import watched
from benchmarks.harness.peer import System
from benchmarks.harness.rounds import Figures, alternate, ratios, summary
from benchmarks.harness.runs import dragoman
from benchmarks.record import save
from dragoman.data.corpus import read_lines
from dragoman.translation.resumable import lines_done

RAY, ONE, BOTH = "Ray, two workers of a core", "one process, one core", "one process, two cores"

WORKER = "ray::MapWorker(Map(Worker))"


def write_shards(lines: Sequence[str], n_shards: int, folder: Path) -> list[Path]:
    """Cut lines into files of about the same number."""
    folder.mkdir()
    cuts = [len(lines) * i // n_shards for i in range(n_shards + 1)]
    paths = [folder / f"part-{i:05}.txt" for i in range(n_shards)]
    for path, (start, end) in zip(paths, itertools.pairwise(cuts), strict=True):
        path.write_text("".join(f"{line}\n" for line in lines[start:end]), encoding="utf-8")
    return paths


def together(folder: Path, shards: Sequence[Path]) -> list[str]:
    """All lines of a translated folder, in order."""
    return [line for shard in shards for line in (folder / shard.name).read_text("utf-8").split("\n")[:-1]]


def kill_a_worker(running: Sequence[str], shards: Sequence[Path], out: Path, log: Path) -> int:
    """Run a command and kill one of its workers when the first lines are kept; returns how many these are."""
    with log.open("wb") as file:
        process = subprocess.Popen(running, stdout=file, stderr=subprocess.STDOUT)
        kept = 0
        while process.poll() is None and not kept:
            time.sleep(0.05)
            whole = together(out, [shard for shard in shards if (out / shard.name).is_file()])
            kept = len(whole) + sum(lines_done(out / shard.name) for shard in shards)
        victims = [one.pid for one in psutil.process_iter(["cmdline"]) if WORKER in " ".join(one.info["cmdline"] or ())]
        if not victims:
            raise RuntimeError(f"no worker was alive: {log.read_text('utf-8')[-2000:]}")
        os.kill(victims[0], signal.SIGKILL)
        if process.wait():
            raise RuntimeError(log.read_text("utf-8")[-2000:])
    return kept


def main() -> None:
    """Let the three take turns, kill a worker, and record."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", type=Path, required=True, help="a trained run")
    parser.add_argument("--src", type=Path, required=True, help="text to take the lines from, again and again if short")
    parser.add_argument("--lines", type=int, default=100_000)
    parser.add_argument("--shards", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--beam-size", type=int, default=1)
    args = parser.parse_args()
    lines = list(itertools.islice(itertools.cycle(list(read_lines(args.src))), args.lines))
    search = ["--beam-size", str(args.beam_size), "--device", "cpu"]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        shards = write_shards(lines, args.shards, folder / "in")
        whole = folder / "whole.txt"
        whole.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        numbers = itertools.count()

        def on_ray(out: Path) -> list[str]:
            return dragoman(
                "translate", args.run, folder / "in", "--ray", "local", "--actors", "2", "--out", out, *search
            )

        def one_process(workers: int) -> list[str]:
            return dragoman(
                "translate", args.run, whole, "--threads", str(workers), "--out", folder / f"one{next(numbers)}",
                *search,
            )  # fmt: skip

        def take(system: System) -> Figures:
            workers = 2 if system.name == BOTH else 1
            running = on_ray(folder / f"ray{next(numbers)}") if system.name == RAY else one_process(workers)
            done = watched(running, folder / "log.txt", threads=workers)
            return {"lines_per_s": args.lines / done.seconds, "seconds": done.seconds, "peak_mib": done.peak_mib}

        systems = [System(each, "dragoman", "", {}) for each in (RAY, ONE, BOTH)]
        found = alternate(systems, args.rounds, take, "lines_per_s")
        kept = kill_a_worker(on_ray(folder / "killed"), shards, folder / "killed", folder / "log.txt")
        plain = next(folder.glob("one*")).read_text("utf-8").split("\n")[:-1]
        killed, calm = together(folder / "killed", shards), together(next(folder.glob("ray*")), shards)
        said = (folder / "log.txt").read_text("utf-8").strip().split("\n")[-1].partition(": ")[2]
        started = time.perf_counter()
        one_line = write_shards(lines[:1], 1, folder / "short")[0]
        short = dragoman("translate", args.run, one_line, "--ray", "local", "--out", folder / "started", *search)
        watched(short, folder / "log.txt", threads=1)
        start_s = time.perf_counter() - started
    figures: dict[str, Any] = {
        "what": f"{args.lines:,} lines in {args.shards} shards, beam {args.beam_size}; whole commands",
        "systems": summary(found, ("lines_per_s", "seconds")),
        "ratios": ratios(found, "lines_per_s", [RAY], [ONE, BOTH]),
        "seconds_of_ray_for_one_line": round(start_s, 1),
        "a_worker_killed": {
            "lines_kept_before": kept,
            "lines_lost_or_repeated": len(killed) - args.lines,
            "lines_that_differ_from_an_undisturbed_run": sum(a != b for a, b in zip(killed, calm, strict=True)),
            "lines_that_differ_from_one_process": sum(a != b for a, b in zip(killed, plain, strict=True)),
            "report": said,
        },
    }  # fmt: skip
    save("bulk", figures, command("bulk", parser, args), ("torch", "numpy", "ray"))


if __name__ == "__main__":
    main()
