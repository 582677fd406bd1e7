"""Watches the search threads and the event loop from a thread of its own.

What has died is started again; what is stuck is reported by ``/readyz``, then given up; what cannot be given up ends
the server, so that its supervisor starts it again.

    watchdog = Watchdog(batcher)
    watchdog.problems()       # what is wrong now, for /readyz
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import sys
import threading
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass

from dragoman.serving.batcher import Batcher
from dragoman.serving.heartbeat import Heartbeat
from dragoman.serving.memory import Trimmer
from dragoman.serving.tickets import Batch

logger = logging.getLogger("dragoman.serving")


@dataclass(frozen=True)
class Patience:
    """Seconds after which something counts as stuck."""

    look_every_s: float = 1.0
    batch_s: float = 20.0  # for a batch of which less is expected
    times_expected: float = 10.0  # for one of which more is expected
    loop_s: float = 5.0  # for the event loop
    loop_ends_s: float = 60.0  # until an event loop that is stuck ends the server
    interpreter_s: float | None = None  # until the process ends in which no Python code can run; None: it does not


class Watchdog:
    """Keeps a server at work, or says why it is not."""

    def __init__(
        self, batcher: Batcher, end: Callable[[str, bool], object] | None = None, patience: Patience | None = None,
        is_serving: Callable[[], bool] = lambda: True,
    ) -> None:  # fmt: skip
        """Watch a batcher until it is closed.

        Args:
            end: Ends the server, for the reason that is its first argument; the second is True if other requests can
                still finish. It is called once, from the watchdog's thread.
            patience: Limits of time.
            is_serving: While it returns False a batch may take any time, such as to load an engine.
        """
        self.batcher, self.end, self.patience = batcher, end, patience or Patience()
        self._is_serving = is_serving
        self.failure: str | None = None
        """Why the server must end; None while it need not."""
        self._loop: asyncio.AbstractEventLoop | None = None
        self._loop_thread = 0
        self._silent_s = 0.0  # since the event loop last answered
        self._watched_s: dict[tuple[str, float], float] = {}  # by thread and start of a batch
        self._trimmer = Trimmer(lambda: (batcher.done.batches, bool(batcher.running())))
        self._thread = threading.Thread(target=self._watch, name="watchdog", daemon=True)
        self._thread.start()

    def watch_loop(self, loop: asyncio.AbstractEventLoop) -> None:
        """Watch the event loop of the calling thread too."""
        self._loop_thread, self._silent_s, self._loop = threading.get_ident(), 0.0, loop

    def problems(self) -> list[str]:
        """Return what is wrong now, in sentences for the operator; what ends the server comes first."""
        failed = [self.failure] if self.failure else []
        if not self._thread.is_alive() and not self.batcher.closing:
            failed.append("the watchdog has died")
        dead = [f"search thread {name} has died" for name in self.batcher.dead_threads()]
        slow = [_stuck(batch) for batch in self.batcher.running() if batch.seconds > self._limit_s(batch)]
        return [*failed, *dead, *slow]

    def is_alive(self) -> bool:
        """Return False if the server cannot go on without a restart."""
        return self.failure is None and (self._thread.is_alive() or self.batcher.closing)

    def _watch(self) -> None:
        last = time.monotonic()
        heartbeat: Heartbeat | None = None
        while not self.batcher.closing:
            time.sleep(self.patience.look_every_s)
            now = time.monotonic()
            # While the process was suspended nothing could move: such time does not count.
            seconds = min(now - last, 2 * self.patience.look_every_s)
            last = now
            if self.patience.interpreter_s and heartbeat is None:
                heartbeat = Heartbeat(self.patience.interpreter_s)
            elif heartbeat is not None:
                heartbeat.beat()
            for look in (self._look_at_threads, self._look_at_batches, self._look_at_loop, self._trimmer.look):
                try:
                    look(seconds)
                except BaseException:
                    with contextlib.suppress(BaseException):
                        logger.exception("the watchdog failed to look after the server; it looks again")
        if heartbeat is not None:
            heartbeat.close()

    def _look_at_threads(self, seconds: float) -> None:
        if dead := self.batcher.dead_threads():
            logger.error("%s died: started again", ", ".join(f"search thread {name}" for name in dead))
            self.batcher.revive()

    def _look_at_batches(self, seconds: float) -> None:
        """Report a batch beyond its limit; give it up at three times the limit, and the server at five times."""
        running = self.batcher.running() if self._is_serving() else []
        names = [(batch.thread, batch.started) for batch in running]
        self._watched_s = {name: self._watched_s.get(name, 0.0) + seconds for name in names}
        for batch, name in zip(running, names, strict=True):
            watched, limit = self._watched_s[name], self._limit_s(batch)
            before = watched - seconds
            if before <= limit < watched:
                logger.warning("%s", _stuck(batch))
            elif before <= 3 * limit < watched:
                logger.error("%s: its requests are given up", _stuck(batch))
                self.batcher.give_up(batch)
            elif watched > 5 * limit:
                self._fail(f"{_stuck(batch)}, and cannot be ended", True)

    def _limit_s(self, batch: Batch) -> float:
        return max(self.patience.batch_s, self.patience.times_expected * batch.expected_s)

    def _look_at_loop(self, seconds: float) -> None:
        loop = self._loop
        if loop is None or loop.is_closed():
            return
        before, self._silent_s = self._silent_s, self._silent_s + seconds
        silent = self._silent_s
        if before <= self.patience.loop_s < silent:
            logger.warning("the event loop has been blocked for %.0f s at %s", silent, self._place_in_loop())
        elif silent > self.patience.loop_ends_s:
            self._fail(f"the event loop has been blocked for {silent:.0f} s", False)
        with contextlib.suppress(RuntimeError):  # it was closed just now
            loop.call_soon_threadsafe(self._answer)

    def _answer(self) -> None:
        self._silent_s = 0.0

    def _place_in_loop(self) -> str:
        """Return the function in which the event loop's thread is now, with file and line."""
        frame = sys._current_frames().get(self._loop_thread)
        stack = traceback.extract_stack(frame)
        own = [place for place in stack if "dragoman" in place.filename] or stack
        return f"{own[-1].filename}:{own[-1].lineno} ({own[-1].name})"

    def _fail(self, why: str, others_finish: bool) -> None:
        if self.failure is None:
            self.failure = why
            if self.end is not None:
                self.end(why, others_finish)


def _stuck(batch: Batch) -> str:
    return (
        f"search thread {batch.thread} has been working on one batch for {batch.seconds:.0f} s; "
        f"about {max(batch.expected_s, 1):.0f} s were expected"
    )
