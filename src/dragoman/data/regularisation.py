"""Regularisation of text: in every epoch new noise is put on it and its subwords are sampled again.

A pool is then ``RESAMPLED_PAIRS``, and its lengths are measured after resampling: the budget holds, and there is little
padding. A pool is a function of its place in the order, so a resumed run sees the same text.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from dragoman.config import NoiseConfig
from dragoman.data.noise import Lexicon, fingerprint, noised_pairs
from dragoman.data.order import Indices, shuffled_batches, shuffled_pairs, weighted_pairs
from dragoman.data.store import Ids, Store
from dragoman.data.tokenizer import Tokenizer
from dragoman.errors import ConfigError

RESAMPLED_PAIRS = 2**13

Rows = list[Ids | Sequence[int]]
"""Ids of several texts, without bos and eos."""


@dataclass(frozen=True, kw_only=True)
class Regularisation:
    """Changes to text from epoch to epoch: noise, and subword sampling."""

    sampling: float = 0.0  # rate of subword regularisation; 0: none
    noise: NoiseConfig = field(default_factory=NoiseConfig)
    lexicon: Lexicon = field(default_factory=dict)  # word pairs that noise takes its words from
    tokenizers: tuple[Tokenizer, Tokenizer] | None = None  # source, target; needed for noise or sampling
    max_tokens: int | None = None  # a pair with a longer side, tags not counted, stays as it is in the store

    def fitted(self, store: Store, batch_tokens: int) -> Regularisation | None:
        """Return these settings with ``max_tokens`` lowered to the budget; None if neither noise nor sampling is on.

        Raises:
            ConfigError: The store has no text, or the tokenizers are not those of the store.
        """
        if not (self.sampling > 0 or self.noise.is_on):
            return None
        if self.tokenizers is None or not store.has_text:
            raise ConfigError(
                "subword sampling and noise need both tokenizers and a store that was built with keep_text=True"
            )
        if tuple(tokenizer.fingerprint for tokenizer in self.tokenizers) != store.tokenizers:
            raise ConfigError("subword sampling and noise need the tokenizers that the store was built with")
        longest = batch_tokens - 1 - max(len(part.begin) for part in store.parts)
        return replace(self, max_tokens=longest if self.max_tokens is None else min(self.max_tokens, longest))

    def facts(self) -> dict[str, str]:
        """Return the settings that decide which batches come, for a resumed run to compare."""
        noise = {"noise": fingerprint(self.noise, self.lexicon)} if self.noise.is_on else {}
        return {"anew": f"{RESAMPLED_PAIRS} pairs at a time", **noise}

    @staticmethod
    def pool_start(done: int) -> int:
        """Return the number of the first pair of the pool that holds pair number ``done``."""
        return done // RESAMPLED_PAIRS * RESAMPLED_PAIRS

    def batches(
        self, store: Store, batch_tokens: int, seed: int, epoch: int, done: int
    ) -> Iterator[tuple[Indices, Rows, Rows]]:
        """Yield the batches of an epoch as indices, source ids and target ids.

        Args:
            done: Number of pairs to skip; the first batch is the first of the pool that holds pair number ``done``.
        """
        for start, pool in _pools(store, seed, epoch, self.pool_start(done)):
            *seeds, noise_seed, order_seed = _seeds(seed, epoch, start)
            sides = self._pairs(store, pool, seeds, noise_seed)
            for batch in _cut(_lengths(sides), batch_tokens, order_seed):
                src, tgt = ([side[i] for i in batch] for side in sides)
                yield pool[batch], src, tgt

    def n_batches(self, store: Store, batch_tokens: int, seed: int, epoch: int) -> int:
        """Return the number of batches of an epoch: exact for its first pool, an estimate for the others.

        Resampling takes long, so each pair of another pool is taken to grow as the pair of the same rank by length in
        the first pool.
        """
        stored, growth, n = np.maximum(store.src_lengths(), store.tgt_lengths()), np.ones(1), 0
        for start, pool in _pools(store, seed, epoch):
            *seeds, noise_seed, order_seed = _seeds(seed, epoch, start)
            by_length = np.argsort(stored[pool], kind="stable")
            lengths = stored[pool][by_length].astype(np.int64)
            if start == 0:
                resampled = np.maximum(*_lengths(self._pairs(store, pool, seeds, noise_seed)))[by_length]
                growth, lengths = resampled / np.maximum(lengths, 1), resampled
            else:
                places = np.linspace(0, len(growth) - 1, len(pool)).astype(np.int64)
                lengths = np.rint(lengths * growth[places]).astype(np.int64)
            n += sum(1 for _ in _cut((lengths, lengths), batch_tokens, order_seed))
        return n

    def _pairs(self, store: Store, pool: Indices, seeds: Sequence[int], noise_seed: int) -> tuple[Rows, Rows]:
        """Return the resampled ids of the pairs of a pool, by side; the seeds alone decide what is random."""
        stored = list(map(store.pair, pool.tolist()))
        texts = store.texts(pool)
        pairs = noised_pairs(zip(*texts, strict=True), self.noise, self.lexicon, noise_seed)
        noisy = list(zip(*pairs, strict=True))
        tags = _tags(store, pool)
        ids = [pair[0][len(tag) :] for pair, tag in zip(stored, tags, strict=True)], [pair[1] for pair in stored]
        src, tgt = (self._encoded(side, ids[side], texts[side], noisy[side], seeds[side]) for side in (0, 1))
        max_tokens = self.max_tokens
        assert max_tokens is not None  # set by ``fitted``
        for row, pair in enumerate(stored):
            # Both sides of a pair are resampled or neither: they belong together.
            if max(len(src[row]), len(tgt[row])) > max_tokens:
                src[row], tgt[row] = pair
            elif tags[row]:
                src[row] = [*tags[row], *src[row]]
        return src, tgt

    def _encoded(self, side: int, ids: Sequence[Ids], old: Sequence[str], new: Sequence[str], seed: int) -> Rows:
        """Return the ids of one side's texts; without sampling only texts that noise changed are encoded again.

        Args:
            side: 0 for the source, 1 for the target.
            ids: Stored ids of the texts ``old``, without tags.
            new: The texts with noise.
        """
        assert self.tokenizers is not None  # checked by ``fitted``
        tokenizer = self.tokenizers[side]
        if self.sampling > 0:
            return list(tokenizer.sample(new, self.sampling, seed))
        changed = [row for row in range(len(new)) if new[row] != old[row]]
        rows: Rows = list(ids)
        for row, encoded in zip(changed, tokenizer.encode([new[row] for row in changed]), strict=True):
            rows[row] = encoded
        return rows


def _pools(store: Store, seed: int, epoch: int, first: int = 0) -> Iterator[tuple[int, Indices]]:
    """Yield the pools of an epoch, each with the number of its first pair, from that of pair number ``first`` on."""
    order = shuffled_pairs(len(store), weighted_pairs(store.parts, seed, epoch), np.random.PCG64((seed, epoch)))
    for start in range(first, len(order), RESAMPLED_PAIRS):
        yield start, order[start : start + RESAMPLED_PAIRS]


def _seeds(seed: int, epoch: int, start: int) -> list[int]:
    """Return the seeds of a pool: of the sampling of source and target, of the noise, and of the order."""
    seeds: list[int] = np.random.SeedSequence((seed, epoch, start)).generate_state(4).tolist()
    return seeds


def _lengths(sides: tuple[Rows, Rows]) -> list[NDArray[np.int64]]:
    """Return the number of ids of each row of each side."""
    return [np.fromiter(map(len, side), np.int64, len(side)) for side in sides]


def _cut(lengths: Sequence[NDArray[np.int64]], batch_tokens: int, seed: int) -> Iterator[Indices]:
    """Yield the batches of a pool as places in it."""
    src, tgt = lengths
    return shuffled_batches(np.arange(len(src)), src, tgt, batch_tokens, np.random.PCG64(seed))


def _tags(store: Store, pool: Indices) -> list[tuple[int, ...]]:
    """Return the ids of the tags that each source of the pool begins with."""
    ends = np.cumsum([part.pairs for part in store.parts])
    return [store.parts[i].begin for i in np.searchsorted(ends, pool, side="right").tolist()]
