"""Does a confidence rank translations, and does it mean what it says? Against sentence chrF on text it has not seen."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from benchmarks.record import save
from dragoman.data.corpus import read_pairs
from dragoman.evaluation.metrics import sentence_chrf
from dragoman.explanation.figures import matplotlib_for
from dragoman.translation.confidence import Bin, calibration_error, pearson, reliability, spearman
from dragoman.translation.translator import Translator

IMAGES = Path(__file__).parent.parent / "docs/images"
N_BINS = 10
OURS, QUIET = "#2a5d8f", "#8a8a8a"


def mean_of_the_best(order: Sequence[float], chrf: Sequence[float]) -> np.ndarray:
    """Mean chrF of the first 1, 2, ..., n sentences, the highest ``order`` first."""
    ranked = np.asarray(chrf)[np.argsort(-np.asarray(order), kind="stable")]
    return np.cumsum(ranked) / np.arange(1, len(ranked) + 1)


def draw(bins: Sequence[Bin], confidence: Sequence[float], chrf: Sequence[float], error: float, rho: float) -> None:
    """Left what was said against what was found, right what leaving out the least sure is worth."""
    pyplot = matplotlib_for([])
    figure, (left, right) = pyplot.subplots(1, 2, figsize=(9.6, 4.3), layout="constrained")

    said, found = [100 * b.confidence for b in bins], [100 * b.chrf for b in bins]
    errors = [[100 * (b.chrf - b.low) for b in bins], [100 * (b.high - b.chrf) for b in bins]]
    low, high = min(*said, *(100 * b.low for b in bins)) - 4, max(*said, *(100 * b.high for b in bins)) + 4
    left.plot([low, high], [low, high], color=QUIET, linewidth=1, linestyle=(0, (4, 3)))
    left.errorbar(said, found, yerr=errors, color=OURS, marker="o", markersize=5, linewidth=0, elinewidth=1.2)
    at = low + 0.9 * (high - low)
    left.annotate("said = found", (at, at), (8, -12), textcoords="offset points", color=QUIET, ha="left", va="top",
                  annotation_clip=False)  # fmt: skip
    left.set(xlim=(low, high), ylim=(low, high), aspect="equal")
    left.set_xlabel("confidence × 100 (mean of a tenth of the sentences)")
    left.set_ylabel("sentence chrF found (mean, 95% interval)")
    left.set_title(f"What it says: {100 * error:.1f} chrF off on average", loc="left", fontsize=11)

    share = 100 * np.arange(1, len(chrf) + 1) / len(chrf)
    kept = share >= 5  # means of fewer jump about
    above, below = {"xytext": (6, 4)}, {"xytext": (-6, -6), "ha": "right", "va": "top"}
    for order, colour, name, place in (
        (chrf, QUIET, "a perfect judge", above), (confidence, OURS, "by confidence", below)
    ):  # fmt: skip
        line = mean_of_the_best(order, chrf)
        right.plot(share[kept], line[kept], color=colour, linewidth=1.8)
        middle = len(line) * 2 // 5
        right.annotate(name, (share[middle], line[middle]), textcoords="offset points", color=colour, **place)
    mean = float(np.mean(chrf))
    right.axhline(mean, color=QUIET, linewidth=1, linestyle=(0, (4, 3)))
    right.annotate("at random", (5, mean), (4, 4), textcoords="offset points", color=QUIET)
    right.set_xlim(0, 100)
    right.set_xlabel("sentences kept, the surest first (%)")
    right.set_ylabel("their mean sentence chrF")
    right.set_title(f"How it ranks: Spearman {rho:.2f}", loc="left", fontsize=11)

    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
        axes.tick_params(length=3)
    IMAGES.mkdir(exist_ok=True)
    for ending in ("svg", "png"):
        date = {"metadata": {"Date": None}} if ending == "svg" else {}
        figure.savefig(IMAGES / f"confidence.{ending}", dpi=160, **date)
    pyplot.close(figure)


def main() -> None:
    """Translate, score each sentence, correlate, draw."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--run", type=Path, required=True, help="a trained run with a confidence")
    parser.add_argument(
        "--src", type=Path, required=True, help="text that the run has not seen, not to validate either"
    )
    parser.add_argument("--ref", type=Path, required=True)
    parser.add_argument("--device", default="cpu")
    args = parser.parse_args()
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
    draw(bins, confidence, chrf, error, rho)
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
        "bins": [{name: round(value, 4) for name, value in b._asdict().items()} for b in bins],
    }
    save("confidence", figures, "python -m benchmarks.confidence --run RUN --src SRC --ref REF", ("torch", "sacrebleu"))


if __name__ == "__main__":
    main()
