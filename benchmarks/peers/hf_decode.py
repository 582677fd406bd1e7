"""Hugging Face's model and its ``generate``, in length-sorted batches."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from hf_model import build
from serve import Run, chunk_ms, serve
from torch import Tensor

PAD, BOS, EOS = 0, 2, 3


def load(folder: Path) -> Any:
    """The model with the weights that ``harness.carry`` wrote; every one of its tensors must be among them."""
    sizes = json.loads((folder / "sizes.json").read_text(encoding="utf-8"))
    model = build(sizes, sizes["vocab_size"], 0.0, sizes["max_positions"], "sdpa")
    for module in model.modules():
        if isinstance(module, torch.nn.LayerNorm):
            module.eps = sizes["norm_eps"]
    with np.load(folder / "weights.npz") as arrays:
        weights = {name: torch.from_numpy(arrays[name]) for name in arrays}
    if sizes["norm"] == "pre":  # there positions are no weights, and the first is at pad + 1
        for side in (model.model.encoder, model.model.decoder):
            table = side.embed_positions.weights
            table[PAD + 1 : PAD + 1 + sizes["max_positions"]] = weights["positions"]
    else:
        weights |= {f"model.{side}.embed_positions.weight": weights["positions"] for side in ("encoder", "decoder")}
    shared = weights["model.shared.weight"]
    tied = ("model.encoder.embed_tokens.weight", "model.decoder.embed_tokens.weight", "lm_head.weight")
    weights |= dict.fromkeys(tied, shared) | {"final_logits_bias": torch.zeros(1, len(shared))}
    state = model.state_dict()
    if missing := state.keys() - weights.keys():
        raise RuntimeError(f"no weights for {sorted(missing)}")
    model.load_state_dict({name: weights[name] for name in state})
    return model.eval()


def prepare(
    model: str, sources: str, precision: str, workers: int, threads: int, beam_size: int, length_penalty: float,
    steps: int | None,
) -> Run:  # fmt: skip
    """Load the model and warm up; the parameters are those of ``ours_decode``."""
    torch.set_num_threads(threads)
    text = json.loads(Path(sources).read_text(encoding="utf-8"))
    net = load(Path(model)).to({"fp32": torch.float32, "bf16": torch.bfloat16}[precision])
    settings = dict(
        num_beams=beam_size, do_sample=False, length_penalty=length_penalty, early_stopping=beam_size > 1,
        max_new_tokens=steps or 80,
    )  # fmt: skip

    def padded(rows: list[list[int]]) -> Tensor:
        tensors = [torch.tensor(row) for row in rows]
        return torch.nn.utils.rnn.pad_sequence(tensors, batch_first=True, padding_value=PAD)

    @torch.inference_mode()
    def translate(rows: list[list[int]], batch: int) -> list[list[int]]:
        order = sorted(range(len(rows)), key=lambda i: len(rows[i]))
        found: list[list[int]] = [[] for _ in rows]
        for start in range(0, len(order), batch):
            chosen = order[start : start + batch]
            src = padded([[*rows[i], EOS] for i in chosen])
            out = net.generate(input_ids=src, attention_mask=(src != PAD).long(), **settings)
            for i, ids in zip(chosen, out.tolist(), strict=True):
                found[i] = [token for token in ids if token not in (PAD, BOS, EOS)]
        return found

    @torch.inference_mode()
    def log_prob(src: list[int], tgt: list[int]) -> float:
        logits = net(input_ids=torch.tensor([[*src, EOS]]), decoder_input_ids=torch.tensor([[BOS, *tgt]])).logits
        return float(logits[0].float().log_softmax(-1).gather(1, torch.tensor([[*tgt, EOS]]).T).sum())

    def run(what: str, batch: int = 1, count: int | None = None) -> dict[str, Any]:
        rows = text["ids"][:count]
        if what == "score":
            return {"log_probs": [log_prob(*pair) for pair in zip(rows, text["ref_ids"][:count], strict=True)]}
        if what == "chunks":
            return {"ms": chunk_ms(lambda chunk: translate(chunk, batch), rows, batch)}
        began = time.perf_counter()
        found = translate(rows, batch)
        return {"seconds": time.perf_counter() - began, "ids": found}

    translate(text["ids"][:16], 16)
    return run


if __name__ == "__main__":
    serve(prepare, ["torch", "transformers"])
