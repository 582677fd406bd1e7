"""Is a sentence translated alike alone and in any batch? 500 sentences, shuffled, in batches of 1, 2, 7 and 64.

In float32 the answer is a promise. In bf16, which is asked for, the share of sentences that differ is told; and
``deterministic`` is held to the last bit.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.record import save
from dragoman.data.corpus import read_lines
from dragoman.translation.translator import Translation, Translator

SENTENCES = 500
WHOLE = 10**9  # tokens: what is handed over is one batch


def in_batches(translator: Translator, texts: Sequence[str], size: int, **settings: Any) -> list[Translation]:
    """Translate in shuffled batches of ``size``; the results are in the order of ``texts``."""
    settings = settings if "deterministic" in settings else {"batch_tokens": WHOLE, **settings}
    order = list(range(len(texts)))
    random.Random(size).shuffle(order)
    found: dict[int, Translation] = {}
    for start in range(0, len(order), size):
        batch = order[start : start + size]
        results = translator.translate([texts[i] for i in batch], **settings)
        found.update(zip(batch, results, strict=True))
    return [found[i] for i in range(len(texts))]


def differences(found: Sequence[Translation], alone: Sequence[Translation]) -> dict[str, float]:
    """How many texts differ, and by how much scores do."""
    pairs = list(zip(found, alone, strict=True))
    return {
        "texts_that_differ": sum(a.text != b.text for a, b in pairs),
        "largest_difference_of_scores": max(abs(a.score - b.score) for a, b in pairs),
    }


def main() -> None:
    """Compare texts and scores with those of each sentence alone."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--run", type=Path, required=True, help="a trained run")
    parser.add_argument("--src", type=Path, required=True, help="at least 500 sentences")
    args = parser.parse_args()
    translator = Translator.load(args.run)
    texts = list(read_lines(args.src))[:SENTENCES]
    alone = {
        precision: [translator.translate([text], precision=precision)[0] for text in texts]
        for precision in ("fp32", "bf16")
    }
    batches = {
        precision: {
            size: differences(in_batches(translator, texts, size, precision=precision), alone[precision])
            for size in (1, 2, 7, 64)
        }
        for precision in alone
    }
    shuffled = in_batches(translator, texts, 64, deterministic=True)
    figures = {
        "sentences": len(texts),
        "beam_size": translator.config.decode.beam_size,
        "batches": batches["fp32"],
        "batches_in_bf16": batches["bf16"],
        "bf16_alone_against_fp32_alone": differences(alone["bf16"], alone["fp32"]),
        "deterministic": differences(shuffled, translator.translate(texts, deterministic=True)),
    }
    save("batch_invariance", figures, "python -m benchmarks.questions.batch_invariance --run RUN --src SRC")


if __name__ == "__main__":
    main()
