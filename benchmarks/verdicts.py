"""Rerun the laboratory's verdicts with other values of each constant that they rest on: which of them change?

    python -m benchmarks.verdicts

A verdict that holds with 64 keys and fails with 12 is no verdict about attention. Each case below names an experiment,
one of its constants, and at least three values of it, mostly others than the experiment's own. A verdict is steady if
its answer is the same at all of them, and what a page says must be true at all of them. Cases that need no training are
measured anew; ``norms`` at other rates, ``heads`` and ``ablations`` are decided again from their records.
``results/verdicts.json`` has the answers, ``now``, beside those ``before`` these constants were swept.
"""

from __future__ import annotations

import argparse
import datetime
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np
import torch

from benchmarks.harness.environments import ROOT
from dragoman.lab import (
    ablations,
    accounts,
    attention,
    grow,
    heads,
    hiding,
    induction,
    masks,
    norms,
    paths,
    rates,
    reach,
    scaling,
)
from dragoman.lab.experiment import Claim, plain
from dragoman.lab.stacks import gradient_by_layer, residual_path, residual_shares

RECORD = ROOT / "benchmarks/results/verdicts.json"
LAB = ROOT / "docs/lab"

Answers = Mapping[str, "bool | None"]
"""Statements, and True if they hold."""


class Case(NamedTuple):
    """An experiment with one of its constants at several values."""

    experiment: str
    constant: str
    values: Sequence[Any]
    answer: Callable[[Any], Answers]
    takes_evidence: bool = False  # True if values only take evidence away: then a verdict may become open


def answers(claims: Sequence[Claim]) -> Answers:
    """Return the claims by their place, which stays the same when a number in their text changes."""
    return {f"{place}. {claim.text}": claim.holds for place, claim in enumerate(claims, 1)}


def recorded(experiment: str) -> dict[str, Any]:
    """Return the numbers of an experiment's published run."""
    numbers: dict[str, Any] = json.loads((LAB / experiment / "numbers.json").read_text(encoding="utf-8"))["numbers"]
    return numbers


# --- measured anew ----------------------------------------------------------------------------------------------------


def scaling_answers(grid: scaling.Grid) -> Answers:
    """Return the verdicts on the division by sqrt(d_k), and what the page says about d_k = 64."""
    numbers = {
        "widths": grid.widths, "keys": grid.keys, "pairs": 4000, "grid": scaling.measured(grid),
        "variance": scaling.variances([16, 64], 0.5, 4000, np.random.default_rng(grid.seed)),
        "at_initialisation": [
            {"d_k": d_k, "standard_deviation": scaling.at_initialisation(d_k, 256, grid.seed)} for d_k in (16, 64)
        ],
    }  # fmt: skip
    at_64 = {n_keys: scaling.remaining(numbers, n_keys, 64) for n_keys in grid.keys}
    few, many = ([ratio for n, ratio in at_64.items() if n <= 30], [ratio for n, ratio in at_64.items() if n >= 100])
    return {
        **answers(scaling.verdict(numbers)),
        "page: at d_k = 64 the gradient by the scores shrinks in sentences of ordinary length": max(few) < 1,
        "page: at d_k = 64 the division shrinks it with many keys": min(many) > 1,
    }


def paths_answers(sizes: paths.Sizes) -> Answers:
    """Return the verdicts on the gradient by distance."""
    return answers(paths.reach_claims(paths.measured(sizes, (26, 51, sizes.n))))


def masks_answers(n: int = 8, hidden: int = 2, seed: int = 0) -> Answers:
    """Return the verdicts on masks that are read by another convention, and the page's counts."""
    kinds = {**hiding.HANDED_OVER, "padding": lambda n: (torch.arange(n) < n - hidden).expand(n, n)}
    handed_over = {kind: hiding.mix_up_conventions(make(n), seed) for kind, make in kinds.items()}
    counts = {kind: list(row.values()) for kind, row in masks.count_pairs(handed_over).items()}
    return {
        **answers(masks.handed_over_claims(handed_over)),
        "page: causal: 5 silent, 4 NaN, 3 right": counts["causal"] == [5, 4, 3],
        "page: padding: 9 silent, no NaN, 3 right": counts["padding"] == [9, 0, 3],
        "page: nothing hidden: 2 silent, 4 NaN, 6 right": counts["nothing hidden"] == [2, 4, 6],
    }


def complexity_answers(n: int = 512, d: int = 64) -> Answers:
    """Return the verdicts on what is counted, and the page's table of crossings."""
    counted = accounts.accounted((d // 2, d), n, d)
    table = {cell: [of_width[0] for of_width in row.values()] for cell, row in counted["crossings_over_d"].items()}
    return {
        **answers(accounts.account_claims(counted)),
        "page: the table of crossings": table
        == {"plain RNN": [0.5, 1, None], "GRU": [1.5, 3, 1], "LSTM": [2, 4, 2]},
    }  # fmt: skip


def norms_answers(d_model: int = 32, depth: int = 12, seeds: Sequence[int] = (1, 2)) -> Answers:
    """Return the verdicts on gradients and residuals in fresh stacks of ``depth`` layers."""
    depths = (2, depth)
    gradients = {
        norm: {str(n): [gradient_by_layer(norm, n, seed, d_model) for seed in seeds] for n in depths}
        for norm in ("post", "pre")
    }
    numbers = {
        "gradients": gradients,
        "depths": depths,
        "residual_shares": {norm: residual_shares(norm, depth // 2, seeds[0]) for norm in ("post", "pre")},
        "residual_path": {
            norm: {str(n): [residual_path(norm, n, seeds[0])[0]] for n in depths}
            for norm in ("post", "pre")
        },
    }  # fmt: skip
    return answers(norms.fresh_claims(numbers))


def attention_answers(seed: int) -> Answers:
    """Return True if a short query finds all keys alike and a long one the best, for other words."""
    steps = attention.step_by_step(np.random.default_rng(seed))
    weights = attention.sharpened(steps)
    return {
        "page: a query of little length takes the plain mean": bool(abs(weights[0] - 0.2).max() < 0.05),
        "page: a long query picks the key with the greatest score": weights[-1].argmax() == steps.scores[0].argmax(),
    }


# --- decided again ----------------------------------------------------------------------------------------------------


def rates_answers(left_out: str) -> Answers:
    """Return the verdicts on warm-up without one of the peak rates; the lowest always stays."""
    record = recorded("norms")["rates"]
    return answers(rates.rate_claims({**record, "rates": [rate for rate in record["rates"] if rate != left_out]}))


def heads_answers(small_loss: float) -> Answers:
    """Return the verdicts on heads with another limit for an unimportant head."""
    with patch.object(heads, "SMALL_LOSS", small_loss):
        return answers(heads.verdict(recorded("heads")))


def ablations_answers(left_out: int) -> Answers:
    """Return the verdicts on Table 3 without one of the base's seeds."""
    record = recorded("ablations")
    base = [row for row in record["base_seeds"] if row["seed"] != left_out]
    return answers(ablations.verdict({**record, "base_seeds": base}))


def without_seed(rows: Any, seed: int) -> Any:
    """Return numbers without the trainings of one seed, however deep they lie."""
    if isinstance(rows, dict):
        return {key: without_seed(value, seed) for key, value in rows.items()}
    if isinstance(rows, list) and rows and isinstance(rows[0], dict) and "seed" in rows[0]:
        return [row for row in rows if row["seed"] != seed]
    return rows


def grow_answers(rate: float, left_out: int | None = None) -> Answers:
    """Return the verdicts on the block's parts at one peak rate, or without one of the seeds."""
    record = recorded("grow")
    kept = record if left_out is None else without_seed(record, left_out)
    return answers(grow.verdict(kept, rate))


def induction_answers(left_out: int) -> Answers:
    """Return the verdicts on two layers without one of the trainings, each with another seed or constant."""
    record = recorded("induction")
    rows = induction.trainings(record)
    kept = rows[:left_out] + rows[left_out + 1 :]
    two = [row for row in record["two"] if row in kept]
    return answers(induction.trained_claims(record["one"], two, kept))


def reach_answers(n: int, left_out: int | None = None) -> Answers:
    """Return the verdicts on copying in sequences of one length, or without one of the seeds."""
    record = recorded("reach")["copy"][f"{n}"]
    return answers(reach.copy_claims(record if left_out is None else without_seed(record, left_out)))


def similarity_answers(left_out: int) -> Answers:
    """Return the verdicts on additive and dot-product attention without one of the seeds."""
    return answers(reach.similarity_claims(without_seed(recorded("reach")["similarity"], left_out)))


def embedding_answers(left_out: int) -> Answers:
    """Return the verdicts on scaled and tied embeddings without one of the seeds; the first is that of all rates."""
    return answers(reach.embedding_claims(without_seed(recorded("reach")["embeddings"], left_out)))


GRID = scaling.Grid(widths=(4, 16, 64, 256, 1024), queries=2000)
SIZES = paths.Sizes(n=76, d=32, rows=4, seeds=3)

CASES = [
    Case("scaling", "numbers of keys", ((5, 25, 256), (4, 10, 30, 100, 300), (8, 20, 150)),
         lambda keys: scaling_answers(GRID._replace(keys=keys))),
    Case("scaling", "seed", (3, 5, 7), lambda seed: scaling_answers(GRID._replace(seed=seed))),
    Case("scaling", "widths", ((8, 64, 1024), (4, 32, 64, 2048), (16, 64, 128, 1024)),
         lambda widths: scaling_answers(GRID._replace(widths=widths))),
    Case("paths", "length of the sequence", (76, 101, 151), lambda n: paths_answers(SIZES._replace(n=n))),
    Case("paths", "width", (16, 32, 64), lambda d: paths_answers(SIZES._replace(d=d))),
    Case("paths", "drawings", (2, 3, 5), lambda seeds: paths_answers(SIZES._replace(seeds=seeds))),
    Case("masks", "number of keys", (5, 8, 13), lambda n: masks_answers(n=n)),
    Case("masks", "hidden keys", (1, 3, 5), lambda hidden: masks_answers(hidden=hidden)),
    Case("masks", "seed", (0, 1, 2), lambda seed: masks_answers(seed=seed)),
    Case("complexity", "width", (32, 64, 128), lambda d: complexity_answers(d=d)),
    Case("complexity", "length", (256, 512, 1024), lambda n: complexity_answers(n=n)),
    Case("norms", "width", (16, 32, 64), lambda d: norms_answers(d_model=d)),
    Case("norms", "layers", (12, 16, 24), lambda depth: norms_answers(depth=depth)),
    Case("norms", "seeds", ((1, 2), (3, 4), (5, 6)), lambda seeds: norms_answers(seeds=seeds)),
    Case("norms", "peak rate left out", ("none", "0.001", "0.002", "0.004"), rates_answers),
    Case("attention", "seed", (1, 2, 3), attention_answers),
    Case("heads", "limit of an unimportant head", (0.04, 0.05, 0.07), heads_answers),
    Case("ablations", "seed of the base left out", (1, 2, 3, 4, 5), ablations_answers, takes_evidence=True),
    Case("grow", "peak rate", grow.RATES, grow_answers),
    Case("grow", "seed left out", (1, 2, 3), lambda seed: grow_answers(grow.RATE, seed)),
    Case("induction", "training left out: seeds, rates, words, norm", tuple(range(8)), induction_answers),
    Case("reach", "length of the sequence", reach.LENGTHS, reach_answers),
    Case("reach", "seed left out", (1, 2, 3), lambda seed: reach_answers(reach.LENGTHS[1], seed)),
    Case("reach", "seed of similarities left out", (1, 2, 3), similarity_answers, takes_evidence=True),
    Case("reach", "seed of embeddings left out", (0, 2, 3), embedding_answers),
]  # fmt: skip


def judged(case: Case) -> list[dict[str, Any]]:
    """Return a row for each statement of a case: its answer at every value, and True if that is wrong somewhere."""
    by_value = {str(value): case.answer(value) for value in case.values}
    # A statement is known by its place: its text may name the value.
    answered = list(zip(*(those.items() for those in by_value.values()), strict=True))
    return [
        {
            "experiment": case.experiment,
            "constant": case.constant,
            "statement": row[0][0],
            "answers": {value: plain(answer) for value, (_, answer) in zip(by_value, row, strict=True)},
            "red": is_red(row[0][0], [answer for _, answer in row if answer is not None or not case.takes_evidence]),
        }
        for row in answered
    ]


def is_red(statement: str, answered: Sequence[bool | None]) -> bool:
    """Return True if a verdict changes with the constant, or if what a page says is not true at every value."""
    return not all(answered) if statement.startswith("page: ") else len(set(answered)) > 1


def main() -> None:
    """Answer all cases and record them."""
    argparse.ArgumentParser(description=__doc__).parse_args()
    torch.set_num_threads(1)
    rows = [row for case in CASES for row in judged(case)]
    red = [row for row in rows if row["red"]]
    records = json.loads(RECORD.read_text(encoding="utf-8"))
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    records["now"] = {"date": today, "statements": len(rows), "red": len(red), "rows": rows}
    RECORD.write_text(json.dumps(records, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    for row in red:
        print(f"{row['experiment']}, {row['constant']}: {row['statement']}: {row['answers']}")
    print(f"{len(red)} of {len(rows)} statements are not right at every value of a constant")


if __name__ == "__main__":
    main()
