"""What the recipe of section 5 is worth: label smoothing, warm-up, averaged checkpoints, and where dropout stands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, cast

from torch import nn

from dragoman.config import Config
from dragoman.data.store import Store
from dragoman.explanation.figures import Bars, Chart, Curve, bars, curves
from dragoman.lab.report import Claim, Findings, Lab, Section, Table
from dragoman.lab.runs import (
    Trial,
    bar,
    changed,
    corpus_config,
    difference,
    finished,
    holds,
    interval,
    mean_curve,
    transformer_config,
    trials,
)
from dragoman.lab.skip_dropout import SkipDropout
from dragoman.model.weights import load_into
from dragoman.progress import Ticker
from dragoman.training.averaging import average_checkpoints
from dragoman.training.checkpoint import list_checkpoints, step_of
from dragoman.training.run import Build, Trained
from dragoman.training.validation import validator
from dragoman.translation.translator import Translator

TAKES = ("config", "device")

WARMUPS = (1, 150, 500)  # steps
N_SMALL = 1500  # pairs of training text on which dropout is tried
N_AVERAGED = 5  # checkpoints, as the paper's base model

Found = dict[str, list[Trial]]


class Averaged(NamedTuple):
    """One training, and its last checkpoints averaged: the last 1, 2, ... of them."""

    seed: int
    loss: list[float]
    bleu: list[float]  # greedy


def run(lab: Lab) -> Findings:
    """Claims: smoothing costs perplexity and gains BLEU; warm-up, averages and dropout each help."""
    config = by_its_peak(transformer_config(lab))
    seeds = (1,) if lab.quick else (1, 2, 3)
    smoothed = config.train.label_smoothing or 0.1
    config = changed(config, train={"label_smoothing": smoothed})
    falling = schedules(config)  # refused before anything is trained, if it is to be

    def made(name: str, **train: float) -> list[Trial]:
        variant = changed(config, train=train)
        return trials(lab, "base" if variant == config else name, variant, seeds)

    smoothing = {f"{share:g}": made(f"smoothing-{share:g}", label_smoothing=share) for share in (0.0, smoothed)}
    warmup = {
        f"{steps}": made(f"warmup-{steps}", warmup_steps=steps)
        for steps in (WARMUPS[:1] if lab.quick else WARMUPS)
        if steps < config.train.max_steps
    }
    averages = {name: averaged(lab, name, schedule, seeds) for name, schedule in falling.items()}
    dropout = dropout_places(lab, seeds)
    numbers = {
        "smoothing": _rows(smoothing),
        "warmup": _rows(warmup),
        "averages": {name: [each._asdict() for each in found] for name, found in averages.items()},
        "dropout": _rows(dropout),
    }
    return Findings(numbers, sections(numbers), verdict(numbers))


# --- trainings --------------------------------------------------------------------------------------------------------


def by_its_peak(config: Config) -> Config:
    """The same training with the paper's schedule said by its peak, which then does not move with the warm-up."""
    train = config.train
    if train.schedule != "noam":
        return config
    peak = (train.lr or 1.0) * config.model.d_model**-0.5 * train.warmup_steps**-0.5
    return changed(config, train={"schedule": "inverse_sqrt", "lr": peak})


def schedules(config: Config) -> dict[str, Config]:
    """The same training with a rate that stays high, as the paper's does, and with one that falls to nothing."""
    every = max(1, config.train.max_steps // 30)  # the last five: the last sixth of the training
    train = {"save_every": every, "average": N_AVERAGED}
    return {
        "inverse-sqrt": changed(config, train={**train, "schedule": "inverse_sqrt"}),
        "cosine": changed(config, train={**train, "schedule": "cosine"}),
    }


def averaged(lab: Lab, name: str, config: Config, seeds: Sequence[int]) -> list[Averaged]:
    """How well the mean of the last 1, 2, ... checkpoints of one training does."""
    return [Averaged(**finished(lab, f"average-{name}", config, seed, _averages_of)) for seed in seeds]


def _averages_of(folder: Path, done: Trained, config: Config) -> dict[str, Any]:
    """The averages of a finished run's checkpoints, each measured."""
    translator = Translator.load(folder, config.train.device)
    store, ticker = Store.open(folder / "store/valid"), Ticker(quiet=True)
    measure = validator(translator.config, store, translator.tgt_tokenizer, ticker)
    every = config.train.save_every  # one that was saved for the end alone is hardly another than the one before
    checkpoints = [path for path in list_checkpoints(folder / "checkpoints") if step_of(path) % every == 0]
    found = []
    for n in range(1, len(checkpoints) + 1):
        load_into(cast(nn.Module, translator.model), average_checkpoints(checkpoints[-n:]))
        found.append(measure(translator.model))
    return {
        "seed": config.train.seed,
        "loss": [each.loss for each in found],
        "bleu": [each.bleu for each in found],
    }


class Place(NamedTuple):
    """Where dropout stands, all else being equal."""

    label: str
    build: Build | None
    model: Mapping[str, float]


def places(p: float) -> dict[str, Place]:
    """Where dropout with probability ``p`` may stand; embeddings are dropped where sub-layers or skip paths are."""
    none = {"dropout": 0.0, "attention_dropout": 0.0, "activation_dropout": 0.0}
    return {
        "nowhere": Place("nowhere", None, none),
        "sub-layers": Place("on what sub-layers add (the paper)", None, {**none, "dropout": p}),
        "skip": Place("on the skip path", SkipDropout, {**none, "dropout": p}),
        "attention": Place("on attention weights", None, {**none, "attention_dropout": p}),
        "activation": Place("inside the feed-forward network", None, {**none, "activation_dropout": p}),
    }


def dropout_places(lab: Lab, seeds: Sequence[int]) -> Found:
    """Each place on a text so small that the model learns it by heart."""
    config = by_its_peak(corpus_config(lab, n_train=N_SMALL))
    p = config.model.dropout or 0.1
    return {
        name: trials(lab, f"dropout-{name}", changed(config, model=place.model), seeds, place.build)
        for name, place in places(p).items()
    }


# --- the account ------------------------------------------------------------------------------------------------------


def _losses(found: Sequence[Trial]) -> list[float]:
    return [each.loss for each in found]


def _bleus(found: Sequence[Trial]) -> list[float]:
    return [each.bleu for each in found]


def _rows(found: Found) -> dict[str, Any]:
    return {name: [each._asdict() for each in made] for name, made in found.items()}


def _read(rows: Mapping[str, Any]) -> Found:
    return {name: [Trial(**one) for one in made] for name, made in rows.items()}


def verdict(numbers: Mapping[str, Any]) -> list[Claim]:
    """What a full run decides, from the numbers that it keeps."""
    smoothing, warmup, dropout = (_read(numbers[part]) for part in ("smoothing", "warmup", "dropout"))
    averages = {name: [Averaged(**one) for one in found] for name, found in numbers["averages"].items()}

    def compared(text: str, one: Sequence[float], other: Sequence[float], unit: str, sign: int) -> Claim:
        found = difference(one, other)
        return Claim(text, holds(found, sign), f"{found:+.3f} {unit} over {len(one)} seeds")

    plain, smoothed = smoothing.values()
    shortest, *longer = warmup.values()
    usual = longer[0] if longer else shortest
    claims = [
        compared("Label smoothing makes perplexity worse", _losses(plain), _losses(smoothed), "nats a token", 1),
        compared("Label smoothing makes BLEU better", _bleus(plain), _bleus(smoothed), "BLEU", 1),
        compared("Warm-up helps (150 steps against 1)", _losses(shortest), _losses(usual), "nats a token", -1),
    ]
    for name, found in averages.items():
        last, mean = [each.loss[0] for each in found], [each.loss[-1] for each in found]
        rate = "that stays high" if name == "inverse-sqrt" else "that has fallen to nothing"
        claims.append(
            compared(f"Averaging checkpoints helps after a rate {rate}", last, mean, "nats a token", -1)
        )  # fmt: skip
    nowhere = _losses(dropout["nowhere"])
    for name, place in places(0.1).items():
        if name != "nowhere":
            text = f"Dropout {place.label} is better than none"
            claims.append(compared(text, nowhere, _losses(dropout[name]), "nats a token", -1))
    text = "Dropout on the skip path is worse than on what sub-layers add"
    claims.append(compared(text, _losses(dropout["sub-layers"]), _losses(dropout["skip"]), "nats a token", 1))
    return claims


def sections(numbers: Mapping[str, Any]) -> list[Section]:
    """What a full run tells and draws, from the numbers that it keeps."""
    smoothing, warmup, dropout = (_read(numbers[part]) for part in ("smoothing", "warmup", "dropout"))
    averages = {name: [Averaged(**one) for one in found] for name, found in numbers["averages"].items()}
    return [_smoothing(smoothing), _warmup(warmup), _averages(averages), _dropout(dropout)]


def _smoothing(found: Found) -> Section:
    names = {name: f"ε = {name}" for name in found}
    return Section(
        "Label smoothing",
        "A model that is taught 1 - ε for the right subword and ε spread over all others must not be surer than that. "
        "It pays in perplexity, which asks how probable the one reference is; BLEU asks only which is likeliest.",
        _two_bars(found, names),
        "smoothing",
        _table(found, names, "label smoothing"),
        "Loss is unsmoothed, on the validation set.",
    )


def _warmup(found: Found) -> Section:
    names = {name: f"{name} step{'s' * (name != '1')}" for name in found}
    lines = [Curve(names[name], *mean_curve([each.curve for each in made])) for name, made in found.items()]
    return Section(
        "Warm-up",
        "Adam's first steps go by variances that it knows from a handful of gradients. The rate rises from nothing to "
        "its peak, which is the same for all.",
        curves([Chart(lines, "step", "training loss (nats a target token)")], width=6.4),
        "warmup",
        _table(found, names, "warm-up"),
        "Training loss, mean over seeds.",
    )


def _averages(found: Mapping[str, list[Averaged]]) -> Section:
    titles = {"inverse-sqrt": "The rate stays high (1/√step)", "cosine": "The rate falls to nothing (cosine)"}
    charts = []
    losses = [loss for made in found.values() for each in made for loss in each.loss]
    room = 0.05 * (max(losses) - min(losses))
    both = (min(losses) - room, max(losses) + room)  # one scale, so that heights can be compared
    for name, made in found.items():
        numbers = range(1, min(len(each.loss) for each in made) + 1)
        spread = [interval([each.loss[n - 1] for each in made]) for n in numbers]
        lines = [Curve(f"seed {each.seed}", list(numbers), each.loss[: len(numbers)], points=True) for each in made]
        mean = Curve("mean", list(numbers), [each.mean for each in spread], dashed=True)
        charts.append(Chart([*lines, mean], "checkpoints averaged (the last N)",
                            "validation loss (nats a token)", titles[name], y_range=both,
                            x_names={n: str(n) for n in numbers}))  # fmt: skip
    rows = [
        (titles[name], each.seed, each.loss[0], each.loss[-1], each.bleu[0], each.bleu[-1])
        for name, made in found.items()
        for each in made
    ]
    return Section(
        "Averaging checkpoints",
        "A rate that is still high keeps the weights moving around a valley; their mean lies nearer to its floor. A "
        "rate that has fallen to nothing has brought them there already.",
        curves(charts),
        "averages",
        Table(("schedule", "seed", "loss, last", f"loss, {N_AVERAGED} averaged", "BLEU, last", "BLEU, averaged"), rows),
        "BLEU here is that of greedy translations.",
    )


def _dropout(found: Found) -> Section:
    names = {name: place.label for name, place in places(0.1).items()}
    return Section(
        "Where dropout stands",
        "The same probability at one place at a time, on a text so small that without dropout the model learns it by "
        "heart. On the skip path (where one of the five documents has it) dropout destroys what later layers would "
        "have read; on what a sub-layer adds it takes away one contribution among many.",
        _two_bars(found, names),
        "dropout",
        _table(found, names, "dropout"),
        "Validation loss and BLEU by the place of dropout.",
    )


def _two_bars(found: Found, names: Mapping[str, str]) -> Any:
    return bars(
        [
            Bars([bar(names[name], interval(_losses(made))) for name, made in found.items()], "loss (nats a token)"),
            Bars([bar(names[name], interval(_bleus(made))) for name, made in found.items()], "BLEU"),
        ]
    )


def _table(found: Found, names: Mapping[str, str], what: str) -> Table:
    return Table(
        (what, "training loss at the end", "validation loss", "perplexity", "BLEU"),
        [
            (
                names[name],
                interval([each.curve[-1][1] for each in made]).mean,
                str(interval(_losses(made))),
                interval([each.perplexity for each in made]).mean,
                str(interval(_bleus(made))),
            )
            for name, made in found.items()
        ],
    )
