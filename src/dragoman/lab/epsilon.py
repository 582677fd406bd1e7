"""What a norm averages over and where its epsilon stands, for the experiment norms."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional as F

# --- what is averaged over --------------------------------------------------------------------------------------------


def dependence_on_others(n_others: int, trials: int, generator: torch.Generator) -> dict[str, float]:
    """How far the output of one sentence moves when its ``n_others`` companions in the batch are others.

    The sentence has 5 tokens, its companions 1 to 20, padded to the longest. Relative to the length of the output.
    """
    d_model, length = 64, 5
    sentence = torch.randn(length, d_model, generator=generator)
    outputs: dict[str, list[Tensor]] = {"layer norm": [], "batch norm": [], "batch norm without padding": []}
    for _ in range(trials):
        lengths = [length, *torch.randint(1, 21, (n_others,), generator=generator).tolist()]
        x = torch.zeros(len(lengths), max(lengths), d_model)
        kept = torch.zeros(x.shape[:2], dtype=torch.bool)
        for row, n in enumerate(lengths):
            x[row, :n] = sentence if row == 0 else torch.randn(n, d_model, generator=generator)
            kept[row, :n] = True
        outputs["layer norm"].append(F.layer_norm(x, (d_model,))[0, :length])
        for name, tokens in (("batch norm", x.flatten(0, 1)), ("batch norm without padding", x[kept])):
            scaled = (x[0, :length] - tokens.mean(0)) / (tokens.var(0, unbiased=False) + 1e-5).sqrt()
            outputs[name].append(scaled)
    found = {}
    for name, results in outputs.items():
        stacked = torch.stack(results)
        mean = stacked.mean(0)
        found[name] = float((stacked - mean).norm(dim=(1, 2)).mean() / mean.norm())
    return found


# --- epsilon ----------------------------------------------------------------------------------------------------------


def std_plus_eps(x: Tensor, eps: float) -> Tensor:
    """``(x - mean) / (std + eps)``, as one of the five documents has it."""
    return (x - x.mean(-1, keepdim=True)) / (x.std(-1, keepdim=True, unbiased=False) + eps)


def root_of_var_plus_eps(x: Tensor, eps: float) -> Tensor:
    """``(x - mean) / sqrt(var + eps)``, as the layer norm paper and torch have it."""
    return (x - x.mean(-1, keepdim=True)) / torch.sqrt(x.var(-1, keepdim=True, unbiased=False) + eps)


def root_of_var_and_eps(x: Tensor, eps: float) -> Tensor:
    """``std + eps`` with the root written out, where torch's ``std`` takes care of a root of 0 in its gradient."""
    return (x - x.mean(-1, keepdim=True)) / (torch.sqrt(x.var(-1, keepdim=True, unbiased=False)) + eps)


FORMULAS: dict[str, Callable[[Tensor, float], Tensor]] = {
    "(x − mean) / (std + eps)": std_plus_eps,
    "(x − mean) / sqrt(var + eps)": root_of_var_plus_eps,
    "(x − mean) / (sqrt(var) + eps)": root_of_var_and_eps,
    "torch's layer_norm": lambda x, eps: F.layer_norm(x, x.shape[-1:], eps=eps),
}


def spread_of_output(formula: str, spread: float, eps: float) -> float:
    """The standard deviation of the output for a row with standard deviation ``spread``, in float64."""
    x = torch.tensor([-1.0, 1.0], dtype=torch.float64).repeat(32) * spread
    return float(FORMULAS[formula](x, eps).std(unbiased=False))


def constant_row(formula: str, eps: float, dtype: torch.dtype) -> dict[str, str]:
    """The greatest number of the output and of the gradient for a row of equal numbers: "0", "3e+05", "nan", "inf"."""
    x = torch.full((8,), 1.5, dtype=dtype, requires_grad=True)
    y = FORMULAS[formula](x, eps)
    (gradient,) = torch.autograd.grad((y * torch.arange(8.0).to(dtype)).sum(), x)
    return {"output": _kind(y), "gradient": _kind(gradient)}


def _kind(x: Tensor) -> str:
    return f"{float(x.detach().double().abs().max()):.0g}"  # of which nan is the greatest
