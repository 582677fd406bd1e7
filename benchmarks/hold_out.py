"""Pairs of a hold-out that stand in the training text, exactly or nearly: ``dragoman train`` without validation text.

python -m benchmarks.hold_out before|after DATA

Judged from the stores of the run alone, with a rule of its own: a near twin has the same words on a side (regardless of
case, punctuation and numbers), or six words or more on a side of which nine tenths are the same.
"""

from __future__ import annotations

import os
import random
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.scripts_record import record

SEED, PAIRS = 42, 6_000
SMALL = (
    "model.preset=tiny", "model.d_model=32", "model.d_ff=64", "model.n_encoder_layers=1", "model.n_decoder_layers=1",
    "train.max_steps=1", "train.validate_every=1", "train.save_every=1",
)  # fmt: skip
WORD = re.compile(r"[\u3040-\u30ff\u4e00-\u9fff]|\d+|[^\W\d_\u3040-\u30ff\u4e00-\u9fff]+")

Pair = tuple[str, str]


def corpora(data: Path) -> dict[str, list[Pair]]:
    """Return the corpora, each with a habit of its own."""

    def read(stem: str, src: str, tgt: str) -> list[Pair]:
        sides = [(data / f"{stem}.{lang}").read_text(encoding="utf-8").split("\n")[:-1] for lang in (src, tgt)]
        return list(zip(*sides, strict=True))

    def drawn(pairs: list[Pair], n: int = PAIRS) -> list[Pair]:
        start = random.Random(SEED).randrange(max(1, len(pairs) - n))
        return pairs[start : start + n]

    captions = read("multi30k/train", "cs", "fr")
    variants = drawn(captions, 3000)
    shuffled = [*variants, *((src.upper(), tgt.rstrip(".") + " !") for src, tgt in variants)]
    random.Random(SEED).shuffle(shuffled)
    return {
        "captions cs-fr": drawn(captions),
        "short sentences zh-en": drawn(read("tatoeba-en-zh/train", "zh", "en")),
        "manuals en-zh": drawn(read("pydocs-en-zh/train", "en", "zh")),
        "law fr-en, three times over": drawn(read("justice-en-fr/dev", "fr", "en"), 1500) * 3,
        "captions with variants, shuffled": shuffled,
        "short sentences de-en, each hundredth blank": [
            ("", "") if i % 100 == 99 else pair for i, pair in enumerate(drawn(read("tatoeba-en-de/train", "de", "en")))
        ],
    }  # fmt: skip


def words(text: str) -> tuple[str, ...]:
    """Return the words of a text, numbers as 0."""
    return tuple("0" if word.isdigit() else word for word in WORD.findall(text.lower())) or (text.strip(),)


def twins(held_out: Sequence[Pair], train: Sequence[Pair]) -> dict[str, int]:
    """Return how many held-out pairs stand in the training text: as they are, or nearly."""
    exact, same, near = set(train), [set(map(words, side)) for side in zip(*train, strict=True)], 0
    bags = [[Counter(words(text)) for text in side] for side in zip(*train, strict=True)]
    counts = Counter[str]()
    for pair in held_out:
        counts["pairs"] += pair in exact
        is_near = any(words(text) in known for text, known in zip(pair, same, strict=True))
        for text, known_bags in zip(pair, bags, strict=True):
            bag = Counter(words(text))
            n = bag.total()
            if is_near or n < 6:
                continue
            is_near = any(
                0.9 <= n / other.total() <= 1 / 0.9 and (bag & other).total() >= 0.9 * max(n, other.total())
                for other in known_bags
            )
        near += is_near
    return {"held out": len(held_out), "in the training text": counts["pairs"], "or nearly": near}


def run_of(pairs: Sequence[Pair], folder: Path) -> dict[str, Any]:
    """Train on pairs for one update, and judge its hold-out."""
    from dragoman.bundle import load_tokenizers
    from dragoman.data.store import Store

    for side, lang in enumerate(("src", "tgt")):
        (folder / f"text.{lang}").write_text("".join(pair[side] + "\n" for pair in pairs), encoding="utf-8")
    settings = [word for setting in SMALL for word in ("--set", setting)]
    done = subprocess.run(
        [sys.executable, "-m", "dragoman", "train", "text.src", "text.tgt", "--out", "run", *settings], cwd=folder,
        capture_output=True, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"}, check=False,
    )  # fmt: skip
    if done.returncode:
        return {"failed": done.stderr.strip().split("\n")[-1].replace(str(folder), "")}
    train, valid = Store.open(folder / "run/store/train"), Store.open(folder / "run/store/valid")
    tokenizers = load_tokenizers(folder / "run/store")
    rows = [train.pair(i) for i in range(len(train))]
    sides = [tokenizer.decode([row[side].tolist() for row in rows]) for side, tokenizer in enumerate(tokenizers)]
    held_out = list(zip(*valid.texts(range(len(valid))), strict=True))
    return {"pairs": len(pairs), "for training": len(train), **twins(held_out, list(zip(*sides, strict=True)))}


def measure(data: Path) -> dict[str, Any]:
    """Return the figures of every corpus."""
    figures = {}
    for name, pairs in corpora(data).items():
        with tempfile.TemporaryDirectory() as folder:
            figures[name] = run_of(pairs, Path(folder))
        print(name, figures[name], file=sys.stderr)
    return figures


def main() -> None:
    """Measure, and write the record."""
    when, data = sys.argv[1], Path(sys.argv[2])
    figures = measure(data)
    inputs = {"rule": "a stretch of each corpus, from a line drawn by seed; see corpora()", "seed": SEED}
    record("hold_out", when, figures, inputs, folder="newcomer")


if __name__ == "__main__":
    main()
