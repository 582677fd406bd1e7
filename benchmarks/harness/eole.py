"""Eole through its own command line; its speed is what its own log says. Its Transformer is pre-norm."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from benchmarks.harness.command import reported_speed, watched
from benchmarks.harness.environments import python_of
from dragoman.data.tokenizer import Tokenizer

SAYS = r"Step +\d+/.*xent: +([\d.]+);.*?/ *(\d+) tok/s"
"""A report: its loss and its target tokens a second."""


def configuration(
    folder: Path, sizes: dict[str, Any], precision: str, batch_tokens: int, updates: int, log_every: int
) -> dict[str, Any]:
    """What its ``train`` reads: ReLU, one embedding, sinusoids, dropout, label smoothing, clipping and Adam as ours."""
    never = 1000 * updates
    return {
        "seed": 1, "save_data": str(folder / "out"), "src_vocab": str(folder / "vocabulary.txt"),
        "tgt_vocab": str(folder / "vocabulary.txt"), "share_vocab": True, "overwrite": True, "report_every": log_every,
        "data": {
            "corpus": {"path_src": str(folder / "text.src"), "path_tgt": str(folder / "text.tgt"), "transforms": []}
        },
        "model": {
            "architecture": "transformer", "hidden_size": sizes["d_model"], "heads": sizes["n_heads"],
            "transformer_ff": sizes["d_ff"],
            "encoder": {"encoder_type": "transformer", "layers": sizes["n_encoder_layers"]},
            "decoder": {"decoder_type": "transformer", "layers": sizes["n_decoder_layers"]},
            "share_embeddings": True, "share_decoder_embeddings": True,
            "embeddings": {"word_vec_size": sizes["d_model"], "position_encoding_type": "SinusoidalInterleaved"},
        },
        "training": {
            "world_size": 1, "gpu_ranks": [], "compute_dtype": precision, "batch_type": "tokens",
            "batch_size": batch_tokens, "normalization": "tokens", "train_steps": updates, "valid_steps": never,
            "save_checkpoint_steps": never, "model_path": str(folder / "out/model"), "optim": "adam",
            "adam_beta2": 0.98, "learning_rate": 1e-4, "max_grad_norm": 1.0, "label_smoothing": 0.1, "dropout": [0.1],
            "attention_dropout": [0.0], "num_workers": 0, "accum_count": [1], "accum_steps": [0],
        },
    }  # fmt: skip


def train(
    pairs: Sequence[tuple[str, str]], tokenizer: Tokenizer, sizes: dict[str, Any], precision: str, log_every: int,
    batch_tokens: int,
) -> dict[str, Any]:  # fmt: skip
    """Train for three times ``log_every`` updates; the first third is not counted."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for side, end in ((0, "src"), (1, "tgt")):
            rows = map(tokenizer.pieces, tokenizer.encode([pair[side] for pair in pairs]))
            (folder / f"text.{end}").write_text("".join(f"{' '.join(row)}\n" for row in rows), encoding="utf-8")
        pieces = tokenizer.pieces(range(tokenizer.vocab_size))
        (folder / "vocabulary.txt").write_text("".join(f"{piece}\n" for piece in pieces), encoding="utf-8")
        config = configuration(folder, sizes, precision, batch_tokens, 3 * log_every, log_every)
        (folder / "config.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")
        command = [python_of("eole").with_name("eole"), "train", "-config", folder / "config.yaml"]
        done = watched(command, folder / "said.txt")
        said = (folder / "said.txt").read_text(encoding="utf-8", errors="replace")
    return {**reported_speed(SAYS, said), "peak_mib": done.peak_mib, "versions": {"eole": "0.6.4"}}
