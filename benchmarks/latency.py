"""Latency: one sentence after the other, one thread, beam 5, every system with the same weights, in turns."""

from __future__ import annotations

import argparse
import statistics
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.harness.arguments import command
from benchmarks.harness.carry import random_bundle
from benchmarks.harness.corpus import captions, subwords
from benchmarks.harness.decoders import Decoder, Job, ct2, dragoman, hf, job
from benchmarks.harness.peer import PeerError, System, started
from benchmarks.harness.rounds import Figures, alternate, ratios, say, summary
from benchmarks.record import save

DECODERS = (
    dragoman("fp32"), dragoman("bf16"), dragoman("fp32", engine="auto"),
    dragoman("int8", engine="auto"), ct2("fp32"), ct2("int8"), hf("fp32"), hf("bf16"),
)  # fmt: skip


def able(decoders: tuple[Decoder, ...], work: Job) -> tuple[list[System], dict[str, str]]:
    """Systems with one thread, those left out that refuse their settings, and why."""
    systems, left_out = [], {}
    for decoder in decoders:
        system = work.system(decoder, 1, 1)
        try:
            with started(system) as ask:
                ask(what="chunks", count=1)
            systems.append(system)
        except PeerError as error:
            if not error.refusal:
                raise
            left_out[decoder.name] = error.refusal
            say(f"left out: {decoder.name}: {left_out[decoder.name]}")
    return systems, left_out


def take(system: System) -> Figures:
    """Median and tenths of the sentences' times, after all were translated once to warm up."""
    with started(system) as ask:
        ask(what="chunks")
        answer = ask(what="chunks")
    tenths = statistics.quantiles(answer["ms"], n=10)
    return {
        "ms": statistics.median(answer["ms"]), "p10_ms": tenths[0], "p90_ms": tenths[-1],
        "versions": answer["versions"], "peak_mib": answer["peak_mib"],
    }  # fmt: skip


def main() -> None:
    """Measure and record."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, help="a folder with multi30k/ (without it: the embedded corpus)")
    parser.add_argument("--run", type=Path, help="a trained run (without it: random weights of the preset)")
    parser.add_argument("--preset", default="small")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--sentences", type=int, default=50, help="evenly drawn from the test set")
    parser.add_argument("--beam-size", type=int, default=5)
    parser.add_argument("--length-penalty", type=float, default=1.0)
    parser.add_argument("--steps", type=int, default=14, help="tokens of each translation by random weights")
    args = parser.parse_args()
    corpus = captions(args.data)
    pairs = corpus.test[:: max(1, len(corpus.test) // args.sentences)][: args.sentences]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        bundle = args.run or random_bundle(folder / "run", subwords(corpus.train, 8000), args.preset)
        work = job(bundle, pairs, folder, args.beam_size, args.length_penalty, None if args.run else args.steps)
        systems, left_out = able(DECODERS, work)
        found = alternate(systems, args.rounds, take, "ms")
    ours = [name for name in found if name.startswith("dragoman")]
    figures: dict[str, Any] = {
        "what": f"{len(pairs)} sentences one by one, beam {args.beam_size}, one thread",
        "corpus": corpus.name,
        "weights": "trained" if args.run else f"random {args.preset}, {args.steps} steps",
        "systems": summary(found, ("ms", "p10_ms", "p90_ms", "peak_mib")),
        "times_faster": ratios(found, "ms", ours, [name for name in found if name not in ours], inverse=True),
        "left_out": left_out,
    }
    save("latency", figures, command("latency", parser, args))


if __name__ == "__main__":
    main()
