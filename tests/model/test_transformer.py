"""What the complete model may and may not see, what it records, and what it refuses."""

from typing import Any

import pytest
import torch
from torch import Tensor

from dragoman.errors import ConfigError
from dragoman.model.transformer import Transformer
from model_variants import CHOICES, Build

EXACT = dict(rtol=0, atol=1e-12)


def ids(*rows: list[int], pad_id: int = 0, width: int = 0) -> Tensor:
    """Rows of ids, padded at the end to the longest or to ``width``."""
    width = max(width, *map(len, rows))
    return torch.tensor([row + [pad_id] * (width - len(row)) for row in rows])


SRC = [[4, 7, 6, 9, 3], [8, 3]]
TGT = [[2, 6, 8, 9, 1, 11, 4], [2, 11, 10]]


def predict(model: Transformer, src: Tensor, tgt_in: Tensor) -> Tensor:
    with torch.no_grad():
        return model(src if model.config.n_encoder_layers else None, tgt_in)


def test_future_tokens_change_nothing_before_them(build: Build, variant: dict[str, Any]) -> None:
    model = build(**variant)
    src, tgt_in = torch.tensor([SRC[0]]), torch.tensor([TGT[0]])
    before = predict(model, src, tgt_in)
    for t in range(1, 7):
        changed = tgt_in.clone()
        changed[:, t:] = torch.tensor([12, 10, 7, 6, 9, 3])[: 7 - t]
        after = predict(model, src, changed)
        torch.testing.assert_close(after[:, :t], before[:, :t], **EXACT)
        assert ((after[:, t:] - before[:, t:]).abs().amax(-1) > 1e-3).all()  # and they do change what follows


def test_every_source_token_is_seen_by_every_target_position(build: Build, variant: dict[str, Any]) -> None:
    model = build(**variant)
    if not model.config.n_encoder_layers:
        pytest.skip("a language model has no source")
    src, tgt_in = torch.tensor([SRC[0]]), torch.tensor([TGT[0]])
    before = predict(model, src, tgt_in)
    for s in range(5):
        changed = src.clone()
        changed[:, s] = 10
        assert ((predict(model, changed, tgt_in) - before).abs().amax(-1) > 1e-6).all()


def test_every_source_position_sees_every_source_token(build: Build) -> None:
    model = build()
    src = torch.tensor([SRC[0]])
    with torch.no_grad():
        before = model.encode(src)
        for s in range(5):
            changed = src.clone()
            changed[:, s] = 10
            assert ((model.encode(changed) - before).abs().amax(-1) > 1e-6).all()


@pytest.mark.parametrize("positions", CHOICES["positions"])
def test_positions_go_with_the_model_to_another_device(build: Build, positions: str) -> None:
    model = build(positions=positions).to("meta")
    src, tgt_in = (torch.tensor([row], device="meta") for row in (SRC[0], TGT[0]))
    assert model(src, tgt_in).device.type == "meta"
    assert model.step(model.start(src), tgt_in[:, 0])[0].device.type == "meta"


@pytest.mark.parametrize(("src_width", "tgt_width"), [(11, 0), (0, 13), (11, 13)])
def test_more_padding_changes_nothing(build: Build, variant: dict[str, Any], src_width: int, tgt_width: int) -> None:
    model = build(**variant)
    pad_id = model.config.pad_id
    want = predict(model, ids(*SRC, pad_id=pad_id), ids(*TGT, pad_id=pad_id))
    src, tgt_in = ids(*SRC, pad_id=pad_id, width=src_width), ids(*TGT, pad_id=pad_id, width=tgt_width)
    got = predict(model, src, tgt_in)
    assert got.isfinite().all()
    for row, tgt in enumerate(TGT):
        torch.testing.assert_close(got[row, : len(tgt)], want[row, : len(tgt)], **EXACT)


def test_a_sentence_has_the_same_logits_alone_and_beside_a_longer_one(build: Build, variant: dict[str, Any]) -> None:
    model = build(**variant)
    pad_id = model.config.pad_id
    together = predict(model, ids(*SRC, pad_id=pad_id), ids(*TGT, pad_id=pad_id))
    for row in range(2):
        alone = predict(model, torch.tensor([SRC[row]]), torch.tensor([TGT[row]]))
        torch.testing.assert_close(together[row, : len(TGT[row])], alone[0], **EXACT)


def test_what_stands_in_the_padding_rows_changes_nothing(build: Build, variant: dict[str, Any]) -> None:
    model = build(**{**variant, "share_embeddings": "none"})
    pad_id = model.config.pad_id
    src, tgt_in = ids(*SRC, pad_id=pad_id), ids(*TGT, pad_id=pad_id)
    want = predict(model, src, tgt_in)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "embed" in name:
                parameter[pad_id] = 1000.0
    got = predict(model, src, tgt_in)
    for row, tgt in enumerate(TGT):
        torch.testing.assert_close(got[row, : len(tgt)], want[row, : len(tgt)], **EXACT)


def test_padding_in_front_changes_nothing_where_positions_are_relative(build: Build) -> None:
    model = build(positions="rotary")
    want = predict(model, torch.tensor([SRC[0]]), torch.tensor([TGT[0]]))
    got = predict(model, torch.tensor([[0, 0, 0, *SRC[0]]]), torch.tensor([[0, 0, *TGT[0]]]))
    torch.testing.assert_close(got[:, 2:], want, rtol=0, atol=1e-11)
    assert got.isfinite().all()  # the first two positions see nothing


def test_word_order_matters_through_positions_only(build: Build) -> None:
    """Without positions the encoder would give each token the same vector in any order."""
    one, other = torch.tensor([[4, 7, 6, 9, 3]]), torch.tensor([[9, 7, 6, 4, 3]])
    for positions in CHOICES["positions"]:
        memory = build(positions=positions).encode(one), build(positions=positions).encode(other)
        assert not torch.allclose(memory[0][0, 0], memory[1][0, 3])
    model = build(positions="learned")
    with torch.no_grad():
        model.src_positions.weight.zero_()
    torch.testing.assert_close(model.encode(one)[0, 0], model.encode(other)[0, 3], **EXACT)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16], ids=str)
def test_a_source_of_padding_alone_gives_finite_logits_and_gradients(build: Build, dtype: torch.dtype) -> None:
    model = build(dtype=dtype)
    logits = model(ids([4, 7, 3], []), ids([2, 6, 8], [0, 2]))  # and a target that begins with padding
    assert logits.dtype == dtype
    logits.float().log_softmax(-1).sum().backward()
    assert logits.isfinite().all()
    assert all(p.grad.isfinite().all() for p in model.parameters())


def test_forward_is_encode_then_decode(build: Build, variant: dict[str, Any]) -> None:
    model = build(**variant)
    src, tgt_in = ids(*SRC, pad_id=model.config.pad_id), ids(*TGT, pad_id=model.config.pad_id)
    if model.config.n_encoder_layers:
        mask = (src != model.config.pad_id)[:, None, None, :]
        if not model.config.src_eos:
            mask = mask & (src != 3)[:, None, None, :]
        memory = model.encode(src)
        assert memory.shape == (2, 5, 12)
        got = model.decode(tgt_in, memory, mask)
        assert not torch.allclose(model.decode(tgt_in, memory), got)  # no mask: padding is seen
    else:
        got = model.decode(tgt_in)
    assert torch.equal(got, predict(model, src, tgt_in))
    features = model.features(src if model.config.n_encoder_layers else None, tgt_in)
    assert torch.equal(model.generator(features), got)


def test_the_recorder_is_called_once_for_each_attention_by_module_path(build: Build, variant: dict[str, Any]) -> None:
    model = build(**variant)
    pad_id = model.config.pad_id
    src, tgt_in = ids(*SRC, pad_id=pad_id), ids(*TGT, pad_id=pad_id)
    calls: list[tuple[str, Tensor]] = []
    source = src if model.config.n_encoder_layers else None
    recorded = model(source, tgt_in, record=lambda name, weights: calls.append((name, weights)))
    assert torch.equal(recorded, model(source, tgt_in))  # watching changes nothing

    lengths = {"encoder.self_attn": (5, 5), "decoder.self_attn": (7, 7), "decoder.cross_attn": (7, 5)}
    attentions = {name for name, module in model.named_modules() if name.endswith("_attn")}
    assert len(calls) == len(attentions)
    assert {name for name, _ in calls} == attentions
    for name, weights in calls:
        stack, _, _, attention = name.split(".")
        looks_back = (stack, attention) == ("decoder", "self_attn")
        keys = tgt_in if looks_back else src
        assert weights.shape == (2, 3, *lengths[f"{stack}.{attention}"])
        torch.testing.assert_close(weights.sum(-1), torch.ones_like(weights[..., 0]))
        assert (weights.movedim(3, 1)[keys == pad_id] == 0).all()
        assert (weights.triu(1) == 0).all() == looks_back


def test_encode_decode_and_step_record_too(build: Build) -> None:
    model = build()
    src = torch.tensor([SRC[0], SRC[0]])
    calls: list[tuple[str, tuple[int, ...]]] = []

    def record(name: str, weights: Tensor) -> None:
        calls.append((name, tuple(weights.shape)))

    memory = model.encode(src, record=record)
    assert calls == [(f"encoder.layers.{i}.self_attn", (2, 3, 5, 5)) for i in range(2)]
    calls.clear()
    model.decode(torch.tensor([[2, 4, 7]] * 2), memory, record=record)
    by_decode = [
        (f"decoder.layers.{i}.{name}", shape)
        for i in range(2)
        for name, shape in (("self_attn", (2, 3, 3, 3)), ("cross_attn", (2, 3, 3, 5)))
    ]
    assert calls == by_decode
    state = model.start(src)
    for length in range(1, 4):
        calls.clear()
        _, state = model.step(state, torch.tensor([2, 2]), record=record)
        assert calls == [(name, (2, 3, 1, 5 if "cross" in name else length)) for name, _ in by_decode]


def test_texts_longer_than_learned_positions_are_refused(build: Build) -> None:
    model = build(positions="learned", max_len=7)
    fits, longer = torch.full((1, 7), 4), torch.full((1, 8), 4)
    assert model(fits, fits).shape == (1, 7, 13)
    with pytest.raises(ConfigError, match=r"8 tokens .* model\.max_len = 7"):
        model(longer, fits)
    with pytest.raises(ConfigError, match=r"8 tokens .* model\.max_len = 7"):
        model(fits, longer)
    state = model.start(fits)
    for _ in range(7):
        _, state = model.step(state, torch.tensor([4]))
    with pytest.raises(ConfigError, match=r"8 tokens .* model\.max_len = 7"):
        model.step(state, torch.tensor([4]))


@pytest.mark.parametrize("positions", ["sinusoidal", "rotary"])
def test_computed_positions_grow_beyond_max_len(build: Build, positions: str) -> None:
    model = build(positions=positions, max_len=7)
    longer = torch.full((1, 23), 4)
    assert model(longer, longer).isfinite().all()


def test_each_kind_of_model_says_what_it_cannot_do(build: Build) -> None:
    some = torch.tensor([[2, 4, 3]])
    translator, encoder, language_model = build(), build(n_decoder_layers=0), build(n_encoder_layers=0)
    memory = translator.encode(some)
    assert encoder.encode(some).shape == (1, 3, 12)
    for call in (lambda: translator.decode(some), lambda: translator(None, some)):
        with pytest.raises(ConfigError, match="needs its memory"):
            call()
    with pytest.raises(ConfigError, match="a language model has none"):
        language_model.decode(some, memory)
    for call in (lambda: language_model.encode(some), lambda: language_model(some, some)):
        with pytest.raises(ConfigError, match=r"no encoder .* call decode"):
            call()
    for call in (lambda: encoder.decode(some, memory), lambda: encoder(some, some), lambda: encoder.start(some)):
        with pytest.raises(ConfigError, match=r"no decoder .* call encode"):
            call()
