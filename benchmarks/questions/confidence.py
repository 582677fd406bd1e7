"""Does a confidence rank translations, and does it mean what it says? Against sentence chrF on text it has not seen."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import record
from benchmarks.harness.environments import ROOT
from benchmarks.harness.reliability import calibration_error, reliability
from dragoman.data.corpus import read_pairs
from dragoman.evaluation.metrics import sentence_chrf
from dragoman.explanation.figures import Chart, Curve, curves, save
from dragoman.explanation.style import BLUE, GREEN, QUIET
from dragoman.translation.confidence import pearson, spearman
from dragoman.translation.translator import Translator

FIGURE = ROOT / "docs/images/confidence.svg"
N_BINS = 10
KEPT = range(5, 101)
"""Per cent of the sentences, the surest first; means of fewer than 5 jump about."""


def mean_of_the_best(order: Sequence[float], chrf: Sequence[float]) -> np.ndarray:
    """Mean chrF of the first 1, 2, ..., n sentences, the highest ``order`` first."""
    ranked = np.asarray(chrf)[np.argsort(-np.asarray(order), kind="stable")]
    return np.cumsum(ranked) / np.arange(1, len(ranked) + 1)


def kept(order: Sequence[float], chrf: Sequence[float]) -> list[float]:
    """Mean chrF of each share of ``KEPT``, the highest ``order`` first."""
    means = mean_of_the_best(order, chrf)
    return [round(float(means[max(round(len(chrf) * share / 100), 1) - 1]), 1) for share in KEPT]


def draw(found: Mapping[str, Any], path: Path) -> None:
    """Left what was said against what was found, right what leaving out the least sure is worth; from the record."""
    bins = found["bins"]
    said, chrf, low, high = ([100 * b[name] for b in bins] for name in ("confidence", "chrf", "low", "high"))
    ends = [min(*said, *low) - 2, max(*said, *high) + 2]
    equal = Curve("equal", ends, ends, colour=QUIET, dashed=True)
    measured = Curve("", said, chrf, low, high, colour=BLUE, points=True, line=False)
    right = [
        Curve(name, list(KEPT), found["kept"][key], colour=colour)
        for name, key, colour in (("a perfect judge", "perfect", GREEN), ("by confidence", "confidence", BLUE))
    ]
    right.append(Curve("at random", [KEPT[0], KEPT[-1]], 2 * [found["mean_chrf"]], colour=QUIET, dashed=True))
    charts = [
        Chart([equal, measured], "confidence × 100, mean of a tenth of the sentences", "sentence chrF, mean",
              f"What it says: {found['calibration_error_chrf']:.1f} chrF off on average"),
        Chart(right, "sentences kept, the surest first (%)", "their mean sentence chrF",
              f"How it ranks: Spearman {found['spearman']:.2f}"),
    ]  # fmt: skip
    path.parent.mkdir(parents=True, exist_ok=True)
    save(curves(charts, width=3.6, height=3.6), path, title="Confidence against chrF", description=SEEN)


SEEN = (
    "Left, tenths of the sentences with 95% intervals lie along the line where confidence and chrF are equal. Right, "
    "the mean chrF of the surest sentences falls from 89 to 65 as more are kept; a perfect judge's falls from 100."
)


def main() -> None:
    """Translate, score each sentence, correlate, draw."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--run", type=Path, help="a trained run with a confidence")
    parser.add_argument("--src", type=Path, help="text that the run has not seen, not to validate either")
    parser.add_argument("--ref", type=Path)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--redraw", action="store_true", help="draw the figure from the record, without a run")
    args = parser.parse_args()
    if args.redraw:
        draw(json.loads((record.RESULTS / "confidence.json").read_text(encoding="utf-8"))["figures"], FIGURE)
        return
    if None in (args.run, args.src, args.ref):
        parser.error("give --run, --src and --ref, or --redraw")
    translator = Translator.load(args.run, args.device)
    pairs = [pair for pair in read_pairs(args.src, args.ref) if all(side.strip() for side in pair)]
    found = translator.translate([src for src, _ in pairs])
    confidence = [translation.confidence for translation in found if translation.confidence is not None]
    if len(confidence) < len(found):
        parser.error(f"{args.run} has no confidence: its validation set was too small, or it was trained before")
    chrf = sentence_chrf([translation.text for translation in found], [ref for _, ref in pairs])
    per_token = [translation.log_prob / translation.n_tokens for translation in found]
    bins = reliability(confidence, chrf, N_BINS)
    error, rho = calibration_error(bins), spearman(confidence, chrf)
    worst = np.argsort(confidence, kind="stable")[: len(chrf) // 10]
    truly = set(np.argsort(chrf, kind="stable")[: len(chrf) // 10].tolist())
    figures = {
        "text": args.src.name,
        "sentences": len(found),
        "pearson": round(pearson(confidence, chrf), 4),
        "spearman": round(rho, 4),
        "spearman_of_log_probability_per_token": round(spearman(per_token, chrf), 4),
        "calibration_error_chrf": round(100 * error, 2),
        "mean_chrf": round(float(np.mean(chrf)), 2),
        "mean_confidence": round(100 * float(np.mean(confidence)), 2),
        "mean_chrf_of_the_least_sure_tenth": round(float(np.mean(np.asarray(chrf)[worst])), 2),
        "mean_chrf_of_the_surest_half": round(float(mean_of_the_best(confidence, chrf)[len(chrf) // 2 - 1]), 2),
        "of_the_worst_tenth_in_the_least_sure_tenth": round(len(truly & set(worst.tolist())) / len(truly), 3),
        "kept": {"confidence": kept(confidence, chrf), "perfect": kept(chrf, chrf)},
        "bins": [{name: round(value, 4) for name, value in b._asdict().items()} for b in bins],
    }
    draw(figures, FIGURE)
    record.save(
        "confidence",
        figures,
        "python -m benchmarks.questions.confidence --run RUN --src SRC --ref REF",
        ("torch", "sacrebleu"),
    )


if __name__ == "__main__":
    main()
