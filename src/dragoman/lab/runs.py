"""Train variants of a model with several seeds, measure each, and compare them.

    base = corpus_config(lab, RECIPE, n_train=8000)            # or the configuration of --config
    plain = trials(lab, Variant("plain", base), seeds=(1, 2, 3))
    other = trials(lab, Variant("one-head", changed(base, model={"n_heads": 1})), seeds=(1, 2, 3))
    difference(losses(plain), losses(other))

An interrupted training resumes from its last checkpoint, and a finished one is not repeated. Once a model has been
measured, only its numbers stay on disk, unless ``keep`` is true.
"""

from __future__ import annotations

import itertools
import math
import shutil
import statistics
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from dragoman.config import Config, DataConfig, each
from dragoman.data import phrasebook
from dragoman.data.store import Store
from dragoman.data.texts import languages_of, read_texts
from dragoman.data.tokenizer import PAD_ID
from dragoman.errors import ConfigError, DragomanError
from dragoman.evaluation.metrics import bleu, chrf
from dragoman.explanation.figures import Bar
from dragoman.files import explained, write_text
from dragoman.lab.experiment import Lab, StoppedError, changed_settings
from dragoman.lab.machine import hardware
from dragoman.locks import locked
from dragoman.training.checkpoint import list_checkpoints
from dragoman.training.loss import perplexity
from dragoman.training.memory import VALIDATION_TOKENS
from dragoman.training.record import read_run
from dragoman.training.run import Build, Trained, train
from dragoman.training.validation import validation_batches
from dragoman.translation.translator import Translator


class Variant(NamedTuple):
    """A kind of training to compare with others."""

    name: str  # must differ between variants that differ in ``build`` alone
    config: Config  # with the data; the seed and the device come from elsewhere
    build: Build | None = None  # makes the model from its configuration; None: as ``dragoman.train`` does


class Trial(NamedTuple):
    """One training, and the quality of its model on the validation set."""

    name: str  # of the variant
    seed: int
    parameters: int  # only trained ones
    steps: int
    tokens: int  # target tokens trained on
    flops: float
    seconds: float  # of training
    loss: float  # unsmoothed, in nats per target token
    perplexity: float  # per subword
    bleu: float  # of beam search
    bleu_low: float  # 95% bootstrap interval over sentences
    bleu_high: float
    chrf: float
    curve: list[list[float]]  # points: step, unsmoothed training loss since the last report
    right_tokens: float | None = None  # share of the target tokens; None in records of earlier versions


Trials = Mapping[str, Sequence[Trial]]
"""The trials of each variant, one per seed, by the variant's name."""

Measure = Callable[[Path, Trained, Config], dict[str, Any]]
"""A function from a run's folder, the end of its training and its configuration to numbers, as JSON has them."""


class Interval(NamedTuple):
    """A mean over seeds with its 95% t-interval, which is nan for a single seed."""

    mean: float
    low: float
    high: float

    def __format__(self, spec: str) -> str:
        spec = spec or ".3g"
        if math.isnan(self.low):
            return f"{self.mean:{spec}} (one seed)"
        return f"{self.mean:{spec}} [{self.low:{spec}}, {self.high:{spec}}]"

    def __str__(self) -> str:
        return format(self)


# --- configurations ---------------------------------------------------------------------------------------------------

SMALL: dict[str, Any] = {
    "model": dict(d_model=64, d_ff=256, n_heads=8, n_encoder_layers=2, n_decoder_layers=2, dropout=0.1),
    "data": {"tokenizer": {"vocab_size": 1600}},
    "train": dict(
        max_steps=1200, batch_tokens=512, schedule="cosine", lr=4e-3, warmup_steps=150, clip_norm=1.0, average=0,
        validate_every=1200, save_every=400, log_every=50,
    ),
    "decode": {"beam_size": 4},
}  # fmt: skip
"""Recipe of a model that learns the embedded corpus in half a minute, small enough to be trained many times."""

QUICK: dict[str, dict[str, Any]] = {
    "train": dict(max_steps=12, batch_tokens=300, warmup_steps=6, validate_every=12, save_every=4, log_every=4),
    "decode": dict(beam_size=1, max_extra_tokens=2),
}
"""Settings of a quick run: few steps, and short translations, because an untrained model does not end its sentences."""


def corpus_config(lab: Lab, recipe: Mapping[str, Any] = SMALL, n_train: int = 8000, n_valid: int = 400) -> Config:
    """Return the configuration that an experiment trains: that of ``--config``, or ``recipe`` on the embedded corpus.

    A quick run makes a few steps on a little text.

    Args:
        lab: Options of the experiment.
        recipe: Settings for the embedded corpus.
        n_train, n_valid: Pairs of the embedded corpus.

    Raises:
        ConfigError: The configuration is that of a parser.
    """
    if lab.config is not None:
        if lab.config.is_parser:
            raise ConfigError(f"the configuration's task is {lab.config.task}, and this experiment trains translators")
        unlimited = {"max_minutes": None, "max_epochs": None, "patience": None}  # so that all variants make equal steps
        config = changed(of_last_step(lab.config), train=unlimited)
        config = changed(config, data=_first_lines(config.data, lab.out / "corpus-quick")) if lab.quick else config
    elif lab.quick:
        config = embedded_corpus(lab, recipe, 300, 12)
    else:
        config = embedded_corpus(lab, recipe, n_train, n_valid)
    return changed(config, **QUICK) if lab.quick else config


def transformer_config(lab: Lab) -> Config:
    """Return ``corpus_config(lab)`` for an experiment that needs a Transformer.

    Raises:
        ConfigError: The configuration is of another architecture, or that of a parser.
    """
    config = corpus_config(lab)
    if config.model.architecture != "transformer":
        raise ConfigError(
            f"the configuration's model.architecture is {config.model.architecture}, and this experiment is about "
            "Transformers"
        )
    return config


def of_last_step(config: Config) -> Config:
    """Return a configuration that keeps the weights of its last step.

    Choosing a checkpoint by the validation set, which also measures the result, would favour noisy variants.
    """
    return changed(config, train={"average": 0, "ema": 0.0, "validate_every": config.train.max_steps})


def _first_lines(data: DataConfig, folder: Path) -> dict[str, Any]:
    """Write the text of a quick run to a folder, 300 pairs of ``data`` and 12 to validate on; return its settings."""
    src_lang, tgt_lang = languages_of(each(data.train))
    settings: dict[str, Any] = {"src_lang": data.src_lang or src_lang, "tgt_lang": data.tgt_lang or tgt_lang}
    with explained(folder):
        folder.mkdir(parents=True, exist_ok=True)
    for name, texts, count in (("train", data.train, 300), ("valid", data.valid or data.train, 12)):
        pairs = list(itertools.islice(read_texts(each(texts)), count))
        settings[name] = {side: folder / f"{name}.{side}" for side in ("src", "tgt")}
        for i, path in enumerate(settings[name].values()):
            write_text(path, "".join(f"{pair[i]}\n" for pair in pairs))
    return settings


def embedded_corpus(
    lab: Lab, recipe: Mapping[str, Any], n_train: int, n_valid: int = 300, tgt_lang: str = "de"
) -> Config:
    """Write the embedded corpus below ``lab.out`` and return the configuration of ``recipe`` on it.

    The validation set has combinations of words that never occur in training (the split ``held_out``).
    """
    folder = lab.out / f"corpus-{tgt_lang}-{n_train}-{n_valid}"
    files = {name: {"src": folder / f"{name}.en", "tgt": folder / f"{name}.{tgt_lang}"} for name in ("train", "valid")}
    for name, count, split, seed in (("train", n_train, "train", 1), ("valid", n_valid, "held_out", 2)):
        src, tgt = files[name]["src"], files[name]["tgt"]
        with explained(folder):
            folder.mkdir(parents=True, exist_ok=True)
            phrasebook.write(count, src, tgt, seed=seed, tgt_lang=tgt_lang, split=split)
    data = {"src_lang": "en", "tgt_lang": tgt_lang, **recipe.get("data", {}), **files}
    return Config.from_mapping({**recipe, "data": data}, "the recipe of the experiment")


def changed(config: Config, **sections: Mapping[str, Any]) -> Config:
    """Return ``config`` with some settings changed and validated again: ``changed(config, model={"n_heads": 1})``.

    Raises:
        ConfigError: The result does not fit the schema.
    """
    mapping = config.model_dump()
    for section, settings in sections.items():
        mapping[section] = {**mapping[section], **settings}
    return Config.from_mapping(mapping, "the variant of an experiment")


# --- trainings --------------------------------------------------------------------------------------------------------


def trials(lab: Lab, variant: Variant, seeds: Sequence[int]) -> list[Trial]:
    """Train and measure a variant once for each seed, see ``trial``."""
    return [trial(lab, variant, seed) for seed in seeds]


def trial(lab: Lab, variant: Variant, seed: int, keep: bool = False) -> Trial:
    """Train a variant and measure it, or return the numbers of an earlier call.

    Args:
        lab: Options of the experiment.
        variant: What to train.
        seed: Random seed of the training.
        keep: True if the run stays, in ``run_of``; else only the numbers stay.

    Raises:
        StoppedError: A signal stopped the training; run the experiment again to resume.
    """

    def measure(folder: Path, done: Trained, config: Config) -> dict[str, Any]:
        result = measured(folder, done, variant._replace(config=config))
        lab.say(f"  perplexity {result.perplexity:.3f}  BLEU {result.bleu:.1f}  ({result.seconds:.0f} s)")
        return result._asdict()

    return Trial(**finished(lab, variant, seed, measure, keep))


def finished(lab: Lab, variant: Variant, seed: int, measure: Measure, keep: bool = False) -> dict[str, Any]:
    """Train a variant and return what ``measure`` gives for it, or gave in an earlier call; see ``trial``."""
    variant = _with_seed(lab, variant, seed)
    settings = _known_by(lab, variant)

    def make() -> dict[str, Any]:
        lab.say(f"training {variant.name}, seed {seed}")
        folder = lab.run_folder(f"{variant.name}-{seed}", settings)
        numbers = measure(folder, trained(folder, variant), variant.config)
        if not keep:
            shutil.rmtree(folder)
        return numbers

    return lab.done(f"{variant.name}-{seed}", make, {"config": settings, "keep": keep})


def run_of(lab: Lab, variant: Variant, seed: int) -> Path:
    """Return the folder of the run that ``trial(..., keep=True)`` keeps."""
    return lab.run_folder(f"{variant.name}-{seed}", _known_by(lab, _with_seed(lab, variant, seed)))


def _known_by(lab: Lab, variant: Variant) -> dict[str, Any]:
    """Return the settings by which a training is found again; one that a clock ends depends on the hardware too."""
    settings = changed_settings(variant.config)
    return settings if variant.config.train.max_minutes is None else {**settings, "hardware": hardware(lab.device)}


def _with_seed(lab: Lab, variant: Variant, seed: int) -> Variant:
    return variant._replace(config=changed(variant.config, train={"seed": seed, "device": lab.device.type}))


def trained(folder: Path, variant: Variant) -> Trained:
    """Train a variant into a folder, or resume an interrupted training there.

    Raises:
        StoppedError: A signal stopped the training.
    """
    resume = bool(list_checkpoints(folder / "checkpoints"))
    if not resume and folder.exists():
        with locked(folder):
            shutil.rmtree(folder, ignore_errors=True)  # a training that stopped before its first checkpoint
    config = None if resume else variant.config
    done = train(config, out=folder, resume=resume, quiet=True, build=variant.build)
    if done.signal is not None:
        raise StoppedError(done.signal)
    return done


def measured(folder: Path, done: Trained, variant: Variant) -> Trial:
    """Return the numbers of a finished run: from its log, and from translating its validation set."""
    name, config, build = variant
    record = read_run(folder)
    if done.validation is None or record.end is None:
        raise DragomanError(f"{folder}: the log does not say how training ended; delete the folder and run again")
    translator = Translator.load(folder, config.train.device)
    model: Any = translator.model
    parameters = (model if build is None else build(model.config)).parameters()
    sources, references = validation_texts(folder)
    hyps = [translation.text for translation in translator.translate(sources, guard=False)]
    score = bleu(hyps, references, translator.config.data.tgt_lang, interval=True)
    return Trial(
        name=name,
        seed=config.train.seed,
        parameters=sum(parameter.numel() for parameter in parameters if parameter.requires_grad),
        steps=done.step,
        tokens=record.end["tokens"],
        flops=record.end["flops"],
        seconds=record.reports[-1]["seconds"],  # without the validation that follows the last step
        loss=done.validation.loss,
        perplexity=perplexity(done.validation.loss),
        bleu=score.value,
        bleu_low=score.low or 0.0,
        bleu_high=score.high or 0.0,
        chrf=chrf(hyps, references).value,
        curve=[[event["step"], event["loss"]] for event in record.reports],
        right_tokens=right_tokens(translator, folder),
    )


@torch.inference_mode()
def right_tokens(translator: Translator, folder: Path) -> float:
    """Return the share of target tokens, the end included, that are the likeliest given the right ones before them.

    Args:
        translator: A translator with the run's subwords.
        folder: The run, whose validation set is read.
    """
    store = Store.open(folder / "store/valid")
    model: Any = translator.model
    right = tokens = 0
    for batch in validation_batches(store, VALIDATION_TOKENS):
        batch = batch.to(translator.device)
        likeliest = model(batch.src, batch.tgt_in).argmax(-1)  # (B, T)
        right += int((likeliest == batch.tgt_out)[batch.tgt_out != PAD_ID].sum())
        tokens += batch.n_tgt_tokens
    return right / tokens


def validation_texts(folder: Path) -> tuple[list[str], list[str]]:
    """Return the sources and references of a run's validation set, from its store."""
    store = Store.open(folder / "store/valid")
    return store.texts(range(len(store)))


# --- results ----------------------------------------------------------------------------------------------------------


def losses(tried: Sequence[Trial]) -> list[float]:
    """Return the validation loss of each trial in nats per target token."""
    return [result.loss for result in tried]


def bleus(tried: Sequence[Trial]) -> list[float]:
    """Return the BLEU of each trial."""
    return [result.bleu for result in tried]


def accuracies(tried: Sequence[Trial]) -> list[float]:
    """Return the share of right tokens of each trial in per cent; nothing if a record has none."""
    shares = [result.right_tokens for result in tried if result.right_tokens is not None]
    return [100 * share for share in shares] if len(shares) == len(tried) else []


def as_rows(tried: Trials) -> dict[str, list[dict[str, Any]]]:
    """Return trials as plain values for JSON; ``from_rows`` reads them back."""
    return {name: [result._asdict() for result in results] for name, results in tried.items()}


def from_rows(rows: Mapping[str, Any]) -> dict[str, list[Trial]]:
    """Return the trials that ``as_rows`` made plain."""
    return {name: [Trial(**row) for row in of_variant] for name, of_variant in rows.items()}


def t_quantile(p: float, df: int) -> float:
    """Return the quantile ``p`` (0.5 or more) of Student's t distribution with ``df`` degrees of freedom.

    With ``t = sqrt(df) tan(a)`` its density becomes ``cos(a)^(df - 1)`` times a constant, which is summed.
    """
    angles = np.linspace(0, math.pi / 2, 20_001)
    density = np.cos(angles) ** (df - 1)
    summed = np.concatenate([[0.0], np.cumsum((density[1:] + density[:-1]) / 2)])
    return math.sqrt(df) * math.tan(float(np.interp(p - 0.5, 0.5 * summed / summed[-1], angles)))


def interval(values: Sequence[float]) -> Interval:
    """Return the mean of one number over seeds with its 95% confidence interval (Student's t)."""
    mean = statistics.fmean(values)
    half = _half_width(values) / math.sqrt(len(values))
    return Interval(mean, mean - half, mean + half)


def span(values: Sequence[float]) -> Interval:
    """Return the mean of one number over seeds with the lowest and the highest instead of a t-interval.

    Of three seeds that differ much a t-interval says little: it may reach below zero where no number can.
    """
    return Interval(statistics.fmean(values), min(values), max(values)) if len(values) > 1 else interval(values)


def difference(base: Sequence[float], other: Sequence[float]) -> Interval:
    """Return the mean of ``other - base``, taken seed by seed, with its 95% t-interval.

    The same seed gives both variants the same order of the data, so that the effect of the order cancels.
    """
    return interval([b - a for a, b in zip(base, other, strict=True)])


def mean_curve(
    curves: Sequence[Sequence[Sequence[float]]],
) -> tuple[list[float], list[float], list[float], list[float]]:
    """Return the mean of several curves with their band: steps that all have, and mean, lowest and highest there.

    Args:
        curves: One curve per seed, each a list of points ``(step, value)``.
    """
    by_step: list[dict[float, float]] = [{point[0]: point[1] for point in curve} for curve in curves]
    steps = [step for step in by_step[0] if all(step in values for values in by_step)]
    there = [[values[step] for values in by_step] for step in steps]
    return steps, [statistics.fmean(values) for values in there], list(map(min, there)), list(map(max, there))


def prediction_interval(values: Sequence[float], comparisons: int = 1) -> Interval:
    """Return the mean over seeds with the interval in which one more training would fall with 95% probability.

    A single training of another variant whose number is inside shows no difference.

    Args:
        values: One number per seed.
        comparisons: Number of trainings that are compared with the interval; with 95% probability all of them would
            fall inside if they were like the others (Bonferroni).
    """
    mean = statistics.fmean(values)
    half = _half_width(values, comparisons) * math.sqrt(1 + 1 / len(values))
    return Interval(mean, mean - half, mean + half)


def _half_width(values: Sequence[float], comparisons: int = 1) -> float:
    """Return the t quantile times the standard deviation; nan for one value, which has no standard deviation."""
    if len(values) < 2:
        return math.nan
    return t_quantile(1 - 0.025 / comparisons, len(values) - 1) * statistics.stdev(values)


def holds(delta: Interval, sign: int, bound: float = 0.0) -> bool | None:
    """Return True if a difference is above (sign 1) or below (-1) a bound, None if its interval includes the bound."""
    if math.isnan(delta.low) or delta.low <= bound <= delta.high:
        return None
    return (delta.mean > bound) == (sign > 0)


def within(delta: Interval, bound: float) -> bool | None:
    """Return True if a difference is between ``-bound`` and ``bound``, None if its interval includes one of them."""
    return all_hold([holds(delta, 1, -bound), holds(delta, -1, bound)])


def all_hold(answers: Collection[bool | None]) -> bool | None:
    """Return False if any of several statements does not hold, else None if any is undecided, else True."""
    return None if None in answers and False not in answers else all(answers)


def bar(name: str, mean: Interval) -> Bar:
    """Return a bar for a mean, with its interval as the whisker."""
    known = not math.isnan(mean.low)
    return Bar(name, mean.mean, mean.low if known else None, mean.high if known else None)
