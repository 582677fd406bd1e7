"""The Transformer and the paper's baselines with the same text, minutes and commands; Table 2 beside it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from dragoman.config import OF_TRANSFORMERS, Config, ModelConfig, ModelOptions
from dragoman.explanation.figures import Bars, Chart, Curve, bars, curves
from dragoman.explanation.style import BLUE, ORANGE, PURPLE, QUIET
from dragoman.lab.report import Claim, Findings, Lab, Section, Table
from dragoman.lab.runs import (
    Interval,
    Trial,
    bar,
    changed,
    corpus_config,
    difference,
    holds,
    interval,
    mean_curve,
    trials,
)
from dragoman.training.flops import training_flops

TAKES = ("config", "device")

KINDS = {
    "transformer": "Transformer",
    "conv": "convolutions",
    "lstm": "LSTM",
    "gru": "GRU",
    "rnn": "plain RNN",
}
"""Each ``model.architecture``, and its name in figures."""

LOOKS = {
    "transformer": (BLUE, False), "conv": (ORANGE, False), "lstm": (PURPLE, False), "gru": (PURPLE, True),
    "rnn": (QUIET, True),
}  # fmt: skip
"""The colour of each in every figure, and whether its line is dashed."""

MINUTES = 2.0
"""Of each training on the embedded corpus."""

MINUTES_OF_CONFIG = 20.0
"""Of each training on a configuration that does not say how long."""

NEVER = 1_000_000
"""Steps that no training reaches; with its minutes they say how far along the schedule a second leads."""

LR = 1.5e-3
"""The peak rate, of every architecture alike, on the embedded corpus, and of a configuration that follows the paper's
schedule, which does not name one."""

RECIPE: dict[str, Any] = {
    "model": dict(d_model=128, d_ff=512, n_heads=4, n_encoder_layers=2, n_decoder_layers=2, dropout=0.1),
    "data": {"tokenizer": {"vocab_size": 1600}},
    "train": dict(
        max_steps=10_000, batch_tokens=1024, schedule="cosine", lr=LR, warmup_steps=500, clip_norm=1.0, average=0,
        save_every=1000,
    ),
    "decode": {"beam_size": 4},
}  # fmt: skip


class Published(NamedTuple):
    """One row of the paper's Table 2."""

    model: str
    en_de: float | None  # BLEU on newstest2014
    en_fr: float | None
    flops_en_de: float | None  # of training
    flops_en_fr: float | None


TABLE_2 = (
    Published("ByteNet", 23.75, None, None, None),
    Published("Deep-Att + PosUnk", None, 39.2, None, 1.0e20),
    Published("GNMT + RL", 24.6, 39.92, 2.3e19, 1.4e20),
    Published("ConvS2S", 25.16, 40.46, 9.6e18, 1.5e20),
    Published("MoE", 26.03, 40.56, 2.0e19, 1.2e20),
    Published("Deep-Att + PosUnk, ensemble", None, 40.4, None, 8.0e20),
    Published("GNMT + RL, ensemble", 26.30, 41.16, 1.8e20, 1.1e21),
    Published("ConvS2S, ensemble", 26.36, 41.29, 7.7e19, 1.2e21),
    Published("Transformer, base", 27.3, 38.1, 3.3e18, 3.3e18),
    Published("Transformer, big", 28.4, 41.8, 2.3e19, 2.3e19),
)
"""https://arxiv.org/abs/1706.03762, Table 2; the ensembles' training cost is that of all members."""

P100_FLOPS = 9.5e12
"""What the paper takes a P100 to sustain, in float32 operations a second (section 6.1, footnote 5)."""

ASSUMED = ("one H100 or H200", 4e14)
"""A current machine: 40% of its 989 T bf16 operations a second without sparsity, which large models do reach."""

PAPER_RUNS = {"base": (100_000, 0.5), "big": (300_000, 3.5)}
"""Updates, and days on eight P100 (section 5.2)."""


def contest(config: Config, lab: Lab) -> Config:
    """``config`` trained for so many minutes, the rate following the clock from warm-up to zero, whatever a step takes.

    A quick run is left as it is: a few steps.
    """
    if lab.quick:
        return config
    minutes = MINUTES if lab.config is None else lab.config.train.max_minutes or MINUTES_OF_CONFIG
    lr = LR if config.train.schedule == "noam" else config.train.lr  # noam's is a factor and no rate
    schedule = {"schedule": "cosine", "lr": lr, "validate_every": NEVER, **by_the_clock(minutes)}
    return changed(config, train=schedule)


def by_the_clock(minutes: float) -> dict[str, Any]:
    """Settings of ``train`` with which a cosine follows the clock alone, its first twentieth being warm-up."""
    return {"max_minutes": minutes, "max_steps": NEVER, "warmup_steps": NEVER // 20}


def of_kind(config: Config, kind: str) -> Config:
    """The same run of another architecture; what it has not is left out."""
    if kind == "transformer":
        return changed(config, model={"architecture": kind})
    has_positions = kind == "conv" and config.model.positions != "rotary"
    others = OF_TRANSFORMERS if has_positions else (*OF_TRANSFORMERS, "positions")
    defaults = {name: ModelOptions.model_fields[name].default for name in others}
    return changed(config, model={**defaults, "architecture": kind})


def run(lab: Lab) -> Findings:
    """Claims: with the same minutes the Transformer translates better; recurrence uses the machine worse."""
    config = contest(corpus_config(lab, RECIPE, n_train=20_000, n_valid=500), lab)
    seeds = (1,) if lab.quick or lab.config is not None else (1, 2, 3)
    configs = {kind: of_kind(config, kind) for kind in KINDS}  # refused before the first is trained
    tried = {kind: trials(lab, kind, each, seeds) for kind, each in configs.items()}
    numbers = {
        "minutes": config.train.max_minutes,
        "lr": config.train.lr,
        "trials": {kind: [each._asdict() for each in found] for kind, found in tried.items()},
        "operations_per_second": {kind: speed(found) for kind, found in tried.items()},
        "published": [row._asdict() for row in TABLE_2],
        "counted_operations": {size: counted_operations(size) for size in PAPER_RUNS},
    }
    return Findings(numbers, sections(numbers), verdict(numbers))


def speed(found: Sequence[Trial]) -> float:
    """Counted operations a second of training."""
    return sum(each.flops for each in found) / sum(each.seconds for each in found)


def counted_operations(size: str) -> float:
    """Of the paper's training of this size by our own count: 25,000 tokens a side, sentences of 27 subwords."""
    config = ModelConfig(preset=size, src_vocab_size=37_000, tgt_vocab_size=37_000)
    return PAPER_RUNS[size][0] * training_flops(config, round(25_000 / 27), 27, 27)


# --- the report -------------------------------------------------------------------------------------------------------


def _ahead(tried: Mapping[str, list[Trial]], kind: str) -> Claim:
    """Whether the Transformer's BLEU is higher; of one seed each the bootstrap intervals decide."""
    ours, theirs = tried["transformer"], tried[kind]
    text = f"With the same minutes the Transformer translates better than {_named(kind)}"
    if len(ours) > 1:
        found = difference([each.bleu for each in theirs], [each.bleu for each in ours])
        return Claim(text, holds(found, 1), f"BLEU {found:+.1f} over {len(ours)} seeds")
    one, other = _bleu(ours), _bleu(theirs)
    apart = one.low > other.high or other.low > one.high
    return Claim(text, one.mean > other.mean if apart else None, f"BLEU {one:.1f} against {other:.1f}, one seed each")


def _bleu(found: Sequence[Trial]) -> Interval:
    """The mean over seeds with its interval; of one seed the bootstrap's over sentences."""
    if len(found) > 1:
        return interval([each.bleu for each in found])
    return Interval(found[0].bleu, found[0].bleu_low, found[0].bleu_high)


def _named(kind: str) -> str:
    return {"conv": "convolutions with attention", "rnn": "a plain RNN with attention"}.get(
        kind, f"{'an' if kind == 'lstm' else 'a'} {KINDS[kind]} with attention"
    )


def _tried(numbers: Mapping[str, Any]) -> dict[str, list[Trial]]:
    return {kind: [Trial(**one) for one in found] for kind, found in numbers["trials"].items()}


def verdict(numbers: Mapping[str, Any]) -> list[Claim]:
    """What a full run decides, from the numbers that it keeps."""
    tried = _tried(numbers)
    rates = numbers["operations_per_second"]
    slower = max(rates[kind] for kind in ("lstm", "gru", "rnn"))
    gain = difference([each.bleu for each in tried["rnn"]], [each.bleu for each in tried["lstm"]])
    return [
        *(_ahead(tried, kind) for kind in KINDS if kind != "transformer"),
        Claim(
            "Recurrent models reach fewer operations a second, for their steps wait for one another",
            rates["transformer"] > slower,
            "thousand million operations a second: "
            + ", ".join(f"{name} {rates[kind] / 1e9:.0f}" for kind, name in KINDS.items()),
        ),
        Claim(
            "With the same minutes an LSTM translates better than a plain RNN",
            holds(gain, 1),
            f"BLEU {gain:+.1f}",
        ),
    ]


def _apart(values: Sequence[int]) -> str:
    return f"{min(values):,} to {max(values):,}"


def _duration(seconds: float) -> str:
    """Roughly, as people say it."""
    for unit, length in (("years", 365.25 * 86400), ("days", 86400.0), ("hours", 3600.0), ("minutes", 60.0)):
        if seconds >= 1.5 * length:
            return f"{seconds / length:,.{0 if seconds >= 10 * length else 1}f} {unit}"
    return f"{seconds:.0f} seconds"


def _table(tried: Mapping[str, list[Trial]]) -> Table:
    columns = (
        "model", "BLEU", "chrF", "perplexity", "parameters", "updates", "million tokens", "operations (10¹²)",
        "seconds",
    )  # fmt: skip
    rows = []
    for kind, found in tried.items():
        n = len(found)
        rows.append((
            KINDS[kind], f"{_bleu(found):.1f}", sum(each.chrf for each in found) / n,
            f"{interval([each.perplexity for each in found]):.2f}", found[0].parameters,
            sum(each.steps for each in found) // n, sum(each.tokens for each in found) / n / 1e6,
            sum(each.flops for each in found) / n / 1e12, sum(each.seconds for each in found) / n,
        ))  # fmt: skip
    return Table(columns, rows)


def _published(numbers: Mapping[str, Any]) -> Table:
    here = numbers["operations_per_second"]["transformer"]
    rows = []
    for row in TABLE_2:
        cost = row.flops_en_de or row.flops_en_fr
        times = [_duration(cost / rate) if cost else "" for rate in (8 * P100_FLOPS, ASSUMED[1], here)]
        costs = [f"{each:.1e}" if each else "" for each in (row.flops_en_de, row.flops_en_fr)]
        bleus = [f"{each:g}" if each else "" for each in (row.en_de, row.en_fr)]
        rows.append((row.model, *bleus, *costs, *times))
    columns = (
        "model", "BLEU en-de", "en-fr", "training FLOPs en-de", "en-fr", "eight P100", ASSUMED[0], "this machine",
    )  # fmt: skip
    return Table(columns, rows)


def _learning(tried: Mapping[str, list[Trial]]) -> Chart:
    """Perplexity from a tenth of the time on: before, all fall from thousands and nothing tells them apart."""
    lines = []
    longest = max(each.seconds for found in tried.values() for each in found)
    unit, label = (1, "training (seconds)") if longest < 300 else (60, "training (minutes)")
    for kind, found in tried.items():
        steps, losses = mean_curve([each.curve for each in found])
        pace = sum(each.seconds / each.steps for each in found) / len(found)  # seconds a step
        shown = [(step * pace / unit, math.exp(min(x, 50))) for step, x in zip(steps, losses, strict=True)]
        shown = [(x, y) for x, y in shown if x * unit >= longest / 10] or shown
        colour, dashed = LOOKS[kind]
        at, values = zip(*shown, strict=True)
        lines.append(Curve(KINDS[kind], at, values, colour=colour, dashed=dashed))
    return Chart(lines, label, "training perplexity (log scale)", y_log=10)


def sections(numbers: Mapping[str, Any]) -> list[Section]:
    """What a full run tells and draws, from the numbers that it keeps."""
    tried = _tried(numbers)
    minutes, counted = numbers["minutes"], numbers["counted_operations"]
    budget = f"{minutes:g} minutes of training each" if minutes else "a few steps each"
    best_first = sorted(tried, key=lambda kind: -_bleu(tried[kind]).mean)
    quality = Bars(
        [bar(KINDS[kind], _bleu(tried[kind]))._replace(colour=LOOKS[kind][0]) for kind in best_first],
        "BLEU, beam search",
    )
    rates = numbers["operations_per_second"]
    return [
        Section(
            "The same text, the same minutes",
            [
                f"Five architectures of the same width and number of layers, {budget}, by the same loop, search and "
                "measure. The learning rate follows the clock, so that each is trained to its end. The recurrent ones "
                "have additive attention and input feeding, the convolutional one attention in each decoder layer.",
                f"All have the same peak rate, {numbers['lr']:g}, which was tuned for none of them. Minutes are those "
                f"of "
                "the clock: what else the machine does is part of the comparison. "
                + (
                    f"Of the same Transformer the seeds made {_apart([one.steps for one in tried['transformer']])} "
                    f"steps."
                    if len(tried["transformer"]) > 1
                    else "One seed each does not tell how much of a difference is chance."
                ),
            ],
            bars([quality]),
            "bleu",
            _table(tried),
            "BLEU on text that was not trained on; whiskers: 95% intervals, over seeds where there are several, else "
            "by "
            "bootstrap over sentences.",
        ),
        Section(
            "On the way",
            "What each had learned when. A faster step counts as much as a better one.",
            curves([_learning(tried)], width=6.0, height=3.8),
            "learning",
            caption="Perplexity on the training text, over the minutes of training.",
        ),
        Section(
            "Table 2, and what it would take",
            [
                "The paper's own results on WMT 2014, its estimate of what training took, and how long that is on "
                f"three machines: eight P100 at {P100_FLOPS / 1e12:g} T operations a second each, as the paper counts; "
                f"{ASSUMED[0]} at {ASSUMED[1] / 1e12:g} T, an assumption; and this machine at the "
                f"{rates['transformer'] / 1e9:,.0f} G that the Transformer above reached. So 28.4 and 41.8 are not "
                "for a machine like this one, and nobody should expect them from it.",
                "The paper's figures are machine time times speed. Counted from shapes, as everything else here, the "
                f"base model's training is {counted['base']:.1e} operations and the big one's {counted['big']:.1e}.",
            ],
            table=_published(numbers),
            caption="BLEU on newstest2014 and training cost, as published. Times are for the English-German cost "
            "where there is one.",
        ),
    ]
