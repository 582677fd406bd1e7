"""Phrases that must appear in a translation: they do, and the translation is the best of those."""

from __future__ import annotations

import random
import tracemalloc

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from table_model import EOS, TableModel, every_translation

from dragoman.config import DecodeConfig
from dragoman.decoding.beam_allocation import Progress, advance, only_next, progress_of, share_out
from dragoman.decoding.constraints import Rules, Spelling
from searching import beam_search, search_all

SPELLING = Spelling([b"", b"?", b"", b"", b" a", b" b", b" c"])
PHRASES = st.lists(st.lists(st.sampled_from([4, 5, 6]), min_size=1, max_size=3).map(tuple), min_size=1, max_size=4)


def holds(ids: list[int], phrase: tuple[int, ...]) -> bool:
    return any(tuple(ids[i : i + len(phrase)]) == phrase for i in range(len(ids)))


@pytest.mark.parametrize("phrases", [((5,),), ((4, 6),), ((5,), (6,)), ((4, 4),)])
@pytest.mark.parametrize("seed", range(4))
def test_a_wide_beam_finds_the_best_translation_that_has_the_phrases(
    phrases: tuple[tuple[int, ...], ...], seed: int
) -> None:
    model, src, max_len = TableModel(seed), [4, 6, EOS], 5
    found = beam_search(
        model, torch.tensor([src]), [max_len], beam_size=400, alpha=0.6, n_best=3,
        rules=[Rules(SPELLING, include=phrases)],
    )[0]  # fmt: skip
    every = every_translation(model, src, max_len, 0.6)
    want = [(score, ids) for score, ids in every if all(holds(ids, phrase) for phrase in phrases)][:3]
    assert [h.ids for h in found] == [ids for _, ids in want]
    assert [h.score for h in found] == pytest.approx([score for score, _ in want])


@given(PHRASES, st.integers(0, 200), st.sampled_from([1, 2, 4, 12]), st.integers(1, 3))
def test_the_phrases_stand_in_the_translation_however_unlikely_they_are(
    phrases: list[tuple[int, ...]], seed: int, beam_size: int, extra: int
) -> None:
    model = TableModel(seed, sharpness=6.0)
    config = DecodeConfig(beam_size=beam_size, max_extra_tokens=extra)
    rules = [Rules(SPELLING, include=tuple(phrases)), Rules(SPELLING)]
    found = search_all(model, [[4, 5], [6]], config, torch.device("cpu"), rules=rules)
    ids = found[0][0].ids
    assert not progress_of(ids, phrases).left
    assert all(holds(ids, phrase) for phrase in phrases)
    assert all(ids.count(token) >= sum(phrase.count(token) for phrase in phrases) for token in (4, 5, 6))
    assert found[0][0].log_prob == pytest.approx(model.log_prob([4, 5, EOS], ids))
    assert found[1] == search_all(model, [[6]], config, torch.device("cpu"))[0]  # its neighbour is as before


def test_a_phrase_that_the_model_likes_is_placed_where_it_likes_it() -> None:
    """Not at the end, where the force of the length limit would put it."""
    model = TableModel(5)
    free = search_all(model, [[4, 5, 6, 5, 4]], DecodeConfig(beam_size=10), torch.device("cpu"))[0][0]
    for token in set(free.ids):
        rules = [Rules(SPELLING, include=((token,),))]
        found = search_all(model, [[4, 5, 6, 5, 4]], DecodeConfig(beam_size=10), torch.device("cpu"), rules=rules)
        assert found[0][0].score >= free.score - 1e-9


def test_what_is_kept_of_long_hypotheses_is_small() -> None:
    """A search asks for each hypothesis with one id more; 16,000 tuples of 300 numbers took 200 MB."""
    tracemalloc.start()
    for beam in range(10):
        for n in range(1, 301):
            progress_of([1000 + (beam + 7 * i) % 50_000 for i in range(n)], ((5,),))
    size, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert size < 3000 * (4 * 150 + 1000)  # four bytes for each id, of which there are 150 on average


def test_progress_counts_switches_and_begins_again() -> None:
    phrases = ((4, 5), (4, 6, 6), (5,))
    assert progress_of([4], phrases) == Progress(phrases, (4,))
    assert progress_of([4], phrases).next == [5, 6]
    assert progress_of([4], phrases).needed == 5
    assert progress_of([4, 6], phrases).next == [6]
    assert progress_of([4, 5], phrases) == Progress(((4, 6, 6), (5,)), closed=(4, 5))
    assert progress_of([4, 6, 5], phrases) == Progress(((4, 5), (4, 6, 6)), closed=(5,))  # broken off; 5 is a phrase
    assert progress_of([4, 6, 1], phrases) == Progress(phrases)
    assert progress_of([4, 4, 4, 6], ((4, 4, 6),)).left == ()  # begun again in the middle of itself
    assert progress_of([5, 5], ((5,), (5,))).left == ()
    assert progress_of([1] * 5000 + [4, 5], ((4, 5),)).left == ()
    assert advance(Progress(((5,), (5,))), 5).left == ((5,),)


def advance_by_definition(progress: Progress, token: int) -> Progress:
    """Return the longest end of the ids that is a phrase or begins one, by comparing all with all."""
    left, ids = progress.left, (*progress.begun, token)
    for run in (ids[start:] for start in range(len(ids))):
        if run in left:
            first = left.index(run)
            return Progress((*left[:first], *left[first + 1 :]), closed=run)
        if any(phrase[: len(run)] == run for phrase in left):
            return Progress(left, run)
    return Progress(left)


def only_next_by_definition(progress: Progress, room: int) -> list[int]:
    if not progress.left or room - 2 >= sum(map(len, progress.left)):
        return []
    tokens = sorted({token for phrase in progress.left for token in phrase})
    return [token for token in tokens if advance_by_definition(progress, token).needed <= room - 2] or progress.next


def test_progress_is_what_comparing_all_beginnings_says() -> None:
    """Phrases of few different ids, which begin and end in parts of each other and of themselves."""
    chance = random.Random(3)
    for _ in range(2000):
        n_ids = chance.randint(1, 4)
        phrases = tuple(
            tuple(chance.randint(1, n_ids) for _ in range(chance.randint(1, 6))) for _ in range(chance.randint(1, 5))
        )
        progress, size = Progress(phrases), sum(map(len, phrases))
        for _ in range(chance.randint(1, 25)):
            room = chance.randint(0, size + 4)
            assert only_next(progress, room) == only_next_by_definition(progress, room), (progress, room)
            token = chance.randint(1, n_ids + 1)  # or an id of no phrase
            advanced = advance(progress, token)
            assert advanced == advance_by_definition(progress, token), (progress, token)
            progress = advanced


class Counted(int):
    """An id that counts how often ids are compared or looked up."""

    n = 0

    def __eq__(self, other: object) -> bool:
        Counted.n += 1
        return int(self) == other

    def __hash__(self) -> int:
        Counted.n += 1
        return int(self)


def test_an_id_takes_linear_time_in_the_phrase_that_it_breaks_off() -> None:
    """It took the square: a minute for a sentence with 200 ids to place."""

    def steps(n: int) -> int:
        progress = Progress((tuple(map(Counted, [4] * n + [5])),), tuple(map(Counted, [4] * n)))
        Counted.n = 0
        assert advance(progress, Counted(6)).begun == ()
        assert advance(progress, Counted(4)).begun == progress.begun
        assert only_next(progress, 2) == [5]
        return Counted.n

    assert 30 < steps(30) < steps(480) < 20 * steps(30)


def test_every_bank_keeps_a_hypothesis_and_the_end_waits() -> None:
    totals = torch.tensor([[-9.0] * 7, [-90.0] * 7, [-91.0] * 7, [-92.0] * 7], dtype=torch.float64)
    totals[:, EOS] = -torch.inf
    totals[0, 4] = -1.0
    chosen = share_out(totals, [[], [], [], []], ((5, 6), (6,)), EOS)
    banks = [progress_of([place % 7], ((5, 6), (6,))).needed for _, place in chosen]
    assert len(chosen) == 4
    assert set(banks) == {3, 2}
    ended = torch.full((2, 7), -torch.inf, dtype=torch.float64)
    ended[0, EOS], ended[1, 4] = -3.0, -4.0
    assert share_out(ended, [[5], [5]], ((5,),), EOS) == [(-3.0, EOS), (-4.0, 7 + 4)]
