"""BLEU of trainings on clean, on damaged and on mended text: does ``dragoman doctor --write`` give back the quality?

    python -m benchmarks.doctor_bleu --data DATA [--kind KIND ...] [--pairs 29000] [--steps 6000] [--minutes N]

The text is Multi30k; validation and test set are its own and are not damaged. Each training has the same settings, seed
and number of updates. The target is a BLEU of the mended text within 0.5 of that of the clean text; the second training
on clean text, with another seed, says how much of a difference is chance.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.damaged import KINDS, Clean, Damaged, clean_corpus, damage
from benchmarks.record import save


def dragoman(*args: Any) -> str:
    """Run the command line, and return what it prints."""
    command = [sys.executable, "-m", "dragoman", *map(str, args)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def bleu(files: Sequence[Path], out: Path, args: argparse.Namespace, seed: int = 1) -> float:
    """Train on two files, and return the BLEU of the test set."""
    folder, (src, tgt) = args.data / "multi30k", [file.suffix for file in files]
    limits = [f"train.max_steps={args.steps}", f"train.seed={seed}", f"train.validate_every={args.steps // 2}"]
    settings = [part for name in (*limits, *args.settings) for part in ("--set", name)]
    valid = ["--valid", folder / f"val{src}", "--valid", folder / f"val{tgt}"]
    dragoman("train", *files, *valid, "--out", out, "--quiet", *settings)
    test = ["--src", folder / f"test_2016_flickr{src}", "--ref", folder / f"test_2016_flickr{tgt}"]
    scores = json.loads(dragoman("evaluate", out, *test, "--json"))["scores"]
    return float(next(score["value"] for score in scores if score["name"] == "BLEU"))


def main() -> None:
    """Train on the clean corpus, and on each kind of damage before and after it is mended."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder with the corpora")
    parser.add_argument("--corpus", choices=("multi30k-en-cs", "multi30k-fr-de"), default="multi30k-fr-de")
    parser.add_argument("--kind", choices=KINDS, nargs="*", default=list(KINDS))
    parser.add_argument("--pairs", type=int, default=19_000)
    parser.add_argument("--steps", type=int, default=6000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--settings", nargs="*", default=["model.preset=tiny"], help="settings of every training")
    args = parser.parse_args()
    corpus = clean_corpus(args.data, args.corpus, args.seed, args.pairs)
    with tempfile.TemporaryDirectory() as name:
        figures = trained(corpus, Path(name), args)
    figures["inputs"] = {"corpus": args.corpus, "pairs": len(corpus.src), "steps": args.steps, "seed": args.seed,
                         "settings": args.settings}  # fmt: skip
    save("newcomer/doctor-bleu", figures, "python -m benchmarks.doctor_bleu --data DATA")


def trained(corpus: Clean, folder: Path, args: argparse.Namespace) -> dict[str, Any]:
    """Return BLEU by the text that was trained on."""
    clean = Damaged(corpus, "none", corpus.src, corpus.tgt).write(folder / "clean")
    figures: dict[str, Any] = {"clean": [bleu(clean, folder / f"run-{seed}", args, seed) for seed in (1, 2)]}
    print(json.dumps(figures), flush=True)
    for kind in args.kind:
        damaged = damage(corpus, kind, args.seed)
        if damaged is None:
            continue
        files = damaged.write(folder / kind)
        outs = folder / kind / f"clean{files[0].suffix}", folder / kind / f"clean{files[1].suffix}"
        dragoman("doctor", *files, "--write", *outs, "--quiet")
        figures[kind] = {"mended": bleu(outs, folder / f"run-{kind}-mended", args)}
        try:
            figures[kind]["damaged"] = bleu(files, folder / f"run-{kind}-damaged", args)
        except subprocess.CalledProcessError as error:  # such as files of unequal length
            figures[kind]["damaged"] = error.stderr.strip().split("\n")[-1]
        print(kind, json.dumps(figures[kind]), flush=True)
    return figures


if __name__ == "__main__":
    main()
