"""Batches the sentences of many requests: a bounded queue, fair turns, one search thread (or a few).

Routes submit the sentences of a request as a ``Ticket``. A search thread takes up to one batch of tokens, one sentence
of each request in turn, and translates them together. A translation does not depend on the rest of its batch
(``Engine.search``), so batching affects speed alone. A request that comes alone is searched at once.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace

import torch

from dragoman.decoding.cancellation import Cancellation
from dragoman.errors import ServeError
from dragoman.serving.refusals import BusyError
from dragoman.translation.plan import Plan
from dragoman.translation.segment_search import translate_segments
from dragoman.translation.segments import SegmentResult, TextSegment

WINDOW_S = 0.03
"""Longest time that a search thread waits for as many requests as its last batch had, in seconds."""

LEAST_SHARE = 128
"""Smallest share of a batch in tokens; smaller batches are not divided among search threads."""

MEASURABLE = 2 * LEAST_SHARE
"""Smallest batch, in tokens, whose speed is near that of a full one; smaller ones are left out of the estimate."""

BATCH_TOKENS_ON_CPU = 1024
"""Largest batch on a CPU, in tokens. A larger one is no faster per sentence, keeps new requests waiting until its end,
and needs memory for its beams."""


class Ticket:
    """A request in the queue: the sentences that still wait, and the results so far."""

    def __init__(
        self, plan: Plan, segments: Sequence[TextSegment],
        on_result: Callable[[int, SegmentResult], object] = lambda i, result: None,
    ) -> None:  # fmt: skip
        """Hold ``segments``; a search thread calls ``on_result`` with each one's index and result, in any order."""
        self.plan, self.on_result = plan, on_result
        self.results: Future[list[SegmentResult]] = Future()
        """Results of all sentences, in order, or the exception that ended the request."""
        self.cancellation = Cancellation()  # cancelled when the client has left
        self.waiting = deque(_Job(i, self._cancellable(segment), self) for i, segment in enumerate(segments))
        self._by_number: list[SegmentResult | None] = [None] * len(segments)
        self._n_left = len(segments)
        if not segments:
            self.results.set_result([])

    def _cancellable(self, segment: TextSegment) -> TextSegment:
        """Return the segment with this request's cancellation, which also ends its search."""
        return replace(segment, search=replace(segment.search, cancellation=self.cancellation))

    def take(self, i: int, result: SegmentResult) -> None:
        """Store the result of sentence ``i``; the last one completes the request."""
        with _TAKING:
            self._by_number[i] = result
            self._n_left -= 1
            is_last = self._n_left == 0
        self.on_result(i, result)
        if is_last and not self.results.done():
            self.results.set_result([result for result in self._by_number if result is not None])

    def fail(self, error: BaseException) -> None:
        """End the request with an error."""
        with _TAKING:
            if not self.results.done():
                self.results.set_exception(error)


# Several search threads may finish sentences of one ticket at the same time.
_TAKING = threading.Lock()


@dataclass(frozen=True)
class _Job:
    """A sentence of a request, with its number there."""

    number: int
    segment: TextSegment
    ticket: Ticket

    @property
    def n_tokens(self) -> int:
        """Number of source tokens, eos included."""
        return len(self.segment.search.ids) + 1


@dataclass
class Statistics:
    """Counts of the batcher's work, for the metrics; read without a lock."""

    batches: int = 0
    sentences: int = 0
    tokens: int = 0  # of the source
    dropped: int = 0  # sentences whose client had left
    busy_s: float = 0.0


class Batcher:
    """Translates the sentences of all requests in common batches."""

    def __init__(
        self, *, longest_wait_s: float = 5.0, most_waiting: int = 10_000, threads: int = 1, cores: int = 1,
        batch_tokens: int | None = None,
    ) -> None:  # fmt: skip
        """Start the search threads.

        Args:
            longest_wait_s: Requests are refused while the queue is expected to take longer, in seconds.
            most_waiting: Requests are also refused while this many sentences wait.
            threads: Number of search threads, each with a batch of its own.
            cores: CPU cores of each. Use several only with one search thread, and only if no other thread of the
                process computes on several: OpenMP starts a team for each such thread, and the teams compete.
            batch_tokens: Largest batch in tokens; None: ``batch_tokens`` of the plan.
        """
        self.longest_wait_s, self.most_waiting, self.cores = longest_wait_s, most_waiting, cores
        self.batch_tokens = batch_tokens
        self.done = Statistics()
        self._tickets: deque[Ticket] = deque()  # with sentences in the queue; the first has the next turn
        self.n_waiting = self.n_running = self._tokens_waiting = 0  # sentences in the queue and in search, and tokens
        self._n_idle = 0  # search threads without work
        self._last_together = 1  # requests in the last batch
        self.tokens_per_s = 0.0  # of one busy search thread, averaged; 0: not measured yet
        self._changed = threading.Condition()
        self.closing = False
        self._threads = [threading.Thread(target=self._run, name=f"server-{i}", daemon=True) for i in range(threads)]
        for thread in self._threads:
            thread.start()

    def submit(self, ticket: Ticket) -> None:
        """Put the sentences of a request into the queue; ``ticket.results`` receives their translations.

        Raises:
            BusyError: The queue is full, or would take too long.
            ServeError: The server is shutting down.
        """
        with self._changed:
            if self.closing:
                raise ServeError("the server is shutting down")
            if (again_after_s := self.busy_for_s) is not None:
                raise BusyError(again_after_s)
            if ticket.waiting:
                self._tickets.append(ticket)
                self.n_waiting += len(ticket.waiting)
                self._tokens_waiting += sum(job.n_tokens for job in ticket.waiting)
                self._changed.notify_all()

    @property
    def expected_wait_s(self) -> float:
        """Expected time until the queue is empty, in seconds; 0 before the first measurement."""
        speed = self.tokens_per_s * len(self._threads)
        return self._tokens_waiting / speed if speed else 0.0

    @property
    def busy_for_s(self) -> float | None:
        """Seconds after which a refused client should try again; None while there is room in the queue."""
        expected = self.expected_wait_s
        if expected > self.longest_wait_s or self.n_waiting >= self.most_waiting:
            return max(1.0, expected - self.longest_wait_s)
        return None

    def forget(self, ticket: Ticket) -> None:
        """Drop a request: its waiting sentences at once, those being searched at their next decoding step."""
        with self._changed:
            ticket.cancellation.cancel()
            if ticket.waiting:
                self._tickets.remove(ticket)
            self.n_waiting -= len(ticket.waiting)
            self._tokens_waiting -= sum(job.n_tokens for job in ticket.waiting)
            self.done.dropped += len(ticket.waiting)
            ticket.waiting.clear()

    def close(self, grace_s: float) -> bool:
        """Refuse new requests and finish the accepted ones.

        Returns:
            True if all finished within ``grace_s`` seconds; the others end with ``ServeError``.
        """
        with self._changed:
            self.closing = True
            self._changed.notify_all()
        deadline = time.monotonic() + grace_s
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.monotonic()))
        with self._changed:
            unfinished = list(self._tickets)
            self._tickets.clear()
        for ticket in unfinished:
            ticket.cancellation.cancel()
            ticket.fail(ServeError("the server has shut down"))
        return not unfinished and not any(thread.is_alive() for thread in self._threads)

    # --- in the search threads ----------------------------------------------------------------------------------------

    def _run(self) -> None:
        torch.set_num_threads(self.cores)  # of this thread
        while True:
            jobs, others_wait = self._take()
            if jobs:
                started = time.perf_counter()
                try:
                    self._search(jobs)
                finally:
                    self.count(jobs, others_wait, time.perf_counter() - started)
            elif self.closing:
                return

    def _take(self) -> tuple[list[_Job], bool]:
        """Wait for the next batch; return its sentences (none: closing), and whether others stay in the queue."""
        with self._changed:
            self._n_idle += 1
            try:
                while not self._tickets:
                    if self.closing:
                        return [], False
                    self._changed.wait()
                first = self._tickets[0]
                kind, limit = kind_of(first.plan), first.plan.search.decode.batch_tokens
                limit = min(limit, self.batch_tokens or limit)
                self._await_other_requests(kind, limit)
                # Idle search threads share what waits: two half batches on two cores end before one full batch on one.
                share = -(-self._tokens_of(kind) // self._n_idle)
                return self._deal(kind, min(limit, max(share, LEAST_SHARE))), bool(self._tickets)
            finally:
                self._n_idle -= 1

    def _await_other_requests(self, kind: Hashable, limit: int) -> None:
        """Wait until as many requests have come as the last batch had, or a batch is full; ``WINDOW_S`` at most."""
        # Clients that were just answered together send their next requests within milliseconds of each other. Without
        # this wait the first of them would be searched alone, and the others would wait for its end.
        end = time.monotonic() + WINDOW_S
        while not self.closing and len(self._tickets) < self._last_together and self._tokens_of(kind) < limit:
            if not self._changed.wait(end - time.monotonic()):
                break

    def _tokens_of(self, kind: Hashable) -> int:
        same_kind = (ticket for ticket in self._tickets if kind_of(ticket.plan) == kind)
        return sum(job.n_tokens for ticket in same_kind for job in ticket.waiting)

    def _deal(self, kind: Hashable, limit: int) -> list[_Job]:
        """Remove up to ``limit`` tokens of one kind from the queue, one sentence of each request in turn."""
        # One sentence a turn keeps the queue fair: a short request does not wait for all sentences of a long one.
        jobs: list[_Job] = []
        room = limit
        others: deque[Ticket] = deque()
        while self._tickets:
            ticket = self._tickets.popleft()
            if kind_of(ticket.plan) != kind:
                others.append(ticket)
                continue
            if jobs and ticket.waiting[0].n_tokens > room:
                self._tickets.appendleft(ticket)
                break
            job = ticket.waiting.popleft()
            jobs.append(job)
            room -= job.n_tokens
            self.n_waiting -= 1
            self._tokens_waiting -= job.n_tokens
            if ticket.waiting:
                self._tickets.append(ticket)  # its next turn is after all others
        self._tickets = others + self._tickets  # of another kind: they have waited longest
        self.n_running += len(jobs)
        self._last_together = len({id(job.ticket) for job in jobs})
        return jobs

    def _search(self, jobs: Sequence[_Job]) -> None:
        """Translate a batch and give each ticket its results."""
        try:
            results = translate_segments([job.segment for job in jobs], jobs[0].ticket.plan)
        except BaseException as error:
            for job in jobs:
                job.ticket.fail(error)
            return
        for job, result in zip(jobs, results, strict=True):
            job.ticket.take(job.number, result)

    def count(self, jobs: Sequence[_Job], others_wait: bool, seconds: float) -> None:
        """Add a batch to the statistics, and its speed to the estimate of ``tokens_per_s``."""
        tokens = sum(job.n_tokens for job in jobs)
        with self._changed:
            self.n_running -= len(jobs)
            self.done.batches += 1
            self.done.sentences += len(jobs)
            self.done.dropped += sum(job.ticket.cancellation.cancelled for job in jobs)
            self.done.tokens += tokens
            self.done.busy_s += seconds
            # The estimate is for a long queue, which is searched in large batches. A small batch is slower and counts
            # only where no larger one could be made; otherwise it may raise the estimate, but not lower it.
            speed, estimate = tokens / max(seconds, 1e-9), self.tokens_per_s
            is_measurable = tokens >= MEASURABLE or others_wait
            if is_measurable and estimate:
                self.tokens_per_s = 0.8 * estimate + 0.2 * speed
            elif is_measurable or estimate:
                self.tokens_per_s = max(estimate, speed)


def kind_of(plan: Plan) -> Hashable:
    """Return the key that sentences of one batch share: engine, search settings, guard."""
    return id(plan.engine), plan.search, plan.options.guard
