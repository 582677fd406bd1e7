"""``docs/understand/code-tour.md`` and ``code-layers.md``: NumPy and torch side by side, and what both give."""

from __future__ import annotations

import inspect
import re
import textwrap
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from benchmarks.harness.environments import ROOT
from dragoman import ModelConfig, Transformer, reference
from dragoman.model import attention, embedding, layers, masks
from dragoman.model import feed_forward as network
from dragoman.training.loss import label_smoothed_loss

PAGE = ROOT / "docs/understand/code-tour.md"
SECOND = ROOT / "docs/understand/code-layers.md"
Pair = tuple[Any, Any]


class Stop(NamedTuple):
    """One piece of the paper in both languages."""

    title: str
    text: str
    numpy: Callable[..., Any]
    torch: Callable[..., Any]
    both: Callable[[], Pair]  # the same input through both; the page shows its code


def weights_of(module: torch.nn.Module) -> dict[str, Any]:
    """Return the weights of a module as arrays, by name."""
    return {name: value.detach().numpy() for name, value in module.state_dict().items()}


def small_config() -> ModelConfig:
    """Return the sizes of a model with one layer on each side."""
    sizes = dict(d_model=16, d_ff=32, n_heads=2, n_encoder_layers=1, n_decoder_layers=1, dropout=0.0)
    return ModelConfig(**sizes, src_vocab_size=30, tgt_vocab_size=30)


def random_tensor(*shape: int) -> torch.Tensor:
    """Return a tensor of normal numbers, the same at each call."""
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(1))


def same(ours: Any, theirs: Any) -> bool:
    """Return True if an array and what torch computed agree to 10⁻¹²."""
    theirs = theirs.detach().numpy() if isinstance(theirs, torch.Tensor) else theirs
    return np.allclose(ours, theirs, rtol=0, atol=1e-12)


def layer_norm(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, eps: float = 1e-5) -> torch.Tensor:
    """Normalise the last axis as ``nn.LayerNorm`` does, whose own code is not Python."""
    mean, variance = x.mean(-1, keepdim=True), x.var(-1, unbiased=False, keepdim=True)
    return weight * (x - mean) / (variance + eps).sqrt() + bias


def _attend() -> Pair:
    q, k, v = random_tensor(3, 1, 2, 5, 8)
    keep = masks.causal_mask(5)
    ours, _ = reference.attend(q.numpy(), k.numpy(), v.numpy(), keep.numpy())
    return ours, attention.attend(q, k, v, keep)[0]


def _multi_head() -> Pair:
    module = attention.MultiHeadAttention(small_config()).double()
    x = random_tensor(1, 5, 16)
    every = np.ones((1, 1, 1, 5), dtype=np.bool_)
    ours, _ = reference.multi_head_attention(weights_of(module), x.numpy(), x.numpy(), every, 2)
    return ours, module(x, module.keys_values(x), None)


def _feed_forward() -> Pair:
    module = network.FeedForward(small_config()).double()
    x = random_tensor(1, 5, 16)
    return reference.feed_forward(weights_of(module), x.numpy())[0], module(x)


def _positions() -> Pair:
    return reference.sinusoidal_positions(50, 16), embedding.sinusoids(0, 50, 16)


def _embedding() -> Pair:
    module = embedding.TokenEmbedding(30, small_config()).double()
    ids = torch.tensor([[4, 9, 3]])
    return reference.embed(module.weight.detach().numpy(), ids.numpy(), True), module(ids)


def _mask() -> Pair:
    ids = torch.tensor([[2, 9, 4, 0, 0]])
    return reference.target_mask(ids.numpy(), 0), masks.target_mask(ids, 0)


def _layer() -> Pair:
    config = small_config()
    module = layers.EncoderLayer(config).double()
    x = random_tensor(1, 5, 16)
    every = np.ones((1, 1, 1, 5), dtype=np.bool_)
    ours, _ = reference.encoder_layer(weights_of(module), config.model_dump(), x.numpy(), every)
    return ours, module(x, None, None)


def _layer_norm() -> Pair:
    module = torch.nn.LayerNorm(16).double()
    x = random_tensor(1, 5, 16)
    ours, _ = reference.layer_norm(weights_of(module), x.numpy())
    return np.stack((ours, ours)), torch.stack((layer_norm(x, module.weight, module.bias), module(x)))


def _loss() -> Pair:
    logits, targets = random_tensor(2, 5, 30), torch.tensor([[5, 7, 9, 3, 0], [4, 3, 0, 0, 0]])
    total, _ = label_smoothed_loss(logits, targets, 0, 0.1)  # a sum, where the reference gives the mean
    return reference.label_smoothed_loss(logits.numpy(), targets.numpy(), 0, 0.1), total / (targets != 0).sum()


def _model() -> Pair:
    config = small_config()
    torch.manual_seed(1)
    model = Transformer(config).double()
    src, tgt = torch.tensor([[4, 9, 3, 0], [5, 6, 7, 3]]), torch.tensor([[2, 8], [2, 9]])
    return reference.forward(weights_of(model), config.model_dump(), src.numpy(), tgt.numpy())[0], model(src, tgt)


STOPS = (
    Stop("Embeddings", "Rows of a matrix, times √d_model (section 3.4).", reference.embed,
         embedding.TokenEmbedding.forward, _embedding),
    Stop("Positions", "Sines on even channels, cosines on odd ones (section 3.5).", reference.sinusoidal_positions,
         embedding.sinusoids, _positions),
    Stop("Masks", "A target may see itself and what came before, and no padding. True = may attend.",
         reference.target_mask, masks.target_mask, _mask),
    Stop("Attention", "Eq. (1). NumPy's softmax hides scores as −∞; torch's fills with the least finite number "
         "and then sets hidden weights to zero. Both give zeros, never NaN, to a query that may attend nowhere.",
         reference.attend, attention.attend, _attend),
    Stop("Many heads", "Section 3.2.2. Torch projects keys and values in a method of its own, because a decoder keeps "
         "them between steps.", reference.multi_head_attention, attention.MultiHeadAttention.forward, _multi_head),
    Stop("Feed-forward network", "Eq. (2), at every position alike.", reference.feed_forward,
         network.FeedForward.forward, _feed_forward),
    Stop("Layer norm", "Mean and variance over the channels of one position. Torch's is written out here and compared "
         "with `nn.LayerNorm`.", reference.layer_norm, layer_norm, _layer_norm),
    Stop("An encoder layer", "Section 3.1: attention, then feed-forward network, each with its residual and its norm. "
         "In NumPy `residual` takes the sub-layer as a function; in torch the line is written out. The decoder's "
         "layer, in the same files, has one sub-layer more: attention to the encoder's output.",
         reference.encoder_layer, layers.EncoderLayer.forward, _layer),
    Stop("The loss", "Section 5.4: cross entropy against smoothed targets. NumPy gives the mean over target tokens, "
         "torch the sum.", reference.label_smoothed_loss,
         label_smoothed_loss, _loss),
)  # fmt: skip


def difference(both: Pair) -> float:
    """The greatest absolute difference of two arrays; 0 where all is equal."""
    ours, theirs = (np.asarray(one.detach() if isinstance(one, torch.Tensor) else one) for one in both)
    if ours.shape != theirs.shape:
        raise ValueError(f"shapes differ: {ours.shape} and {theirs.shape}")
    return float(np.abs(ours.astype(float) - theirs.astype(float)).max())


def source(function: Any) -> str:
    """The code of a function without its docstring, as it is in the repository; a method within its class."""
    text: str = textwrap.dedent(inspect.getsource(function))
    text = re.sub(r'\n +"""(?:[^"]|"(?!""))*"""\n', "\n", text, count=1).rstrip()
    owner = function.__qualname__.rpartition(".")[0]
    if not owner:
        return text
    base = function.__globals__[owner].__base__.__name__
    return f"class {owner}(nn.{base}):\n{textwrap.indent(text, '    ')}"


def imports(function: Any) -> str:
    """The lines that import what a function uses, from the module that it is in; annotations are not evaluated."""
    codes = [compile(f"from __future__ import annotations\n{source(function)}", "", "exec")]
    names: set[str] = set()
    while codes:
        code = codes.pop()
        names |= set(code.co_names)
        codes += [constant for constant in code.co_consts if isinstance(constant, types.CodeType)]
    used = {name: function.__globals__[name] for name in names if name in function.__globals__}
    in_preamble = {"annotations", "np", "torch", "nn", function.__qualname__.partition(".")[0], function.__name__}
    modules = {name for name, value in used.items() if isinstance(value, types.ModuleType)} - in_preamble
    lines = [f"import {name}" for name in sorted(modules)]
    others = sorted(set(used) - modules - in_preamble)
    if others:
        line = f"from {function.__module__} import {', '.join(others)}"
        separate = "".join(f"    {name},\n" for name in others)
        lines.append(line if len(line) <= 120 else f"from {function.__module__} import (\n{separate})")
    return "\n\n".join(lines) + "\n\n\n" if lines else ""


def comparison(both: Callable[[], Pair]) -> str:
    """The code that sends the same input through both and prints True if they agree."""
    body = textwrap.dedent(inspect.getsource(both).split("\n", 1)[1]).rstrip()
    return re.sub(r"^return (.+)\Z", r"print(same(\1))", body, flags=re.MULTILINE | re.DOTALL)


def pages() -> dict[Path, str]:
    """The texts of both pages; refuses to be made where the two sides differ."""
    helpers = "\n\n\n".join(map(source, (weights_of, small_config, random_tensor, same)))
    parts = {stop.title: section(stop) for stop in STOPS}
    gap = difference(_model())
    if gap > 1e-10:
        raise SystemExit(f"the whole model: NumPy and torch differ by {gap:.1e}")
    later = list(parts).index("An encoder layer") if "An encoder layer" in parts else len(parts)
    first, second = list(parts.values())[:later], list(parts.values())[later:]
    return {
        PAGE: "\n\n".join([f"{HEAD}\n\n```python\n{PREAMBLE}\n\n\n{helpers}\n```", *first]) + "\n",
        SECOND: "\n\n".join([SECOND_HEAD, *second, TAIL]) + "\n",
    }


def section(stop: Stop) -> str:
    """One piece of the paper: both codes, and what compares them."""
    gap = difference(stop.both())
    if gap > 1e-12:
        raise SystemExit(f"{stop.title}: NumPy and torch differ by {gap:.1e}")
    numpy, torch_ = (f"```python\n{imports(side)}{source(side)}\n```" for side in (stop.numpy, stop.torch))
    return (
        f"## {stop.title}\n\n{stop.text}\n\nNumPy, {_link(stop.numpy)}:\n\n{numpy}\n\n"
        f"Torch, {_link(stop.torch)}:\n\n{torch_}\n\nBoth:\n\n```python\n{comparison(stop.both)}\n```"
    )


def _link(function: Callable[..., Any]) -> str:
    path = Path(inspect.getsourcefile(function) or "").relative_to(ROOT).as_posix()
    return f"[{path.removeprefix('src/dragoman/')}](../../{path})"


PREAMBLE = """from __future__ import annotations

import numpy as np
import torch
from torch import nn

from dragoman import ModelConfig, reference
from dragoman.model import attention, embedding, layers, masks
from dragoman.model import feed_forward as network
from dragoman.training.loss import label_smoothed_loss"""
"""What is pasted before the pairs."""

HEAD = """# The code, NumPy and torch side by side

[dragoman.reference](../../src/dragoman/reference/__init__.py) is the whole model in NumPy, forward and backward, one
small function for each equation. [dragoman.model](../../src/dragoman/model/__init__.py) is the same model in torch,
which differentiates by itself and runs fast. This page is made from that code by `python -m benchmarks.code_tour`,
which also runs both on the same input in float64 and stops where they differ. Docstrings are left out; follow the
links for them. [Equations](equations.md) has a row for every equation.

All of it can be pasted into a notebook or Python 3.13, this first. The code under *Both* then prints True. [The second
part](code-layers.md) has a layer and the loss."""

SECOND_HEAD = """# The code: a layer, the loss and the whole model

The second part of [NumPy and torch side by side](code-tour.md), whose blocks are pasted first."""

TAIL = """## The whole model

`reference.forward` and `Transformer.forward` give the same logits to 10⁻¹⁰, with the same weights. For gradients, all
variants and the optimiser see [equations](equations.md) and its tests.
[examples/transformer_in_numpy.py](../../examples/transformer_in_numpy.py) is the model in one file of NumPy, and
`examples/numpy_beside_torch.py` compares gradients in a few seconds.

| | NumPy | Torch |
|---|---|---|
| gradients | written by hand: `attend_backward` next to `attend` | autograd |
| swapped axes | `reshape` copies where it must | `view` refuses what is not contiguous; `flatten`, `reshape` copy |
| swapping the last two | `np.swapaxes(k, -1, -2)` | `k.mT` |
| a matrix of weights | `x @ w.T + b` | `nn.Linear`: rows are outputs there too |
| softmax | subtract the greatest, by hand | `softmax` does so |
| layer norm | √(var + ε), var over n | `nn.LayerNorm`: the same |
| a batch | first axis everywhere, as in torch; teaching code often leaves it out | first axis |
| fresh weights | drawn by `initialise`, from the generator it is given | each layer draws its own, then the model |

The optimised implementation that trains and decodes, [dragoman.fast](../../src/dragoman/fast/__init__.py), is
compared with the torch model in the tests."""


def main() -> None:
    """Write the pages."""
    for path, text in pages().items():
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
