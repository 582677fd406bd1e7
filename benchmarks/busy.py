"""Training beside other programs: tokens per second with each fixed number of threads, and as training chooses.

    python -m benchmarks.busy [--data DATA] [--preset tiny] [--others 0 1 4 10] [--rounds 3] [--seconds 20]

The other programs are processes that compute all the time, each in a group of its own, as another user's are. Each
turn resumes a copy of the same run for some seconds; its first report is left out. Ways take turns within each round.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from benchmarks.harness.arguments import command
from benchmarks.harness.command import watched
from benchmarks.harness.corpus import captions
from benchmarks.harness.rounds import say, turns
from benchmarks.harness.runs import dragoman, events
from benchmarks.loop import configuration
from benchmarks.record import save

CHOSEN = "as training chooses"


@contextlib.contextmanager
def other_programs(count: int, share: float) -> Iterator[None]:
    """Run programs that compute for a share of the time, in slices of 50 ms."""
    body = (
        "import time\n"
        f"while True:\n until = time.process_time() + {0.05 * share}\n"
        " while time.process_time() < until: pass\n"
        f" time.sleep({0.05 * (1 - share)})"
    )
    programs = [subprocess.Popen([sys.executable, "-c", body], start_new_session=True) for _ in range(count)]
    try:
        yield
    finally:
        for program in programs:
            program.kill()
            program.wait()


def speed(prepared: Path, run: Path, threads: int | None, seconds: float) -> dict[str, Any]:
    """Resume a copy of a run for some seconds; return its tokens per second, and its last number of threads."""
    shutil.copytree(prepared, run)
    settings = ["train.max_steps=1000000", f"train.max_minutes={seconds / 60}", "train.log_every=5"]
    settings += [] if threads is None else [f"train.threads={threads}"]
    options = [part for setting in settings for part in ("--set", setting)]
    env = {name: value for name, value in os.environ.items() if name != "OMP_NUM_THREADS"}  # which would fix the number
    subprocess.run(dragoman("train", "--out", run, "--resume", "--quiet", *options), check=True, env=env)
    log = [event for event in events(run) if event["step"] > 1]
    first, *_, last = [event for event in log if event["event"] == "train"]
    changes = [event["threads"] for event in log if event["event"] == "threads"]
    shutil.rmtree(run)
    tokens, took = last["tokens"] - first["tokens"], last["seconds"] - first["seconds"]
    return {"tokens_per_s": tokens / took, "threads": changes[-1] if changes else threads or os.cpu_count()}


def main() -> None:
    """Let the ways take turns beside each number of other programs, and record."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="a folder with multi30k/ (without it: the embedded corpus)")
    parser.add_argument("--preset", default="tiny")
    parser.add_argument("--precision", default="auto", help="fp32, bf16, or auto: as training chooses")
    parser.add_argument("--others", type=int, nargs="+", default=[0, 1, 4, 10])
    parser.add_argument("--share", type=float, default=1.0, help="share of the time in which each of them computes")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=20)
    args = parser.parse_args()
    corpus = captions(args.data)
    cores = os.cpu_count() or 1
    ways: dict[str, int | None] = {f"{n} threads": n for n in sorted({1, cores // 2 or 1, cores})} | {CHOSEN: None}
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        sizes = argparse.Namespace(preset=args.preset, vocab_size=4000, updates=10, batch_tokens=2048,
                                   precision=args.precision)  # fmt: skip
        config = configuration(folder, corpus, sizes)
        prepared = folder / "prepared"
        train = dragoman("train", config, "--out", prepared, "--quiet", "--set", "train.max_steps=1")
        watched([*train, "--set", "train.log_every=1"], folder / "prepared.txt")
        precision = yaml.safe_load((prepared / "config.yaml").read_text(encoding="utf-8"))["train"]["precision"]
        for others in args.others:
            speeds: dict[str, list[float]] = {way: [] for way in ways}
            threads: list[int] = []
            with other_programs(others, args.share):
                for round_, way in turns(list(ways), args.rounds):
                    figures = speed(prepared, folder / "run", ways[way], args.seconds)
                    speeds[way].append(figures["tokens_per_s"])
                    threads += [figures["threads"]] if way == CHOSEN else []
                    say(f"{others} others, round {round_ + 1}: {way} {figures['tokens_per_s']:,.0f} tokens/s")
            medians = {way: statistics.median(values) for way, values in speeds.items()}
            best = max((way for way in ways if way != CHOSEN), key=lambda way: medians[way])
            rounds = zip(speeds[CHOSEN], speeds[best], strict=True)
            found[str(others)] = {
                "tokens_per_s": {way: round(value) for way, value in medians.items()},
                "best_fixed": best,
                "chosen_threads": threads,
                "chosen_to_best_fixed": round(statistics.median(chosen / fixed for chosen, fixed in rounds), 3),
            }
            say(str(found[str(others)]))
    name = "busy" if args.share == 1 else f"busy-{args.share:g}"
    figures = {
        "what": f"{args.preset}, {precision}, batches of 2,048 tokens, {args.rounds} rounds of {args.seconds:g} s",
        "corpus": corpus.name, "share_of_the_time": args.share, "others": found,
    }  # fmt: skip
    save(name, figures, command("busy", parser, args))


if __name__ == "__main__":
    main()
