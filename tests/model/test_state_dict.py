"""Every variant builds; the names of its parameters are the contract of files; sizes are the paper's."""

from typing import Any

import pytest
import torch

from dragoman.config import ModelConfig
from dragoman.model.transformer import Transformer
from model_variants import FACTORS, VARIANTS, Build, fields_of, in_combination, unequal

SMALLEST_PRE_NORM = """
src_embed.weight tgt_embed.weight generator.weight generator.bias src_positions.weight tgt_positions.weight
encoder.layers.0.self_attn.w_q.weight encoder.layers.0.self_attn.w_q.bias
encoder.layers.0.self_attn.w_k.weight encoder.layers.0.self_attn.w_k.bias
encoder.layers.0.self_attn.w_v.weight encoder.layers.0.self_attn.w_v.bias
encoder.layers.0.self_attn.w_o.weight encoder.layers.0.self_attn.w_o.bias
encoder.layers.0.feed_forward.w_1.weight encoder.layers.0.feed_forward.w_1.bias
encoder.layers.0.feed_forward.w_2.weight encoder.layers.0.feed_forward.w_2.bias
encoder.layers.0.feed_forward.w_3.weight encoder.layers.0.feed_forward.w_3.bias
encoder.layers.0.norm1.weight encoder.layers.0.norm1.bias
encoder.layers.0.norm2.weight encoder.layers.0.norm2.bias
encoder.norm.weight encoder.norm.bias
decoder.layers.0.self_attn.w_q.weight decoder.layers.0.self_attn.w_q.bias
decoder.layers.0.self_attn.w_k.weight decoder.layers.0.self_attn.w_k.bias
decoder.layers.0.self_attn.w_v.weight decoder.layers.0.self_attn.w_v.bias
decoder.layers.0.self_attn.w_o.weight decoder.layers.0.self_attn.w_o.bias
decoder.layers.0.cross_attn.w_q.weight decoder.layers.0.cross_attn.w_q.bias
decoder.layers.0.cross_attn.w_k.weight decoder.layers.0.cross_attn.w_k.bias
decoder.layers.0.cross_attn.w_v.weight decoder.layers.0.cross_attn.w_v.bias
decoder.layers.0.cross_attn.w_o.weight decoder.layers.0.cross_attn.w_o.bias
decoder.layers.0.feed_forward.w_1.weight decoder.layers.0.feed_forward.w_1.bias
decoder.layers.0.feed_forward.w_2.weight decoder.layers.0.feed_forward.w_2.bias
decoder.layers.0.feed_forward.w_3.weight decoder.layers.0.feed_forward.w_3.bias
decoder.layers.0.norm1.weight decoder.layers.0.norm1.bias
decoder.layers.0.norm2.weight decoder.layers.0.norm2.bias
decoder.layers.0.norm3.weight decoder.layers.0.norm3.bias
decoder.norm.weight decoder.norm.bias
"""


def names_of(config: ModelConfig) -> set[str]:
    """The names that the contract gives to a configuration, and no others."""
    names = set()
    stacks = [("src", "encoder", config.n_encoder_layers), ("tgt", "decoder", config.n_decoder_layers)]
    for side, stack, n_layers in stacks:
        if not n_layers:
            continue
        names.add(f"{side}_embed.weight")
        if config.positions == "learned":
            names.add(f"{side}_positions.weight")
        if config.norm == "pre":
            names |= {f"{stack}.norm.weight", f"{stack}.norm.bias"}
        with_memory = stack == "decoder" and config.n_encoder_layers > 0
        for i in range(n_layers):
            layer = f"{stack}.layers.{i}"
            for attention in ["self_attn", *(["cross_attn"] if with_memory else [])]:
                names |= {f"{layer}.{attention}.{w}.weight" for w in ("w_q", "w_k", "w_v", "w_o")}
                if config.attention_bias:
                    names |= {f"{layer}.{attention}.{w}.bias" for w in ("w_q", "w_k", "w_v", "w_o")}
            linear = ["w_1", "w_2", *(["w_3"] if config.activation == "swiglu" else [])]
            norms = ["norm1", "norm2", *(["norm3"] if with_memory else [])]
            for module in [*(f"feed_forward.{w}" for w in linear), *norms]:
                names |= {f"{layer}.{module}.weight", f"{layer}.{module}.bias"}
    if config.n_decoder_layers:
        names |= {"generator.weight", *(["generator.bias"] if config.generator_bias else [])}
    return names


def test_the_names_of_the_smallest_model_that_has_them_all(build: Build) -> None:
    model = build(n_encoder_layers=1, n_decoder_layers=1, norm="pre", activation="swiglu", positions="learned",
                  generator_bias=True)  # fmt: skip
    assert set(model.state_dict()) == set(SMALLEST_PRE_NORM.split())
    assert names_of(model.config) == set(SMALLEST_PRE_NORM.split())


@pytest.mark.parametrize(
    "fields", [*map(unequal, VARIANTS.values()), dict(n_decoder_layers=0), dict(n_decoder_layers=0, norm="pre")]
)
def test_names_are_those_of_the_contract_in_each_variant(build: Build, fields: dict[str, Any]) -> None:
    model = build(**fields)
    assert set(model.state_dict()) == names_of(model.config)


@in_combination(FACTORS)
def test_every_combination_builds_and_predicts(build: Build, rows: list[dict[str, Any]]) -> None:
    src, tgt_in = torch.tensor([[4, 7, 3], [5, 3, 0]]), torch.tensor([[2, 6, 8, 9, 1], [2, 11, 0, 0, 0]])
    for row in rows:
        model = build(**fields_of(row), n_encoder_layers=1, n_decoder_layers=1)
        assert set(model.state_dict()) == names_of(model.config)
        with torch.no_grad():
            logits = model(src, tgt_in)
        assert logits.shape == (2, 5, 13 if row["share_embeddings"] == "all" else 17)
        assert logits.isfinite().all()


def test_heads_of_their_own_width_have_matrices_of_that_width(build: Build) -> None:
    state = build(d_k=5, d_v=7).state_dict()  # 3 heads, d_model 12
    for layer in ("encoder.layers.1.self_attn", "decoder.layers.0.self_attn", "decoder.layers.1.cross_attn"):
        shapes = {w: tuple(state[f"{layer}.{w}.weight"].shape) for w in ("w_q", "w_k", "w_v", "w_o")}
        assert shapes == {"w_q": (15, 12), "w_k": (15, 12), "w_v": (21, 12), "w_o": (12, 21)}


@pytest.mark.parametrize(("share", "n_tensors"), [("all", 1), ("decoder", 2), ("none", 3)])
def test_shared_embeddings_are_one_tensor(build: Build, share: str, n_tensors: int) -> None:
    model = build(share_embeddings=share)
    weights = [model.src_embed.weight, model.tgt_embed.weight, model.generator.weight]
    assert len({w.data_ptr() for w in weights}) == n_tensors
    assert (weights[1] is weights[2]) == (share != "none")
    n_all = sum(p.numel() for p in build(share_embeddings="all").parameters())
    assert sum(p.numel() for p in model.parameters()) == n_all + (n_tensors - 1) * 13 * 12


def test_a_language_model_shares_its_embedding_with_the_generator(build: Build) -> None:
    model = build(n_encoder_layers=0)
    assert model.generator.weight is model.tgt_embed.weight
    assert not any("cross_attn" in name or "norm3" in name for name in model.state_dict())


@pytest.mark.parametrize(("preset", "n_parameters"), [("base", 63_082_496), ("big", 214_245_376)])
def test_presets_have_as_many_parameters_as_the_papers_models(preset: str, n_parameters: int) -> None:
    with torch.device("meta"):
        model = Transformer(ModelConfig(preset=preset, src_vocab_size=37_000, tgt_vocab_size=37_000))
    assert sum(p.numel() for p in model.parameters()) == n_parameters


def test_loading_a_state_dict_gives_the_same_model_again(build: Build, variant: dict[str, Any]) -> None:
    model, other = build(0, **variant), build(1, **variant)
    src = None if model.config.n_encoder_layers == 0 else torch.tensor([[4, 7, 3]])
    tgt_in = torch.tensor([[2, 6, 8, 9, 1]])
    assert not torch.equal(model(src, tgt_in), other(src, tgt_in))
    other.load_state_dict(model.state_dict())
    assert torch.equal(model(src, tgt_in), other(src, tgt_in))
