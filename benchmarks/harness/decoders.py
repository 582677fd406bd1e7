"""The systems that translate, each at its own best setting, with the same weights and the same sentences."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.harness.carry import write_hugging_face
from benchmarks.harness.marian import marian as marian_command
from benchmarks.harness.peer import PeerError, System, started
from benchmarks.harness.rounds import Figures, say
from dragoman.bundle import find_bundle, load_bundle
from dragoman.data.tokenizer import Tokenizer
from dragoman.errors import ConfigError
from dragoman.toolkits.ctranslate2 import write as ctranslate2
from dragoman.translation.segments import one_line

ROUNDING = 0.01
"""Nats by which the log-probability of a whole sentence may differ between systems in fp32."""


class Decoder(NamedTuple):
    """A system, and the settings among which its best is looked for."""

    name: str
    environment: str
    script: str
    model: str  # which form of the weights
    precision: str
    places: tuple[tuple[int, int], ...]  # workers, threads of each
    batches: tuple[int, ...]  # dragoman: rows x longest source; the others: sentences, or what ``more`` says
    more: dict[str, Any] = {}  # noqa: RUF012  (of its ``prepare``)


def dragoman(precision: str, batches: tuple[int, ...] = (512, 1024, 2048, 4096, 8192), **more: Any) -> Decoder:
    """Ours; with one worker the threads are inside a product. ``more`` as ``ours_decode`` takes it."""
    name = f"dragoman {precision}" + "".join(f" {value}" for value in more.values())
    return Decoder(name, "dragoman", "ours_decode.py", "bundle", precision, ((2, 1), (1, 2)), batches, more)


def ct2(precision: str, batches: tuple[int, ...] = (4, 8, 16, 32, 64, 128), **more: Any) -> Decoder:
    """CTranslate2; ``more`` as ``ct2_decode`` takes it."""
    name = f"CTranslate2 {precision}" + "".join(f" {value}" for value in more.values())
    return Decoder(name, "ctranslate2", "ct2_decode.py", "ctranslate2", precision, ((2, 1), (1, 2)), batches, more)


def hf(precision: str, batches: tuple[int, ...] = (32, 64, 128)) -> Decoder:
    """Hugging Face's ``generate`` with the model that is ours there: Marian, or M2M100 if pre-norm."""
    return Decoder(
        f"Hugging Face {precision}", "transformers", "hf_decode.py", "hugging_face", precision, ((1, 2),), batches
    )


def marian(precision: str, batches: tuple[int, ...] = (8, 16, 32, 64, 128)) -> Decoder:
    """Marian itself, for a run that was imported from one of its models: a job's ``models["marian"]``."""
    return Decoder(
        f"Marian {precision}", "dragoman", "marian_decode.py", "marian", precision, ((2, 1),), batches,
        {"command": marian_command()},
    )  # fmt: skip


class Setting(NamedTuple):
    """How a system is run."""

    workers: int
    threads: int
    batch: int


class Job(NamedTuple):
    """What all translate."""

    models: dict[str, Path]  # the weights in each form
    sources: Path
    tokenizer: Tokenizer
    pairs: list[tuple[str, str]]
    beam_size: int
    length_penalty: float
    steps: int | None  # so many tokens of each translation; None: as the model says
    lacking: dict[str, str] = {}  # noqa: RUF012  (forms that the weights cannot have, and why)

    def system(self, decoder: Decoder, workers: int, threads: int) -> System:
        """The decoder as something that can be started."""
        settings: dict[str, Any] = dict(
            model=str(self.models[decoder.model]), sources=str(self.sources), precision=decoder.precision,
            workers=workers, threads=threads, beam_size=self.beam_size, length_penalty=self.length_penalty,
            steps=self.steps, **decoder.more,
        )  # fmt: skip
        return System(decoder.name, decoder.environment, decoder.script, settings, threads)


def job(
    bundle: Path, pairs: Sequence[tuple[str, str]], folder: Path, beam_size: int, length_penalty: float,
    steps: int | None = None,
) -> Job:  # fmt: skip
    """Write the weights of a run or bundle in every form, and the sentences, into ``folder``."""
    loaded = load_bundle(bundle)
    models = {name: folder / name for name in ("ctranslate2", "hugging_face")}
    models["ctranslate2"].mkdir(parents=True)
    ctranslate2.write(loaded, models["ctranslate2"])
    lacking = {}
    try:
        write_hugging_face(bundle, models["hugging_face"])
    except ConfigError as error:
        lacking["hugging_face"] = str(error)
    texts, refs = [src for src, _ in pairs], [tgt for _, tgt in pairs]
    tokenizer = loaded.src_tokenizer
    text = {"texts": texts, "refs": refs, "ids": tokenizer.encode(texts), "ref_ids": tokenizer.encode(refs)}
    sources = folder / "sources.json"
    sources.write_text(json.dumps(text), encoding="utf-8")
    models["bundle"] = find_bundle(bundle)
    return Job(models, sources, tokenizer, list(pairs), beam_size, length_penalty, steps, lacking)


def swept(decoder: Decoder, job: Job) -> tuple[Setting, list[dict[str, Any]]]:
    """Its best setting, and sentences per second of all.

    Raises:
        PeerError: The system refuses every one, or fails.
    """
    tried: list[tuple[float, Setting]] = []
    refused: PeerError | None = None
    for workers, threads in decoder.places:
        try:
            with started(job.system(decoder, workers, threads)) as ask:
                for batch in decoder.batches:
                    speed = len(job.pairs) / ask(what="translate", batch=batch)["seconds"]
                    tried.append((speed, Setting(workers, threads, batch)))
                    say(f"{decoder.name}: {workers} x {threads}, batch {batch}: {speed:.1f} sentences/s")
        except PeerError as error:
            if not error.refusal:
                raise
            refused = error
    if not tried:
        assert refused is not None
        raise refused
    return max(tried)[1], [{**s._asdict(), "sentences_per_s": round(speed, 1)} for speed, s in tried]


def able(
    decoders: Sequence[Decoder], job: Job
) -> tuple[dict[str, tuple[Decoder, Setting]], dict[str, Any], dict[str, str]]:
    """The systems that can do the job at their best settings; all sweeps; and why others are left out."""
    found, sweeps, left_out = {}, {}, {}
    for decoder in decoders:
        try:
            if decoder.model in job.lacking:
                raise PeerError(decoder.name, job.lacking[decoder.model])
            setting, sweeps[decoder.name] = swept(decoder, job)
            found[decoder.name] = decoder, setting
        except PeerError as error:
            if not error.refusal:
                raise
            left_out[decoder.name] = error.refusal
            say(f"left out: {decoder.name}: {left_out[decoder.name]}")
    return found, sweeps, left_out


def texts_of(answer: Figures, job: Job) -> list[str]:
    """The translations in an answer."""
    if "texts" in answer:
        return list(answer["texts"])
    return [one_line(text) for text in job.tokenizer.decode(answer["ids"])]


def carried_over(job: Job, found: dict[str, tuple[Decoder, Setting]], count: int) -> dict[str, float]:
    """How far the log-probabilities of given translations differ from ours in fp32, nats, the greatest of ``count``.

    Of systems in fp32 that is rounding. Those in other precisions read the same files.

    Raises:
        PeerError: A system's differ by more than rounding: its weights are not ours, and nothing can be compared.
    """
    log_probs = {}
    for name, (decoder, _) in found.items():
        if decoder.precision == "fp32":
            with started(job._replace(steps=None).system(decoder, 1, 2)) as ask:
                log_probs[name] = ask(what="score", count=count)["log_probs"]
    ours = log_probs["dragoman fp32"]
    differences = {
        name: max(abs(a - b) for a, b in zip(ours, theirs, strict=True)) for name, theirs in log_probs.items()
    }
    for name, difference in differences.items():
        if not difference <= ROUNDING:  # NaN is more, too
            raise PeerError(f"{name}: log-probabilities differ from ours by up to {difference} nats: other weights")
    return {name: round(difference, 6) for name, difference in differences.items()}
