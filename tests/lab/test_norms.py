"""The experiment norms: its measures beside plain ones, and the stacks that it builds otherwise."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.nn import functional as F

from dragoman.lab import epsilon, norms, stacks
from dragoman.lab.experiment import Lab
from dragoman.lab.letters import reversals, small_model


def test_formulas_agree_on_ordinary_rows() -> None:
    x = torch.randn(3, 16, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    want = F.layer_norm(x, (16,), eps=1e-12)
    for formula in epsilon.FORMULAS.values():
        torch.testing.assert_close(formula(x, 1e-12), want, rtol=1e-6, atol=1e-6)


def test_an_epsilon_acts_where_its_formula_says() -> None:
    for spread in (1e-7, 1e-6, 1e-3, 1.0):
        beside, under = (epsilon.spread_of_output(name, spread, 1e-6) for name in list(epsilon.FORMULAS)[:2])
        assert beside == pytest.approx(spread / (spread + 1e-6), rel=1e-6)
        assert under == pytest.approx(spread / math.sqrt(spread**2 + 1e-6), rel=1e-6)


def test_rows_of_equal_numbers() -> None:
    written_out = epsilon.constant_row("(x − mean) / (sqrt(var) + eps)", 1e-6, torch.float32)
    assert written_out == {"output": "0", "gradient": "nan"}
    for formula, size in (("(x − mean) / (std + eps)", 3.5e6), ("(x − mean) / sqrt(var + eps)", 3.5e3)):
        assert float(epsilon.constant_row(formula, 1e-6, torch.float32)["gradient"]) == pytest.approx(size, rel=0.2)
    assert epsilon.constant_row("(x − mean) / sqrt(var + eps)", 1e-10, torch.float16)["output"] == "nan"
    for dtype in (torch.float32, torch.bfloat16, torch.float16):
        found = epsilon.constant_row("torch's layer_norm", 1e-5, dtype)
        assert found["output"] == "0"
        assert 0 < float(found["gradient"]) < 2e3


def test_only_batch_norm_depends_on_the_neighbours() -> None:
    found = epsilon.dependence_on_others(3, 10, torch.Generator().manual_seed(1))
    assert found["layer norm"] < 1e-6
    assert found["batch norm"] > 0.05


def test_the_batch_norm_of_tokens_is_that_of_all_tokens() -> None:
    x = torch.randn(3, 4, 8, generator=torch.Generator().manual_seed(1))
    tokens = x.reshape(12, 8)
    want = (x - tokens.mean(0)) / (tokens.var(0, unbiased=False) + 1e-5).sqrt()
    torch.testing.assert_close(stacks.TokenBatchNorm(8)(x), want)


def test_a_stack_without_residuals_forgets_what_a_sub_layer_leaves_out() -> None:
    pairs = reversals(2, 3, 3, 5, torch.Generator().manual_seed(1))
    for change, passes in ((lambda model: model, True), (stacks.without_residuals, False)):
        model = change(small_model(1, n_letters=5, n_encoder_layers=1, n_decoder_layers=1))
        with torch.no_grad():
            for layer in (model.encoder.layers[0], model.decoder.layers[0]):
                layer.feed_forward.w_2.weight.zero_()  # a sub-layer that says nothing
            logits = model(pairs.src, pairs.tgt_in)
        differ = bool((logits[0] - logits[1]).abs().max() > 1e-6)
        assert differ == passes


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_the_residual_path_has_all_of_a_sum_to_which_nothing_is_added(
    norm: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    shares = stacks.residual_shares(norm, 2, 1)
    assert len(shares) == 4
    assert all(0 < share < 1.5 and share != 1 for share in shares)

    def silenced(*args: Any, **options: Any) -> Any:
        model = small_model(*args, **options)
        for layer in model.encoder.layers:
            for matrix in (layer.self_attn.w_o, layer.feed_forward.w_2):
                torch.nn.init.zeros_(matrix.weight)
        return model

    monkeypatch.setattr(stacks, "small_model", silenced)
    assert stacks.residual_shares(norm, 2, 1) == pytest.approx([1.0] * 4)


def test_gradients_of_a_fresh_post_norm_stack_sit_on_top() -> None:
    post, pre = (stacks.gradient_by_layer(norm, 6, 1, d_model=32)["decoder"] for norm in ("post", "pre"))
    assert len(post) == len(pre) == 6
    assert post[-1] > 1.5 * post[0]
    assert max(pre) / min(pre) < 3


def test_a_quick_run_makes_all_but_the_claims_of_training(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    result = {"curve": [3.0, 2.0], "last": 2.0, "learned_at": None, "accuracy": 0.5}
    monkeypatch.setattr(norms, "train_variant", lambda *_: result)
    found = norms.run(Lab(tmp_path, quick=True, say=lambda _: None))
    assert {claim.holds for claim in found.verdict} >= {None, True, False}
    assert any(section.name == "trained" for section in found.sections)


def test_claims_of_training_follow_the_numbers() -> None:
    def trial(last: float, learned_at: int | None, accuracy: float) -> dict[str, object]:
        return {"last": last, "learned_at": learned_at, "accuracy": accuracy}

    trained = {name: [trial(0.1, 100, 0.99)] * 3 for name in stacks.VARIANTS}
    trained["post-norm, no warm-up"] = [trial(3.0, None, 0.05)] * 3
    trained["no residuals, 2 layers"] = [trial(0.3, 500, 0.9)] * 3
    said = [claim.holds for claim in stacks.trained_claims({"trained": trained, "steps": 600})]
    assert said == [True, True, False, None]  # five times is not two or three; equal accuracies decide nothing
    trained["no residuals, 2 layers"] = [trial(0.3, 250, 0.9)] * 3
    assert stacks.trained_claims({"trained": trained, "steps": 600})[2].holds is True


def test_a_variant_trains_and_says_when_it_had_learned() -> None:
    found = stacks.train_variant({"norm": "post", "layers": 1, "warmup": 5}, seed=1, steps=25)
    assert len(found["curve"]) == 3
    assert found["learned_at"] is None
    assert 0 <= found["accuracy"] < 1
