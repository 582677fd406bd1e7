"""The experiments positions and masks, and the task of letters that some experiments train on."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from dragoman.data.tokenizer import BOS_ID, EOS_ID, PAD_ID
from dragoman.lab import hiding, letters, masks, positions, sinusoids
from dragoman.lab.experiment import Lab
from dragoman.model.masks import causal_mask
from dragoman.reference import masked_softmax, sinusoidal_positions


def test_the_task_is_reversal() -> None:
    pairs = letters.reversals(50, 3, 7, 5, torch.Generator().manual_seed(1))
    lengths = set()
    for src, tgt_in, tgt_out in zip(*pairs, strict=True):
        said = [int(i) for i in src if i >= letters.FIRST]
        lengths.add(len(said))
        padding = [PAD_ID] * (7 - len(said))
        assert src.tolist() == [*said, EOS_ID, *padding]
        assert tgt_in.tolist() == [BOS_ID, *said[::-1], *padding]
        assert tgt_out.tolist() == [*said[::-1], EOS_ID, *padding]
    assert lengths == {3, 4, 5, 6, 7}


def test_a_small_model_learns_it() -> None:
    model = letters.small_model(1, n_letters=4, d_model=32, d_ff=32, n_encoder_layers=1, n_decoder_layers=1)
    test = letters.reversals(50, 2, 4, 4, torch.Generator().manual_seed(9))
    before = letters.accuracy(model, test)
    losses = letters.learn(model, letters.endless(32, 2, 4, 4), 150, letters.warm_cosine(150, 1e-2, 20))
    assert losses[-1] < 0.3 * losses[0]
    assert letters.accuracy(model, test) > max(0.85, before)


def test_learning_stops_where_the_loss_is_not_finite() -> None:
    model = letters.small_model(1, n_letters=4, d_model=8, n_heads=1, d_ff=8, n_encoder_layers=1, n_decoder_layers=1)
    with torch.no_grad():
        model.generator.weight.fill_(float("inf"))
    assert len(letters.learn(model, letters.endless(4, 2, 3, 4), 5, lambda step: 1e-3)) == 1


def test_the_closest_positions_are_those_of_the_matrix() -> None:
    for d_model in (2, 6, 16):
        table = sinusoidal_positions(300, d_model)
        distances = np.linalg.norm(table[:, None] - table[None], axis=2) + 9 * np.eye(300)
        found = sinusoids.closest(d_model, 300)
        assert found["distance"] == pytest.approx(distances.min(), abs=1e-6)


def test_rows_are_compared_to_the_bit() -> None:
    table = torch.tensor([[1.0, 2.0], [1.0, 2.0], [1.0, 2.0 + 2**-12]])
    assert sinusoids.distinct_rows(table) == 2
    assert sinusoids.distinct_rows(table.bfloat16()) == 1


def test_a_shift_is_linear_and_another_table_has_none() -> None:
    table = sinusoidal_positions(80, 32)
    assert sinusoids.shift_error(table, 7) < 1e-12
    assert sinusoids.shift_error(table**3, 7) > 0.1


def test_low_channels_are_the_fast_ones() -> None:
    change = sinusoids.mean_change(sinusoidal_positions(1000, 64))
    assert change.shape == (32,)
    assert (np.diff(change) < 0).all()
    assert sinusoids.wavelengths(64)[0] == pytest.approx(2 * np.pi)
    zeros = np.diff(np.sign(sinusoidal_positions(1000, 64)[:, 8])).nonzero()[0]
    assert 2 * 1000 / len(zeros) == pytest.approx(sinusoids.wavelengths(64)[8], rel=0.05)  # two in each wave


def test_only_rotary_scores_depend_on_the_offset_alone() -> None:
    moved = sinusoids.moved_scores(5, 50, np.random.default_rng(3))
    assert np.ptp(moved["rotary"]) < 1e-12
    assert np.ptp(moved["sinusoidal"]) > 0.1


def test_the_positions_experiment_says_which_end_is_fast(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        positions,
        "longer_sentences",
        lambda kind, *rest: {"loss": 0.0, "accuracy": [1.0, 1.0, 0.5 * (kind == "rotary")]},
    )
    found = positions.run(Lab(tmp_path, quick=True))
    said = {claim.text.split(",")[0]: claim.holds for claim in found.verdict}
    assert said["Low channels vary fast and high ones slowly"] is True
    assert said["Low channels vary slowly and high ones fast"] is False
    assert said["Every position has a row of its own"] is True


def test_masks_leak_or_do_not() -> None:
    n = 6
    future = torch.ones(n, n).triu(1).bool()
    leak = {name: masks.leaks(make(n), 2, n)[future] for name, make in masks.MASKS.items()}
    assert leak["causal"].max() == 0
    assert all(leak[name].max() > 1e-3 for name in masks.MASKS if name != "causal")


def test_conventions_translate_and_mixing_them_up_shows() -> None:
    keep = causal_mask(5)[0, 0]
    assert hiding.round_trips(keep)
    readings = hiding.mix_up_conventions(keep)
    assert all(hiding.outcome(readings[name][name]) == "right" for name in hiding.CONVENTIONS)
    assert hiding.outcome(readings["true = may attend"]["true = hidden"]) == "nan"
    assert hiding.outcome(readings["true = may attend"]["0 = keep, −inf = hide"]) == "silent"  # True is added as 1


def test_attention_may_be_misplaced_where_nothing_is_hidden() -> None:
    """All scores at −1e9 give equal weights: no key is hidden, and yet the weights are not those of the scores."""
    readings = hiding.mix_up_conventions(torch.ones(5, 5, dtype=torch.bool))
    reading = readings["true = hidden"]["1 = keep, 0 = hide"]
    assert reading.on_hidden == 0
    assert hiding.outcome(reading) == "silent"
    padded = hiding.mix_up_conventions((torch.arange(5) < 4).expand(5, 5))["true = may attend"]["true = hidden"]
    assert padded == (pytest.approx(1), pytest.approx(1))  # all attention on the padding


def test_ours_is_right_in_every_precision_and_others_are_not() -> None:
    for rows in ("ordinary", "sees nothing"):
        assert {hiding.hidden_weight("ours", dtype, rows) for dtype in hiding.DTYPES} == {"right"}
    assert hiding.hidden_weight("fill −1e9", torch.float16, "ordinary") == "refused"
    assert hiding.hidden_weight("fill −inf", torch.float32, "sees nothing") == "nan"
    assert hiding.hidden_weight("fill −1e9", torch.float32, "sees nothing") == "leaks"


def test_the_scores_that_ours_is_given_are_those_of_the_others() -> None:
    scores, keep = torch.randn(4, 4, generator=torch.Generator().manual_seed(0)), torch.ones(4, 4).tril().bool()
    expected = masked_softmax(scores.double().numpy(), keep.numpy())
    np.testing.assert_allclose(hiding.WAYS["ours"](scores, keep).numpy(), expected, atol=1e-6)


def test_the_masks_experiment_runs(tmp_path: Path) -> None:
    found = masks.run(Lab(tmp_path, quick=True))
    said = {claim.text.split(",")[0]: claim.holds for claim in found.verdict}
    assert said["With the causal mask no output depends on a later input"] is True
    assert said["−1e9 can be filled in at half precision"] is False
    assert said["A mask given to code of another convention fails loudly"] is False
