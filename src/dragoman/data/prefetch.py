"""Read ahead: a background thread makes items before they are asked for."""

from __future__ import annotations

import contextlib
import queue
import threading
import weakref
from collections.abc import Iterator
from typing import Any, Generic, NamedTuple, Self, TypeVar

Item = TypeVar("Item")


class _End(NamedTuple):
    """Last message of the thread: the error that ended it, or None if there are no more items."""

    error: BaseException | None


class Prefetcher(Generic[Item]):
    """An iterator over ``items`` that a thread makes ahead, at most ``depth`` of them; errors are raised in order."""

    def __init__(self, items: Iterator[Item], depth: int) -> None:
        self._queue: queue.Queue[Item | _End] = queue.Queue(depth)
        self._stop = threading.Event()
        self._end: _End | None = None
        self._thread = threading.Thread(
            target=self._fill, args=(items, self._queue, self._stop), name="dragoman-batches", daemon=True
        )
        weakref.finalize(self, self._stop.set)  # the thread has no reference to self, so dropping the iterator ends it
        self._thread.start()

    @staticmethod
    def _fill(items: Iterator[Any], into: queue.Queue[Any], stop: threading.Event) -> None:
        """Put the items into the queue, and at last an ``_End``, until ``stop`` is set; runs in the thread."""

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
        except BaseException as caught:  # of any kind: the thread that asks for items raises it
            error = caught
        put(_End(error))

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Item:
        item = self._end or self._queue.get()
        if isinstance(item, _End):
            self._end = item
            if item.error:
                raise item.error
            raise StopIteration
        return item

    def close(self) -> None:
        """End the thread and wait for it."""
        self._stop.set()
        self._thread.join()
