"""Show what heads learn, and when, on sequences that repeat: a head that finds what followed last time.

After "In-context Learning and Induction Heads" (https://arxiv.org/abs/2209.11895).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import torch

from dragoman.config import ModelConfig
from dragoman.data.tokenizer import BOS_ID
from dragoman.explanation.figures import Bar, Bars, Chart, Curve, bars, curves
from dragoman.explanation.style import BLUE, GREEN, ORANGE, QUIET
from dragoman.lab.experiment import Claim, Findings, Lab, Section, Table, expected
from dragoman.lab.letters import FIRST, Pairs, updates
from dragoman.lab.pruning import Head
from dragoman.lab.repeats import (
    KINDS,
    LanguageModel,
    Text,
    head_name,
    head_scores,
    judged,
    repeat_losses,
    rises,
    scored,
)
from dragoman.lab.written_twice import measured_run, real_claims, real_section
from dragoman.model.transformer import Transformer

TAKES = ("run", "device")

PREDICTED = (
    "One layer does not learn to repeat, and two do: it takes a head that moves each word to the next place, and "
    "another one above that finds it there.",
    "It comes suddenly: most of the loss on repeats falls within a quarter of the training.",
    "With two layers a head of the first looks at the word before with more than half of its weight, and a head of "
    "the second at what followed last time.",
    "The head that looks at the word before is there first.",
    "Without the second layer's head that looks most at what followed last time, the loss on repeats rises more than "
    "without any other head of that layer, also on other sequences.",
    "Without the first layer's head that looks most at the word before, that head finds its key no more: it keeps "
    "less than half of its weight there.",
)
"""What was expected before the experiment was run for the first time (trials with one seed chose rate and sizes)."""


class Sizes(NamedTuple):
    """Sizes of the experiment, and the settings that it is repeated with."""

    steps: int = 1000
    length: int = 32  # words of a sequence
    shortest: int = 5  # words of a block, which is repeated to fill the sequence
    longest: int = 12
    n_words: int = 16  # of the vocabulary
    rate: float = 4e-3  # learning rate after the warm-up
    norm: str = "post"
    positions: str = "rotary"
    batch: int = 32  # sequences of a batch
    every: int = 20  # steps between two looks at the heads
    n_test: int = 48  # sequences that choose heads, and as many that judge them


SWEPT: dict[str, tuple[Any, ...]] = {
    "rate": (2e-3, 8e-3), "n_words": (12, 32), "norm": ("pre",), "positions": ("sinusoidal",)
}  # fmt: skip
"""Constants that the training with two layers is repeated with, one seed each."""

WARMUP = 50
"""Steps of warm-up, after which the rate stays, so that nothing but learning changes with the step."""


def sequences(count: int, sizes: Sizes, generator: torch.Generator) -> Text:
    """Draw sequences, each a block of different words that is repeated over and over."""
    rows, periods = [], torch.randint(sizes.shortest, sizes.longest + 1, (count,), generator=generator)
    for period in periods.tolist():
        block = torch.randperm(sizes.n_words, generator=generator)[:period] + FIRST
        rows.append(block.repeat(-(-sizes.length // period))[: sizes.length])
    tgt_out = torch.stack(rows)
    tgt_in = torch.cat((torch.full((count, 1), BOS_ID), tgt_out[:, :-1]), 1)
    places, back = torch.arange(sizes.length), periods[:, None]
    # At place q the input is word q - 1. Its last occurrence is one period back, and the key after that one place on.
    return Text(None, tgt_in, tgt_out, torch.where(places > back, places - back + 1, -1))


def endless(sizes: Sizes, seed: int) -> Iterator[Pairs]:
    """Yield batches of sequences without end."""
    generator = torch.Generator().manual_seed(seed)
    while True:
        text = sequences(sizes.batch, sizes, generator)
        yield Pairs(text.tgt_in, text.tgt_in, text.tgt_out)


def fresh(n_layers: int, sizes: Sizes, seed: int) -> Transformer:
    """Return a language model with fresh weights: our decoder without memory."""
    torch.manual_seed(seed)
    vocabulary = FIRST + sizes.n_words
    return Transformer(
        ModelConfig(
            d_model=64, d_ff=64, n_heads=4, n_encoder_layers=0, n_decoder_layers=n_layers, dropout=0.0,
            norm=sizes.norm, positions=sizes.positions, src_vocab_size=vocabulary, tgt_vocab_size=vocabulary,
        )
    )  # fmt: skip


def learned(n_layers: int, sizes: Sizes, seed: int) -> dict[str, Any]:
    """Train a model, look at its heads while it learns, and cut them off one by one at the end."""
    model = fresh(n_layers, sizes, seed)
    drawn = torch.Generator().manual_seed(1000 + seed)
    to_choose, to_judge = (sequences(sizes.n_test, sizes, drawn) for _ in range(2))
    trace = [_look(model, to_choose, 0)]
    batches = itertools.islice(endless(sizes, seed), sizes.steps)
    steps = updates(LanguageModel(model), batches, lambda step: sizes.rate * min(1.0, step / WARMUP))
    for step, _ in enumerate(steps, 1):
        if step % sizes.every == 0:
            trace.append(_look(model, to_choose, step))
    scores = head_scores(model, to_choose)
    best = {kind: chosen(scores, kind, layer) for kind, layer in (("previous", 0), ("induction", n_layers - 1))}
    weights = scored(model, to_judge)
    return {
        "layers": n_layers, "seed": seed, "sizes": sizes._asdict(), "trace": trace,
        "loss": repeat_losses(model, to_judge), "scores": head_scores(model, to_judge),
        "chosen": {kind: head._asdict() for kind, head in best.items()},
        "rises": rises(model, to_judge),
        "induction_left": scored(model, to_judge, [best["previous"]])[best["induction"]]["induction"]
        / weights[best["induction"]]["induction"],
    }  # fmt: skip


def _look(model: Transformer, text: Text, step: int) -> dict[str, Any]:
    """Return the losses and the greatest score of each kind, at one step."""
    scores = [row for of_attention in head_scores(model, text).values() for row in of_attention]
    greatest = {kind: max(row[kind] for row in scores) for kind in KINDS}
    return {"step": step, **repeat_losses(model, text), **greatest}


def chosen(scores: Mapping[str, Sequence[Mapping[str, float]]], kind: str, layer: int) -> Head:
    """Return the head of a layer that has the greatest score of a kind."""
    name = f"decoder.layers.{layer}.self_attn"
    return Head(name, max(range(len(scores[name])), key=lambda i: scores[name][i][kind]))


# --- the experiment ---------------------------------------------------------------------------------------------------


def run(lab: Lab) -> Findings:
    """Train with one layer and with two; claims: two learn to repeat, suddenly, by two heads that work together.

    With a run, its heads are measured instead, on its validation sentences written twice.
    """
    if lab.run is not None:
        numbers: dict[str, Any] = {"real": measured_run(lab)}
        return Findings(numbers, sections(numbers), verdict(numbers))
    usual = Sizes(steps=6, batch=4, every=3, n_test=4) if lab.quick else Sizes()
    seeds = (1,) if lab.quick else (1, 2, 3)

    def row(n_layers: int, sizes: Sizes, seed: int) -> dict[str, Any]:
        """Train a model, or return what an earlier call measured."""
        lab.say(f"{n_layers} layers, seed {seed}, {sizes}")
        result: dict[str, Any] = lab.done(f"{n_layers}-{seed}", lambda: learned(n_layers, sizes, seed), sizes)
        return result

    swept = {} if lab.quick else SWEPT
    numbers = {
        "one": [row(1, usual, seed) for seed in seeds],
        "two": [row(2, usual, seed) for seed in seeds],
        "swept": {
            f"{name} = {value}": row(2, usual._replace(**{name: value}), 1)
            for name, values in swept.items()
            for value in values
        },
    }
    return Findings(numbers, sections(numbers), verdict(numbers))


def crossing(trace: Sequence[Mapping[str, float]], key: str, bound: float, falls: bool = False) -> float:
    """Return the first step at which a number of the trace passes a bound, infinite if it never does."""
    passed = (look["step"] for look in trace if (look[key] <= bound if falls else look[key] >= bound))
    return next(passed, math.inf)


def change(row: Mapping[str, Any]) -> tuple[float, float]:
    """Return the steps at which four fifths and one fifth of the loss of guessing are left on repeats."""
    guess = math.log(row["sizes"]["n_words"])
    trace = row["trace"]
    return crossing(trace, "repeated", 0.8 * guess, falls=True), crossing(trace, "repeated", 0.2 * guess, falls=True)


def verdict(numbers: Mapping[str, Any]) -> list[Claim]:
    """Return the claims of the experiment, each decided by the numbers of a run."""
    if "real" in numbers:
        return real_claims(numbers["real"])
    return trained_claims(numbers["one"], numbers["two"], trainings(numbers))


def trainings(numbers: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the trainings with two layers that judge: all seeds, and all constants but other positions."""
    return [*numbers["two"], *(row for name, row in numbers["swept"].items() if not name.startswith("positions"))]


def is_sudden(row: Mapping[str, Any]) -> bool:
    """Return True if the loss on repeats falls from four fifths to one fifth within a quarter of the training."""
    start, end = change(row)
    return end - start < row["sizes"]["steps"] / 4


def has_both_heads(row: Mapping[str, Any]) -> bool:
    """Return True if a head of each layer looks where it should, with more than half of its weight."""
    return min(judged(row, kind) for kind in KINDS) > 0.5


def comes_first(row: Mapping[str, Any]) -> bool:
    """Return True if a head looks at the word before earlier than one at what followed, with 0.3 of its weight."""
    return crossing(row["trace"], "previous", 0.3) < crossing(row["trace"], "induction", 0.3)


def is_missed(row: Mapping[str, Any]) -> bool:
    """Return True if no other head of the second layer is missed as much as the chosen one."""
    rise, other = _rises_of_layer(row)
    return rise > other


def needs_the_one_below(row: Mapping[str, Any]) -> bool:
    """Return True if the chosen head keeps less than half of its weight without the one below."""
    left: float = row["induction_left"]
    return left < 0.5


def rests_on_the_first(row: Mapping[str, Any]) -> bool:
    """Return True if no head at all is missed as much as the one that looks most at the word before."""
    most = max(row["rises"], key=lambda rise: rise["rise"])
    return head_name(most) == head_name(row["chosen"]["previous"])


def trained_claims(
    shallow: Sequence[Mapping[str, Any]], twins: Sequence[Mapping[str, Any]], deep: Sequence[Mapping[str, Any]]
) -> list[Claim]:
    """Return the claims about models with one layer and with two, a row for each training.

    Args:
        shallow, twins: Trainings with one layer and with two, which differ in that alone.
        deep: All trainings with two layers that judge.
    """
    ends = [[row["loss"]["repeated"] for row in rows] for rows in (shallow, twins)]

    def most(text: str, holds: Callable[[Mapping[str, Any]], bool], figures: str) -> Claim:
        """Claim that something is so in most trainings."""
        count = sum(map(holds, deep))
        return Claim(f"In most trainings {text}", count > len(deep) / 2, f"in {count} of {len(deep)}; {figures}")

    return [
        Claim(
            "With rotary positions two layers learn to repeat better than one, with every seed",
            max(ends[1]) < min(ends[0]),
            f"loss on repeats {min(ends[0]):.2f} nats or more with one layer, {max(ends[1]):.2f} or less with two",
        ),
        most(
            "it comes suddenly, within a quarter of the steps", is_sudden,
            "from four fifths of the loss of guessing to one fifth",
        ),
        most(
            "a head of the first layer looks at the word before, and one of the second at what followed last time",
            has_both_heads, "more than half of the weight of each",
        ),
        most("the head that looks at the word before is there first", comes_first, "at a weight of 0.3"),
        Claim(
            "On other sequences no head of the second layer is missed as much as the one that looks most at what "
            "followed, in every training",
            all(map(is_missed, deep)),
            f"in {sum(map(is_missed, deep))} of {len(deep)}; heads stand in for one another",
        ),
        most(
            "that head needs the one below: without it, it keeps less than half of its weight there",
            needs_the_one_below, "the table has what is left",
        ),
        most(
            "no head of all is missed as much as the one below, which looks at the word before", rests_on_the_first,
            "seen, not foretold",
        ),
    ]  # fmt: skip


def _rises_of_layer(row: Mapping[str, Any]) -> tuple[float, float]:
    """Return the rise of the loss without the chosen head, and the greatest without another head of its layer."""
    head = row["chosen"]["induction"]
    layer = [other for other in row["rises"] if other["attention"] == head["attention"]]
    rise = next(other["rise"] for other in layer if other["number"] == head["number"])
    return rise, max(other["rise"] for other in layer if other["number"] != head["number"])


# --- the report -------------------------------------------------------------------------------------------------------


def sections(numbers: Mapping[str, Any]) -> list[Section]:
    """Return the sections of the report, with figures and tables made from the numbers of a run."""
    if "real" in numbers:
        return [real_section(numbers["real"])]
    return [_expected(numbers), _while_they_learn(numbers), _missed(numbers), _swept(numbers)]


def _expected(numbers: Mapping[str, Any]) -> Section:
    """Return the section on the task and on what was expected."""
    sizes = numbers["two"][0]["sizes"]
    shallow, deep = numbers["one"], numbers["two"]
    learned_by_two = (
        min(row["loss"]["repeated"] for row in shallow) > 1 > 2 * max(row["loss"]["repeated"] for row in deep)
    )
    came_true = [
        learned_by_two,
        *(all(map(holds, deep)) for holds in (is_sudden, has_both_heads, comes_first, is_missed, needs_the_one_below)),
    ]
    return Section(
        "The task",
        [
            f"Decoders of width 64 with 4 heads a layer read sequences of {sizes['length']} words: a block of "
            f"{sizes['shortest']} to {sizes['longest']} different words, drawn from {sizes['n_words']}, over and over. "
            "After the first block each word is the one that followed last time.",
            "Two measures for each head: how much of its weight is at the word before, and how much at the key that "
            "followed the last occurrence of the word it is at.",
            "A first run of 500 steps was too short for one of its three seeds.",
            expected(len(PREDICTED), sum(came_true), "induction"),
            "Here a prediction came true if it did with every seed; what is so *in most trainings* also counts those "
            "with other constants, but not other positions.",
        ],
    )


def _lines(name: str, rows: Sequence[Mapping[str, Any]], key: str, look: tuple[str, bool]) -> list[Curve]:
    """Draw a number of the trace, a line for each seed, with the name at the first."""
    colour, dashed = look
    return [
        Curve(
            "" if place else name, [at["step"] for at in row["trace"]], [at[key] for at in row["trace"]],
            colour=colour, dashed=dashed,
        )
        for place, row in enumerate(rows)
    ]  # fmt: skip


def _while_they_learn(numbers: Mapping[str, Any]) -> Section:
    """Return the section with losses and scores by step."""
    shallow, deep = numbers["one"], numbers["two"]
    losses = [
        *_lines("one layer", shallow, "repeated", (ORANGE, False)),
        *_lines("two layers", deep, "repeated", (BLUE, False)),
        *_lines("new words", deep[:1], "new", (GREEN, True)),
    ]
    scores = [
        *_lines("the word before", deep, "previous", (ORANGE, False)),
        *_lines("what followed", deep, "induction", (BLUE, False)),
        *_lines("what followed, one layer", shallow[:1], "induction", (GREEN, True)),
    ]
    charts = [
        Chart(losses, "step", "loss (nats a word)", "Loss on repeats", y_range=(0, 3.5)),
        Chart(scores, "step", "greatest weight of a head", "Where heads look", y_range=(0, 1.05)),
    ]
    return Section(
        "When it comes",
        "",
        curves(charts, n_columns=1, width=5.6, height=2.8),
        "steps",
        caption="A line for each seed. Above, the loss on words that have come before; below, the weight of the head "
        "that has most of it.",
    )


def _missed(numbers: Mapping[str, Any]) -> Section:
    """Return the section on models without one head each."""
    rows = numbers["two"]
    groups, table = [], []
    for row in rows:
        of_row = []
        for rise in row["rises"]:
            colour = next((c for kind, c in COLOURS.items() if head_name(row["chosen"][kind]) == head_name(rise)), None)
            lost = round(rise["rise"], 2) + 0.0  # without a sign where it rounds to zero
            of_row.append(Bar(head_name(rise), lost, colour=colour or QUIET, text=f"{lost:.2f}".replace("-", "−")))
            score = row["scores"][rise["attention"]][rise["number"]]
            if colour:
                table.append(
                    (f"seed {row['seed']}: {head_name(rise)}", *(f"{score[kind]:.2f}" for kind in KINDS),
                     f"{rise['rise']:+.2f}")
                )  # fmt: skip
        groups.append(Bars(of_row, "loss on repeats (nats)", f"seed {row['seed']}"))
    n_others = sum(not has_both_heads(row) for row in rows)
    others = f"Seeds that found another way, without two such heads: {n_others} of {len(rows)}, with their steps below."
    return Section(
        "One head less",
        [
            "Heads are chosen by where they look on some sequences, then cut off; the loss is measured on other "
            f"sequences. {others * (n_others > 0)}".strip(),
        ],
        bars(groups, n_columns=3, width=1.9),
        "missed",
        Table(
            ("chosen head", "at the word before", "at what followed", "repeats, without it"),
            table,
        ),
        "Rise of the loss without each head. Orange: the head of the first layer that looks most at the word before; "
        "blue: the one of the second that looks most at what followed.",
    )


COLOURS = {"previous": ORANGE, "induction": BLUE}
"""Colours of the two heads that are chosen."""


def _swept(numbers: Mapping[str, Any]) -> Section:
    """Return the section on other constants."""
    usual = [(f"seed {row['seed']}", row) for row in numbers["two"]]
    table = []
    for name, row in [*usual, *numbers["swept"].items()]:
        start, end = change(row)
        rise, other = _rises_of_layer(row)
        table.append(
            (
                name, "never" if math.isinf(end) else f"{start:g} to {end:g}",
                ", ".join(f"{judged(row, kind):.2f}" for kind in KINDS), f"{rise:+.2f}, {other:+.2f}",
                f"{row['induction_left']:.2f}",
            )
        )  # fmt: skip
    never = any(math.isinf(change(row)[1]) for name, row in numbers["swept"].items() if name.startswith("positions"))
    of_sinusoids = (
        f"With sinusoids, as in the paper, the change did not come in {numbers['two'][0]['sizes']['steps']:,} steps; "
        "more were not tried."
    )
    return Section(
        "With other constants",
        f"Two layers, one constant changed at a time, one seed each. {of_sinusoids * never}".strip(),
        table=Table(
            ("changed", "steps of the change", "at the word before, at what followed",
             "rise without that head, without another", "left without the head below"),
            table,
        ),
    )  # fmt: skip
