"""One model from English into several languages against one model for each: BLEU, and whether the language is right.

All have the same sizes and as many subwords, so as many parameters; the single ones train for as many steps together as
the one model does. A line counts as being in the language asked for if a classifier of characters says so: naive Bayes
over character n-grams, learned from the training text of all languages, the source's among them, so that a source that
comes back untranslated counts as wrong. How often it is right of the references is in the result: it is the most that a
system can reach.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.harness.arguments import command
from benchmarks.harness.corpus import MULTI30K_TEST
from benchmarks.harness.environments import ROOT
from benchmarks.harness.rounds import say
from benchmarks.harness.runs import dragoman, events, last
from benchmarks.record import save
from dragoman.data.corpus import read_lines
from dragoman.evaluation.metrics import bleu, chrf
from dragoman.evaluation.significance import compare
from dragoman.translation.translator import Translator

CONFIG = ROOT / "configs/multi30k-multilingual.yaml"
STEPS = 8000
"""Of a single model, as in configs/multi30k.yaml."""

ORDERS = (1, 2, 3, 4)
SMOOTHING = 0.5
LEARNED_FROM = 10_000
"""Lines of each language that the classifier learns from."""


class Classifier:
    """Tells the language of a line by its characters: multinomial naive Bayes over n-grams."""

    def __init__(self, texts: Mapping[str, Sequence[str]]) -> None:
        counts = {lang: Counter(gram for line in lines for gram in ngrams(line)) for lang, lines in texts.items()}
        self._known = set().union(*counts.values())
        self._counts, size = counts, SMOOTHING * len(self._known)
        self._totals = {lang: math.log(own.total() + size) for lang, own in counts.items()}

    def __call__(self, line: str) -> str:
        """The likeliest language; all are as likely before the line is seen."""
        grams = [gram for gram in ngrams(line) if gram in self._known]

        def likelihood(lang: str) -> float:
            own, total = self._counts[lang], self._totals[lang]
            return sum(math.log(own[gram] + SMOOTHING) - total for gram in grams)

        return max(self._counts, key=likelihood)

    def share(self, lines: Sequence[str], lang: str) -> float:
        """Of lines, which part is in a language; a blank one is in none."""
        return sum(bool(line.strip()) and self(line) == lang for line in lines) / len(lines)


def ngrams(line: str) -> Iterator[str]:
    """The character n-grams of a line, a space before and behind it."""
    text = f" {line.lower()} "
    for n in ORDERS:
        yield from (text[i : i + n] for i in range(len(text) - n + 1))


def text_of(folder: Path, split: str, lang: str, n_lines: int | None, out: Path) -> Path:
    """The file of a language, or its first lines in a file of their own."""
    path = folder / f"{split}.{lang}"
    if n_lines is None:
        return path
    short = out / f"{split}-{n_lines}.{lang}"
    short.write_text("".join(f"{line}\n" for line in list(read_lines(path))[:n_lines]), encoding="utf-8")
    return short


def settings(train: Sequence[dict[str, str]], valid: Sequence[dict[str, str]], args: argparse.Namespace) -> list[str]:
    """What a model's training has otherwise than ``CONFIG``."""
    n = len(train)
    steps = n * (args.steps or STEPS)
    every = max(1, steps // 12)
    found = [
        f"data.train={json.dumps(train)}", f"data.valid={json.dumps(valid)}", f"model.preset={args.preset}",
        f"data.tokenizer.vocab_size={args.vocab_size}", f"train.max_steps={steps}", f"train.seed={args.seed}",
        f"train.warmup_steps={max(1, steps // 20)}", f"train.validate_every={every}", f"train.save_every={every}",
        *args.set,
    ]  # fmt: skip
    return found if args.minutes is None else [*found, f"train.max_minutes={n * args.minutes}"]


def trained(name: str, langs: Sequence[str], args: argparse.Namespace) -> Path:
    """The run of a model for these languages: as it is, gone on with, or new."""
    run, folder = args.out / name, args.data / "multi30k"
    if (run / "bundle").is_dir() and any(event["event"] == "end" for event in events(run)):
        return run
    entries = [
        [
            {"src": str(text_of(folder, split, "en", n, args.out)), "src_lang": "en", "tgt_lang": lang,
             "tgt": str(text_of(folder, split, lang, n, args.out))}
            for lang in langs
        ]
        for split, n in (("train", args.lines), ("val", args.lines and max(50, args.lines // 20)))
    ]  # fmt: skip
    say(f"{name}: en -> {', '.join(langs)}")
    if (run / "log.jsonl").is_file():
        subprocess.run(dragoman("train", "--out", run, "--resume"), check=True)
    else:
        changes = [part for setting in settings(*entries, args) for part in ("--set", setting)]
        subprocess.run(dragoman("train", CONFIG, "--out", run, *changes), check=True)
    return run


def measured(run: Path, lang: str, classify: Classifier, sources: Sequence[str], refs: Sequence[str]) -> dict[str, Any]:
    """A model on the test set of one language; with its translations."""
    translator = Translator.load(run)
    to = {"to": lang} if translator.languages.targets else {}
    say(f"{run.name}: translating into {lang}")
    texts = [one.text for one in translator.translate(sources, **to)]
    return {
        "bleu": round(bleu(texts, refs, lang).value, 2), "chrf": round(chrf(texts, refs).value, 2),
        "in_language": round(classify.share(texts, lang), 4), "texts": texts,
    }  # fmt: skip


def about(run: Path) -> dict[str, Any]:
    """What a training took."""
    log, translator = events(run), Translator.load(run)
    end = last(log, "end")
    return {
        "parameters": sum(weight.numel() for weight in translator.model.parameters()),
        "steps": end["step"], "target_tokens": end["tokens"], "minutes": round(end["seconds"] / 60, 2),
    }  # fmt: skip


def figures(several: Path, singles: Mapping[str, Path], args: argparse.Namespace) -> dict[str, Any]:
    """Both ways beside each other, language by language."""
    folder = args.data / "multi30k"
    most = min(args.lines or LEARNED_FROM, LEARNED_FROM)
    classify = Classifier({lang: list(read_lines(folder / f"train.{lang}"))[:most] for lang in ("en", *args.langs)})
    sources = list(read_lines(folder / f"{MULTI30K_TEST}.en"))[: args.test_lines]
    rows: dict[str, Any] = {}
    for lang in args.langs:
        refs = list(read_lines(folder / f"{MULTI30K_TEST}.{lang}"))[: args.test_lines]
        one = measured(singles[lang], lang, classify, sources, refs)
        of_several = measured(several, lang, classify, sources, refs)
        (difference, *_) = compare(one.pop("texts"), of_several.pop("texts"), refs, lang)
        rows[lang] = {
            "single": one, "several": of_several,
            "bleu_several_minus_single": {
                "difference": round(difference.difference, 2), "low": round(difference.low, 2),
                "high": round(difference.high, 2), "p_randomisation": difference.p_randomisation,
            },
            "references_in_language": round(classify.share(refs, lang), 4),
            "sources_in_language": round(classify.share(sources, lang), 4),
        }  # fmt: skip
    return {
        "test_set": MULTI30K_TEST, "test_lines": len(sources), "train_lines": args.lines, "preset": args.preset,
        "languages": rows,
        "training": {name: about(run) for name, run in (("several", several), *singles.items())},
    }  # fmt: skip


def main() -> None:
    """Train what is not there yet, measure, record."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="a folder that holds multi30k/")
    parser.add_argument("--out", type=Path, required=True, help="where the runs are kept: OUT/several, OUT/de, ...")
    parser.add_argument("--langs", nargs="+", default=["de", "fr", "cs"])
    parser.add_argument("--steps", type=int, help=f"of a single model ({STEPS}); the one for all takes N times as many")
    parser.add_argument("--minutes", type=float, help="limit of a single model; the one for all has N times as many")
    parser.add_argument("--preset", default="tiny")
    parser.add_argument("--vocab-size", type=int, default=8000, help="of every model")
    parser.add_argument("--lines", type=int, help="of the training text, the first; all if not given")
    parser.add_argument("--test-lines", type=int)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--set", action="append", default=[], help="a setting of every model")
    parser.add_argument("--no-save", action="store_true", help="print the figures, and leave the published ones")
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    singles = {lang: trained(lang, [lang], args) for lang in args.langs}
    found = figures(trained("several", args.langs, args), singles, args)
    if args.no_save:
        print(json.dumps(found, indent=2))
        return
    save("multilingual", found, command("multilingual", parser, args), ("torch", "numpy", "sentencepiece", "sacrebleu"))


if __name__ == "__main__":
    main()
