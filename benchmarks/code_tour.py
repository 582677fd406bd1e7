"""``docs/understand/code-tour.md``: NumPy and torch side by side, from the code itself, and what both give."""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

import dragoman
from benchmarks.harness.environments import ROOT
from dragoman import ModelConfig, Transformer, reference
from dragoman.model import attention, embedding, feed_forward, masks
from dragoman.model.layers import EncoderLayer
from dragoman.training.loss import label_smoothed_loss

PAGE = ROOT / "docs/understand/code-tour.md"
PACKAGE = Path(dragoman.__file__).parent
Pair = tuple[Any, Any]


class Stop(NamedTuple):
    """One piece of the paper in both languages."""

    title: str
    text: str
    numpy: Callable[..., Any]
    torch: Callable[..., Any]
    both: Callable[[], Pair]  # the same input through both


def _params(module: torch.nn.Module) -> dict[str, Any]:
    return {name: value.detach().numpy() for name, value in module.state_dict().items()}


def _config(**changes: Any) -> ModelConfig:
    sizes = dict(d_model=16, d_ff=32, n_heads=2, n_encoder_layers=1, n_decoder_layers=1, dropout=0.0)
    return ModelConfig(**{**sizes, "src_vocab_size": 30, "tgt_vocab_size": 30, **changes})


def _random(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(1))


def _attend() -> Pair:
    q, k, v = _random(3, 1, 2, 5, 8)
    keep = masks.causal_mask(5)
    ours, _ = reference.attend(q.numpy(), k.numpy(), v.numpy(), keep.numpy())
    return ours, attention.attend(q, k, v, keep)[0]


def _multi_head() -> Pair:
    module = attention.MultiHeadAttention(_config()).double()
    x = _random(1, 5, 16)
    every = np.ones((1, 1, 1, 5), dtype=np.bool_)
    ours, _ = reference.multi_head_attention(_params(module), x.numpy(), x.numpy(), every, 2)
    return ours, module(x, module.keys_values(x), None)


def _feed_forward() -> Pair:
    module = feed_forward.FeedForward(_config()).double()
    x = _random(1, 5, 16)
    return reference.feed_forward(_params(module), x.numpy())[0], module(x)


def _positions() -> Pair:
    return reference.sinusoidal_positions(50, 16), embedding.sinusoids(0, 50, 16)


def _embedding() -> Pair:
    module = embedding.TokenEmbedding(30, _config()).double()
    ids = torch.tensor([[4, 9, 3]])
    return reference.embed(module.weight.detach().numpy(), ids.numpy(), True), module(ids)


def _mask() -> Pair:
    ids = torch.tensor([[2, 9, 4, 0, 0]])
    return reference.target_mask(ids.numpy(), 0), masks.target_mask(ids, 0)


def _layer() -> Pair:
    config = _config()
    module = EncoderLayer(config).double()
    x = _random(1, 5, 16)
    every = np.ones((1, 1, 1, 5), dtype=np.bool_)
    return reference.encoder_layer(_params(module), config.model_dump(), x.numpy(), every)[0], module(x, None, None)


def _loss() -> Pair:
    logits, targets = _random(2, 5, 30), torch.tensor([[5, 7, 9, 3, 0], [4, 3, 0, 0, 0]])
    total, _ = label_smoothed_loss(logits, targets, 0, 0.1)  # a sum, where the reference gives the mean
    return reference.label_smoothed_loss(logits.numpy(), targets.numpy(), 0, 0.1), total / (targets != 0).sum()


def _model() -> Pair:
    config = _config()
    torch.manual_seed(1)
    model = Transformer(config).double()
    src, tgt = torch.tensor([[4, 9, 3, 0], [5, 6, 7, 3]]), torch.tensor([[2, 8], [2, 9]])
    return reference.forward(_params(model), config.model_dump(), src.numpy(), tgt.numpy())[0], model(src, tgt)


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
         feed_forward.FeedForward.forward, _feed_forward),
    Stop("A layer", "Section 3.1: attention, then feed-forward network, each with its residual and its norm. In NumPy "
         "`residual` takes the sub-layer as a function; in torch the line is written out.", reference.encoder_layer,
         EncoderLayer.forward, _layer),
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


def source(function: Callable[..., Any]) -> str:
    """The code of a function without its docstring, as it is in the repository."""
    text = textwrap.dedent(inspect.getsource(function))
    return re.sub(r'\n +"""(?:[^"]|"(?!""))*"""\n', "\n", text, count=1).rstrip()


def page() -> str:
    """The text; refuses to be made where the two sides differ."""
    parts = [HEAD]
    for stop in STOPS:
        gap = difference(stop.both())
        if gap > 1e-12:
            raise SystemExit(f"{stop.title}: NumPy and torch differ by {gap:.1e}")
        parts.append(
            f"## {stop.title}\n\n{stop.text}\n\nNumPy, {_link(stop.numpy)}:\n\n```python\n{source(stop.numpy)}\n```\n\n"
            f"Torch, {_link(stop.torch)}:\n\n```python\n{source(stop.torch)}\n```"
        )
    gap = difference(_model())
    if gap > 1e-10:
        raise SystemExit(f"the whole model: NumPy and torch differ by {gap:.1e}")
    return "\n\n".join([*parts, TAIL]) + "\n"


def _link(function: Callable[..., Any]) -> str:
    path = Path(inspect.getsourcefile(function) or "").relative_to(PACKAGE).as_posix()
    return f"[{path}](../../src/dragoman/{path})"


HEAD = """# The code, NumPy and torch side by side

[dragoman.reference](../../src/dragoman/reference/__init__.py) is the whole model in NumPy, forward and backward, one
small function for each equation. [dragoman.model](../../src/dragoman/model/__init__.py) is the same model in torch,
which differentiates by itself and runs fast. `python -m benchmarks.code_tour` makes this page from that code. It runs
both on the same input in float64, and stops where outputs differ by more than 10⁻¹². Docstrings are left out; follow
the links for them. [Equations](equations.md) has a row for every equation."""

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
    """Write the page."""
    PAGE.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
