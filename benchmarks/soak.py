"""Does memory grow, or do files stay open? 2,000 training steps, and 100,000 translated lines, of a tiny model.

A thread notes the resident memory and the open file descriptors ten times a second. Of each half, training and
translating, the first fifth is warm-up; growth is the median of the last fifth over that of the second.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.record import save

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


def main() -> None:
    """Run both halves, each in a process of its own, and record what they say; ``--print`` only prints it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--lines", type=int, default=100_000)
    parser.add_argument("--print", action="store_true", help="print the figures and write nothing")
    parser.add_argument("--half", choices=("train", "translate"), help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.half == "train":
        print(json.dumps(watched(lambda: train(args.folder, args.steps))))
    elif args.half == "translate":
        print(json.dumps(watched(lambda: translate(args.folder, args.lines))))
    else:
        figures: dict[str, Any] = {"steps": args.steps, "lines": args.lines}
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
