"""Sentences of many requests searched together: a bounded queue, fair turns, one owner thread (or a few).

Routes put the sentences of a request in, and get a ticket. An owner takes up to one batch of tokens, a sentence of each
request in turn, and searches for them together. What a sentence is translated to does not depend on its company
(``Engine.search``), so batching is a matter of speed alone: a request that comes alone is searched for at once; where
requests come together an owner waits for them, ``WINDOW_S`` at most: all whose batch it has just answered ask again.
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
"""The longest that an owner waits for as many sentences as it searched for together last time."""

SHARE = 128
"""Tokens of a batch that is not worth dividing among owners."""

TELLING = 2 * SHARE
"""Tokens of a batch whose speed is near that of a full one; a smaller batch is slower, and says nothing of a queue that
will be searched in full ones."""

TURN_ON_CPU = 1024
"""Tokens that an owner takes at a time on a CPU: a sentence of a larger batch costs no less, but all who come meanwhile
wait for its end, and its beams need the memory."""


class Ticket:
    """One request: its sentences that wait, and the results so far."""

    def __init__(
        self, plan: Plan, segments: Sequence[TextSegment],
        on_found: Callable[[int, SegmentResult], object] = lambda i, result: None,
    ) -> None:  # fmt: skip
        """``on_found`` is called by an owner thread with each sentence's index and result, in whatever order."""
        self.plan, self.on_found = plan, on_found
        self.found: Future[list[SegmentResult]] = Future()
        """All results, once they are there; an exception: what went wrong."""
        self.cancellation = Cancellation()  # cancelled once nobody waits for the request
        self.waiting = deque(_Job(i, self._own(segment), self) for i, segment in enumerate(segments))
        self._results: list[SegmentResult | None] = [None] * len(segments)
        self._n_left = len(segments)
        if not segments:
            self.found.set_result([])

    def _own(self, segment: TextSegment) -> TextSegment:
        """Return a segment that leaves its search when this request is cancelled."""
        return replace(segment, search=replace(segment.search, cancellation=self.cancellation))

    def take(self, i: int, result: SegmentResult) -> None:
        """Keep a sentence's result; with the last one the request is done."""
        with _TAKING:
            self._results[i] = result
            self._n_left -= 1
            is_last = self._n_left == 0
        self.on_found(i, result)
        if is_last and not self.found.done():
            self.found.set_result([each for each in self._results if each is not None])

    def fail(self, error: BaseException) -> None:
        """End the request with an error."""
        with _TAKING:
            if not self.found.done():
                self.found.set_exception(error)


_TAKING = threading.Lock()


@dataclass(frozen=True)
class _Job:
    """A sentence of a request."""

    number: int
    segment: TextSegment
    ticket: Ticket

    @property
    def n_tokens(self) -> int:
        """Number of tokens of its source, eos counted."""
        return len(self.segment.search.ids) + 1


@dataclass
class Statistics:
    """Counts of the batcher's work, for the metrics; read without a lock."""

    batches: int = 0
    sentences: int = 0
    tokens: int = 0  # of the source
    dropped: int = 0  # sentences that nobody waited for any more
    busy_s: float = 0.0


class Batcher:
    """Searches for the sentences of all requests."""

    def __init__(
        self, *, longest_wait_s: float = 5.0, most_waiting: int = 10_000, owners: int = 1, cores: int = 1,
        turn: int | None = None,
    ) -> None:  # fmt: skip
        """Start the owner threads.

        Args:
            longest_wait_s: No request is taken in while those before it are expected to need longer.
            most_waiting: Sentences in the queue; beyond that no request is taken in either.
            owners: Batches searched at a time.
            cores: For each of them. More than one only for a single owner, and if no other thread of the process
                computes on several: OpenMP gives each that does a team of its own, and they get in each other's way.
            turn: Tokens that an owner takes at a time; None: a whole batch of the plan.
        """
        self.longest_wait_s, self.most_waiting, self.cores = longest_wait_s, most_waiting, cores
        self.turn = turn
        self.done = Statistics()
        self._tickets: deque[Ticket] = deque()  # those that have sentences in the queue; the first has the next turn
        self._n_waiting = self._tokens_waiting = self._n_running = 0
        self._n_idle = 0  # owners without work
        self._last_together = 1  # requests in the last batch
        self.tokens_per_s = 0.0  # of a busy owner, as last seen; 0: not known yet
        self._changed = threading.Condition()
        self.closing = False
        self._owners = [threading.Thread(target=self._own, name=f"search-{i}", daemon=True) for i in range(owners)]
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

    def submit(self, ticket: Ticket) -> None:
        """Put the sentences of a request into the queue; its ``found`` is what they will come to.

        Raises:
            BusyError: Those before it would take too long.
            ServeError: The server is shutting down.
        """
        with self._changed:
            if self.closing:
                raise ServeError("the server is shutting down")
            if (again_after_s := self.busy_for_s) is not None:
                raise BusyError(again_after_s)
            if ticket.waiting:
                self._tickets.append(ticket)
                self._n_waiting += len(ticket.waiting)
                self._tokens_waiting += sum(job.n_tokens for job in ticket.waiting)
                self._changed.notify_all()

    @property
    def expected_wait_s(self) -> float:
        """Seconds that the sentences in the queue will take, at the speed seen so far."""
        speed = self.tokens_per_s * len(self._owners)
        return self._tokens_waiting / speed if speed else 0.0

    @property
    def busy_for_s(self) -> float | None:
        """After how long a request that is refused now may come again; None: there is room."""
        expected = self.expected_wait_s
        if expected > self.longest_wait_s or self._n_waiting >= self.most_waiting:
            return max(1.0, expected - self.longest_wait_s)
        return None

    def forget(self, ticket: Ticket) -> None:
        """Drop what is left of a request: what waits goes at once, what is being searched for at the next step."""
        with self._changed:
            ticket.cancellation.cancel()
            if ticket.waiting:
                self._tickets.remove(ticket)
            self._n_waiting -= len(ticket.waiting)
            self._tokens_waiting -= sum(job.n_tokens for job in ticket.waiting)
            self.done.dropped += len(ticket.waiting)
            ticket.waiting.clear()

    def close(self, grace_s: float) -> bool:
        """Take nothing in any more, and finish what has been taken in.

        Returns:
            Whether all was finished within ``grace_s`` seconds; what was not has the exception ``ServeError``.
        """
        with self._changed:
            self.closing = True
            self._changed.notify_all()
        deadline = time.monotonic() + grace_s
        for thread in self._owners:
            thread.join(max(0.0, deadline - time.monotonic()))
        with self._changed:
            left = list(self._tickets)
            self._tickets.clear()
        for ticket in left:
            ticket.cancellation.cancel()
            ticket.fail(ServeError("the server has shut down"))
        return not left and not any(thread.is_alive() for thread in self._owners)

    # --- what an owner does -------------------------------------------------------------------------------------------

    def _own(self) -> None:
        torch.set_num_threads(self.cores)  # of this thread
        while (turn := self._take())[0] or not self.closing:
            jobs, others_wait = turn
            if not jobs:  # another owner took them
                continue
            started = time.perf_counter()
            try:
                self._search(jobs)
            finally:
                self.count(jobs, others_wait, time.perf_counter() - started)

    def _take(self) -> tuple[list[_Job], bool]:
        """The next batch: a sentence of each request in turn, all with one plan of searching; none: closing.

        Also whether others stay in the queue.
        """
        with self._changed:
            self._n_idle += 1
            try:
                while not self._tickets:
                    if self.closing:
                        return [], False
                    self._changed.wait()
                first = self._tickets[0]
                kind, limit = kind_of(first.plan), first.plan.search.decode.batch_tokens
                limit = min(limit, self.turn or limit)
                self._await_company(kind, limit)
                share = -(-self._tokens_of(kind) // self._n_idle)  # for the other idle owners too
                return self._deal(kind, min(limit, max(share, SHARE))), bool(self._tickets)
            finally:
                self._n_idle -= 1

    def _await_company(self, kind: Hashable, limit: int) -> None:
        """Wait for as many requests as came together last time."""
        end = time.monotonic() + WINDOW_S
        while not self.closing and len(self._tickets) < self._last_together and self._tokens_of(kind) < limit:
            if not self._changed.wait(end - time.monotonic()):
                break

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
        self._last_together = len({id(job.ticket) for job in jobs})
        return jobs

    def _search(self, jobs: Sequence[_Job]) -> None:
        """Search for a batch and hand out what was found."""
        try:
            results = translate_segments([job.segment for job in jobs], jobs[0].ticket.plan)
        except BaseException as error:
            for job in jobs:
                job.ticket.fail(error)
            return
        for job, result in zip(jobs, results, strict=True):
            job.ticket.take(job.number, result)

    def count(self, jobs: Sequence[_Job], others_wait: bool, seconds: float) -> None:
        tokens = sum(job.n_tokens for job in jobs)
        with self._changed:
            self._n_running -= len(jobs)
            self.done.batches += 1
            self.done.sentences += len(jobs)
            self.done.dropped += sum(job.ticket.cancellation.cancelled for job in jobs)
            self.done.tokens += tokens
            self.done.busy_s += seconds
            now, known = tokens / max(seconds, 1e-9), self.tokens_per_s
            is_telling = tokens >= TELLING or others_wait  # or no larger batch could be made of what waited
            if is_telling and known:
                self.tokens_per_s = 0.8 * known + 0.2 * now
            elif is_telling or known:
                self.tokens_per_s = max(known, now)


def kind_of(plan: Plan) -> Hashable:
    """Return the key that sentences must share to be searched for together: engine, its settings, guard."""
    return id(plan.engine), plan.search, plan.options.guard
