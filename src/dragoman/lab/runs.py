"""Trainings as evidence: a variant is trained by the ordinary commands, measured, and compared over seeds.

    base = embedded_corpus(lab, RECIPE, n_train=8000)          # or the configuration that --config gave
    plain = trials(lab, "plain", base, seeds=(1, 2, 3))
    other = trials(lab, "one-head", changed(base, model={"n_heads": 1}), seeds=(1, 2, 3))
    difference([each.loss for each in plain], [each.loss for each in other])

An interrupted training resumes from its last checkpoint, a finished one is not repeated, and after it has
been measured only its numbers are kept, unless its run is asked for.
"""

from __future__ import annotations

import itertools
import math
import shutil
import statistics
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from dragoman.config import Config, DataConfig, each
from dragoman.data import phrasebook
from dragoman.data.store import Store
from dragoman.data.texts import languages_of, read_texts
from dragoman.errors import ConfigError, DragomanError
from dragoman.evaluation.metrics import bleu, chrf
from dragoman.explanation.figures import Bar
from dragoman.files import explained, refuse_if_locked, write_text
from dragoman.lab.report import Lab, StoppedError, identity
from dragoman.training.checkpoint import list_checkpoints
from dragoman.training.loss import perplexity
from dragoman.training.record import read_run
from dragoman.training.run import Build, Trained, train
from dragoman.translation.translator import Translator


class Trial(NamedTuple):
    """One training and what its model does on the validation set."""

    name: str
    seed: int
    parameters: int  # that are trained
    steps: int
    tokens: int  # target tokens learned from
    flops: float
    seconds: float  # of training
    loss: float  # unsmoothed, nats per target token
    perplexity: float  # per subword
    bleu: float  # by beam search
    bleu_low: float  # 95% bootstrap over sentences
    bleu_high: float
    chrf: float
    curve: list[list[float]]  # step, unsmoothed training loss since the last report


Measure = Callable[[Path, Trained, Config], dict[str, Any]]
"""Given a run's folder, how its training ended and its configuration: what is to be kept of it, as JSON has it."""


class Interval(NamedTuple):
    """A mean over seeds with its 95% t-interval; of a single value there is none."""

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
"""A model that learns the embedded corpus in half a minute, so that it can be trained again and again."""

QUICK: dict[str, dict[str, Any]] = {
    "train": dict(max_steps=12, batch_tokens=300, warmup_steps=6, validate_every=12, save_every=4, log_every=4),
    "decode": dict(beam_size=1, max_extra_tokens=2),
}
"""What a smoke run changes: a few steps, and short translations, for a model that knows nothing never stops."""


def corpus_config(lab: Lab, recipe: Mapping[str, Any] = SMALL, n_train: int = 8000, n_valid: int = 400) -> Config:
    """What an experiment trains: the configuration that ``lab`` was given, or ``recipe`` on the embedded corpus.

    A quick run makes a few steps on a little text.

    Raises:
        ConfigError: The configuration is a parser's, whose text is no translation.
    """
    if lab.config is not None:
        if lab.config.is_parser:
            raise ConfigError(f"the configuration's task is {lab.config.task}, and this experiment trains translators")
        unlimited = {"max_minutes": None, "max_epochs": None, "patience": None}  # every variant makes the same steps
        config = changed(of_last_step(lab.config), train=unlimited)
        config = changed(config, data=_first_lines(config.data, lab.out / "corpus-quick")) if lab.quick else config
    elif lab.quick:
        config = embedded_corpus(lab, recipe, 300, 12)
    else:
        config = embedded_corpus(lab, recipe, n_train, n_valid)
    return changed(config, **QUICK) if lab.quick else config


def transformer_config(lab: Lab) -> Config:
    """As ``corpus_config``, for what is a Transformer's alone.

    Raises:
        ConfigError: The configuration is another architecture's, or a parser's.
    """
    config = corpus_config(lab)
    if config.model.architecture != "transformer":
        what = f"the configuration's model.architecture is {config.model.architecture}"
        raise ConfigError(f"{what}, and this experiment is about Transformers")
    return config


def of_last_step(config: Config) -> Config:
    """A run that keeps the weights of its last step: none chosen by the very set that they are measured on."""
    return changed(config, train={"average": 0, "ema": 0.0, "validate_every": config.train.max_steps})


def _first_lines(data: DataConfig, folder: Path) -> dict[str, Any]:
    """The text of a quick run: 300 pairs of ``data``, and 12 to validate on."""
    src_lang, tgt_lang = languages_of(each(data.train))
    found: dict[str, Any] = {"src_lang": data.src_lang or src_lang, "tgt_lang": data.tgt_lang or tgt_lang}
    with explained(folder):
        folder.mkdir(parents=True, exist_ok=True)
    for name, whole, count in (("train", data.train, 300), ("valid", data.valid or data.train, 12)):
        pairs = list(itertools.islice(read_texts(each(whole)), count))
        found[name] = {side: folder / f"{name}.{side}" for side in ("src", "tgt")}
        for i, path in enumerate(found[name].values()):
            write_text(path, "".join(f"{pair[i]}\n" for pair in pairs))
    return found


def embedded_corpus(
    lab: Lab, recipe: Mapping[str, Any], n_train: int, n_valid: int = 300, tgt_lang: str = "de"
) -> Config:
    """``recipe`` on the embedded corpus, which is written under ``lab.out``: always the same.

    The validation set is of the split ``held_out``: combinations of words that never occur in training.
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
    """``config`` with some settings of its sections changed, validated again: ``changed(c, model={"n_heads": 1})``.

    Raises:
        ConfigError: The result does not fit the schema.
    """
    mapping = config.model_dump()
    for section, settings in sections.items():
        mapping[section] = {**mapping[section], **settings}
    return Config.from_mapping(mapping, "the variant of an experiment")


# --- trainings --------------------------------------------------------------------------------------------------------


def trials(
    lab: Lab, name: str, config: Config, seeds: Sequence[int], build: Build | None = None, keep: bool = False
) -> list[Trial]:
    """``trial`` for each seed."""
    return [trial(lab, name, config, seed, build, keep) for seed in seeds]


def trial(lab: Lab, name: str, config: Config, seed: int, build: Build | None = None, keep: bool = False) -> Trial:
    """Train one variant and measure it, or take what was measured before.

    Args:
        name: Of the variant; what ``build`` changes is known by its name alone.
        config: All of it, data included; ``train.seed`` and ``train.device`` come from here.
        build: Makes the model instead; see ``dragoman.train``.
        keep: The run stays, in ``run_of``; else only its numbers do.

    Raises:
        StoppedError: Training was stopped by a signal; run the experiment again to resume.
    """

    def measure(folder: Path, done: Trained, config: Config) -> dict[str, Any]:
        found = measured(folder, done, name, config, build)
        lab.say(f"  perplexity {found.perplexity:.3f}  BLEU {found.bleu:.1f}  ({found.seconds:.0f} s)")
        return found._asdict()

    return Trial(**finished(lab, name, config, seed, measure, build, keep))


def finished(
    lab: Lab, name: str, config: Config, seed: int, measure: Measure, build: Build | None = None, keep: bool = False
) -> dict[str, Any]:
    """What ``measure`` finds of a training, as JSON has it; ``trial`` is this with ``measured``."""
    config = _settled(lab, config, seed)
    settings = identity(config)

    def make() -> dict[str, Any]:
        lab.say(f"training {name}, seed {seed}")
        folder = lab.run_folder(f"{name}-{seed}", settings)
        found = measure(folder, trained(folder, config, build), config)
        if not keep:
            shutil.rmtree(folder)
        return found

    return lab.done(f"{name}-{seed}", make, {"config": settings, "keep": keep})


def run_of(lab: Lab, name: str, config: Config, seed: int) -> Path:
    """Where ``trial(..., keep=True)`` leaves its run."""
    return lab.run_folder(f"{name}-{seed}", identity(_settled(lab, config, seed)))


def _settled(lab: Lab, config: Config, seed: int) -> Config:
    return changed(config, train={"seed": seed, "device": lab.device.type})


def trained(folder: Path, config: Config, build: Build | None = None) -> Trained:
    """``dragoman.train``, resuming an interrupted call for the same folder.

    Raises:
        StoppedError: A signal stopped it.
    """
    resume = bool(list_checkpoints(folder / "checkpoints"))
    if not resume:
        refuse_if_locked(folder)
        shutil.rmtree(folder, ignore_errors=True)  # of one that was stopped before its first checkpoint
    done = train(None if resume else config, out=folder, resume=resume, quiet=True, build=build)
    if done.signal is not None:
        raise StoppedError("stopped; finished trainings are kept: rerun the experiment to resume")
    return done


def measured(folder: Path, done: Trained, name: str, config: Config, build: Build | None = None) -> Trial:
    """What a finished run learned, by its log, and how its bundle does on its validation set."""
    record = read_run(folder)
    if done.validation is None or record.end is None:
        raise DragomanError(f"{folder}: the log does not say how training ended; delete the folder and run again")
    translator = Translator.load(folder, config.train.device)
    model: Any = translator.model
    parameters = (model if build is None else build(model.config)).parameters()
    sources, references = validation_texts(folder)
    hyps = [found.text for found in translator.translate(sources, guard=False)]
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
    )


def validation_texts(folder: Path) -> tuple[list[str], list[str]]:
    """The validation set of a run: sources and references, also where it was held out from the training text."""
    store = Store.open(folder / "store/valid")
    return store.texts(range(len(store)))


# --- seeds ------------------------------------------------------------------------------------------------------------

T_975 = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228)
"""0.975 quantiles of Student's t for 1 to 10 degrees of freedom
(https://www.itl.nist.gov/div898/handbook/eda/section3/eda3672.htm)."""


def interval(values: Sequence[float]) -> Interval:
    """The mean of one figure over seeds, and where it lies with 95% confidence (Student's t)."""
    mean = statistics.fmean(values)
    half = _half_width(values) / math.sqrt(len(values))
    return Interval(mean, mean - half, mean + half)


def difference(ones: Sequence[float], others: Sequence[float]) -> Interval:
    """How much more the others have, seed by seed: the mean of the differences with its 95% t-interval.

    The same seed gives both variants the same order of the data, so what a seed does to both cancels.
    """
    return interval([other - one for one, other in zip(ones, others, strict=True)])


def mean_curve(curves: Sequence[Sequence[Sequence[float]]]) -> tuple[list[float], list[float]]:
    """The mean over seeds of curves of points ``(step, value)``: the steps that all have, and the values there."""
    by_step: list[dict[float, float]] = [{point[0]: point[1] for point in curve} for curve in curves]
    steps = [step for step in by_step[0] if all(step in each for each in by_step)]
    return steps, [statistics.fmean(each[step] for each in by_step) for step in steps]


def another(values: Sequence[float]) -> Interval:
    """Where one more training of the same variant would fall with 95% confidence: what is inside is no difference."""
    mean = statistics.fmean(values)
    half = _half_width(values) * math.sqrt(1 + 1 / len(values))
    return Interval(mean, mean - half, mean + half)


def _half_width(values: Sequence[float]) -> float:
    """The t quantile times the standard deviation; nan for one value, whose spread nobody knows."""
    if len(values) < 2:
        return math.nan
    if len(values) - 1 > len(T_975):
        raise ValueError(f"quantiles are known for {len(T_975) + 1} seeds at most, not for {len(values)}")
    return T_975[len(values) - 2] * statistics.stdev(values)


def holds(found: Interval, sign: int) -> bool | None:
    """Whether a difference has this sign (1 or -1); None where its interval holds zero."""
    if math.isnan(found.low) or found.low <= 0 <= found.high:
        return None
    return (found.mean > 0) == (sign > 0)


def bar(name: str, found: Interval) -> Bar:
    """A mean as a bar, its interval as the whisker."""
    known = not math.isnan(found.low)
    return Bar(name, found.mean, found.low if known else None, found.high if known else None)
