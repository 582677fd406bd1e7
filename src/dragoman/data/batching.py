"""Batches for training, in an order that can be resumed at any step.

    with BatchStream(store, batch_tokens=4096, seed=1) as stream:
        batch = next(stream)
        state = stream.state_dict()

``order`` decides which pairs come when, and ``regularisation`` changes their text from epoch to epoch. Rank ``r`` of
``W`` takes the batches ``k W + r`` of the one order, counted across epochs, so that all ranks always have equally many.
A position counts the batches of all ranks: a run may resume with another number of them.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any, NamedTuple, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dragoman.data.order import Indices, check_budget, epoch_batches, weighted_pairs
from dragoman.data.prefetch import Prefetcher
from dragoman.data.regularisation import Regularisation
from dragoman.data.store import Ids, Lengths, Store
from dragoman.data.tokenizer import BOS_ID, EOS_ID, PAD_ID
from dragoman.errors import BundleError, ConfigError

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Batch:
    """Pairs of ids, padded on the right with ``PAD_ID``; all tensors are int64."""

    src: Tensor  # (B, S): ids, eos
    tgt_in: Tensor  # (B, T): bos, ids
    tgt_out: Tensor  # (B, T): ids, eos
    indices: Tensor  # (B,): numbers of the pairs in the store
    n_tgt_tokens: int  # in tgt_out, with eos and without padding
    where: Tensor | None = None  # (n_tgt_tokens,): their positions in tgt_out.view(-1); None: not computed

    def to(self, device: torch.device | str) -> Batch:
        """Return the same batch on another device; the copy to a GPU is asynchronous."""
        pinned = torch.device(device).type == "cuda"  # a GPU can copy from pinned memory without the CPU

        def moved(tensor: Tensor) -> Tensor:
            return (tensor.pin_memory() if pinned else tensor).to(device, non_blocking=True)

        src, tgt_in, tgt_out, indices = map(moved, (self.src, self.tgt_in, self.tgt_out, self.indices))
        where = None if self.where is None else moved(self.where)
        return Batch(src, tgt_in, tgt_out, indices, self.n_tgt_tokens, where)


def collate(
    src_ids: Sequence[Ids | Sequence[int]], tgt_ids: Sequence[Ids | Sequence[int]], indices: Iterable[int]
) -> Batch:
    """Return a batch of pairs of ids, which come without bos and eos."""
    tgt = _padded(tgt_ids)  # (B, T)
    tgt_in, tgt_out = np.roll(tgt, 1, axis=1), tgt
    tgt_in[:, 0] = BOS_ID
    src = _padded(src_ids)  # (B, S)
    for padded, rows in ((src, src_ids), (tgt_out, tgt_ids)):
        padded[np.arange(len(rows)), np.fromiter(map(len, rows), np.int64, len(rows))] = EOS_ID
    return Batch(
        src=torch.from_numpy(src),
        tgt_in=torch.from_numpy(tgt_in),
        tgt_out=torch.from_numpy(tgt_out),
        indices=torch.as_tensor(np.asarray(indices, dtype=np.int64)),
        n_tgt_tokens=sum(map(len, tgt_ids)) + len(tgt_ids),
        where=torch.from_numpy(np.flatnonzero(tgt_out != PAD_ID)),  # here, in the background thread, it costs no time
    )


def _padded(rows: Sequence[Ids | Sequence[int]]) -> NDArray[np.int64]:
    """Return rows of different length as one array, ``(B, longest + 1)``, with space for bos or eos."""
    lengths = np.fromiter(map(len, rows), np.int64, len(rows))
    padded = np.full((len(rows), int(lengths.max()) + 1), PAD_ID, dtype=np.int64)
    padded[np.arange(padded.shape[1]) < lengths[:, None]] = np.concatenate(rows)
    return padded


def all_batches(store: Store, batch_tokens: int, pairs: Indices | None = None) -> Iterator[Batch]:
    """Yield every pair of ``store`` once, in an order that never changes: for validation.

    Args:
        store: The pairs.
        batch_tokens: Size of a batch.
        pairs: Numbers of the pairs to yield; None: all.

    Raises:
        ConfigError: A single pair is longer than ``batch_tokens``.
    """
    lengths = store.src_lengths(), store.tgt_lengths()
    for indices in epoch_batches(*lengths, batch_tokens, seed=0, epoch=0, chosen=pairs):
        yield stored_batch(store, indices)


def stored_batch(store: Store, indices: Indices) -> Batch:
    """Return the batch of these pairs with their ids as they are in the store."""
    src_ids, tgt_ids = zip(*map(store.pair, indices.tolist()), strict=True)
    return collate(src_ids, tgt_ids, indices)


def batches_an_epoch(store: Store, batch_tokens: int, seed: int, regularisation: Regularisation | None = None) -> int:
    """Return the number of batches of the first epoch of a ``BatchStream``, of all ranks.

    If its text is resampled, most of it is estimated, see ``Regularisation.n_batches``.

    Raises:
        ConfigError: A single pair is longer than ``batch_tokens``, or the regularisation does not fit the store.
    """
    regularisation = None if regularisation is None else regularisation.fitted(store, batch_tokens)
    lengths = store.src_lengths(), store.tgt_lengths()
    check_budget(*lengths, batch_tokens)
    if regularisation is not None:
        return regularisation.n_batches(store, batch_tokens, seed, epoch=0)
    return sum(1 for _ in epoch_batches(*lengths, batch_tokens, seed, 0, weighted_pairs(store.parts, seed, 0)))


class _Place(NamedTuple):
    """A place in the order: before batch ``position`` of ``epoch``, both counted from 0."""

    epoch: int
    position: int
    pairs: int  # number of pairs of this epoch in the batches before


class _Plan(NamedTuple):
    """All that decides which batches come."""

    store: Store
    src_lengths: Lengths
    tgt_lengths: Lengths
    batch_tokens: int
    seed: int
    max_epochs: int | None
    regularisation: Regularisation | None
    rank: int
    world_size: int

    def batches(self, place: _Place) -> Iterator[tuple[_Place, Batch]]:
        """Yield this rank's batches from ``place`` on, each with the place after the batches of all ranks."""
        order = self._order(place)
        while len(group := list(islice(order, self.world_size))) == self.world_size:
            yield group[-1][0], group[self.rank][1]()
        if group:
            logger.warning("the last %d batches are left out: %d ranks cannot share them", len(group), self.world_size)

    def _order(self, place: _Place) -> Iterator[tuple[_Place, Callable[[], Batch]]]:
        """Yield for every batch from ``place`` on the place after it, and a function that makes it."""
        epoch, position, done = place
        while self.max_epochs is None or epoch < self.max_epochs:
            # A resampled epoch is taken up at the beginning of a pool, so its first batches may be done already.
            pairs = 0 if self.regularisation is None else self.regularisation.pool_start(done)
            for n_pairs, make in self._epoch(epoch, done):
                pairs += n_pairs
                if pairs > done:
                    position, done = position + 1, pairs
                    yield _Place(epoch, position, done), make
            epoch, position, done = epoch + 1, 0, 0

    def _epoch(self, epoch: int, done: int) -> Iterator[tuple[int, Callable[[], Batch]]]:
        """Yield for every batch of an epoch its number of pairs, and a function that makes it.

        Args:
            done: Number of pairs done; pools of resampled text before that of pair ``done`` are skipped.
        """
        if self.regularisation is not None:
            resampled = self.regularisation.batches(self.store, self.batch_tokens, self.seed, epoch, done)
            for indices, src, tgt in resampled:
                yield len(indices), partial(collate, src, tgt, indices)
            return
        chosen = weighted_pairs(self.store.parts, self.seed, epoch)
        lengths = self.src_lengths, self.tgt_lengths
        for indices in epoch_batches(*lengths, self.batch_tokens, self.seed, epoch, chosen):
            yield len(indices), partial(stored_batch, self.store, indices)


class BatchStream:
    """An iterator over batches for training, epoch after epoch, endless or up to ``max_epochs``.

        stream = BatchStream(store, batch_tokens=4096, seed=1)
        batch = next(stream)
        state = stream.state_dict()     # counts the batches handed out, not those made ahead
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
        """Plan the order; only the lengths of the store are read.

        Args:
            batch_tokens: Largest number of rows times longest side, eos counted, in one batch of one rank.
            seed: At least 0.
            regularisation: Changes of the text from epoch to epoch; needs a store with text.
            max_epochs: Number of epochs; None: endless.
            rank: Number of this process among ``world_size``, from 0.
            ahead: Number of batches that a background thread makes ahead; 0: no thread.

        Raises:
            ConfigError: A pair is longer than ``batch_tokens``, or the arguments contradict each other.
        """
        if not 0 <= rank < world_size:
            raise ConfigError(f"rank = {rank} must be at least 0 and below world_size = {world_size}")
        regularisation = None if regularisation is None else regularisation.fitted(store, batch_tokens)
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
            regularisation=regularisation,
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
            self._source = Prefetcher(batches, self._n_ahead) if self._n_ahead else batches
        self._place, batch = next(self._source)
        return batch

    @property
    def epoch(self) -> int:
        """Epoch of the batch handed out last, from 0."""
        return self._place.epoch

    @property
    def epochs_done(self) -> float:
        """Number of epochs done, counted by pairs, such as 2.37."""
        parts, epoch = self._plan.store.parts, self._place.epoch
        size = sum(part.drawn_before(epoch + 1) - part.drawn_before(epoch) for part in parts)
        return epoch + self._place.pairs / max(1, size)

    def state_dict(self) -> dict[str, int | str]:
        """Return the place after the batch handed out last, and all that decides the order, as JSON types."""
        store, regularisation = self._plan.store, self._plan.regularisation
        weights = " ".join(f"{part.weight:g}x{part.pairs}" for part in store.parts)
        return {
            "seed": self._plan.seed,
            "batch_tokens": self._plan.batch_tokens,
            **(regularisation.facts() if regularisation else {}),
            "corpus": f"{len(store)} pairs of {store.n_tokens[0]} and {store.n_tokens[1]} subwords",
            **({"weights": weights} if store.is_weighted else {}),
            **self._place._asdict(),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from a state of ``state_dict``; this orders at most one epoch again.

        Raises:
            BundleError: The state is damaged, or belongs to another seed, budget or corpus, hence to another order.
        """
        for key, current in self.state_dict().items():
            if key in _Place._fields:
                if type(state.get(key)) is not int or state[key] < 0:
                    problem = f"{key} must be an integer of 0 or more, got {state.get(key)!r}"
                    raise BundleError(f"the place in the data is damaged: {problem}")
            elif state.get(key) != current:
                raise BundleError(
                    f"the place in the data was taken with {key} = {state.get(key)}, but now it is {current}: the "
                    "batches come in another order. Resume with the configuration and the corpus of the run"
                )
        self.close()
        self._place = _Place(state["epoch"], state["position"], state["pairs"])

    def close(self) -> None:
        """End the background thread; the next batch starts it again from the same place."""
        if isinstance(self._source, Prefetcher):
            self._source.close()
        self._source = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *failure: object) -> None:
        self.close()
