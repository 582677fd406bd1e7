"""Grow the Transformer's block from a mean of the source, part by part, and take one part each from the full block.

The order is that of a reader: first what attention needs, then what a block adds to it.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from dragoman.config import ModelConfig
from dragoman.explanation.figures import Bar, Bars, Chart, Curve, bars, curves
from dragoman.explanation.style import SERIES
from dragoman.lab.experiment import Claim, Findings, Lab, Section, Table, expected
from dragoman.lab.joined import Joined, Sublayer
from dragoman.lab.letters import accuracy, learn, warm_cosine
from dragoman.lab.phrases import Phrases, mean_loss
from dragoman.lab.runs import Interval, bar, mean_curve, span
from dragoman.model.attention import MultiHeadAttention
from dragoman.model.embedding import LearnedPositions
from dragoman.model.layers import DecoderLayer, EncoderLayer
from dragoman.model.transformer import Transformer

PARTS = ("weights", "heads", "positions", "feed-forward", "residuals", "norm")
"""What is added to a mean of the source, in this order; then a second layer."""

HARDLY = 0.1
"""Rise of the loss in nats a word up to which a part is hardly missed."""

FULL, DEEPER = PARTS[-1], "second layer"
"""Names of the model with all parts, on the way up, and of that with two such layers."""

LABELS = {
    "mean": "mean of the source", "weights": "learned weights", "heads": "four heads", "positions": "positions",
    "feed-forward": "feed-forward", "residuals": "residuals", "norm": "layer norm", "second layer": "second layer",
}  # fmt: skip
"""Name of each part in figures and tables."""

PREDICTED = (
    "Each part lowers the loss where it is added, also in this order. (A trial had shown that a second layer does "
    "not, in so few steps.)",
    "On the way up positions bring most: without them no query can know which word comes next.",
    "Without residuals a feed-forward network is worth less than 0.1 nats.",
    "Residuals bring more than four heads, feed-forward and norm together: the decoder sees its last word at last.",
    "Taken from the full block, learned weights cost most, positions come next, and the norm costs least.",
)
"""What was expected before the experiment was run for the first time."""

RATES = (4e-3, 8e-3, 1.6e-2)
"""Peak learning rates; three seeds at the middle one, one at the others."""

RATE = RATES[1]


class Sizes(NamedTuple):
    """Sizes of the experiment."""

    steps: int = 500
    n_train: int = 6000
    n_test: int = 300
    longest: int = 6  # words and marks of a source
    batch: int = 32  # sentences of a batch


QUICK = Sizes(steps=4, n_train=40, n_test=4, batch=4)


class Partial(Joined):
    """A Transformer with some of its parts."""

    def __init__(self, config: ModelConfig, parts: Collection[str]) -> None:
        self.with_positions = "positions" in parts
        super().__init__(config, functools.partial(join, parts=frozenset(parts)))
        if "weights" not in parts:
            for attention in self.modules():
                if isinstance(attention, MultiHeadAttention):
                    uniform(attention)

    def add_positions(self, x: Tensor, learned: LearnedPositions | None, start: int) -> tuple[Tensor, Tensor | None]:
        """Add positions as the parent does, or nothing."""
        return super().add_positions(x, learned, start) if self.with_positions else (self.dropout(x), None)


def join(
    layer: EncoderLayer | DecoderLayer, norm: nn.Module, x: Tensor, sublayer: Sublayer, parts: frozenset[str]
) -> Tensor:
    """Join a sub-layer to its input, without the parts that are not in ``parts``."""
    if sublayer is layer.feed_forward and "feed-forward" not in parts:
        return x
    y = layer.dropout(sublayer(x))
    y = x + y if "residuals" in parts else y
    return norm(y) if "norm" in parts else y


@torch.no_grad()
def uniform(attention: MultiHeadAttention) -> None:
    """Fix queries at zero, so that all keys get the same weight: attention becomes a mean."""
    for projection in (attention.w_q, attention.w_k):
        projection.requires_grad_(False)
    nn.init.zeros_(attention.w_q.weight)


def partial_model(phrases: Phrases, parts: Collection[str], seed: int) -> Partial:
    """Return a fresh model of some parts."""
    n_layers = 2 if DEEPER in parts else 1
    torch.manual_seed(seed)
    config = phrases.config(n_heads=4 if "heads" in parts else 1, n_encoder_layers=n_layers, n_decoder_layers=n_layers)
    return Partial(config, parts)


def ladder() -> dict[str, tuple[str, ...]]:
    """Return the parts of each model on the way up, by the part that it adds."""
    parts = (*PARTS, DEEPER)
    return {"mean": (), **{part: parts[: i + 1] for i, part in enumerate(parts)}}


def mirror() -> dict[str, tuple[str, ...]]:
    """Return the parts of each model that lacks one of the full block, by the part that it lacks."""
    return {part: tuple(other for other in PARTS if other != part) for part in PARTS}


def trained(phrases: Phrases, parts: Collection[str], seed: int, rate: float, sizes: Sizes) -> dict[str, Any]:
    """Train a model of some parts; see ``trained_model``."""
    return trained_model(phrases, lambda: partial_model(phrases, parts, seed), seed, rate, sizes)


def trained_model(
    phrases: Phrases, make: Callable[[], Transformer], seed: int, rate: float, sizes: Sizes
) -> dict[str, Any]:
    """Train a model and return its size, its quality on the test sentences, and its training loss by step.

    Args:
        phrases: The sentences.
        make: Makes the fresh model; random numbers begin with ``seed``.
        seed: Seed of the weights and of the order of the sentences.
        rate: Peak learning rate.
        sizes: Sizes of the experiment.
    """
    torch.manual_seed(seed)
    model, test = make(), phrases.test_batch()
    batches, schedule = phrases.endless(sizes.batch, seed), warm_cosine(sizes.steps, rate, max(sizes.steps // 10, 1))
    losses = learn(model, batches, sizes.steps, schedule)
    return {
        "seed": seed, "rate": rate,
        "parameters": sum(p.numel() for p in model.parameters() if p.grad is not None),
        "loss": mean_loss(model, test), "accuracy": accuracy(model, test), "bleu": phrases.bleu(model),
        "curve": [sum(losses[i : i + 20]) / len(losses[i : i + 20]) for i in range(0, len(losses), 20)],
    }  # fmt: skip


# --- the experiment ---------------------------------------------------------------------------------------------------


def run(lab: Lab) -> Findings:
    """Train all models; claims: what each part is worth, on the way up and taken from the full block."""
    sizes = QUICK if lab.quick else Sizes()
    phrases = Phrases.make(sizes.n_train, sizes.n_test, sizes.longest)
    cases = [(RATE, seed) for seed in ((1,) if lab.quick else (1, 2, 3))]
    cases += [] if lab.quick else [(rate, 1) for rate in RATES if rate != RATE]

    def row(parts: Sequence[str], rate: float, seed: int) -> dict[str, Any]:
        """Train a model, or return what an earlier call measured; models of both ways are trained once."""
        name = "-".join(part.replace(" ", "_") for part in parts) or "mean"
        lab.say(f"{name}, peak rate {rate:g}, seed {seed}")
        result: dict[str, Any] = lab.done(
            f"{name}-{seed}", lambda: trained(phrases, parts, seed, rate, sizes), [rate, sizes]
        )
        return result

    ways = {
        way: {name: [row(parts, *case) for case in cases] for name, parts in models.items()}
        for way, models in (("ladder", ladder()), ("mirror", mirror()))
    }
    numbers = {"sizes": sizes._asdict(), "words": [len(words) for words in phrases.words], **ways}
    return Findings(numbers, sections(numbers), verdict(numbers))


def losses_of(rows: Sequence[Mapping[str, Any]], rate: float = RATE) -> list[float]:
    """Return the test losses of the trainings at one peak rate, by seed."""
    return [row["loss"] for row in rows if row["rate"] == rate]


def gains(numbers: Mapping[str, Any], rate: float = RATE) -> dict[str, Interval]:
    """Return by how many nats each part lowers the loss on the way up."""
    rungs = list(numbers["ladder"].items())
    pairs = itertools.pairwise(rungs)
    return {part: rise(losses_of(rows, rate), losses_of(before, rate)) for (_, before), (part, rows) in pairs}


def costs(numbers: Mapping[str, Any], rate: float = RATE) -> dict[str, Interval]:
    """Return by how many nats the loss of the full block rises without each part."""
    full = losses_of(numbers["ladder"][FULL], rate)
    return {part: rise(full, losses_of(rows, rate)) for part, rows in numbers["mirror"].items()}


def rise(base: Sequence[float], other: Sequence[float]) -> Interval:
    """Return the mean of ``other - base``, seed by seed, with the lowest and the highest."""
    return span([b - a for a, b in zip(base, other, strict=True)])


def verdict(numbers: Mapping[str, Any], rate: float = RATE) -> list[Claim]:
    """Return the claims of the experiment, decided by the trainings at one peak rate."""
    up, down = gains(numbers, rate), costs(numbers, rate)
    up = {part: up[part] for part in PARTS}
    small = [up[part].mean for part in ("heads", "feed-forward", "norm")]
    dearest = sorted(down, key=lambda part: -down[part].mean)
    return [
        Claim(
            "Each part lowers the loss where it is added in this order",
            min(gain.mean for gain in up.values()) > 0,
            _listed({part: gain for part, gain in up.items() if gain.mean <= 0} or up),
        ),
        Claim(
            "On the way up no part brings as much as positions",
            max(up, key=lambda part: up[part].mean) == "positions",
            f"{up['positions'].mean:.2f} nats; residuals {up['residuals'].mean:.2f}",
        ),
        Claim(
            "Without residuals a feed-forward network is worth less than 0.1 nats",
            up["feed-forward"].mean < 0.1,
            f"{up['feed-forward'].mean:.2f} nats where it comes before them; {down['feed-forward'].mean:.2f} in the "
            "full block",
        ),
        Claim(
            "Residuals bring more than four heads, feed-forward and norm together",
            up["residuals"].mean > sum(small),
            f"{up['residuals'].mean:.2f} nats against {sum(small):.2f}",
        ),
        Claim(
            "Taken from the full block, learned weights cost most, positions come next, and the norm costs least",
            (*dearest[:2], dearest[-1]) == ("weights", "positions", "norm"),
            _listed({part: down[part] for part in (*dearest[:2], dearest[-1])}),
        ),
        Claim(
            "Taken from the full block, residuals cost most, and learned weights come next",
            dearest[:2] == ["residuals", "weights"],
            f"{down['residuals'].mean:.2f} and {down['weights'].mean:.2f} nats; no other part more than "
            f"{down[dearest[2]].mean:.2f}. Seen, not foretold",
        ),
    ]


def _listed(changes: Mapping[str, Interval]) -> str:
    """Return changes of the loss as a list in a sentence."""
    return ", ".join(f"{LABELS[part]} {change.mean:.2f}" for part, change in changes.items()) + " nats"


def sections(numbers: Mapping[str, Any]) -> list[Section]:
    """Return the sections of the report, with figures and tables made from the numbers of a run."""
    return [_expected(numbers), _way_up(numbers), _taken_away(numbers), _while_they_learn(numbers), _at_rates(numbers)]


def _at_rate(rows: Sequence[Mapping[str, Any]], key: str, rate: float = RATE) -> Interval:
    """Return the mean of one number over the seeds at a peak rate."""
    return span([row[key] for row in rows if row["rate"] == rate])


def _bar(name: str, value: Interval, decimals: int = 2) -> Bar:
    """Return a bar whose number has so many decimals."""
    return bar(name, value)._replace(text=f"{value.mean:.{decimals}f}".replace("-", "−"))


def _names(numbers: Mapping[str, Any]) -> dict[str, str]:
    """Return a label for each model on the way up."""
    return {name: LABELS[name] if name == "mean" else f"+ {LABELS[name]}" for name in numbers["ladder"]}


def _expected(numbers: Mapping[str, Any]) -> Section:
    """Return the section on the task and on what was expected."""
    sizes, (src, tgt) = numbers["sizes"], numbers["words"]
    came_true = sum(claim.holds is True for claim in verdict(numbers)[: len(PREDICTED)])
    return Section(
        "The task",
        [
            f"Models of width 32 translate short English sentences into German, word by word: {src} words and marks in "
            f"the source, {tgt} in the target, {sizes['n_train']:,} sentences to learn from, {sizes['steps']} steps. "
            "The first model predicts every word from the mean of the source. Each further one adds a part, up to the "
            "paper's block of one encoder and one decoder layer; the last has two of each. The mirror takes one part "
            "at a time from the full block.",
            expected(len(PREDICTED), came_true, "grow"),
        ],
    )


def _way_up(numbers: Mapping[str, Any]) -> Section:
    """Return the section on the models that grow."""
    names, rows, up = _names(numbers), numbers["ladder"], gains(numbers)
    shown = bars(
        [
            Bars(
                [_bar(names[name], _at_rate(rows[name], "loss")) for name in names], "loss (nats a word)", "Test loss"
            ),
            Bars(
                [_bar(names[name], _at_rate(rows[name], "bleu"), 1) for name in names], "BLEU, greedy", "Translations"
            ),
        ]
    )
    table = Table(
        ("model", "loss lower by", "right words"),
        [
            (
                names[name], f"{up[name]:.2f}" if name in up else "",
                f"{_at_rate(rows[name], 'accuracy').mean:.1%}",
            )
            for name in names
        ],
    )  # fmt: skip
    return Section(
        "One part at a time",
        "Right words are counted given the right words before them. Brackets: the lowest and the highest seed.",
        shown,
        "ladder",
        table,
        f"Each model has the parts above it, too. Means over {_seeds(numbers)} seeds.",
    )


def _seeds(numbers: Mapping[str, Any]) -> int:
    """Return the number of seeds at the middle rate."""
    return len(losses_of(numbers["ladder"]["mean"]))


def _taken_away(numbers: Mapping[str, Any]) -> Section:
    """Return the section on the full block without one part each."""
    up, down = gains(numbers), costs(numbers)
    label = "nats a word"
    shown = bars(
        [
            Bars([_bar(LABELS[part], up[part]) for part in PARTS], label, "Added on the way up"),
            Bars([_bar(LABELS[part], down[part]) for part in PARTS], label, "Taken from the full block"),
        ]
    )
    # Other machines round otherwise, and other trainings come of it: what is not so in this one is not said.
    worse = (
        "Without residuals every sub-layer mixes words and loses the one it is at: positions and a feed-forward "
        "network then make these trainings worse."
    ) * (up["positions"].mean < 0 and up["feed-forward"].mean < 0)
    hardly_missed = (
        "In the full block positions are hardly missed, perhaps because sentences have six words at most, and the "
        "causal mask tells the decoder how many it has written."
    ) * (down["positions"].mean < HARDLY)
    return Section(
        "The mirror",
        f"{worse} {hardly_missed}".strip(),
        shown,
        "mirror",
        caption="By how much the loss falls where a part is added, and rises where it alone is missing.",
    )


def _while_they_learn(numbers: Mapping[str, Any]) -> Section:
    """Return the section with the training losses."""
    names, rows = _names(numbers), numbers["ladder"]
    lines = []
    for place, name in enumerate(names):
        seeds = [row["curve"] for row in rows[name] if row["rate"] == RATE]
        points = mean_curve([[(20 * (i + 1), y) for i, y in enumerate(seed)] for seed in seeds])
        lines.append(Curve(names[name], *points, dashed=place >= len(SERIES)))  # the colours begin again
    return Section(
        "While they learn",
        "",
        curves([Chart(lines, "step", "training loss (nats a word)")], width=6.4, height=3.6),
        "learning",
        caption="Training loss, means of 20 steps; bands: the lowest and the highest seed.",
    )


def _at_rates(numbers: Mapping[str, Any]) -> Section:
    """Return the section on other peak rates."""
    rates = sorted({row["rate"] for row in numbers["ladder"]["mean"]})
    up, down = ({rate: change(numbers, rate) for rate in rates} for change in (gains, costs))
    at = ", ".join(f"{rate:g}" for rate in rates)
    return Section(
        "At other rates",
        f"The same numbers at other peak learning rates: {_seeds(numbers)} seeds at {RATE:g}, one at the others.",
        table=Table(
            ("part", f"added, at {at}", f"missing, at {at}"),
            [
                (LABELS[part], *(", ".join(f"{way[rate][part].mean:.2f}" for rate in rates) for way in (up, down)))
                for part in PARTS
            ],
        ),
    )
