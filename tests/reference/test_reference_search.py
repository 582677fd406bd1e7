"""Greedy and beam search against enumeration of everything there is to find."""

import math
from itertools import product
from typing import Any

import numpy as np
import pytest

from dragoman import reference as ref

PAD, UNK, BOS, EOS, V = 0, 1, 2, 3, 7


def search(**changes: Any) -> ref.SearchSettings:
    return ref.SearchSettings(pad_id=PAD, bos_id=BOS, eos_id=EOS, unk_id=None, **changes)


WORDS = [UNK, 4, 5, 6]


class RandomModel:
    """Log-probabilities that depend on the whole prefix; remembers what it was asked."""

    def __init__(self, seed: int, sharpness: float = 2.0) -> None:
        self.seed, self.sharpness, self.asked = seed, sharpness, []

    def __call__(self, ids: list[int]) -> np.ndarray:
        self.asked.append(list(ids))
        rng = np.random.default_rng([self.seed, *ids])
        return ref.log_softmax(rng.normal(size=V) * self.sharpness)


def score_of(model, ids, alpha):
    total = sum(model(ids[:i])[token] for i, token in enumerate([*ids, EOS]))
    return total / ((5 + len(ids) + 1) / 6) ** alpha


def everything(model, max_len, alpha):
    """All sentences of at most ``max_len`` tokens, eos counted, best first."""
    sentences = [list(ids) for n in range(max_len) for ids in product(WORDS, repeat=n)]
    return sorted(((score_of(model, ids, alpha), ids) for ids in sentences), reverse=True)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("alpha", [0.0, 0.6, 1.5])
def test_a_beam_as_wide_as_the_language_finds_the_best_sentences(seed, alpha):
    want = everything(RandomModel(seed), 4, alpha)
    got = ref.beam_search(RandomModel(seed), 4, search(beam_size=4**3, alpha=alpha, n_best=5))
    assert [h.ids for h in got] == [ids for _, ids in want[:5]]
    assert [h.score for h in got] == pytest.approx([score for score, _ in want[:5]], rel=1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_every_score_is_that_of_its_sentence(seed):
    model = RandomModel(seed)
    for h in ref.beam_search(model, 9, search(beam_size=3, alpha=0.6, n_best=3)):
        assert h.score == pytest.approx(score_of(model, h.ids, 0.6), rel=1e-12)
    h = ref.greedy_search(model, 9, search(alpha=0.6))
    assert h.score == pytest.approx(score_of(model, h.ids, 0.6), rel=1e-12)


def beam_that_never_stops_early(model, max_len, beam_size, alpha):
    """The definition said a second time: go on to the end, then look who is best."""
    alive, finished = [(0.0, ())], []
    for n in range(1, max_len + 1):
        tokens = [EOS] if n == max_len else sorted([*WORDS, EOS])
        grown = [(score + model(list(ids))[t], (*ids, t)) for score, ids in alive for t in tokens]
        order = sorted(range(len(grown)), key=lambda i: (-grown[i][0], i))
        ended = [grown[i] for i in order[:beam_size] if grown[i][1][-1] == EOS]
        finished += [(score / ((5 + n) / 6) ** alpha, ids[:-1]) for score, ids in ended]
        alive = [grown[i] for i in order[: 2 * beam_size] if grown[i][1][-1] != EOS][:beam_size]
    return sorted(finished, key=lambda pair: -pair[0])


@pytest.mark.parametrize("alpha", [0.0, 0.6, 2.0])
@pytest.mark.parametrize("n_best", [1, 3])
def test_stopping_early_loses_nothing(alpha, n_best):
    asked, all_asked = 0, 0
    for seed in range(20):
        model, plain = RandomModel(seed), RandomModel(seed)
        got = ref.beam_search(model, 11, search(beam_size=3, alpha=alpha, n_best=n_best))
        want = beam_that_never_stops_early(plain, 11, 3, alpha)[:n_best]
        assert [tuple(h.ids) for h in got] == [ids for _, ids in want]
        assert [h.score for h in got] == pytest.approx([score for score, _ in want], rel=1e-12)
        asked, all_asked = asked + len(model.asked), all_asked + len(plain.asked)
    assert asked < all_asked / 2 if alpha == 0 else asked < all_asked


def test_a_beam_finds_what_greedy_misses():
    def model(ids: list[int]) -> np.ndarray:
        probs = np.full(V, 1e-9)
        if not ids:
            probs[4], probs[5] = 0.6, 0.4  # greedy takes 4, after which nothing is likely
        elif ids == [4]:
            probs[[EOS, 4, 5, 6]] = [0.26, 0.25, 0.25, 0.24]
        else:
            probs[EOS] = 1.0
        return np.log(probs)

    assert ref.greedy_search(model, 5, search()).ids == [4]
    assert ref.beam_search(model, 5, search(beam_size=2))[0].ids == [5]


def test_padding_and_bos_are_never_emitted_and_nothing_is_renormalised():
    log_probs = np.log(np.array([0.4, 0.05, 0.3, 0.1, 0.12, 0.02, 0.01]))
    greedy = ref.greedy_search(lambda ids: log_probs, 3, search(alpha=0.0))
    assert greedy.ids == [4, 4]
    assert greedy.score == pytest.approx(2 * math.log(0.12) + math.log(0.1))
    for h in ref.beam_search(lambda ids: log_probs, 3, search(beam_size=5, n_best=5)):
        assert not {PAD, BOS} & set(h.ids)


def test_unk_is_never_emitted_unless_it_may_be():
    log_probs = np.log(np.array([0.01, 0.6, 0.01, 0.1, 0.2, 0.05, 0.03]))
    for unk_id, ids in ((UNK, [4, 4]), (None, [UNK, UNK])):
        settings = search(alpha=0.0, beam_size=3, n_best=3)._replace(unk_id=unk_id)
        assert ref.greedy_search(lambda ids: log_probs, 3, settings).ids == ids
        found = ref.beam_search(lambda ids: log_probs, 3, settings)
        assert any(UNK in h.ids for h in found) == (unk_id is None)


@pytest.mark.parametrize("max_len", [1, 2, 5])
def test_at_max_len_a_sentence_must_end(max_len):
    log_probs = np.log(np.array([0.01, 0.01, 0.01, 0.01, 0.94, 0.01, 0.01]))  # would never end by itself
    greedy = ref.greedy_search(lambda ids: log_probs, max_len, search())
    assert greedy.ids == [4] * (max_len - 1)
    beam = ref.beam_search(lambda ids: log_probs, max_len, search(beam_size=3, n_best=3))
    assert all(len(h.ids) < max_len for h in beam)


def test_between_equals_the_lower_id_and_the_earlier_hypothesis_win():
    even = np.full(V, -math.log(V))
    assert ref.greedy_search(lambda ids: even, 3, search()).ids == [UNK, UNK]
    got = ref.beam_search(lambda ids: even, 2, search(beam_size=4, alpha=1.0, n_best=4))
    # the first step ranks 1, eos, 4, 5 | 6: eos is finished; 1, 4, 5, 6 go on and end at -2 log V / (7 / 6)
    assert [h.ids for h in got] == [[], [UNK], [4], [5]]


def test_a_longer_sentence_wins_where_the_penalty_says_so():
    def model(ids: list[int]) -> np.ndarray:
        probs = np.full(V, 1e-9)
        probs[[EOS, 4]] = [0.55, 0.45] if not ids else [0.99, 0.01]
        return np.log(probs)

    assert ref.beam_search(model, 6, search(beam_size=2, alpha=0.0))[0].ids == []
    assert ref.beam_search(model, 6, search(beam_size=2, alpha=2.5))[0].ids == [4]


def test_length_penalty_is_gnmt_s():
    assert ref.length_penalty(1, 0.6) == 1
    assert ref.length_penalty(7, 0.6) == pytest.approx(2**0.6)
    assert ref.length_penalty(7, 0.0) == 1
