"""Significance: sacreBLEU's differences and p-values, exact tests on small sets, and honesty where nothing differs."""

from __future__ import annotations

import itertools
import os
import random
from typing import Any

import numpy as np
import pytest
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.significance import PairedTest

from dragoman.errors import DataError
from dragoman.evaluation import metrics
from dragoman.evaluation.metrics import Scorer, bleu, chrf, old_style_bleu, select_metrics, ter
from dragoman.evaluation.significance import approximate_randomisation, bootstrap, compare
from dragoman.evaluation.writing import Writing

WORDS = [f"{onset}{rime}" for onset in "bdgkmpt" for rime in ("an", "ot", "il", "esk")]


def sentences(count: int, seed: int) -> list[str]:
    chance = random.Random(seed)
    return [" ".join(chance.choices(WORDS, k=chance.randint(4, 12))) for _ in range(count)]


def with_errors(refs: list[str], rate: float, seed: int) -> list[str]:
    chance = random.Random(seed)
    return [" ".join(chance.choice(WORDS) if chance.random() < rate else word for word in ref.split()) for ref in refs]


REFS = sentences(200, 1)
A, B = with_errors(REFS, 0.25, 2), with_errors(REFS, 0.21, 3)


def scorer(key: str) -> Scorer:
    (metric,) = select_metrics([key])
    return metric.scorer(Writing(None))


@pytest.fixture(scope="module")
def found() -> dict[str, Any]:
    return {one.metric: one for one in compare(A, B, REFS, n_samples=5000)}


def test_scores_and_differences_are_those_of_the_metrics(found: dict[str, Any]) -> None:
    for metric in (bleu, chrf, ter):
        score_a, score_b = metric(A, REFS), metric(B, REFS)
        one = found[score_a.name]
        assert one.a == pytest.approx(score_a.value, abs=1e-9)
        assert one.b == pytest.approx(score_b.value, abs=1e-9)
        assert one.difference == one.b - one.a
        assert one.low < one.difference < one.high
        assert one.signature == score_a.signature


@pytest.mark.parametrize("name", ["BLEU", "chrF2"])
def test_p_values_are_near_those_of_sacrebleu(found: dict[str, Any], name: str) -> None:
    assert "SACREBLEU_SEED" not in os.environ
    theirs_by_name = {"BLEU": BLEU(), "chrF2": CHRF()}
    theirs = {}
    for kind in ("ar", "bs"):
        _, scores = PairedTest([("a", A), ("b", B)], {name: theirs_by_name[name]}, [REFS], kind, 5000)()
        theirs[kind] = scores[name][1]
        assert theirs[kind].score - scores[name][0].score == pytest.approx(found[name].difference, abs=1e-9)
    assert found[name].p_randomisation == pytest.approx(theirs["ar"].p_value, abs=0.015)  # chance: 0.004
    # sacreBLEU's bootstrap looks at one tail, ours at both
    assert found[name].p_bootstrap == pytest.approx(2 * theirs["bs"].p_value, abs=0.03)


def test_approximate_randomisation_is_near_the_exact_test() -> None:
    refs = sentences(10, 4)
    a, b = with_errors(refs, 0.4, 5), with_errors(refs, 0.15, 6)
    for metric in map(scorer, ("bleu", "chrf", "ter", "chrf++")):
        one, other = metric.statistics(a, [refs]), metric.statistics(b, [refs])
        real = abs(metric.score(other.sum(0)) - metric.score(one.sum(0)))
        as_large = 0
        for swapped in itertools.product((False, True), repeat=10):
            mask = np.array(swapped)[:, None]
            sums = np.where(mask, other, one).sum(0), np.where(mask, one, other).sum(0)
            as_large += abs(metric.score(sums[0]) - metric.score(sums[1])) >= real
        assert approximate_randomisation(metric.score, one, other, 4000, 1) == pytest.approx(
            as_large / 2**10, abs=0.025
        )


def test_differences_that_are_equal_but_for_rounding_are_as_large() -> None:
    """Scores in steps, as people give them, are equal in many exchanges: p was half of what it is."""
    a, b = np.full((20, 1), 0.7), np.array([0.7] * 15 + [0.8] * 5)[:, None]
    found = approximate_randomisation(lambda sums: float(sums[0]) / 20, a, b, 10_000, 12345)
    assert found == pytest.approx(2 / 2**5, abs=0.01)


def test_the_bootstrap_is_the_plain_one() -> None:
    metric = scorer("bleu")
    a, b = (metric.statistics(hyps, [REFS[:50]]) for hyps in (A[:50], B[:50]))
    rng, differences = np.random.default_rng(7), []
    for drawn in rng.integers(50, size=(300, 50)):
        texts = [[hyps[i] for i in drawn] for hyps in (A, B, REFS)]
        differences.append(bleu(texts[1], texts[2]).value - bleu(texts[0], texts[2]).value)
    low, high, p = bootstrap(metric.score, a, b, 300, 7)
    assert (low, high) == pytest.approx(tuple(np.percentile(differences, [2.5, 97.5])), abs=1e-9)
    assert p == pytest.approx(
        min(1, 2 * (1 + min(sum(d <= 0 for d in differences), sum(d >= 0 for d in differences))) / 301)
    )
    assert (p < 0.05) == (not low <= 0 <= high)


def test_identical_systems_differ_by_nothing_with_certainty() -> None:
    for one in compare(A, A, REFS, n_samples=200):
        assert (one.difference, one.low, one.high, one.p_bootstrap, one.p_randomisation) == (0, 0, 0, 1, 1)
        assert "no difference shown" in one.verdict()


def test_systems_that_are_worlds_apart_get_the_smallest_p_value() -> None:
    for one in compare(with_errors(REFS, 0.9, 1), REFS, REFS, n_samples=300):
        assert one.p_randomisation == 1 / 301
        assert one.p_bootstrap == 2 / 301
        assert one.significant


def test_p_values_are_about_uniform_where_nothing_differs() -> None:
    """Pairs of systems that are equally good: 5% of p-values below 5%, half below one half."""
    metric, values = scorer("chrf"), {"randomisation": [], "bootstrap": []}  # type: ignore[var-annotated]
    for trial in range(200):
        refs = sentences(40, 1000 + trial)
        a, b = (metric.statistics(with_errors(refs, 0.3, seed + trial), [refs]) for seed in (3000, 6000))
        values["randomisation"].append(approximate_randomisation(metric.score, a, b, 150, trial))
        values["bootstrap"].append(bootstrap(metric.score, a, b, 150, trial)[2])
    for found in values.values():
        for level in (0.05, 0.25, 0.5, 0.75):
            # three standard errors of a share among 200, and a little for 40 sentences
            assert np.mean(np.array(found) <= level) == pytest.approx(
                level, abs=3 * (level * (1 - level) / 200) ** 0.5 + 0.02
            )


def test_the_same_seed_gives_the_same_figures_whatever_the_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    once = compare(A[:60], B[:60], REFS[:60], n_samples=100, seed=3)
    assert compare(A[:60], B[:60], REFS[:60], n_samples=100, seed=3) == once
    assert compare(A[:60], B[:60], REFS[:60], n_samples=100, seed=4) != once
    monkeypatch.setattr(metrics, "CHUNK_CELLS", 60 * 7)
    assert compare(A[:60], B[:60], REFS[:60], n_samples=100, seed=3) == once


def test_the_other_way_round_is_the_other_sign() -> None:
    forth, back = compare(A, B, REFS, n_samples=300), compare(B, A, REFS, n_samples=300)
    for one, other in zip(forth, back, strict=True):
        assert other.difference == -one.difference
        assert (other.low, other.high) == pytest.approx((-one.high, -one.low))
        assert other.p_bootstrap == one.p_bootstrap
        assert other.p_randomisation == one.p_randomisation


def test_verdicts_in_plain_words(found: dict[str, Any]) -> None:
    better = found["BLEU"]._replace(a=30.0, b=30.8, difference=0.8, p_randomisation=0.012)
    assert better.verdict() == "BLEU: B is better than A by 0.80 (p = 0.012)"
    assert better.verdict("old", "new") == "BLEU: new is better than old by 0.80 (p = 0.012)"
    assert better._replace(difference=-0.8).verdict() == "BLEU: A is better than B by 0.80 (p = 0.012)"
    assert (
        better._replace(metric="TER", lower_is_better=True).verdict() == "TER: A is better than B by 0.80 (p = 0.012)"
    )
    assert better._replace(p_randomisation=0.05).verdict() == "BLEU: no difference shown between A and B (p = 0.05)"
    line = str(better)
    assert "B - A +0.80 [" in line
    assert "5,000 samples" in line
    assert "\n" not in line


def test_old_style_bleu_is_compared_too() -> None:
    found = compare([text.upper() for text in A], B, REFS, "en", select_metrics(["old-style-bleu"]), 50)[-1]
    assert found.a == pytest.approx(old_style_bleu(A, REFS, "en").value, abs=1e-9)
    assert found.metric.startswith("old-style BLEU")
    assert found.verdict().startswith("old-style BLEU: ")


def test_unequal_counts_and_nothing_to_compare_are_refused() -> None:
    with pytest.raises(DataError, match="199 translations but 200 references"):
        compare(A, B[1:], REFS)
    with pytest.raises(DataError, match="nothing to score"):
        compare([], [], [])
