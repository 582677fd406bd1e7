"""Training of Hugging Face's Marian model."""

from __future__ import annotations

from typing import Any

import torch
from hf_model import build
from serve import Run, serve
from steps import ModuleTrainer, read_batches, timed
from torch import Tensor


def prepare(
    batches: str, sizes: dict[str, Any], vocab_size: int, precision: str, attention: str, rate: float = 1e-4
) -> Run:
    """Build the model with dropout 0.1."""
    torch.manual_seed(0)
    ids = read_batches(batches)
    model = build(sizes, vocab_size, 0.1, 512, attention)

    def logits(src: Tensor, tgt_in: Tensor) -> Tensor:
        return model(
            input_ids=src, attention_mask=(src != 0).long(), decoder_input_ids=tgt_in,
            decoder_attention_mask=(tgt_in != 0).long(), use_cache=False,
        ).logits  # fmt: skip

    trainer = ModuleTrainer(model, logits, rate, precision == "bf16")
    return lambda warm: timed(trainer.step, ids, [batch.n_tokens for batch in ids], warm)


if __name__ == "__main__":
    serve(prepare, ["torch", "transformers"])
