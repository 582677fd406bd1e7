"""The log of a server, written by a thread of its own: a pipe that nobody reads, or a slow disk, delays no request.

with written_apart() as log:
    ...                      # logging never waits; lines that are too many are counted, and lost
                             # warnings that one place of the code logs again and again are counted too
log.is_written               # False: the pipe is still full, and a plain exit would wait for it
"""

from __future__ import annotations

import contextlib
import logging
import math
import queue
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass

from dragoman.progress import say

MOST_LINES = 10_000
"""Largest number of lines that wait to be written; further ones are lost."""

LAST_S = 2.0
"""Time for the last lines to be written at the end, in seconds."""

MOST_ALIKE = 20
"""Largest number of warnings of one place in the code that are written in ``ALIKE_S``; others are counted."""

ALIKE_S = 10.0
"""Time in which lines of one place in the code are counted together, in seconds."""

Line = tuple[logging.Handler, logging.LogRecord]


class _Saying(logging.Handler):
    """Prints a line without its time and place."""

    def emit(self, record: logging.LogRecord) -> None:
        say(record.getMessage())


_SAYING = _Saying()


class Log:
    """Lines that wait, and the thread that writes them."""

    def __init__(self) -> None:
        """Start the thread."""
        self._lines: queue.Queue[Line | None] = queue.Queue(MOST_LINES)
        self.n_lost = 0
        """Number of lines that were lost since the last one was written."""
        self._places: dict[tuple[logging.Handler, str, int], _Place] = {}
        self._counting = threading.Lock()
        self._thread = threading.Thread(target=self._write, name="log", daemon=True)
        self._thread.start()

    @property
    def is_written(self) -> bool:
        """True once the log is closed and all lines are written."""
        return not self._thread.is_alive()

    def put(self, handler: logging.Handler, record: logging.LogRecord) -> None:
        """Let ``handler`` write a record soon; never wait. Of many warnings of one place the first ones are written."""
        if record.levelno >= logging.WARNING:
            name = handler, record.pathname, record.lineno
            with self._counting:
                place = self._places.setdefault(name, _Place(handler, record, time.monotonic()))
                place.n_lines += 1
                if place.n_lines > MOST_ALIKE:
                    return
        try:
            self._lines.put_nowait((handler, record))
        except queue.Full:
            self.n_lost += 1

    def say(self, line: str) -> None:
        """Print a line soon, as ``progress.say`` does; never wait for the reader of a pipe."""
        self.put(_SAYING, logging.LogRecord(__name__, logging.INFO, __file__, 0, "%s", (line,), None))

    def close(self) -> None:
        """Write what waits, for ``LAST_S`` seconds at most."""
        until = time.monotonic() + LAST_S
        with contextlib.suppress(queue.Full):
            self._lines.put(None, timeout=LAST_S)
        self._thread.join(max(0.0, until - time.monotonic()))

    def _write(self) -> None:
        while True:
            with contextlib.suppress(queue.Empty):
                line = self._lines.get(timeout=ALIKE_S)
                if line is None:
                    break
                handler, record = line
                handler.handle(record)
                if self.n_lost:
                    lost, self.n_lost = self.n_lost, 0
                    _write_warning(handler, record, f"{lost:,} lines of the log were lost: they came too fast")
            self._report_alike(time.monotonic() - ALIKE_S)
        self._report_alike(math.inf)

    def _report_alike(self, latest: float) -> None:
        """Write how many lines were left out of each place whose time began before ``latest``, and count again."""
        with self._counting:
            ended = {name: place for name, place in self._places.items() if place.began < latest}
            for name in ended:
                del self._places[name]
        for place in ended.values():
            if (n := place.n_lines - MOST_ALIKE) > 0:
                _write_warning(place.handler, place.first, f"{n:,} more lines like this: {place.first.getMessage()}")


@dataclass
class _Place:
    """Lines of one place in the code, since the first one."""

    handler: logging.Handler
    first: logging.LogRecord
    began: float
    n_lines: int = 0


def _write_warning(handler: logging.Handler, like: logging.LogRecord, text: str) -> None:
    handler.handle(logging.LogRecord(like.name, logging.WARNING, __file__, 0, text, None, None))


class _Apart(logging.Handler):
    """Hands records to a log, which another handler writes."""

    def __init__(self, log: Log, handler: logging.Handler) -> None:
        super().__init__(handler.level)
        self._log, self._handler = log, handler

    def emit(self, record: logging.LogRecord) -> None:
        # The text is made here, since an argument may change.
        record.msg, record.args = record.getMessage(), None
        self._log.put(self._handler, record)


@contextlib.contextmanager
def written_apart() -> Iterator[Log]:
    """Let a thread write all that is logged while the body runs, by the handlers of dragoman and Python's own."""
    logger, last = logging.getLogger("dragoman"), logging.lastResort
    handlers, log = list(logger.handlers), Log()
    logger.handlers = [_Apart(log, handler) for handler in handlers]
    logging.lastResort = _Apart(log, last) if last is not None else None
    try:
        yield log
    finally:
        logger.handlers, logging.lastResort = handlers, last
        log.close()
