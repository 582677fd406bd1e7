"""Many sentences: sorted by length, and cut into batches by tokens; a batch without memory is split. Needs no torch."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from dragoman.decoding.request import SearchSettings, Segment
from dragoman.device import free_memory, is_out_of_memory
from dragoman.fast import LEAST_SOURCE

CONSTRAINED_BEAM = 10
"""Smallest beam for a sentence with words to place, among which the beam is shared out."""

MOST_CONSTRAINED_BEAM = 64
"""Widest of these beams: without this limit the time would grow with the cube of the number of ids to place."""

BATCHES_A_WORKER = 4
"""Number of batches for each worker, so that all have work until the end..."""

SHARED_TOKENS = 1024
"""...but none of fewer tokens than this, as a small batch takes a small model more time for each token."""


def length_batches(lengths: Sequence[int], batch_tokens: int, least: int = 1) -> Iterator[list[int]]:
    """Yield indices of similar length, the longest batch first; rows x longest is at most ``batch_tokens``, or one row.

    All but the last batch have 1, 2, 3, 4, 6, 8, 12, ... rows, the sizes that a search continues with: see ``fitting``.

    Args:
        least: Length for which a shorter one counts.
    """
    order = sorted(range(len(lengths)), key=lambda i: (-lengths[i], i))
    batch: list[int] = []
    for i in order:
        if batch and (len(batch) + 1) * max(lengths[batch[0]], least) > batch_tokens:
            n = 1 << (len(batch).bit_length() - 1)
            n = n * 3 // 2 if n * 3 // 2 <= len(batch) else n
            yield batch[:n]
            batch = batch[n:]
        batch.append(i)
    if batch:
        yield batch


def balanced(settings: SearchSettings, segments: Sequence[Segment]) -> SearchSettings:
    """Return settings with batches so small that each worker has several, and none is idle for long at the end."""
    n_tokens = sum(max(len(segment.ids) + 1, LEAST_SOURCE) for segment in segments)
    share = n_tokens // (settings.workers * BATCHES_A_WORKER)
    return settings.with_decode(batch_tokens=min(settings.decode.batch_tokens, max(share, SHARED_TOKENS)))


def least_on(device: str) -> int:
    """Return the number of tokens for which a shorter source counts in a batch on ``cpu`` or ``cuda``.

    Each hypothesis takes a row of the size of the vocabulary, however short its source is. A GPU says where it has no
    memory for so many, and the batch is split; of main memory the system gives more than there is, and ends a process.
    """
    return LEAST_SOURCE if device == "cpu" else 1


def run_halving(batch: list[int], run: Callable[[list[int]], None]) -> list[int]:
    """Run a batch; where memory is short, its halves. Return the indices that failed alone."""
    pending, failed = [batch] if batch else [], []
    while pending:
        part = pending.pop()
        try:
            run(part)
            continue
        except (RuntimeError, MemoryError) as error:
            if not is_out_of_memory(error):
                raise
        # the error is gone by now, and with it the tensors that its frames held
        free_memory()
        if len(part) == 1:
            failed += part
        else:
            middle = len(part) // 2
            pending += [part[middle:], part[:middle]]
    return failed


def most_tokens(segment: Segment, settings: SearchSettings) -> int:
    """Return how many tokens the translation of a segment may have, eos counted."""
    needed = 0 if segment.rules is None else segment.rules.room
    most = max(len(segment.ids), needed) + settings.decode.max_extra_tokens
    return min(most, settings.longest or most)
