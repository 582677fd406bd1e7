"""Quality on real text by the command line alone: train, then evaluate on the test set; minutes and scores.

python -m benchmarks.quality multi30k --data DATA     English-German captions, configs/multi30k-20min.yaml
python -m benchmarks.quality tatoeba --data DATA      English-German sentences, from the two files alone
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import yaml

from benchmarks.record import save

ROOT = Path(__file__).parent.parent


def recipe(name: str, data: Path, minutes: float | None) -> tuple[list[str], Path, Path]:
    """The arguments of ``dragoman train``, and the test set."""
    limit = [] if minutes is None else ["--set", f"train.max_minutes={minutes}"]
    if name == "multi30k":
        corpus = data / "multi30k"
        files = ["--src", "train.en", "--tgt", "train.de", "--valid-src", "val.en", "--valid-tgt", "val.de"]
        files = [part if part.startswith("--") else str(corpus / part) for part in files]
        config = str(ROOT / "configs/multi30k-20min.yaml")
        return [config, *files, *limit], corpus / "test_2016_flickr.en", corpus / "test_2016_flickr.de"
    corpus = data / "tatoeba-en-de"
    files = ["--src", str(corpus / "train.en"), "--tgt", str(corpus / "train.de")]
    return [*files, *limit], corpus / "dev.en", corpus / "dev.de"


def main() -> None:
    """Train in ``--out``, evaluate, record."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", choices=("multi30k", "tatoeba"))
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True, help="a run folder that does not exist yet")
    parser.add_argument("--minutes", type=float, help="instead of the recipe's limit")
    args = parser.parse_args()
    dragoman = str(Path(sys.executable).with_name("dragoman"))
    arguments, src, ref = recipe(args.name, args.data, args.minutes)
    started = time.perf_counter()
    subprocess.run([dragoman, "train", *arguments, "--out", str(args.out)], check=True)
    wall = time.perf_counter() - started
    evaluate = [dragoman, "evaluate", str(args.out), "--src", str(src), "--ref", str(ref), "--json", "--old-style"]
    test: dict[str, Any] = json.loads(subprocess.run(evaluate, check=True, capture_output=True, text=True).stdout)
    log = [json.loads(line) for line in (args.out / "log.jsonl").read_text(encoding="utf-8").split("\n") if line]
    end = next(event for event in reversed(log) if event["event"] == "end")
    kept = next(event for event in reversed(log) if event["event"] == "bundle")
    config = yaml.safe_load((args.out / "config.yaml").read_text(encoding="utf-8"))
    config["data"].pop("train"), config["data"].pop("valid")
    curve = ("step", "perplexity", "bleu", "chrf")
    figures = {
        "test_set": src.name.removesuffix(".en"),
        "scores": {s["name"]: {key: s[key] for key in ("value", "low", "high", "signature")} for s in test["scores"]},
        "decoding": {"sentences": test["lines"], "seconds": round(test["seconds"], 1), **config["decode"]},
        "training_minutes": round(end["seconds"] / 60, 2),
        "wall_minutes_with_preparation": round(wall / 60, 2),
        "steps": end["step"],
        "target_tokens": end["tokens"],
        "training_flops": end["flops"],
        "weights": kept["weights"],
        "validation": {key: kept[key] for key in ("loss", "bleu", "chrf")},
        "validations": [{key: e[key] for key in curve} for e in log if e["event"] == "validation"],
        "configuration": config,
    }  # fmt: skip
    command = f"python -m benchmarks.quality {args.name} --data DATA --out RUN"
    command += "" if args.minutes is None else f" --minutes {args.minutes}"
    save(args.name, figures, command, ("torch", "numpy", "sentencepiece", "sacrebleu", "sacremoses"))


if __name__ == "__main__":
    main()
