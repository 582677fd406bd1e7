"""Quality on real text by the command line alone: train, then evaluate on the test set; scores and minutes.

python -m benchmarks.quality multi30k --data DATA --out RUNS --seeds 1 2 3   English-German captions, the best recipe
python -m benchmarks.quality multi30k-de-en --data DATA --out RUNS           the same recipe with the files swapped
python -m benchmarks.quality tatoeba --data DATA --out RUNS                  English-German sentences, from two files

A run that is there and finished is evaluated as it is, one that was interrupted is resumed: seeds can be trained on one
day or on several, one beside the other or in turns.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from benchmarks.harness.arguments import command
from benchmarks.harness.corpus import MULTI30K_TEST
from benchmarks.harness.environments import ROOT
from benchmarks.harness.runs import dragoman, evaluation, events, last
from benchmarks.record import save


class Recipe(NamedTuple):
    """A configuration, and the text it is for."""

    config: str
    corpus: str  # a folder below DATA
    src: str
    tgt: str
    test: str
    valid: str | None = None  # None: held out of the training text


RECIPES = {
    "multi30k": Recipe("multi30k.yaml", "multi30k", "en", "de", MULTI30K_TEST, "val"),
    "multi30k-de-en": Recipe("multi30k.yaml", "multi30k", "de", "en", MULTI30K_TEST, "val"),
    "tatoeba": Recipe("tatoeba.yaml", "tatoeba-en-de", "en", "de", "dev"),
}


def train(recipe: Recipe, data: Path, run: Path, settings: list[str]) -> None:
    """Train from the two files in ``run``, or go on there."""
    if (run / "bundle").is_dir() and any(event["event"] == "end" for event in events(run)):
        return
    files: list[str | Path] = ["--src", data / f"train.{recipe.src}", "--tgt", data / f"train.{recipe.tgt}"]
    if recipe.valid is not None:
        stem = data / recipe.valid
        files += ["--valid-src", f"{stem}.{recipe.src}", "--valid-tgt", f"{stem}.{recipe.tgt}"]
    resumed = ["--resume"] if (run / "log.jsonl").is_file() else []
    changes = [part for setting in settings for part in ("--set", setting)]
    run.parent.mkdir(parents=True, exist_ok=True)
    config = ROOT / "configs" / recipe.config
    subprocess.run(dragoman("train", config, *files, "--out", run, *changes, *resumed), check=True)


def evaluated(recipe: Recipe, data: Path, run: Path) -> dict[str, Any]:
    """The scores of the test set, and what the run's log says of its training."""
    stem = data / recipe.test
    test = evaluation([run], f"{stem}.{recipe.src}", f"{stem}.{recipe.tgt}", "--old-style")
    log = events(run)
    end, kept = last(log, "end"), last(log, "bundle")
    config = yaml.safe_load((run / "config.yaml").read_text(encoding="utf-8"))
    config["data"].pop("train"), config["data"].pop("valid")
    curve = ("step", "perplexity", "bleu", "chrf")
    return {
        "seed": config["train"]["seed"],
        "scores": {s["name"]: {key: s[key] for key in ("value", "low", "high", "signature")} for s in test["scores"]},
        "decoding": {"sentences": test["lines"], "seconds": round(test["seconds"], 1)},
        "training_minutes": round(end["seconds"] / 60, 2),
        "steps": end["step"],
        "target_tokens": end["tokens"],
        "training_flops": end["flops"],
        "weights": kept["weights"],
        "validation": {key: kept[key] for key in ("loss", "bleu", "chrf")},
        "validations": [{key: e[key] for key in curve} for e in log if e["event"] == "validation"],
        "configuration": config,
    }


def over_seeds(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """Of each score the mean over the runs, and the sample standard deviation where there are several."""
    found = {}
    for name in runs[0]["scores"]:
        values = [run["scores"][name]["value"] for run in runs]
        found[name] = {
            "mean": round(statistics.mean(values), 2),
            "deviation": round(statistics.stdev(values), 2) if len(values) > 1 else None,
            "values": [round(value, 2) for value in values],
        }
    return found


def main() -> None:
    """Train each seed, evaluate, record."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", choices=RECIPES)
    parser.add_argument("--data", type=Path, required=True, help="a folder that holds the corpora")
    parser.add_argument("--out", type=Path, required=True, help="where the runs are kept: OUT/NAME-SEED")
    parser.add_argument("--seeds", nargs="+", type=int, default=[1])
    parser.add_argument("--minutes", type=float, help="instead of the recipe's steps")
    args = parser.parse_args()
    recipe = RECIPES[args.name]
    limit = [] if args.minutes is None else [f"train.max_minutes={args.minutes}"]
    runs = []
    for seed in args.seeds:
        run = args.out / f"{args.name}-{seed}"
        train(recipe, args.data / recipe.corpus, run, [f"train.seed={seed}", *limit])
        runs.append(evaluated(recipe, args.data / recipe.corpus, run))
    figures = {"test_set": recipe.test, "configuration": recipe.config, "scores": over_seeds(runs), "runs": runs}
    name = args.name.replace("-", "_")
    packages = ("torch", "numpy", "sentencepiece", "sacrebleu", "sacremoses")
    save(name, figures, command("quality", parser, args), packages)


if __name__ == "__main__":
    main()
