"""dragoman's training step."""

from __future__ import annotations

from typing import Any

from serve import Run, serve

from dragoman.cli import environment

environment.prepare("train")

import torch  # noqa: E402
from steps import Ids, read_batches, timed  # noqa: E402

from dragoman.config import ModelConfig, TrainConfig  # noqa: E402
from dragoman.data.batching import Batch  # noqa: E402
from dragoman.model.transformer import Transformer  # noqa: E402
from dragoman.training.flops import training_flops  # noqa: E402
from dragoman.training.update import train_step  # noqa: E402


def prepare(batches: str, sizes: dict[str, Any], vocab_size: int, precision: str, rate: float = 1e-4) -> Run:
    """Build the model with dropout 0.1."""
    torch.manual_seed(0)
    ids = read_batches(batches)
    config = ModelConfig(**sizes, dropout=0.1, src_vocab_size=vocab_size, tgt_vocab_size=vocab_size)
    train = TrainConfig(precision=precision, clip_norm=1.0)  # type: ignore[arg-type]
    model = Transformer(config)
    optimizer = torch.optim.Adam(model.parameters(), betas=train.adam_betas, eps=train.adam_eps, fused=True)

    def step(batch: Ids) -> float:
        rows = torch.arange(batch.src.size(0))
        ours = Batch(batch.src, batch.tgt_in, batch.tgt_out, rows, batch.n_tokens)
        result = train_step(model, [ours], optimizer, rate, train, config.pad_id)
        return result.smoothed / result.tokens

    def run(warm: int) -> dict[str, Any]:
        found = timed(step, ids, [batch.n_tokens for batch in ids], warm)
        shapes = [(b.src.size(0), b.src.size(1), b.tgt_in.size(1)) for b in ids[warm:]]
        flops = sum(training_flops(config, *shape) for shape in shapes) / len(shapes)
        return found | {"gflop_per_s": flops / found["step_ms"] / 1e6}

    return run


if __name__ == "__main__":
    serve(prepare, ["torch", "dragoman"])
