"""How fast this processor multiplies, by size and precision, and what share of it a whole training step reaches."""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.harness.arguments import command
from benchmarks.harness.corpus import batches, captions, subwords, write_batches
from benchmarks.harness.peer import PeerError, System, lacking, precisions, started
from benchmarks.harness.rounds import once, say
from benchmarks.record import save, spread
from benchmarks.training import sizes_of

WAYS = ("fp32", "fp32 medium", "bf16", "bf16 prepared", "int8, both given")
OF_A_STEP = {"fp32": ("fp32",), "bf16": ("bf16", "bf16 prepared")}
"""The ways to which a training step of a precision is compared."""
ROWS = (1, 5, 20, 80, 320, 1280, 5120)
PRODUCTS = (
    *((rows, 512, 2048) for rows in ROWS),
    (5, 512, 512), (320, 512, 512), (5120, 512, 512), (320, 512, 8000), (5120, 512, 8000), (5120, 256, 1024),
    (5120, 1024, 4096),
)  # fmt: skip
"""Rows x inner width x columns: BASE's feed-forward network from one row to many, and what else the models multiply."""


def products(seconds: float, rounds: int) -> tuple[list[dict[str, Any]], dict[str, str]]:
    """GFLOP/s of each product in each way, the ways taking turns; and the ways that torch does not offer here."""
    table, refused = [], {way: lacking("bf16") for way in WAYS if way.startswith("bf16") and lacking("bf16")}
    with started(System("products", "dragoman", "products.py", {"seconds": seconds})) as ask:
        for m, k, n in PRODUCTS:
            found: dict[str, list[float]] = {way: [] for way in WAYS if way not in refused}
            for _ in range(rounds):
                for way in list(found):
                    try:
                        found[way].append(ask(m=m, k=k, n=n, how=way)["gflop_per_s"])
                    except PeerError as error:
                        if not error.refusal:
                            raise
                        refused[way] = error.refusal
                        del found[way]
                        say(f"left out: {way}: {refused[way]}")
            speeds = {way: spread([round(value, 1) for value in values]) for way, values in found.items()}
            table.append({"rows": m, "inner": k, "columns": n, "gflop_per_s": speeds})
            say(f"{m}x{k}x{n}: " + ", ".join(f"{way} {value['median']:,.0f}" for way, value in speeds.items()))
    return table, refused


def peak(table: list[dict[str, Any]], ways: Sequence[str]) -> float:
    """The most that one of these ways reaches at any size, GFLOP/s."""
    return max(row["gflop_per_s"][way]["median"] for row in table for way in ways if way in row["gflop_per_s"])


def main() -> None:
    """Measure products and steps, and record."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, help="a folder with multi30k/ (without it: the embedded corpus)")
    parser.add_argument("--presets", nargs="+", default=["small", "base"])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=0.5, help="for each product")
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--warm", type=int, default=3)
    parser.add_argument("--batch-tokens", type=int, default=4096)
    args = parser.parse_args()
    table, refused = products(args.seconds, args.rounds)
    able, _ = precisions()
    corpus = captions(args.data)
    tokenizer = subwords(corpus.train, 8000)
    chosen = batches(corpus.train, tokenizer, args.batch_tokens, args.warm + args.steps)
    steps: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as name:
        path = write_batches(chosen, Path(name) / "batches.npz")
        for preset in args.presets:
            for precision in able:
                settings = dict(
                    batches=str(path), sizes=sizes_of(preset), vocab_size=tokenizer.vocab_size, precision=precision
                )
                system = System(f"{preset} {precision}", "dragoman", "ours_train.py", settings)
                speeds = [once(system, warm=args.warm)["gflop_per_s"] for _ in range(args.rounds)]
                most = peak(table, OF_A_STEP[precision])
                steps[system.name] = {
                    "gflop_per_s": spread(speeds), "peak_gflop_per_s": most,
                    "percent_of_peak": round(100 * spread(speeds)["median"] / most, 1),
                }  # fmt: skip
                say(f"{system.name}: {steps[system.name]['percent_of_peak']} % of {most:,.0f} GFLOP/s")
    figures = {"corpus": corpus.name, "products": table, "left_out": refused, "training_steps": steps}
    save("roofline", figures, command("roofline", parser, args))


if __name__ == "__main__":
    main()
