"""What ``train --minutes`` chooses, against sizes chosen by hand, in the same time on the same text.

20,000 pairs of Tatoeba (every 8th) and Multi30k, English-German. Each row is one run of one thread, and its minutes are
those of its process (CPU time), so that a busy machine takes longer but changes little. Rows are compared by nats per
character of 250 held-out references, which does not depend on the subwords, and by chrF of their translations, beam 4.
A run that is there already is taken as it is.
"""

from __future__ import annotations

import argparse
import itertools
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch

import dragoman
from benchmarks.harness.arguments import command
from benchmarks.harness.runs import events, last
from benchmarks.record import save
from dragoman.bundle import load_bundle
from dragoman.data.batching import collate
from dragoman.data.corpus import read_pairs
from dragoman.evaluation.metrics import chrf
from dragoman.training import loop, speed
from dragoman.training.loss import label_smoothed_loss

CORPORA = {"tatoeba": ("tatoeba-en-de", "train", "dev", 8, 20_000), "multi30k": ("multi30k", "train", "val", 1, 29_000)}
"""Folder, training and held-out text, which pairs are taken (every so many-th), and how many at most."""

N_HELD_OUT = 250
NEVER = 10_000_000
RARE = [f"train.{name}={NEVER}" for name in ("validate_every", "save_every")]
"""Nothing but training in the time."""

BY_HAND = {
    f"width {width}, {layers} + {layers} layers, batches of {batch:,}": [
        f"model={{d_model: {width}, d_ff: {4 * width}, n_heads: 4, n_encoder_layers: {layers}, "
        f"n_decoder_layers: {layers}, norm: pre, dropout: 0.1}}",
        f"train.batch_tokens={batch}",
        f"train.max_steps={NEVER}",
        f"train.warmup_steps={NEVER // 10}",
        "data.tokenizer.vocab_size=8000",
    ]
    for (width, layers), batch in itertools.product(((128, 2), (256, 3)), (1024, 4096))
}
"""With the peak rate and the subwords that are chosen without a limit, 1.5e-3 and 8,000."""


def prepared(data: Path, name: str, folder: Path) -> None:
    """Write the text of a corpus: train, valid (20 pairs, so that validation takes no time) and test."""
    where, train, held_out, every, most = CORPORA[name]
    folder.mkdir(parents=True, exist_ok=True)
    read = [list(read_pairs(data / where / f"{part}.en", data / where / f"{part}.de")) for part in (train, held_out)]
    parts = {
        "train": read[0][::every][:most],
        "test": read[1][:N_HELD_OUT],
        "valid": read[1][N_HELD_OUT : N_HELD_OUT + 20],
    }
    for part, pairs in parts.items():
        for side, end in enumerate(("en", "de")):
            (folder / f"{part}.{end}").write_text("".join(f"{pair[side]}\n" for pair in pairs), encoding="utf-8")


def by_cpu_time() -> None:
    """Let training count the time of this process, not of the clock on the wall."""
    clock = SimpleNamespace(perf_counter=time.process_time, monotonic=time.monotonic)
    loop.time = speed.time = clock  # type: ignore[assignment, attr-defined]


def trained(run: Path, text: Path, minutes: float, settings: list[str]) -> None:
    """Train for so many minutes; without settings, by what is chosen."""
    dragoman.train(
        [text / "train.en", text / "train.de"], valid=[text / "valid.en", text / "valid.de"], out=run, minutes=minutes,
        overrides=[*settings, *RARE], quiet=True,
    )  # fmt: skip


@torch.inference_mode()
def measured(run: Path, text: Path) -> dict[str, Any]:
    """Nats per character and chrF of the held-out text, and how the run was trained."""
    bundle, end = load_bundle(run), last(events(run), "end")
    config, model = bundle.config, bundle.model.eval()
    sources, references = zip(*read_pairs(text / "test.en", text / "test.de"), strict=True)
    ids = bundle.src_tokenizer.encode(sources), bundle.tgt_tokenizer.encode(references)
    nats = 0.0
    for some in (slice(i, i + 50) for i in range(0, len(sources), 50)):
        batch = collate(ids[0][some], ids[1][some], np.arange(len(ids[0][some])))
        nats += label_smoothed_loss(model(batch.src, batch.tgt_in), batch.tgt_out, 0, 0.0)[1].item()
    found = dragoman.Translator(bundle).translate(list(sources), beam_size=4)
    return {
        "d_model": config.model.d_model,
        "layers": config.model.n_encoder_layers,
        "subwords": config.data.tokenizer.vocab_size,
        "batch_tokens": config.train.batch_tokens,
        "lr": config.train.lr,
        "precision": config.train.precision,
        "parameters": sum(parameter.numel() for parameter in model.parameters()),
        "updates": end["step"],
        "target_tokens": end["tokens"],
        "nats_per_character": round(nats / sum(len(reference) + 1 for reference in references), 4),
        "chrf": round(chrf([one.text for one in found], list(references)).value, 2),
    }


def main() -> None:
    """Train what is not there yet, measure all, and save."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.questions.automatic", description=__doc__)
    parser.add_argument("data", type=Path, help="folder with tatoeba-en-de/ and multi30k/")
    parser.add_argument("--runs", type=Path, default=Path("runs/automatic"))
    parser.add_argument("--minutes", type=float, nargs="+", default=[2.5, 10.0])
    parser.add_argument("--corpus", choices=tuple(CORPORA), action="append", help="only this one")
    parser.add_argument("--only", type=int, nargs="+", help="rows: 0 is automatic, 1 to 4 are by hand")
    args = parser.parse_args()
    torch.set_num_threads(1)
    by_cpu_time()
    figures: dict[str, Any] = {}
    rows: dict[str, list[str]] = {"automatic": [], **BY_HAND}
    for corpus, minutes in itertools.product(args.corpus or CORPORA, args.minutes):
        text = args.runs / corpus
        prepared(args.data, corpus, text)
        for i, (name, settings) in enumerate(rows.items()):
            if args.only and i not in args.only:
                continue
            run = args.runs / f"{corpus}-{minutes:g}-{i}"
            if not (run / "bundle").is_dir():
                trained(run, text, minutes, settings)
            row = measured(run, text)
            print(corpus, name, row, file=sys.stderr, flush=True)
            figures.setdefault(f"{corpus}, {minutes:g} minutes", {})[name] = row
    save("automatic", figures, command("automatic", parser, args))


if __name__ == "__main__":
    main()
