"""Training throughput: dragoman, torch.nn.Transformer, Hugging Face's Marian, JoeyNMT and Eole, in turns.

Every turn is a process of its own: build, warm up, train on the same batches, twice. What counts is the second time, as
in an epoch after the first; the speed of the first stands beside it. Tokens are target tokens without padding.
Where tcmalloc is installed, dragoman takes part a second time with it instead of the system's malloc.
JoeyNMT and Eole make batches of their own, so they train through their own commands, on the same pairs, with the best
of a few batch settings, and their logs say their speed.
"""

from __future__ import annotations

import argparse
import ctypes.util
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.harness import eole, joeynmt
from benchmarks.harness.arguments import command
from benchmarks.harness.corpus import Corpus, batches, captions, subwords, write_batches
from benchmarks.harness.peer import System, precisions
from benchmarks.harness.rounds import Figures, alternate, best, once, ratios, summary
from benchmarks.record import save
from dragoman.config import PRESETS
from dragoman.data.batching import Batch
from dragoman.data.tokenizer import Tokenizer

HF = "Hugging Face Marian"
SIZES = ("d_model", "d_ff", "n_heads", "n_encoder_layers", "n_decoder_layers")
FIGURES = ("tokens_per_s", "first_pass_tokens_per_s", "peak_mib", "step_ms", "gflop_per_s", "first_loss", "last_loss")


def sizes_of(preset: str, **other: int) -> dict[str, Any]:
    """The widths and depths of a preset, some of them changed."""
    return {name: PRESETS[preset][name] for name in SIZES} | other


def systems(path: Path, sizes: dict[str, Any], vocab_size: int, attention: dict[str, str]) -> list[System]:
    """All that train on the batches in ``path``; ``attention`` is Hugging Face's, by the precision of each."""
    shared = {"batches": str(path), "sizes": sizes, "vocab_size": vocab_size}
    found = []
    for precision, kind in attention.items():
        settings = {**shared, "precision": precision}
        hf = {**settings, "attention": kind}
        found += [
            System(f"dragoman {precision}", "dragoman", "ours_train.py", settings),
            System(f"torch.nn.Transformer {precision}", "dragoman", "torch_train.py", settings),
            System(f"{HF} {precision}", "transformers", "hf_train.py", hf),
        ]
    return found


def in_order(pairs: Sequence[tuple[str, str]], chosen: Sequence[Batch]) -> list[tuple[str, str]]:
    """The text of the batches, one after the other."""
    return [pairs[i] for batch in chosen for i in batch.indices.tolist()]


def commands(
    pairs: Sequence[tuple[str, str]],
    tokenizer: Tokenizer,
    sizes: dict[str, Any],
    batch_tokens: int,
    log_every: int,
    able: Sequence[str],
) -> dict[str, tuple[Callable[..., Figures], list[dict[str, Any]]]]:
    """The systems that train through their own command in the precisions in ``able``, each with the batches to try.

    JoeyNMT draws batches by chance; it also gets our length-sorted order as it comes. Eole sorts by length itself.
    """
    amounts = [{"batch_tokens": amount} for amount in (batch_tokens // 2, batch_tokens, 2 * batch_tokens)]
    both = [{**amount, "shuffle": shuffle} for shuffle in (True, False) for amount in amounts]
    shared = (list(pairs) * 3, tokenizer, sizes)
    eoles = {f"Eole {precision}": (partial(eole.train, *shared, precision, log_every), amounts) for precision in able}
    return {"JoeyNMT fp32": (partial(joeynmt.train, *shared, log_every=log_every), both), **eoles}


def best_attention(
    path: Path, sizes: dict[str, Any], vocab_size: int, warm: int, able: Sequence[str]
) -> tuple[dict[str, str], dict[str, Any]]:
    """Hugging Face's faster kind of attention for each precision, and what was tried."""
    attention, sweeps = {}, {}
    for precision in able:
        name = f"{HF} {precision}"

        def speed_of(kind: str, name: str = name, precision: str = precision) -> float:
            among = systems(path, sizes, vocab_size, {precision: kind})
            return float(once(next(one for one in among if one.name == name), warm=warm)["tokens_per_s"])

        attention[precision], sweeps[name] = best(name, ["eager", "sdpa"], speed_of)
    return attention, sweeps


def compare(corpus: Corpus, preset: str, args: argparse.Namespace) -> dict[str, Any]:
    """Sweep the settings of the peers, let all take turns; the figures of one preset."""
    sizes, warm, (able, left_out) = sizes_of(preset), args.warm, precisions()
    tokenizer: Tokenizer = subwords(corpus.train, args.vocab_size)
    chosen = batches(corpus.train, tokenizer, args.batch_tokens, warm + args.steps)
    pairs = in_order(corpus.train, chosen)
    with tempfile.TemporaryDirectory() as folder:
        path = write_batches(chosen, Path(folder) / "batches.npz")
        short = write_batches(chosen[: warm + max(2, args.steps // 4)], Path(folder) / "short.npz")

        attention, sweeps = best_attention(short, sizes, tokenizer.vocab_size, warm, able)
        taking_part = systems(path, sizes, tokenizer.vocab_size, attention)
        if (tcmalloc := ctypes.util.find_library("tcmalloc_minimal")) is not None:
            taking_part.append(taking_part[0]._replace(name=f"{taking_part[0].name}, tcmalloc", preload=tcmalloc))
        turn: dict[str, Callable[[], Figures]] = {}
        own = commands(pairs, tokenizer, sizes, args.batch_tokens, max(1, (warm + args.steps) // 6), able)
        for name, (train, settings) in own.items() if preset in args.commands else ():
            setting, sweeps[name] = best(name, settings, lambda setting, train=train: train(**setting)["tokens_per_s"])
            turn[name] = partial(train, **setting)
            taking_part.append(System(name, "", "", {}))

        def take(system: System) -> Figures:
            return turn[system.name]() if system.name in turn else once(system, warm=warm)

        found = alternate(taking_part, args.rounds, take, "tokens_per_s")
    ours = [f"dragoman {precision}" for precision in able]
    peers = [system.name for system in taking_part if system.name not in ours]
    return {
        "sizes": sizes,
        "sweeps": sweeps,
        "systems": summary(found, FIGURES),
        "ratios": ratios(found, "tokens_per_s", ours, peers),
        "left_out": left_out,
    }


def main() -> None:
    """Compare at one or more sizes and record."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="a folder with multi30k/ (without it: the embedded corpus)")
    parser.add_argument("--presets", nargs="+", default=["small", "base"], choices=sorted(PRESETS))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=12, help="batches that are timed in a turn")
    parser.add_argument("--warm", type=int, default=3, help="batches before them")
    parser.add_argument("--batch-tokens", type=int, default=4096)
    parser.add_argument("--vocab-size", type=int, default=8000)
    parser.add_argument(
        "--commands", nargs="*", default=["small", "base"], choices=sorted(PRESETS), metavar="PRESET",
        help="the presets at which JoeyNMT and Eole take part (nothing: at none)",
    )  # fmt: skip
    args = parser.parse_args()
    corpus = captions(args.data)
    figures = {
        "what": f"{args.steps} batches of {args.batch_tokens} tokens, seen once before, dropout 0.1, 2 threads",
        "corpus": corpus.name,
        "presets": {preset: compare(corpus, preset, args) for preset in args.presets},
    }
    save("training", figures, command("training", parser, args))


if __name__ == "__main__":
    main()
