"""JoeyNMT through its own command line; its speed is what its own log says."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from benchmarks.harness.command import reported_speed, watched
from benchmarks.harness.environments import python_of
from dragoman.data.tokenizer import Tokenizer

SAYS = r"Step: .*Batch Loss: +([\d.]+).*Tokens per Sec: +(\d+)"
"""A report: its loss and its target tokens a second."""


def configuration(
    folder: Path, sizes: dict[str, Any], batch_tokens: int, shuffle: bool, updates: int, log_every: int
) -> dict[str, Any]:
    """What its ``train`` reads: post-norm, ReLU, tied embeddings, dropout 0.1, label smoothing, Adam, as ours."""

    def stack(n_layers: int) -> dict[str, Any]:
        d_model = sizes["d_model"]
        return {
            "type": "transformer", "num_layers": n_layers, "num_heads": sizes["n_heads"], "hidden_size": d_model,
            "embeddings": {"embedding_dim": d_model, "scale": True, "dropout": 0.1}, "ff_size": sizes["d_ff"],
            "dropout": 0.1, "layer_norm": "post", "activation": "relu",
        }  # fmt: skip

    side = {
        "max_length": 256, "lowercase": False, "normalize": False, "level": "bpe", "voc_min_freq": 0,
        "voc_file": str(folder / "vocabulary.txt"), "tokenizer_type": "sentencepiece",
        "tokenizer_cfg": {"model_file": str(folder / "joint.spm")},
    }  # fmt: skip
    return {
        "name": "benchmark", "joeynmt_version": "2.3.0", "model_dir": str(folder / "model"), "use_cuda": False,
        "fp16": False, "random_seed": 1,
        "data": {
            "train": str(folder / "text"), "dev": str(folder / "text"), "dataset_type": "plain",
            "src": {"lang": "src", **side}, "trg": {"lang": "tgt", **side},
        },
        "testing": {"beam_size": 1, "batch_size": 64, "eval_metrics": ["bleu"]},
        "training": {
            "optimizer": "adam", "adam_betas": [0.9, 0.98], "learning_rate": 1e-4, "learning_rate_min": 1e-9,
            "scheduling": "noam", "label_smoothing": 0.1, "clip_grad_norm": 1.0,
            "batch_size": batch_tokens, "batch_type": "token",
            "normalization": "tokens", "epochs": 100, "updates": updates, "logging_freq": log_every,
            "validation_freq": 1000 * log_every, "print_valid_sents": [0], "shuffle": shuffle, "overwrite": True,
        },
        "model": {
            "initializer": "xavier_uniform", "bias_initializer": "zeros", "embed_initializer": "xavier_uniform",
            "tied_embeddings": True, "tied_softmax": True, "encoder": stack(sizes["n_encoder_layers"]),
            "decoder": stack(sizes["n_decoder_layers"]),
        },
    }  # fmt: skip


def train(
    pairs: Sequence[tuple[str, str]], tokenizer: Tokenizer, sizes: dict[str, Any], batch_tokens: int, shuffle: bool,
    log_every: int,
) -> dict[str, Any]:  # fmt: skip
    """Train for three times ``log_every`` updates; the first third is not counted.

    Args:
        shuffle: Draw batches by chance, as it does by default; else take the pairs as they come.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for side, end in ((0, "src"), (1, "tgt")):
            (folder / f"text.{end}").write_text("".join(pair[side] + "\n" for pair in pairs), encoding="utf-8")
        tokenizer.save(folder / "joint.spm")
        pieces = tokenizer.pieces(range(tokenizer.vocab_size))
        (folder / "vocabulary.txt").write_text("".join(f"{piece}\n" for piece in pieces), encoding="utf-8")
        config = configuration(folder, sizes, batch_tokens, shuffle, 3 * log_every, log_every)
        (folder / "config.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")
        command = [python_of("joeynmt"), "-m", "joeynmt", "train", folder / "config.yaml", "--skip-test"]
        done = watched(command, folder / "said.txt")
        said = (folder / "said.txt").read_text(encoding="utf-8", errors="replace")
    return {**reported_speed(SAYS, said), "peak_mib": done.peak_mib, "versions": {"joeynmt": "2.3.0"}}
