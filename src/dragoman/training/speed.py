"""Speed of training on this machine, measured with a few steps on random text."""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence

import numpy as np
import torch

from dragoman.config import Config, ModelConfig
from dragoman.data.batching import Batch, collate
from dragoman.data.tokenizer import EOS_ID
from dragoman.device import resolve_device, resolve_precision
from dragoman.model import build as architectures
from dragoman.training.threads import threads_of_training
from dragoman.training.update import train_step

TIMED_STEPS = 3
BATCH_TOKENS = {"cpu": 1024, "cuda": 4096}
"""Tokens of the timed batch by device. Larger ones are slightly faster; smaller ones leave a GPU idle."""


def tokens_per_second(config: Config, length: int) -> float:
    """Measure the tokens of one side per second, padding included, that training takes: the median of a few steps.

    Takes about a second on a CPU, and two beside other programs, where one thread is tried too. torch's random state is
    restored afterwards.

    Args:
        config: Its model is built with ``data.tokenizer.vocab_size`` subwords, and discarded.
        length: Subwords of each sentence, eos included.
    """
    train, size = config.train, config.data.tokenizer.vocab_size
    model_config = ModelConfig(**config.model.model_dump(), src_vocab_size=size, tgt_vocab_size=size)
    device = resolve_device(train.device)
    train = train.model_copy(update={"precision": resolve_precision(train.precision, device)})
    with (
        torch.random.fork_rng(devices=[torch.cuda.current_device()] if device.type == "cuda" else []),
        threads_of_training(train.threads, alone=True) as threads,
    ):
        torch.manual_seed(0)
        model = architectures.build(model_config).to(device)
        batch = _random_batch(model_config, BATCH_TOKENS[device.type], length)
        optimizer = torch.optim.Adam(model.parameters(), fused=True)

        def seconds_of_a_step() -> float:
            durations = []
            for _ in range(1 + TIMED_STEPS):
                began = time.perf_counter()
                train_step(model, [batch], optimizer, 0.0, train, model_config.pad_id)
                durations.append(time.perf_counter() - began)
            return statistics.median(durations[1:])  # the first step also allocates memory

        seconds = seconds_of_a_step()
        if threads.free() < threads.most:
            torch.set_num_threads(1)
            seconds = min(seconds, seconds_of_a_step())
    return batch.tgt_in.numel() / seconds


def _random_batch(model_config: ModelConfig, batch_tokens: int, length: int) -> Batch:
    """Return sentences of random subwords, all of the same length."""
    rows, random = max(1, batch_tokens // length), np.random.default_rng(0)

    def side(vocab_size: int) -> Sequence[Sequence[int]]:
        rows_of_ids: list[list[int]] = random.integers(EOS_ID, vocab_size, (rows, max(1, length - 1))).tolist()
        return rows_of_ids

    return collate(side(model_config.src_vocab_size), side(model_config.tgt_vocab_size), range(rows))
