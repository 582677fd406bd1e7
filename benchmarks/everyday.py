"""A file of 1,000 lines with one batch at a time on all cores (once the default), with a batch on each core (the
default now), and with ``--fast``: taking turns in one process, with the lines that differ and BLEU.
"""

from __future__ import annotations

import argparse
import statistics
import time
from pathlib import Path
from typing import Any

import torch

from benchmarks.record import save
from dragoman.evaluation.metrics import bleu
from dragoman.translation.translator import Translator

WAYS: dict[str, dict[str, Any]] = {"one worker": {"threads": 1}, "default": {}, "fast": {"fast": True}}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--run", type=Path, required=True)
    parser.add_argument("--src", type=Path, required=True)
    parser.add_argument("--ref", type=Path, required=True)
    parser.add_argument("--lines", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=2)
    given = parser.parse_args()
    translator = Translator.load(given.run, "cpu")
    texts, refs = (path.read_text(encoding="utf-8").split("\n")[: given.lines] for path in (given.src, given.ref))
    seconds: dict[str, list[float]] = {name: [] for name in WAYS}
    found: dict[str, list[str]] = {}
    plans = {name: translator.plan(**options) for name, options in WAYS.items()}
    for plan in plans.values():
        translator.translate(texts[:50], plan)
    for _ in range(given.rounds):
        for name, plan in plans.items():
            started = time.perf_counter()
            found[name] = [one.text for one in translator.translate(texts, plan)]
            seconds[name].append(time.perf_counter() - started)
    save("everyday", {
        "lines": len(texts), "threads": torch.get_num_threads(), "rounds": given.rounds,
        "fast": {"engine": plans["fast"].engine.name, "precision": plans["fast"].search.precision},
        "ways": {
            name: {
                "lines_per_s": [round(len(texts) / each, 1) for each in seconds[name]],
                "times_one_worker": round(statistics.median(
                    one / each for one, each in zip(seconds["one worker"], seconds[name], strict=True)), 2),
                "lines_that_differ": sum(a != b for a, b in zip(found[name], found["one worker"], strict=True)),
                "bleu": round(bleu(found[name], refs, translator.config.data.tgt_lang).value, 2),
            }
            for name in WAYS
        },
    }, f"python -m benchmarks.everyday --run RUN --src SRC --ref REF --lines {given.lines}",
        ("torch", "numpy", "ctranslate2"))  # fmt: skip


if __name__ == "__main__":
    main()
