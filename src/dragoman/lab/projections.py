"""What learned queries, keys, values and several heads are worth: one task, variants of attention (section 3.2.2)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import nn

from dragoman.config import Config, ModelConfig
from dragoman.explanation.figures import Bars, Chart, Curve, bars, curves
from dragoman.lab.report import Claim, Findings, Lab, Section, Table
from dragoman.lab.runs import Trial, bar, changed, difference, holds, interval, mean_curve, transformer_config, trials
from dragoman.model.attention import MultiHeadAttention
from dragoman.model.transformer import Transformer
from dragoman.training.run import Build

TAKES = ("config", "device")

PAPER = "learned-heads"


class Variant(NamedTuple):
    """One way to make queries, keys and values."""

    name: str
    label: str
    build: Build | None
    model: Mapping[str, Any]  # settings that differ from the base


def unlearned(config: ModelConfig, parts: str = "qkv") -> Transformer:
    """A Transformer some of whose projections are the input itself: head ``i`` reads columns ``i d_k`` and on of ``x``.

    Their matrices are identities that are not trained, so the weights are an ordinary model's.

    Args:
        config: With ``n_heads * d_k == n_heads * d_v == d_model``.
        parts: Letters of ``qkv``: which of queries, keys and values.
    """
    model = Transformer(config)
    for attention in model.modules():
        if isinstance(attention, MultiHeadAttention):
            for part in parts:
                projection = getattr(attention, f"w_{part}")
                nn.init.eye_(projection.weight)
                projection.requires_grad_(False)  # its bias, zero, stays so too
    return model


def variants(config: Config) -> list[Variant]:
    """The paper's attention and six that lack something."""
    model = config.model
    one = {"n_heads": 1}
    # without w_q, w_k, w_v an encoder layer lacks 3 d^2 weights and a decoder layer 6 d^2; d_ff gives them back
    stacks = model.n_encoder_layers + model.n_decoder_layers
    lacking = 3 * model.d_model**2 * (model.n_encoder_layers + 2 * model.n_decoder_layers)
    wider = {"d_ff": model.d_ff + round(lacking / (2 * model.d_model * stacks))}
    h = model.n_heads
    return [
        Variant(PAPER, f"{h} heads, all learned (the paper)", None, {}),
        Variant("learned-one", "one head, all learned", None, one),
        Variant("slices-v", f"{h} heads, V = x", partial(unlearned, parts="v"), {}),
        Variant("slices-qk", f"{h} heads, Q = K = x", partial(unlearned, parts="qk"), {}),
        Variant("slices", f"{h} heads as slices: Q = K = V = x", unlearned, {}),
        Variant("slices-wide", "the same, its weights given to d_ff", unlearned, wider),
        Variant("nothing", "one head, Q = K = V = x", unlearned, one),
    ]


@torch.no_grad()
def looks_at_itself(build: Build | None, config: ModelConfig, seed: int = 0) -> float:
    """The mean weight that a position of a fresh encoder's first layer gives itself, of 32 random tokens."""
    torch.manual_seed(seed)
    model: Any = (build or Transformer)(config).eval()
    seen: dict[str, torch.Tensor] = {}
    ids = torch.randint(4, config.src_vocab_size, (8, 32))
    model.encode(ids, record=lambda name, weights: seen.update({name: weights}))
    return float(seen["encoder.layers.0.self_attn"].diagonal(dim1=-2, dim2=-1).mean())


def run(lab: Lab) -> Findings:
    """Claims: learned projections, several of them, are worth their parameters."""
    config = transformer_config(lab)
    seeds = (1,) if lab.quick else (1, 2, 3)
    tried, itself = {}, {}
    for variant in variants(config):
        settings = changed(config, model=variant.model)
        tried[variant.name] = trials(lab, variant.name, settings, seeds, variant.build)
        sizes = ModelConfig(**settings.model.model_dump(), src_vocab_size=1000, tgt_vocab_size=1000)
        itself[variant.name] = looks_at_itself(variant.build, sizes)
    labels = {variant.name: variant.label for variant in variants(config)}
    numbers = {
        "labels": labels,
        "trials": {name: [each._asdict() for each in found] for name, found in tried.items()},
        "weight_on_itself_when_fresh": itself,
    }
    return Findings(numbers, sections(numbers), verdict(numbers))


def _losses(found: Sequence[Trial]) -> list[float]:
    return [each.loss for each in found]


def verdict(numbers: Mapping[str, Any]) -> list[Claim]:
    """What a full run decides, from the numbers that it keeps."""
    tried = {name: [Trial(**one) for one in found] for name, found in numbers["trials"].items()}
    itself = numbers["weight_on_itself_when_fresh"]
    paper = _losses(tried[PAPER])

    def worse(name: str, text: str, base: Sequence[float] = paper) -> Claim:
        found = difference(base, _losses(tried[name]))
        return Claim(text, holds(found, 1), f"loss {found:+.3f} nats a token over {len(base)} seeds")

    return [
        worse("learned-one", "Several heads are better than one of the same cost"),
        worse("slices", "Heads that are projections of x are better than heads that are slices of x"),
        worse("slices-wide", "They are so at the same number of parameters"),
        worse("nothing", "Several heads are better than one even where nothing is projected", _losses(tried["slices"])),
        Claim(
            "Where queries and keys are x itself, a position first of all attends to itself",
            itself["slices-qk"] > 2 * itself[PAPER],
            f"a fresh first layer gives {itself['slices-qk']:.2f} of the weight to the position itself, "
            f"with learned projections {itself[PAPER]:.2f}; 1/32 would be uniform",
        ),
    ]


def sections(numbers: Mapping[str, Any]) -> list[Section]:
    """What a full run tells and draws, from the numbers that it keeps."""
    labels, itself = numbers["labels"], numbers["weight_on_itself_when_fresh"]
    tried = {name: [Trial(**one) for one in found] for name, found in numbers["trials"].items()}
    loss = {name: interval(_losses(found)) for name, found in tried.items()}
    bleu = {name: interval([each.bleu for each in found]) for name, found in tried.items()}
    shown = bars(
        [
            Bars([bar(labels[name], loss[name]) for name in labels], "loss (nats a target token)", "Validation loss"),
            Bars([bar(labels[name], bleu[name]) for name in labels], "BLEU", "Translations"),
        ]
    )
    lines = [
        Curve(labels[name], *mean_curve([each.curve for each in tried[name]]))
        for name in (PAPER, "learned-one", "slices", "nothing")
    ]
    table = Table(
        ("variant", "parameters trained", "loss", "perplexity", "BLEU", "own weight when fresh"),
        [
            (
                labels[name], found[0].parameters, str(loss[name]),
                interval([each.perplexity for each in found]).mean, str(bleu[name]), itself[name],
            )
            for name, found in tried.items()
        ],
    )  # fmt: skip
    n_seeds = len(tried[PAPER])
    return [
        Section(
            "The same task, with less and less to learn",
            [
                "Each variant is trained by the same command on the same text for the same number of steps. `V = x` "
                "means that the projection is fixed to the identity: head i then reads its own slice of the columns "
                "of x, as the sketches do that cut x into heads without a matrix before. The output projection `w_o` "
                "is learned everywhere.",
                "Slices have fewer parameters; the row below them gives these back to the feed-forward networks, so "
                "that a difference is not one of size.",
            ],
            shown,
            "variants",
            table,
            f"Means over {n_seeds} seeds; whiskers: 95% t-intervals. Lower loss and higher BLEU are better.",
        ),
        Section(
            "While they learn",
            "With Q = K = x the score of a position with itself is its squared length, greater than with any other, "
            "so the layer begins as a copy of its input, and the score is the same in both directions.",
            curves([Chart(lines, "step", "training loss (nats a target token)")], width=6.4),
            "learning",
            caption=f"Training loss, dropout on, mean over {n_seeds} seeds.",
        ),
    ]
