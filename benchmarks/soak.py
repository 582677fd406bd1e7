"""Does memory grow, or do files stay open? 2,000 training steps, and 100,000 translated lines, of a tiny model.

A thread notes the resident memory and the open file descriptors ten times a second. Of each half, training and
translating, the first fifth is warm-up; growth is the median of the last fifth over that of the second.

    python -m benchmarks.soak --requests 10000 [--run RUN] [--seconds 60] [--state before]

measures a server instead: resident memory after so many requests of all kinds, against that after the first full batch;
its slope over the second half; then five overloads of so many seconds each.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.mixed_requests import send_mixed
from benchmarks.record import RESULTS, machine, save
from benchmarks.serving import Server, load, overload

PAGE = os.sysconf("SC_PAGE_SIZE")
SIZES: dict[str, Any] = dict(
    model=dict(d_model=48, d_ff=96, n_heads=2, n_encoder_layers=1, n_decoder_layers=1),
    train=dict(
        batch_tokens=1000, schedule="inverse_sqrt", lr=3e-3, warmup_steps=100, clip_norm=1.0, precision="fp32",
        device="cpu", average=2, ema=0.99, log_every=10,
    ),
)  # fmt: skip


def watched(work: Callable[[], object]) -> dict[str, Any]:
    """Do ``work`` and say how memory and file descriptors went meanwhile."""
    memory: list[int] = []
    descriptors: list[int] = []
    ended = threading.Event()

    def note() -> None:
        while not ended.wait(0.1):
            memory.append(int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * PAGE)
            descriptors.append(sum(1 for _ in Path("/proc/self/fd").iterdir()))

    thread = threading.Thread(target=note, daemon=True)
    thread.start()
    work()
    ended.set()
    thread.join()
    fifth = max(1, len(memory) // 5)
    early, late = (statistics.median(memory[part]) for part in (slice(fifth, 2 * fifth), slice(-fifth, None)))
    return {
        "samples": len(memory),
        "memory_mib": {"early": round(early / 2**20, 1), "late": round(late / 2**20, 1), "most": max(memory) // 2**20},
        "memory_growth_percent": round(100 * (late / early - 1), 2),
        "file_descriptors": {
            "early": statistics.median(descriptors[fifth : 2 * fifth]), "late": statistics.median(descriptors[-fifth:]),
        },
    }  # fmt: skip


def train(folder: Path, steps: int) -> None:
    """Train on the phrasebook, with a validation and a checkpoint every twentieth of the way."""
    import dragoman
    from dragoman.data import phrasebook

    phrasebook.write(20_000, folder / "train.en", folder / "train.de")
    phrasebook.write(50, folder / "valid.en", folder / "valid.de", split="held_out")
    files = {
        name: {"src": str(folder / f"{name}.en"), "tgt": str(folder / f"{name}.de")} for name in ("train", "valid")
    }
    often = max(1, steps // 20)
    mapping = {
        "model": SIZES["model"],
        "data": {**files, "tokenizer": {"vocab_size": 800}},
        "train": {**SIZES["train"], "max_steps": steps, "validate_every": often, "save_every": often},
        "decode": {"beam_size": 1, "max_extra_tokens": 10},
    }
    dragoman.train(dragoman.Config.from_mapping(mapping), out=folder / "run", quiet=True)


def translate(folder: Path, lines: int) -> None:
    """Translate so many lines as ``dragoman translate`` does, greedily."""
    from dragoman.data import phrasebook
    from dragoman.translation.notes import Events
    from dragoman.translation.translator import Translator

    phrasebook.write(min(lines, 20_000), folder / "some.en", folder / "some.de")
    some = (folder / "some.en").read_bytes().split(b"\n")[:-1]
    with (folder / "text.en").open("wb") as file:
        for i in range(lines):
            file.write(some[i % len(some)] + b"\n")
    translator = Translator.load(folder / "run", "cpu")
    with (folder / "text.en").open("rb") as stream:
        found = sum(1 for _ in translator.translate_stream(stream, "text.en", events=Events(warn=print), beam_size=1))
    assert found == lines, f"{lines} lines in, {found} out"


def serve(run: Path, requests: int, seconds: float, *options: str) -> dict[str, Any]:
    """Measure the memory of a server over ``requests`` mixed requests, and over five overloads."""
    from dragoman.data import phrasebook

    texts = [src for src, _ in phrasebook.pairs(500)]
    with tempfile.TemporaryDirectory() as folder:
        server = Server(run, "--glossaries", f"{folder}/glossaries", "--documents", f"{folder}/documents", *options)
        try:
            # a batch on each core that is as large as batches become
            load(server.port, 16, ["\n".join(texts[i : i + 100]) for i in range(0, 400, 25)])
            first = server.rss_mib()
            rss: list[tuple[int, float]] = []
            every = max(1, requests // 100)
            counts = send_mixed(
                server.port, texts, requests,
                lambda n_done: rss.append((n_done, server.rss_mib())) if n_done % every == 0 else None,
            )  # fmt: skip
            last = statistics.median(mib for _, mib in rss[-5:])
            half = [(n_done, mib) for n_done, mib in rss if n_done > requests // 2]
            slope = statistics.linear_regression(*zip(*half, strict=True)).slope * 1000
            long = ["\n".join(texts[i : i + 96]) for i in range(0, 400, 4)]
            capacity = load(server.port, 16, long, seconds=min(10.0, seconds))[0]["sentences_per_s"]
            overloads = [overload(server, long, capacity, seconds) for _ in range(5)]
            threading.Event().wait(15)
            return {
                "requests": requests, "statuses": counts,
                "rss_mib": {
                    "first_full_batch": round(first, 1), "last": round(last, 1),
                    "course": [round(mib, 1) for _, mib in rss[9::10]], "after_15_quiet_s": round(server.rss_mib(), 1),
                },
                "rss_growth_factor": round(last / first, 3),
                "slope_mib_per_1000_requests": round(slope, 3),
                "overload_seconds": seconds,
                "overload_memory_growth_mib": [seen["memory_growth_mib"] for seen in overloads],
                "overload_statuses": [seen["statuses"] for seen in overloads],
            }  # fmt: skip
        finally:
            server.stop()


def save_state(state: str, figures: dict[str, Any], command: str) -> None:
    """Write the figures into ``results/hostile/memory.json`` under ``before`` or ``after``."""
    path = RESULTS / "hostile/memory.json"
    record = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    record |= {"command": command, "machine": machine(), "versions": {"python": platform.python_version()}}
    record |= {"date": datetime.datetime.now(datetime.UTC).date().isoformat(), state: figures}
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")


def main() -> None:
    """Run both halves, each in a process of its own, and record what they say; ``--print`` only prints it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--lines", type=int, default=100_000)
    parser.add_argument("--print", action="store_true", help="print the figures and write nothing")
    parser.add_argument("--half", choices=("train", "translate"), help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--requests", type=int, help="measure a server with so many requests instead")
    parser.add_argument("--seconds", type=float, default=60, help="duration of each of its five overloads")
    parser.add_argument("--run", type=Path, help="run that it serves (default: train a tiny one)")
    parser.add_argument("--state", choices=("before", "after"), default="after", help="column of its record")
    args = parser.parse_args()
    if args.requests:
        with tempfile.TemporaryDirectory() as folder:
            if args.run is None:
                train(Path(folder), 200)
            figures = serve(args.run or Path(folder) / "run", args.requests, args.seconds)
        command = f"python -m benchmarks.soak --requests {args.requests} --seconds {args.seconds:g}"
        print(json.dumps(figures)) if args.print else save_state(args.state, figures, command)
    elif args.half == "train":
        print(json.dumps(watched(lambda: train(args.folder, args.steps))))
    elif args.half == "translate":
        print(json.dumps(watched(lambda: translate(args.folder, args.lines))))
    else:
        figures = {"steps": args.steps, "lines": args.lines}
        with tempfile.TemporaryDirectory() as folder:
            for half in ("train", "translate"):
                command = [sys.executable, "-m", "benchmarks.soak", "--half", half, "--folder", folder]
                command += ["--steps", str(args.steps), "--lines", str(args.lines)]
                done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
                figures[half] = json.loads(done.stdout.splitlines()[-1])
        if args.print:
            print(json.dumps(figures))
        else:
            save("soak", figures, "python -m benchmarks.soak")


if __name__ == "__main__":
    main()
