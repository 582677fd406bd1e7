"""Xavier uniform for matrices, N(0, d_model^-0.5) for embeddings, zero for biases and the padding row."""

import math

import pytest
import torch

from dragoman.config import ModelConfig
from dragoman.model.transformer import Transformer
from model_variants import CHOICES

SIZES = dict(src_vocab_size=503, tgt_vocab_size=509, d_model=62, n_heads=2, d_ff=127, n_encoder_layers=2,
             n_decoder_layers=2, max_len=251, share_embeddings="none", positions="learned", dropout=0.0)  # fmt: skip


def fresh(**fields: object) -> Transformer:
    torch.manual_seed(0)
    return Transformer(ModelConfig(**{**SIZES, **fields}))


def is_embedding(name: str) -> bool:
    return name.split(".")[0] in {"src_embed", "tgt_embed", "src_positions", "tgt_positions"}


def test_matrices_are_uniform_within_xaviers_bound() -> None:
    matrices = {n: p for n, p in fresh(d_k=29, d_v=37).named_parameters() if p.dim() == 2 and not is_embedding(n)}
    assert len(matrices) == 2 * (4 + 2) + 2 * (8 + 2) + 1
    for name, weight in matrices.items():
        fan_out, fan_in = weight.shape
        bound = math.sqrt(6 / (fan_in + fan_out))
        assert 0.99 * bound < weight.abs().max() <= bound, name
        assert weight.std().item() == pytest.approx(bound / math.sqrt(3), rel=0.05), name
        assert abs(weight.mean().item()) < 5 * bound / math.sqrt(3 * weight.numel()), name


def test_embeddings_are_normal_with_variance_one_over_d_model() -> None:
    embeddings = {n: p for n, p in fresh().named_parameters() if is_embedding(n)}
    assert len(embeddings) == 4
    for name, weight in embeddings.items():
        rows = weight[1:] if "embed" in name else weight
        sigma = 62**-0.5
        assert rows.std().item() == pytest.approx(sigma, rel=5 / math.sqrt(2 * rows.numel())), name
        assert rows.abs().max() > 3 * sigma, name  # normal, not uniform


@pytest.mark.parametrize("share", ["all", "decoder"])
def test_a_tied_generator_begins_as_an_embedding(share: str) -> None:
    model = fresh(share_embeddings=share, tgt_vocab_size=503)
    assert model.generator.weight[1:].std().item() == pytest.approx(62**-0.5, rel=0.03)
    assert (model.generator.weight[0] == 0).all()


def test_norms_begin_as_one_and_zero_and_biases_as_zero() -> None:
    for name, parameter in fresh(norm="pre", activation="swiglu", generator_bias=True).named_parameters():
        if parameter.dim() == 1:
            assert (parameter == (1 if "norm" in name and name.endswith("weight") else 0)).all(), name


@pytest.mark.parametrize("pad_id", [0, 7])
@pytest.mark.parametrize("share", CHOICES["share_embeddings"])
def test_only_the_padding_row_of_an_embedding_is_zero(share: str, pad_id: int) -> None:
    model = fresh(share_embeddings=share, pad_id=pad_id, tgt_vocab_size=503)
    for embedding in (model.src_embed, model.tgt_embed):
        zero = (embedding.weight == 0).all(dim=1)
        assert zero.nonzero().flatten().tolist() == [pad_id]


def test_looking_up_padding_gives_its_row_no_gradient() -> None:
    model = fresh(pad_id=7)
    src, tgt_in = torch.tensor([[4, 9, 3, 7, 7]]), torch.tensor([[2, 6, 7]])
    model(src, tgt_in).square().sum().backward()
    for embedding, looked_up in ((model.src_embed, {3, 4, 9}), (model.tgt_embed, {2, 6})):
        trained = (embedding.weight.grad != 0).any(dim=1)
        assert set(trained.nonzero().flatten().tolist()) == looked_up


def test_a_padding_row_tied_to_the_generator_is_trained_as_an_output() -> None:
    model = fresh(share_embeddings="all", tgt_vocab_size=503)
    model(torch.tensor([[4, 3]]), torch.tensor([[2, 6]])).square().sum().backward()
    assert model.tgt_embed.weight.grad[1].any()
    model.zero_grad()
    model(torch.tensor([[4, 3]]), torch.tensor([[2, 6]]))[..., 0].sum().backward()
    assert model.tgt_embed.weight.grad[0].any()


def test_the_first_logits_are_of_moderate_size() -> None:
    """Scaled embeddings have unit variance, and so have the logits of an untrained model, roughly."""
    model = fresh(share_embeddings="all", tgt_vocab_size=503, positions="sinusoidal").eval()
    gen = torch.Generator().manual_seed(0)
    src, tgt_in = (torch.randint(1, 503, (5, n), generator=gen) for n in (11, 13))
    assert model.src_embed(src).std().item() == pytest.approx(1.0, rel=0.05)
    assert 0.5 < model(src, tgt_in).std().item() < 2.0


def test_initialising_twice_from_one_seed_gives_the_same_weights() -> None:
    one, two = fresh().state_dict(), fresh().state_dict()
    assert all(torch.equal(one[name], two[name]) for name in one)
