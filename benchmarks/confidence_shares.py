"""Share of the worst translations that a confidence finds, for several runs and test sets.

    python -m benchmarks.confidence_shares before RUN:SRC:REF ...    ``after`` for the state after a change

Of the worst fifth of the lines by sentence chrF, the share in the lowest fifth by confidence: 20% by chance. A seed
draws the lines of a long test set. Of lines that are equal the first counts as lower.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from benchmarks.scripts_record import record_of_tests
from dragoman.data.corpus import read_pairs
from dragoman.evaluation.metrics import sentence_chrf
from dragoman.translation.confidence import spearman
from dragoman.translation.translator import Translator

SEED, MOST = 42, 1000


def share_found(confidence: Sequence[float], chrf: Sequence[float], share: float = 0.2) -> float:
    """Return the share of the worst lines by chrF that stand among as many lines of lowest confidence."""
    n = round(share * len(chrf))
    worst, lowest = (set(np.argsort(values, kind="stable")[:n].tolist()) for values in (chrf, confidence))
    return len(worst & lowest) / n


def measure(run: str, src: str, ref: str) -> dict[str, Any]:
    """Translate a test set and return how well its confidence ranks it, and what its words say."""
    pairs = [pair for pair in read_pairs(src, ref) if all(side.strip() for side in pair)]
    if len(pairs) > MOST:
        pairs = random.Random(SEED).sample(pairs, MOST)
    translations = Translator.load(run).translate([source for source, _ in pairs])
    chrf = sentence_chrf([translation.text for translation in translations], [reference for _, reference in pairs])
    values = [translation.confidence for translation in translations]
    if None in values:
        return {"lines": len(pairs), "mean_chrf": round(float(np.mean(chrf)), 1), "confidence": "none"}
    known = [value for value in values if value is not None]
    per_token = [translation.log_prob / max(1, translation.n_tokens) for translation in translations]
    figures = {
        "lines": len(pairs), "mean_chrf": round(float(np.mean(chrf)), 1),
        "worst_fifth_in_lowest_fifth": round(share_found(known, chrf), 3),
        "by_log_probability_per_token": round(share_found(per_token, chrf), 3),
        "spearman": round(spearman(known, chrf), 3),
    }  # fmt: skip
    words = [getattr(translation, "quality", None) for translation in translations]
    if any(words):
        means = {word: [score for score, own in zip(chrf, words, strict=True) if own == word] for word in set(words)}
        figures["words"] = {
            str(word): {"lines": n, "mean_chrf": round(float(np.mean(means[word])), 1)}
            for word, n in Counter(words).most_common()
        }
    return figures


def main() -> None:
    """Measure all and write the record."""
    inputs = {"rule": f"at most {MOST} lines of each test set, drawn by seed", "seed": SEED}
    record_of_tests("confidence_shares", __doc__ or "", "NAME=RUN:SRC:REF", measure, inputs)


if __name__ == "__main__":
    main()
