"""A confidence: learned from translations whose chrF is known, it ranks and it means what it says."""

from __future__ import annotations

import itertools
import json
import math
from typing import Any

import numpy as np
import pytest

from benchmarks.harness.reliability import Bin, calibration_error, reliability
from dragoman.errors import BundleError, DataError
from dragoman.translation.confidence import (
    BIN_SENTENCES,
    FEATURES,
    MIN_SENTENCES,
    Confidence,
    confidence_features,
    fit,
    isotonic,
    pearson,
    spearman,
    with_shortfall,
)


def made_up(count: int, seed: int, noise: float = 8.0) -> tuple[list[list[float]], list[float]]:
    """Translations of which the chrF falls with the model's doubt, not in a line, and with the share of rare pieces."""
    chance = np.random.default_rng(seed)
    rows, chrf = [], []
    for _ in range(count):
        n_src = int(chance.integers(3, 40))
        n_tokens = max(1, round(n_src * chance.uniform(0.7, 1.4)))
        doubt = chance.gamma(2.0, 0.25)
        n_rare = int(chance.binomial(n_src, 0.05))
        rows.append(confidence_features(-doubt * n_tokens, n_tokens, n_src, n_rare))
        quality = 95 * math.exp(-1.2 * doubt) - 60 * n_rare / n_src + chance.normal(0, noise)
        chrf.append(min(100.0, max(0.0, quality)))
    return rows, chrf


@pytest.fixture(scope="module")
def fitted() -> Confidence:
    return fit(*made_up(1000, 1))


def test_features_are_those_that_are_named() -> None:
    row = dict(zip(FEATURES, confidence_features(-6.0, 4, 7, 2), strict=True))
    assert row == pytest.approx(
        {
            "log_prob_per_token": -1.5,
            "token_probability": math.exp(-1.5),
            "log_prob_per_root": -3.0,
            "log_length": math.log(4),
            "log_ratio": math.log(4 / 8),  # the end is counted on both sides
            "rare_share": 2 / 7,
        }
    )


def test_it_ranks_translations_that_it_has_not_seen(fitted: Confidence) -> None:
    rows, chrf = made_up(1000, 2)
    said = fitted.of(rows)
    assert all(0 <= value <= 1 for value in said)
    assert spearman(said, chrf) > 0.8
    assert fitted.rank_correlation == pytest.approx(spearman(said, chrf), abs=0.04)  # what it says of itself is true
    alone = max(abs(spearman([row[i] for row in rows], chrf)) for i in range(len(FEATURES)))
    assert spearman(said, chrf) > alone  # and more than the best of its features


def test_what_it_says_is_what_such_sentences_have(fitted: Confidence) -> None:
    rows, chrf = made_up(2000, 3)
    bins = reliability(fitted.of(rows), chrf)
    assert calibration_error(bins) < 0.02
    assert all(abs(b.confidence - b.chrf) < 0.05 for b in bins)
    off = reliability([value**2 for value in fitted.of(rows)], chrf)
    assert calibration_error(off) > 0.1  # the measure sees what is badly calibrated


def test_noise_gives_no_confidence_in_anything() -> None:
    """Where nothing can be known, all translations have the mean, and no correlation is claimed."""
    rows, chrf = made_up(600, 4)
    chrf = list(np.random.default_rng(5).permutation(chrf))
    learned = fit(rows, chrf)
    assert abs(learned.rank_correlation) < 0.15
    said = learned.of(made_up(600, 6)[0])
    assert np.mean(said) == pytest.approx(np.mean(chrf) / 100, abs=0.03)
    assert np.std(said) < 0.05


def test_the_curve_rises_and_continues_beyond_its_ends(fitted: Confidence) -> None:
    assert len(fitted.said) > 5
    assert len(fitted.said) <= 1000 // BIN_SENTENCES
    doubts = np.linspace(0.01, 8, 200)
    said = fitted.of([confidence_features(-doubt * 10, 10, 10, 0) for doubt in doubts])
    assert all(a >= b for a, b in itertools.pairwise(said))
    assert said[-1] == 0.0  # far from anything seen
    assert len(set(said[:50])) == 50  # no steps: the order of two translations is not lost


def test_the_same_numbers_come_back_from_json(fitted: Confidence) -> None:
    rows, _ = made_up(50, 7)
    again = Confidence.from_mapping(json.loads(json.dumps(fitted.model_dump(mode="json"))), "manifest.json")
    assert again == fitted
    assert again.of(rows) == fitted.of(rows)
    assert fitted.of([]) == []
    together, alone = fitted.of(rows), [fitted.of([row])[0] for row in rows]
    assert together == pytest.approx(alone, abs=1e-12)


def test_a_feature_that_never_varies_has_no_weight() -> None:
    rows, chrf = made_up(200, 8)
    for row in rows:
        row[-1] = 0.0
    learned = fit(rows, chrf)
    assert learned.weights[-1] == 0.0
    assert learned.of([[*rows[0][:-1], 1.0]]) == learned.of([rows[0]])


def test_too_few_translations_are_refused() -> None:
    rows, chrf = made_up(MIN_SENTENCES - 1, 9)
    with pytest.raises(DataError, match=f"at least {MIN_SENTENCES} translations, got {MIN_SENTENCES - 1}"):
        fit(rows, chrf)
    assert fit(*made_up(MIN_SENTENCES, 9)).sentences == MIN_SENTENCES


DAMAGES: list[tuple[str, Any]] = [
    ("weights", [1.0]), ("weights", "x"), ("bias", float("nan")), ("bias", None), ("said", []), ("said", [3.0, 1.0]),
    ("found", [0.5]), ("sentences", 0), ("rank_correlation", 7), ("centres", [float("inf")] * len(FEATURES)),
]  # fmt: skip


@pytest.mark.parametrize(("name", "value"), DAMAGES)
def test_numbers_that_cannot_be_are_refused_in_one_line(fitted: Confidence, name: str, value: Any) -> None:
    with pytest.raises(BundleError, match=r"^runs/x/bundle/manifest\.json cannot be used \(") as refusal:
        Confidence.from_mapping(fitted.model_dump() | {name: value}, "runs/x/bundle/manifest.json")
    assert "\n" not in str(refusal.value)


def test_numbers_that_are_missing_unknown_or_no_mapping_are_refused(fitted: Confidence) -> None:
    good = fitted.model_dump()
    for data in ({**good, "more": 1}, {k: v for k, v in good.items() if k != "bias"}, [1], "x", 5):
        with pytest.raises(BundleError, match="cannot be used"):
            Confidence.from_mapping(data, "here")


def test_isotonic_regression_pools_what_falls() -> None:
    x = np.arange(6.0)
    assert isotonic(x, np.array([1.0, 3.0, 2.0, 4.0, 6.0, 5.0]), 6) == ([0.0, 1.5, 3.0, 4.5], [1.0, 2.5, 4.0, 5.5])
    assert isotonic(x, -x, 6) == ([2.5], [-2.5])  # all of it falls: one mean
    assert isotonic(x[::-1].copy(), x[::-1].copy(), 3) == ([0.5, 2.5, 4.5], [0.5, 2.5, 4.5])
    assert isotonic(np.zeros(4), np.arange(4.0), 4) == ([0.0], [1.5])  # one x, one point


def test_isotonic_regression_is_the_nearest_rising_curve() -> None:
    """Against a plain search over all rising curves on a grid."""
    chance = np.random.default_rng(0)
    for _ in range(20):
        y = chance.integers(0, 4, 5).astype(float)
        xs, ys = isotonic(np.arange(5.0), y, 5)
        ours = sum(float((y[i] - ys[j]) ** 2) for j, part in enumerate(_parts(xs, 5)) for i in part)
        grid = np.linspace(0, 3, 13)
        best = _least(y, grid)
        assert ours <= best + 1e-9


def _parts(means: list[float], n: int) -> list[range]:
    """The blocks of neighbours that have these means of 0, 1, ..., n - 1."""
    parts, start = [], 0
    for mean in means:
        end = round(2 * mean) - start + 1
        parts.append(range(start, end))
        start = end
    assert start == n
    return parts


def _least(y: np.ndarray[Any, Any], grid: np.ndarray[Any, Any]) -> float:
    cost = np.zeros(len(grid))  # of curves that are at most grid[j] here
    for value in y:
        cost = np.minimum.accumulate(cost + (grid - value) ** 2)
    return float(cost[-1])


def test_correlations_are_those_of_the_definition() -> None:
    chance = np.random.default_rng(1)
    x, y = chance.normal(size=50), chance.normal(size=50)
    assert pearson(x, y) == pytest.approx(np.corrcoef(x, y)[0, 1])
    ranks = [np.argsort(np.argsort(values)) for values in (x, y)]
    assert spearman(x, y) == pytest.approx(np.corrcoef(*ranks)[0, 1])
    assert spearman([1, 2, 2, 3], [1, 2.5, 2.5, 4]) == pytest.approx(1.0)  # equal values share a rank
    assert spearman(x, np.exp(x)) == pytest.approx(1.0)
    assert pearson([1, 1, 1], [1, 2, 3]) == 0.0


def test_reliability_compares_what_was_said_with_what_was_found() -> None:
    bins = reliability([0.1, 0.9, 0.2, 0.8], [20.0, 70.0, 10.0, 90.0], n_bins=2)
    half = 1.96 * np.std([0.2, 0.1], ddof=1) / math.sqrt(2)
    assert bins[0] == pytest.approx(Bin(2, 0.15, 0.15, 0.15 - half, 0.15 + half))
    assert (bins[1].sentences, bins[1].confidence, bins[1].chrf) == pytest.approx((2, 0.85, 0.8))
    assert calibration_error(bins) == pytest.approx(0.025)
    assert [b.sentences for b in reliability([0.5], [50.0])] == [1]


def joined(count: int, seed: int) -> tuple[list[list[float]], list[float]]:
    """Lines of two sentences that were searched as one: of every other one the second sentence is lost, surely."""
    rows, chrf = [], []
    for i, (row, found) in enumerate(zip(*made_up(count, seed), strict=True)):
        n_tokens, lost = max(2, round(2 * math.exp(row[3]))), i % 2
        n_src = round(math.exp(row[3] - row[4])) * 2
        kept = n_tokens // 2 if lost else n_tokens
        rows.append(confidence_features(row[0] * kept, kept, n_src, 0))
        chrf.append(found / 2 if lost else found)
    return rows, chrf


def test_a_translation_that_lost_a_sentence_has_less_and_single_ones_keep_theirs() -> None:
    single = made_up(1000, 1)
    alone = fit(*single)
    learned = with_shortfall(alone, single[0], *joined(500, 4))
    assert learned.shortfall > 0
    rows, chrf = joined(1000, 5)
    before, now = alone.of(rows), learned.of(rows)
    assert calibration_error(reliability(now, chrf)) < 0.5 * calibration_error(reliability(before, chrf))
    assert spearman(now, chrf) > spearman(before, chrf) + 0.1
    rows, chrf = made_up(2000, 6)
    assert calibration_error(reliability(learned.of(rows), chrf)) < 0.02
    same = [a == b for a, b in zip(alone.of(rows), learned.of(rows), strict=True)]
    assert sum(same) > 0.9 * len(same)


def test_joined_lines_that_lack_nothing_take_nothing_off() -> None:
    rows, chrf = made_up(1000, 1)
    alone = fit(rows, chrf)
    assert with_shortfall(alone, rows, rows[:100], [100.0] * 100).shortfall == 0.0
    assert with_shortfall(alone, rows, [], []).shortfall == 0.0


def test_a_confidence_from_before_joined_lines_were_learned_from_still_loads() -> None:
    fitted = fit(*made_up(200, 1))
    old = {name: value for name, value in fitted.model_dump().items() if name not in ("usual_ratio", "shortfall")}
    rows, _ = made_up(50, 2)
    assert Confidence.from_mapping(old, "the bundle").of(rows) == fitted.of(rows)
