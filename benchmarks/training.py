"""Training throughput: dragoman, torch.nn.Transformer, Hugging Face's Marian, JoeyNMT and Eole, in turns.

Every turn is a process of its own: build, warm up, train on the same batches, twice. What counts is the second time, as
in an epoch after the first; the speed of the first stands beside it. Tokens are target tokens without padding.
Hugging Face takes part at its best: with the faster attention, and then with our habits of malloc, in two processes of
a thread, or compiled (``--compile``: that takes minutes, and a C++ compiler), each tried once and kept if it is faster.
Where tcmalloc is installed, dragoman and Hugging Face take part a second time with it instead of the system's malloc.
JoeyNMT and Eole make batches of their own, so they train through their own commands, on the same pairs, with the best
of a few batch settings, and their logs say their speed.
"""

from __future__ import annotations

import argparse
import ctypes.util
import tempfile
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.harness import eole, joeynmt
from benchmarks.harness.arguments import command
from benchmarks.harness.corpus import Corpus, batches, captions, subwords, write_batches
from benchmarks.harness.peer import PeerError, System, precisions
from benchmarks.harness.rounds import Figures, alternate, best, once, ratios, say, summary
from benchmarks.record import save
from dragoman.cli.environment import MALLOPT
from dragoman.config import PRESETS
from dragoman.data.batching import Batch
from dragoman.data.tokenizer import Tokenizer

HF = "Hugging Face Marian"
SIZES = ("d_model", "d_ff", "n_heads", "n_encoder_layers", "n_decoder_layers")
FIGURES = ("tokens_per_s", "first_pass_tokens_per_s", "peak_mib", "step_ms", "gflop_per_s", "first_loss", "last_loss")


def sizes_of(preset: str, **other: int) -> dict[str, Any]:
    """The widths and depths of a preset, some of them changed."""
    return {name: PRESETS[preset][name] for name in SIZES} | other


def systems(path: Path, sizes: dict[str, Any], vocab_size: int, hf: Mapping[str, Mapping[str, Any]]) -> list[System]:
    """All that train on the batches in ``path``; ``hf`` are Hugging Face's settings, by the precision of each."""
    shared = {"batches": str(path), "sizes": sizes, "vocab_size": vocab_size}
    found = []
    for precision, chosen in hf.items():
        settings = {**shared, "precision": precision}
        found += [
            System(f"dragoman {precision}", "dragoman", "ours_train.py", settings),
            System(f"torch.nn.Transformer {precision}", "dragoman", "torch_train.py", settings),
            System(f"{HF} {precision}", "transformers", "hf_train.py", {**settings, **chosen}),
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


def variants(compiled: bool) -> list[dict[str, Any]]:
    """What may make Hugging Face faster."""
    more: list[dict[str, Any]] = [{"mallopt": {str(name): value for name, value in MALLOPT.items()}}, {"processes": 2}]
    return [*more, {"compiled": True}] if compiled else more


def best_settings(
    path: Path, sizes: dict[str, Any], vocab_size: int, args: argparse.Namespace, able: Sequence[str]
) -> tuple[dict[str, dict[str, Any]], dict[str, Any]]:
    """Hugging Face's fastest settings for each precision, and what was tried, each on top of the best before."""
    chosen: dict[str, dict[str, Any]] = {}
    sweeps: dict[str, Any] = {}
    for precision in able:
        name = f"{HF} {precision}"

        def speed_of(settings: dict[str, Any], name: str = name, precision: str = precision) -> float:
            among = systems(path, sizes, vocab_size, {precision: settings})
            try:
                return float(once(next(one for one in among if one.name == name), warm=args.warm)["tokens_per_s"])
            except PeerError as error:
                say(str(error))
                return 0.0

        kept, tried = best(name, [{"attention": kind} for kind in ("eager", "sdpa")], speed_of)
        before = max(one["score"] for one in tried)
        for more in variants(args.compile):
            settings = {**kept, **more}
            _, [found] = best(name, [settings], speed_of)
            tried.append(found)
            if found["score"] > before:
                kept, before = settings, found["score"]
        chosen[precision], sweeps[name] = kept, tried
    return chosen, sweeps


def compare(corpus: Corpus, preset: str, args: argparse.Namespace) -> dict[str, Any]:
    """Sweep the settings of the peers, let all take turns; the figures of one preset."""
    sizes, warm, (able, left_out) = sizes_of(preset), args.warm, precisions()
    tokenizer: Tokenizer = subwords(corpus.train, args.vocab_size)
    chosen = batches(corpus.train, tokenizer, args.batch_tokens, warm + args.steps)
    pairs = in_order(corpus.train, chosen)
    with tempfile.TemporaryDirectory() as folder:
        path = write_batches(chosen, Path(folder) / "batches.npz")
        short = write_batches(chosen[: warm + max(2, args.steps // 4)], Path(folder) / "short.npz")

        hf, sweeps = best_settings(short, sizes, tokenizer.vocab_size, args, able)
        taking_part = systems(path, sizes, tokenizer.vocab_size, hf)
        if (tcmalloc := ctypes.util.find_library("tcmalloc_minimal")) is not None:
            both = [one for one in taking_part[:3] if one.script != "torch_train.py"]
            taking_part += [one._replace(name=f"{one.name}, tcmalloc", preload=tcmalloc) for one in both]
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
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=12, help="batches that are timed in a turn")
    parser.add_argument("--warm", type=int, default=3, help="batches before them")
    parser.add_argument("--compile", action="store_true", help="try torch.compile for Hugging Face too")
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
