"""The variants of the model that tests go through, made from what the configuration allows; small random models.

A value that is added to a setting of ``ModelOptions`` is in all of these by itself, and so is tested.
"""

from collections.abc import Callable, Mapping, Sequence
from itertools import combinations, product
from typing import Any, Literal, get_args, get_origin

import pytest
import torch

from dragoman.config import ModelConfig, ModelOptions
from dragoman.model.transformer import Transformer

Build = Callable[..., Transformer]

SIZES = dict(d_model=12, n_heads=3, d_ff=23, n_encoder_layers=2, n_decoder_layers=2, dropout=0.0, max_len=19)


def choices() -> dict[str, tuple[Any, ...]]:
    """The values of each setting of a Transformer that has few of them, the default first."""
    found = {}
    for name, field in ModelOptions.model_fields.items():
        values = get_args(field.annotation) if get_origin(field.annotation) is Literal else ()
        if values or field.annotation is bool:
            found[name] = (field.default, *(value for value in values or (True, False) if value != field.default))
    del found["architecture"]  # of the others tests/model/baselines has a table
    return found


CHOICES = choices()
ELEMENTWISE = tuple(name for name in CHOICES["activation"] if name != "swiglu")  # which has a second matrix
OWN_WIDTHS = dict(d_k=6, d_v=5)
FACTORS = CHOICES | {"widths": ({}, OWN_WIDTHS)}

VARIANTS: dict[str, dict[str, Any]] = {
    "the paper's": {},
    **{f"{name} {value}": {name: value} for name, values in CHOICES.items() for value in values[1:]},
    "heads of own width": dict(d_k=5, d_v=7),
    "rotary heads of own width": dict(positions="rotary", d_k=2, d_v=5, norm="pre"),
    "another pad_id": dict(pad_id=5),
    "another epsilon": dict(norm_eps=1e-2),
    "one encoder layer and three decoder layers": dict(n_encoder_layers=1, n_decoder_layers=3),
    "modern": dict(
        norm="pre", activation="swiglu", positions="rotary", attention_bias=False, share_embeddings="none"
    ),
    "language model": dict(n_encoder_layers=0),
    "modern language model": dict(n_encoder_layers=0, norm="pre", positions="rotary", activation="swiglu"),
}  # fmt: skip


def unequal(fields: Mapping[str, Any], tgt_vocab_size: int = 17) -> dict[str, Any]:
    """A target vocabulary of its own size where nothing forbids it, so that no table is taken for the other."""
    return dict(fields) | ({} if fields.get("share_embeddings", "all") == "all" else {"tgt_vocab_size": tgt_vocab_size})


def fields_of(row: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of the configuration that a row of ``FACTORS`` stands for."""
    return unequal({name: value for name, value in row.items() if name != "widths"} | row["widths"])


def every(factors: Mapping[str, Sequence[Any]]) -> list[dict[str, Any]]:
    """All combinations of the values of the factors."""
    return [dict(zip(factors, values, strict=True)) for values in product(*factors.values())]


def pairwise(factors: Mapping[str, Sequence[Any]]) -> list[dict[str, Any]]:
    """Rows such that any two values of any two factors meet in one: few, found greedily, and always the same."""
    cells = [[(name, i) for i in range(len(values))] for name, values in factors.items()]
    left = {frozenset(pair): None for one, other in combinations(cells, 2) for pair in product(one, other)}
    rows = []
    while left:
        row = dict(next(iter(left)))  # the first pair that has not met, and for each other factor what meets most
        for name, values in factors.items():
            if name not in row:
                meets = [sum(frozenset(((name, i), cell)) in left for cell in row.items()) for i in range(len(values))]
                row[name] = meets.index(max(meets))
        for pair in combinations(row.items(), 2):
            left.pop(frozenset(pair), None)
        rows.append({name: values[row[name]] for name, values in factors.items()})
    return rows


def in_combination(factors: Mapping[str, Sequence[Any]]) -> pytest.MarkDecorator:
    """Run a test with ``rows``: one in which pairs of values meet, and all there are in `make test-slow`."""
    quick = [pytest.param([row], id=label(row)) for row in pairwise(factors)]
    full = [
        pytest.param(every({**factors, "norm": [norm], "activation": [activation]}), marks=pytest.mark.slow,
                     id=f"all of norm {norm}, activation {activation}")
        for norm, activation in product(factors["norm"], factors["activation"])
    ]  # fmt: skip
    return pytest.mark.parametrize("rows", [*quick, *full])


def label(row: Mapping[str, Any]) -> str:
    """A row's name: what is not as usual."""
    usual = {name: values[0] for name, values in FACTORS.items()}
    told = [f"{name} {value}" for name, value in row.items() if name != "widths" and value != usual.get(name)]
    return ", ".join([*told, *(["heads of own width"] if row.get("widths") else [])]) or "the paper's"


def fill(model: Transformer, seed: int = 0, spread: float = 0.5) -> Transformer:
    """Random weights, the same in each precision; none is 0 or 1, so that none may be forgotten."""
    gen = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            one = "norm" in name and name.endswith("weight")
            parameter.copy_(torch.randn(parameter.shape, generator=gen, dtype=torch.float64) * spread + one)
    return model


def build_model(seed: int = 0, dtype: torch.dtype = torch.float64, **fields: Any) -> Transformer:
    """A model in eval mode."""
    fields = {**SIZES, "src_vocab_size": 13, "tgt_vocab_size": 13, **fields}
    return fill(Transformer(ModelConfig(**fields)).to(dtype).eval(), seed)
