"""Searches of lists of ids, as tests call them; each builds the segments and settings that ``search_all`` takes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from dragoman.config import DecodeConfig
from dragoman.decoding import batched_search, search
from dragoman.decoding.cancellation import Cancellation
from dragoman.decoding.constraints import Rules
from dragoman.decoding.request import Hypothesis, SearchBatch, SearchResult, SearchSettings, Segment


def settings_of(config: DecodeConfig | None = None, n_best: int = 1, **changes: Any) -> SearchSettings:
    return SearchSettings(decode=config or DecodeConfig(), n_best=n_best, **changes)


def segments_of(
    sources: Sequence[Sequence[int]], rules: Sequence[Rules | None] | None = None,
    alive: Callable[[int], bool] | None = None,
) -> list[Segment]:  # fmt: skip
    """Segments; ``alive`` is asked with the index of each whether it is still wanted."""
    cancellations = [None if alive is None else Cancellation(lambda i=i: not alive(i)) for i in range(len(sources))]
    return [
        Segment(ids=ids, rules=None if rules is None else rules[i], cancellation=cancellations[i])
        for i, ids in enumerate(sources)
    ]


def search_result(
    model: Any, sources: Sequence[Sequence[int]], config: DecodeConfig, device: torch.device, n_best: int = 1, *,
    rules: Sequence[Rules | None] | None = None, alive: Callable[[int], bool] | None = None, processes: bool = False,
    progress: Callable[[int, int, str], object] | None = None, **changes: Any,
) -> SearchResult:  # fmt: skip
    """What ``search_all`` returns; ``changes`` are settings."""
    segments, settings = segments_of(sources, rules, alive), settings_of(config, n_best, **changes)
    return batched_search.search_all(model, segments, settings, device, processes=processes, progress=progress)


def search_all(*args: Any, **how: Any) -> list[list[Hypothesis]]:
    """The hypotheses of each source; what ran out of memory is an error."""
    return search_result(*args, **how).complete()


def greedy_search(
    model: Any, src: Tensor, max_lens: Sequence[int], alpha: float = 0.0, rules: Sequence[Rules | None] | None = None
) -> list[Hypothesis]:
    settings = settings_of(DecodeConfig(beam_size=1, length_penalty=alpha))
    return search.greedy_search(model, SearchBatch(src=src, max_lens=max_lens, rules=rules), settings)


def beam_search(
    model: Any, src: Tensor, max_lens: Sequence[int], beam_size: int = 4, alpha: float = 0.6, n_best: int = 1, *,
    rules: Sequence[Rules | None] | None = None, patience: float | None = None,
) -> list[list[Hypothesis]]:  # fmt: skip
    decode = DecodeConfig(beam_size=beam_size, length_penalty=alpha, patience=patience)
    return search.beam_search(model, SearchBatch(src=src, max_lens=max_lens, rules=rules), settings_of(decode, n_best))
