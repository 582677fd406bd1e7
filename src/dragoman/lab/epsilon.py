"""Compare layer norm with batch norm, and places of epsilon in a norm, for the experiment norms."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional as F

# --- layer norm, batch norm -------------------------------------------------------------------------------------------


def dependence_on_others(n_others: int, trials: int, generator: torch.Generator) -> dict[str, float]:
    """Measure how much the normalised vectors of a sentence depend on the other sentences of its batch.

    Args:
        n_others: Number of other sentences, of 1 to 20 random tokens each, padded to the longest.
        trials: Number of batches with other companions.
        generator: Source of random numbers.

    Returns:
        For each norm, the mean distance of the output from its mean over all batches, relative to the length of that
        mean. The sentence has 5 tokens.
    """
    d_model, length = 64, 5
    sentence = torch.randn(length, d_model, generator=generator)
    outputs: dict[str, list[Tensor]] = {"layer norm": [], "batch norm": [], "batch norm without padding": []}
    for _ in range(trials):
        lengths = [length, *torch.randint(1, 21, (n_others,), generator=generator).tolist()]
        x = torch.zeros(len(lengths), max(lengths), d_model)
        real = torch.zeros(x.shape[:2], dtype=torch.bool)
        for row, n in enumerate(lengths):
            x[row, :n] = sentence if row == 0 else torch.randn(n, d_model, generator=generator)
            real[row, :n] = True
        outputs["layer norm"].append(F.layer_norm(x, (d_model,))[0, :length])
        for name, tokens in (("batch norm", x.flatten(0, 1)), ("batch norm without padding", x[real])):
            scaled = (x[0, :length] - tokens.mean(0)) / (tokens.var(0, unbiased=False) + 1e-5).sqrt()
            outputs[name].append(scaled)
    changes = {}
    for name, results in outputs.items():
        stacked = torch.stack(results)
        mean = stacked.mean(0)
        changes[name] = float((stacked - mean).norm(dim=(1, 2)).mean() / mean.norm())
    return changes


# --- epsilon ----------------------------------------------------------------------------------------------------------


def std_plus_eps(x: Tensor, eps: float) -> Tensor:
    """Return ``(x - mean) / (std + eps)``, as in one of the five documents."""
    return (x - x.mean(-1, keepdim=True)) / (x.std(-1, keepdim=True, unbiased=False) + eps)


def root_of_var_plus_eps(x: Tensor, eps: float) -> Tensor:
    """Return ``(x - mean) / sqrt(var + eps)``, as in the layer norm paper and in torch."""
    return (x - x.mean(-1, keepdim=True)) / torch.sqrt(x.var(-1, keepdim=True, unbiased=False) + eps)


def root_of_var_and_eps(x: Tensor, eps: float) -> Tensor:
    """Return ``(x - mean) / (sqrt(var) + eps)``; unlike torch's ``std``, it has an infinite gradient where var is 0."""
    return (x - x.mean(-1, keepdim=True)) / (torch.sqrt(x.var(-1, keepdim=True, unbiased=False)) + eps)


FORMULAS: dict[str, Callable[[Tensor, float], Tensor]] = {
    "(x − mean) / (std + eps)": std_plus_eps,
    "(x − mean) / sqrt(var + eps)": root_of_var_plus_eps,
    "(x − mean) / (sqrt(var) + eps)": root_of_var_and_eps,
    "torch's layer_norm": lambda x, eps: F.layer_norm(x, x.shape[-1:], eps=eps),
}


def spread_of_output(formula: str, spread: float, eps: float) -> float:
    """Return the standard deviation of the output for a row with standard deviation ``spread``, in float64."""
    x = torch.tensor([-1.0, 1.0], dtype=torch.float64).repeat(32) * spread
    return float(FORMULAS[formula](x, eps).std(unbiased=False))


def constant_row(formula: str, eps: float, dtype: torch.dtype) -> dict[str, str]:
    """Return the greatest number of output and gradient for a row of equal numbers, as text: "3e+05", "nan"."""
    x = torch.full((8,), 1.5, dtype=dtype, requires_grad=True)
    y = FORMULAS[formula](x, eps)
    (gradient,) = torch.autograd.grad((y * torch.arange(8.0).to(dtype)).sum(), x)
    return {"output": _greatest(y), "gradient": _greatest(gradient)}


def _greatest(x: Tensor) -> str:
    return f"{float(x.detach().double().abs().max()):.0g}"  # max gives nan if there is any
