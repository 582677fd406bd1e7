"""The peers of ``benchmarks.clock``: how each prepares text, trains until it is stopped, and translates.

All learn the same joint subwords (SentencePiece). Their widths and depths are those of dragoman's own recipe for
Multi30k, or those of a run that ``dragoman train --minutes`` made. Schedule and loss are those of each one's own
examples, with a warm-up that fits minutes, not days.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from benchmarks.harness import eole, joeynmt
from benchmarks.harness.environments import ROOT, python_of
from benchmarks.harness.marian import marian, sizes_of
from dragoman.config import PRESETS

_SIZES = ("d_model", "d_ff", "n_heads", "n_encoder_layers", "n_decoder_layers")
WARMUP = 400
"""Updates until the rate is highest; the examples of the peers, for days of training, have 4,000 to 16,000.

With 1,000 no peer had finished its warm-up after ten minutes of two cores.
"""
BATCH_TOKENS = 3072
VALIDATE_EVERY = 100
"""Updates between two validations, after each of which a checkpoint is saved.

With 250 no peer had a checkpoint after three minutes.
"""


class Shape(NamedTuple):
    """What a peer trains: its sizes, and what depends on them."""

    sizes: dict[str, int]
    subwords: int
    dropout: float
    highest_rate: float
    """Of all but Eole, whose schedule follows the width by itself."""


RECIPE = Shape({name: PRESETS["small"][name] for name in _SIZES}, 8000, 0.1, 1e-3)
"""Of dragoman's recipe for Multi30k."""


def shape_of(run: Path) -> Shape:
    """Return what a run of dragoman's has trained."""
    config = yaml.safe_load((run / "config.yaml").read_text(encoding="utf-8"))
    model, train = config["model"], config["train"]
    subwords = config["data"]["tokenizer"]["vocab_size"]
    return Shape({name: model[name] for name in _SIZES}, subwords, model["dropout"], train["lr"])


class Job(NamedTuple):
    """A corpus for one peer, and the folder of all that it writes."""

    folder: Path
    src: str  # languages, which are the ends of the names of files
    tgt: str
    train: Path  # without the end
    valid: Path
    precision: str
    shape: Shape


class Peer(NamedTuple):
    """A system that trains by its own command line."""

    package: str
    install: Callable[[], object]  # before the clock runs
    prepare: Callable[[Job], list[str]]  # writes what it needs; returns the command that trains
    checkpoints: str  # a pattern below the job's folder
    translate: Callable[[Job, Path, Path, Path], None]  # a checkpoint, a source, and where the translation goes


def _subwords(job: Job, **other: Any) -> Path:
    import sentencepiece

    sentencepiece.SentencePieceTrainer.train(
        input=",".join(f"{job.train}.{lang}" for lang in (job.src, job.tgt)), model_prefix=str(job.folder / "joint"),
        vocab_size=job.shape.subwords, character_coverage=1.0, minloglevel=2, **other,
    )  # fmt: skip
    return job.folder / "joint.model"


def _run(command: list[Any], job: Job, source: Path, to: Path) -> None:
    with source.open("rb") as read, to.open("wb") as written, (job.folder / "decoding.txt").open("ab") as log:
        subprocess.run(list(map(str, command)), stdin=read, stdout=written, stderr=log, check=True)


# --- Marian -----------------------------------------------------------------------------------------------------------


def _marian(job: Job) -> list[str]:
    _subwords(job).rename(job.folder / "joint.spm")
    vocabularies = [job.folder / "joint.spm"] * 2
    return marian(
        "train", *sizes_of(job.shape.sizes), "--model", job.folder / "model.npz",
        "--train-sets", *(f"{job.train}.{lang}" for lang in (job.src, job.tgt)), "--vocabs", *vocabularies,
        "--dim-vocabs", *[job.shape.subwords] * 2, "--transformer-dropout", job.shape.dropout, "--label-smoothing", 0.1,
        "--cost-type", "ce-mean-words", "--optimizer-params", 0.9, 0.98, 1e-9, "--learn-rate", job.shape.highest_rate,
        "--lr-warmup", WARMUP, "--lr-decay-inv-sqrt", WARMUP, "--clip-norm", 0, "--sync-sgd",
        "--exponential-smoothing", 0.001, "--mini-batch", 1000, "--mini-batch-words", BATCH_TOKENS // 2,
        "--maxi-batch", 100, "--max-length", 100, "--after", "1000e", "--cpu-threads", 2, "--workspace", 1000,
        "--valid-sets", *(f"{job.valid}.{lang}" for lang in (job.src, job.tgt)), "--valid-metrics", "ce-mean-words",
        "--valid-freq", f"{VALIDATE_EVERY}u", "--valid-mini-batch", 16, "--early-stopping", 0, "--keep-best",
        "--save-freq", f"{VALIDATE_EVERY}u", "--disp-freq", f"{VALIDATE_EVERY}u", "--overwrite", "--seed", 1,
    )  # fmt: skip


def _marian_decodes(job: Job, checkpoint: Path, source: Path, to: Path) -> None:
    command = marian(
        "decode", "--models", checkpoint, "--vocabs", *[job.folder / "joint.spm"] * 2, "--beam-size", 5,
        "--normalize", 1, "--cpu-threads", 2, "--mini-batch", 32, "--maxi-batch", 100, "--maxi-batch-sort", "src",
        "--quiet", "--quiet-translation",
    )  # fmt: skip
    _run(command, job, source, to)


# --- JoeyNMT ----------------------------------------------------------------------------------------------------------

VALIDATION_LINES = 200
"""It translates the text on which it validates: with all 1,014 lines of Multi30k it had 250 updates after 8 minutes."""


def _joeynmt_config(job: Job) -> dict[str, Any]:
    config = joeynmt.configuration(job.folder, job.shape.sizes, BATCH_TOKENS, True, 10**6, VALIDATE_EVERY)
    data, testing, training = config["data"], config["testing"], config["training"]
    data.update(train=str(job.train), dev=str(job.valid), sample_dev_subset=VALIDATION_LINES)
    for side, lang in (("src", job.src), ("trg", job.tgt)):
        data[side].update(lang=lang, tokenizer_cfg={"model_file": str(job.folder / "joint.model")})
    data["special_symbols"] = {
        f"{name}_{what}": value
        for id_, (name, text) in enumerate((("unk", "<unk>"), ("pad", "<pad>"), ("bos", "<s>"), ("eos", "</s>")))
        for what, value in (("token", text), ("id", id_))
    }
    testing.update(beam_size=5, beam_alpha=1.0, batch_size=1024, batch_type="token")
    training.update(
        optimizer="adamw", adam_betas=[0.9, 0.999], scheduling="warmupinversesquareroot",
        learning_rate=job.shape.highest_rate, learning_rate_warmup=WARMUP, weight_decay=0.0, epochs=10_000,
        validation_freq=VALIDATE_EVERY, early_stopping_metric="bleu", keep_best_ckpts=2,
    )  # fmt: skip
    for side in ("encoder", "decoder"):
        config["model"][side].update(layer_norm="pre", dropout=job.shape.dropout)
        config["model"][side]["embeddings"]["dropout"] = 0.0
    return config


def _joeynmt(job: Job) -> list[str]:
    _subwords(job, unk_id=0, pad_id=1, bos_id=2, eos_id=3)
    rows = (job.folder / "joint.vocab").read_text(encoding="utf-8").split("\n")[:-1]
    pieces = "".join(row.split("\t")[0] + "\n" for row in rows)
    (job.folder / "vocabulary.txt").write_text(pieces, encoding="utf-8")
    path = job.folder / "config.yaml"
    path.write_text(yaml.safe_dump(_joeynmt_config(job)), encoding="utf-8")
    return [str(python_of("joeynmt")), "-m", "joeynmt", "train", str(path), "--skip-test"]


def _joeynmt_translates(job: Job, checkpoint: Path, source: Path, to: Path) -> None:
    config = yaml.safe_load((job.folder / "config.yaml").read_text(encoding="utf-8"))
    config["testing"]["load_model"] = str(checkpoint)
    path = job.folder / "translate.yaml"
    path.write_text(yaml.safe_dump(config), encoding="utf-8")
    _run([python_of("joeynmt"), "-m", "joeynmt", "translate", path], job, source, to)


# --- Eole -------------------------------------------------------------------------------------------------------------


def _eole(job: Job) -> list[str]:
    model = _subwords(job)
    rows = (job.folder / "joint.vocab").read_text(encoding="utf-8").split("\n")[3:-1]
    pieces = "".join(row.split("\t")[0] + "\n" for row in rows)
    (job.folder / "vocabulary.txt").write_text(pieces, encoding="utf-8")
    config = eole.configuration(job.folder, job.shape.sizes, job.precision, BATCH_TOKENS, 10**6, VALIDATE_EVERY)
    config["data"] = {
        name: {"path_src": f"{stem}.{job.src}", "path_tgt": f"{stem}.{job.tgt}"}
        for name, stem in (("corpus_1", job.train), ("valid", job.valid))
    }
    config.update(
        transforms=["sentencepiece", "filtertoolong"],
        transforms_configs={
            "sentencepiece": {"src_subword_model": str(model), "tgt_subword_model": str(model)},
            "filtertoolong": {"src_seq_length": 512, "tgt_seq_length": 512},
        },
        vocab_size_multiple=8,
    )
    config["training"].update(
        optim="adamw", adam_beta2=0.998, learning_rate=0.5, decay_method="noam", warmup_steps=WARMUP, max_grad_norm=0,
        dropout=[job.shape.dropout], attention_dropout=[job.shape.dropout], valid_steps=VALIDATE_EVERY,
        valid_batch_size=4096, save_checkpoint_steps=VALIDATE_EVERY, keep_checkpoint=2, average_decay=0,
        bucket_size=29_000, param_init_method="xavier_uniform", dropout_steps=[0],
    )  # fmt: skip
    path = job.folder / "config.yaml"
    path.write_text(yaml.safe_dump(config), encoding="utf-8")
    return [str(python_of("eole").with_name("eole")), "train", "-config", str(path)]


def _eole_predicts(job: Job, checkpoint: Path, source: Path, to: Path) -> None:
    _run(
        [
            python_of("eole").with_name("eole"), "predict", "-model_path", checkpoint, "-src", source, "-output", to,
            "-beam_size", 5, "-length_penalty", "avg", "-batch_size", 32, "-world_size", 0,
        ], job, source, job.folder / "predicted.txt",
    )  # fmt: skip


# --- Hugging Face -----------------------------------------------------------------------------------------------------

_HF = ROOT / "benchmarks/peers/hf_clock.py"
SENTENCES = 96
"""Pairs in a batch of Hugging Face's, which are counted in sentences: about ``BATCH_TOKENS`` of Multi30k."""


def _trainer(job: Job) -> list[str]:
    model = _subwords(job, pad_id=0, unk_id=1, bos_id=2, eos_id=3)
    settings = {
        "subwords": str(model), "train": str(job.train), "valid": str(job.valid), "languages": [job.src, job.tgt],
        "sizes": {**job.shape.sizes, "norm": "pre"}, "dropout": job.shape.dropout,
        "rate": job.shape.highest_rate, "warmup": WARMUP, "every": VALIDATE_EVERY,
        "sentences": SENTENCES, "precision": job.precision, "out": str(job.folder / "out"),
    }  # fmt: skip
    path = job.folder / "settings.json"
    path.write_text(json.dumps(settings), encoding="utf-8")
    return [str(python_of("trainer")), str(_HF), "train", str(path)]


def _generates(job: Job, checkpoint: Path, source: Path, to: Path) -> None:
    _run([python_of("trainer"), _HF, "translate", checkpoint, job.folder / "joint.model"], job, source, to)


PEERS = {
    "Marian": Peer(
        "pymarian 1.12.42",
        partial(marian, "train", "--version"),
        _marian,
        "model.npz.best-ce-mean-words.npz",
        _marian_decodes,
    ),
    "JoeyNMT": Peer("joeynmt 2.3.0", partial(python_of, "joeynmt"), _joeynmt, "model/best.ckpt", _joeynmt_translates),
    "Eole": Peer("eole 0.6.4", partial(python_of, "eole"), _eole, "out/model/step_*", _eole_predicts),
    "Hugging Face": Peer(
        "transformers 5.23.0", partial(python_of, "trainer"), _trainer, "out/checkpoint-*", _generates
    ),
}
"""By the name of each."""
