"""Sampling: the right distribution, by numbers that belong to the sentence and not to its batch."""

from __future__ import annotations

from collections import Counter

import pytest
import torch
from table_model import EOS, TableModel, TableState
from torch import Tensor

from dragoman.config import DecodeConfig
from dragoman.decoding import batched_search
from dragoman.decoding.constraints import Rules, Spelling
from dragoman.decoding.request import Sampling, SearchBatch, Segment
from dragoman.decoding.sampling import chance, draw, sample_search
from dragoman.errors import ConfigError, DecodeError
from searching import search_all, settings_of

CPU = torch.device("cpu")
LOG_P = torch.tensor([0.5, 0.25, 0.15, 0.1]).log()[None]
CHANCES = (torch.arange(10_000, dtype=torch.float64) + 0.5) / 10_000


def shares(sampling: Sampling) -> list[float]:
    drawn = draw(LOG_P.expand(len(CHANCES), -1), sampling, CHANCES).tolist()
    return [Counter(drawn)[token] / len(drawn) for token in range(4)]


def test_tokens_are_drawn_with_their_probabilities_and_limits_cut_the_unlikely() -> None:
    assert shares(Sampling()) == pytest.approx([0.5, 0.25, 0.15, 0.1], abs=1e-3)
    cold = torch.tensor([0.5, 0.25, 0.15, 0.1]).pow(2)
    assert shares(Sampling(temperature=0.5)) == pytest.approx((cold / cold.sum()).tolist(), abs=1e-3)
    assert shares(Sampling(top_k=2)) == pytest.approx([2 / 3, 1 / 3, 0, 0], abs=1e-3)
    assert shares(Sampling(top_k=1)) == shares(Sampling(top_p=0.01)) == [1, 0, 0, 0]
    assert shares(Sampling(top_p=0.5)) == [1, 0, 0, 0]
    assert shares(Sampling(top_p=0.51)) == pytest.approx([2 / 3, 1 / 3, 0, 0], abs=1e-3)
    assert shares(Sampling(top_k=3, top_p=0.8)) == pytest.approx([2 / 3, 1 / 3, 0, 0], abs=1e-3)  # of 0.9, 0.83 are 2


def test_of_tokens_that_are_alike_no_more_than_k_are_drawn() -> None:
    """In bf16 the best ones often are."""
    log_p = torch.tensor([[0.1, 0.3, 0.3, 0.3]]).log().expand(2500, -1)
    for k in (1, 2, 3):
        drawn = set(draw(log_p, Sampling(top_k=k), CHANCES[::4][:2500]).tolist())
        assert drawn == set(range(1, k + 1))


def test_samples_take_no_more_memory_than_a_beam() -> None:
    segments = [Segment(ids=[4] * 9, key=i) for i in range(64)]
    rows: list[int] = []

    class Counting(TableModel):
        def start(self, src: Tensor) -> TableState:
            rows.append(len(src))
            return super().start(src)

    for n_best in (1, 4, 40):
        rows.clear()
        decode = DecodeConfig(beam_size=4, batch_tokens=320, max_extra_tokens=2)
        batched_search.search_all(Counting(1), segments, settings_of(decode, n_best, sampling=Sampling()), CPU)
        assert sum(rows) == 64 * n_best
        assert 10 * max(rows) <= max(320, 10 * n_best)  # a sentence at least


def test_what_is_forbidden_is_never_drawn_by_the_extreme_numbers_either() -> None:
    log_p = torch.tensor([[-torch.inf, 0.3, -torch.inf, 0.7, -torch.inf]]).log_softmax(-1)
    for number, token in ((0.0, 1), ((2**52 - 1) / 2**52, 3)):
        assert draw(log_p, Sampling(), torch.tensor([number], dtype=torch.float64)).item() == token


def test_chances_are_uniform_fixed_and_of_their_arguments_alone() -> None:
    numbers = [chance(3, (line, 0), 0, n) for line in range(100) for n in range(100)]
    assert 0 <= min(numbers) < 0.001
    assert 0.999 < max(numbers) < 1
    assert sum(numbers) / len(numbers) == pytest.approx(0.5, abs=0.01)
    assert len(set(numbers)) == len(numbers)
    assert chance(3, (7, 0), 0, 1) == 0.5454289116129818  # so on every machine


@pytest.mark.parametrize("n_best", [1, 3])
def test_a_sentence_is_sampled_alike_in_any_batch_and_differently_by_seed_and_line(n_best: int) -> None:
    model = TableModel(1, sharpness=1.0)
    sources = [[4, 5], [6], [5, 5, 5], [4], [6, 1, 4, 5]]
    keys = [(10 + i, 0) for i in range(5)]

    def search(which: list[int], batch_tokens: int, seed: int = 1) -> list[list[list[int]]]:
        config = DecodeConfig(max_extra_tokens=10, batch_tokens=batch_tokens)
        segments = [Segment(ids=sources[i], key=keys[i]) for i in which]
        settings = settings_of(config, n_best, sampling=Sampling(seed=seed))
        found = batched_search.search_all(model, segments, settings, CPU).complete()
        return [[h.ids for h in group] for group in found]

    want = [search([i], 4096)[0] for i in range(5)]
    for batch_tokens in (1, 7, 100):
        assert search([3, 1, 4, 0, 2], batch_tokens) == [want[i] for i in (3, 1, 4, 0, 2)]
    assert search(list(range(5)), 100, seed=2) != want
    assert all(len(group) == n_best for group in want)
    same = search_all(model, [[4, 5]] * 8, DecodeConfig(), CPU, sampling=Sampling())  # the index is the line
    assert len({tuple(group[0].ids) for group in same}) > 4


def test_scores_are_the_models_and_the_best_sample_comes_first() -> None:
    model, src = TableModel(2, sharpness=1.0), [4, 5, EOS]
    batch = SearchBatch(src=torch.tensor([src]), max_lens=[9])
    found = sample_search(model, batch, settings_of(n_best=6, sampling=Sampling(temperature=2.0, seed=5)), ["a"])[0]
    assert [h.score for h in found] == sorted((h.score for h in found), reverse=True)
    assert [h.log_prob for h in found] == pytest.approx([model.log_prob(src, h.ids) for h in found])
    sharp = sample_search(model, batch, settings_of(sampling=Sampling(top_k=1)), ["a"])[0][0]
    config = DecodeConfig(beam_size=1, max_extra_tokens=7, length_penalty=0.0)
    assert sharp.ids == search_all(model, [src[:-1]], config, CPU)[0][0].ids


def test_rules_hold_in_sampling_too() -> None:
    spelling = Spelling([b"", b"?", b"", b"", b" a", b" b", b" c"])
    rules = [Rules(spelling, prefix=b" b a", exclude=(b"c",), no_repeat_ngram=3)] * 50
    found = search_all(TableModel(3, 0.5), [[4, 5]] * 50, DecodeConfig(), CPU, rules=rules, sampling=Sampling())
    assert len({tuple(group[0].ids) for group in found}) > 10
    for group in found:
        assert group[0].ids[:2] == [5, 4]
        assert 6 not in group[0].ids
    with pytest.raises(DecodeError, match="n_best must be 1 or more, got 0"):
        search_all(TableModel(3), [[4]], DecodeConfig(), CPU, n_best=0, sampling=Sampling())
    with pytest.raises(DecodeError, match="cannot place words"):
        search_all(
            TableModel(3), [[4]], DecodeConfig(), CPU, rules=[Rules(spelling, include=((4,),))], sampling=Sampling()
        )


@pytest.mark.parametrize(
    "wrong", [{"temperature": 0}, {"top_k": -1}, {"top_p": 0}, {"top_p": 1.5}, {"temperature": float("nan")}]
)
def test_impossible_settings_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ConfigError, match=next(iter(wrong))):
        Sampling(**wrong).checked()  # type: ignore[arg-type]
