"""What text made by ``augment`` is worth: Multi30k with a third of its pairs, and the German side alone of the rest.

Every model has the same sizes and the same minutes of its process (CPU time, one thread), so more text means fewer
epochs. The reverse model, which makes the sources, is trained in the same way on the same pairs. BLEU and chrF are of
test_2016_flickr, beam 4. A run that is there already is taken as it is.
"""

from __future__ import annotations

import argparse
import itertools
import sys
from pathlib import Path
from typing import Any

import torch

import dragoman
from benchmarks.harness.arguments import command
from benchmarks.harness.corpus import MULTI30K_TEST
from benchmarks.harness.runs import events, last
from benchmarks.questions.automatic import NEVER, RARE, by_cpu_time
from benchmarks.record import save
from dragoman.data.corpus import read_lines
from dragoman.evaluation.metrics import bleu, chrf
from dragoman.evaluation.significance import compare

SETTINGS = [
    "model={d_model: 128, d_ff: 512, n_heads: 4, n_encoder_layers: 2, n_decoder_layers: 2, norm: pre, dropout: 0.2}",
    "data.tokenizer.vocab_size=4000", "train.batch_tokens=1024", "train.lr=0.003", "train.ema=0.998",
    f"train.max_steps={NEVER}", f"train.warmup_steps={NEVER // 10}", *RARE,
]  # fmt: skip

PAIRS = "the pairs alone"
MADE = {
    "back-translated, tagged": {},
    "back-translated, no tag": {"tag": ""},
    "back-translated by sampling, tagged": {"sample": True},
}
"""How ``augment`` makes the rest."""


def written(path: Path, lines: list[str]) -> Path:
    """A file of these lines."""
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def trained(run: Path, text: list[dict[str, str]], valid: tuple[Path, Path], minutes: float) -> Path:
    """Train by the clock, unless the run is there."""
    if not (run / "bundle").is_dir():
        src, tgt = valid
        dragoman.train(
            [text[0]["src"], text[0]["tgt"]], valid_src=src, valid_tgt=tgt, out=run, minutes=minutes, quiet=True,
            overrides=[*SETTINGS, f"data.train={text}"],
        )  # fmt: skip
    return run


def measured(run: Path, sources: list[str], refs: list[str]) -> tuple[dict[str, Any], list[str]]:
    """Scores of a run and its translations."""
    translator, end = dragoman.Translator.load(run), last(events(run), "end")
    texts = [one.text for one in translator.translate(sources, beam_size=4)]
    row = {
        "bleu": round(bleu(texts, refs, "de").value, 2), "chrf": round(chrf(texts, refs).value, 2),
        "updates": end["step"], "target_tokens": end["tokens"],
    }  # fmt: skip
    print(run.name, row, file=sys.stderr, flush=True)
    return row, texts


def main() -> None:
    """Train, make, train again; measure and save."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.questions.made_text", description=__doc__)
    parser.add_argument("data", type=Path, help="folder with multi30k/")
    parser.add_argument("--runs", type=Path, default=Path("runs/made-text"))
    parser.add_argument("--minutes", type=float, default=6.0)
    parser.add_argument("--pairs", type=int, default=9_667, help="that count as parallel text")
    args = parser.parse_args()
    torch.set_num_threads(1)
    by_cpu_time()
    args.runs.mkdir(parents=True, exist_ok=True)
    folder = args.data / "multi30k"
    whole = {lang: list(read_lines(folder / f"train.{lang}")) for lang in ("en", "de")}
    src, tgt = (written(args.runs / f"pairs.{lang}", whole[lang][: args.pairs]) for lang in ("en", "de"))
    alone = written(args.runs / "alone.de", whole["de"][args.pairs :])
    valid = tuple(
        written(args.runs / f"valid.{lang}", list(itertools.islice(read_lines(folder / f"val.{lang}"), 20)))
        for lang in ("en", "de")
    )
    there, back = [{"src": str(src), "tgt": str(tgt)}], [{"src": str(tgt), "tgt": str(src)}]
    reverse = trained(args.runs / "back", back, (valid[1], valid[0]), args.minutes)
    runs = {PAIRS: trained(args.runs / "pairs", there, (valid[0], valid[1]), args.minutes)}
    made: dict[str, Any] = {}
    for i, (name, how) in enumerate(MADE.items()):
        found = dragoman.augment(args.runs / f"made{i}", back=reverse, tgt=alone, quiet=True, **how)
        made[name] = {"pairs": found.counts["back"].translations["kept"]}
        runs[name] = trained(args.runs / f"with{i}", [*there, *found.entries], (valid[0], valid[1]), args.minutes)
    sources, refs = (list(read_lines(folder / f"{MULTI30K_TEST}.{lang}")) for lang in ("en", "de"))
    rows, texts = {}, {}
    for name, run in runs.items():
        rows[name], texts[name] = measured(run, sources, refs)
        if name != PAIRS:
            (difference, *_) = compare(texts[PAIRS], texts[name], refs, "de")
            rows[name] |= made[name] | {
                "bleu_gain": round(difference.difference, 2), "low": round(difference.low, 2),
                "high": round(difference.high, 2),
            }  # fmt: skip
    figures = {"pairs": args.pairs, "lines_alone": len(whole["de"]) - args.pairs, "systems": rows}
    save("made_text", figures, command("made_text", parser, args), ("torch", "numpy", "sentencepiece", "sacrebleu"))


if __name__ == "__main__":
    main()
