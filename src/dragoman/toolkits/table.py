"""Table of the model variants that each format can hold, made from the answers of ``why_not``.

The site shows the same table in docs/reference/formats.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from dragoman.config import ModelConfig
from dragoman.toolkits import TOOLKITS, writers
from dragoman.toolkits.writing import format_of

VARIANTS: dict[str, dict[str, Any]] = {
    "the paper's: post-norm, ReLU, sinusoidal positions": {},
    "pre-norm": dict(norm="pre"),
    "GELU": dict(activation="gelu"),
    "Swish": dict(activation="swish"),
    "SwiGLU": dict(activation="swiglu"),
    "learned positions, post-norm": dict(positions="learned"),
    "learned positions, pre-norm": dict(positions="learned", norm="pre"),
    "rotary positions": dict(positions="rotary"),
    "`share_embeddings: decoder`": dict(share_embeddings="decoder"),
    "`share_embeddings: none`": dict(share_embeddings="none"),
    "two vocabularies, post-norm": dict(share_embeddings="decoder", tgt_vocab_size=9000),
    "two vocabularies, pre-norm": dict(share_embeddings="decoder", tgt_vocab_size=9000, norm="pre"),
    "`scale_embeddings: false`": dict(scale_embeddings=False),
    "`src_eos: false`": dict(src_eos=False),
    "`attention_bias: false`": dict(attention_bias=False),
    "`generator_bias: true`": dict(generator_bias=True),
    "`norm_eps: 1e-6`": dict(norm_eps=1e-6),
    "heads of another width (d_k = d_v)": dict(d_k=32, d_v=32),
    "heads with d_k ≠ d_v": dict(d_k=32, d_v=64),
    "no encoder (a language model)": dict(n_encoder_layers=0),
    "no decoder": dict(n_decoder_layers=0),
    "RNN, GRU, LSTM": dict(architecture="gru"),
    "convolutions": dict(architecture="conv"),
}
"""Rows of the table, each with its changes to the paper's base model."""


class Answers(NamedTuple):
    """Answers of all formats about all models."""

    rows: dict[str, list[int]]  # by model, for each format: 0 for exact, or the number of the reason why not
    reasons: list[str]
    quantizations: dict[str, tuple[str, ...]]  # by format
    notes: dict[str, str]  # by format: what may differ although it is exact


def answers(models: Mapping[str, ModelConfig] | None = None) -> Answers:
    """Return for each model and format whether the format can hold the model.

    Args:
        models: Text of the first column, and its model; None: ``VARIANTS``.
    """
    if models is None:
        sizes = dict(src_vocab_size=8000, tgt_vocab_size=8000)
        models = {variant: ModelConfig(**{**sizes, **changes}) for variant, changes in VARIANTS.items()}
    forms = [format_of(name) for name in writers()]
    titles_of: dict[str, list[str]] = {}  # by reason: the formats that give it
    rows: dict[str, list[int]] = {}
    for model, config in models.items():
        rows[model] = []
        for form in forms:
            if reason := form.why_not(config):
                titles = titles_of.setdefault(reason, [])
                if form.TITLE not in titles:
                    titles.append(form.TITLE)
            rows[model].append(list(titles_of).index(reason) + 1 if reason else 0)
    reasons = [f"{', '.join(titles)}: {reason}" for reason, titles in titles_of.items()]
    quantizations = {name: form.QUANTIZATIONS for name, form in zip(writers(), forms, strict=True)}
    notes = {toolkit.name: toolkit.beyond_exact for toolkit in TOOLKITS if toolkit.beyond_exact}
    return Answers(rows, reasons, quantizations, notes)


def table(models: Mapping[str, ModelConfig] | None = None) -> str:
    """Return the answers in Markdown: for each model and format ``exact``, or ``no`` and the number of a reason.

    The last row lists each format's quantizations; the reasons, and notes on what ``exact`` leaves out, follow below.

    Args:
        models: As ``answers``.
    """
    summary = answers(models)
    rows = [["", *writers()], ["---"] * (1 + len(writers()))]
    rows += [[model, *(f"no ({n})" if n else "exact" for n in numbers)] for model, numbers in summary.rows.items()]
    rows.append(["`--quantization`", *(", ".join(names) for names in summary.quantizations.values())])
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    if summary.reasons:
        lines += ["", *(f"{n}. {reason}" for n, reason in enumerate(summary.reasons, 1))]
    for name, note in summary.notes.items():
        lines += ["", f"`exact` for {name} is about numbers. {note}"]
    return "\n".join(lines)
