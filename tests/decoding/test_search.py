"""Search against exhaustive enumeration, on models that are tables."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch
from table_model import BOS, EOS, PAD, TableModel, every_translation

from dragoman.config import DecodeConfig, LengthPenalty, ModelConfig
from dragoman.decoding.batches import length_batches
from dragoman.decoding.request import penalised
from dragoman.decoding.search import ROOM
from dragoman.errors import ConfigError, DecodeError
from dragoman.model.transformer import Transformer
from searching import beam_search, greedy_search, search_all, settings_of


@pytest.mark.parametrize("alpha", [0.0, 0.6, 1.0])
@pytest.mark.parametrize("seed", range(5))
def test_a_wide_beam_finds_what_exhaustive_search_finds(seed: int, alpha: float) -> None:
    model, src, max_len = TableModel(seed), [4, 6, EOS], 4
    want = every_translation(model, src, max_len, alpha)[:5]
    found = beam_search(model, torch.tensor([src]), [max_len], beam_size=90, alpha=alpha, n_best=5)
    assert [h.ids for h in found[0]] == [ids for _, ids in want]
    assert [h.score for h in found[0]] == pytest.approx([score for score, _ in want])


def test_greedy_takes_the_likeliest_token_each_time() -> None:
    model = TableModel(3)
    found = greedy_search(model, torch.tensor([[4, 5, EOS]]), [9])[0]
    history = [0, BOS]
    for token in [*found.ids, *([EOS] if len(found.ids) < 8 else [])]:
        scores = model.table[(4 + 5 + EOS) % 11, history[-2], history[-1]].clone()
        scores[[PAD, BOS]] = -torch.inf
        assert token == scores.argmax().item()
        history.append(token)
    assert found.log_prob == pytest.approx(model.log_prob([4, 5, EOS], found.ids))


@pytest.mark.parametrize("beam_size", [1, 2, 4])
def test_the_last_token_allowed_is_eos_and_counts(beam_size: int) -> None:
    model = TableModel(0)
    model.table[..., EOS] = -30.0  # never likely
    config = DecodeConfig(beam_size=beam_size, max_extra_tokens=3)
    found = search_all(model, [[4, 5]], config, torch.device("cpu"))[0][0]
    assert len(found.ids) == 2 + 3 - 1
    assert found.log_prob == pytest.approx(model.log_prob([4, 5, EOS], found.ids))


def test_greedy_search_asks_for_memory_as_it_needs_it_and_not_for_the_whole_limit() -> None:
    model, src = TableModel(3), torch.tensor([[4, 5, EOS], [6, 6, EOS]])
    model.table[..., EOS] = -30.0  # never likely, so that it must grow
    for limit in (ROOM - 1, ROOM, ROOM + 1, 2 * ROOM + 1, 4 * ROOM + 3):
        found = greedy_search(model, src, [limit, 7])
        assert [len(one.ids) for one in found] == [limit - 1, 6]
        assert found[0].log_prob == pytest.approx(model.log_prob([4, 5, EOS], found[0].ids))
    model.table[..., EOS] = 30.0
    assert [one.ids for one in greedy_search(model, src, [10**12, 10**12])] == [[], []]


@pytest.mark.parametrize("beam_size", [1, 3])
def test_a_sentence_is_translated_alike_alone_and_in_any_batch(beam_size: int) -> None:
    torch.manual_seed(0)
    model = Transformer(ModelConfig(preset="tiny", src_vocab_size=23, tgt_vocab_size=23, dropout=0.0)).eval()
    gen = torch.Generator().manual_seed(1)
    sources = [torch.randint(4, 23, (n,), generator=gen).tolist() for n in (1, 9, 3, 3, 7, 2, 11, 5)]
    config = DecodeConfig(beam_size=beam_size, max_extra_tokens=10)
    alone = [search_all(model, [src], config, torch.device("cpu"))[0][0] for src in sources]
    for batch_tokens in (1, 13, 30, 1000):
        together = search_all(model, sources, replace(config, batch_tokens=batch_tokens), torch.device("cpu"))
        assert [h[0].ids for h in together] == [h.ids for h in alone]
        assert [h[0].score for h in together] == pytest.approx([h.score for h in alone], abs=1e-5)


def test_pad_and_bos_are_never_chosen() -> None:
    model = TableModel(1)
    model.table[..., [PAD, BOS]] = 50.0
    for found in (
        greedy_search(model, torch.tensor([[4, EOS]]), [6])[0],
        beam_search(model, torch.tensor([[4, EOS]]), [6])[0][0],
    ):
        assert not {PAD, BOS} & set(found.ids)


def test_stopping_early_changes_nothing() -> None:
    """A beam that may not stop early: n_best equal to the beam keeps it going at least as long."""
    for seed in range(20):
        model, src = TableModel(seed), torch.tensor([[4, 5, 6, EOS], [5, 1, EOS, PAD]])
        early = beam_search(model, src, [12, 12], beam_size=4, alpha=0.6, n_best=1)
        late = beam_search(model, src, [12, 12], beam_size=4, alpha=0.6, n_best=4)
        assert [h[0] for h in early] == [h[0] for h in late]


def test_of_equally_good_translations_the_one_found_first_is_given() -> None:
    model = TableModel(0)
    model.table[:] = -2000.0
    model.table[..., BOS, [EOS, 4]] = 0.0  # nothing, or one word and then nothing more: as likely
    model.table[..., 4, EOS] = 0.0
    (found,) = beam_search(model, torch.tensor([[4, EOS]]), [6], beam_size=3, alpha=0.0, n_best=2)
    assert [h.ids for h in found] == [[], [4]]
    assert found[0].score == found[1].score


def test_with_patience_a_search_takes_fewer_steps_and_finds_no_better() -> None:
    sooner, worse = 0, 0
    for seed in range(20):
        found, steps = [], []
        for patience in (None, 1.0):
            model = TableModel(seed)
            steps.append(count_steps(model))
            found.append(beam_search(model, torch.tensor([[4, 5, EOS]]), [30], alpha=1.0, patience=patience)[0][0])
        assert len(steps[1]) <= len(steps[0])
        assert found[1].score <= found[0].score
        sooner += len(steps[1]) < len(steps[0])
        worse += found[1].score < found[0].score
    assert sooner > 10 > worse


def count_steps(model: TableModel) -> list[None]:
    steps: list[None] = []
    step = model.step
    model.step = lambda *args: (steps.append(None), step(*args))[1]  # type: ignore[method-assign,func-returns-value]
    return steps


@pytest.mark.parametrize("beam_size", [1, 3])
def test_a_model_may_rule_tokens_out_by_minus_infinity(beam_size: int) -> None:
    model = TableModel(3)
    model.table[..., 5] = -torch.inf
    for limit in (3, 9):  # 3: at its limit a sentence is searched by the plain path
        for hypotheses in beam_search(model, torch.tensor([[4], [6]]), [limit, 9], beam_size, n_best=beam_size):
            for one in hypotheses:
                assert 5 not in one.ids
                assert math.isfinite(one.score)


def test_scores_that_are_not_finite_are_an_error() -> None:
    model = TableModel(1)
    model.table[:] = torch.nan
    with pytest.raises(DecodeError, match="not finite"):
        greedy_search(model, torch.tensor([[4, EOS]]), [6])


def test_more_hypotheses_than_beams_are_refused() -> None:
    with pytest.raises(DecodeError, match=r"n_best must be from 1 to beam_size = .*, got 3"):
        beam_search(TableModel(0), torch.tensor([[4, EOS]]), [6], beam_size=2, n_best=3)


def test_the_length_penalty_is_gnmts() -> None:
    assert LengthPenalty(0.6)(1) == 1.0
    assert LengthPenalty(0.6)(7) == pytest.approx(2**0.6)


def test_pad_bos_and_unk_are_the_ids_that_no_search_chooses() -> None:
    assert sorted(settings_of().never) == [0, 1, 2]
    assert sorted(settings_of(allow_unk=True).never) == [0, 2]


def test_batches_hold_similar_lengths_and_keep_the_budget() -> None:
    lengths = [5, 1, 9, 9, 2, 30, 4]
    batches = list(length_batches(lengths, 20))
    assert sorted(i for batch in batches for i in batch) == list(range(7))
    assert all(len(batch) == 1 or len(batch) * max(lengths[i] for i in batch) <= 20 for batch in batches)
    assert [5] in batches  # longer than the budget: alone, never dropped


def test_very_short_lengths_count_for_more_and_stay_in_order() -> None:
    lengths = [2, 16, 3, 2, 5, 17, 2]
    assert [*length_batches(lengths, 64, 16)] == [[5, 1, 4], [2, 0, 3, 6]]
    assert max(map(len, length_batches([2] * 500, 1024, 16))) == 64
    assert [*length_batches(lengths, 1, 16)] == [[5], [1], [4], [2], [0], [3], [6]]


def test_the_length_penalty_has_two_forms() -> None:
    assert penalised(-6.0, 7, LengthPenalty(0.5)) == pytest.approx(-6 / 2**0.5)
    assert penalised(-6.0, 9, LengthPenalty(0.5, "power")) == pytest.approx(-2.0)
    with pytest.raises(ConfigError, match=r"decode\.length_penalty_form = 'other' is unknown"):
        penalised(-6.0, 9, LengthPenalty(0.5, "other"))
