"""Decoding throughput: dragoman, CTranslate2 and Hugging Face with the same weights and beam, in turns.

``--run`` gives a trained run; without it, weights are random. Random weights never end a sentence, so all decode the
same number of steps. Every system is first swept for its best batch size and worker setting, CTranslate2
with batches counted in sentences and in tokens. Where the run has a shortlist, both also search with it. ``--marian``
adds Marian itself, for a run that ``dragoman import`` made of its model.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.harness.arguments import command
from benchmarks.harness.carry import random_bundle
from benchmarks.harness.corpus import captions, subwords
from benchmarks.harness.decoders import (
    Decoder,
    Job,
    Setting,
    able,
    carried_over,
    ct2,
    dragoman,
    hf,
    job,
    marian,
    texts_of,
)
from benchmarks.harness.peer import System
from benchmarks.harness.rounds import Figures, alternate, once, ratios, summary
from benchmarks.record import save

TOKENS = (256, 512, 1024, 2048)
DECODERS = (
    dragoman("fp32"), dragoman("bf16"), dragoman("bf16", stop="safe"),
    dragoman("bf16", vocabulary="shortlist"),
    ct2("fp32"), ct2("int8"), ct2("int8", TOKENS, batch_type="tokens"), ct2("int8", vocabulary="shortlist"),
    hf("fp32"), hf("bf16"),
)  # fmt: skip
SCORED = 50
"""Sentences whose log-probabilities are compared between the systems."""


def quality(outputs: dict[str, list[str]], refs: list[str]) -> dict[str, dict[str, float]]:
    """BLEU of each system, and the share of its translations that are those of dragoman in fp32."""
    import sacrebleu

    ours = outputs["dragoman fp32"]
    return {
        name: {
            "bleu": round(sacrebleu.corpus_bleu(texts, [refs]).score, 2),
            "identical_percent": round(100 * sum(a == b for a, b in zip(ours, texts, strict=True)) / len(texts), 1),
        }
        for name, texts in outputs.items()
    }


def plain_outputs(work: Job, found: Mapping[str, tuple[Decoder, Setting]]) -> dict[str, list[str]]:
    """Translations by the systems in fp32 without length penalty, whose formulas differ: all seek the likeliest."""
    plain = work._replace(length_penalty=0.0)
    return {
        name: texts_of(once(plain.system(decoder, at.workers, at.threads), what="translate", batch=at.batch), work)
        for name, (decoder, at) in found.items()
        if decoder.precision == "fp32"
    }


def compare(work: Job, rounds: int, decoders: Any = DECODERS) -> dict[str, Any]:
    """Sweep, check that all have the same weights, let all take turns."""
    found, sweeps, left_out = able(decoders, work)
    carried = carried_over(work, found, SCORED)
    outputs: dict[str, list[str]] = {}

    def take(system: System) -> Figures:
        answer = once(system, what="translate", batch=found[system.name][1].batch)
        outputs[system.name] = texts_of(answer, work)
        speed = len(work.pairs) / answer["seconds"]
        return {key: answer[key] for key in ("versions", "peak_mib", "seconds")} | {"sentences_per_s": speed}

    systems = [work.system(decoder, setting.workers, setting.threads) for decoder, setting in found.values()]
    runs = alternate(systems, rounds, take, "sentences_per_s")
    # where the number of steps is given, systems end differently, so that what they find cannot be compared
    refs = [ref for _, ref in work.pairs]
    told = quality(outputs, refs) if work.steps is None else {}
    table = summary(runs, ("sentences_per_s", "seconds", "peak_mib"))
    for name, (_, setting) in found.items():
        table[name] |= {"setting": setting._asdict(), **told.get(name, {})}
    ours = [name for name in found if name.startswith("dragoman")]
    return {
        "beam_size": work.beam_size,
        "length_penalty": work.length_penalty,
        "steps": work.steps,
        "sentences": len(work.pairs),
        "systems": table,
        "ratios": ratios(runs, "sentences_per_s", ours, [name for name in found if name not in ours]),
        "log_prob_difference": carried,
        "without_length_penalty": quality(plain_outputs(work, found), refs) if work.steps is None else {},
        "sweeps": sweeps,
        "left_out": left_out,
    }


def main() -> None:
    """Compare with trained weights, with random ones, or both, and record."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="a folder with multi30k/ (without it: the embedded corpus)")
    parser.add_argument("--run", type=Path, help="a trained run (without it: random weights of the first preset)")
    parser.add_argument("--marian", type=Path, help="the folder of Marian's training that --run was imported from")
    parser.add_argument("--presets", nargs="+", default=["small", "base"], help="the first one is the run's, if given")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--sentences", type=int, default=1000)
    parser.add_argument("--beam-size", type=int, default=5)
    parser.add_argument("--length-penalty", type=float, default=1.0)
    parser.add_argument("--steps", type=int, default=14, help="tokens of each translation by random weights")
    parser.add_argument("--vocab-size", type=int, default=8000, help="of random weights")
    args = parser.parse_args()
    corpus = captions(args.data, n_test=args.sentences)
    figures: dict[str, Any] = {"corpus": corpus.name, "presets": {}}
    for i, preset in enumerate(args.presets):
        with tempfile.TemporaryDirectory() as name:
            folder, trained = Path(name), args.run if i == 0 else None
            bundle = trained or random_bundle(folder / "run", subwords(corpus.train, args.vocab_size), preset)
            steps = None if trained else args.steps
            work = job(bundle, corpus.test, folder, args.beam_size, args.length_penalty, steps)
            decoders = DECODERS
            if args.marian and trained:
                work.models["marian"], decoders = args.marian.resolve(), (*DECODERS, marian("fp32"), marian("int8"))
            compared = compare(work, args.rounds, decoders)
            figures["presets"][preset] = {"weights": "trained" if trained else "random", **compared}
    save("decoding", figures, command("decoding", parser, args))


if __name__ == "__main__":
    main()
