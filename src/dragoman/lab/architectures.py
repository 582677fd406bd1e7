"""Train the Transformer and the paper's baselines for the same minutes on the same text (see also Table 2)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from dragoman.config import OF_TRANSFORMERS, Config, ModelOptions
from dragoman.explanation.figures import Bars, Chart, Curve, bars, curves
from dragoman.explanation.style import BLUE, ORANGE, PURPLE, QUIET
from dragoman.lab.experiment import Claim, Findings, Lab, Section, Table
from dragoman.lab.runs import (
    Interval,
    Trial,
    Trials,
    Variant,
    as_rows,
    bar,
    bleus,
    changed,
    corpus_config,
    difference,
    from_rows,
    holds,
    interval,
    mean_curve,
    trials,
)

TAKES = ("config", "device")

KINDS = {
    "transformer": "Transformer",
    "conv": "convolutions",
    "lstm": "LSTM",
    "gru": "GRU",
    "rnn": "plain RNN",
}
"""Name in figures of each ``model.architecture``."""

LOOKS = {
    "transformer": (BLUE, False), "conv": (ORANGE, False), "lstm": (PURPLE, False), "gru": (PURPLE, True),
    "rnn": (QUIET, True),
}  # fmt: skip
"""Colour of each architecture in all figures, and True if its line is dashed."""

MINUTES = 2.0
"""Length of each training on the embedded corpus, in minutes."""

MINUTES_OF_CONFIG = 20.0
"""Length of each training in minutes, for a configuration without a limit of time."""

NEVER = 1_000_000
"""Number of steps that no training reaches: with it as ``max_steps`` the schedule follows the clock alone."""

LR = 1.5e-3
"""Peak learning rate of all architectures on the embedded corpus, and for configurations with the paper's schedule,
which names no rate."""

RECIPE: dict[str, Any] = {
    "model": dict(d_model=128, d_ff=512, n_heads=4, n_encoder_layers=2, n_decoder_layers=2, dropout=0.1),
    "data": {"tokenizer": {"vocab_size": 1600}},
    "train": dict(
        max_steps=10_000, batch_tokens=1024, schedule="cosine", lr=LR, warmup_steps=500, clip_norm=1.0, average=0,
        save_every=1000,
    ),
    "decode": {"beam_size": 4},
}  # fmt: skip


def with_time_limit(config: Config, lab: Lab) -> Config:
    """Return a training that lasts a fixed number of minutes, with a learning rate that follows the clock to zero.

    So an architecture with slow steps finishes its schedule too. In a quick run the configuration stays as it is.
    """
    if lab.quick:
        return config
    minutes = MINUTES if lab.config is None else lab.config.train.max_minutes or MINUTES_OF_CONFIG
    lr = LR if config.train.schedule == "noam" else config.train.lr  # the lr of noam is a factor, not a rate
    schedule = {"schedule": "cosine", "lr": lr, "validate_every": NEVER, **clock_settings(minutes)}
    return changed(config, train=schedule)


def clock_settings(minutes: float) -> dict[str, Any]:
    """Return settings of ``train`` with which a schedule follows the clock alone; its first twentieth is warm-up."""
    return {"max_minutes": minutes, "max_steps": NEVER, "warmup_steps": NEVER // 20}


def with_architecture(config: Config, kind: str) -> Config:
    """Return the same training of another architecture, with defaults for the settings that it does not have."""
    if kind == "transformer":
        return changed(config, model={"architecture": kind})
    has_positions = kind == "conv" and config.model.positions != "rotary"
    others = OF_TRANSFORMERS if has_positions else (*OF_TRANSFORMERS, "positions")
    defaults = {name: ModelOptions.model_fields[name].default for name in others}
    return changed(config, model={**defaults, "architecture": kind})


def run(lab: Lab) -> Findings:
    """Train each architecture for the same minutes; claims: the Transformer translates best, recurrence is slow."""
    config = with_time_limit(corpus_config(lab, RECIPE, n_train=20_000, n_valid=500), lab)
    seeds = (1,) if lab.quick or lab.config is not None else (1, 2, 3)
    # All configurations are made before the first training, so that an impossible one is refused at once.
    variants = [Variant(kind, with_architecture(config, kind)) for kind in KINDS]
    tried = {variant.name: trials(lab, variant, seeds) for variant in variants}
    numbers = {
        "minutes": config.train.max_minutes,
        "lr": config.train.lr,
        "trials": as_rows(tried),
        "operations_per_second": {kind: speed(results) for kind, results in tried.items()},
    }
    return Findings(numbers, sections(numbers), verdict(numbers))


def speed(tried: Sequence[Trial]) -> float:
    """Return the counted operations per second of training."""
    return sum(result.flops for result in tried) / sum(result.seconds for result in tried)


# --- the report -------------------------------------------------------------------------------------------------------


def _better_than(tried: Trials, kind: str) -> Claim:
    """Claim that the Transformer's BLEU is higher than that of ``kind``.

    Several seeds decide by the interval of their differences, a single one by the bootstrap intervals over sentences.
    """
    transformer, other = tried["transformer"], tried[kind]
    text = f"The Transformer translates better than {_named(kind)}"
    if len(transformer) > 1:
        gain = difference(bleus(other), bleus(transformer))
        return Claim(text, holds(gain, 1), f"BLEU {gain:+.1f}")
    a, b = _bleu(transformer), _bleu(other)
    apart = a.low > b.high or b.low > a.high
    return Claim(text, a.mean > b.mean if apart else None, f"BLEU {a.mean:.1f} against {b.mean:.1f}")


def _bleu(tried: Sequence[Trial]) -> Interval:
    """Return the mean BLEU over seeds with its interval; one seed has the bootstrap interval over sentences."""
    if len(tried) > 1:
        return interval(bleus(tried))
    return Interval(tried[0].bleu, tried[0].bleu_low, tried[0].bleu_high)


def _named(kind: str) -> str:
    return {"conv": "convolutions", "rnn": "a plain RNN"}.get(kind, f"{'an' if kind == 'lstm' else 'a'} {KINDS[kind]}")


def verdict(numbers: Mapping[str, Any]) -> list[Claim]:
    """Return the claims of the experiment, each decided by the numbers of a run."""
    tried = from_rows(numbers["trials"])
    rates = numbers["operations_per_second"]
    slower = max(rates[kind] for kind in ("lstm", "gru", "rnn"))
    gain = difference(bleus(tried["rnn"]), bleus(tried["lstm"]))
    return [
        *(_better_than(tried, kind) for kind in KINDS if kind != "transformer"),
        Claim(
            "Recurrent models reach fewer operations a second, for their steps wait for one another",
            rates["transformer"] > slower,
            "thousand million operations a second: "
            + ", ".join(f"{name} {rates[kind] / 1e9:.0f}" for kind, name in KINDS.items()),
        ),
        Claim(
            "An LSTM translates better than a plain RNN",
            holds(gain, 1),
            f"BLEU {gain:+.1f}",
        ),
    ]


def _table(tried: Trials) -> Table:
    columns = (
        "model", "BLEU", "perplexity", "parameters", "updates", "operations (10¹²)",
    )  # fmt: skip
    rows = []
    for kind, results in tried.items():
        n = len(results)
        rows.append((
            KINDS[kind], f"{_bleu(results):.1f}", f"{interval([result.perplexity for result in results]).mean:.2f}",
            results[0].parameters, sum(result.steps for result in results) // n,
            sum(result.flops for result in results) / n / 1e12,
        ))  # fmt: skip
    return Table(columns, rows)


def _count_seeds(tried: Trials) -> str:
    """Return the number of seeds of each architecture in words."""
    count = len(tried["transformer"])
    return f"{count} seeds each" if count > 1 else "one seed each"


def _learning(tried: Trials) -> Chart:
    """Draw the perplexity over time, without the first tenth, in which all curves fall from thousands alike."""
    lines = []
    longest = max(result.seconds for results in tried.values() for result in results)
    unit, label = (1, "training (seconds)") if longest < 300 else (60, "training (minutes)")
    for kind, results in tried.items():
        step_s = sum(result.seconds / result.steps for result in results) / len(results)
        points = [
            (step * step_s / unit, *(math.exp(min(loss, 50)) for loss in bounds))
            for step, *bounds in zip(*mean_curve([result.curve for result in results]), strict=True)
        ]
        points = [point for point in points if point[0] * unit >= longest / 10] or points
        colour, dashed = LOOKS[kind]
        xs, mean, low, high = zip(*points, strict=True)
        lines.append(Curve(KINDS[kind], xs, mean, low, high, colour=colour, dashed=dashed))
    return Chart(lines, label, "training perplexity (log scale)", y_log=10)


def sections(numbers: Mapping[str, Any]) -> list[Section]:
    """Return the sections of the report, with figures and tables made from the numbers of a run."""
    tried = from_rows(numbers["trials"])
    minutes = numbers["minutes"]
    budget = f"{minutes:g} minutes of training each" if minutes else "a few steps each"
    best_first = sorted(tried, key=lambda kind: -_bleu(tried[kind]).mean)
    quality = Bars(
        [bar(KINDS[kind], _bleu(tried[kind]))._replace(colour=LOOKS[kind][0]) for kind in best_first],
        "BLEU, beam search",
    )
    return [
        Section(
            "The same text, the same minutes",
            [
                f"Five architectures of the same width and number of layers, {budget}, {_count_seeds(tried)}.",
                f"All have the same peak rate, {numbers['lr']:g}, which was tuned for none of them. Time is wall-clock "
                "time, so the load of the machine is part of the comparison."
                + (
                    ""
                    if len(tried["transformer"]) > 1
                    else " One seed does not show how much of a difference is chance."
                ),
            ],
            bars([quality]),
            "bleu",
            _table(tried),
            "BLEU on text that was not trained on; whiskers and brackets: 95% intervals, over seeds where there are "
            "several, else by bootstrap over sentences.",
        ),
        Section(
            "On the way",
            "",
            curves([_learning(tried)], width=6.0, height=3.8),
            "learning",
            caption="Perplexity on the training text: many fast steps count as much as few good ones.",
        ),
    ]
