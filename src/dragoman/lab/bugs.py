"""Make the classic bugs of the Transformer on purpose, one per function, and compare each with the correct code.

    print(mask_added().symptom)

The experiment pitfalls shows them all.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from dragoman.config import ModelConfig
from dragoman.lab.letters import FIRST, accuracy, endless, learn, reversals, small_model, warm_cosine
from dragoman.model.attention import attend
from dragoman.model.embedding import sinusoids
from dragoman.model.layers import EncoderLayer
from dragoman.model.masks import causal_mask


class Symptom(NamedTuple):
    """Visible effect of a bug: an error, or only worse numbers."""

    loud: bool  # True if the bug raises an error
    symptom: str  # description with numbers
    numbers: dict[str, float]


def _error(action: Callable[[], Any]) -> Symptom:
    """Run ``action`` and return the error that it raises, in one line."""
    try:
        action()
    except Exception as error:
        first = re.sub(r"(?<!\S)\S*<locals>\.", "", " ".join(str(error).split()))
        return Symptom(True, f"{type(error).__name__}: {first[:110]}{'...' if len(first) > 110 else ''}", {})
    return Symptom(False, "no error", {})


def _random(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def _layer(**options: Any) -> EncoderLayer:
    torch.manual_seed(0)
    layer = EncoderLayer(ModelConfig(d_model=32, n_heads=4, d_ff=64, dropout=0.0, src_vocab_size=9, tgt_vocab_size=9))
    return layer.eval()


# --- masks ------------------------------------------------------------------------------------------------------------


def mask_added() -> Symptom:
    """Add a bool mask to the scores (``scores + mask``): true counts as 1, and hides nothing."""
    scores, keep = _random(64, 64), causal_mask(64)[0, 0]
    hidden = ((scores + keep).softmax(-1) * ~keep).sum(-1).mean().item()
    right = (scores.masked_fill(~keep, -math.inf).softmax(-1) * ~keep).sum(-1).mean().item()
    return Symptom(False, f"{hidden:.0%} of all attention lies on hidden keys instead of {right:.0%}",
                {"hidden": hidden, "right": right})  # fmt: skip


def padded_queries() -> Symptom:
    """Hide padded queries as well as keys, and fill with -inf: rows that see no key become 0/0, which is NaN."""
    real = torch.ones(10, dtype=torch.bool)
    real[7:] = False
    mask = real[:, None] & real[None, :]
    x, shares = _random(10, 16), []
    for _ in range(2):
        weights = (x @ x.T / 4).masked_fill(~mask, -math.inf).softmax(-1)
        x = weights @ x  # the weight of a hidden value is 0, but 0 times NaN is NaN
        shares.append(x.isnan().float().mean().item())
    correct = _random(1, 1, 10, 16)
    for _ in range(2):
        correct = attend(correct, correct, correct, mask[None, None])[0]
    return Symptom(False, f"3 of 10 rows are padding: after one layer {shares[0]:.0%} of all numbers are NaN, after "
                f"two {shares[1]:.0%}", {"one_layer": shares[0], "two_layers": shares[1],
                                     "right": correct.isnan().float().mean().item()})  # fmt: skip


def keys_in_the_query_s_shape() -> Symptom:
    """Shape the keys with the number of queries (``k.view(batch, n_queries, ...)``), which only fits self-attention."""
    q, k = _random(2, 5, 32), _random(2, 7, 32)
    return _error(lambda: k.view(q.size(0), q.size(1), 4, 8))


def causal_encoder() -> Symptom:
    """Build the causal mask into multi-head attention, so that the encoder gets it too."""

    def reach(mask: Tensor | None) -> float:
        layer = _layer()
        x = _random(1, 8, 32).requires_grad_()
        (gradient,) = torch.autograd.grad(layer(x, mask, None)[0, 0, 0], x)
        return float(gradient[0, 1:].norm())

    wrong, right = reach(causal_mask(8)), reach(None)
    return Symptom(False, f"the first word's vector depends on the words after it by {wrong:.1g} instead of "
                f"{right:.1g}: half of what the encoder is for is gone", {"wrong": wrong, "right": right})  # fmt: skip


def minus_1e9_in_half() -> Symptom:
    """Fill masked float16 scores with -1e9, which float16 cannot hold."""
    return _error(lambda: _random(4, 4).half().masked_fill(torch.ones(4, 4).triu(1).bool(), -1e9))


# --- shapes -----------------------------------------------------------------------------------------------------------


def view_without_contiguous() -> Symptom:
    """Call ``view`` on a transposed tensor, which fails; ``reshape`` without transposing mixes heads and tokens."""
    heads = _random(2, 4, 5, 8)  # (B, H, L, d_k)
    seen = _error(lambda: heads.transpose(1, 2).view(2, 5, 32))
    silent = (heads.reshape(2, 5, 32) - heads.transpose(1, 2).reshape(2, 5, 32)).norm() / heads.norm()
    return seen._replace(
        symptom=f"{seen.symptom} (reshape without transposing raises nothing, and is off by {silent:.0%})",
        numbers={"silent": float(silent)},
    )


# --- layers -----------------------------------------------------------------------------------------------------------


def norm_dropped() -> Symptom:
    """Call ``self.norm1(x + y)`` and drop the result, because ``x =`` is missing."""

    def spread(dropped: bool) -> float:
        layer, x = _layer(), _random(1, 20, 32)
        for _ in range(12):
            x = x + layer.self_attn(x, layer.self_attn.keys_values(x), None)
            x = x if dropped else layer.norm1(x)
            x = x + layer.feed_forward(x)
            x = x if dropped else layer.norm2(x)
        return float(x.std())

    with torch.no_grad():
        wrong, right = spread(True), spread(False)
    return Symptom(False, f"after 12 layers the vectors spread by {wrong:.3g} instead of {right:.2f}",
                {"wrong": wrong, "right": right})  # fmt: skip


def norm2_of_memory() -> Symptom:
    """Normalise the memory by ``norm2`` in a pre-norm decoder, although the encoder's last norm has done it."""
    memory = F.layer_norm(_random(1, 10, 64), (64,))
    gain, bias = 1 + 0.3 * _random(2, 64, seed=1)[0], 0.3 * _random(2, 64, seed=1)[1]
    fresh = F.layer_norm(memory, (64,))
    trained = F.layer_norm(memory, (64,), gain, bias)
    at_first, later = (float((x - memory).norm() / memory.norm()) for x in (fresh, trained))
    symptom = (
        f"the memory is off by {at_first:.0e} in a fresh model, so that every comparison at the start agrees, and by "
        f"{later:.0%} once gains have learned"
    )
    return Symptom(False, symptom, {"fresh": at_first, "trained": later})


def decoder_of_encoder_layers() -> Symptom:
    """Build the decoder of encoder layers, and call them with the memory."""
    layer, x = _layer(), _random(1, 4, 32)

    class AsInTheDocument(nn.Module):
        def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
            return layer(x, mask, None)

    block: Any = AsInTheDocument()
    return _error(lambda: block(x, _random(1, 6, 32), causal_mask(4), None))


def nested_forward() -> Symptom:
    """Indent ``def forward`` once too much, so that it becomes a local function of ``__init__``."""

    class Embedding(nn.Module):
        def __init__(self) -> None:
            super().__init__()

            def forward(x: Tensor) -> Tensor:
                return x

    return _error(lambda: Embedding()(_random(2, 3)))


def no_super_init() -> Symptom:
    """Assign a layer in a module whose ``__init__`` does not call ``super().__init__()``."""

    class FeedForward(nn.Module):
        def __init__(self) -> None:
            self.fc1 = nn.Linear(4, 8)

    return _error(FeedForward)


def arguments_swapped() -> Symptom:
    """Pass three sizes of an embedding in the wrong order, which no type check finds: all are integers."""
    vocab_size, d_model, max_len = 10_000, 512, 256

    def embedding(vocab_size: int, d_model: int, max_len: int) -> nn.Embedding:
        return nn.Embedding(vocab_size, d_model)

    swapped = embedding(d_model, max_len, vocab_size)
    ids = torch.tensor([[5, 600]])
    seen = _error(lambda: swapped(ids))
    width = swapped(ids[:, :1]).size(-1)
    return seen._replace(symptom=f"{seen.symptom} from id {d_model} on; below, vectors of {width} instead of {d_model}")


# --- training ---------------------------------------------------------------------------------------------------------


@torch.no_grad()
def fraction_right(model: nn.Module, src: Tensor, tgt_out: Tensor) -> float:
    """Return the fraction of sentences that greedy search gets entirely right."""
    written = torch.full((len(src), 1), 2)
    model.eval()
    for _ in range(tgt_out.size(1)):
        written = torch.cat((written, model(src, written)[:, -1].argmax(-1, keepdim=True)), 1)
    real = tgt_out != 0
    return float(((written[:, 1:] == tgt_out) | ~real).all(1).double().mean())


def not_shifted(steps: int = 200) -> Symptom:
    """Train with ``tgt_in = tgt_out``, so that the decoder reads the word that it must predict."""
    test = reversals(200, 2, 4, 4, torch.Generator().manual_seed(9))
    numbers = {}
    for name in ("wrong", "right"):
        model = small_model(1, n_letters=4, d_model=32, d_ff=32, n_encoder_layers=1, n_decoder_layers=1)
        batches = endless(32, 2, 4, 4)
        pairs = (pair if name == "right" else pair._replace(tgt_in=pair.tgt_out) for pair in batches)
        learn(model, pairs, steps, warm_cosine(steps, 1e-2, 20))
        test_pairs = test if name == "right" else test._replace(tgt_in=test.tgt_out)
        numbers[f"{name}_accuracy"] = accuracy(model, test_pairs)
        numbers[f"{name}_spoken"] = fraction_right(model, test.src, test.tgt_out)
    return Symptom(False, f"after {steps} steps {numbers['wrong_accuracy']:.0%} of tokens are right in training, and "
                f"{numbers['wrong_spoken']:.0%} of sentences when it must generate them itself; shifted "
                f"{numbers['right_accuracy']:.0%} and {numbers['right_spoken']:.0%}", numbers)  # fmt: skip


def loss_over_padding() -> Symptom:
    """Compute the loss without ``ignore_index``, so that padding is learned and counted."""
    pairs = reversals(64, 1, 20, 20, torch.Generator().manual_seed(3))
    padding = (pairs.tgt_out == 0).double().mean().item()
    logits = torch.zeros(*pairs.tgt_out.shape, FIRST + 20)
    logits[..., 0] = 20.0 * (pairs.tgt_out == 0)  # knows where padding is, and nothing else
    wrong = F.cross_entropy(logits.flatten(0, 1), pairs.tgt_out.flatten()).item()
    right = F.cross_entropy(logits.flatten(0, 1), pairs.tgt_out.flatten(), ignore_index=0).item()
    return Symptom(False, f"a model that knows nothing but where padding is has a loss of {wrong:.2f} nats instead of "
                f"{right:.2f}, and {padding:.0%} of its tokens are right", {"wrong": wrong, "right": right,
                                                                         "padding": padding})  # fmt: skip


def padding_idx() -> Symptom:
    """Set ``padding_idx=1`` where padding has id 0: a word stays zero, and padding is trained."""
    torch.manual_seed(0)
    table = nn.Embedding(10, 16, padding_idx=1)
    table(torch.tensor([[0, 1, 2]])).sum().backward()
    gradient = table.weight.grad
    assert gradient is not None
    norms = {
        "padding": table.weight[0].norm().item(), "gradient_of_padding": gradient[0].norm().item(),
        "word_1": table.weight[1].norm().item(), "gradient_of_word_1": gradient[1].norm().item(),
    }  # fmt: skip
    return Symptom(False, f"padding has a vector of length {norms['padding']:.1f} and is trained; the word with id 1 "
                f"is {norms['word_1']:.0f} for ever (gradient {norms['gradient_of_word_1']:.0f})", norms)  # fmt: skip


def mean_of_means() -> Symptom:
    """Average the mean losses of micro-batches of different sizes, so that tokens of small ones count more."""
    x, y = _random(100, 8), _random(100, 1, seed=1)
    parts = (slice(0, 10), slice(10, 100))

    def gradient(means: bool) -> Tensor:
        weight = torch.ones(8, 1, requires_grad=True)
        losses = [((x[part] @ weight - y[part]) ** 2).sum() for part in parts]
        sizes = [part.stop - part.start for part in parts]
        total = sum(loss / (2 * n if means else 100) for loss, n in zip(losses, sizes, strict=True))
        return torch.autograd.grad(torch.as_tensor(total), weight)[0]

    right, wrong = gradient(False), gradient(True)
    off = float((wrong - right).norm() / right.norm())
    return Symptom(False, f"10 and 90 tokens: the gradient is off by {off:.0%}; a token among the 10 counts nine times",
                {"off": off})  # fmt: skip


def positions_left_behind() -> Symptom:
    """Keep the table of positions as a plain attribute, which ``.to(device)`` does not move."""

    class Positions(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.table = sinusoids(0, 4, 8).float()

        def forward(self, x: Tensor) -> Tensor:
            return x + self.table

    there = Positions().to("meta")  # a device that every machine has
    return _error(lambda: there(torch.zeros(1, 4, 8, device="meta")))
