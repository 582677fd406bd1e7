"""Does memory grow, or do files stay open? 2,000 training steps, and 100,000 translated lines, of a tiny model.

Both are commands, as a user runs them; their memory and open file descriptors are noted five times a second. Of each
half, training and translating, the first fifth is warm-up; growth is the median of the last fifth over that of the
second.

    python -m benchmarks.soak --requests 10000 [--run RUN] [--seconds 60] [--state before]

measures a server instead: resident memory after so many requests of all kinds, against that after the first full batch;
its slope over the second half; then five overloads of so many seconds each.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import json
import platform
import statistics
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.harness.peer import descendants, memory_kib
from benchmarks.harness.runs import dragoman
from benchmarks.mixed_requests import send_mixed
from benchmarks.record import RESULTS, machine, save
from benchmarks.serving import Server, load, overload

SIZES: dict[str, Any] = dict(
    model=dict(d_model=48, d_ff=96, n_heads=2, n_encoder_layers=1, n_decoder_layers=1),
    train=dict(
        batch_tokens=1000, schedule="inverse_sqrt", lr=3e-3, warmup_steps=100, clip_norm=1.0, precision="fp32",
        device="cpu", average=2, ema=0.99, log_every=10,
    ),
)  # fmt: skip


def watched(command: list[str]) -> dict[str, Any]:
    """Run a command and say how its memory and its file descriptors went, seen from outside.

    A thread within the process would change what it measures: a search forks its workers only in a process without
    other threads. Memory is that of the command and of its children; a page that they share counts once (PSS).
    """
    memory: list[int] = []
    descriptors: list[int] = []
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as running:
        while running.poll() is None:
            with contextlib.suppress(OSError):  # it has ended meanwhile
                descriptors.append(sum(1 for _ in Path(f"/proc/{running.pid}/fd").iterdir()))
                memory.append(1024 * sum(memory_kib(pid, "Pss") for pid in (running.pid, *descendants(running.pid))))
            time.sleep(0.2)
    if running.returncode:
        raise SystemExit(f"{' '.join(command)}: exit status {running.returncode}")
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


def train(folder: Path, steps: int) -> dict[str, Any]:
    """Train on the phrasebook, with a validation and a checkpoint every twentieth of the way."""
    from dragoman.data import phrasebook

    phrasebook.write(20_000, folder / "train.en", folder / "train.de")
    phrasebook.write(50, folder / "valid.en", folder / "valid.de", split="held_out")
    files = {
        name: {"src": str(folder / f"{name}.en"), "tgt": str(folder / f"{name}.de")} for name in ("train", "valid")
    }
    often = max(1, steps // 20)
    config = {
        "model": SIZES["model"],
        "data": {**files, "tokenizer": {"vocab_size": 800}},
        "train": {**SIZES["train"], "max_steps": steps, "validate_every": often, "save_every": often},
        "decode": {"beam_size": 1, "max_extra_tokens": 10},
    }
    (folder / "config.yaml").write_text(json.dumps(config), encoding="utf-8")  # JSON is YAML
    return watched(dragoman("train", folder / "config.yaml", "--out", folder / "run", "--quiet"))


def translate(folder: Path, lines: int) -> dict[str, Any]:
    """Translate so many lines, greedily."""
    from dragoman.data import phrasebook

    text, out = folder / "text.en", folder / "text.de"
    phrasebook.write(min(lines, 20_000), folder / "some.en", folder / "some.de")
    some = (folder / "some.en").read_bytes().split(b"\n")[:-1]
    with text.open("wb") as file:
        for i in range(lines):
            file.write(some[i % len(some)] + b"\n")
    seen = watched(dragoman("translate", folder / "run", text, "--out", out, "--beam-size", "1"))
    found = out.read_bytes().count(b"\n")
    assert found == lines, f"{lines} lines in, {found} out"
    return seen


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
            time.sleep(15)
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
    """Run both halves and record what they say; ``--print`` only prints it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--lines", type=int, default=100_000)
    parser.add_argument("--print", action="store_true", help="print the figures and write nothing")
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
    else:
        figures = {"steps": args.steps, "lines": args.lines}
        with tempfile.TemporaryDirectory() as folder:
            figures["train"] = train(Path(folder), args.steps)
            figures["translate"] = translate(Path(folder), args.lines)
        if args.print:
            print(json.dumps(figures))
        else:
            save("soak", figures, "python -m benchmarks.soak")


if __name__ == "__main__":
    main()
