"""Quality on real text by the command line alone: train, then evaluate on the test set; scores and minutes.

python -m benchmarks.quality multi30k --data DATA --out RUNS --seeds 1 2 3   English-German captions, the best recipe
python -m benchmarks.quality multi30k-de-en --data DATA --out RUNS           the same recipe with the files swapped
python -m benchmarks.quality multi30k-diverse --data DATA --out RUNS         on three times the text, two parts of which
                                                                             the first two runs above translated
python -m benchmarks.quality multi30k-tok --data DATA --out RUNS             these three on the lower-cased, tokenised
  (and multi30k-tok-de-en, multi30k-tok-diverse)                             text that published figures are of
python -m benchmarks.quality tatoeba --data DATA --out RUNS                  English-German sentences, from two files

A run that is there and finished is evaluated as it is, one that was interrupted is resumed: seeds can be trained on one
day or on several, one beside the other or in turns.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from benchmarks.harness.arguments import command
from benchmarks.harness.corpus import MULTI30K_TEST
from benchmarks.harness.environments import ROOT
from benchmarks.harness.runs import Files, dragoman, evaluation, events, last, refuse_another, training
from benchmarks.record import save
from dragoman.evaluation.metrics import tokenized_bleu


class Recipe(NamedTuple):
    """A configuration, and the text it is for."""

    config: str
    corpus: str  # a folder below DATA
    src: str
    tgt: str
    test: str
    valid: str | None = None  # None: held out of the training text
    teachers: tuple[str, str] | None = None  # recipes whose runs translate the training text, there and back
    tokenized: bool = False  # lower-cased and cut by Moses already, so that its own tokens are what BLEU compares

    def file(self, part: str, side: str) -> str:
        """The name of a file below the corpus's folder; of tokenised ones as Multi30k has them."""
        return f"tok/{part}.lc.norm.tok.{side}" if self.tokenized else f"{part}.{side}"


EN_DE = Recipe("multi30k.yaml", "multi30k", "en", "de", MULTI30K_TEST, "val")
DE_EN = EN_DE._replace(src="de", tgt="en")
DIVERSE = EN_DE._replace(config="multi30k-diverse.yaml", teachers=("multi30k", "multi30k-de-en"))
RECIPES = {
    "multi30k": EN_DE,
    "multi30k-de-en": DE_EN,
    "multi30k-diverse": DIVERSE,
    "multi30k-tok": EN_DE._replace(tokenized=True),
    "multi30k-tok-de-en": DE_EN._replace(tokenized=True),
    "multi30k-tok-diverse": DIVERSE._replace(tokenized=True, teachers=("multi30k-tok", "multi30k-tok-de-en")),
    "tatoeba": Recipe("tatoeba.yaml", "tatoeba-en-de", "en", "de", "dev"),
}


def train(recipe: Recipe, data: Path, run: Path, settings: Sequence[str], text: Files | None = None) -> None:
    """Train in ``run``, or go on there; on the recipe's two files, if ``text`` gives no others."""
    sides = (recipe.src, recipe.tgt)
    src, tgt = text or (data / recipe.file("train", side) for side in sides)
    valid = None
    if recipe.valid is not None:
        valid = data / recipe.file(recipe.valid, sides[0]), data / recipe.file(recipe.valid, sides[1])
    config = ROOT / "configs" / recipe.config
    refuse_another(run, {"settings": list(settings)}, [config, src, tgt, *(valid or ())])
    if (run / "bundle").is_dir() and any(event["event"] == "end" for event in events(run)):
        return
    resumed = ["--resume"] if (run / "log.jsonl").is_file() else []
    run.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run(training(config, run, (src, tgt), valid, settings, *resumed), check=True)


def diverse(recipe: Recipe, data: Path, runs: Path, folder: Path) -> Files:
    """The training text three times: as it is, its sources translated, its targets translated back.

    Data diversification with one model each way (Nguyen et al. 2020, https://arxiv.org/abs/1911.01986). Models that are
    not among the runs are trained first; a translation that was interrupted goes on.
    """
    assert recipe.teachers is not None
    folder.mkdir(parents=True, exist_ok=True)
    src, tgt = data / recipe.file("train", recipe.src), data / recipe.file("train", recipe.tgt)
    translated = []
    for name, text, side in zip(recipe.teachers, (src, tgt), (recipe.tgt, recipe.src), strict=True):
        teacher, out = runs / f"{name}-1", folder / f"translated.{side}"
        train(RECIPES[name], data, teacher, ["train.seed=1"])
        if not out.is_file():
            subprocess.run(dragoman("translate", teacher, text, "--out", out), check=True)
        translated.append(out)
    parts = {recipe.src: (src, src, translated[1]), recipe.tgt: (tgt, translated[0], tgt)}
    for side, files in parts.items():
        (folder / f"train.{side}").write_bytes(b"".join(file.read_bytes() for file in files))
    return folder / f"train.{recipe.src}", folder / f"train.{recipe.tgt}"


def evaluated(recipe: Recipe, data: Path, run: Path) -> dict[str, Any]:
    """The scores of the test set, and what the run's log says of its training."""
    src, ref = data / recipe.file(recipe.test, recipe.src), data / recipe.file(recipe.test, recipe.tgt)
    out = run.with_name(f"{run.name}.{recipe.test}.{recipe.tgt}")
    test = evaluation([run], src, ref, "--out", out, *([] if recipe.tokenized else ["--old-style"]))
    scores = {s["name"]: {key: s[key] for key in ("value", "low", "high", "signature")} for s in test["scores"]}
    if recipe.tokenized:  # the other metrics are for text as people write it
        old = tokenized_bleu(*(file.read_bytes().decode().removesuffix("\n").split("\n") for file in (out, ref)))
        scores = {old.name: {"value": old.value, "signature": old.signature}}
    log = events(run)
    end, kept = last(log, "end"), last(log, "bundle")
    config = yaml.safe_load((run / "config.yaml").read_text(encoding="utf-8"))
    config["data"].pop("train"), config["data"].pop("valid")
    curve = ("step", "perplexity", "bleu", "chrf")
    return {
        "seed": config["train"]["seed"],
        "scores": scores,
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
    data, runs = args.data / recipe.corpus, []
    text = None if recipe.teachers is None else diverse(recipe, data, args.out, args.out / args.name)
    for seed in args.seeds:
        run = args.out / f"{args.name}-{seed}"
        train(recipe, data, run, [f"train.seed={seed}", *limit], text)
        runs.append(evaluated(recipe, data, run))
    figures = {"test_set": recipe.test, "configuration": recipe.config, "scores": over_seeds(runs), "runs": runs}
    name = args.name.replace("-", "_")
    packages = ("torch", "numpy", "sentencepiece", "sacrebleu", "sacremoses")
    save(name, figures, command("quality", parser, args), packages)


if __name__ == "__main__":
    main()
