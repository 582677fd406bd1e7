"""Is a sentence translated alike alone and in any batch? 500 sentences, shuffled, in batches of 1, 2, 7 and 64."""

from __future__ import annotations

import argparse
import random
from pathlib import Path

from benchmarks.record import save
from dragoman.data.corpus import read_lines
from dragoman.translator import Translation, Translator

SENTENCES = 500
WHOLE = 10**9  # tokens: what is handed over is one batch


def main() -> None:
    """Compare texts and scores with those of each sentence alone."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--run", type=Path, required=True, help="a trained run")
    parser.add_argument("--src", type=Path, required=True, help="at least 500 sentences")
    args = parser.parse_args()
    translator = Translator.load(args.run)
    texts = list(read_lines(args.src))[:SENTENCES]
    alone = [translator.translate([text])[0] for text in texts]
    batches: dict[int, dict[str, float]] = {}
    for size in (1, 2, 7, 64):
        order = list(range(len(texts)))
        random.Random(size).shuffle(order)
        found: dict[int, Translation] = {}
        for start in range(0, len(order), size):
            batch = order[start : start + size]
            results = translator.translate([texts[i] for i in batch], batch_tokens=WHOLE)
            found.update(zip(batch, results, strict=True))
        batches[size] = {
            "texts_that_differ": sum(found[i].text != alone[i].text for i in order),
            "largest_difference_of_scores": max(abs(found[i].score - alone[i].score) for i in order),
        }
    figures = {"sentences": len(texts), "beam_size": translator.config.decode.beam_size, "batches": batches}
    save("batch_invariance", figures, "python -m benchmarks.batch_invariance --run RUN --src SRC")


if __name__ == "__main__":
    main()
