"""One thing changed at a time, every system taking turns: the batch in decoding; vocabulary and layers in training."""

from __future__ import annotations

import argparse
import statistics
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.harness.arguments import command, one_of
from benchmarks.harness.carry import random_bundle
from benchmarks.harness.corpus import batches, captions, subwords, write_batches
from benchmarks.harness.decoders import ct2, dragoman, hf, job
from benchmarks.harness.peer import PeerError, precisions, started
from benchmarks.harness.rounds import once, say, turns
from benchmarks.record import save, spread
from benchmarks.training import sizes_of, systems

WHAT = ("batch", "vocabulary", "layers")
BATCHES = (1, 4, 16, 64, 256)
VOCABULARIES = (4000, 8000, 16000, 32000)
LAYERS = (1, 2, 3, 6, 12)
DECODERS = (
    *(dragoman(precision) for precision in ("fp32", "bf16")),
    *(ct2(precision) for precision in ("fp32", "int8")),
    *(hf(precision) for precision in ("fp32", "bf16")),
)


def by_batch(args: argparse.Namespace) -> dict[str, Any]:
    """Sentences per second, and seconds until a batch is done, with so many sentences in each; one worker."""
    corpus = captions(args.data)
    found: dict[str, dict[str, list[tuple[float, float]]]] = {}
    left_out: dict[str, str] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        bundle = random_bundle(folder / "run", subwords(corpus.train, args.vocab_size), args.preset)
        work = job(bundle, sorted(corpus.test, key=lambda pair: len(pair[0])), folder, 5, 1.0, args.steps)
        for _, decoder in turns(DECODERS, args.rounds):
            if decoder.name in left_out:
                continue
            speeds: dict[int, list[tuple[float, float]]] = {size: [] for size in args.batches}
            try:
                for threads in (1, 2):
                    with started(work.system(decoder, 1, threads)) as ask:
                        for size in args.batches:
                            ms = ask(what="chunks", batch=size, count=max(size, min(4 * size, args.sentences)))["ms"]
                            speeds[size].append((1000 * size / statistics.mean(ms), statistics.median(ms)))
            except PeerError as error:
                if not error.refusal:
                    raise
                left_out[decoder.name] = error.refusal
                say(f"left out: {decoder.name}: {left_out[decoder.name]}")
                continue
            for size, both in speeds.items():
                found.setdefault(decoder.name, {}).setdefault(str(size), []).append(max(both))
                say(f"{decoder.name}, {size} sentences: {max(both)[0]:,.1f} sentences/s")
    table = {
        name: {
            size: {"sentences_per_s": spread([run[0] for run in runs]), "batch_ms": spread([run[1] for run in runs])}
            for size, runs in sizes.items()
        }
        for name, sizes in found.items()
    }
    what = f"{args.preset}, random weights, {args.steps} steps, beam 5; with one thread or two, whichever does more"
    return {"what": what, "corpus": corpus.name, "systems": table, "left_out": left_out}


def by_training(args: argparse.Namespace, values: tuple[int, ...], what: str) -> dict[str, Any]:
    """Target tokens per second and peak memory of a training step while one size changes."""
    corpus, (able, left_out) = captions(args.data), precisions()
    tokenizer = subwords(corpus.train, min(args.vocab_size, 4000 if what == "vocabulary" else args.vocab_size))
    chosen = batches(corpus.train, tokenizer, args.batch_tokens, args.warm + args.updates)
    found: dict[str, dict[str, list[tuple[float, float]]]] = {}
    with tempfile.TemporaryDirectory() as name:
        path = write_batches(chosen, Path(name) / "batches.npz")
        for value in values:
            layers = dict(n_encoder_layers=value, n_decoder_layers=value) if what == "layers" else {}
            vocab_size = value if what == "vocabulary" else tokenizer.vocab_size
            taking_part = systems(
                path,
                sizes_of(args.preset, **layers),
                vocab_size,
                {precision: {"attention": "eager"} for precision in able},
            )
            for _, system in turns(taking_part, args.rounds):
                answer = once(system, warm=args.warm)
                speed = answer["tokens_per_s"], answer["peak_mib"]
                found.setdefault(system.name, {}).setdefault(str(value), []).append(speed)
                say(f"{what} {value}, {system.name}: {speed[0]:,.0f} tokens/s, {speed[1]:,.0f} MiB")
    table = {
        name: {
            value: {"tokens_per_s": spread([run[0] for run in runs]), "peak_mib": spread([run[1] for run in runs])}
            for value, runs in sizes.items()
        }
        for name, sizes in found.items()
    }
    about = f"{args.preset}, {args.updates} updates of {args.batch_tokens} tokens; the text stays in one vocabulary"
    return {"what": about, "corpus": corpus.name, "systems": table, "left_out": left_out}


def main() -> None:
    """Sweep and record ``sweep_NAME.json``."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", nargs="*", type=one_of(WHAT), help=f"{', '.join(WHAT)} (none: all)")
    parser.add_argument("--data", type=Path, help="a folder with multi30k/ (without it: the embedded corpus)")
    parser.add_argument("--preset", default="small")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--batches", nargs="+", type=int, default=BATCHES)
    parser.add_argument("--vocabularies", nargs="+", type=int, default=VOCABULARIES)
    parser.add_argument("--layers", nargs="+", type=int, default=LAYERS)
    parser.add_argument("--sentences", type=int, default=256)
    parser.add_argument("--steps", type=int, default=14)
    parser.add_argument("--vocab-size", type=int, default=8000)
    parser.add_argument("--updates", type=int, default=6)
    parser.add_argument("--warm", type=int, default=2)
    parser.add_argument("--batch-tokens", type=int, default=2048)
    args = parser.parse_args()
    for what in args.what or WHAT:
        values = {"vocabulary": args.vocabularies, "layers": args.layers}.get(what)
        figures = by_batch(args) if values is None else by_training(args, tuple(values), what)
        save(f"sweep_{what}", figures, command("sweeps", parser, args))


if __name__ == "__main__":
    main()
