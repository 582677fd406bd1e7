"""One update: accumulation, clipping, what is not finite; averages of weights; counted operations."""

from __future__ import annotations

import copy
import dataclasses
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from dragoman import device
from dragoman.config import ModelConfig, TrainConfig
from dragoman.data.batching import Batch, collate
from dragoman.data.tokenizer import EOS_ID, UNK_ID
from dragoman.device import resolve_device, resolve_precision
from dragoman.errors import ConfigError
from dragoman.model.transformer import Transformer
from dragoman.model.weights import save_weights, untied
from dragoman.training import update
from dragoman.training.averaging import average_checkpoints, start_ema, update_ema
from dragoman.training.flops import training_flops
from dragoman.training.log import duration, quantity
from dragoman.training.loss import label_smoothed_loss
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


@pytest.mark.parametrize(
    "variant",
    [
        {},
        {"activation": "swiglu", "share_embeddings": "none", "norm": "pre"},
        {"n_heads": 5, "d_k": 6, "d_v": 7, "n_encoder_layers": 3},
        {"n_encoder_layers": 0, "share_embeddings": "decoder"},
    ],
)
def test_counted_operations_are_those_that_torch_counts(variant: dict[str, Any]) -> None:
    model = a_model(**variant)
    rows, src_len, tgt_len = 3, 7, 5
    gen = torch.Generator().manual_seed(0)
    src, tgt = (torch.randint(4, 13, (rows, n), generator=gen) for n in (src_len, tgt_len))
    with FlopCounterMode(display=False) as counter:
        logits = model(src if model.config.n_encoder_layers else None, tgt)
        torch.autograd.backward(label_smoothed_loss(logits, tgt, 0, 0.1)[0])
    assert training_flops(model.config, rows, src_len, tgt_len) == counter.get_total_flops()


def test_an_unknown_or_absent_device_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert resolve_device("auto").type == resolve_device("cpu").type == "cpu"
    with pytest.raises(ConfigError, match="device = 'cuda', but torch sees no GPU"):
        resolve_device("cuda")
    with pytest.raises(ConfigError, match="device = 'gpu' is unknown: use auto, cpu or cuda"):
        resolve_device("gpu")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert [resolve_device(name).type for name in ("auto", "cuda", "cpu")] == ["cuda", "cuda", "cpu"]


@pytest.mark.parametrize(
    ("facts", "seconds_of_bf16", "auto"),
    [
        ({"avx512_bf16": True, "amx_bf16": True}, 0.1, "bf16"),
        ({"avx512_bf16": True}, 0.4, "bf16"),
        ({"avx512_bf16": True}, 0.9, "fp32"),  # not worth its rounding
        ({"avx512_bf16": True}, 1.7, "fp32"),  # Intel without AMX
        ({"avx2": True}, 0.1, "fp32"),  # not asked: it would be emulated
    ],
)
def test_precision_auto_takes_bf16_where_the_processor_knows_it_and_is_faster_in_it(
    facts: dict[str, bool], seconds_of_bf16: float, auto: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    seconds = {torch.bfloat16: seconds_of_bf16, torch.float32: 1.0}
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: facts)
    monkeypatch.setattr(device, "_seconds_of_a_product", seconds.__getitem__)
    device._processor_gains_from_bf16.cache_clear()
    try:
        found = [resolve_precision(name, torch.device("cpu")) for name in ("auto", "fp32", "bf16")]
    finally:
        device._processor_gains_from_bf16.cache_clear()
    assert found == [auto, "fp32", "bf16"]


@pytest.mark.parametrize("has_bf16", [True, False])
def test_bf16_that_is_asked_for_warns_once_where_the_processor_has_none(
    has_bf16: bool, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    facts = dict.fromkeys(("avx512_bw", "avx512_vl", "avx512_dq"), has_bf16)
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: facts)
    device._warn_of_emulated_bf16.cache_clear()
    try:
        assert {resolve_precision(name, torch.device("cpu")) for name in ("fp32", "bf16", "bf16")} == {"fp32", "bf16"}
    finally:
        device._warn_of_emulated_bf16.cache_clear()
    assert [record.message for record in caplog.records] == ([] if has_bf16 else [
        "precision = 'bf16', but this processor has no bf16: fp32 is many times as fast here"
    ])  # fmt: skip


def test_products_are_timed_in_either_precision() -> None:
    assert all(0 < device._seconds_of_a_product(dtype) < 60 for dtype in (torch.float32, torch.bfloat16))


def test_bf16_is_refused_where_the_gpu_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    cuda = torch.device("cuda")
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda including_emulation: False)
    assert resolve_precision("auto", cuda) == "fp32"
    with pytest.raises(ConfigError, match="this GPU has no bf16"):
        resolve_precision("bf16", cuda)


def test_durations_and_quantities_are_short() -> None:
    assert [duration(s) for s in (0, 59.6, 75, 3675)] == ["0:00", "1:00", "1:15", "1:01:15"]
    assert [quantity(x) for x in (7, 999.6, 1.5e15, 2e22)] == ["7", "1k", "1.5P", "20Z"]
