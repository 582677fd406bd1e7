"""Given translations: what a search says of what it found, scoring says too, in any batch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from dragoman.config import DecodeConfig, ModelConfig
from dragoman.decoding.cancellation import Cancellation
from dragoman.decoding.ensemble import Ensemble
from dragoman.decoding.request import Sampling, Segment
from dragoman.decoding.scoring import Read, attend_all, read_all
from dragoman.errors import DecodeError
from dragoman.model.transformer import Transformer
from searching import search_all

CPU = torch.device("cpu")
GEN = torch.Generator().manual_seed(1)
SOURCES = [torch.randint(4, 23, (n,), generator=GEN).tolist() for n in (1, 9, 3, 3, 7, 2, 11, 5)]


def model(seed: int = 0, **changes: Any) -> Transformer:
    torch.manual_seed(seed)
    return Transformer(ModelConfig(preset="tiny", src_vocab_size=23, tgt_vocab_size=23, dropout=0.0, **changes)).eval()


def read(scored: Any, pairs: list[tuple[list[int], list[int]]], batch_tokens: int = 4096, **how: Any) -> list[Read]:
    found = read_all(scored, pairs, CPU, batch_tokens, **how)
    return [one for one in found if one is not None]


@pytest.mark.parametrize("changes", [{}, {"positions": "rotary"}, {"norm": "pre", "positions": "learned"}])
def test_the_score_of_a_found_translation_is_the_searchs(changes: dict[str, str]) -> None:
    for scored in (model(**changes), Ensemble([model(1, **changes), model(2, **changes)])):
        for how in ({}, {"sampling": Sampling(seed=3)}):
            found = search_all(scored, SOURCES, DecodeConfig(max_extra_tokens=8), CPU, n_best=3, **how)
            pairs = [(src, h.ids) for src, group in zip(SOURCES, found, strict=True) for h in group]
            want = [h.log_prob for group in found for h in group]
            assert [one.log_prob for one in read(scored, pairs)] == pytest.approx(want, abs=2e-5)


def test_scores_do_not_depend_on_the_batch_and_come_in_order() -> None:
    scored = model()
    pairs = [(src, list(reversed(src))[: n % 4]) for n, src in enumerate(SOURCES)]  # some are empty
    alone = [read(scored, [pair])[0] for pair in pairs]
    assert [len(one.log_probs) for one in alone] == [len(tgt) + 1 for _, tgt in pairs]
    for batch_tokens in (1, 13, 40, 4096):
        together = read(scored, pairs, batch_tokens, attention=True)
        for one, want, (src, tgt) in zip(together, alone, pairs, strict=True):
            assert one.log_probs == pytest.approx(want.log_probs, abs=1e-5)
            assert one.attention is not None
            assert one.attention.shape == (len(tgt) + 1, len(src) + 1)
            np.testing.assert_allclose(one.attention.sum(1), 1, rtol=1e-5)


def test_others_pass_between_two_batches_and_what_is_cancelled_is_not_read() -> None:
    scored, pairs = model(), [(src, list(reversed(src))) for src in SOURCES]
    passed: list[int] = []
    cancellations = [Cancellation() for _ in SOURCES]

    def pause() -> None:
        passed.append(len(passed))
        if len(passed) == 3:  # the first two batches have the longest pairs
            for cancellation in cancellations[::2]:
                cancellation.cancel()

    searches = [
        Segment(ids=src, cancellation=cancellation, between_steps=pause)
        for src, cancellation in zip(SOURCES, cancellations, strict=True)
    ]
    results = read_all(scored, pairs, CPU, 1, searches=searches)
    assert len(passed) == len(pairs)
    by_length = sorted(range(len(pairs)), key=lambda i: (-len(SOURCES[i]), i))
    assert [i for i, result in enumerate(results) if result is None] == sorted(i for i in by_length[2:] if not i % 2)
    plain = read_all(scored, pairs, CPU, 1)
    assert [a for a, b in zip(results, plain, strict=True) if a is not None] == [
        b for a, b in zip(results, plain, strict=True) if a is not None
    ]


def test_the_attention_is_the_mean_over_heads_of_the_last_layer_but_one() -> None:
    for n_layers, layer in ((1, 0), (2, 0), (4, 2)):
        scored = model(n_decoder_layers=n_layers)
        weights: dict[str, torch.Tensor] = {}
        src, tgt = [5, 6, 7], [8, 9]
        scored(torch.tensor([[*src, 3]]), torch.tensor([[2, *tgt]]), record=weights.__setitem__)
        seen = read(scored, [(src, tgt)], attention=True)[0].attention
        assert seen is not None
        torch.testing.assert_close(torch.from_numpy(seen), weights[f"decoder.layers.{layer}.cross_attn"][0].mean(0))
    members = [model(1), model(2, n_decoder_layers=2)]
    each = [read(member, [(src, tgt)], attention=True)[0].attention for member in members]
    both = read(Ensemble(members), [(src, tgt)], attention=True)[0].attention
    assert both is not None
    np.testing.assert_allclose(both, np.stack([one for one in each if one is not None]).mean(0), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("batch_tokens", [1, 30, 4096])
def test_attention_alone_is_that_of_reading(batch_tokens: int, monkeypatch: pytest.MonkeyPatch) -> None:
    pairs = [(src, list(reversed(src))[: n % 4]) for n, src in enumerate(SOURCES)]
    for scored in (model(), model(positions="rotary", norm="pre"), Ensemble([model(1), model(2)])):
        want = [one.attention for one in read(scored, pairs, batch_tokens, attention=True)]
        with monkeypatch.context() as patch:
            if isinstance(scored, Transformer):
                patch.setattr(scored, "generator", None)  # which is not needed
            found = attend_all(scored, pairs, CPU, batch_tokens)
        for mine, its in zip(found, want, strict=True):
            np.testing.assert_array_equal(mine, its)  # type: ignore[arg-type]


def test_damaged_weights_are_an_error() -> None:
    scored = model()
    with torch.no_grad():
        scored.generator.weight[5] = float("nan")
    with pytest.raises(DecodeError, match="not finite"):
        read(scored, [([4], [5])])
    with torch.no_grad():
        scored.encoder.layers[0].norm1.weight[5] = float("nan")
    with pytest.raises(DecodeError, match="not finite"):
        attend_all(scored, [([4], [5])], CPU)
