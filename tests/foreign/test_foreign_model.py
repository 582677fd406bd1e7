"""The model, its loss and its learning rate beside those of others, with the same weights."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from dragoman.config import ModelConfig, TrainConfig
from dragoman.model.transformer import Transformer
from dragoman.training.loss import label_smoothed_loss
from dragoman.training.schedule import learning_rate
from model_variants import fill

Suite = Callable[[str, int], Any]

D, HEADS, D_FF, LAYERS, V_SRC, V_TGT = 22, 2, 31, 2, 29, 37
SRC = torch.tensor([[5, 12, 7, 28, 3], [9, 3, 0, 0, 0], [11, 4, 3, 0, 0]])
TGT_IN = torch.tensor([[2, 4, 8, 4, 11, 6, 1], [2, 12, 5, 0, 0, 0, 0], [2, 27, 17, 13, 19, 0, 0]])
IS_REAL = TGT_IN != 0


def ours(norm: str, activation: str, norm_eps: float) -> Transformer:
    """A small model of random numbers, in float64, with nothing shared."""
    sizes = dict(src_vocab_size=V_SRC, tgt_vocab_size=V_TGT, d_model=D, n_heads=HEADS, d_ff=D_FF, dropout=0.0)
    layers = dict(n_encoder_layers=LAYERS, n_decoder_layers=LAYERS, share_embeddings="none", generator_bias=True)
    config = ModelConfig(norm=norm, activation=activation, norm_eps=norm_eps, **sizes, **layers)
    return fill(Transformer(config).double(), seed=1, spread=1 / 3)


def placed(table: Tensor, ids: Tensor) -> Tensor:
    """Embeddings times sqrt(d_model), plus the paper's sinusoids."""
    place, channel = torch.arange(ids.size(1)).double()[:, None], torch.arange(0, D, 2).double()
    angles = place * 10000.0 ** (-channel / D)
    sinusoids = torch.stack((angles.sin(), angles.cos()), -1).flatten(1)  # interleaved
    return table[ids] * D**0.5 + sinusoids


# --- PyTorch ----------------------------------------------------------------------------------------------------------


def with_our_weights(model: Transformer, norm: str, activation: str) -> tuple[nn.Transformer, dict[str, list[str]]]:
    """``torch.nn.Transformer`` with the same weights, and for each of its parameters the names of ours in it."""
    theirs = nn.Transformer(
        D, HEADS, LAYERS, LAYERS, D_FF, 0.0, activation, batch_first=True, norm_first=norm == "pre"
    ).double()  # fmt: skip
    if norm == "post":  # torch puts one more norm after its post-norm stacks, which the paper has not
        theirs.encoder.norm = theirs.decoder.norm = None
    names = {}
    for name, parameter in theirs.named_parameters():
        own = name.replace("multihead_attn", "cross_attn").replace("out_proj", "w_o")
        own = own.replace("linear", "feed_forward.w_")
        names[name] = [own]
        if "in_proj_" in name:  # three matrices in one
            names[name] = [own.replace("in_proj_", f"{letter}.") for letter in ("w_q", "w_k", "w_v")]
        with torch.no_grad():
            parameter.copy_(torch.cat([model.get_parameter(one) for one in names[name]]))
    return theirs, names


@pytest.mark.filterwarnings("ignore:enable_nested_tensor")
@pytest.mark.parametrize("is_training", [True, False], ids=["train", "eval"])
@pytest.mark.parametrize("activation", ["relu", "gelu"])
@pytest.mark.parametrize("norm", ["post", "pre"])
def test_torch_nn_transformer(suite: Suite, norm: str, activation: str, is_training: bool) -> None:
    """Features, and the gradient of each parameter, with padding on both sides."""
    model = ours(norm, activation, 1e-5).train(is_training)
    theirs, names = with_our_weights(model, norm, activation)
    theirs.train(is_training)
    is_padding = SRC == 0  # torch's masks say what may not be attended to
    expected = theirs(
        placed(model.src_embed.weight.detach(), SRC), placed(model.tgt_embed.weight.detach(), TGT_IN),
        tgt_mask=torch.ones(TGT_IN.size(1), TGT_IN.size(1), dtype=torch.bool).triu(1),
        src_key_padding_mask=is_padding, memory_key_padding_mask=is_padding, tgt_key_padding_mask=~IS_REAL,
    )[IS_REAL] @ model.generator.weight.detach().T + model.generator.bias.detach()  # fmt: skip
    logits = model(SRC, TGT_IN)[IS_REAL]
    values = suite("torch-transformer", 1 + len(names))
    values.near("logits", float((logits - expected).detach().abs().max()), 0.0, 1e-12)
    d_logits = torch.randn(logits.shape, dtype=torch.float64, generator=torch.Generator().manual_seed(2))
    logits.backward(d_logits)
    expected.backward(d_logits)
    for name, own in names.items():
        gradient = torch.cat([model.get_parameter(one).grad for one in own])
        difference = (gradient - theirs.get_parameter(name).grad).norm() / gradient.norm()
        values.near(f"gradient of {name}", float(difference), 0.0, 1e-10)


# --- the Annotated Transformer ----------------------------------------------------------------------------------------

RATES = {  # d_model, warm-up: rates at these steps
    (512, 4000): [1.74692811e-07, 3.49385621e-07, 1.74692811e-05, 0.000174692811, 0.00069859655, 0.000698771243,
                  0.000698683913, 0.000494105884, 0.000441941738, 0.0003125],
    (512, 8000): [6.17632356e-08, 1.23526471e-07, 6.17632356e-06, 6.17632356e-05, 0.000246991179, 0.000247052942,
                  0.000247114705, 0.000494105884, 0.000441941738, 0.0003125],
    (256, 4000): [2.47052942e-07, 4.94105884e-07, 2.47052942e-05, 0.000247052942, 0.000987964716, 0.000988211769,
                  0.000988088265, 0.000698771243, 0.000625, 0.000441941738],
}  # fmt: skip
STEPS = (1, 2, 100, 1000, 3999, 4000, 4001, 8000, 10_000, 20_000)


def test_the_rates_of_the_annotated_transformer(suite: Suite) -> None:
    values = suite("annotated-rate", 30)
    for (d_model, warmup), rates in RATES.items():
        config = TrainConfig(schedule="noam", warmup_steps=warmup)
        for step, rate in zip(STEPS, rates, strict=True):
            values.near((d_model, warmup, step), learning_rate(step, config, d_model) / rate, 1.0, 1e-8)


def test_the_rates_of_opennmt_and_sockeye(suite: Suite) -> None:
    values = suite("rates", 30)
    for step in range(1, 11):
        noam = learning_rate(step, TrainConfig(schedule="noam", warmup_steps=4), 64)
        values.near(("OpenNMT noam", step), noam, 64**-0.5 * min(step**-0.5, step * 4**-1.5), 1e-12)
    for warmup in (1, 20):
        for step in range(1, 11):  # base rate 1; ours is named by its peak, warmup ** -0.5
            config = TrainConfig(schedule="inverse_sqrt", warmup_steps=warmup, lr=warmup**-0.5)
            expected = min(step**-0.5, step * warmup**-1.5)
            values.near(("Sockeye inv-sqrt-decay", warmup, step), learning_rate(step, config, 64), expected, 1e-12)


class Annotated:
    """The Annotated Transformer's computation, written again: pre-norm, ReLU, a norm after each stack."""

    def __init__(self, model: Transformer, norm: Callable[[Tensor, Tensor, Tensor], Tensor]) -> None:
        self.weights, self.norm = dict(model.state_dict()), norm

    def linear(self, x: Tensor, name: str) -> Tensor:
        return x @ self.weights[f"{name}.weight"].T + self.weights[f"{name}.bias"]

    def normed(self, x: Tensor, name: str) -> Tensor:
        return self.norm(x, self.weights[f"{name}.weight"], self.weights[f"{name}.bias"])

    def attend(self, x: Tensor, memory: Tensor, mask: Tensor, name: str) -> Tensor:
        def heads(y: Tensor, letter: str) -> Tensor:
            return self.linear(y, f"{name}.w_{letter}").unflatten(-1, (HEADS, D // HEADS)).transpose(1, 2)

        scores = heads(x, "q") @ heads(memory, "k").transpose(-2, -1) / math.sqrt(D // HEADS)
        weights = scores.masked_fill(~mask, -1e9).softmax(-1)  # (B, H, Q, K)
        return self.linear((weights @ heads(memory, "v")).transpose(1, 2).flatten(2), f"{name}.w_o")

    def stack(self, x: Tensor, mask: Tensor, side: str, memory: Tensor | None, src_mask: Tensor) -> Tensor:
        for i in range(LAYERS):
            layer = f"{side}.layers.{i}"
            y = self.normed(x, f"{layer}.norm1")
            x = x + self.attend(y, y, mask, f"{layer}.self_attn")
            if memory is not None:
                x = x + self.attend(self.normed(x, f"{layer}.norm2"), memory, src_mask, f"{layer}.cross_attn")
            y = self.normed(x, f"{layer}.norm{2 if memory is None else 3}")
            x = x + self.linear(self.linear(y, f"{layer}.feed_forward.w_1").relu(), f"{layer}.feed_forward.w_2")
        return self.normed(x, f"{side}.norm")

    def __call__(self, src: Tensor, tgt_in: Tensor) -> Tensor:
        src_mask = (src != 0)[:, None, None, :]
        tgt_mask = (tgt_in != 0)[:, None, None, :] & torch.ones(tgt_in.size(1), tgt_in.size(1)).tril().bool()
        memory = self.stack(placed(self.weights["src_embed.weight"], src), src_mask, "encoder", None, src_mask)
        x = self.stack(placed(self.weights["tgt_embed.weight"], tgt_in), tgt_mask, "decoder", memory, src_mask)
        return self.linear(x, "generator").log_softmax(-1)


def as_annotated(x: Tensor, scale: Tensor, shift: Tensor) -> Tensor:
    """Divide by the deviation of a sample (n - 1), with epsilon outside of the root."""
    return scale * (x - x.mean(-1, keepdim=True)) / (x.std(-1, keepdim=True) + 1e-6) + shift


def as_in_the_paper(x: Tensor, scale: Tensor, shift: Tensor) -> Tensor:
    """Divide by the deviation of all features (n), with epsilon inside of the root."""
    return nn.functional.layer_norm(x, (D,), scale, shift, 1e-6)


OTHER_NORM = (
    "its layer norm divides by the deviation of a sample (n - 1) and adds epsilon outside of the root; with the norm "
    "of the paper that is cited for it, the model is the same"
)


@torch.no_grad()
def test_the_model_of_the_annotated_transformer(suite: Suite) -> None:
    model = ours("pre", "relu", 1e-6)
    found = model(SRC, TGT_IN).log_softmax(-1)[IS_REAL]
    values = suite("annotated-model", 2 * len(found))
    with_ours, with_theirs = (Annotated(model, norm)(SRC, TGT_IN)[IS_REAL] for norm in (as_in_the_paper, as_annotated))
    for place, (own, same, other) in enumerate(zip(found, with_ours, with_theirs, strict=True)):
        values.near(f"position {place}, the paper's norm", float((own - same).abs().max()), 0.0, 1e-10)
        values.differs(f"position {place}, its own norm", round(float((own - other).abs().max()), 3), 0.0, OTHER_NORM)


# --- label smoothing --------------------------------------------------------------------------------------------------

E = 0.1
PROBABILITIES = [  # of seven symbols at each position, as in fairseq's test, whose specials are other ones
    [0.05, 0.05, 0.1, 0.05, 0.3, 0.4, 0.05],
    [0.05, 0.10, 0.2, 0.05, 0.2, 0.3, 0.10],
    [0.05, 0.15, 0.3, 0.05, 0.1, 0.2, 0.15],
]
PAD = 1
LONG, SHORT = [4, 4, 2], [4, 2, PAD]


def smoothed(targets: list[list[int]], smoothing: float) -> tuple[float, float]:
    """Our two losses of fairseq's example: the smoothed, and the plain one."""
    logits = torch.tensor(PROBABILITIES, dtype=torch.float64).log()[None].expand(len(targets), -1, -1)
    loss, plain = label_smoothed_loss(logits, torch.tensor(targets), PAD, smoothing)
    return float(loss), float(plain)


def cross_entropy(confidence: float, share: float, nobody: tuple[int, ...] = ()) -> float:
    """Of both targets, where the right symbol has ``confidence`` and each other one, but those, ``share``."""
    total = 0.0
    for targets in (LONG, SHORT):
        for row, target in zip(PROBABILITIES, targets, strict=True):
            if target != PAD:
                shares = {i: share for i in range(len(row)) if i not in nobody} | {target: confidence}
                total -= sum(part * math.log(row[i]) for i, part in shares.items())
    return total


def test_label_smoothing(suite: Suite) -> None:
    values, n = suite("smoothing", 11), 7
    loss, plain = smoothed([LONG, SHORT], E)
    log_p = torch.tensor(PROBABILITIES, dtype=torch.float64).log()
    theirs = nn.CrossEntropyLoss(label_smoothing=E, ignore_index=PAD, reduction="sum")
    values.near("PyTorch", loss, float(theirs(log_p.repeat(2, 1), torch.tensor(LONG + SHORT))), 1e-12)
    values.near("PyTorch, by its definition", loss, cross_entropy(1 - E + E / n, E / n), 1e-12)
    # what fairseq's own tests want of any definition
    values.near("fairseq: plain", plain, cross_entropy(1.0, 0.0), 1e-9)
    values.near("fairseq: padding adds nothing", loss, smoothed([LONG], E)[0] + smoothed([SHORT], E)[0], 1e-9)
    values.near("fairseq: no smoothing", smoothed([LONG, SHORT], 0.0)[0], plain, 1e-9)
    # other definitions of it
    because = (
        "{} gives the right symbol 1 - e, and e to the {}; ours and PyTorch's give each symbol e / V, as "
        "the paper that the method is from does. It matters for 7 symbols, and not for 37,000"
    )
    expected = cross_entropy(1 - E, E / (n - 1))
    values.differs("tensor2tensor", round(loss, 5), round(expected, 5), because.format("tensor2tensor", "V - 1 others"))
    values.differs("fairseq", round(loss, 5), round(expected, 5), because.format("fairseq", "V - 1 others"))
    expected = cross_entropy(1 - E, E / (n - 2), nobody=(PAD,))
    values.differs("Annotated Transformer", round(loss, 5), round(expected, 5),
                   because.format("the Annotated Transformer", "V - 2 others, of which pad is none"))  # fmt: skip
    # JoeyNMT's test: five symbols, of which 0 is padding
    logits = torch.tensor([0.1, 0.1, 0.6, 0.1, 0.1]).log().expand(3, 2, 5)
    targets = torch.tensor([[2, 1], [2, 0], [1, 0]])
    values.near("JoeyNMT, no smoothing", float(label_smoothed_loss(logits, targets, 0, 0.0)[0]), 5.6268, 1e-4)
    values.near("JoeyNMT, plain", float(label_smoothed_loss(logits, targets, 0, 0.4)[1]), 5.6268, 1e-4)
    values.differs("JoeyNMT", round(float(label_smoothed_loss(logits, targets, 0, 0.4)[0]), 4), 2.1326,
                   because.format("JoeyNMT", "V - 2 others, of which pad is none")
                   + "; and it subtracts the entropy of the targets, a constant")  # fmt: skip


# --- the paper's Table 3 ----------------------------------------------------------------------------------------------

BASE = dict(d_model=512, n_heads=8, d_ff=2048, n_encoder_layers=6, n_decoder_layers=6)
TABLE_3 = {  # parameters in millions, as printed
    "base": ({}, 65),
    "B: d_k 16": (dict(d_k=16, d_v=64), 58),
    "B: d_k 32": (dict(d_k=32, d_v=64), 60),
    "C: N 2": (dict(n_encoder_layers=2, n_decoder_layers=2), 36),
    "C: N 4": (dict(n_encoder_layers=4, n_decoder_layers=4), 50),
    "C: N 8": (dict(n_encoder_layers=8, n_decoder_layers=8), 80),
    "C: d_model 256": (dict(d_model=256, d_k=32, d_v=32), 28),
    "C: d_model 1024": (dict(d_model=1024, d_k=128, d_v=128), 168),
    "C: d_ff 1024": (dict(d_ff=1024), 53),
    "C: d_ff 4096": (dict(d_ff=4096), 90),
}


def parameters(**changes: int) -> Callable[[int], float]:
    """A function of the size of the shared vocabulary: the paper's model has so many parameters, in millions."""
    config = ModelConfig(src_vocab_size=37_000, tgt_vocab_size=37_000, **{**BASE, **changes})
    with torch.device("meta"):
        n = sum(parameter.numel() for parameter in Transformer(config).parameters())
    return lambda n_vocab: (n + (n_vocab - 37_000) * config.d_model) / 1e6


def test_the_parameters_of_table_3(suite: Suite) -> None:
    """One vocabulary gives all printed numbers but that of the big model: any from 40,932 to 41,160 pieces."""
    values = suite("paper-table-3", 32)
    because = "the paper speaks of about 37,000 pieces; all ten numbers are those of 40,932 to 41,160 pieces"
    for row, (changes, printed) in TABLE_3.items():
        millions = parameters(**changes)
        for n_vocab in (40_932, 41_160):
            values.equal((row, n_vocab), round(millions(n_vocab)), printed)
        values.differs((row, 37_000), round(millions(37_000)), printed, because)
    big = parameters(d_model=1024, d_ff=4096, n_heads=16)
    values.equal(("big", 36_000), round(big(36_000)), 213)
    values.differs(("big", 41_000), round(big(41_000)), 213, "the big model's number is that of about 36,000 pieces")
