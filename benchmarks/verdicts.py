"""Rerun the laboratory's verdicts with other values of each constant that they rest on: which of them change?

    python -m benchmarks.verdicts before        # then mend, then: now

A verdict that holds with 64 keys and fails with 12 is no verdict about attention. Each case below names an experiment,
one of its constants, and at least three values of it, mostly others than the experiment's own. A verdict is steady if
its answer is the same at all of them, and what a page says must be true at all of them. ``results/verdicts.json`` has
the answers under the name of the record.
"""

from __future__ import annotations

import argparse
import datetime
import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np
import torch

from benchmarks.harness.environments import ROOT
from dragoman.lab import ablations, costs, hiding, masks, norms, paths, scaling
from dragoman.lab.experiment import Claim, plain
from dragoman.lab.stacks import gradient_by_layer, residual_shares

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


def answers(claims: Sequence[Claim]) -> Answers:
    """Return the claims by their place and first words, which stay the same when a number in them changes."""
    return {f"{place}. {claim.text}": claim.holds for place, claim in enumerate(claims, 1)}


# --- scaling ----------------------------------------------------------------------------------------------------------


def scaling_numbers(n_keys: int = 64, seed: int = 0, n: int = 1500) -> dict[str, Any]:
    """Measure the softmax over ``n_keys`` keys at several widths."""
    widths = [4, 16, 64, 256, 1024]
    with patch.object(scaling, "N_KEYS", n_keys):
        scaled, unscaled = (
            [scaling.saturation(d_k, divided, n, np.random.default_rng(seed + d_k)) for d_k in widths]
            for divided in (True, False)
        )
    variance = scaling.variances([16, 64], 0.5, 4000, np.random.default_rng(seed))
    fresh = [{"d_k": d_k, "standard_deviation": scaling.at_initialisation(d_k, 256, seed)} for d_k in (16, 64)]
    return {"pairs": 4000, "scaled": scaled, "unscaled": unscaled, "variance": variance, "at_initialisation": fresh}


def scaling_answers(**constants: int) -> Answers:
    """Return the verdicts on the division by sqrt(d_k), and what the pages conclude from them."""
    numbers = scaling_numbers(**constants)
    at_64 = [numbers[kind][2] for kind in ("unscaled", "scaled")]
    return {
        **answers(scaling.verdict(numbers)),
        "page: at d_k = 64 the gradient of the median query by the scores has not shrunk": bool(
            at_64[0]["gradient_median"] > 0.9 * at_64[1]["gradient_median"]
        ),
        "page: at d_k = 64 its gradient by the query is several times larger": bool(
            at_64[0]["gradient_by_query_median"] > 3 * at_64[1]["gradient_by_query_median"]
        ),
    }


# --- paths ------------------------------------------------------------------------------------------------------------


def paths_answers(n: int = 61, d: int = 32, seeds: int = 3) -> Answers:
    """Return what is said of the gradient by distance, for sequences of ``n`` tokens of width ``d``."""
    sizes = paths.Sizes(n, d, rows=4, seeds=seeds)
    reach = {name: paths.reach(partial(make, d), sizes) for name, make in paths.LAYERS.items()}
    near = {
        f"page: at distance {k} self-attention passes on more than a {name} does": reach["self-attention"][k]
        > reach[name][k]
        for k in (1, 5)
        for name in ("plain RNN", "GRU", "LSTM")
    }
    attention = reach["self-attention"]
    return {
        "page: self-attention's gradient stays": bool(1 / 3 < attention[paths.FAR] / attention[1] < 3),
        "page: self-attention's gradient at 1 is of the order of that at the token itself": attention[1]
        > attention[0] / 10,
        **near,
    }


# --- masks ------------------------------------------------------------------------------------------------------------

HANDED = {
    "causal": lambda n: torch.ones(1, 1, n, n).tril().bool(),
    "padding, a quarter of the keys": lambda n: (torch.arange(n) < n - n // 4).expand(1, 1, n, n),
    "no padding": lambda n: torch.ones(1, 1, n, n).bool(),
}


def masks_answers(kind: str = "causal", n: int = 8, seed: int = 0) -> Answers:
    """Return what is said of masks that are read by another convention."""
    with patch.object(hiding, "causal_mask", HANDED[kind]):
        shares = hiding.mix_up_conventions(n, seed)
    cells = [share for written, row in shares.items() for read, share in row.items() if written != read]
    silent = sum(share != "nan" and float(share) > 1e-6 for share in cells)
    return {
        "page: of the twelve pairs five are silently wrong": silent == 5,
        "page: some pairs show at once, as NaN": "nan" in cells,
        "page: every cell with a number is a silent bug": sum(share != "nan" for share in cells) == silent,
    }


# --- complexity -------------------------------------------------------------------------------------------------------


def counted(layer: str, n: int, d: int) -> int:
    """Return the operations of a row of Table 1."""
    return costs.operations(next(row for row in costs.LAYERS if row.name == layer), n, d)


def recurrence_answers(products: int) -> Answers:
    """Return what is said of the crossing, for a recurrent layer of ``products`` d x d matrices.

    A plain RNN has 1 without its input projection and 2 with it; a GRU 6 and an LSTM 8.
    """
    d = 128
    above = [n for n in range(1, 2000) if 4 * n * n * d > 2 * products * n * d * d]
    with_projections = [n for n in range(1, 2000) if 4 * n * n * d + 8 * n * d * d <= 2 * products * n * d * d]
    return {
        "page: without its projections self-attention takes more operations from n = d on": above[0] == d + 1,
        "page: with its projections it takes more at any length": not with_projections,
    }


def neighbours_answers(r: int) -> Answers:
    """Return what is said of restricted attention, for ``r`` neighbours."""
    with patch.object(costs, "NEIGHBOURS", r):
        operations = counted("restricted", 1024, 128)
    return {
        "page: it takes about as many operations as the convolution of width 3": abs(
            operations / counted("convolutional", 1024, 128) - 1
        )
        < 0.1,
        "page: it takes r n d, within the constant 4 of attention": operations == 4 * r * 1024 * 128,
    }


# --- norms ------------------------------------------------------------------------------------------------------------


def norms_answers(d_model: int = 32, depth: int = 12, seed: int = 1) -> Answers:
    """Return the verdicts on gradients and residuals in fresh stacks of ``depth`` layers."""
    depths = (depth // 4, depth // 2, depth)
    gradients = {
        norm: {str(n): [gradient_by_layer(norm, n, seed, d_model)] for n in depths} for norm in ("post", "pre")
    }
    shares = {norm: residual_shares(norm, depth // 2, seed) for norm in ("post", "pre")}
    record = json.loads((LAB / "norms/numbers.json").read_text(encoding="utf-8"))["numbers"]
    claims = norms.verdict({**record, "gradients": gradients, "depths": depths, "residual_shares": shares})
    return answers(claims[:4])


# --- ablations --------------------------------------------------------------------------------------------------------


def ablations_answers(comparisons: int) -> Answers:
    """Return the verdicts on Table 3 with an interval that allows for so many comparisons (Bonferroni)."""
    record = json.loads((LAB / "ablations/numbers.json").read_text(encoding="utf-8"))["numbers"]
    # Student's t of 4 degrees of freedom, two-sided 5% shared by the comparisons.
    quantile = {1: 2.776, 5: 4.604, 12: 5.916, 19: 6.741}[comparisons]
    with patch.object(ablations, "prediction_interval", partial(widened, factor=quantile / 2.776)):
        return answers(ablations.verdict(record))


def widened(values: Sequence[float], factor: float) -> Any:
    """Return the prediction interval of ``values``, ``factor`` times as wide."""
    from dragoman.lab.runs import Interval, prediction_interval

    usual = prediction_interval(values)
    half = factor * (usual.high - usual.mean)
    return Interval(usual.mean, usual.mean - half, usual.mean + half)


CASES = [
    Case("scaling", "number of keys", (5, 12, 25, 64, 256), lambda value: scaling_answers(n_keys=value)),
    Case("scaling", "seed", (3, 5, 7), lambda value: scaling_answers(seed=value)),
    Case("paths", "length of the sequence", (51, 76, 151), lambda value: paths_answers(n=value)),
    Case("paths", "width", (16, 32, 64), lambda value: paths_answers(d=value)),
    Case("masks", "kind of mask", tuple(HANDED), lambda value: masks_answers(kind=value)),
    Case("masks", "number of keys", (5, 8, 13), lambda value: masks_answers(n=value)),
    Case("masks", "seed", (0, 1, 2), lambda value: masks_answers(seed=value)),
    Case("complexity", "products of the recurrent layer", (1, 2, 6, 8), recurrence_answers),
    Case("complexity", "neighbours", (32, 128, 256), neighbours_answers),
    Case("norms", "width", (16, 32, 64), lambda value: norms_answers(d_model=value)),
    Case("norms", "layers", (12, 16, 24), lambda value: norms_answers(depth=value)),
    Case("norms", "seed", (1, 2, 3), lambda value: norms_answers(seed=value)),
    Case("ablations", "comparisons", (1, 5, 12, 19), ablations_answers),
]


def judged(case: Case) -> list[dict[str, Any]]:
    """Return a row for each statement of a case: its answer at every value, and True if that is wrong somewhere."""
    by_value = {str(value): case.answer(value) for value in case.values}
    statements = list(next(iter(by_value.values())))
    return [
        {
            "experiment": case.experiment,
            "constant": case.constant,
            "statement": statement,
            "answers": {value: plain(those[statement]) for value, those in by_value.items()},
            "red": is_red(statement, [those[statement] for those in by_value.values()]),
        }
        for statement in statements
    ]


def is_red(statement: str, answered: Sequence[bool | None]) -> bool:
    """Return True if a verdict changes with the constant, or if what a page says is not true at every value."""
    return not all(answered) if statement.startswith("page: ") else len(set(answered)) > 1


def main() -> None:
    """Answer all cases and record them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name", choices=["before", "now"], help="name of the record")
    name = parser.parse_args().name
    torch.set_num_threads(1)
    rows = [row for case in CASES for row in judged(case)]
    red = [row for row in rows if row["red"]]
    records = json.loads(RECORD.read_text(encoding="utf-8")) if RECORD.exists() else {}
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    records[name] = {"date": today, "statements": len(rows), "red": len(red), "rows": rows}
    RECORD.write_text(json.dumps(records, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    for row in red:
        print(f"{row['experiment']}, {row['constant']}: {row['statement']}: {row['answers']}")
    print(f"{len(red)} of {len(rows)} statements are not right at every value of a constant")


if __name__ == "__main__":
    main()
