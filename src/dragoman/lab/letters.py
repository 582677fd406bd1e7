"""A task that small models learn in seconds: write a sequence of letters backwards.

    model = small_model(seed=1)
    learn(model, endless(32, 4, 16), steps=300, rate=warm_cosine(300, peak=3e-3, warmup=50))

Sources are random letters and the end mark, targets the same letters reversed and the end mark. A model must use
positions and attention to learn it. Experiments use it when they change the inside of a model; variants that a
configuration can express are trained by the ordinary commands, see ``runs``.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from dragoman.config import ModelConfig, TrainConfig
from dragoman.data.tokenizer import BOS_ID, EOS_ID, PAD_ID
from dragoman.model.transformer import Transformer
from dragoman.training.loss import label_smoothed_loss
from dragoman.training.schedule import learning_rate

FIRST = 4  # id of the first letter, after those of padding, unknown, begin and end


class Pairs(NamedTuple):
    """A batch of sources and targets as int64 ids, padded."""

    src: Tensor  # (B, S)
    tgt_in: Tensor  # (B, T)
    tgt_out: Tensor  # (B, T)


def reversals(count: int, shortest: int, longest: int, n_letters: int, generator: torch.Generator) -> Pairs:
    """Draw random sequences of letters, and the same letters reversed as targets.

    Args:
        count: Number of sentences.
        shortest, longest: Limits of their lengths in letters.
        n_letters: Size of the alphabet.
        generator: Source of random numbers.
    """
    lengths = torch.randint(shortest, longest + 1, (count, 1), generator=generator)
    letters = torch.randint(FIRST, FIRST + n_letters, (count, longest), generator=generator)
    places = torch.arange(longest + 1)
    is_letter = places[:-1] < lengths
    src = torch.full((count, longest + 1), PAD_ID)
    src[:, :-1] = letters.where(is_letter, PAD_ID)
    backwards = letters.gather(1, (lengths - 1 - places[:-1]).clamp_min(0)).where(is_letter, PAD_ID)
    tgt_out = torch.cat((backwards, torch.full((count, 1), PAD_ID)), 1)
    for side in (src, tgt_out):
        side.scatter_(1, lengths, EOS_ID)
    tgt_in = torch.cat((torch.full((count, 1), BOS_ID), backwards), 1)
    return Pairs(src, tgt_in, tgt_out)


def small_model(seed: int, n_letters: int = 20, **options: Any) -> Transformer:
    """Return a fresh Transformer for this task; ``options`` are fields of ``ModelConfig``."""
    torch.manual_seed(seed)
    sizes = dict(d_model=64, d_ff=128, n_heads=4, n_encoder_layers=2, n_decoder_layers=2, dropout=0.0)
    vocabulary = FIRST + n_letters
    return Transformer(ModelConfig(**{**sizes, **options}, src_vocab_size=vocabulary, tgt_vocab_size=vocabulary))


def warm_cosine(steps: int, peak: float, warmup: int) -> Callable[[int], float]:
    """Return a schedule from step (1, 2, ...) to learning rate: up to ``peak``, then along half a cosine to 0."""
    config = TrainConfig(schedule="cosine", lr=peak, max_steps=steps, warmup_steps=warmup)
    return partial(learning_rate, config=config, d_model=0)


def updates(
    model: nn.Module, batches: Iterator[Pairs], rate: Callable[[int], float], clip: float | None = 1.0
) -> Iterator[float]:
    """Train with the paper's settings of Adam, and yield the loss of each step in nats per target token.

    Training ends at a loss that is not finite, which is the last one yielded.

    Args:
        model: The model.
        batches: A batch for each step.
        rate: Learning rate by step, from 1.
        clip: Largest norm of the gradient; None does not clip.
    """
    optimizer = torch.optim.Adam(model.parameters(), lr=0.0, betas=(0.9, 0.98), eps=1e-9)
    device = next(model.parameters()).device
    model.train()
    for step, batch in enumerate(batches, 1):
        src, tgt_in, tgt_out = (side.to(device) for side in batch)
        loss, _ = label_smoothed_loss(model(src, tgt_in), tgt_out, PAD_ID, 0.0)
        loss = loss / (tgt_out != PAD_ID).sum()
        if not math.isfinite(loss.item()):
            yield loss.item()
            return
        optimizer.zero_grad()
        torch.autograd.backward(loss)
        if clip is not None:
            nn.utils.clip_grad_norm_(model.parameters(), clip)
        for group in optimizer.param_groups:
            group["lr"] = rate(step)
        optimizer.step()
        yield loss.item()


def learn(
    model: nn.Module, batches: Iterator[Pairs], steps: int, rate: Callable[[int], float], clip: float | None = 1.0
) -> list[float]:
    """Make ``steps`` of ``updates`` and return their losses, fewer if one is not finite."""
    return list(updates(model, itertools.islice(batches, steps), rate, clip))


def endless(count: int, shortest: int, longest: int, n_letters: int = 20, seed: int = 0) -> Iterator[Pairs]:
    """Yield new batches of ``reversals`` without end."""
    generator = torch.Generator().manual_seed(seed)
    while True:
        yield reversals(count, shortest, longest, n_letters, generator)


@torch.no_grad()
def accuracy(model: nn.Module, pairs: Pairs) -> float:
    """Return the fraction of target tokens that the model predicts, given the right tokens before each."""
    device = next(model.parameters()).device
    model.eval()
    best = model(pairs.src.to(device), pairs.tgt_in.to(device)).argmax(-1).cpu()
    real = pairs.tgt_out != PAD_ID
    return float((best == pairs.tgt_out)[real].double().mean())
