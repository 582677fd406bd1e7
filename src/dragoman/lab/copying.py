"""Copy a marked word to the end of a sequence, with one kind of layer, for the experiment reach."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from dragoman.config import ModelConfig
from dragoman.lab.letters import warm_cosine
from dragoman.model.baselines.cells import Kind, Recurrence
from dragoman.model.baselines.convolutional import HALF, GatedConvolution
from dragoman.model.embedding import sinusoids
from dragoman.model.layers import DecoderLayer
from dragoman.model.masks import causal_mask

WORDS = 8
"""Different words; each also occurs with a mark, as another id."""

COPIERS = ("self-attention", "plain RNN", "GRU", "LSTM", "LSTM, forget bias 4", "6 convolutions")
"""Kinds of layers, as in the experiment paths."""

CELLS: dict[str, Kind] = {"plain RNN": "rnn", "GRU": "gru", "LSTM": "lstm", "LSTM, forget bias 4": "lstm"}


class CopySizes(NamedTuple):
    """Sizes of the task."""

    n: int = 40  # length of a sequence
    d: int = 32  # width
    steps: int = 400
    rate: float = 5e-3  # peak learning rate
    batch: int = 64  # sequences of a batch
    rows: int = 32  # test sequences for each distance


class Copier(nn.Module):
    """An embedding, one kind of layer in which a position sees itself and earlier ones, and an output."""

    def __init__(self, kind: str, sizes: CopySizes) -> None:
        super().__init__()
        d = sizes.d
        self.kind = kind
        self.embed = nn.Embedding(2 * WORDS, d)
        self.output = nn.Linear(d, WORDS)
        if kind == "self-attention":
            config = ModelConfig(d_model=d, n_heads=4, d_ff=2 * d, dropout=0.0, src_vocab_size=9, tgt_vocab_size=9)
            self.attention = DecoderLayer(config, with_memory=False)
            for parameter in self.attention.parameters():
                if parameter.dim() > 1:
                    nn.init.xavier_uniform_(parameter)
        elif kind in CELLS:
            self.cells = Recurrence(CELLS[kind], d, d)
            if kind == "LSTM, forget bias 4":
                nn.init.constant_(self.cells.w_x.bias[d : 2 * d], 4.0)
        else:
            config = ModelConfig(architecture="conv", d_model=d, dropout=0.0, src_vocab_size=9, tgt_vocab_size=9)
            self.width = config.kernel_width
            self.convolutions = nn.ModuleList(GatedConvolution(config) for _ in range(6))

    def forward(self, x: Tensor) -> Tensor:
        """Map embedded words ``(B, n, d)`` to logits of the last place, ``(B, WORDS)``."""
        if self.kind == "self-attention":
            x = x + sinusoids(0, x.size(1), x.size(2)).to(x.dtype)
            x, _ = self.attention(x, None, None, causal_mask(x.size(1)), None, None)
        elif self.kind in CELLS:
            x, _ = self.cells(x, self.cells.started(torch.zeros_like(x[:, 0])))
        else:
            for layer in self.convolutions:
                x = (x + layer(F.pad(x, (0, 0, self.width - 1, 0)))) * HALF
        logits: Tensor = self.output(x[:, -1])
        return logits


def marked(distances: Tensor, n: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Draw sequences of ``n`` words, and return them with the word that is marked, so far from the last one."""
    ids = torch.randint(WORDS, (len(distances), n), generator=generator)
    at = (n - 1 - distances)[:, None]
    words = ids.gather(1, at)
    return ids.scatter(1, at, words + WORDS), words[:, 0]


def gradients(model: Copier, ids: Tensor, words: Tensor, distances: Tensor) -> Tensor:
    """Return the size of the gradient of the right word's logit by the embedding of the marked word, ``(B,)``."""
    x = model.embed(ids).detach().requires_grad_()
    right = model(x).gather(1, words[:, None]).sum()
    (gradient,) = torch.autograd.grad(right, x)
    return gradient[torch.arange(len(ids)), ids.size(1) - 1 - distances].norm(dim=-1)


def by_distance(values: Tensor, n: int, geometric: bool = False) -> list[float]:
    """Return the mean over the rows of each distance, from 1 on; rows come distance by distance."""
    rows = values.double().view(n - 1, -1)
    means = rows.log().mean(1).exp() if geometric else rows.mean(1)
    return list(means.tolist())


def copied(kind: str, seed: int, sizes: CopySizes) -> dict[str, Any]:
    """Train a model to copy from all distances, and return what is right and the gradient, fresh and trained."""
    torch.manual_seed(seed)
    model, n = Copier(kind, sizes), sizes.n
    drawn, test_drawn = torch.Generator().manual_seed(seed), torch.Generator().manual_seed(1000 + seed)
    distances = torch.arange(1, n).repeat_interleave(sizes.rows)
    ids, words = marked(distances, n, test_drawn)
    fresh = by_distance(gradients(model, ids, words, distances), n, geometric=True)
    optimizer = torch.optim.Adam(model.parameters(), betas=(0.9, 0.98), eps=1e-9)
    rate, losses = warm_cosine(sizes.steps, sizes.rate, max(sizes.steps // 10, 1)), []
    for step in range(1, sizes.steps + 1):
        batch_ids, batch_words = marked(torch.randint(1, n, (sizes.batch,), generator=drawn), n, drawn)
        loss = F.cross_entropy(model(model.embed(batch_ids)), batch_words)
        optimizer.zero_grad()
        torch.autograd.backward(loss)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        for group in optimizer.param_groups:
            group["lr"] = rate(step)
        optimizer.step()
        losses.append(loss.item())
    with torch.no_grad():
        right = model(model.embed(ids)).argmax(-1) == words
    return {
        "seed": seed, "accuracy": by_distance(right, n), "fresh": fresh,
        "trained": by_distance(gradients(model, ids, words, distances), n, geometric=True), "curve": losses[::10],
    }  # fmt: skip
