"""BLEU of trainings on clean, on damaged and on mended text: does ``dragoman doctor --write`` give back the quality?

    python -m benchmarks.doctor_bleu --data DATA [--kind KIND ...] [--seeds 1 2 3] [--damaged] [--at-once 2]

The text is Multi30k; validation and test set are its own and are not damaged. All trainings have the same settings and
the same number of updates. The target is a BLEU of the mended text within 0.5 of that of the clean text; trainings on
clean text with several seeds say how much of a difference is chance. Mended text that equals the clean text to the last
byte is not trained on again. What the record has already, of the same inputs, text and machine, is not measured again,
so that a run that was stopped goes on and another one can add kinds and seeds.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Lock
from typing import Any

from benchmarks.damaged import KINDS, Damaged, clean_corpus, damage, lines_of
from benchmarks.record import RESULTS, machine, save
from dragoman.files import sha256

NAME = "newcomer/doctor-bleu"

SETTINGS = [
    "model.preset=tiny", "model.d_ff=512", "model.n_encoder_layers=2", "model.n_decoder_layers=2", "model.norm=pre",
    "data.tokenizer.vocab_size=4000", "train.batch_tokens=512", "train.lr=0.003", "train.schedule=cosine",
    "train.warmup_steps=300", "train.ema=0.998",
]  # fmt: skip
"""Those that ``train --minutes 3`` chooses for this text on two cores, written out: the clock must choose nothing."""


def main() -> None:
    """Mend each kind of damage, and train on what is left."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder with the corpora")
    parser.add_argument("--corpus", choices=("multi30k-en-cs", "multi30k-fr-de"), default="multi30k-fr-de")
    parser.add_argument("--kind", choices=KINDS, nargs="*", default=list(KINDS))
    parser.add_argument("--pairs", type=int, default=19_000)
    parser.add_argument("--steps", type=int, default=3000)
    parser.add_argument("--seed", type=int, default=1, help="of the damage")
    parser.add_argument("--seeds", type=int, nargs="*", default=[1], help="of the trainings")
    parser.add_argument("--damaged", action="store_true", help="train on the damaged text too")
    parser.add_argument("--settings", nargs="*", default=SETTINGS, help="settings of every training")
    parser.add_argument("--at-once", type=int, default=1, help="trainings side by side, which share the cores")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        measure(args, Path(name))


def measure(args: argparse.Namespace, folder: Path) -> None:
    """Add to the record what it lacks."""
    corpus = clean_corpus(args.data, args.corpus, args.seed, args.pairs)
    inputs = {"corpus": args.corpus, "pairs": len(corpus.src), "steps": args.steps, "seed": args.seed,
              "settings": args.settings, "threads of a training": threads(args)}  # fmt: skip
    figures = recorded(inputs)
    clean = Damaged(corpus, "none", corpus.src, corpus.tgt).write(folder / "clean")
    lock = Lock()
    jobs: list[tuple[dict[str, Any], Sequence[Path], int]] = [
        (figures.setdefault("clean", {}), clean, seed) for seed in args.seeds
    ]
    for kind in args.kind:
        damaged = damage(corpus, kind, args.seed)
        if damaged is None:
            continue
        files = damaged.write(folder / kind)
        mended = mend(damaged, files)
        text, before = text_figures(damaged, mended), figures.get(kind, {})
        figures[kind] = text | (before if before.get("sha256") == text["sha256"] else {})
        if args.damaged:
            jobs += [(figures[kind].setdefault("damaged", {}), files, seed) for seed in args.seeds]
        if not figures[kind]["equal to the clean text"]:
            jobs += [(figures[kind].setdefault("mended", {}), mended, seed) for seed in args.seeds]

    def train(job: tuple[dict[str, Any], Sequence[Path], int]) -> None:
        into, files, seed = job
        if str(seed) not in into:
            result = bleu(files, folder / f"{files[0].parent.name}-{files[0].stem}-{seed}", args, seed)
            with lock:
                into[str(seed)] = result
                save(NAME, figures, "python -m benchmarks.doctor_bleu --data DATA")

    with ThreadPoolExecutor(args.at_once) as pool:
        list(pool.map(train, jobs))
    save(NAME, figures, "python -m benchmarks.doctor_bleu --data DATA")


def recorded(inputs: dict[str, Any]) -> dict[str, Any]:
    """Return the figures of the record if they are of the same inputs, otherwise none."""
    path = RESULTS / f"{NAME}.json"
    record: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    same = record.get("machine") == machine() and record["figures"]["inputs"] == inputs
    return dict(record["figures"]) if same else {"inputs": inputs}


def mend(damaged: Damaged, files: Sequence[Path]) -> list[Path]:
    """Write what ``doctor --write`` makes of the files, beside them."""
    outs = [file.with_name(f"mended{file.suffix}") for file in files]
    dragoman("doctor", *files, "--write", *outs, "--quiet", threads=os.cpu_count() or 1)
    return outs


def text_figures(damaged: Damaged, mended: Sequence[Path]) -> dict[str, Any]:
    """Return the sums of the mended text, and how it differs from the clean one."""
    pairs, clean = list(zip(*map(lines_of, mended), strict=True)), damaged.corpus.pairs
    return {
        "sha256": [sha256(path) for path in mended],
        "pairs": len(pairs),
        "clean pairs lost": (Counter(clean) - Counter(pairs)).total(),
        "other pairs": (Counter(pairs) - Counter(clean)).total(),
        "equal to the clean text": pairs == clean,
    }


def bleu(files: Sequence[Path], out: Path, args: argparse.Namespace, seed: int) -> float | str:
    """Train on two files, and return the BLEU of the test set, or why the training refuses them."""
    folder, (src, tgt) = args.data / "multi30k", [file.suffix for file in files]
    limits = [f"train.max_steps={args.steps}", f"train.seed={seed}", f"train.validate_every={args.steps // 2}"]
    settings = [part for name in (*limits, *args.settings) for part in ("--set", name)]
    valid = ["--valid", folder / f"val{src}", "--valid", folder / f"val{tgt}"]
    test = ["--src", folder / f"test_2016_flickr{src}", "--ref", folder / f"test_2016_flickr{tgt}"]
    try:  # a training says that a file is in another encoding, or that the files differ in length
        dragoman("train", *files, *valid, "--out", out, "--quiet", *settings, threads=threads(args))
    except subprocess.CalledProcessError as error:
        if error.returncode != 2:  # a kill, or a lack of memory
            raise
        return str(error.stderr.strip().split("\n")[-1]).replace(f"{files[0].parent}/", "")
    scores = json.loads(dragoman("evaluate", out, *test, "--json", threads=threads(args)))["scores"]
    return float(next(score["value"] for score in scores if score["name"] == "BLEU"))


def threads(args: argparse.Namespace) -> int:
    """Return the threads that each training has."""
    return max(1, (os.cpu_count() or 1) // args.at_once)


def dragoman(*args: Any, threads: int) -> str:
    """Run the command line, and return what it prints."""
    command = [sys.executable, "-m", "dragoman", *map(str, args)]
    environment = {**os.environ, "OMP_NUM_THREADS": str(threads)}
    return subprocess.run(command, check=True, capture_output=True, text=True, env=environment).stdout


if __name__ == "__main__":
    main()
