"""Ctrl-C and SIGTERM: finish the step, save, tell how to resume. A second one ends the process at once."""

from __future__ import annotations

import os
import signal
import threading
import time
from types import FrameType, TracebackType
from typing import Any, Self

SAME_REQUEST_S = 2.0
"""Under torchrun a signal to all processes of a job, such as Slurm's, comes twice: straight, and by torchrun."""


class Stopped(Exception):  # noqa: N818  (nothing is wrong)
    """What was begun was left, for a signal asks to stop."""


class StopRequest:
    """While open, the first SIGINT or SIGTERM only sets ``signal``; the next one takes its usual course."""

    def __init__(self) -> None:
        self.signal: int | None = None
        self._asked_at: float | None = None
        self._previous: dict[int, Any] = {}
        self._same_request_s = SAME_REQUEST_S if "TORCHELASTIC_RUN_ID" in os.environ else 0.0

    @property
    def is_asked(self) -> bool:
        """Whether to stop."""
        return self.signal is not None

    def others_were_asked(self) -> None:
        """Stop with another rank, whose signal may still come here too: that is no second request."""
        self.signal = self.signal or signal.SIGTERM

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self._asked_at is None:
            self.signal, self._asked_at = number, time.monotonic()
        elif time.monotonic() - self._asked_at > self._same_request_s:
            self._restore()
            os.kill(os.getpid(), number)

    def _restore(self) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():  # Python handles signals nowhere else
            self._previous = {n: signal.signal(n, self._note) for n in (signal.SIGINT, signal.SIGTERM)}
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        more_may_come = self._asked_at is None or self._same_request_s > 0  # of the same request
        if self.signal is None or not more_may_come:
            self._restore()
