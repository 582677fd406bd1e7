"""Hugging Face's Seq2SeqTrainer from two raw files, and ``generate`` with what it saved.

python hf_clock.py train SETTINGS.json
python hf_clock.py translate CHECKPOINT joint.model < SOURCE > TRANSLATION
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import sentencepiece
import torch
from hf_model import build
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence
from transformers import AutoModelForSeq2SeqLM, Seq2SeqTrainer, Seq2SeqTrainingArguments

PAD, BOS, EOS = 0, 2, 3
MOST = 128
"""Most subwords of a sentence in training."""
IGNORED = -100
"""The label that the loss of this library leaves out."""
BATCH = 32


def _padded(rows: list[list[int]], value: int) -> Tensor:
    return pad_sequence([torch.tensor(row) for row in rows], batch_first=True, padding_value=value)


def _pairs(processor: Any, stem: str, languages: list[str]) -> list[dict[str, Any]]:
    sides = [Path(f"{stem}.{lang}").read_text(encoding="utf-8").split("\n")[:-1] for lang in languages]
    sources, targets = (processor.encode(side) for side in sides)
    return [
        {"input_ids": [*source, EOS], "labels": [*target, EOS], "length": len(source)}
        for source, target in zip(sources, targets, strict=True)
        if 0 < len(source) < MOST and 0 < len(target) < MOST
    ]


def _collated(rows: list[dict[str, Any]]) -> dict[str, Tensor]:
    sources, labels = (
        _padded([row[name] for row in rows], value) for name, value in (("input_ids", PAD), ("labels", IGNORED))
    )
    inputs = torch.cat([torch.full((len(rows), 1), BOS), labels[:, :-1].masked_fill(labels[:, :-1] == IGNORED, PAD)], 1)
    return {
        "input_ids": sources,
        "attention_mask": (sources != PAD).long(),
        "labels": labels,
        "decoder_input_ids": inputs,
    }


def train(settings: dict[str, Any]) -> None:
    """Train until stopped; a checkpoint is saved every so many updates."""
    torch.set_num_threads(2)
    torch.manual_seed(1)
    processor = sentencepiece.SentencePieceProcessor(model_file=settings["subwords"])
    text = {part: _pairs(processor, settings[part], settings["languages"]) for part in ("train", "valid")}
    model = build(settings["sizes"], len(processor), settings["dropout"], 2 * MOST, "sdpa")
    every = settings["every"]
    arguments = Seq2SeqTrainingArguments(
        output_dir=settings["out"], max_steps=10**6, per_device_train_batch_size=settings["sentences"],
        per_device_eval_batch_size=BATCH, learning_rate=settings["rate"], lr_scheduler_type="inverse_sqrt",
        warmup_steps=settings["warmup"], adam_beta2=0.98, label_smoothing_factor=0.1,
        bf16=settings["precision"] == "bf16", train_sampling_strategy="group_by_length",
        eval_strategy="steps", eval_steps=every, save_steps=every,
        save_total_limit=2, save_only_model=True, prediction_loss_only=True, logging_steps=every, report_to="none",
        remove_unused_columns=False, use_cpu=True, seed=1, disable_tqdm=True,
    )  # fmt: skip
    trainer = Seq2SeqTrainer(
        model, arguments, data_collator=_collated, train_dataset=text["train"], eval_dataset=text["valid"]
    )
    trainer.train()


@torch.inference_mode()
def translate(checkpoint: str, subwords: str) -> None:
    """Translate stdin to stdout, line by line."""
    torch.set_num_threads(2)
    processor = sentencepiece.SentencePieceProcessor(model_file=subwords)
    model = AutoModelForSeq2SeqLM.from_pretrained(checkpoint).eval()
    lines = sys.stdin.buffer.read().decode().split("\n")[:-1]
    rows = [[*row[: MOST - 1], EOS] for row in processor.encode(lines)]
    order = sorted(range(len(rows)), key=lambda i: len(rows[i]))
    translations = [""] * len(rows)
    for start in range(0, len(order), BATCH):
        chosen = order[start : start + BATCH]
        source = _padded([rows[i] for i in chosen], PAD)
        written = model.generate(
            input_ids=source, attention_mask=(source != PAD).long(), num_beams=5, do_sample=False, max_new_tokens=MOST
        )
        for i, ids in zip(chosen, written.tolist(), strict=True):
            translations[i] = processor.decode([id_ for id_ in ids if id_ not in (PAD, BOS, EOS)])
    sys.stdout.buffer.write("".join(line + "\n" for line in translations).encode())


if __name__ == "__main__":
    if sys.argv[1] == "train":
        train(json.loads(Path(sys.argv[2]).read_text(encoding="utf-8")))
    else:
        translate(*sys.argv[2:])
