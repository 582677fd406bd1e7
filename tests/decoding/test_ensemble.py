"""Several models as one: the mean of their probabilities, and nothing else."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from dragoman.config import DecodeConfig, ModelConfig
from dragoman.decoding.ensemble import Ensemble, mean_probability
from dragoman.model.transformer import Transformer
from searching import beam_search, greedy_search, search_all

SRC = torch.tensor([[5, 9, 7, 3], [8, 3, 0, 0]])


def model(seed: int, **changes: object) -> Transformer:
    torch.manual_seed(seed)
    config = ModelConfig(preset="tiny", src_vocab_size=23, tgt_vocab_size=23, dropout=0.0, **changes)
    return Transformer(config).eval()


@torch.no_grad()
def test_each_step_is_the_mean_of_the_members_probabilities() -> None:
    members = [model(1), model(2), model(3, n_decoder_layers=2, d_model=64)]
    tgt_in = torch.tensor([[2, 4, 5, 6], [2, 7, 8, 9]])
    want = torch.stack([member(SRC, tgt_in).softmax(-1) for member in members]).mean(0)
    ensemble = Ensemble(members)
    torch.testing.assert_close(ensemble(SRC, tgt_in).exp(), want)
    state = ensemble.start(SRC)
    for n in range(4):
        logits, state = ensemble.step(state, tgt_in[:, n])
        torch.testing.assert_close(logits.exp(), want[:, n])
    order = torch.tensor([1, 1, 0])
    logits, _ = ensemble.step(state.select(order), torch.tensor([4, 4, 4]))
    torch.testing.assert_close(logits[0], logits[1])


def test_an_ensemble_of_one_model_and_itself_translates_as_it_does() -> None:
    one = model(1)
    assert greedy_search(Ensemble([one, one]), SRC, [9, 9])[0].ids == greedy_search(one, SRC, [9, 9])[0].ids
    found = beam_search(Ensemble([one, one, one]), SRC, [9, 9])
    want = beam_search(one, SRC, [9, 9])
    assert [h[0].ids for h in found] == [h[0].ids for h in want]
    assert [h[0].score for h in found] == pytest.approx([h[0].score for h in want], abs=1e-5)


def test_an_ensemble_does_not_depend_on_the_batch() -> None:
    ensemble = Ensemble([model(1), model(2)])
    gen = torch.Generator().manual_seed(1)
    sources = [torch.randint(4, 23, (n,), generator=gen).tolist() for n in (1, 9, 3, 7, 2)]
    config = DecodeConfig(max_extra_tokens=8)
    alone = [search_all(ensemble, [src], config, torch.device("cpu"))[0][0] for src in sources]
    together = search_all(ensemble, sources, config, torch.device("cpu"))
    assert [h[0].ids for h in together] == [h.ids for h in alone]
    assert [h[0].score for h in together] == pytest.approx([h.score for h in alone], abs=1e-5)


def test_the_mean_is_of_probabilities_and_not_of_logits() -> None:
    logits = [torch.tensor([0.0, 10.0]), torch.tensor([0.0, -10.0])]
    torch.testing.assert_close(mean_probability(logits).exp(), torch.tensor([0.5, 0.5]))
    low: list[Tensor] = [each.bfloat16() for each in logits]
    assert mean_probability(low).dtype == torch.float32
