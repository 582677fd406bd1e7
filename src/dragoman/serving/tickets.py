"""Requests in the queue of the batcher: their sentences, their results, and their one end.

ticket = Ticket(plan, segments)
batcher.submit(ticket)
results = ticket.results.result()
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError, Future
from dataclasses import dataclass, fields, replace

from dragoman.decoding.cancellation import Cancellation
from dragoman.translation.plan import Plan
from dragoman.translation.segments import SegmentResult, TextSegment


class Ticket:
    """A request in the queue: the sentences that still wait, and the results so far."""

    def __init__(
        self, plan: Plan, segments: Sequence[TextSegment],
        on_result: Callable[[int, SegmentResult], object] = lambda i, result: None, *, owner: str = "",
    ) -> None:  # fmt: skip
        """Hold ``segments``; a search thread calls ``on_result`` with each one's index and result, in any order.

        Args:
            owner: Name of the client's API key; "" on a server without keys.
        """
        self.plan, self.on_result, self.owner = plan, on_result, owner
        self.kind = kind_of(plan)
        self.results: Future[list[SegmentResult]] = Future()
        """Results of all sentences, in order, or the exception that ended the request."""
        # A running future cannot be cancelled: a client that leaves cancels the search, and this class alone ends the
        # future.
        self.results.set_running_or_notify_cancel()
        self.cancellation = Cancellation()  # cancelled when the client has left
        self.waiting = deque(Job(i, self._cancellable(segment), self) for i, segment in enumerate(segments))
        self._by_number: dict[int, SegmentResult] = {}
        self._n_segments, self._ended = len(segments), False
        self._changing = threading.Lock()  # several search threads may finish sentences of one ticket at the same time
        if not segments:
            self._complete()

    def _cancellable(self, segment: TextSegment) -> TextSegment:
        """Return the segment with this request's cancellation, which also ends its search."""
        return replace(segment, search=replace(segment.search, cancellation=self.cancellation))

    def take(self, i: int, result: SegmentResult) -> None:
        """Store the result of sentence ``i``; the last one completes the request.

        An error of ``on_result`` ends this request alone.
        """
        try:
            self.on_result(i, result)
        except BaseException as error:
            self.fail(error)
            return
        with self._changing:
            self._by_number[i] = result
            is_last = len(self._by_number) == self._n_segments
        if is_last:
            self._complete()

    def fail(self, error: BaseException) -> None:
        """End the request with an error, unless it has ended."""
        if self._is_first_end():
            self.results.set_exception(_deliverable(error))

    def _complete(self) -> None:
        if self._is_first_end():
            self.results.set_result([self._by_number[i] for i in range(self._n_segments)])

    def _is_first_end(self) -> bool:
        with self._changing:
            was_ended, self._ended = self._ended, True
        return not was_ended


def _deliverable(error: BaseException) -> Exception:
    """Return the error with which a request ends."""
    # An event loop ends at a SystemExit or KeyboardInterrupt, takes a CancelledError for a client that has left, and
    # cannot deliver a StopIteration at all.
    if isinstance(error, Exception) and not isinstance(error, StopIteration | CancelledError):
        return error
    wrapped = RuntimeError(f"the search ended with {type(error).__name__}")
    wrapped.__cause__ = error
    return wrapped


@dataclass(frozen=True)
class Job:
    """A sentence of a request, with its number there."""

    number: int
    segment: TextSegment
    ticket: Ticket

    @property
    def n_tokens(self) -> int:
        """Number of source tokens, eos included."""
        return len(self.segment.search.ids) + 1


@dataclass
class Batch:
    """Sentences that a search thread works on."""

    thread: str  # its name
    jobs: Sequence[Job]
    others_wait: bool  # True if other sentences stayed in the queue
    expected_s: float
    started: float  # by ``time.monotonic``
    passed_s: float = 0.0  # time that requests took which it let pass

    @property
    def seconds(self) -> float:
        """Time since its start in seconds, without that of requests which it let pass."""
        return time.monotonic() - self.started - self.passed_s

    @property
    def owners(self) -> set[str]:
        """Names of the API keys that its sentences are of."""
        return {job.ticket.owner for job in self.jobs}

    def fail(self, error: BaseException) -> None:
        """End its requests with an error, unless they have ended."""
        for job in self.jobs:
            job.ticket.fail(error)


OF_SEGMENTS = ("prefix", "include", "exclude", "sentence_split", "alignments")
"""Options that sentences of one batch need not share: each sentence, or the search settings, have what they say."""


def kind_of(plan: Plan) -> tuple[object, ...]:
    """Return what sentences of one batch share: all that may change a translation and is no part of a sentence.

    ``translate_segments`` has one plan for all, so its glossary would be put into the texts of others.
    """
    options = (getattr(plan.options, each.name) for each in fields(plan.options) if each.name not in OF_SEGMENTS)
    return id(plan.engine), plan.search, plan.direction, *options
