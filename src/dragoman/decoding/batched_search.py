"""Many sentences searched with a model: in batches, by several workers, put back in order.

A batch that runs out of memory is split in half, down to single sentences. A sentence that does not even fit alone is
named in the result.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol

import torch
from torch import Tensor

from dragoman.data.shortlist import Shortlist
from dragoman.decoding.batches import (
    CONSTRAINED_BEAM,
    MOST_CONSTRAINED_BEAM,
    least_on,
    length_batches,
    most_tokens,
    run_halving,
)
from dragoman.decoding.request import Hypothesis, Progress, SearchBatch, SearchResult, SearchSettings, Segment
from dragoman.decoding.sampling import sample_search
from dragoman.decoding.search import Model, beam_search, greedy_search, on_device
from dragoman.decoding.workers import run_jobs

SAMPLE_ROWS = 4
"""Number of rows of a beam that take as much memory as a sample, for which probabilities are copied in 64 bits."""


def padded(rows: Sequence[Sequence[int]], pad_id: int, device: torch.device) -> Tensor:
    """Return rows of ids as one tensor ``(B, L)`` int64, padded on the right."""
    tensors = [torch.tensor(row, dtype=torch.int64) for row in rows]
    return torch.nn.utils.rnn.pad_sequence(tensors, batch_first=True, padding_value=pad_id).to(device)


class Narrowing(Model, Protocol):
    """A model that can search a part of its vocabulary, as a ``FastTransformer`` or a ``Mean`` of them."""

    def narrowed(self, ids: Tensor, own: Tensor) -> Model:
        """Return the same for one batch of sources, whose tokens are ``ids`` (U,): see ``FastTransformer``."""
        ...


@dataclass(frozen=True)
class Shortlisted:
    """A model that searches each source's own shortlist instead of the whole vocabulary."""

    model: Narrowing
    shortlist: Shortlist


def search_all(
    model: Model | Shortlisted,
    segments: Sequence[Segment],
    settings: SearchSettings,
    device: torch.device,
    *,
    processes: bool = False,
    progress: Progress | None = None,
) -> SearchResult:
    """Translate segments, ids to ids.

    Args:
        model: A shortlist is not searched for segments with constraints, whose words may be any, nor for sampling.
        settings: Words to place are searched for with a beam of at least ``CONSTRAINED_BEAM``, and of one more than
            their tokens up to ``MOST_CONSTRAINED_BEAM``. A single worker runs in this thread, with as many cores as
            torch has; several have one each.
        processes: Make workers forked processes, where that is safe and no segment can be cancelled, and not threads.
            The model must bear to be forked: torch does, with one thread, and onnxruntime does not.
        progress: Called after each batch with the number of sentences that are done, and of all.

    Returns:
        The hypotheses of each segment, in order; none for a segment that was cancelled or ran out of memory.

    Raises:
        ConfigError: ``sampling`` or the number of workers is impossible.
        DecodeError: ``n_best`` is more than the beam; sampling is to place words; or the scores are not finite.
    """
    settings.check(segments)
    search = _BatchSearch(model, segments, settings, device)
    jobs = list(_jobs(segments, settings, isinstance(model, Shortlisted), least_on(device.type)))
    processes = processes and all(segment.cancellation is None for segment in segments)
    hypotheses: list[list[Hypothesis]] = [[] for _ in segments]
    out_of_memory: list[int] = []
    done = 0
    batches = run_jobs([partial(search.run, job) for job in jobs], settings.workers, processes)
    for job, batch in zip(jobs, batches, strict=True):
        for i, own in batch.hypotheses.items():
            hypotheses[i] = own
        out_of_memory += batch.out_of_memory
        done += len(job.rows)
        if progress is not None:
            progress(done, len(segments), "sentences translated")
    return SearchResult(hypotheses, sorted(out_of_memory))


@dataclass(frozen=True)
class BatchJob:
    """Segments that are searched together."""

    rows: list[int]  # their indices
    beam_size: int
    narrow: bool  # search their shortlists


@dataclass(frozen=True)
class BatchResult:
    """The hypotheses of a batch, by the index of the segment."""

    hypotheses: dict[int, list[Hypothesis]]  # cancelled segments are left out
    out_of_memory: list[int]


def _jobs(
    segments: Sequence[Segment], settings: SearchSettings, has_shortlist: bool, least: int
) -> Iterator[BatchJob]:  # fmt: skip
    """Yield the batches; the segments of each need the same beam."""
    beam_size, budget = settings.decode.beam_size, settings.decode.batch_tokens
    rows_each = beam_size if settings.sampling is None else max(beam_size, SAMPLE_ROWS * settings.n_best)
    groups: dict[tuple[int, bool], list[int]] = {}
    for i, segment in enumerate(segments):
        n_words = sum(map(len, segment.rules.include)) if segment.rules is not None else 0
        beam = max(beam_size, CONSTRAINED_BEAM, min(n_words + 1, MOST_CONSTRAINED_BEAM)) if n_words else beam_size
        narrow = has_shortlist and segment.is_free and settings.sampling is None
        groups.setdefault((beam, narrow), []).append(i)
    for (beam, narrow), members in sorted(groups.items()):
        lengths = [len(segments[i].ids) + 1 for i in members]
        for rows in length_batches(lengths, budget * beam_size // max(beam, rows_each), least):
            yield BatchJob([members[row] for row in rows], beam, narrow)


@dataclass(frozen=True)
class _BatchSearch:
    """Searches any batch of the segments."""

    model: Model | Shortlisted
    segments: Sequence[Segment]
    settings: SearchSettings
    device: torch.device

    def run(self, job: BatchJob) -> BatchResult:
        """Search a batch; where memory is short, its halves."""
        hypotheses: dict[int, list[Hypothesis]] = {}
        lost = run_halving(job.rows, lambda rows: hypotheses.update(self._search(rows, job)))
        return BatchResult(hypotheses, lost)

    def _search(self, rows: list[int], job: BatchJob) -> dict[int, list[Hypothesis]]:
        """Return the hypotheses of those segments of a batch that are not cancelled, before or meanwhile."""
        rows = [i for i in rows if not self.segments[i].is_cancelled]
        if not rows:
            return {}
        if job.narrow and isinstance(self.model, Shortlisted):
            words, own = self.model.shortlist.of_batch([self.segments[i].ids for i in rows])
            narrowed = self.model.model.narrowed(on_device(words, self.device), on_device(own, self.device))
            results = [
                [hypothesis._replace(ids=words[hypothesis.ids].tolist()) for hypothesis in hypotheses]
                for hypotheses in self._hypotheses(narrowed, rows, job.beam_size)
            ]
        else:
            model = self.model.model if isinstance(self.model, Shortlisted) else self.model
            results = self._hypotheses(model, rows, job.beam_size)
        return {i: own for i, own in zip(rows, results, strict=True) if not self.segments[i].is_cancelled}

    def _hypotheses(self, model: Model, rows: list[int], beam_size: int) -> list[list[Hypothesis]]:
        """Search with one model; all but sampling with a beam of this size."""
        segments, settings = [self.segments[i] for i in rows], self.settings
        batch = _as_batch(segments, settings, self.device)
        if settings.sampling is not None:
            keys = [i if segment.key is None else segment.key for i, segment in zip(rows, segments, strict=True)]
            return sample_search(model, batch, settings, keys)
        if beam_size == 1:
            return [[hypothesis] for hypothesis in greedy_search(model, batch, settings)]
        if beam_size != settings.decode.beam_size:
            settings = settings.with_decode(beam_size=beam_size)
        return beam_search(model, batch, settings)


def _as_batch(segments: Sequence[Segment], settings: SearchSettings, device: torch.device) -> SearchBatch:
    """Return segments as the rows of one batch."""
    special = settings.special
    can_be_cancelled = any(segment.cancellation is not None for segment in segments)
    return SearchBatch(
        src=padded([[*segment.ids, special.eos] for segment in segments], special.pad, device),
        max_lens=[most_tokens(segment, settings) for segment in segments],
        rules=None if all(segment.is_free for segment in segments) else [segment.rules for segment in segments],
        cancellations=[segment.cancellation for segment in segments] if can_be_cancelled else None,
        between_steps=list(dict.fromkeys(segment.between_steps for segment in segments if segment.between_steps)),
    )
