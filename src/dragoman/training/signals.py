"""Ctrl-C and SIGTERM during training: finish the step, save, print how to resume. A second one ends the process."""

from __future__ import annotations

import os
import signal
import threading
import time
from types import FrameType, TracebackType
from typing import Any, Self

SAME_REQUEST_S = 2.0
"""Signals within this many seconds are one request under torchrun.

A signal to all processes of a job, such as Slurm's, arrives twice there: directly, and forwarded by torchrun."""


class Stopped(Exception):  # noqa: N818  (it is not an error)
    """Raised by work that is interrupted because a signal asks to stop."""


class StopRequest:
    """Receives SIGINT and SIGTERM while open.

    The first signal only sets ``signal``, so that training can finish its step and save. The second one has its usual
    effect.
    """

    def __init__(self) -> None:
        self.signal: int | None = None
        self._received_at: float | None = None
        self._previous: dict[int, Any] = {}
        self._same_request_s = SAME_REQUEST_S if "TORCHELASTIC_RUN_ID" in os.environ else 0.0

    @property
    def is_set(self) -> bool:
        """True if a stop has been requested."""
        return self.signal is not None

    def stop_with_others(self) -> None:
        """Request a stop because another rank did; its signal may still arrive here, and is then no second request."""
        self.signal = self.signal or signal.SIGTERM

    def _receive(self, number: int, frame: FrameType | None) -> None:
        if self._received_at is None:
            self.signal, self._received_at = number, time.monotonic()
        elif time.monotonic() - self._received_at > self._same_request_s:
            self._restore()
            os.kill(os.getpid(), number)

    def _restore(self) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():  # Python allows signal handlers only there
            self._previous = {n: signal.signal(n, self._receive) for n in (signal.SIGINT, signal.SIGTERM)}
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        more_may_come = self._received_at is None or self._same_request_s > 0  # copies of the same request
        if self.signal is None or not more_may_come:
            self._restore()
