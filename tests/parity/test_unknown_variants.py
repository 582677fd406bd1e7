"""A variant that the schema has and an implementation has not: refused there, and not computed as another one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from dragoman import reference
from dragoman.config import DecodeConfig, ModelConfig, TrainConfig
from dragoman.errors import ConfigError
from dragoman.fast import forward
from dragoman.fast.step import FastTransformer
from dragoman.model.build import build
from dragoman.model.transformer import Transformer
from dragoman.toolkits import writers
from dragoman.toolkits.huggingface.write import power
from dragoman.toolkits.writing import check
from dragoman.training.flops import training_flops
from dragoman.training.schedule import learning_rate

SIZES = dict(d_model=6, n_heads=3, d_ff=11, n_encoder_layers=1, n_decoder_layers=1, src_vocab_size=13,
             tgt_vocab_size=13, dropout=0.0)  # fmt: skip
SRC, TGT_IN = torch.tensor([[5, 12, 7, 3, 0]]), torch.tensor([[2, 4, 8]])


def with_unknown(**fields: Any) -> ModelConfig:
    """A configuration that nobody checked, as after a new word in the schema."""
    return ModelConfig.model_construct(**{**ModelConfig(**SIZES).model_dump(), **fields})


def with_config(config: ModelConfig) -> Transformer:
    """A model that was built before the word was new, so that each part is asked by itself."""
    model = Transformer(ModelConfig(**SIZES)).train()
    model.config = config
    for module in model.modules():
        if hasattr(module, "activation"):
            module.activation = config.activation
    return model


def test_the_reference_refuses_a_model_of_another_kind_as_torch_does() -> None:
    for n_encoder_layers, src in ((1, None), (0, SRC.numpy())):
        config = ModelConfig(**{**SIZES, "n_encoder_layers": n_encoder_layers})
        params = {name: tensor.double().numpy() for name, tensor in Transformer(config).state_dict().items()}
        memory = None if src is None else np.zeros((1, 5, 6))
        with pytest.raises(ValueError, match="an encoder-decoder needs its memory, and a language model has none"):
            reference.decode(params, config.model_dump(), TGT_IN.numpy(), memory)


@pytest.mark.parametrize("fields", [{"activation": "mish"}, {"positions": "alibi"}])
def test_the_model_and_its_optimised_implementations_refuse_it(fields: dict[str, Any]) -> None:
    (name, value), *_ = fields.items()
    model = with_config(with_unknown(**fields))
    says = rf"model\.{name} = '{value}' is unknown where it is used"
    with pytest.raises(ConfigError, match=says):
        model(SRC, TGT_IN)
    with pytest.raises(ConfigError, match=says):
        forward.features(model, SRC, TGT_IN, torch.float32)
    with pytest.raises(ConfigError, match=says):
        FastTransformer(model).start(SRC)


@pytest.mark.parametrize(
    "fields", [{"activation": "mish"}, {"positions": "alibi"}, {"norm": "sandwich"}, {"architecture": "mamba"}]
)
def test_a_model_of_it_is_not_built_or_does_not_run(fields: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="is unknown where it is used"):
        build(with_unknown(**fields))(SRC, TGT_IN)


def test_a_convolutional_model_refuses_unknown_positions() -> None:
    with pytest.raises(ConfigError, match=r"model\.positions = 'alibi' is unknown"):
        build(with_unknown(architecture="conv", positions="alibi"))(SRC, TGT_IN)


@pytest.mark.parametrize("form", writers())
@pytest.mark.parametrize(
    "fields", [{"activation": "mish"}, {"positions": "alibi"}, {"norm": "sandwich"}, {"architecture": "mamba"}]
)
def test_no_format_is_given_it(fields: dict[str, Any], form: str) -> None:
    (name, value), *_ = fields.items()
    with pytest.raises(ConfigError, match=f"cannot be written for .*{name}.*") as refused:
        check(form, with_unknown(**fields), "float32")
    assert value in str(refused.value)


def test_operations_are_not_counted_as_those_of_another_architecture() -> None:
    with pytest.raises(ConfigError, match=r"model\.architecture = 'mamba' is unknown"):
        training_flops(with_unknown(architecture="mamba"), 2, 3, 4)


@pytest.mark.parametrize("fields", [{"activation": "mish"}, {"positions": "alibi"}, {"norm": "sandwich"}])
def test_the_reference_refuses_it(fields: dict[str, Any]) -> None:
    (name, value), *_ = fields.items()
    known = ModelConfig(**SIZES).model_dump()
    params = reference.initialise(known, np.random.default_rng(0))
    with pytest.raises(ValueError, match=f"{name} = '{value}' is unknown: use "):
        reference.forward(params, {**known, **fields}, SRC.numpy(), TGT_IN.numpy())
    _, cache = reference.forward(params, known, SRC.numpy(), TGT_IN.numpy())
    if name != "positions":  # which only learned ones have a gradient of
        with pytest.raises(ValueError, match=f"{name} = '{value}' is unknown: use "):
            reference.backward(params, {**known, **fields}, cache, np.ones((1, 3, 13)))


def test_a_schedule_that_is_not_written_is_no_cosine() -> None:
    config = TrainConfig.model_construct(
        **{**TrainConfig(lr=1.0).model_dump(), "schedule": "linear", "warmup_steps": 2}
    )
    with pytest.raises(ConfigError, match=r"train\.schedule = 'linear' is unknown"):
        learning_rate(3, config, 8)


def test_another_length_penalty_is_not_told_or_exported_as_one_that_is_known() -> None:
    decode = DecodeConfig()
    object.__setattr__(decode, "length_penalty_form", "log")  # as a form that the schema gets, and a branch does not
    for use in (lambda: decode.penalty(3), lambda: decode.penalty.formula, lambda: power(decode)):
        with pytest.raises(ConfigError, match=r"decode\.length_penalty_form = 'log' is unknown where it is used"):
            use()
