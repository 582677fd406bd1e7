"""The translators that pages of the site hold: a small model that the build trains on short sentences, and the walk's.

The small model takes some minutes to train on one core, and is kept in docs/_build/translator for the next build. It is
no file of the repository: nothing binary is there, and the page is what ``dragoman export --format page`` writes now.
"""

from __future__ import annotations

import base64
import hashlib
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import walk
from dragoman import __version__
from dragoman.config import Config
from dragoman.data import phrasebook
from dragoman.toolkits.export import export
from dragoman.toolkits.page.write import page_of
from dragoman.training.run import train

LONGEST = 8
"""Words of the English sentences: short ones are learned sooner."""
PAIRS = 20_000
VALID = 200
RECIPE: dict[str, Any] = {
    "model": {
        "preset": "tiny", "d_model": 96, "d_ff": 384, "n_encoder_layers": 2, "n_decoder_layers": 2, "norm": "pre",
        "dropout": 0.0,
    },
    "data": {"src_lang": "en", "tokenizer": {"vocab_size": 800}},
    "train": {
        "max_steps": 600, "batch_tokens": 2048, "schedule": "cosine", "lr": 4e-3, "warmup_steps": 60, "clip_norm": 1.0,
        "ema": 0.99, "average": 0, "validate_every": 600, "save_every": 600, "precision": "fp32",
    },
    "decode": {"beam_size": 4},
}  # fmt: skip


def write(tgt_lang: str, kept: Path, page: Path) -> None:
    """Write the translator from English as one HTML file.

    Args:
        tgt_lang: ``de`` or ``zh``.
        kept: Where the trained model is, or comes to be.
        page: The file.
    """
    key = hashlib.sha256(json.dumps([RECIPE, LONGEST, PAIRS, tgt_lang]).encode()).hexdigest()[:12]
    run = kept / f"{tgt_lang}-{key}"
    if not (run / "bundle/manifest.json").is_file():
        shutil.rmtree(run, ignore_errors=True)
        files = {
            name: short_pairs(run / "corpus", name, tgt_lang, count, split, seed)
            for name, count, split, seed in (("train", PAIRS, "train", 1), ("valid", VALID, "held_out", 2))
        }
        data = {**RECIPE["data"], "tgt_lang": tgt_lang, **files}
        train(Config.from_mapping({**RECIPE, "data": data}), out=run, quiet=True)
    page.parent.mkdir(parents=True, exist_ok=True)
    export(run, "page", page, "int8")


def write_walk(page: Path) -> None:
    """Write the model of the walk as one HTML file: every word of its two vocabularies is a subword there."""
    stored = json.loads(walk.WEIGHTS.read_text(encoding="utf-8"))
    arrays = {name: np.array(values, "<f4") for name, values in stored["weights"].items()}
    content = {
        "config": stored["config"], "special": {"pad": 0, "unk": 1, "bos": 2, "eos": 3},
        "subwords": [words(vocabulary) for vocabulary in walk.vocabularies()],
        "decode": {"beamSize": 1, "alpha": 0.6, "form": "gnmt", "patience": None, "maxExtra": 4},
        "most": 12, "positions": None, "targets": None, "src_lang": "en", "tgt_lang": "de", "unspaced": [],
        "tensors": [(name, array.shape, False) for name, array in arrays.items()],
        "facts": {
            "parameters": sum(array.size for array in arrays.values()), "quantization": "float32",
            "dragoman": __version__,
        },
    }  # fmt: skip
    page.parent.mkdir(parents=True, exist_ok=True)
    weights = base64.b64encode(b"".join(array.tobytes() for array in arrays.values())).decode()
    page.write_text(page_of(content, weights), encoding="utf-8")


def words(vocabulary: list[str]) -> dict[str, Any]:
    """Return a vocabulary of whole words in the form that the scripts of the page read."""
    return {
        "kind": "unigram", "normaliser": {"map": "", "prefix": True, "trim": True, "compose": False},
        "pieces": [*vocabulary[:4], *(f"\u2581{word}" for word in vocabulary[4:])],
        "scores": base64.b64encode(np.full(len(vocabulary), -1, "<f4").tobytes()).decode(),
        "unused": [], "silent": [], "bytes": [],
    }  # fmt: skip


def short_pairs(folder: Path, name: str, tgt_lang: str, count: int, split: str, seed: int) -> dict[str, Path]:
    """The first short sentences of the embedded corpus with their translations, as two files."""
    src, tgt = folder / f"{name}.en", folder / f"{name}.{tgt_lang}"
    folder.mkdir(parents=True, exist_ok=True)
    phrasebook.write(6 * count, src, tgt, seed=seed, tgt_lang=tgt_lang, split=split)
    sides = (path.read_text(encoding="utf-8").split("\n")[:-1] for path in (src, tgt))
    pairs = [pair for pair in zip(*sides, strict=True) if len(pair[0].split()) <= LONGEST][:count]
    for path, lines in zip((src, tgt), zip(*pairs, strict=True), strict=True):
        path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return {"src": src, "tgt": tgt}
