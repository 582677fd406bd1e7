"""The real training loop against the bare step: `dragoman train` with its batching, logging, clock; and memory.

In each round `dragoman train` runs some hundred updates, and then the bare step makes the same updates on the same
batches, read from the run's own store. Validation and checkpoints come after the last update and are left out.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from typing import Any

import yaml

from benchmarks.harness.arguments import command
from benchmarks.harness.command import SAMPLE_S, growth_percent, watched
from benchmarks.harness.corpus import Corpus, captions, write_batches
from benchmarks.harness.peer import System
from benchmarks.harness.rounds import Figures, alternate, once, ratios, summary
from benchmarks.harness.runs import dragoman, events
from benchmarks.record import save
from benchmarks.training import sizes_of
from dragoman.data.batching import BatchStream
from dragoman.data.store import Store

LOOP, BARE = "dragoman train", "bare step"


def configuration(folder: Path, corpus: Corpus, args: argparse.Namespace) -> Path:
    """A run of ``args.updates`` updates that validates, on a few pairs, and saves only at the end."""
    for name, pairs in (("train", corpus.train), ("valid", corpus.test[:16])):
        for side, end in ((0, "en"), (1, "de")):
            (folder / f"{name}.{end}").write_text("".join(pair[side] + "\n" for pair in pairs), encoding="utf-8")
    files = {
        name: {"src": str(folder / f"{name}.en"), "tgt": str(folder / f"{name}.de")} for name in ("train", "valid")
    }
    config = {
        "model": {**sizes_of(args.preset), "dropout": 0.1},
        "data": {**files, "tokenizer": {"vocab_size": args.vocab_size}},
        "train": {
            "max_steps": args.updates, "batch_tokens": args.batch_tokens, "precision": args.precision, "device": "cpu",
            "clip_norm": 1.0, "average": 0, "log_every": args.updates // 10, "validate_every": 10**9,
            "save_every": 10**9,
        },
    }  # fmt: skip
    path = folder / "config.yaml"
    path.write_text(yaml.safe_dump(config), encoding="utf-8")
    return path


def train(config: Path, run: Path) -> Figures:
    """Run the command; the speed between its first report and its last."""
    command = dragoman("train", config, "--out", run, "--quiet")
    done = watched(command, run.with_suffix(".txt"))
    first, *_, last = [event for event in events(run) if event["event"] == "train"]
    return {
        "tokens_per_s": (last["tokens"] - first["tokens"]) / (last["seconds"] - first["seconds"]),
        "peak_mib": done.peak_mib,
        # of training alone, which is the end of it but for a second: reading the text needs less memory, or more
        "memory_growth_percent": growth_percent(done.samples_mib[-round(last["seconds"] / SAMPLE_S) :]),
    }


def main() -> None:
    """Let the two take turns and record."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="a folder with multi30k/ (without it: the embedded corpus)")
    parser.add_argument("--preset", default="small")
    parser.add_argument("--precision", default="auto", help="fp32, bf16, or auto: as training chooses")
    parser.add_argument("--updates", type=int, default=200, help="a multiple of 10")
    parser.add_argument("--batch-tokens", type=int, default=4096)
    parser.add_argument("--vocab-size", type=int, default=8000)
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    corpus = captions(args.data)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        config = configuration(folder, corpus, args)
        runs = iter(folder / f"run{i}" for i in range(args.rounds + 1))
        found_store = next(runs)
        short = dragoman("train", config, "--out", found_store, "--quiet")
        watched([*short, "--set", "train.max_steps=1", "--set", "train.log_every=1"], folder / "prepared.txt")
        store = Store.open(found_store / "store/train")
        chosen = yaml.safe_load((found_store / "config.yaml").read_text(encoding="utf-8"))["train"]
        with BatchStream(store, args.batch_tokens, chosen["seed"], ahead=0) as stream:
            path = write_batches([next(stream) for _ in range(args.updates)], folder / "batches.npz")
        settings: dict[str, Any] = dict(
            batches=str(path), sizes=sizes_of(args.preset), vocab_size=store.vocab_sizes[1],
            precision=chosen["precision"],
        )  # fmt: skip
        systems = [System(LOOP, "dragoman", "", {}), System(BARE, "dragoman", "ours_train.py", settings)]

        def take(system: System) -> Figures:
            return train(config, next(runs)) if system.name == LOOP else once(system, warm=args.updates // 10)

        found = alternate(systems, args.rounds, take, "tokens_per_s")
    figures = {
        "what": f"{args.preset}, {chosen['precision']}, {args.updates} updates of {args.batch_tokens} tokens",
        "corpus": corpus.name,
        "systems": summary(found, ("tokens_per_s", "peak_mib", "memory_growth_percent")),
        "ratios": ratios(found, "tokens_per_s", [LOOP], [BARE]),
    }
    save("loop", figures, command("loop", parser, args))


if __name__ == "__main__":
    main()
