"""At the end of a training the length penalty is chosen on validation text, if it is to be and that says anything."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from dragoman.bundle import Bundle, load_bundle
from dragoman.config import LengthPenalty
from dragoman.training import validation
from dragoman.training.log import RunLog
from dragoman.training.loop import Validation
from dragoman.training.validation import LENGTH_PENALTIES, with_length_penalty


class Judge:
    """A quality for each search in turn."""

    def __init__(self, *values: float) -> None:
        self.values, self.judged = list(values), list[Sequence[str]]()

    def __call__(self, hyps: Sequence[str], refs: Sequence[str], lang: str | None) -> Any:
        assert len(hyps) == len(refs) > 10
        self.judged.append(hyps)
        return SimpleNamespace(value=self.values.pop(0))


def choosing(run: Path, is_on: bool = True) -> Bundle:
    """The bundle of a run whose configuration says whether to choose."""
    bundle = load_bundle(run)
    train = bundle.config.train.model_copy(update={"choose_length_penalty": is_on})
    return bundle._replace(config=bundle.config.model_copy(update={"train": train}))


def of_quality(bleu: float) -> Validation:
    return Validation(loss=1.0, bleu=bleu, chrf=50.0, samples=[])


@pytest.mark.parametrize(
    ("qualities", "chosen"),
    [
        ((20.0, 21.0, 20.5), LENGTH_PENALTIES[1]),
        ((20.0, 20.5, 21.0), LENGTH_PENALTIES[2]),
        ((20.0, 20.05, 20.09), LENGTH_PENALTIES[0]),
        ((20.0, 19.0, 18.0), LENGTH_PENALTIES[0]),
    ],
)
def test_the_best_is_taken_if_it_is_better_by_more_than_chance(
    tiny_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, qualities: tuple[float, ...], chosen: LengthPenalty
) -> None:
    judge, bundle = Judge(*qualities), choosing(tiny_run)
    monkeypatch.setattr(validation, "bleu", judge)
    assert bundle.config.decode.penalty == LENGTH_PENALTIES[0]
    with RunLog(tmp_path, quiet=True) as log:
        config = with_length_penalty(bundle, tiny_run, of_quality(20.0), log)
    assert config.decode.penalty == chosen
    assert config.model_dump(exclude={"decode"}) == bundle.config.model_dump(exclude={"decode"})
    lengths = [sum(len(hyp.split()) for hyp in hyps) for hyps in judge.judged]
    assert lengths == sorted(lengths)  # each rewards length more than the one before


@pytest.mark.parametrize(("is_on", "bleu"), [(False, 20.0), (True, 0.9), (True, math.nan)])
def test_nothing_is_searched_where_nothing_is_to_be_chosen(
    tiny_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_on: bool, bleu: float
) -> None:
    monkeypatch.setattr(validation, "bleu", Judge())
    bundle = choosing(tiny_run, is_on)
    with RunLog(tmp_path, quiet=True) as log:
        assert with_length_penalty(bundle, tiny_run, of_quality(bleu), log) is bundle.config
