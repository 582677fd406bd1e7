"""Train stacks with other norms, without residuals or without warm-up on reversed letters, for the experiment norms."""

from __future__ import annotations

import itertools
import math
import types
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from dragoman.explanation.figures import Chart, Curve, curves
from dragoman.explanation.style import BLUE, GREEN, ORANGE, PURPLE
from dragoman.lab.experiment import Claim, Section, Table
from dragoman.lab.letters import accuracy, endless, reversals, small_model, updates, warm_cosine
from dragoman.model.layers import append
from dragoman.model.transformer import Transformer
from dragoman.training.loss import label_smoothed_loss

SHORTEST, LONGEST = 3, 8
"""Letters in a sentence."""

LEARNED = 0.5
"""Loss in nats per letter below which a model counts as having learned the task; guessing has 3.0."""

PEAK_RATE = 2e-3
"""Peak learning rate of the trainings that do not name another."""

WARMUP = 100
"""Steps of warm-up of the trainings that do not name another number."""


def gradient_by_layer(norm: str, n_layers: int, seed: int, d_model: int = 128) -> dict[str, list[float]]:
    """Return the gradient norm of each layer's ``w_2`` in a fresh encoder and decoder, ``n_layers`` numbers each."""
    model = small_model(
        seed, norm=norm, n_encoder_layers=n_layers, n_decoder_layers=n_layers, d_model=d_model, d_ff=2 * d_model
    )
    src, tgt_in, tgt_out = reversals(16, 16, 16, 20, torch.Generator().manual_seed(seed))
    loss, _ = label_smoothed_loss(model(src, tgt_in), tgt_out, 0, 0.0)
    torch.autograd.backward(loss / tgt_out.numel())
    both: dict[str, Any] = {"encoder": model.encoder.layers, "decoder": model.decoder.layers}
    return {
        side: [float(layer.feed_forward.w_2.weight.grad.norm()) for layer in layers] for side, layers in both.items()
    }


@torch.no_grad()
def residual_shares(norm: str, n_layers: int, seed: int) -> list[float]:
    """Return the share of ``x`` in ``x + f(x)`` for each sub-layer of a fresh encoder, ``2 * n_layers`` numbers.

    The share of ``x`` in the sum ``s = x + f(x)`` is ``<x, s> / <s, s>``.
    """
    model = small_model(seed, norm=norm, n_encoder_layers=n_layers)
    # Hooks record two tensors for each sub-layer, in the order in which they are computed. With pre-norm these are
    # the input x of its norm, then its output f(x). With post-norm they are f(x), then the input x + f(x) of its norm.
    recorded: list[Tensor] = []

    def record_input(_: nn.Module, inputs: tuple[Tensor, ...]) -> None:
        recorded.append(inputs[0])

    def record_output(_: nn.Module, inputs: Any, output: Tensor) -> None:
        recorded.append(output)

    layers: Any = model.encoder.layers
    for layer in layers:
        for sub_layer, its_norm in ((layer.self_attn, layer.norm1), (layer.feed_forward, layer.norm2)):
            sub_layer.register_forward_hook(record_output)
            its_norm.register_forward_pre_hook(record_input)
    model.eval().encode(reversals(16, 16, 16, 20, torch.Generator().manual_seed(seed)).src)
    shares = []
    for first, second in zip(recorded[::2], recorded[1::2], strict=True):
        x, s = (first, first + second) if norm == "pre" else (second - first, second)
        shares.append(float((x * s).sum() / (s * s).sum()))
    return shares


def residual_path(norm: str, n_layers: int, seed: int) -> list[float]:
    """Return the gradient that goes down a fresh encoder by the residual path alone, at the output of each layer.

    Sub-layers get no gradient: what they add is a constant. The gradient is a share of that at the last layer's
    output, so the last of the ``n_layers`` numbers is 1.
    """
    model = small_model(seed, norm=norm, n_encoder_layers=n_layers)
    outputs: list[Tensor] = []

    def cut(_: nn.Module, inputs: Any, output: Tensor) -> Tensor:
        return output.detach()

    def record(_: nn.Module, inputs: Any, output: Tensor) -> None:
        outputs.append(output)

    layers: Any = model.encoder.layers
    for layer in layers:
        layer.self_attn.register_forward_hook(cut)
        layer.feed_forward.register_forward_hook(cut)
        layer.register_forward_hook(record)
    model.eval().encode(reversals(16, 16, 16, 20, torch.Generator().manual_seed(seed)).src)
    v = torch.randn(outputs[-1].shape, generator=torch.Generator().manual_seed(seed))
    gradients = torch.autograd.grad((outputs[-1] * v).sum(), outputs)
    return [float(gradient.norm() / v.norm()) for gradient in gradients]


# --- other layers -----------------------------------------------------------------------------------------------------


def without_residuals(model: Transformer) -> Transformer:
    """Replace the layers of a post-norm model by ones without residuals, ``norm(sublayer(x))``; return the model."""

    def encoder_layer(self: Any, x: Tensor, mask: Tensor | None, angles: Tensor | None, *_: Any) -> Tensor:
        x = self.norm1(self.self_attn(x, self.self_attn.keys_values(x, angles), mask, angles))
        return self.norm2(self.feed_forward(x))

    def decoder_layer(
        self: Any, x: Tensor, past: Any, memory: Any, tgt_mask: Tensor, src_mask: Tensor, angles: Any, *_: Any
    ) -> Any:
        past = append(past, self.self_attn.keys_values(x, angles))
        x = self.norm1(self.self_attn(x, past, tgt_mask, angles))
        x = self.norm2(self.cross_attn(x, memory, src_mask))
        return self.norm3(self.feed_forward(x)), past

    for stack, forward in ((model.encoder, encoder_layer), (model.decoder, decoder_layer)):
        for layer in stack.layers:
            layer.forward = types.MethodType(forward, layer)
    return model


class TokenBatchNorm(nn.BatchNorm1d):
    """Batch norm of each channel over all tokens of a batch, padding included: a naive replacement of layer norm."""

    def forward(self, x: Tensor) -> Tensor:
        """Normalise ``x``, ``(B, L, d_model)``, to the same shape."""
        return super().forward(x.mT).mT


def with_batch_norm(model: Transformer) -> Transformer:
    """Replace every layer norm of a model by a batch norm; return the model."""
    for layer in (*model.encoder.layers, *model.decoder.layers):
        for name in ("norm1", "norm2", "norm3"):
            if getattr(layer, name, None) is not None:
                setattr(layer, name, TokenBatchNorm(model.config.d_model))
    return model


# --- trainings --------------------------------------------------------------------------------------------------------

VARIANTS: dict[str, dict[str, Any]] = {
    "post-norm, warm-up": dict(norm="post", layers=6),
    "post-norm, no warm-up": dict(norm="post", layers=6, warmup=1),
    "pre-norm, warm-up": dict(norm="pre", layers=6),
    "pre-norm, no warm-up": dict(norm="pre", layers=6, warmup=1),
    "no residuals": dict(norm="post", layers=6, change="no residuals"),
    "post-norm, 2 layers": dict(norm="post", layers=2),
    "no residuals, 2 layers": dict(norm="post", layers=2, change="no residuals"),
    "batch norm, 2 layers": dict(norm="post", layers=2, change="batch norm"),
}


def train_variant(variant: Mapping[str, Any], seed: int, steps: int) -> dict[str, Any]:
    """Train one variant.

    Args:
        variant: ``norm`` ("pre" or "post"), ``layers`` on each side, ``warmup`` in steps (100 if it is missing),
            ``rate``, the peak rate (``PEAK_RATE`` if it is missing), ``change`` ("no residuals", "batch norm" or
            missing), and ``stop``, true if the training ends once the task is learned.
        seed: Seed of the weights and the data.
        steps: Length of the training.

    Returns:
        ``curve``: the mean loss of each 10 steps; ``last``: the mean loss of the last 20; ``learned_at``: the step by
        which the mean of 20 was below ``LEARNED``, or None; ``accuracy`` on new sentences.
    """
    layers, change = variant["layers"], variant.get("change", "")
    model = small_model(seed, norm=variant["norm"], n_encoder_layers=layers, n_decoder_layers=layers)
    if change == "no residuals":
        model = without_residuals(model)
    elif change == "batch norm":
        model = with_batch_norm(model)
    batches = itertools.islice(endless(32, SHORTEST, LONGEST, seed=seed), steps)
    warmup = min(variant.get("warmup", WARMUP), steps // 2)
    losses: list[float] = []
    for loss in updates(model, batches, warm_cosine(steps, variant.get("rate", PEAK_RATE), warmup)):
        losses.append(loss)
        if variant.get("stop") and len(losses) >= 20 and np.mean(losses[-20:]) < LEARNED:
            break
    smooth = np.convolve(losses, np.full(20, 1 / 20), "valid")
    below = np.flatnonzero(smooth < LEARNED)
    test = reversals(200, SHORTEST, LONGEST, 20, torch.Generator().manual_seed(1000 + seed))
    return {
        "curve": [float(np.mean(losses[i : i + 10])) for i in range(0, len(losses), 10)],
        "last": float(np.mean(losses[-20:])),
        "learned_at": int(below[0]) + 20 if len(below) else None,
        "accuracy": accuracy(model, test),
    }


# --- the report ------------------------------------------------------------------------------------------------------


def _steps_to_learn(trials: list[dict[str, Any]]) -> list[int | None]:
    return [trial["learned_at"] for trial in trials]


def _by_seed(steps: Sequence[int | None]) -> str:
    """Return the steps of all seeds: "513, 474, 492", or "never" if none learned."""
    return ", ".join("never" if s is None else str(s) for s in steps) if any(steps) else "never"


def trained_claims(numbers: Mapping[str, Any]) -> list[Claim]:
    """Return the claims about the trainings.

    Args:
        numbers: Has ``trained``, the results of ``train_variant`` by variant and seed, and ``steps``.
    """
    trained = numbers["trained"]
    if set(VARIANTS) - set(trained):
        return [Claim("Warm-up, residuals and batch norm in training", None, "measured by a full run")]
    last = {name: [trial["last"] for trial in trials] for name, trials in trained.items()}
    learned = {name: _steps_to_learn(trials) for name, trials in trained.items()}
    steps_by_seed = {name: _by_seed(steps) for name, steps in learned.items()}
    accuracy = {name: float(np.mean([trial["accuracy"] for trial in trials])) for name, trials in trained.items()}
    with_path, without_path = learned["post-norm, 2 layers"], learned["no residuals, 2 layers"]
    loss = float(np.mean(last["no residuals, 2 layers"]))
    pairs = [(a, b) for a, b in zip(with_path, without_path, strict=True) if a is not None and b is not None]
    ratios = [b / a for a, b in pairs]
    least = numbers["steps"] / max((s for s in with_path if s is not None), default=math.inf)
    speedup = (
        f"{min(ratios):.1f} to {max(ratios):.1f} times as many steps without"
        if ratios
        else f"without, {least:.1f} times as many steps are not enough (the loss ends at {loss:.1f} nats)"
    )
    return [
        Claim(
            f"At a peak rate of {PEAK_RATE:g} post-norm needs warm-up",
            _apart(last["post-norm, warm-up"], last["post-norm, no warm-up"]),
            f"6 + 6 layers, steps to {LEARNED} nats: {steps_by_seed['post-norm, warm-up']} with, "
            f"{steps_by_seed['post-norm, no warm-up']} without",
        ),
        Claim(
            "Pre-norm learns without it",
            None not in learned["pre-norm, no warm-up"],
            f"{steps_by_seed['pre-norm, warm-up']} with, {steps_by_seed['pre-norm, no warm-up']} without",
        ),
        Claim(
            "On this task residuals make training 2 to 3 times as fast, as one of the five documents says in general",
            bool(ratios) and len(pairs) == len(without_path) and all(2 <= ratio <= 3 for ratio in ratios),
            f"2 + 2 layers: {speedup}",
        ),
        Claim(
            "Layer norm does better than batch norm on sentences of many lengths",
            _apart(
                [1 - t["accuracy"] for t in trained["post-norm, 2 layers"]],
                [1 - t["accuracy"] for t in trained["batch norm, 2 layers"]],
            ),
            f"right letters: {accuracy['post-norm, 2 layers']:.1%} against {accuracy['batch norm, 2 layers']:.1%}",
        ),
    ]


def _apart(smaller: list[float], greater: list[float]) -> bool | None:
    """Return True if all of ``smaller`` are below all of ``greater``, False if all are above, None if they overlap."""
    if max(smaller) < min(greater):
        return True
    return False if min(smaller) > max(greater) else None


LOOKS = {
    "post-norm, warm-up": (BLUE, False), "post-norm, no warm-up": (BLUE, True), "pre-norm, warm-up": (ORANGE, False),
    "pre-norm, no warm-up": (ORANGE, True), "no residuals": (GREEN, False), "post-norm, 2 layers": (BLUE, False),
    "no residuals, 2 layers": (GREEN, True), "batch norm, 2 layers": (PURPLE, False),
}  # fmt: skip
"""Colour of each variant, and True if its line is dashed; related variants have one colour."""


def trained_sections(numbers: Mapping[str, Any]) -> list[Section]:
    """Return the section with the trainings as curves and as a table."""
    trained, steps = numbers["trained"], numbers["steps"]

    def chart(names: list[str], title: str) -> Chart:
        lines = []
        for name in names:
            for i, trial in enumerate(trained.get(name, [])):
                steps_drawn = [10 * (j + 1) for j in range(len(trial["curve"]))]
                colour, dashed = LOOKS[name]
                lines.append(Curve(name if i == 0 else "", steps_drawn, trial["curve"], colour=colour, dashed=dashed))
        return Chart(lines, "step", "loss (nats a letter)", title, y_range=(-0.08, 3.6))

    if not any(trained.values()):
        return []
    rows = [
        (
            name,
            float(np.mean([trial["last"] for trial in trials])),
            _by_seed(_steps_to_learn(trials)),
            f"{np.mean([trial['accuracy'] for trial in trials]):.1%}",
        )
        for name, trials in trained.items()
    ]
    depth6 = [name for name in list(VARIANTS)[:4] if name in trained]
    others = [name for name in list(VARIANTS)[4:] if name in trained]
    charts = [chart(names, title) for names, title in ((depth6, "6 + 6 layers"), (others, "Other stacks")) if names]
    return [
        Section(
            "Trained",
            f"Small models (d_model = 64) learn to write 3 to 8 letters backwards, {steps} steps, peak rate 2e-3, "
            "three seeds, a line each.",
            curves(charts, n_columns=1, width=7.2, height=3.3),
            "trained",
            Table(("variant", "last loss (nats)", f"steps to {LEARNED} nats, by seed", "right letters"), rows),
            "Training loss, means of 10 steps.",
        )
    ]
