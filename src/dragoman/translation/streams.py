"""Groups lines as they arrive."""

from __future__ import annotations

import contextlib
import queue
import threading
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence

from dragoman.data.corpus import Line

FIRST = 64
"""Lines of the first window; each next one has twice as many, so that a waiting reader soon sees a result."""


def seen_by(look: Callable[[Sequence[str]], object], arriving: Generator[list[Line]]) -> Generator[list[Line]]:
    """Yield groups of lines, and show the texts of each group to ``look`` first."""
    with contextlib.closing(arriving):
        for lines in arriving:
            look([line.text for line in lines])
            yield lines


def windows(lines: Iterable[Line], size: int, pause_s: float = 0.05) -> Generator[list[Line]]:
    """Yield lines in groups: up to ``size``, fewer at first and when none arrives for ``pause_s`` seconds.

    A thread reads ahead; it ends after the last line, or after the next line once the generator is closed.
    """
    arrived: queue.Queue[Line | BaseException | None] = queue.Queue(maxsize=2 * size)
    closed = threading.Event()

    # never blocks for good: a closed generator takes nothing out of a full queue
    def put(arrival: Line | BaseException | None) -> None:
        while not closed.is_set():
            with contextlib.suppress(queue.Full):
                arrived.put(arrival, timeout=1)
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
    """Yield the lines of a queue in windows; raise the error that ended the reading, if any."""
    window, most = list[Line](), min(FIRST, size)
    while True:
        try:
            arrival = arrived.get(timeout=pause_s if window else None)
        except queue.Empty:
            yield window
            window = []
            continue
        if isinstance(arrival, Line):
            window.append(arrival)
        if window and (len(window) == most or not isinstance(arrival, Line)):
            yield window
            window, most = [], min(2 * most, size)
        if isinstance(arrival, BaseException):
            raise arrival
        if arrival is None:
            return
