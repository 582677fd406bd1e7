"""Train post- and pre-norm stacks at several peak rates, with warm-up and without, for the experiment norms.

A stack that fails at one rate may need warm-up, or the rate may be too high. Only several rates tell the two apart.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from dragoman.explanation.figures import HeatMap, heat_maps
from dragoman.lab.experiment import Claim, Lab, Section
from dragoman.lab.stacks import LEARNED, PEAK_RATE, WARMUP, train_variant

RATES = (5e-4, 1e-3, PEAK_RATE, 4e-3)
"""Peak learning rates; those of ``stacks`` have the third."""

LAYERS = 6
"""Layers on each side."""

CELLS = [(norm, warmup) for norm in ("post", "pre") for warmup in (WARMUP, 1)]
"""Places of the norm, each with its steps of warm-up; 1 is none."""

Cells = dict[str, dict[str, list[dict[str, Any]]]]
"""Trainings by ``cell_name`` and rate, one per seed: ``learned_at``, None if not at all, and ``last``, the loss."""


def rate_trials(lab: Lab, seeds: Sequence[int], steps: int, trained: Mapping[str, Any]) -> dict[str, Any]:
    """Train every cell at every rate; a training ends once the task is learned.

    Args:
        lab: Options of the experiment.
        seeds: Seeds of the trainings at other rates than ``PEAK_RATE``.
        steps: Longest training.
        trained: Results of ``train_variant`` at ``PEAK_RATE``, by ``cell_name``; missing ones are trained here.

    Returns:
        ``rates``, as text, ``steps``, ``layers``, ``cells``, and their ``means``.
    """
    layers, rates = (1, RATES[:2]) if lab.quick else (LAYERS, RATES)
    cells: Cells = {cell_name(*cell): {} for cell in CELLS}
    for norm, warmup in CELLS:
        name = cell_name(norm, warmup)
        for rate in rates:
            variant = {"norm": norm, "layers": layers, "warmup": warmup, "rate": rate, "stop": True}
            trials = trained.get(name, []) if rate == PEAK_RATE else []
            for seed in () if trials else seeds:
                key, settings = f"rate-{norm}-{rate:g}-{warmup}-{seed}", {**variant, "seed": seed, "steps": steps}
                trials = [*trials, lab.done(key, partial(train_variant, variant, seed, steps), settings)]
                lab.say(f"{name}, peak rate {rate:g}, seed {seed}: {in_words(trials[-1]['learned_at'])}")
            cells[name][f"{rate:g}"] = [{"learned_at": t["learned_at"], "last": t["last"]} for t in trials]
    rows = {"rates": [f"{rate:g}" for rate in rates], "steps": steps, "layers": layers, "cells": cells}
    return rows | {"means": means(cells)}


def means(cells: Cells) -> dict[str, dict[str, dict[str, float | None]]]:
    """Return the mean ``steps`` to learn (None if some seed did not) and the mean last ``loss``, by cell and rate."""
    return {
        name: {
            rate: {
                "steps": float(np.mean(learned(trials))) if len(learned(trials)) == len(trials) else None,
                "loss": float(np.mean([trial["last"] for trial in trials])),
            }
            for rate, trials in by_rate.items()
        }
        for name, by_rate in cells.items()
    }


def cell_name(norm: str, warmup: int) -> str:
    """Return the name of a cell, "post-norm, warm-up"."""
    return f"{norm}-norm, {'no ' if warmup == 1 else ''}warm-up"


def in_words(step: int | None) -> str:
    """Return the step by which a task was learned, or "never"."""
    return "never" if step is None else str(step)


def learned(trials: Sequence[Mapping[str, Any]]) -> list[int]:
    """Return the steps of the trainings that learned the task."""
    return [trial["learned_at"] for trial in trials if trial["learned_at"] is not None]


def warm_up_helps(rates: Mapping[str, Any], norm: str, rate: str) -> bool | None:
    """Return True if a stack learns with warm-up and not without, or has a loss at least 0.1 nats lower; False if not.

    None if seeds of one cell differ in whether they learn, and if neither learns and their losses are alike: what more
    steps would do is not known.
    """
    cells = [rates["cells"][cell_name(norm, warmup)][rate] for warmup in (WARMUP, 1)]
    shares = [len(learned(trials)) / len(trials) for trials in cells]
    if not set(shares) <= {0.0, 1.0}:
        return None
    if shares != [0.0, 0.0]:
        return shares == [1.0, 0.0]
    with_it, without = (float(np.mean([trial["last"] for trial in trials])) for trials in cells)
    return None if abs(with_it - without) <= 0.1 else with_it < without


def rate_claims(rates: Mapping[str, Any]) -> list[Claim]:
    """Return the claims that need several rates, each decided by ``rate_trials``."""
    helps = {rate: warm_up_helps(rates, "post", rate) for rate in rates["rates"]}
    pre = [trial for rate in rates["rates"] for trial in rates["cells"][cell_name("pre", 1)][rate]]
    never = len(pre) - len(learned(pre))
    lowest = rates["rates"][0]
    return [
        Claim(
            "Post-norm needs warm-up at every peak rate",
            None if None in helps.values() and False not in helps.values() else all(helps.values()),
            f"with it, it learns only at {' and '.join(_learned_rates(rates, 'post', WARMUP)) or 'none'}; without, at "
            f"{' and '.join(_learned_rates(rates, 'post', 1)) or 'none'}",
        ),
        Claim(
            f"Without warm-up the rate is too high: at the lowest, {lowest}, warm-up makes no difference",
            None if helps[lowest] is None else not helps[lowest],
            f"{_outcome(rates['cells'][cell_name('post', WARMUP)][lowest])} with, "
            f"{_outcome(rates['cells'][cell_name('post', 1)][lowest])} without",
        ),
        Claim(
            "Pre-norm learns without warm-up at every peak rate",
            never == 0,
            f"in {len(pre) - never} of {len(pre)} trainings",
        ),
    ]


def _learned_rates(rates: Mapping[str, Any], norm: str, warmup: int) -> list[str]:
    """Return the peak rates at which all seeds of a stack learn."""
    by_rate = rates["cells"][cell_name(norm, warmup)]
    return [rate for rate in rates["rates"] if len(learned(by_rate[rate])) == len(by_rate[rate])]


def _outcome(trials: Sequence[Mapping[str, Any]]) -> str:
    """Return the outcome of a cell: "492 steps", "not learned (0.98 nats)" or "learned by 1 of 2"."""
    steps = learned(trials)
    if not steps:
        return f"not learned ({np.mean([trial['last'] for trial in trials]):.2f} nats)"
    return f"{np.mean(steps):.0f} steps" if len(steps) == len(trials) else f"learned by {len(steps)} of {len(trials)}"


def rate_section(rates: Mapping[str, Any]) -> Section:
    """Return the section with a map of all cells over the peak rate."""
    values, texts = [], []
    for by_rate in rates["cells"].values():
        row = [by_rate[rate] for rate in rates["rates"]]
        values.append([np.mean(learned(t)) if len(learned(t)) == len(t) else np.nan for t in row])
        texts.append([_in_cell(trials) for trials in row])
    names = list(rates["cells"])
    return Section(
        "Warm-up, or a lower rate?",
        [
            f"The same stacks of {rates['layers']} + {rates['layers']} layers at other peak rates.",
        ],
        heat_maps(
            [HeatMap(values, "", names, rates["rates"], texts)], "", "peak rate", f"steps to {LEARNED} nats",
            limits=(0.0, float(rates["steps"])), cell=0.72, framed=True,
            missing="not learned: last loss (nats)",
        ),
        "rates",
        caption=f"Steps until the mean loss of 20 is below {LEARNED} nats, of {rates['steps']} at most, mean over the "
        "seeds.",
    )  # fmt: skip


def _in_cell(trials: Sequence[Mapping[str, Any]]) -> str:
    """Return the steps to learn, or the last loss where some seed did not learn."""
    steps = learned(trials)
    if len(steps) == len(trials):
        return f"{np.mean(steps):.0f}"
    return f"{np.mean([trial['last'] for trial in trials if trial['learned_at'] is None]):.2f}"
