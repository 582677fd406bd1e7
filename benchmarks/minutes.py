"""Minutes to a quality: the Multi30k recipe with a limit of minutes, then cased sacreBLEU of the test set, beam 5.

With a limit below 15 minutes dropout is 0.1, whatever the recipe says, unless ``--set model.dropout`` says otherwise.
Minutes are those of training, with its validations; learning the subwords comes before and is said beside. A run that
is there already is taken as it is: its own log says its minutes.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from benchmarks.harness.arguments import command
from benchmarks.harness.command import watched
from benchmarks.harness.corpus import MULTI30K_TEST, captions
from benchmarks.harness.environments import ROOT
from benchmarks.harness.runs import evaluation, events, last, refuse_another, training
from benchmarks.record import save
from dragoman.config import read_yaml
from dragoman.lab.architectures import clock_settings

RECIPE = ROOT / "configs/multi30k-20min.yaml"
TARGETS = (36.0, 39.1)
SHORT, SHORT_DROPOUT = 15, 0.1
"""With fewer minutes than these a text is not seen often enough to be learned by heart, and less dropout is better."""


def text_files(data: Path | None, folder: Path) -> tuple[str, Path]:
    """The corpus as files: ``train``, ``val`` and the test set, each ``.en`` and ``.de``."""
    if data is not None and (data / "multi30k/train.en").is_file():
        return "multi30k en-de", data / "multi30k"
    corpus = captions(None)
    folder.mkdir(parents=True, exist_ok=True)
    middle = len(corpus.test) // 2
    parts = (("train", corpus.train), ("val", corpus.test[:middle]), (MULTI30K_TEST, corpus.test[middle:]))
    for name, pairs in parts:
        for side, end in ((0, "en"), (1, "de")):
            (folder / f"{name}.{end}").write_text("".join(pair[side] + "\n" for pair in pairs), encoding="utf-8")
    return corpus.name, folder


def train(run: Path, corpus: Path, config: Path, minutes: float, more: list[str]) -> None:
    """Train with the limit, whose cosine follows the clock."""
    settings = [f"train.{name}={value}" for name, value in clock_settings(minutes).items()]
    settings += [f"model.dropout={SHORT_DROPOUT}"] if minutes < SHORT else []
    settings += more
    text, valid = ((corpus / f"{name}.en", corpus / f"{name}.de") for name in ("train", "val"))
    run.parent.mkdir(parents=True, exist_ok=True)
    watched(training(config, run, text, valid, settings, "--quiet"), run.with_suffix(".txt"))


def evaluate(run: Path, corpus: Path) -> dict[str, Any]:
    """What the run's log says, and the scores of the test set."""
    log = events(run)
    end = last(log, "end")
    stem = corpus / MULTI30K_TEST
    done = evaluation([run], f"{stem}.en", f"{stem}.de")
    scores = {score["name"]: round(score["value"], 2) for score in done["scores"]}
    return {
        "minutes": round(end["seconds"] / 60, 2),
        "dropout": read_yaml(run / "config.yaml")["model"]["dropout"],
        "updates": end["step"],
        "target_tokens": end["tokens"],
        "scores": scores,
        "validations": [
            {"updates": event["step"], "greedy_bleu": round(event["bleu"], 2), "loss": round(event["loss"], 4)}
            for event in log if event["event"] == "validation"
        ],
    }  # fmt: skip


def reached(runs: list[dict[str, Any]], targets: tuple[float, ...] = TARGETS) -> dict[str, float | None]:
    """For each target the least minutes of a run that has it; None: none has."""
    return {
        f"{target:g}": min((run["minutes"] for run in runs if run["scores"]["BLEU"] >= target), default=None)
        for target in targets
    }


def main() -> None:
    """Train what is not there, evaluate, record."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="a folder with multi30k/ (without it: the embedded corpus)")
    parser.add_argument("--minutes", nargs="+", type=float, default=[8, 20])
    parser.add_argument("--config", type=Path, default=RECIPE)
    parser.add_argument("--runs", type=Path, default=ROOT / "runs/bench", help="where the runs are kept")
    parser.add_argument("--set", dest="more", action="append", default=[], metavar="A.B=C", help="change a setting")
    args = parser.parse_args()
    name, corpus = text_files(args.data, args.runs / "corpus")
    found = []
    for minutes in args.minutes:
        run = args.runs / f"{args.config.stem}-{minutes:g}"
        texts = [corpus / f"{part}.{end}" for part in ("train", "val") for end in ("en", "de")]
        refuse_another(run, {"minutes": minutes, "settings": args.more}, [args.config, *texts])
        if not (run / "bundle").is_dir():
            train(run, corpus, args.config, minutes, args.more)
        found.append({"limit_minutes": minutes, **evaluate(run, corpus)})
        print(json.dumps(found[-1]), file=sys.stderr, flush=True)
    figures = {
        "what": ", ".join([args.config.name, *args.more, f"cased sacreBLEU of {MULTI30K_TEST}"]),
        "corpus": name,
        "runs": found,
        "minutes_to_bleu": reached(found),
    }
    save("minutes", figures, command("minutes", parser, args), ("torch", "sacrebleu"))


if __name__ == "__main__":
    main()
