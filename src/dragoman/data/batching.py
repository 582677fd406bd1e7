"""Batches of like-long pairs under a token budget, in an order that can be taken up again at any step.

The order of an epoch is a function of (lengths, batch_tokens, seed, epoch) and of nothing else:

1. All pairs are shuffled.
2. The shuffled pairs are cut into pools of ``POOL_PAIRS``. Inside a pool they are sorted by length and cut into batches
   that fill the budget or nearly so, and these batches are shuffled. A small corpus is one pool; a large one is put in
   order pool by pool, so that the first batch does not wait for the last.

Where text is noised or its subwords sampled, a pool is ``RESAMPLED_PAIRS``, and its lengths are measured
afterwards: the budget is kept, and little is padding.

Every pair comes exactly once in an epoch. Where corpora have weights, a pair of a corpus with weight w comes w times in
an epoch on average (see ``drawn``), and these are shuffled. The shuffles are made of PCG64's raw numbers, which NumPy
promises never to change, so the order is the same on every machine and with every version.

Rank ``r`` of ``W`` takes the batches ``k W + r`` of this one order, counted on from epoch to epoch, so that all ranks
always have equally many. A position counts batches of all ranks: a run may resume with another number of them.
"""

from __future__ import annotations

import contextlib
import logging
import queue
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from math import gcd
from typing import Any, NamedTuple, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dragoman.config import NoiseConfig
from dragoman.data.noise import Lexicon, fingerprint, noised_pairs
from dragoman.data.store import Ids, Lengths, Part, Store
from dragoman.data.tokenizer import BOS_ID, EOS_ID, PAD_ID, Tokenizer
from dragoman.errors import BundleError, ConfigError

logger = logging.getLogger(__name__)

POOL_PAIRS = 200_000
RESAMPLED_PAIRS = 2**13
CHUNK_NUMBERS = 2**16

Indices = NDArray[np.int64]


@dataclass(frozen=True)
class Batch:
    """Pairs side by side, padded on the right with ``PAD_ID``; all tensors are int64."""

    src: Tensor  # (B, S): ids, eos
    tgt_in: Tensor  # (B, T): bos, ids
    tgt_out: Tensor  # (B, T): ids, eos
    indices: Tensor  # (B,): which pairs of the store
    n_tgt_tokens: int  # of tgt_out, eos counted, padding not
    where: Tensor | None = None  # (n_tgt_tokens,): their cells of tgt_out, counted row by row; None: nobody has looked

    def to(self, device: torch.device | str) -> Batch:
        """The same batch on another device; a GPU is not waited for."""
        pinned = torch.device(device).type == "cuda"  # a GPU fetches from such memory by itself

        def moved(tensor: Tensor) -> Tensor:
            return (tensor.pin_memory() if pinned else tensor).to(device, non_blocking=True)

        src, tgt_in, tgt_out, indices = map(moved, (self.src, self.tgt_in, self.tgt_out, self.indices))
        where = None if self.where is None else moved(self.where)
        return Batch(src, tgt_in, tgt_out, indices, self.n_tgt_tokens, where)


def collate(
    src_ids: Sequence[Ids | Sequence[int]], tgt_ids: Sequence[Ids | Sequence[int]], indices: Iterable[int]
) -> Batch:
    """Put pairs of ids, without bos and eos, side by side."""
    tgt = _padded(tgt_ids, 1)  # (B, T): room for bos or eos
    tgt_in, tgt_out = np.roll(tgt, 1, axis=1), tgt
    tgt_in[:, 0] = BOS_ID
    src = _padded(src_ids, 1)  # (B, S)
    for padded, rows in ((src, src_ids), (tgt_out, tgt_ids)):
        padded[np.arange(len(rows)), np.fromiter(map(len, rows), np.int64, len(rows))] = EOS_ID
    return Batch(
        src=torch.from_numpy(src),
        tgt_in=torch.from_numpy(tgt_in),
        tgt_out=torch.from_numpy(tgt_out),
        indices=torch.as_tensor(np.asarray(indices, dtype=np.int64)),
        n_tgt_tokens=sum(map(len, tgt_ids)) + len(tgt_ids),
        where=torch.from_numpy(np.flatnonzero(tgt_out != PAD_ID)),  # here, where nobody waits for it
    )


def _padded(rows: Sequence[Ids | Sequence[int]], extra: int) -> NDArray[np.int64]:
    """Rows of different length in one array, ``(B, longest + extra)``."""
    lengths = np.fromiter(map(len, rows), np.int64, len(rows))
    padded = np.full((len(rows), int(lengths.max()) + extra), PAD_ID, dtype=np.int64)
    padded[np.arange(padded.shape[1]) < lengths[:, None]] = np.concatenate(rows)
    return padded


def epoch_batches(
    src_lengths: NDArray[np.integer[Any]],
    tgt_lengths: NDArray[np.integer[Any]],
    batch_tokens: int,
    seed: int,
    epoch: int,
    chosen: Indices | None = None,
) -> Iterator[Indices]:
    """Yield the batches of one epoch, each as the indices of its pairs, ``(B,)``.

    In each batch, rows times the longest side (eos or bos counted) is at most ``batch_tokens``.

    Args:
        src_lengths: Subwords of each source, eos not counted, ``(pairs,)``.
        tgt_lengths: The same of each target.
        seed: At least 0, as is ``epoch``.
        chosen: The pairs that come, one perhaps several times, see ``drawn``; None: each once.

    Raises:
        ConfigError: A pair by itself is longer than ``batch_tokens``.
    """
    check_budget(src_lengths, tgt_lengths, batch_tokens)
    bits = np.random.PCG64((seed, epoch))
    order = _order(len(src_lengths), chosen, bits)
    for start in range(0, len(order), POOL_PAIRS):
        pool = order[start : start + POOL_PAIRS]
        yield from _shuffled_batches(pool, src_lengths[pool], tgt_lengths[pool], batch_tokens, bits)


def drawn(parts: Sequence[Part], seed: int, epoch: int) -> Indices | None:
    """The pairs that come in an epoch where corpora have weights; None where each comes once.

    The pairs of a corpus stand in a circle, and each epoch takes the next ``weight x pairs`` of them: with weight 2
    each twice, with weight 0.1 the next tenth. So over any number of epochs two pairs of one corpus differ by one at
    most in how often they came. The circle goes through the corpus in steps of about 0.618 of its length, which spreads
    every part of it evenly; where it begins depends on the seed.

    Returns:
        Indices of pairs of the store, in no order that means anything; the same for the same arguments, everywhere.
    """
    if all(part.weight == 1 for part in parts):
        return None
    found, first = [], 0
    for number, part in enumerate(parts):
        places = np.arange(part.drawn_before(epoch), part.drawn_before(epoch + 1), dtype=np.int64)
        if len(places):
            n, begin = part.pairs, int(np.random.PCG64((seed, number, 1)).random_raw() % part.pairs)
            found.append(first + (places % n * _step(n) + begin) % n)
        first += part.pairs
    return np.concatenate(found) if found else np.empty(0, np.int64)


def _step(n: int) -> int:
    """The first number from the golden section of ``n`` on that has no divisor in common with it."""
    step = max(1, round(n * (5**0.5 - 1) / 2))
    while gcd(step, n) > 1:
        step += 1
    return step


def check_budget(
    src_lengths: NDArray[np.integer[Any]], tgt_lengths: NDArray[np.integer[Any]], batch_tokens: int
) -> None:
    """Refuse a corpus with a pair that fits in no batch.

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


def _order(n: int, chosen: Indices | None, bits: np.random.PCG64) -> Indices:
    """The order of an epoch: of all ``n`` pairs, or of the ``chosen`` ones, see ``drawn``."""
    return _shuffled(n, bits) if chosen is None else chosen[_shuffled(len(chosen), bits)]


def _shuffled(n: int, bits: np.random.PCG64) -> Indices:
    """A random order of ``0 ... n - 1``: each number below random bits, sorted as one."""
    n_bits = max(n - 1, 1).bit_length()
    number = np.uint64(2**n_bits - 1)  # the bits that hold it
    keys = bits.random_raw(n)  # all that follows is done in place: there may be a hundred million
    keys &= ~number
    for start in range(0, n, CHUNK_NUMBERS):
        part = keys[start : start + CHUNK_NUMBERS]
        part |= np.arange(start, start + len(part), dtype=np.uint64)
    keys.sort()
    keys &= number
    return keys.view(np.int64)


def _shuffled_batches(
    pool: Indices,
    src_lengths: NDArray[np.integer[Any]],
    tgt_lengths: NDArray[np.integer[Any]],
    batch_tokens: int,
    bits: np.random.PCG64,
) -> Iterator[Indices]:
    """Cut a pool into batches of like-long pairs, and shuffle these.

    Pairs with the same longest side are sorted from those with a long source to those with a long target, and back
    among the next, so that neighbours are alike on both sides; what ties is in the pool's random order. Up to 1/16 of a
    batch is left empty, by chance: else the cuts of a small corpus would fall alike in each epoch.
    """
    longest = 1 + np.maximum(src_lengths, tgt_lengths).astype(np.int64)  # eos counted
    slant = (src_lengths.astype(np.int64) - tgt_lengths) * np.where(longest % 2, 1, -1)
    by_length = np.lexsort((slant, -longest))
    pool, descending = pool[by_length], longest[by_length].tolist()
    batches, start = [], 0
    while start < len(pool):
        spared = int(bits.random_raw()) % (batch_tokens // 16 + 1)
        end = start + max(1, (batch_tokens - spared) // descending[start])
        batches.append(pool[start:end])
        start = end
    for i in _shuffled(len(batches), bits):
        yield batches[i]


def all_batches(store: Store, batch_tokens: int) -> Iterator[Batch]:
    """Every pair of ``store`` once, in an order that never changes: for validation.

    Raises:
        ConfigError: A pair by itself is longer than ``batch_tokens``.
    """
    for indices in epoch_batches(store.src_lengths(), store.tgt_lengths(), batch_tokens, seed=0, epoch=0):
        yield _plain(store, indices)


def _plain(store: Store, indices: Indices) -> Batch:
    src_ids, tgt_ids = zip(*map(store.pair, indices.tolist()), strict=True)
    return collate(src_ids, tgt_ids, indices)


@dataclass(frozen=True, kw_only=True)
class Regularisation:
    """How text differs from epoch to epoch: noise is put on it, and its subwords are sampled again."""

    sampling: float = 0.0  # rate of subword regularisation; 0: none
    noise: NoiseConfig = field(default_factory=NoiseConfig)  # what share of the pairs is noised
    lexicon: Lexicon = field(default_factory=dict)  # the word pairs that ``noise`` chooses from
    tokenizers: tuple[Tokenizer, Tokenizer] | None = None  # source, target; needed where there is any
    max_tokens: int | None = None  # pairs that become longer on a side, or longer than the budget, come as they are

    def of(self, store: Store, batch_tokens: int) -> _Resampling | None:
        """What resamples the pairs of ``store``; None: they come as they are.

        Raises:
            ConfigError: The text is not there, or the tokenizers are others than those of the store.
        """
        if not (self.sampling > 0 or self.noise.is_on):
            return None
        if self.tokenizers is None or not store.has_text:
            raise ConfigError(
                "subword sampling and noise need both tokenizers and a store that was built with keep_text=True"
            )
        if tuple(each.fingerprint for each in self.tokenizers) != store.tokenizers:
            raise ConfigError("subword sampling and noise need the tokenizers that the store was built with")
        longest = batch_tokens - 1 - max(len(part.begin) for part in store.parts)
        longest = longest if self.max_tokens is None else min(self.max_tokens, longest)
        return _Resampling(self.sampling, self.noise, self.lexicon, self.tokenizers, longest)


class _Resampling(NamedTuple):
    """Regularisation of text: noise is put on it, and its subwords are sampled, in each epoch."""

    rate: float  # of subword sampling; 0: none
    noise: NoiseConfig
    lexicon: Lexicon
    tokenizers: tuple[Tokenizer, Tokenizer]  # source, target
    max_tokens: int  # a pair of which a side became longer, tags not counted, comes as it is in the store

    def batches(
        self, store: Store, batch_tokens: int, seed: int, epoch: int, done: int
    ) -> Iterator[tuple[Indices, Callable[[], Batch]]]:
        """The batches of an epoch, from the pool on in which its pair number ``done`` is.

        A pool is a function of these arguments alone: its randomness comes from its place in the order.
        """
        order = _order(len(store), drawn(store.parts, seed, epoch), np.random.PCG64((seed, epoch)))
        for start in range(done // RESAMPLED_PAIRS * RESAMPLED_PAIRS, len(order), RESAMPLED_PAIRS):
            pool = order[start : start + RESAMPLED_PAIRS]
            *seeds, noise_seed, of_order = np.random.SeedSequence((seed, epoch, start)).generate_state(4).tolist()
            sides = self._pairs(store, pool, seeds, noise_seed)
            lengths = [np.fromiter(map(len, side), np.int64, len(pool)) for side in sides]
            places = np.arange(len(pool))
            for some in _shuffled_batches(places, lengths[0], lengths[1], batch_tokens, np.random.PCG64(of_order)):
                src, tgt = ([side[i] for i in some] for side in sides)
                yield pool[some], partial(collate, src, tgt, pool[some])

    def _pairs(
        self, store: Store, pool: Indices, seeds: Sequence[int], noise_seed: int
    ) -> tuple[list[Ids | Sequence[int]], list[Ids | Sequence[int]]]:
        """The subwords of the pairs ``pool``, by side; of the seeds comes all that is random."""
        plain = list(map(store.pair, pool.tolist()))
        texts = store.texts(pool)
        pairs = noised_pairs(zip(*texts, strict=True), self.noise, self.lexicon, noise_seed)
        noisy = list(zip(*pairs, strict=True))
        begins = _begins(store, pool)
        ids = [pair[0][len(begin) :] for pair, begin in zip(plain, begins, strict=True)], [pair[1] for pair in plain]
        src, tgt = (self._cut(side, ids[side], texts[side], noisy[side], seeds[side]) for side in (0, 1))
        for row, pair in enumerate(plain):  # both sides or none: they belong together
            if max(len(src[row]), len(tgt[row])) > self.max_tokens:
                src[row], tgt[row] = pair
            elif begins[row]:
                src[row] = [*begins[row], *src[row]]
        return src, tgt

    def _cut(
        self, side: int, ids: Sequence[Ids], old: Sequence[str], new: Sequence[str], seed: int
    ) -> list[Ids | Sequence[int]]:
        """The subwords of one side's texts; without sampling only those that changed are cut again."""
        tokenizer = self.tokenizers[side]
        if self.rate > 0:
            return list(tokenizer.sample(new, self.rate, seed))
        changed = [row for row in range(len(new)) if new[row] != old[row]]
        result: list[Ids | Sequence[int]] = list(ids)
        for row, again in zip(changed, tokenizer.encode([new[row] for row in changed]), strict=True):
            result[row] = again
        return result


def _begins(store: Store, pool: Indices) -> list[tuple[int, ...]]:
    """The tags that the sources of ``pool`` begin with."""
    ends = np.cumsum([part.pairs for part in store.parts])
    return [store.parts[i].begin for i in np.searchsorted(ends, pool, side="right").tolist()]


class _Place(NamedTuple):
    """Where in the order a stream stands: before batch ``position`` of ``epoch``, both counted from 0."""

    epoch: int
    position: int
    pairs: int  # of this epoch, in the batches before


class _Plan(NamedTuple):
    """All that decides which batches come."""

    store: Store
    src_lengths: Lengths
    tgt_lengths: Lengths
    batch_tokens: int
    seed: int
    max_epochs: int | None
    resampling: _Resampling | None
    rank: int
    world_size: int

    def batches(self, place: _Place) -> Iterator[tuple[_Place, Batch]]:
        """Yield this rank's batches from ``place`` on, each with the place after it and its siblings."""
        order = self._order(place)
        while len(group := list(islice(order, self.world_size))) == self.world_size:
            yield group[-1][0], group[self.rank][1]()
        if group:
            logger.warning("the last %d batches are left out: %d ranks cannot share them", len(group), self.world_size)

    def _order(self, place: _Place) -> Iterator[tuple[_Place, Callable[[], Batch]]]:
        """Yield for every batch from ``place`` on the place after it, and what makes it."""
        epoch, position, done = place
        while self.max_epochs is None or epoch < self.max_epochs:
            pairs = 0 if self.resampling is None else done // RESAMPLED_PAIRS * RESAMPLED_PAIRS
            for indices, make in self._epoch(epoch, done):
                pairs += len(indices)
                if pairs > done:
                    position, done = position + 1, pairs
                    yield _Place(epoch, position, done), make
            epoch, position, done = epoch + 1, 0, 0

    def _epoch(self, epoch: int, done: int) -> Iterator[tuple[Indices, Callable[[], Batch]]]:
        if self.resampling is not None:
            yield from self.resampling.batches(self.store, self.batch_tokens, self.seed, epoch, done)
        else:
            chosen = drawn(self.store.parts, self.seed, epoch)
            lengths = self.src_lengths, self.tgt_lengths
            for indices in epoch_batches(*lengths, self.batch_tokens, self.seed, epoch, chosen):
                yield indices, partial(_plain, self.store, indices)


class BatchStream:
    """Batches for training, epoch after epoch, without end or up to ``max_epochs``.

        stream = BatchStream(store, batch_tokens=4096, seed=1)
        batch = next(stream)
        state = stream.state_dict()     # after as many batches as were handed out, however many are made ahead
        other.load_state_dict(state)    # continues with the same batches

    Close it, or use it in a ``with``, to end the thread that makes batches ahead.
    """

    def __init__(
        self,
        store: Store,
        batch_tokens: int,
        seed: int,
        *,
        regularisation: Regularisation | None = None,
        max_epochs: int | None = None,
        rank: int = 0,
        world_size: int = 1,
        ahead: int = 4,
    ) -> None:
        """Plan the order; of the store only the lengths are read.

        Args:
            batch_tokens: Rows times longest side, eos counted, of one batch of one rank.
            seed: At least 0.
            regularisation: How text differs from epoch to epoch; it needs a store with text.
            rank: Which of ``world_size`` processes this is.
            ahead: How many batches a background thread makes before they are asked for; 0: no thread.

        Raises:
            ConfigError: A pair is longer than ``batch_tokens``, or the arguments do not fit each other.
        """
        if not 0 <= rank < world_size:
            raise ConfigError(f"rank = {rank} must be at least 0 and below world_size = {world_size}")
        resampling = None if regularisation is None else regularisation.of(store, batch_tokens)
        src_lengths, tgt_lengths = store.src_lengths(), store.tgt_lengths()
        check_budget(src_lengths, tgt_lengths, batch_tokens)
        if store.n_drawn < 1:
            raise ConfigError(
                f"the weights of data.train leave {store.n_drawn:g} pairs to an epoch: raise them, so that it has one"
            )
        self._plan = _Plan(
            store=store,
            src_lengths=src_lengths,
            tgt_lengths=tgt_lengths,
            batch_tokens=batch_tokens,
            seed=seed,
            max_epochs=max_epochs,
            resampling=resampling,
            rank=rank,
            world_size=world_size,
        )
        self._n_ahead = ahead
        self._place = _Place(0, 0, 0)
        self._source: Iterator[tuple[_Place, Batch]] | None = None

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Batch:
        if self._source is None:
            batches = self._plan.batches(self._place)
            self._source = _Ahead(batches, self._n_ahead) if self._n_ahead else batches
        self._place, batch = next(self._source)
        return batch

    @property
    def epoch(self) -> int:
        """The epoch, from 0, of the batch handed out last."""
        return self._place.epoch

    @property
    def epochs_done(self) -> float:
        """How many epochs are done, by pairs, such as 2.37."""
        parts, epoch = self._plan.store.parts, self._place.epoch
        size = sum(part.drawn_before(epoch + 1) - part.drawn_before(epoch) for part in parts)
        return epoch + self._place.pairs / max(1, size)

    def state_dict(self) -> dict[str, int | str]:
        """The place after the batch handed out last: plain numbers, fit for JSON."""
        store, resampling = self._plan.store, self._plan.resampling
        return {
            "seed": self._plan.seed,
            "batch_tokens": self._plan.batch_tokens,
            **({"anew": f"{RESAMPLED_PAIRS} pairs at a time"} if resampling else {}),
            **(
                {"noise": fingerprint(resampling.noise, resampling.lexicon)}
                if resampling and resampling.noise.is_on
                else {}
            ),
            "corpus": f"{len(store)} pairs of {store.n_tokens[0]} and {store.n_tokens[1]} subwords",
            **(
                {"weights": " ".join(f"{part.weight:g}x{part.pairs}" for part in store.parts)}
                if store.is_weighted
                else {}
            ),
            **self._place._asdict(),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go to the place that ``state_dict`` described; at most one epoch has to be put in order for it.

        Raises:
            BundleError: The state was taken with another seed, budget or corpus, whose order is another.
        """
        for key, mine in self.state_dict().items():
            if key in _Place._fields:
                if type(state.get(key)) is not int or state[key] < 0:
                    raise BundleError(f"the place in the data is damaged: {key} = {state.get(key)!r} is no count")
            elif state.get(key) != mine:
                raise BundleError(
                    f"the place in the data was taken with {key} = {state.get(key)}, but now it is {mine}: the batches "
                    "come in another order. Resume with the configuration and the corpus of the run"
                )
        self.close()
        self._place = _Place(state["epoch"], state["position"], state["pairs"])

    def close(self) -> None:
        """End the background thread; the next batch starts it again from the same place."""
        if isinstance(self._source, _Ahead):
            self._source.close()
        self._source = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *failure: object) -> None:
        self.close()


class _End(NamedTuple):
    """What a thread sends last: why it ended."""

    error: BaseException | None


class _Ahead:
    """An iterator whose items are made ahead, at most ``depth`` of them, by a thread."""

    def __init__(self, items: Iterator[tuple[_Place, Batch]], depth: int) -> None:
        self._queue: queue.Queue[tuple[_Place, Batch] | _End] = queue.Queue(depth)
        self._stop = threading.Event()
        self._end: _End | None = None
        self._thread = threading.Thread(
            target=self._fill, args=(items, self._queue, self._stop), name="dragoman-batches", daemon=True
        )
        weakref.finalize(self, self._stop.set)  # the thread knows no self, so that forgetting the iterator ends it
        self._thread.start()

    @staticmethod
    def _fill(items: Iterator[Any], into: queue.Queue[Any], stop: threading.Event) -> None:
        def put(item: Any) -> None:
            while not stop.is_set():
                with contextlib.suppress(queue.Full):
                    into.put(item, timeout=0.1)
                    return

        error = None
        try:
            for item in items:
                put(item)
                if stop.is_set():
                    return
        except BaseException as caught:  # of whatever kind: it belongs to the thread that asks for batches
            error = caught
        put(_End(error))

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> tuple[_Place, Batch]:
        item = self._end or self._queue.get()
        if isinstance(item, _End):
            self._end = item
            if item.error:
                raise item.error
            raise StopIteration
        return item

    def close(self) -> None:
        self._stop.set()
        self._thread.join()
