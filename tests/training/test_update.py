"""One update: accumulation, clipping, what is not finite; averages of weights."""

from __future__ import annotations

import copy
import dataclasses
from pathlib import Path
from typing import Any

import pytest
import torch

from dragoman.config import ModelConfig, TrainConfig
from dragoman.data.batching import Batch, collate
from dragoman.data.tokenizer import EOS_ID, UNK_ID
from dragoman.model.transformer import Transformer
from dragoman.model.weights import save_weights, untied
from dragoman.training import update
from dragoman.training.averaging import average_checkpoints, start_ema, update_ema
from dragoman.training.update import train_step

PAIRS = [([4, 5, 6], [7, 8]), ([9], [10, 11, 12, 4, 5, 6, 7]), ([4, 4], [5]), ([6, 7, 8, 9, 10], [11, 12, 4])]


def a_model(**changes: Any) -> Transformer:
    torch.manual_seed(3)
    sizes = dict(d_model=10, d_ff=14, n_heads=2, n_encoder_layers=2, n_decoder_layers=1, dropout=0.0)
    return Transformer(ModelConfig(**{**sizes, "src_vocab_size": 13, "tgt_vocab_size": 13, **changes})).double()


def batch_of(*which: int) -> Batch:
    return collate([PAIRS[i][0] for i in which], [PAIRS[i][1] for i in which], which)


def one_update(model: Transformer, batches: list[Batch], rate: float = 1.0, **settings: Any) -> Any:
    """Plain gradient descent, so that the weights move by the gradient itself."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    return train_step(model, batches, optimizer, rate, TrainConfig(precision="fp32", **settings), 0)


def moved(before: Transformer, after: Transformer) -> torch.Tensor:
    pairs = zip(before.parameters(), after.parameters(), strict=True)
    return torch.cat([(old - new).detach().flatten() for old, new in pairs])


def test_accumulated_micro_batches_equal_one_batch() -> None:
    whole, parts = a_model(), a_model()
    one = one_update(whole, [batch_of(0, 1, 2, 3)])
    many = one_update(parts, [batch_of(1), batch_of(2, 0), batch_of(3)])  # 8, 5 and 4 target tokens
    assert many.tokens == one.tokens == 17
    assert [many.smoothed, many.plain, many.grad_norm] == pytest.approx(
        [one.smoothed, one.plain, one.grad_norm], rel=1e-12
    )
    assert moved(a_model(), whole).norm() > 0.1
    torch.testing.assert_close(moved(a_model(), parts), moved(a_model(), whole), rtol=1e-12, atol=1e-12)


def test_the_loss_is_divided_by_the_tokens_and_padding_does_not_count() -> None:
    once, twice = a_model(), a_model()
    one_update(once, [batch_of(0, 1)])
    one_update(twice, [batch_of(0, 1), batch_of(0, 1)])  # twice the tokens, twice the loss
    torch.testing.assert_close(moved(a_model(), twice), moved(a_model(), once), rtol=1e-12, atol=1e-12)


def test_r_drop_asks_two_passes_to_agree() -> None:
    plain, doubled = a_model(), a_model()
    one = one_update(plain, [batch_of(0, 1, 2)])
    two = one_update(doubled, [batch_of(0, 1, 2)], r_drop=5.0)  # without dropout both passes are one
    assert [two.smoothed, two.plain, two.tokens] == pytest.approx([one.smoothed, one.plain, one.tokens], rel=1e-12)
    torch.testing.assert_close(moved(a_model(), doubled), moved(a_model(), plain), rtol=1e-12, atol=1e-12)
    losses = [one_update(a_model(dropout=0.3), [batch_of(0, 1, 2)], r_drop=alpha).smoothed for alpha in (1e-9, 5.0)]
    assert losses[1] > losses[0]  # the same masks, and the disagreement is paid for


def test_dropped_tokens_are_the_share_asked_for_and_no_special_one() -> None:
    torch.manual_seed(1)
    ids = torch.randint(0, 100, (300, 100))
    dropped = update.drop_tokens(ids, 0.2)
    special = ids <= EOS_ID
    assert torch.equal(dropped[special], ids[special])
    changed = (dropped != ids)[~special]
    assert changed.double().mean().item() == pytest.approx(0.2, abs=0.01)
    assert set(dropped[dropped != ids].tolist()) == {UNK_ID}


def test_where_all_is_dropped_the_model_reads_unknown_tokens_and_owes_every_one() -> None:
    dropped, told = a_model(), a_model()
    batch = batch_of(0, 1, 2)
    blank = {
        side: getattr(batch, side).masked_fill(getattr(batch, side) > EOS_ID, UNK_ID) for side in ("src", "tgt_in")
    }
    got = one_update(dropped, [batch], token_dropout=1 - 1e-12)
    want = one_update(told, [dataclasses.replace(batch, **blank)])
    assert [got.smoothed, got.plain, got.tokens] == [want.smoothed, want.plain, want.tokens]
    assert torch.equal(moved(a_model(), dropped), moved(a_model(), told))


def test_of_a_source_tags_stay_where_all_else_is_dropped() -> None:
    dropped, told = a_model(), a_model()
    is_tag = torch.arange(13) == 4  # which begins the first pair, and is an ordinary subword in targets
    batch = batch_of(0, 1)
    src = torch.where((batch.src > EOS_ID) & (batch.src != 4), UNK_ID, batch.src)
    tgt_in = batch.tgt_in.masked_fill(batch.tgt_in > EOS_ID, UNK_ID)
    assert (src == 4).any()
    assert (batch.tgt_in == 4).any()
    optimizer = torch.optim.SGD(dropped.parameters(), lr=0.0)
    config = TrainConfig(precision="fp32", token_dropout=1 - 1e-12)
    got = train_step(dropped, [batch], optimizer, 1.0, config, 0, is_tag=is_tag)
    want = one_update(told, [dataclasses.replace(batch, src=src, tgt_in=tgt_in)])
    assert [got.smoothed, got.plain, got.tokens] == [want.smoothed, want.plain, want.tokens]


def test_clipping_bounds_the_norm_of_the_whole_gradient_and_keeps_its_direction() -> None:
    free, clipped, roomy = a_model(), a_model(), a_model()
    norm = one_update(free, [batch_of(0, 1)]).grad_norm
    assert one_update(clipped, [batch_of(0, 1)], clip_norm=norm / 7).grad_norm == pytest.approx(norm)  # told unclipped
    one_update(roomy, [batch_of(0, 1)], clip_norm=7 * norm)
    full = moved(a_model(), free)
    assert full.norm().item() == pytest.approx(norm)
    torch.testing.assert_close(moved(a_model(), clipped), full / 7, rtol=1e-5, atol=0)
    torch.testing.assert_close(moved(a_model(), roomy), full, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("where", ["loss", "gradient"])
@pytest.mark.parametrize("what", [float("nan"), float("inf")])
def test_what_is_not_finite_reaches_neither_weights_nor_optimiser(
    where: str, what: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = a_model()
    optimizer = torch.optim.Adam(model.parameters(), fused=True)
    config = TrainConfig(precision="fp32", clip_norm=1.0)
    assert train_step(model, [batch_of(0, 1)], optimizer, 1e-2, config, 0).finite
    before, moments = copy.deepcopy(model.state_dict()), copy.deepcopy(optimizer.state_dict()["state"])
    features = update.features
    if where == "loss":
        monkeypatch.setattr(update, "features", lambda *args: features(*args) * what)
    else:
        hook = model.encoder.layers[0].feed_forward.w_1.weight.register_hook(lambda gradient: gradient * what)
    assert not train_step(model, [batch_of(2), batch_of(3)], optimizer, 1e-2, config, 0).finite
    torch.testing.assert_close(model.state_dict(), before, rtol=0, atol=0)
    torch.testing.assert_close(optimizer.state_dict()["state"], moments, rtol=0, atol=0)
    assert all(parameter.grad is None for parameter in model.parameters())
    if where == "loss":
        monkeypatch.setattr(update, "features", features)
    else:
        hook.remove()
    assert train_step(model, [batch_of(2), batch_of(3)], optimizer, 1e-2, config, 0).finite
    assert all(tensor.isfinite().all() for tensor in model.state_dict().values())


def test_the_padding_row_is_never_trained_where_it_is_no_output() -> None:
    model = a_model(share_embeddings="none")
    for _ in range(3):
        one_update(model, [batch_of(0, 1, 2, 3)])
    assert not model.src_embed.weight[0].any()
    assert not model.tgt_embed.weight[0].any()
    assert model.tgt_embed.weight[5].any()


def test_the_moving_average_follows_its_formula() -> None:
    model = a_model()
    ema = start_ema(model)
    want = {name: tensor.clone() for name, tensor in untied(model).items()}
    for step in range(1, 40):
        with torch.no_grad():
            for parameter in model.parameters():
                parameter += 0.1 * step
        update_ema(ema, model, 0.7, step)
        decay = min(0.7, (1 + step) / (10 + step))  # 2/11, 3/12 ... and from step 20 on 0.7
        want = {name: decay * want[name] + (1 - decay) * tensor for name, tensor in untied(model).items()}
    torch.testing.assert_close(ema, want, rtol=1e-12, atol=1e-12)


def test_averaged_checkpoints_are_the_mean_in_any_order(tmp_path: Path) -> None:
    folders, weights = [], []
    for i in range(3):
        gen = torch.Generator().manual_seed(i)
        weights.append({"a.weight": torch.randn(5, 7, generator=gen), "b.bias": torch.randn(3, generator=gen)})
        folders.append(tmp_path / f"step_{i}")
        folders[-1].mkdir()
        save_weights(folders[-1] / "model.safetensors", weights[-1])
    mean = {name: torch.stack([w[name] for w in weights]).double().mean(0).float() for name in weights[0]}
    torch.testing.assert_close(average_checkpoints(folders), mean, rtol=1e-7, atol=1e-7)
    backwards = average_checkpoints(reversed(folders))
    assert all(torch.equal(tensor, backwards[name]) for name, tensor in average_checkpoints(folders).items())
