"""Verdicts hold at other values of the constants that they rest on, at least three each.

The judge in ``benchmarks/verdicts.py`` reruns more of them at larger sizes.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest
import torch

from benchmarks import verdicts
from dragoman.lab import paths, scaling

GRID = scaling.Grid(widths=(16, 64, 1024), keys=(5, 25, 150), queries=400)
SIZES = paths.Sizes(n=76, d=16, rows=8, seeds=2)


def red(case: verdicts.Case) -> list[str]:
    return [f"{row['statement']}: {row['answers']}" for row in verdicts.judged(case) if row["red"]]


@pytest.mark.parametrize(
    "grids",
    [
        [GRID._replace(keys=keys) for keys in ((5, 25, 150), (4, 12, 40, 200), (8, 20, 110))],
        [GRID._replace(widths=widths) for widths in ((16, 64, 1024), (32, 64, 1536), (8, 64, 128, 1024))],
        [GRID._replace(seed=seed) for seed in (1, 2, 3)],
    ],
    ids=["keys", "widths", "seeds"],
)
def test_scaling_is_judged_alike_with_other_keys_and_widths(grids: Sequence[scaling.Grid]) -> None:
    assert not red(verdicts.Case("scaling", "grid", grids, verdicts.scaling_answers))


@pytest.mark.parametrize("constant", ["n", "d", "seeds"])
def test_paths_are_judged_alike_at_other_lengths_and_widths(constant: str) -> None:
    values = {"n": (76, 101, 126), "d": (12, 16, 24), "seeds": (2, 3, 4)}[constant]
    sizes = [SIZES._replace(**{constant: value}) for value in values]
    assert not red(verdicts.Case("paths", constant, sizes, verdicts.paths_answers))


@pytest.mark.parametrize(("constant", "values"), [("n", (5, 8, 13)), ("hidden", (1, 3, 5)), ("seed", (3, 4, 5))])
def test_masks_are_judged_alike_at_other_sizes(constant: str, values: Sequence[int]) -> None:
    assert not red(verdicts.Case("masks", constant, values, lambda value: verdicts.masks_answers(**{constant: value})))


def test_what_is_counted_is_judged_alike_at_other_widths() -> None:
    assert not red(verdicts.Case("complexity", "d", (4, 8, 16), lambda d: verdicts.complexity_answers(128, d)))


@pytest.mark.parametrize(
    ("constant", "values"), [("d_model", (24, 32, 48)), ("depth", (12, 13, 15)), ("seeds", ((1,), (2,), (3,)))]
)
def test_fresh_stacks_are_judged_alike_at_other_sizes(constant: str, values: Sequence[Any]) -> None:
    usual = {"d_model": 32, "depth": 12, "seeds": (1,)}
    case = verdicts.Case("norms", constant, values, lambda value: verdicts.norms_answers(**{**usual, constant: value}))
    assert not red(case)


def test_recorded_trainings_are_judged_alike_when_one_is_left_out() -> None:
    for case in verdicts.CASES:
        if case.experiment in ("heads", "ablations") or case.constant == "peak rate left out":
            assert not red(case)


def test_the_judge_sees_a_verdict_that_rests_on_a_constant() -> None:
    """The former claim that the gradient has not shrunk at d_k = 64 is true of 64 keys and more alone."""

    def former(n_keys: int) -> dict[str, bool | None]:
        ratio = scaling.remaining(
            {"widths": [64], "grid": scaling.measured(scaling.Grid((64,), (n_keys,), 400))}, n_keys, 64
        )
        return {"at d_k = 64 it has not shrunk": ratio > 0.9}

    assert red(verdicts.Case("scaling", "keys", (5, 12, 64), former))
    assert red(verdicts.Case("any", "any", (1, 2, 3), lambda value: {"page: this is so": False}))
    answers = {1: True, 2: None, 3: True}
    open_once = verdicts.Case("any", "any", (1, 2, 3), lambda value: {"this holds": answers[value]})
    assert red(open_once)
    assert not red(open_once._replace(takes_evidence=True))


def test_the_record_is_of_all_cases_and_nothing_in_it_is_red() -> None:
    now = json.loads(verdicts.RECORD.read_text(encoding="utf-8"))["now"]
    assert now["red"] == 0
    assert {(row["experiment"], row["constant"]) for row in now["rows"]} == {
        (case.experiment, case.constant) for case in verdicts.CASES
    }
    assert all(len(row["answers"]) >= 3 for row in now["rows"])


@pytest.fixture(autouse=True)
def one_thread() -> Any:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
