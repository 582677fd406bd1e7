"""The baselines behind the interface of the Transformer: steps, padding, records, what they refuse."""

from typing import Any

import pytest
import torch
from baseline_models import SRC, TGT, VARIANTS, a_baseline
from torch import Tensor
from torch.nn import functional as F
from torch.utils.flop_counter import FlopCounterMode

from dragoman.config import ModelConfig
from dragoman.errors import ConfigError
from dragoman.model.baselines import cells
from dragoman.model.baselines.additive_attention import AdditiveAttention
from dragoman.model.baselines.cells import Recurrence
from dragoman.model.baselines.convolutional import GatedConvolution
from dragoman.model.baselines.recurrent import reversed_rows
from dragoman.model.build import EncoderDecoder, build
from dragoman.model.weights import shapes, untied
from dragoman.training.flops import training_flops
from dragoman.training.loss import label_smoothed_loss
from searching import beam_search

CLOSE = dict(rtol=0, atol=1e-12)

each_variant = pytest.mark.parametrize("variant", VARIANTS.values(), ids=list(VARIANTS))


def run(model: EncoderDecoder, state: Any, tokens: Tensor) -> tuple[Tensor, Any]:
    for t in range(tokens.size(1)):
        logits, state = model.step(state, tokens[:, t])
    return logits, state


@each_variant
@torch.no_grad()
def test_one_step_at_a_time_gives_what_the_whole_gives(variant: dict[str, Any]) -> None:
    model = a_baseline(**variant)
    whole, state = model(SRC, TGT), model.start(SRC)
    assert whole.shape == (3, 7, model.config.tgt_vocab_size)
    for t in range(7):
        logits, state = model.step(state, TGT[:, t])
        torch.testing.assert_close(logits, whole[:, t], **CLOSE)


@each_variant
@pytest.mark.parametrize("rows", [[2, 0, 0, 1, 2], [1], []], ids=["with repeats", "one left", "none left"])
@torch.no_grad()
def test_selected_rows_go_on_as_if_alone(variant: dict[str, Any], rows: list[int]) -> None:
    model, index = a_baseline(**variant), torch.tensor(rows, dtype=torch.int64)
    _, state = run(model, model.start(SRC), TGT[:, :3])
    logits, _ = run(model, state.select(index), TGT[index, 3:6].flip(1))
    prefix = torch.cat((TGT[index, :3], TGT[index, 3:6].flip(1)), dim=1)
    torch.testing.assert_close(
        logits, model(SRC, TGT)[:0, -1] if not rows else model(SRC[index], prefix)[:, -1], **CLOSE
    )


@each_variant
@torch.no_grad()
def test_padding_changes_nothing(variant: dict[str, Any]) -> None:
    model = a_baseline(**variant)
    together = model(SRC, TGT)
    for row, n in enumerate([5, 3, 2]):
        torch.testing.assert_close(together[row : row + 1], model(SRC[row : row + 1, :n], TGT[row : row + 1]), **CLOSE)
    torch.testing.assert_close(model(F.pad(SRC, (0, 4)), F.pad(TGT, (0, 2)))[:, :7], together, **CLOSE)


@each_variant
@torch.no_grad()
def test_half_precision_is_near(variant: dict[str, Any]) -> None:
    model = a_baseline(**variant).float()
    exact, state = model(SRC, TGT), model.start(SRC)
    near = dict(rtol=0, atol=0.03 * float(exact.abs().max()))
    with torch.autocast("cpu", torch.bfloat16):
        torch.testing.assert_close(model(SRC, TGT).float(), exact, **near)
        for t in range(7):
            logits, state = model.step(state, TGT[:, t])
            torch.testing.assert_close(logits.float(), exact[:, t], **near)


@each_variant
@torch.no_grad()
def test_a_later_token_changes_no_earlier_prediction_but_its_own(variant: dict[str, Any]) -> None:
    model, changed = a_baseline(**variant), TGT.clone()
    changed[:, 4] = 5
    one, other = model(SRC, TGT), model(SRC, changed)
    torch.testing.assert_close(one[:, :4], other[:, :4], **CLOSE)
    assert (one[:, 4:] - other[:, 4:]).abs().amax(dim=(0, 2))[0] > 1e-3


@each_variant
@torch.no_grad()
def test_every_source_token_counts(variant: dict[str, Any]) -> None:
    model = a_baseline(**variant)
    for place in range(5):
        changed = SRC[:1].clone()
        changed[0, place] = 12
        assert (model(changed, TGT[:1]) - model(SRC[:1], TGT[:1])).abs().amax() > 1e-4


@each_variant
@torch.no_grad()
def test_attention_is_recorded_under_its_module_path(variant: dict[str, Any]) -> None:
    model, weights = a_baseline(**variant), dict[str, Tensor]()
    model(SRC, TGT, record=weights.__setitem__)
    n_layers = model.config.n_decoder_layers if model.config.architecture == "conv" else 1
    assert list(weights) == [f"decoder.layers.{i}.cross_attn" for i in range(n_layers)]
    for name, found in weights.items():
        model.get_submodule(name)
        assert found.shape == (3, 1, 7, 5)
        torch.testing.assert_close(found.sum(-1), torch.ones(3, 1, 7, dtype=torch.float64))
        assert not found.masked_select((SRC == 0)[:, None, None]).any()


@each_variant
def test_every_parameter_is_trained(variant: dict[str, Any]) -> None:
    model = a_baseline(**variant).train()
    torch.autograd.backward(model(SRC, TGT).square().sum())
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.abs().sum() > 0, name


@each_variant
def test_shapes_are_known_without_memory(variant: dict[str, Any]) -> None:
    model = a_baseline(**variant)
    expected = shapes(model.config)
    assert all(tensor.is_meta for tensor in expected.values())
    assert {k: v.shape for k, v in expected.items()} == {k: v.shape for k, v in untied(model).items()}


@pytest.mark.parametrize("kind", ["lstm", "conv"])
def test_a_beam_of_one_row_finds_the_same_in_any_batch(kind: str) -> None:
    model = a_baseline(architecture=kind)
    together = beam_search(model, SRC, [9, 9, 9], beam_size=3, n_best=3)
    for row, n in enumerate([5, 3, 2]):
        alone = beam_search(model, SRC[row : row + 1, :n], [9], beam_size=3, n_best=3)[0]
        assert [one.ids for one in together[row]] == [one.ids for one in alone]


@each_variant
def test_counted_operations_are_those_that_torch_counts(
    variant: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """But for first states of zero, by which nothing is learned: torch leaves their gradients out."""
    monkeypatch.setattr(Recurrence, "forward", Recurrence.steps)  # torch does not look into the kernel
    model = a_baseline(**{**variant, "d_model": 32})
    src, tgt = SRC[:1].repeat(2, 8), TGT[:1, 1:].repeat(2, 6)
    src, tgt = (x[:, :19] for x in (src, tgt))
    with FlopCounterMode(display=False) as counter:
        torch.autograd.backward(label_smoothed_loss(model(src, tgt), tgt, 0, 0.1)[0])
    assert training_flops(model.config, 2, 19, 19) == pytest.approx(counter.get_total_flops(), rel=0.02)


# --- the parts --------------------------------------------------------------------------------------------------------


def test_rows_are_reversed_within_their_lengths() -> None:
    x = torch.tensor([[1, 2, 3, 4], [5, 6, 0, 0], [0, 0, 0, 0]])[..., None].float()
    lengths = torch.tensor([4, 2, 0])
    assert reversed_rows(x, lengths)[..., 0].tolist() == [[4, 3, 2, 1], [6, 5, 0, 0], [0, 0, 0, 0]]
    assert torch.equal(reversed_rows(reversed_rows(x, lengths), lengths), x)


@torch.no_grad()
def test_additive_attention_is_that_of_its_equation() -> None:
    torch.manual_seed(0)
    layer, query, memory = AdditiveAttention(3).double(), torch.randn(2, 3).double(), torch.randn(2, 5, 3).double()
    mask = torch.tensor([[True, True, False, True, True], [False] * 5])
    context, weights = layer(query, layer.keys(memory), memory, mask)
    w_q, w_k, b, v = layer.w_q.weight, layer.w_k.weight, layer.w_k.bias, layer.v.weight[0]
    scores = [(v * (w_q @ query[0] + w_k @ memory[0, s] + b).tanh()).sum().exp() for s in (0, 1, 3, 4)]
    want = torch.stack([scores[0], scores[1], torch.zeros(()), scores[2], scores[3]]) / sum(scores)
    torch.testing.assert_close(weights[0], want, **CLOSE)
    torch.testing.assert_close(context[0], want @ memory[0], **CLOSE)
    assert not weights[1].any()  # nothing may be seen: zeros, never NaN
    assert not context[1].any()


@torch.no_grad()
def test_a_gated_convolution_is_torchs_convolution_and_gate() -> None:
    config = ModelConfig(architecture="conv", d_model=6, kernel_width=5, src_vocab_size=9, tgt_vocab_size=9)
    layer, x = GatedConvolution(config), torch.randn(2, 11, 6)
    kernel = layer.w.weight.view(12, 5, 6).transpose(1, 2)  # (out, in, width)
    torch.testing.assert_close(layer(x), F.glu(F.conv1d(x.mT, kernel, layer.w.bias).mT, dim=-1))


# --- what is refused --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        (dict(architecture="lstm", norm="pre"), "norm = 'pre', but model.architecture = 'lstm' has no such setting"),
        (dict(architecture="conv", attention_dropout=0.1), "model.attention_dropout = 0.1, but model.architecture"),
        (dict(architecture="gru", positions="learned"), "model.positions = 'learned', but model.architecture = 'gru'"),
        (dict(architecture="conv", positions="rotary"), "needs self-attention, which 'conv' does not have"),
        (dict(architecture="rnn", n_encoder_layers=0), "'rnn' has encoder and decoder: give each 1 layer or more"),
        (dict(architecture="conv", kernel_width=4), "model.kernel_width must be odd, got 4"),
        (dict(architecture="lstm", d_model=13), "d_model = 13 is odd: half of 'lstm' reads each way"),
        (dict(kernel_width=5), "model.kernel_width is for model.architecture = 'conv', this is 'transformer'"),
        (dict(architecture="lstmm"), "architecture must be transformer, rnn, gru, lstm or conv, got 'lstmm'"),
    ],
)  # fmt: skip
def test_what_an_architecture_has_not_is_refused(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        ModelConfig(src_vocab_size=9, tgt_vocab_size=9, **fields)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_preset_gives_the_sizes_of_any_architecture() -> None:
    config = ModelConfig(preset="tiny", architecture="lstm", src_vocab_size=9, tgt_vocab_size=9)
    model = build(config)
    assert (len(model.encoder.layers), len(model.decoder.layers), config.d_model) == (4, 4, 128)
    assert cells.GATES.keys() == {"rnn", "gru", "lstm"}
