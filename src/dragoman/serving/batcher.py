"""Sentences of many requests searched together: a bounded queue, fair turns, one owner thread (or a few).

Routes put sentences in, each with a future. An owner takes up to one batch of tokens, a sentence of each request in
turn, at most ``window_s`` after the first has come, and searches for them together. What a sentence is translated to
does not depend on its company (``Engine.search``), so batching is a matter of speed alone.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Hashable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace

import torch

from dragoman.errors import ServeError
from dragoman.translation.notes import Events
from dragoman.translation.plan import Plan
from dragoman.translation.segment_search import translate_segments
from dragoman.translation.segments import SegmentResult, TextSegment

WINDOW_S = 0.005


class Busy(ServeError):
    """The queue is full: try again after ``retry_after_s`` seconds."""

    def __init__(self, retry_after_s: float) -> None:
        super().__init__("the server is busy: try again later")
        self.retry_after_s = retry_after_s


@dataclass(eq=False)
class Ticket:
    """One request's place in the queue."""

    plan: Plan
    waiting: deque[_Job] = field(default_factory=deque)
    gone: bool = False  # nobody waits for it any more


@dataclass(frozen=True)
class _Job:
    segment: TextSegment
    future: Future[SegmentResult]
    ticket: Ticket

    @property
    def n_tokens(self) -> int:
        """What it counts for in a batch: its source with eos."""
        return len(self.segment.search.ids) + 1


@dataclass
class Statistics:
    """What the batcher has done, for the metrics; read without a lock."""

    batches: int = 0
    sentences: int = 0
    tokens: int = 0  # of the source
    dropped: int = 0  # sentences that nobody waited for any more
    busy_s: float = 0.0


class Batcher:
    """Searches for the sentences of all requests."""

    def __init__(self, *, longest_wait_s: float = 5.0, most_waiting: int = 10_000, owners: int = 1) -> None:
        """Start the owner threads.

        Args:
            longest_wait_s: No request is taken in while those before it are expected to need longer.
            most_waiting: Sentences in the queue; beyond that no request is taken in either.
            owners: Batches searched at a time.
        """
        self.longest_wait_s, self.most_waiting = longest_wait_s, most_waiting
        self.done = Statistics()
        self._tickets: deque[Ticket] = deque()  # those that have sentences in the queue; the first has the next turn
        self._n_waiting = self._tokens_waiting = self._n_running = 0
        self._tokens_per_s = 0.0  # of a busy owner, as last seen; 0: not known yet
        self._changed = threading.Condition()
        self._closing = False
        self._owners = [
            threading.Thread(target=self._own, args=(owners > 1,), name=f"search-{i}", daemon=True)
            for i in range(owners)
        ]
        for thread in self._owners:
            thread.start()

    @property
    def n_waiting(self) -> int:
        """Sentences in the queue."""
        return self._n_waiting

    @property
    def n_running(self) -> int:
        """Sentences that are being searched for."""
        return self._n_running

    def submit(self, plan: Plan, segments: Sequence[TextSegment]) -> tuple[Ticket, list[Future[SegmentResult]]]:
        """Put the sentences of a request into the queue.

        Returns:
            Its ticket, for ``forget``, and a future for each sentence.

        Raises:
            Busy: Those before it would take too long.
            ServeError: The server is shutting down.
        """
        ticket = Ticket(plan)
        jobs = [_Job(segment, Future(), ticket) for segment in segments]
        with self._changed:
            if self._closing:
                raise ServeError("the server is shutting down")
            expected = self.expected_wait_s
            if expected > self.longest_wait_s or self._n_waiting >= self.most_waiting:
                raise Busy(max(1.0, expected - self.longest_wait_s))
            ticket.waiting.extend(jobs)
            if jobs:
                self._tickets.append(ticket)
                self._n_waiting += len(jobs)
                self._tokens_waiting += sum(job.n_tokens for job in jobs)
                self._changed.notify_all()
        return ticket, [job.future for job in jobs]

    @property
    def expected_wait_s(self) -> float:
        """How long what is in the queue will take, at the speed seen so far."""
        speed = self._tokens_per_s * len(self._owners)
        return self._tokens_waiting / speed if speed else 0.0

    def forget(self, ticket: Ticket) -> None:
        """Drop what is left of a request: what waits goes at once, what is being searched for at the next step."""
        with self._changed:
            ticket.gone = True
            for job in ticket.waiting:
                self._drop(job)
            if ticket.waiting:
                self._tickets.remove(ticket)
            ticket.waiting.clear()

    def _drop(self, job: _Job) -> None:
        job.future.cancel()
        self._n_waiting -= 1
        self._tokens_waiting -= job.n_tokens
        self.done.dropped += 1

    def close(self, grace_s: float) -> bool:
        """Take nothing in any more, and finish what has been taken in.

        Returns:
            Whether all was finished within ``grace_s`` seconds; what was not has the exception ``ServeError``.
        """
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        deadline = time.monotonic() + grace_s
        for thread in self._owners:
            thread.join(max(0.0, deadline - time.monotonic()))
        with self._changed:
            left = [job for ticket in self._tickets for job in ticket.waiting]
            for ticket in self._tickets:
                ticket.gone = True
            self._tickets.clear()
            for job in left:
                job.future.set_exception(ServeError("the server has shut down"))
        return not left and not any(thread.is_alive() for thread in self._owners)

    # --- what an owner does -------------------------------------------------------------------------------------------

    def _own(self, one_of_several: bool) -> None:
        if one_of_several:
            torch.set_num_threads(1)  # of this thread
        while jobs := self._take():
            started = time.perf_counter()
            try:
                self._search(jobs)
            finally:
                self._count(jobs, time.perf_counter() - started)

    def _take(self) -> list[_Job]:
        """The next batch: a sentence of each request in turn, all with one plan of searching; none: closing."""
        with self._changed:
            while not self._tickets:
                if self._closing:
                    return []
                self._changed.wait()
            first = self._tickets[0]
            kind, limit = kind_of(first.plan), first.plan.search.decode.batch_tokens
            deadline = time.monotonic() + WINDOW_S
            while not self._closing and self._tokens_of(kind) < limit:
                if not self._changed.wait(deadline - time.monotonic()) or time.monotonic() >= deadline:
                    break
            return self._deal(kind, limit)

    def _tokens_of(self, kind: Hashable) -> int:
        return sum(job.n_tokens for each in self._tickets if kind_of(each.plan) == kind for job in each.waiting)

    def _deal(self, kind: Hashable, limit: int) -> list[_Job]:
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
            self._n_waiting -= 1
            self._tokens_waiting -= job.n_tokens
            if ticket.waiting:
                self._tickets.append(ticket)  # its next turn is after all others
        self._tickets = others + self._tickets  # of another kind: they have waited longest
        self._n_running += len(jobs)
        return jobs

    def _search(self, jobs: Sequence[_Job]) -> None:
        """Search for a batch and hand out what was found."""
        segments = [replace(job.segment, owner=i) for i, job in enumerate(jobs)]
        events = Events(alive=lambda i: not jobs[i].ticket.gone)
        try:
            results = translate_segments(segments, jobs[0].ticket.plan, events)
        except BaseException as error:  # noqa: BLE001  (each request is told; the owner lives on)
            for job in jobs:
                if not job.future.cancelled():
                    job.future.set_exception(error)
            return
        for job, result in zip(jobs, results, strict=True):
            if not job.future.cancelled():
                job.future.set_result(result)

    def _count(self, jobs: Sequence[_Job], seconds: float) -> None:
        tokens = sum(job.n_tokens for job in jobs)
        with self._changed:
            self._n_running -= len(jobs)
            self.done.batches += 1
            self.done.sentences += len(jobs)
            self.done.dropped += sum(job.ticket.gone for job in jobs)
            self.done.tokens += tokens
            self.done.busy_s += seconds
            now = tokens / max(seconds, 1e-9)
            self._tokens_per_s = now if not self._tokens_per_s else 0.8 * self._tokens_per_s + 0.2 * now


def kind_of(plan: Plan) -> Hashable:
    """What sentences must agree in to be searched for together: the engine, its settings, the guard."""
    return id(plan.engine), plan.search, plan.options.guard
