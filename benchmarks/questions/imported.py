"""A Marian model trained in transformers, imported, fine-tuned here; and what trimming its vocabulary loses.

The folder is as those of OPUS-MT: two unigram models, one shuffled list of pieces, ``</s>`` first and ``<pad>`` last.
It is trained on one half of the text for some steps and imported; the validation loss of both is the same if the import
is right. Fine-tuning continues on the other half, and its validation losses are the curve. Trimming keeps the pieces of
a text, and is measured on that text and on one that it has not seen.

A model that has hardly learned ends no sentence: with few steps the last parts, which translate, take longest. What is
begun is said on stderr.
"""

from __future__ import annotations

import argparse
import io
import json
import random
import sys
import tempfile
import time
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import sentencepiece
import torch
import transformers

import dragoman
from benchmarks.record import save
from dragoman.bundle import load_bundle
from dragoman.data.corpus import read_lines
from dragoman.decoding.scoring import read_all
from dragoman.evaluation.significance import compare
from dragoman.translation.translator import Translator

SIZES = dict(d_model=128, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4, decoder_attention_heads=4,
             encoder_ffn_dim=256, decoder_ffn_dim=256)  # fmt: skip
N_PIECES = 2000
BATCH = 48
Pairs = Sequence[tuple[str, str]]


def opus_folder(pairs: Pairs, folder: Path) -> None:
    """Subwords and an untrained model, as OPUS-MT has them."""
    folder.mkdir()
    pieces: set[str] = set()
    for side, name in enumerate(("source", "target")):
        model = io.BytesIO()
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter([pair[side] for pair in pairs]), model_writer=model, vocab_size=N_PIECES,
            normalization_rule_name="nmt_nfkc", minloglevel=2, num_threads=1,
        )  # fmt: skip
        (folder / f"{name}.spm").write_bytes(model.getvalue())
        one = sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())
        pieces |= {one.id_to_piece(i) for i in range(3, one.get_piece_size())}
    listed = sorted(pieces)
    random.Random(1).shuffle(listed)
    listed = ["</s>", "<unk>", *listed, "<pad>"]
    numbered = {piece: i for i, piece in enumerate(listed)}
    (folder / "vocab.json").write_text(json.dumps(numbered, ensure_ascii=False), encoding="utf-8")
    about = dict(tokenizer_class="MarianTokenizer", source_lang="en", target_lang="de", model_max_length=512)
    (folder / "tokenizer_config.json").write_text(json.dumps(about), encoding="utf-8")
    pad = len(listed) - 1
    torch.manual_seed(1)
    transformers.MarianMTModel(transformers.MarianConfig(
        vocab_size=len(listed), decoder_vocab_size=len(listed), **SIZES, activation_function="swish",
        scale_embedding=True, max_position_embeddings=512, pad_token_id=pad, eos_token_id=0, bos_token_id=0,
        decoder_start_token_id=pad, forced_eos_token_id=0, dropout=0.1,
    )).save_pretrained(folder)  # fmt: skip


def train_there(folder: Path, pairs: Pairs, steps: int) -> list[float]:
    """Train in transformers; the mean training loss of each tenth."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModelForSeq2SeqLM.from_pretrained(folder).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, betas=(0.9, 0.98))
    rates = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(1.0, (step + 1) / 50))
    chance, losses = random.Random(1), []
    for _ in range(steps):
        batch = chance.sample(list(pairs), BATCH)
        given = tokenizer(
            [one for one, _ in batch], text_target=[other for _, other in batch], return_tensors="pt", padding=True
        )
        given["labels"] = given["labels"].masked_fill(given["labels"] == tokenizer.pad_token_id, -100)
        loss = model(**given).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        rates.step()
        losses.append(loss.item())
    model.eval().save_pretrained(folder)
    tenth = max(1, steps // 10)
    return [round(sum(losses[i : i + tenth]) / len(losses[i : i + tenth]), 4) for i in range(0, steps, tenth)]


@torch.inference_mode()
def loss_there(folder: Path, pairs: Pairs) -> float:
    """Nats for each target token, eos counted, by transformers; its padding, which it never says, is left out."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModelForSeq2SeqLM.from_pretrained(folder).eval()
    total, n = 0.0, 0
    for source, target in pairs:
        given = tokenizer([source], text_target=[target], return_tensors="pt")
        logits = model(**given).logits[0].clone()
        logits[:, tokenizer.pad_token_id] = -torch.inf
        labels = given["labels"][0]
        total -= float(logits.log_softmax(-1)[range(len(labels)), labels].sum())
        n += len(labels)
    return total / n


def loss_here(run: Path, pairs: Pairs) -> float:
    """The same of the imported run."""
    bundle = load_bundle(run)
    ids = zip(*(t.encode([pair[i] for pair in pairs]) for i, t in
                enumerate((bundle.src_tokenizer, bundle.tgt_tokenizer))), strict=True)  # fmt: skip
    read = [one for one in read_all(bundle.model, list(ids), torch.device("cpu")) if one is not None]
    return -sum(one.log_prob for one in read) / sum(len(one.log_probs) for one in read)


def tuned(run: Path, files: dict[str, Path], out: Path, steps: int) -> list[dict[str, Any]]:
    """Fine-tune; the curve of validation losses, the parent's first."""
    every = max(1, steps // 6)
    dragoman.train(
        None, src=files["train.src"], tgt=files["train.tgt"], valid=(files["valid.src"], files["valid.tgt"]), out=out,
        from_run=run, quiet=True, overrides=(f"train.max_steps={steps}", f"train.validate_every={every}",
        f"train.save_every={steps}", "train.batch_tokens=1500", "train.schedule=inverse_sqrt", "train.lr=0.001",
        "train.warmup_steps=20", "train.seed=1"),
    )  # fmt: skip
    events = [json.loads(line) for line in (out / "log.jsonl").read_text(encoding="utf-8").splitlines()]
    return [
        {name: one.get(name) for name in ("event", "step", "loss", "bleu") if name in one}
        for one in events
        if one["event"] in ("parent", "validation")
    ]


def trimmed(folder: Path, whole: Path, kept: Path, out: Path, texts: dict[str, Pairs]) -> dict[str, Any]:
    """An import that keeps the pieces of a text, beside the whole one."""
    small = dragoman.import_model(folder, out, keep_pieces_of=[kept])
    sizes = [(run / "bundle/model.safetensors").stat().st_size for run in (whole, small)]
    both = [Translator.load(run, "cpu") for run in (whole, small)]
    found: dict[str, Any] = {
        "pieces": [one.src_tokenizer.vocab_size for one in both],
        "megabytes": [round(size / 1e6, 2) for size in sizes],
    }
    for name, pairs in texts.items():
        sources, refs = [list(side) for side in zip(*pairs, strict=True)]
        said = [[one.text for one in by.translate(sources, guard=False, beam_size=4)] for by in both]
        scores = compare(said[0], said[1], refs, "de")
        cuts = [[t.pieces(ids) for ids in t.encode(sources)] for t in (one.src_tokenizer for one in both)]
        found[name] = {
            "lines": len(pairs), "identical": sum(a == b for a, b in zip(*said, strict=True)),
            "sources_cut_differently": sum(a != b for a, b in zip(*cuts, strict=True)),
            "nats_a_token": [round(loss_here(run, pairs), 4) for run in (whole, small)],
            **{one.metric: {"whole": round(one.a, 2), "trimmed": round(one.b, 2)} for one in scores},
        }  # fmt: skip
    return found


BEGUN = time.monotonic()


def begin(what: str) -> None:
    """Say what is begun, and when."""
    print(f"{time.monotonic() - BEGUN:5.0f} s  {what}", file=sys.stderr, flush=True)


def main() -> None:
    """Measure and record."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--src", type=Path, required=True, help="text to train on")
    parser.add_argument("--tgt", type=Path, required=True, help="its translations")
    parser.add_argument("--valid-src", type=Path, required=True)
    parser.add_argument("--valid-tgt", type=Path, required=True)
    parser.add_argument("--pairs", type=int, default=8000, help="of the text to train on")
    parser.add_argument("--steps", type=int, default=600, help="in transformers")
    parser.add_argument("--tune", type=int, default=300, help="steps of fine-tuning here")
    given = parser.parse_args()
    train = list(islice(zip(read_lines(given.src), read_lines(given.tgt), strict=True), given.pairs))
    valid = list(zip(read_lines(given.valid_src), read_lines(given.valid_tgt), strict=True))[:500]
    half = len(train) // 2
    figures: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as scratch:
        home = Path(scratch)
        folder = home / "opus"
        begin("an untrained model as OPUS-MT has them, and its training in transformers")
        opus_folder(train[:half], folder)
        figures["training loss in transformers, by tenths"] = train_there(folder, train[:half], given.steps)
        begin("import, and the loss of both")
        run = dragoman.import_model(folder, home / "run")
        figures["validation loss, nats a token"] = {
            "in transformers": round(loss_there(folder, valid), 5), "imported": round(loss_here(run, valid), 5),
        }  # fmt: skip
        files = {}
        for name, pairs in (("train", train[half:]), ("valid", valid)):
            for i, side in enumerate(("src", "tgt")):
                files[f"{name}.{side}"] = home / f"{name}.{side}"
                files[f"{name}.{side}"].write_text("".join(f"{pair[i]}\n" for pair in pairs), encoding="utf-8")
        begin("fine-tuning, and at its end the confidence, learned from translations of the validation text")
        figures["fine-tuning"] = tuned(run, files, home / "tuned", given.tune)
        begin("trimming: translations of 500 lines by both, with a beam of 4")
        kept = home / "kept"
        kept.write_text("".join(f"{line}\n" for pair in valid[:250] for line in pair), encoding="utf-8")
        figures["trimmed to the pieces of 250 pairs"] = trimmed(
            folder, run, kept, home / "small", {"these pairs": valid[:250], "250 others": valid[250:]}
        )
    command = (
        f"python -m benchmarks.questions.imported --src {given.src.name} --tgt {given.tgt.name} --valid-src "
        f"{given.valid_src.name} --valid-tgt {given.valid_tgt.name} --pairs {given.pairs} --steps {given.steps} "
        f"--tune {given.tune}"
    )
    save("imported", figures, command, ("torch", "transformers", "sentencepiece"))


if __name__ == "__main__":
    main()
