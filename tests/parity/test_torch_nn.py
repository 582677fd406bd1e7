"""Our model against torch.nn.Transformer with the same weights: logits and gradients, float64, both norms.

torch puts one more norm after its post-norm stacks, which the paper has not: here its two are None.
"""

from collections.abc import Iterator

import pytest
import torch
from torch import Tensor, nn

from dragoman.config import ModelConfig
from dragoman.model.transformer import Transformer
from model_variants import CHOICES, fill

D_MODEL, HEADS, D_FF, LAYERS, V = 22, 2, 31, 3, 29
SRC = torch.tensor([[5, 12, 7, 28, 3], [9, 3, 0, 0, 0], [11, 4, 3, 0, 0]])
TGT_IN = torch.tensor([[2, 4, 8, 4, 11, 6, 1], [2, 12, 5, 0, 0, 0, 0], [2, 27, 17, 13, 19, 0, 0]])
EXACT = dict(rtol=1e-12, atol=1e-12)

pytestmark = pytest.mark.filterwarnings("ignore:enable_nested_tensor")


def ours(norm: str, activation: str, norm_eps: float = 1e-5) -> Transformer:
    model = Transformer(
        ModelConfig(
            src_vocab_size=V, tgt_vocab_size=V + 2, d_model=D_MODEL, n_heads=HEADS, d_ff=D_FF, n_encoder_layers=LAYERS,
            n_decoder_layers=LAYERS, dropout=0.0, norm=norm, activation=activation, norm_eps=norm_eps,
            share_embeddings="none", generator_bias=True,
        )
    ).double()  # fmt: skip
    return fill(model, seed=1, spread=1 / 3)


class Torchs(nn.Module):
    """torch.nn.Transformer between two embeddings and a generator."""

    def __init__(self, norm: str, activation: str, norm_eps: float = 1e-5) -> None:
        super().__init__()
        self.src_embed = nn.Embedding(V, D_MODEL, padding_idx=0)
        self.tgt_embed = nn.Embedding(V + 2, D_MODEL, padding_idx=0)
        self.stacks = nn.Transformer(
            D_MODEL, HEADS, LAYERS, LAYERS, D_FF, 0.0, activation, layer_norm_eps=norm_eps, batch_first=True,
            norm_first=norm == "pre",
        )  # fmt: skip
        if norm == "post":
            self.stacks.encoder.norm = self.stacks.decoder.norm = None
        self.generator = nn.Linear(D_MODEL, V + 2)

    def forward(self, src: Tensor, tgt_in: Tensor) -> Tensor:
        hidden = src == 0  # torch's masks say what may NOT be seen
        features = self.stacks(
            self.place(self.src_embed(src)),
            self.place(self.tgt_embed(tgt_in)),
            tgt_mask=torch.ones(tgt_in.size(1), tgt_in.size(1), dtype=torch.bool).triu(1),
            src_key_padding_mask=hidden,
            memory_key_padding_mask=hidden,
            tgt_key_padding_mask=tgt_in == 0,
        )
        return self.generator(features)

    @staticmethod
    def place(x: Tensor) -> Tensor:
        angles = torch.arange(x.size(1)).double()[:, None] * 10000.0 ** (
            -torch.arange(0, D_MODEL, 2).double() / D_MODEL
        )
        table = torch.zeros(x.size(1), D_MODEL, dtype=torch.float64)
        table[:, 0::2], table[:, 1::2] = angles.sin(), angles.cos()
        return x * D_MODEL**0.5 + table


def pairs(theirs: dict[str, Tensor], of_ours: dict[str, Tensor]) -> Iterator[tuple[str, Tensor, Tensor]]:
    """Each of torch's tensors beside ours; the three input projections are one tensor there."""
    used = set()
    for name, tensor in theirs.items():
        name = name.removeprefix("stacks.").replace("multihead_attn", "cross_attn")
        name = name.replace("linear", "feed_forward.w_").replace("out_proj", "w_o")
        parts = [name.replace("in_proj_", f"{w}.") for w in ("w_q", "w_k", "w_v")] if "in_proj" in name else [name]
        used.update(parts)
        yield name, tensor, torch.cat([of_ours[part] for part in parts])
    assert used == of_ours.keys()  # nothing of ours is left over


def a_pair(norm: str, activation: str, norm_eps: float = 1e-5) -> tuple[Transformer, Torchs]:
    model, theirs = ours(norm, activation, norm_eps), Torchs(norm, activation, norm_eps).double()
    with torch.no_grad():
        for _, tensor, weight in pairs(dict(theirs.named_parameters()), dict(model.named_parameters())):
            assert tensor.shape == weight.shape
            tensor.copy_(weight)
    return model, theirs


@pytest.mark.parametrize("activation", ["relu", "gelu"])
@pytest.mark.parametrize("norm", CHOICES["norm"])
def test_logits_and_gradients_equal_torch_nn_transformer(norm: str, activation: str) -> None:
    model, theirs = a_pair(norm, activation)
    logits, want = model(SRC, TGT_IN), theirs(SRC, TGT_IN)
    real = TGT_IN != 0
    torch.testing.assert_close(logits[real], want[real], **EXACT)

    d_logits = torch.randn(logits[real].shape, dtype=torch.float64, generator=torch.Generator().manual_seed(2))
    logits[real].backward(d_logits)
    want[real].backward(d_logits)
    grads = {name: parameter.grad for name, parameter in model.named_parameters()}
    for name, got, expected in pairs({n: p.grad for n, p in theirs.named_parameters()}, grads):
        scale = expected.norm().item() / expected.numel() ** 0.5
        torch.testing.assert_close(
            got, expected, rtol=1e-10, atol=1e-11 * (1 + scale), msg=lambda m, n=name: f"{n}: {m}"
        )
        assert got.norm() > 0


@pytest.mark.parametrize("norm", CHOICES["norm"])
def test_another_epsilon_of_the_norms_is_heeded(norm: str) -> None:
    model, theirs = a_pair(norm, "relu", norm_eps=0.1)
    other, _ = a_pair(norm, "relu")
    real = TGT_IN != 0
    torch.testing.assert_close(model(SRC, TGT_IN)[real], theirs(SRC, TGT_IN)[real], **EXACT)
    assert not torch.allclose(other(SRC, TGT_IN)[real], theirs(SRC, TGT_IN)[real])


def test_torchs_final_norms_after_post_norm_stacks_are_the_one_difference() -> None:
    model, theirs = a_pair("post", "relu")
    theirs.stacks.encoder.norm = nn.LayerNorm(D_MODEL).double()
    assert not torch.allclose(model(SRC, TGT_IN), theirs(SRC, TGT_IN))


@torch.no_grad()
def test_greedy_steps_choose_the_tokens_that_torch_would_choose() -> None:
    model, theirs = a_pair("pre", "gelu")
    state, ids = model.start(SRC), torch.full((3, 1), 2)
    for _ in range(11):
        logits, state = model.step(state, ids[:, -1])
        want = theirs(SRC, ids)[:, -1]
        torch.testing.assert_close(logits, want, **EXACT)
        ids = torch.cat((ids, want[:, 4:].argmax(-1, keepdim=True) + 4), 1)
