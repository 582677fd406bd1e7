"""Compare attention with and without learned queries, keys, values and several heads (section 3.2.2)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import torch
from torch import nn

from dragoman.config import Config, ModelConfig
from dragoman.errors import ConfigError
from dragoman.explanation.figures import Bars, Chart, Curve, bars, curves
from dragoman.lab.experiment import Claim, Findings, Lab, Section, Table
from dragoman.lab.runs import (
    Variant,
    as_rows,
    bar,
    bleus,
    changed,
    difference,
    from_rows,
    holds,
    interval,
    losses,
    mean_curve,
    transformer_config,
    trials,
)
from dragoman.model.attention import MultiHeadAttention
from dragoman.model.transformer import Transformer
from dragoman.training.run import Build

TAKES = ("config", "device")

PAPER = "learned-heads"
"""Name of the variant that has the paper's attention."""


def unlearned(config: ModelConfig, parts: str = "qkv") -> Transformer:
    """Return a Transformer some of whose projections are fixed to the identity, so that a head reads a slice of ``x``.

    Head ``i`` reads the columns from ``i d_k`` on. The weights have the names and shapes of an ordinary model's.

    Args:
        config: Must have ``n_heads * d_k == n_heads * d_v == d_model``.
        parts: Letters of ``qkv``: the projections to fix.
    """
    model = Transformer(config)
    for attention in model.modules():
        if isinstance(attention, MultiHeadAttention):
            for part in parts:
                projection = getattr(attention, f"w_{part}")
                nn.init.eye_(projection.weight)
                projection.requires_grad_(False)  # its bias stays zero, too
    return model


def variants(config: Config) -> list[Variant]:
    """Return the paper's attention and six variants that lack a part of it.

    Raises:
        ConfigError: All heads together are not as wide as the model.
    """
    model = config.model
    if any(width is not None and width * model.n_heads != model.d_model for width in (model.d_k, model.d_v)):
        raise ConfigError(
            "this experiment needs heads that are together as wide as the model: leave out model.d_k and model.d_v"
        )
    # Without w_q, w_k, w_v an encoder layer lacks 3 d^2 weights and a decoder layer 6 d^2. The variant "slices-wide"
    # gets as many in its feed-forward networks, so that it has the size of the paper's.
    stacks = model.n_encoder_layers + model.n_decoder_layers
    lacking = 3 * model.d_model**2 * (model.n_encoder_layers + 2 * model.n_decoder_layers)
    wider = changed(config, model={"d_ff": model.d_ff + round(lacking / (2 * model.d_model * stacks))})
    one_head = changed(config, model={"n_heads": 1, "d_k": None, "d_v": None})  # as wide as all heads together
    return [
        Variant(PAPER, config),
        Variant("learned-one", one_head),
        Variant("slices-v", config, partial(unlearned, parts="v")),
        Variant("slices-qk", config, partial(unlearned, parts="qk")),
        Variant("slices", config, unlearned),
        Variant("slices-wide", wider, unlearned),
        Variant("nothing", one_head, unlearned),
    ]


def labels(n_heads: int) -> dict[str, str]:
    """Return a label for figures by the name of each variant."""
    return {
        PAPER: f"{n_heads} heads, all learned (the paper)",
        "learned-one": "one head, all learned",
        "slices-v": f"{n_heads} heads, V = x",
        "slices-qk": f"{n_heads} heads, Q = K = x",
        "slices": f"{n_heads} heads as slices: Q = K = V = x",
        "slices-wide": "the same, its weights given to d_ff",
        "nothing": "one head, Q = K = V = x",
    }


@torch.no_grad()
def weight_on_itself(build: Build | None, config: ModelConfig, seed: int = 0) -> float:
    """Return the mean weight that a position gives to itself in the first layer of a fresh encoder, on 32 tokens."""
    torch.manual_seed(seed)
    model: Any = (build or Transformer)(config).eval()
    recorded: dict[str, torch.Tensor] = {}
    ids = torch.randint(4, config.src_vocab_size, (8, 32))
    model.encode(ids, record=recorded.__setitem__)
    return float(recorded["encoder.layers.0.self_attn"].diagonal(dim1=-2, dim2=-1).mean())


def run(lab: Lab) -> Findings:
    """Train each variant; claims: learned projections, and several of them, are worth their parameters."""
    config = transformer_config(lab)
    seeds = (1,) if lab.quick else (1, 2, 3)
    tried, itself = {}, {}
    for variant in variants(config):
        tried[variant.name] = trials(lab, variant, seeds)
        sizes = ModelConfig(**variant.config.model.model_dump(), src_vocab_size=1000, tgt_vocab_size=1000)
        itself[variant.name] = weight_on_itself(variant.build, sizes)
    numbers = {
        "labels": labels(config.model.n_heads), "trials": as_rows(tried), "weight_on_itself_when_fresh": itself,
    }  # fmt: skip
    return Findings(numbers, sections(numbers), verdict(numbers))


def verdict(numbers: Mapping[str, Any]) -> list[Claim]:
    """Return the claims of the experiment, each decided by the numbers of a run."""
    tried = from_rows(numbers["trials"])
    itself = numbers["weight_on_itself_when_fresh"]
    paper = losses(tried[PAPER])

    def worse(name: str, text: str, base: Sequence[float] = paper) -> Claim:
        """Claim that a variant has a higher loss than ``base``, the losses of another one."""
        rise = difference(base, losses(tried[name]))
        return Claim(text, holds(rise, 1), f"loss {rise:+.3f} nats a token")

    return [
        worse("learned-one", "Several heads are better than one of the same cost"),
        worse("slices", "Heads that are projections of x are better than heads that are slices of x"),
        worse("slices-wide", "They are so at the same number of parameters"),
        worse("nothing", "Several heads are better than one even where nothing is projected", losses(tried["slices"])),
        Claim(
            "Where queries and keys are x itself, a position first of all attends to itself",
            itself["slices-qk"] > 2 * itself[PAPER],
            f"a fresh first layer gives {itself['slices-qk']:.2f} of the weight to the position itself, "
            f"with learned projections {itself[PAPER]:.2f}; 1/32 would be uniform",
        ),
    ]


def sections(numbers: Mapping[str, Any]) -> list[Section]:
    """Return the sections of the report, with figures and tables made from the numbers of a run."""
    label = numbers["labels"]
    tried = from_rows(numbers["trials"])
    loss = {name: interval(losses(results)) for name, results in tried.items()}
    bleu = {name: interval(bleus(results)) for name, results in tried.items()}
    shown = bars(
        [
            Bars([bar(label[name], loss[name]) for name in label], "loss (nats a target token)", "Validation loss"),
            Bars([bar(label[name], bleu[name]) for name in label], "BLEU", "Translations"),
        ]
    )
    lines = [
        Curve(label[name], *mean_curve([result.curve for result in tried[name]]))
        for name in (PAPER, "learned-one", "slices", "nothing")
    ]
    table = Table(
        ("variant", "parameters trained", "loss", "BLEU"),
        [
            (
                label[name], results[0].parameters, str(loss[name]), str(bleu[name]),
            )
            for name, results in tried.items()
        ],
    )  # fmt: skip
    n_seeds = len(tried[PAPER])
    return [
        Section(
            "The same task, with less and less to learn",
            [
                "`V = x` means that the projection is fixed to the identity: head i "
                "then reads its own slice of the columns of x. The output projection `w_o` is always learned.",
                "Slices have fewer parameters. The row below them makes up for it by wider feed-forward networks.",
            ],
            shown,
            "variants",
            table,
            f"Means over {n_seeds} seeds; whiskers: 95% t-intervals.",
        ),
        Section(
            "While they learn",
            "With Q = K = x the score of a position with itself is its squared length, which is mostly the greatest. "
            "So the layer begins as a copy of its input.",
            curves([Chart(lines, "step", "training loss (nats a target token)")], width=6.4),
            "learning",
            caption=f"Training loss, dropout on, mean of {n_seeds} seeds; bands: the lowest and the highest seed.",
        ),
    ]
