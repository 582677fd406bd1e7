"""The order in which pairs come in an epoch: batches of pairs of similar length under a token budget.

The order of an epoch is a function of (lengths, batch_tokens, seed, epoch) and of nothing else:

1. All pairs are shuffled.
2. The shuffled pairs are cut into pools of ``POOL_PAIRS``. Inside a pool they are sorted by length and cut into batches
   that fill the budget or nearly so, and these batches are shuffled. A small corpus is one pool. A large one is ordered
   pool by pool, so that the first batch does not wait for the last.

Every pair comes exactly once in an epoch. If corpora have weights, a pair of a corpus with weight w comes w times in an
epoch on average (see ``weighted_pairs``). The shuffles are made of PCG64's raw numbers, which NumPy promises never to
change, so the order is the same on every machine and with every version.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import gcd
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dragoman.data.store import Part
from dragoman.errors import ConfigError

POOL_PAIRS = 200_000
CHUNK_NUMBERS = 2**16

Indices = NDArray[np.int64]
"""Numbers of pairs in a store, from 0."""


def epoch_batches(
    src_lengths: NDArray[np.integer[Any]],
    tgt_lengths: NDArray[np.integer[Any]],
    batch_tokens: int,
    seed: int,
    epoch: int,
    chosen: Indices | None = None,
) -> Iterator[Indices]:
    """Yield the batches of one epoch, each as the indices of its pairs, ``(B,)``.

    In each batch, the number of rows times the longest side (eos or bos counted) is at most ``batch_tokens``.

    Args:
        src_lengths: Number of subwords of each source, eos not counted, ``(pairs,)``.
        tgt_lengths: The same for each target.
        seed: At least 0, as is ``epoch``.
        chosen: The pairs of the epoch, some perhaps several times, see ``weighted_pairs``; None: each pair once.

    Raises:
        ConfigError: A single pair is longer than ``batch_tokens``.
    """
    check_budget(src_lengths, tgt_lengths, batch_tokens)
    bits = np.random.PCG64((seed, epoch))
    order = shuffled_pairs(len(src_lengths), chosen, bits)
    for start in range(0, len(order), POOL_PAIRS):
        pool = order[start : start + POOL_PAIRS]
        yield from shuffled_batches(pool, src_lengths[pool], tgt_lengths[pool], batch_tokens, bits)


def weighted_pairs(parts: Sequence[Part], seed: int, epoch: int) -> Indices | None:
    """Return the pairs of an epoch if corpora have weights; None if each pair comes once.

    The pairs of a corpus form a circle, and each epoch takes the next ``weight x pairs`` of them: each pair twice with
    weight 2, the next tenth with weight 0.1. So the numbers of times that two pairs of a corpus have come differ by at
    most 1 at any time. The circle goes through the corpus in steps of about 0.618 of its length, which spreads every
    part of the corpus evenly; the seed sets where it begins.

    Returns:
        Indices of pairs of the store, in no meaningful order; the same for the same arguments on every machine.
    """
    if all(part.weight == 1 for part in parts):
        return None
    indices, first = [], 0
    for number, part in enumerate(parts):
        places = np.arange(part.drawn_before(epoch), part.drawn_before(epoch + 1), dtype=np.int64)
        if len(places):
            n, begin = part.pairs, int(np.random.PCG64((seed, number, 1)).random_raw() % part.pairs)
            indices.append(first + (places % n * _step(n) + begin) % n)
        first += part.pairs
    return np.concatenate(indices) if indices else np.empty(0, np.int64)


def _step(n: int) -> int:
    """Return the first number from the golden section of ``n`` on that has no common divisor with ``n``."""
    step = max(1, round(n * (5**0.5 - 1) / 2))
    while gcd(step, n) > 1:
        step += 1
    return step


def check_budget(
    src_lengths: NDArray[np.integer[Any]], tgt_lengths: NDArray[np.integer[Any]], batch_tokens: int
) -> None:
    """Check that every pair fits into a batch.

    Raises:
        ConfigError: A side, eos counted, is longer than ``batch_tokens``.
    """
    if not len(src_lengths):
        return
    longest = 1 + max(int(src_lengths.max()), int(tgt_lengths.max()))
    if longest > batch_tokens:
        index = int(np.argmax(np.maximum(src_lengths, tgt_lengths)))
        raise ConfigError(
            f"pair {index} of the store has {src_lengths[index]} source and {tgt_lengths[index]} target subwords, with "
            f"eos {longest}: more than batch_tokens = {batch_tokens}. Set batch_tokens to at least {longest}, or "
            f"data.max_tokens to at most {batch_tokens - 1}"
        )


def shuffled_pairs(n: int, chosen: Indices | None, bits: np.random.PCG64) -> Indices:
    """Return all ``n`` pairs in random order, or the ``chosen`` ones, see ``weighted_pairs``."""
    return shuffled(n, bits) if chosen is None else chosen[shuffled(len(chosen), bits)]


def shuffled(n: int, bits: np.random.PCG64) -> Indices:
    """Return ``0 ... n - 1`` in random order, ``(n,)``: random bits above each number, sorted as one integer."""
    n_bits = max(n - 1, 1).bit_length()
    number_bits = np.uint64(2**n_bits - 1)
    # There may be a hundred million pairs, so everything is done in place.
    keys = bits.random_raw(n)
    keys &= ~number_bits
    for start in range(0, n, CHUNK_NUMBERS):
        part = keys[start : start + CHUNK_NUMBERS]
        part |= np.arange(start, start + len(part), dtype=np.uint64)
    keys.sort()
    keys &= number_bits
    return keys.view(np.int64)


def shuffled_batches(
    pool: Indices,
    src_lengths: NDArray[np.integer[Any]],
    tgt_lengths: NDArray[np.integer[Any]],
    batch_tokens: int,
    bits: np.random.PCG64,
) -> Iterator[Indices]:
    """Cut a pool of pairs into batches of similar length, and yield these in random order.

    Args:
        pool: Indices of pairs, ``(n,)``; the lengths are those of the same pairs.
    """
    # Pairs are sorted by their longest side. Among equals the order runs from long sources to long targets, and back
    # for the next length, so that neighbours are similar on both sides; remaining ties keep the pool's random order.
    longest = 1 + np.maximum(src_lengths, tgt_lengths).astype(np.int64)  # eos counted
    slant = (src_lengths.astype(np.int64) - tgt_lengths) * np.where(longest % 2, 1, -1)
    by_length = np.lexsort((slant, -longest))
    pool, descending = pool[by_length], longest[by_length].tolist()
    batches, start = [], 0
    while start < len(pool):
        # Up to 1/16 of a batch stays empty at random; otherwise a small corpus would be cut alike in every epoch.
        spared = int(bits.random_raw()) % (batch_tokens // 16 + 1)
        end = start + max(1, (batch_tokens - spared) // descending[start])
        batches.append(pool[start:end])
        start = end
    for i in shuffled(len(batches), bits):
        yield batches[i]
