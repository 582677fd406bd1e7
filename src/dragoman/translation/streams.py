"""Lines grouped as they arrive."""

from __future__ import annotations

import contextlib
import queue
import threading
from collections.abc import Generator, Iterable, Iterator

from dragoman.data.corpus import Line

FIRST = 64
"""Lines translated first; then twice as many each time, so that somebody who waits soon sees some."""


def windows(lines: Iterable[Line], size: int, pause_s: float = 0.05) -> Generator[list[Line]]:
    """Group lines as they come: up to ``size`` of them, fewer at first and when none arrives for ``pause_s`` seconds.

    A thread reads ahead; it ends with the lines, or after the next line when the generator is closed.
    """
    arrived: queue.Queue[Line | BaseException | None] = queue.Queue(maxsize=2 * size)
    closed = threading.Event()

    def put(item: Line | BaseException | None) -> None:
        while not closed.is_set():
            with contextlib.suppress(queue.Full):
                arrived.put(item, timeout=1)
                return

    def read() -> None:
        try:
            for line in lines:
                put(line)
                if closed.is_set():
                    return
            put(None)
        except BaseException as error:
            put(error)

    threading.Thread(target=read, daemon=True, name="read-ahead").start()
    try:
        yield from _grouped(arrived, size, pause_s)
    finally:
        closed.set()


def _grouped(arrived: queue.Queue[Line | BaseException | None], size: int, pause_s: float) -> Iterator[list[Line]]:
    """What arrives, in windows."""
    window, most = list[Line](), min(FIRST, size)
    while True:
        try:
            item = arrived.get(timeout=pause_s if window else None)
        except queue.Empty:
            yield window
            window = []
            continue
        if isinstance(item, Line):
            window.append(item)
        if window and (len(window) == most or not isinstance(item, Line)):
            yield window
            window, most = [], min(2 * most, size)
        if isinstance(item, BaseException):
            raise item
        if item is None:
            return
