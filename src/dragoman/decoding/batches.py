"""Many sentences: sorted by length, cut into batches by tokens, searched, and put back in order.

A batch that runs out of memory is split in half, down to single sentences. One that fails alone is
reported after all others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Protocol

import torch
from torch import Tensor

from dragoman.config import DecodeConfig
from dragoman.data.shortlist import Shortlist
from dragoman.decoding.constraints import Rules
from dragoman.decoding.sampling import Sampling, sample_search
from dragoman.decoding.search import DEFAULT, WITH_UNK, Hypothesis, Model, beam_search, greedy_search, on_device
from dragoman.decoding.workers import run_jobs
from dragoman.device import is_out_of_memory
from dragoman.errors import DecodeError

CONSTRAINED_BEAM = 10
"""The least beam for a sentence with words to place, among which it is shared out."""

BATCHES_A_WORKER = 4
"""Batches that sentences are cut into for each worker, so that all have work until the end..."""

SHARED_TOKENS = 1024
"""...but not into smaller ones than this, of which a small model needs more time for each token."""

OUT_OF_MEMORY = "out of memory, even alone in a batch: use a smaller beam or shorten the sentence"


def length_batches(lengths: Sequence[int], batch_tokens: int) -> Iterator[list[int]]:
    """Indices of similar length, the longest batch first; rows x longest is at most ``batch_tokens``, or one row.

    All but the last batch have 1, 2, 3, 4, 6, 8, 12, ... rows, as those that a search continues with: see ``fitting``.
    """
    order = sorted(range(len(lengths)), key=lambda i: (-lengths[i], i))
    batch: list[int] = []
    for i in order:
        if batch and (len(batch) + 1) * lengths[batch[0]] > batch_tokens:
            n = 1 << (len(batch).bit_length() - 1)
            n = n * 3 // 2 if n * 3 // 2 <= len(batch) else n
            yield batch[:n]
            batch = batch[n:]
        batch.append(i)
    if batch:
        yield batch


def balanced(config: DecodeConfig, src_ids: Sequence[Sequence[int]], workers: int) -> DecodeConfig:
    """The settings with batches so small that each worker has several, and none stands idle for long at the end."""
    share = sum(len(ids) + 1 for ids in src_ids) // (workers * BATCHES_A_WORKER)
    return replace(config, batch_tokens=min(config.batch_tokens, max(share, SHARED_TOKENS)))


def run_halving(batch: list[int], run: Callable[[list[int]], None]) -> list[int]:
    """Run a batch; where memory is short, its halves. Returns those that failed alone."""
    pending, failed = [batch], []
    while pending:
        part = pending.pop()
        try:
            run(part)
            continue
        except (RuntimeError, MemoryError) as error:
            if not is_out_of_memory(error):
                raise
        # the error is gone by now, and with it the tensors that its frames held
        if torch.cuda.is_available():
            torch.cuda.empty_cache()
        if len(part) == 1:
            failed += part
        else:
            middle = len(part) // 2
            pending += [part[middle:], part[:middle]]
    return failed


def report_lost(lost: Sequence[int], failed: Callable[[int], None] | None, what: str = "sentence") -> None:
    """Call ``failed`` with each of those that failed alone.

    Raises:
        DecodeError: There are some, and ``failed`` is None.
    """
    for i in sorted(lost):
        if failed is None:
            raise DecodeError(f"{what} {i + 1}: {OUT_OF_MEMORY}")
        failed(i)


def padded(rows: Sequence[Sequence[int]], pad_id: int, device: torch.device) -> Tensor:
    """Rows of ids as one tensor ``(B, L)`` int64, padded on the right."""
    tensors = [torch.tensor(row, dtype=torch.int64) for row in rows]
    return torch.nn.utils.rnn.pad_sequence(tensors, batch_first=True, padding_value=pad_id).to(device)


def most_tokens(n_src: int, rules: Rules | None, config: DecodeConfig, longest: int | None) -> int:
    """How many tokens the translation of ``n_src`` tokens may have, eos counted."""
    most = max(n_src, rules.room if rules else 0) + config.max_extra_tokens
    return min(most, longest or most)


class Narrowing(Model, Protocol):
    """A model that can search a part of its vocabulary, as a ``FastTransformer`` or a ``Mean`` of them."""

    def narrowed(self, ids: Tensor, own: Tensor) -> Model:
        """The same for one batch of sources, whose tokens are ``ids`` (U,): see ``FastTransformer``."""
        ...


@dataclass(frozen=True)
class Shortlisted:
    """A model that searches each source's own shortlist instead of the whole vocabulary."""

    model: Narrowing
    shortlist: Shortlist


@dataclass(frozen=True, kw_only=True)
class Hooks:
    """Who is told, and asked, while many sentences are searched; all by the index of a source."""

    progress: Callable[[int, int, str], object] | None = None
    """Told after each batch how many sentences are done, of how many."""
    failed: Callable[[int], None] | None = None
    """Told of each source that ran out of memory even alone; its list stays empty. None: that is an error."""
    alive: Callable[[int], bool] | None = None
    """Asked before a source's batch begins and at each step, by whichever thread searches: one whose translation is no
    longer wanted leaves, and its list stays empty."""


NO_HOOKS = Hooks()


def search_all(
    model: Model | Shortlisted,
    src_ids: Sequence[Sequence[int]],
    config: DecodeConfig,
    device: torch.device,
    n_best: int = 1,
    *,
    rules: Sequence[Rules] | None = None,
    sampling: Sampling | None = None,
    longest: int | None = None,
    allow_unk: bool = False,
    workers: int = 1,
    processes: bool = False,
    hooks: Hooks = NO_HOOKS,
) -> list[list[Hypothesis]]:
    """Translate ids to ids.

    Args:
        model: What searches; its shortlist is not for sources with ``rules``, whose words may be any, nor for sampling.
        src_ids: Sources without eos; none may be empty.
        config: Beam, length penalty, patience, and how many tokens a translation may have beyond its source's.
        n_best: Number of hypotheses of each; at most the beam size, unless sampling.
        rules: For each source what its translation must and must not be. Words to place are searched for with a beam
            of at least ``CONSTRAINED_BEAM``, and of one more than their tokens.
        sampling: Sample translations instead of searching.
        longest: No translation may have more tokens, eos counted, whatever ``config`` and ``rules`` say.
        allow_unk: True if the unknown subword may be chosen; its text is ``⁇``.
        workers: Number of batches decoded in parallel, with one core each; 1: by this thread, with as many cores as
            torch has been given.
        processes: Whether several are forked processes, where that is safe and nobody asks who is alive, and not
            threads. The model must bear to be forked: torch does, with one thread, and onnxruntime does not.
        hooks: Who is told and asked meanwhile.

    Returns:
        For each source, in order, its hypotheses, best first.

    Raises:
        ConfigError: ``sampling`` or the number of workers is impossible.
        DecodeError: A source ran out of memory even alone (raised after the others, unless ``hooks.failed`` is
            given); ``n_best`` is more than the beam; sampling is to place words.
    """
    _check(config, n_best, rules, sampling)
    search = _Search(
        model=model, src_ids=src_ids, config=config, device=device, n_best=n_best, rules=rules, sampling=sampling,
        longest=longest, allow_unk=allow_unk, alive=hooks.alive,
    )  # fmt: skip
    found: list[list[Hypothesis]] = [[] for _ in src_ids]
    batches = list(_batches(src_ids, config, rules, isinstance(model, Shortlisted) and sampling is None))
    jobs = [partial(search.halving, *each) for each in batches]
    lost: list[int] = []
    done = 0
    for (batch, *_), (found_here, lost_here) in zip(
        batches, run_jobs(jobs, workers, processes and hooks.alive is None), strict=True
    ):
        for i, hypotheses in found_here:
            found[i] = hypotheses
        lost += lost_here
        done += len(batch)
        if hooks.progress is not None:
            hooks.progress(done, len(src_ids), "sentences translated")
    report_lost(lost, hooks.failed)
    return found


def _check(config: DecodeConfig, n_best: int, rules: Sequence[Rules] | None, sampling: Sampling | None) -> None:
    """Refuse what cannot be searched for."""
    if n_best < 1:
        raise DecodeError(f"n_best = {n_best} must be 1 or more")
    if sampling is not None:
        sampling.checked()
        if rules is not None and any(rule.include for rule in rules):
            raise DecodeError("sampling cannot place words that must appear: leave out one of them")
    elif n_best > config.beam_size:
        raise DecodeError(f"n_best = {n_best} must lie between 1 and beam_size = {config.beam_size}")


@dataclass(frozen=True, kw_only=True)
class _Search:
    """How any batch of the sources is searched; the fields are ``search_all``'s."""

    model: Model | Shortlisted
    src_ids: Sequence[Sequence[int]]
    config: DecodeConfig
    device: torch.device
    n_best: int
    rules: Sequence[Rules] | None
    sampling: Sampling | None
    longest: int | None
    allow_unk: bool
    alive: Callable[[int], bool] | None

    def halving(
        self, batch: list[int], beam_size: int, narrow: bool
    ) -> tuple[list[tuple[int, list[Hypothesis]]], list[int]]:
        """What ``self`` finds in a batch, or in its parts where memory is short; and those that failed alone."""
        found: list[tuple[int, list[Hypothesis]]] = []
        lost = run_halving(batch, lambda part: found.extend(self(part, beam_size, narrow)))
        return found, lost

    def __call__(self, batch: list[int], beam_size: int, narrow: bool) -> Iterator[tuple[int, list[Hypothesis]]]:
        """Each source of a batch that is still wanted, and its hypotheses.

        Args:
            batch: Indices of sources.
            narrow: Search their shortlist; none of them has rules.
        """
        alive = self.alive
        batch = batch if alive is None else [i for i in batch if alive(i)]
        if not batch:
            return
        if narrow and isinstance(self.model, Shortlisted):
            words, own = self.model.shortlist.of_batch([self.src_ids[i] for i in batch])
            model: Model = self.model.model.narrowed(on_device(words, self.device), on_device(own, self.device))
            results = self._hypotheses(model, batch, beam_size, None)
            results = [[one._replace(ids=words[one.ids].tolist()) for one in hypotheses] for hypotheses in results]
        else:
            model = self.model.model if isinstance(self.model, Shortlisted) else self.model
            rules = None if self.rules is None else [self.rules[i] for i in batch]
            results = self._hypotheses(model, batch, beam_size, rules)
        yield from ((i, one) for i, one in zip(batch, results, strict=True) if alive is None or alive(i))

    def _hypotheses(
        self, model: Model, batch: list[int], beam_size: int, rules: Sequence[Rules] | None
    ) -> list[list[Hypothesis]]:
        """What the search that was asked for finds with a model for a batch."""
        specials = WITH_UNK if self.allow_unk else DEFAULT
        alpha, alive, sampling = self.config.penalty, self.alive, self.sampling
        wanted = None if alive is None else lambda row: alive(batch[row])
        src = padded([[*self.src_ids[i], specials.eos_id] for i in batch], specials.pad_id, self.device)
        max_lens = [
            most_tokens(len(self.src_ids[i]), self.rules[i] if self.rules else None, self.config, self.longest)
            for i in batch
        ]
        if sampling is not None:
            names = [i if sampling.keys is None else sampling.keys[i] for i in batch]
            return sample_search(model, src, max_lens, sampling, names, self.n_best, alpha, specials, rules, wanted)
        if beam_size == 1:
            return [[one] for one in greedy_search(model, src, max_lens, alpha, specials, rules, alive=wanted)]
        return beam_search(
            model, src, max_lens, beam_size, alpha, self.n_best, specials, rules, self.config.patience, wanted
        )


def _batches(
    src_ids: Sequence[Sequence[int]], config: DecodeConfig, rules: Sequence[Rules] | None, narrow: bool
) -> Iterator[tuple[list[int], int, bool]]:
    """Batches of sources, the beam that each needs, and whether a shortlist is searched: not where there are rules."""
    groups: dict[tuple[int, bool], list[int]] = {}
    for i in range(len(src_ids)):
        n_wanted = sum(map(len, rules[i].include)) if rules is not None else 0
        beam = max(config.beam_size, CONSTRAINED_BEAM, n_wanted + 1) if n_wanted else config.beam_size
        groups.setdefault((beam, narrow and (rules is None or rules[i].are_none)), []).append(i)
    for (beam, is_narrow), members in sorted(groups.items()):
        budget = config.batch_tokens * config.beam_size // beam
        for chosen in length_batches([len(src_ids[i]) + 1 for i in members], budget):
            yield [members[j] for j in chosen], beam, is_narrow
