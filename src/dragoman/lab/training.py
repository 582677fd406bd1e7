"""Measure the training recipe of section 5: label smoothing, warm-up, averaged checkpoints and the place of dropout."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, cast

from torch import nn

from dragoman.config import Config
from dragoman.data.store import Store
from dragoman.explanation.figures import Bars, Chart, Curve, bars, curves
from dragoman.lab.experiment import Claim, Findings, Lab, Section, Table
from dragoman.lab.runs import (
    Trial,
    Trials,
    Variant,
    accuracies,
    as_rows,
    bar,
    bleus,
    changed,
    corpus_config,
    difference,
    finished,
    from_rows,
    holds,
    interval,
    losses,
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
N_SMALL = 1500  # training pairs for the comparison of dropout
N_AVERAGED = 5  # checkpoints, as for the paper's base model


class Averaged(NamedTuple):
    """Quality of the average of the last 1, 2, ... checkpoints of one training."""

    seed: int
    loss: list[float]  # validation loss in nats per token
    bleu: list[float]  # of greedy search


def run(lab: Lab) -> Findings:
    """Train with and without each part of the recipe; claims: smoothing raises BLEU, the other parts lower the loss."""
    config = with_named_peak(transformer_config(lab))
    seeds = (1,) if lab.quick else (1, 2, 3)
    smoothing_share = config.train.label_smoothing or 0.1
    config = changed(config, train={"label_smoothing": smoothing_share})
    # The schedules are made before the first training, so that an impossible one is refused at once.
    averaged_schedules = schedules(config)

    def tried(name: str, **train: float) -> list[Trial]:
        changed_config = changed(config, train=train)
        return trials(lab, Variant("base" if changed_config == config else name, changed_config), seeds)

    smoothing = {f"{e:g}": tried(f"smoothing-{e:g}", label_smoothing=e) for e in (0.0, smoothing_share)}
    warmup = {
        f"{steps}": tried(f"warmup-{steps}", warmup_steps=steps)
        for steps in (WARMUPS[:1] if lab.quick else WARMUPS)
        if steps < config.train.max_steps
    }
    averages = {name: averaged(lab, name, schedule, seeds) for name, schedule in averaged_schedules.items()}
    dropout = dropout_places(lab, seeds)
    numbers = {
        "smoothing": as_rows(smoothing),
        "warmup": as_rows(warmup),
        "averages": {name: [average._asdict() for average in of_seeds] for name, of_seeds in averages.items()},
        "dropout": as_rows(dropout),
        "own_text": lab.config is not None,
    }
    return Findings(numbers, sections(numbers), verdict(numbers))


# --- trainings --------------------------------------------------------------------------------------------------------


def with_named_peak(config: Config) -> Config:
    """Return a training with the same learning rates whose peak is a setting of its own.

    In the paper's schedule the peak depends on the warm-up, so that a change of the warm-up would change both.
    """
    train = config.train
    if train.schedule != "noam":
        return config
    peak = (train.lr or 1.0) * config.model.d_model**-0.5 * train.warmup_steps**-0.5
    return changed(config, train={"schedule": "inverse_sqrt", "lr": peak})


def schedules(config: Config) -> dict[str, Config]:
    """Return the training with a learning rate that stays high, as the paper's, and with one that falls to zero."""
    every = max(1, config.train.max_steps // 30)  # the last five checkpoints span the last sixth of the training
    train = {"save_every": every, "average": N_AVERAGED}
    return {
        "inverse-sqrt": changed(config, train={**train, "schedule": "inverse_sqrt"}),
        "cosine": changed(config, train={**train, "schedule": "cosine"}),
    }


def averaged(lab: Lab, name: str, config: Config, seeds: Sequence[int]) -> list[Averaged]:
    """Train once for each seed, and measure the average of the last 1, 2, ... checkpoints of each training."""
    variant = Variant(f"average-{name}", config)
    return [Averaged(**finished(lab, variant, seed, _measured_averages)) for seed in seeds]


def _measured_averages(folder: Path, done: Trained, config: Config) -> dict[str, Any]:
    """Return the fields of ``Averaged`` for a finished run."""
    translator = Translator.load(folder, config.train.device)
    store, ticker = Store.open(folder / "store/valid"), Ticker(quiet=True)
    measure = validator(translator.config, store, translator.tgt_tokenizer, ticker)
    # The checkpoint of the last step is left out where it is not due: it hardly differs from the one before it.
    every = config.train.save_every
    checkpoints = [path for path in list_checkpoints(folder / "checkpoints") if step_of(path) % every == 0]
    loss, bleu = [], []
    for n in range(1, len(checkpoints) + 1):
        load_into(cast(nn.Module, translator.model), average_checkpoints(checkpoints[-n:]))
        validation = measure(translator.model)
        loss.append(validation.loss)
        bleu.append(validation.bleu)
    return {"seed": config.train.seed, "loss": loss, "bleu": bleu}


class Place(NamedTuple):
    """A place for dropout in the model."""

    label: str
    build: Build | None
    model: Mapping[str, float]


def places(p: float) -> dict[str, Place]:
    """Return the places for dropout with probability ``p``; "sub-layers" and "skip" include the embeddings."""
    none = {"dropout": 0.0, "attention_dropout": 0.0, "activation_dropout": 0.0}
    return {
        "nowhere": Place("nowhere", None, none),
        "sub-layers": Place("on what sub-layers add (the paper)", None, {**none, "dropout": p}),
        "skip": Place("on the skip path", SkipDropout, {**none, "dropout": p}),
        "attention": Place("on attention weights", None, {**none, "attention_dropout": p}),
        "activation": Place("inside the feed-forward network", None, {**none, "activation_dropout": p}),
    }


def dropout_places(lab: Lab, seeds: Sequence[int]) -> Trials:
    """Train with dropout at each place; of the embedded corpus on a text so small that the model memorises it."""
    config = with_named_peak(corpus_config(lab, n_train=N_SMALL))
    return {
        name: trials(lab, Variant(f"dropout-{name}", changed(config, model=place.model), place.build), seeds)
        for name, place in places(config.model.dropout or 0.1).items()
    }


# --- the report -------------------------------------------------------------------------------------------------------


def _averages_by_schedule(numbers: Mapping[str, Any]) -> dict[str, list[Averaged]]:
    return {name: [Averaged(**row) for row in rows] for name, rows in numbers["averages"].items()}


def verdict(numbers: Mapping[str, Any]) -> list[Claim]:
    """Return the claims of the experiment, each decided by the numbers of a run."""
    smoothing, warmup, dropout = (from_rows(numbers[part]) for part in ("smoothing", "warmup", "dropout"))

    def compared(text: str, base: Sequence[float], other: Sequence[float], unit: str, sign: int) -> Claim:
        """Claim that ``other - base`` has a sign, by the interval over seeds."""
        delta = difference(base, other)
        return Claim(text, holds(delta, sign), f"{delta:+.3f} {unit}")

    plain, smoothed = smoothing.values()
    shortest, *longer = warmup.values()
    right, helps = [], []
    if longer:  # a training of few steps has no longer warm-up to compare
        text = f"Warm-up helps ({list(warmup)[1]} steps against {next(iter(warmup))})"
        helps = [compared(text, losses(shortest), losses(longer[0]), "nats a token", -1)]
    if has_accuracy(smoothing):
        text = "Label smoothing makes more tokens right"
        right = [compared(text, accuracies(plain), accuracies(smoothed), "per cent of the tokens", 1)]
    claims = [
        compared("Label smoothing makes perplexity worse", losses(plain), losses(smoothed), "nats a token", 1),
        *right,
        compared("Label smoothing makes BLEU better", bleus(plain), bleus(smoothed), "BLEU", 1),
        *helps,
    ]
    for name, averages in _averages_by_schedule(numbers).items():
        last, mean = [a.loss[0] for a in averages], [a.loss[-1] for a in averages]
        rate = "that stays high" if name == "inverse-sqrt" else "that has fallen to nothing"
        claims.append(compared(f"Averaging checkpoints helps after a rate {rate}", last, mean, "nats a token", -1))
    nowhere = losses(dropout["nowhere"])
    for name, place in places(0.1).items():
        if name != "nowhere":
            text = f"Dropout {place.label} is better than none"
            claims.append(compared(text, nowhere, losses(dropout[name]), "nats a token", -1))
    text = "Dropout on the skip path is worse than on what sub-layers add"
    claims.append(compared(text, losses(dropout["sub-layers"]), losses(dropout["skip"]), "nats a token", 1))
    return claims


def sections(numbers: Mapping[str, Any]) -> list[Section]:
    """Return the sections of the report, with figures and tables made from the numbers of a run."""
    smoothing, warmup, dropout = (from_rows(numbers[part]) for part in ("smoothing", "warmup", "dropout"))
    return [_smoothing(smoothing), _warmup(warmup), _averages(_averages_by_schedule(numbers)),
            _dropout(dropout, numbers.get("own_text", False))]  # fmt: skip


def _smoothing(tried: Trials) -> Section:
    names = {name: f"ε = {name}" for name in tried}
    return Section(
        "Label smoothing",
        "",
        _two_bars(tried, names),
        "smoothing",
        _table(tried, names, "label smoothing", counts_tokens=has_accuracy(tried)),
        "Loss is unsmoothed, on the validation set."
        + (" A token is right if it is the likeliest, given the right ones before it." if has_accuracy(tried) else ""),
    )


def _warmup(tried: Trials) -> Section:
    names = {name: f"{name} step{'s' * (name != '1')}" for name in tried}
    lines = [Curve(names[name], *mean_curve([result.curve for result in results])) for name, results in tried.items()]
    return Section(
        "Warm-up",
        "",
        curves([Chart(lines, "step", "training loss (nats a target token)")], width=6.4),
        "warmup",
        _table(tried, names, "warm-up"),
        "Training loss, mean over the seeds; bands: the lowest and the highest seed.",
    )


def _averages(averages: Mapping[str, list[Averaged]]) -> Section:
    titles = {"inverse-sqrt": "The rate stays high (1/√step)", "cosine": "The rate falls to nothing (cosine)"}
    all_losses = [loss for of_seeds in averages.values() for average in of_seeds for loss in average.loss]
    margin = 0.05 * (max(all_losses) - min(all_losses))
    y_range = (min(all_losses) - margin, max(all_losses) + margin)  # one scale, so that heights can be compared
    charts = []
    for name, of_seeds in averages.items():
        counts = range(1, min(len(average.loss) for average in of_seeds) + 1)
        means = [interval([average.loss[n - 1] for average in of_seeds]).mean for n in counts]
        lines = [Curve(f"seed {a.seed}", list(counts), a.loss[: len(counts)], points=True) for a in of_seeds]
        charts.append(Chart([*lines, Curve("mean", list(counts), means, dashed=True)],
                            "checkpoints averaged (the last N)", "validation loss (nats a token)", titles[name],
                            y_range=y_range, x_names={n: str(n) for n in counts}))  # fmt: skip
    rows = [
        (titles[name], *(_list([getattr(a, key)[at] for a in of_seeds]) for key in ("loss", "bleu") for at in (0, -1)))
        for name, of_seeds in averages.items()
    ]
    return Section(
        "Averaging checkpoints",
        "",
        curves(charts),
        "averages",
        Table(("schedule", "loss, last", f"loss, {N_AVERAGED} averaged", "BLEU, last", "BLEU, averaged"), rows),
        "By seed. BLEU here is that of greedy translations.",
    )


def _list(values: Sequence[float]) -> str:
    """Return numbers as a list in a cell."""
    return ", ".join(f"{value:.3g}" for value in values)


def _dropout(tried: Trials, own_text: bool) -> Section:
    """Return the section on places of dropout; ``own_text``: on all text of a configuration, however much that is."""
    small = "" if own_text else "On a text so small that a model without dropout memorises it. "
    names = {name: place.label for name, place in places(0.1).items()}
    return Section(
        "Where dropout stands",
        f"{small}On the skip path (where one of the five documents has it) dropout destroys the input of all later "
        "layers.",
        _two_bars(tried, names),
        "dropout",
        _table(tried, names, "dropout"),
        "By the place of dropout.",
    )


def _two_bars(tried: Trials, names: Mapping[str, str]) -> Any:
    return bars(
        [
            Bars(
                [bar(names[name], interval(losses(results))) for name, results in tried.items()], "loss (nats a token)"
            ),
            Bars([bar(names[name], interval(bleus(results))) for name, results in tried.items()], "BLEU"),
        ]
    )


def _table(tried: Trials, names: Mapping[str, str], what: str, *, counts_tokens: bool = False) -> Table:
    columns = {"validation loss": losses, "BLEU": bleus}
    if counts_tokens:
        columns["right tokens (%)"] = accuracies
    rows = [(names[name], *(str(interval(of(results))) for of in columns.values())) for name, results in tried.items()]
    return Table((what, *columns), rows)


def has_accuracy(tried: Trials) -> bool:
    """Return True if all trials have counted their right tokens, which records of earlier versions have not."""
    return all(accuracies(results) for results in tried.values())
