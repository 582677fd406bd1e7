"""Decoding of long sentences: base-sized random weights, as many steps for every system, in turns."""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from benchmarks.decoding import compare
from benchmarks.harness.arguments import command
from benchmarks.harness.carry import random_bundle
from benchmarks.harness.corpus import long_lines, subwords
from benchmarks.harness.decoders import ct2, dragoman, hf, job
from benchmarks.record import save

OUR_BATCHES, THEIR_BATCHES = (2048, 4096, 8192, 16384), (8, 16, 32)
DECODERS = (
    *(dragoman(precision, OUR_BATCHES) for precision in ("fp32", "bf16")),
    *(ct2(precision, THEIR_BATCHES) for precision in ("fp32", "int8")),
    *(hf(precision, THEIR_BATCHES) for precision in ("fp32", "bf16")),
)
LEAST, MOST = 64, 192
"""Subwords of a source."""


def main() -> None:
    """Choose the long sentences, compare, record."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, help="a folder with justice-en-fr/ (without it: embedded sentences)")
    parser.add_argument("--preset", default="base")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--sentences", type=int, default=128)
    parser.add_argument("--beam-size", type=int, default=5)
    parser.add_argument("--steps", type=int, default=64, help="tokens of each translation")
    parser.add_argument("--vocab-size", type=int, default=8000)
    args = parser.parse_args()
    name, pairs = long_lines(args.data)
    tokenizer = subwords(pairs, args.vocab_size)
    lengths = [len(ids) for ids in tokenizer.encode([src for src, _ in pairs])]
    chosen = [pair for pair, n in zip(pairs, lengths, strict=True) if LEAST <= n <= MOST][: args.sentences]
    with tempfile.TemporaryDirectory() as folder:
        bundle = random_bundle(Path(folder) / "run", tokenizer, args.preset)
        found = compare(job(bundle, chosen, Path(folder), args.beam_size, 1.0, args.steps), args.rounds, DECODERS)
    for figures in found["systems"].values():
        speed = figures["sentences_per_s"]
        figures["tokens_per_s"] = {key: round(speed[key] * args.steps, 1) for key in ("median", "min", "max")}
    what = f"sources of {LEAST} to {MOST} subwords, {args.preset}, random weights"
    save("long", {"what": what, "corpus": name, **found}, command("long", parser, args))


if __name__ == "__main__":
    main()
