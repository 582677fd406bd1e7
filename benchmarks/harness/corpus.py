"""The same text, the same subwords and the same batches for every system."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from dragoman.config import TokenizerConfig
from dragoman.data import phrasebook
from dragoman.data.batching import Batch, collate
from dragoman.data.order import epoch_batches
from dragoman.data.tokenizer import Tokenizer, learn_tokenizers

MULTI30K_TEST = "test_2016_flickr"


class Corpus(NamedTuple):
    """Parallel text; ``name`` is what a result calls it."""

    name: str
    train: list[tuple[str, str]]
    test: list[tuple[str, str]]


def captions(data: Path | None, n_train: int | None = None, n_test: int | None = None) -> Corpus:
    """Multi30k English-German of a folder with ``multi30k/``, or, where it is not there, the embedded corpus.

    Args:
        n_train, n_test: Only so many pairs of each, the first.
    """
    folder = None if data is None else data / "multi30k"
    if folder is not None and (folder / "train.en").is_file():
        sides = [pairs_of(folder / split, "en", "de") for split in ("train", MULTI30K_TEST)]
        return Corpus("multi30k en-de", sides[0][:n_train], sides[1][:n_test])
    train = list(phrasebook.pairs(min(n_train or 30_000, 30_000)))
    test = list(phrasebook.pairs(min(n_test or 1_000, 1_000), split="held_out"))
    return Corpus("embedded phrasebook en-de", train, test)


def long_lines(data: Path | None) -> tuple[str, list[tuple[str, str]]]:
    """Long sentences, English-French of a folder with ``justice-en-fr/``, or eight embedded ones on each line."""
    folder = None if data is None else data / "justice-en-fr"
    if folder is not None and (folder / "dev.en").is_file():
        return "justice en-fr, dev", pairs_of(folder / "dev", "en", "fr")
    pairs = list(phrasebook.pairs(8_000))
    chance = random.Random(1)
    groups = [chance.choices(pairs, k=8) for _ in range(1_000)]
    joined = [(" ".join(src for src, _ in group), " ".join(tgt for _, tgt in group)) for group in groups]
    return "embedded phrasebook en-de, eight sentences a line", joined


def pairs_of(stem: Path, src: str, tgt: str) -> list[tuple[str, str]]:
    """The lines of ``STEM.src`` and ``STEM.tgt``."""
    sides = [stem.with_name(f"{stem.name}.{end}").read_text(encoding="utf-8").split("\n")[:-1] for end in (src, tgt)]
    return list(zip(*sides, strict=True))


def subwords(pairs: Sequence[tuple[str, str]], vocab_size: int) -> Tokenizer:
    """One joint BPE vocabulary; smaller where the text has less."""
    return learn_tokenizers(lambda: pairs, TokenizerConfig(vocab_size=vocab_size))[0]


def batches(pairs: Sequence[tuple[str, str]], tokenizer: Tokenizer, batch_tokens: int, count: int) -> list[Batch]:
    """The first batches of an epoch as training would draw them: length-sorted, shuffled, filled to a budget.

    Raises:
        ValueError: The text has fewer.
    """
    src, tgt = (tokenizer.encode([pair[side] for pair in pairs]) for side in (0, 1))
    lengths = [np.array([len(ids) for ids in side], dtype=np.int32) for side in (src, tgt)]
    chosen = list(epoch_batches(lengths[0], lengths[1], batch_tokens, seed=1, epoch=0))[:count]
    if len(chosen) < count:
        raise ValueError(f"this corpus has {len(chosen)} batches of {batch_tokens} tokens, not {count}: ask for fewer")
    return [collate([src[i] for i in ids], [tgt[i] for i in ids], ids) for ids in chosen]


def write_batches(batches: Sequence[Batch], path: Path) -> Path:
    """As ``.npz``, which every system reads: ``src.I``, ``tgt_in.I``, ``tgt_out.I``, each ``(B, L)`` int64."""
    names = ("src", "tgt_in", "tgt_out")
    np.savez(path, **{f"{name}.{i}": getattr(b, name).numpy() for i, b in enumerate(batches) for name in names})
    return path
