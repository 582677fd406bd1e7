"""Batches the sentences of many requests: a bounded queue, fair turns, one search thread (or a few).

Routes submit the sentences of a request as a ``Ticket``. A search thread takes up to one batch of tokens, one sentence
of each API key in turn, and of a key's requests in turn, and translates them together. A translation does not depend
on the rest of its batch (``Engine.search``), so batching affects speed alone. A request that comes alone is searched
at once.

A short request of a key that has no part in a batch does not wait for its end: it is searched between two decoding
steps of that batch, by the same thread. Such requests take at most half of the time. Short and long requests share no
batch.

Words that a request forces into its translations can take a hundred times as long as its text. Such sentences count for
more tokens, share batches with their own key's alone, and let long requests pass too, a part at a time.

Every request ends, once: with its results, or with an error. A search thread outlives every error of its batches;
``watchdog`` restarts it should it die all the same.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Sequence, Set
from dataclasses import dataclass
from functools import partial

import torch

from dragoman.errors import ServeError
from dragoman.fast import LEAST_SOURCE
from dragoman.serving.refusals import BusyError, UnfinishedError
from dragoman.serving.tickets import Batch, Job, Ticket
from dragoman.translation.segment_search import translate_segments

logger = logging.getLogger("dragoman.serving")

WINDOW_S = 0.03
"""Longest time that a search thread waits for as many requests as its last batch had, in seconds."""

LEAST_SHARE = 128
"""Smallest share of a batch in tokens; smaller batches are not divided among search threads."""

MEASURABLE = 2 * LEAST_SHARE
"""Smallest batch, in tokens, whose speed is near that of a full one; smaller ones are left out of the estimate."""

RECENT_S = 10.0
"""Time in seconds for which a key whose sentences have all been taken is expected to come again."""

SHORT_BATCH = 4
"""Fraction, as a divisor, of the largest batch that is searched while a key is expected to come again: it would have to
wait for the end of that batch. A quarter of a full one is hardly slower per sentence."""

MOST_EXPECTED_S = 30.0
"""Longest time in seconds that is expected of a batch: the watchdog waits many times as long, and a slow batch must not
let all later ones hang for an hour."""

BATCH_TOKENS_ON_CPU = 1024
"""Largest batch on a CPU, in tokens. A larger one is no faster per sentence, keeps new requests waiting until its end,
and needs memory for its beams."""

BATCH_SENTENCES_ON_CPU = BATCH_TOKENS_ON_CPU // LEAST_SOURCE
"""Largest number of sentences in it, however short they are: see ``batches.least_on``."""


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
            batch_tokens: Largest batch in tokens, on a CPU; None: ``batch_tokens`` of the plan.
        """
        self.longest_wait_s, self.most_waiting, self.cores = longest_wait_s, most_waiting, cores
        self.batch_tokens = batch_tokens
        self.done = Statistics()
        self._tickets: deque[Ticket] = deque()  # with sentences in the queue; the first has the next turn
        self._waiting: dict[str, tuple[int, int]] = {}  # sentences and tokens in the queue, of each key that has some
        self._last_came: dict[str, float] = {}  # time of each key's last request
        self.n_waiting = self.n_running = self._tokens_waiting = 0  # sentences in the queue and in search, and tokens
        self._n_idle = 0  # search threads without work
        self._last_together = 1  # requests in the last batch
        self.tokens_per_s = 0.0  # of one busy search thread, averaged; 0: not measured yet
        self._running: dict[int, Batch] = {}  # by number of the search thread; what a batch lets pass by ``_passing``
        self._longest_s = 0.0  # time of the longest recent batch
        self._changed = threading.Condition()
        self.closing = False
        self._threads = [self._thread(number) for number in range(threads)]
        for thread in self._threads:
            thread.start()

    def _thread(self, number: int) -> threading.Thread:
        return threading.Thread(target=self.search_batches, args=(number,), name=f"server-{number}", daemon=True)

    def submit(self, ticket: Ticket) -> None:
        """Put the sentences of a request into the queue; ``ticket.results`` receives their translations.

        Raises:
            BusyError: The queue is full, or would take too long.
            ServeError: The server is shutting down.
        """
        with self._changed:
            if self.closing:
                raise ServeError("the server is shutting down")
            self.refuse_if_full(ticket.owner)
            self._last_came[ticket.owner] = time.monotonic()
            if ticket.waiting:
                self._count_waiting(ticket, 1, *ticket.waiting)
                try:
                    self._tickets.append(ticket)
                    self._changed.notify_all()
                except BaseException:
                    self.forget(ticket)
                    raise

    def _count_waiting(self, ticket: Ticket, sign: int, *jobs: Job) -> None:
        """Add sentences of a ticket to the counts of the queue (``sign`` 1), or subtract them (-1)."""
        n, tokens = sign * len(jobs), sign * sum(job.n_tokens for job in jobs)
        n_before, tokens_before = self._waiting.get(ticket.owner, (0, 0))
        n_of_all, tokens_of_all = self.n_waiting + n, self._tokens_waiting + tokens
        # All or nothing changes, also where memory is short: the queue would stand still for ever.
        if n_before + n:
            self._waiting[ticket.owner] = n_before + n, tokens_before + tokens
        else:
            self._waiting.pop(ticket.owner, None)
        self.n_waiting, self._tokens_waiting = n_of_all, tokens_of_all

    @property
    def expected_wait_s(self) -> float:
        """Expected time until the queue is empty, in seconds; 0 before the first measurement."""
        speed = self.tokens_per_s * len(self._threads)
        return self._tokens_waiting / speed if speed else 0.0

    def busy_for_s(self, owner: str) -> float | None:
        """Return the seconds after which a client of a key should try again; None while the key has room in the queue.

        Keys have equal turns, so a key waits for its own sentences, times the number of keys that have some.
        """
        n, tokens = self._waiting.get(owner, (0, 0))
        n_keys = len(self._waiting.keys() | {owner})
        expected = self.expected_wait_s
        if tokens * n_keys < self._tokens_waiting:
            expected *= tokens * n_keys / self._tokens_waiting
        if expected > self.longest_wait_s or min(self.n_waiting, n * n_keys) >= self.most_waiting:
            return max(1.0, expected - self.longest_wait_s)
        return None

    def n_waiting_by_owner(self) -> dict[str, int]:
        """Return the number of sentences in the queue, of each key that has some."""
        with self._changed:
            return {owner: n for owner, (n, _) in self._waiting.items()}

    def refuse_if_full(self, owner: str) -> None:
        """Check that a key has room in the queue.

        Raises:
            BusyError: It has none.
        """
        if (again_after_s := self.busy_for_s(owner)) is not None:
            raise BusyError(again_after_s)

    def forget(self, ticket: Ticket) -> None:
        """Drop a request: its waiting sentences at once, those being searched at their next decoding step."""
        with self._changed:
            ticket.cancellation.cancel()
            if ticket in self._tickets:
                self._tickets.remove(ticket)
            self._count_waiting(ticket, -1, *ticket.waiting)
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
        error = ServeError("the server has shut down")
        is_finished = not self.fail_waiting(error)
        for batch in self.running():
            batch.fail(error)
        return is_finished and not any(thread.is_alive() for thread in self._threads)

    # --- for the watchdog ---------------------------------------------------------------------------------------------

    def running(self) -> list[Batch]:
        """Return the batches that are being searched."""
        return list(self._running.values())

    def dead_threads(self) -> list[str]:
        """Return the names of search threads that have died; they end at shutdown."""
        return [] if self.closing else [thread.name for thread in self._threads if not thread.is_alive()]

    def revive(self) -> None:
        """Restart the search threads that have died, and end the requests of their batches."""
        for number, thread in enumerate(self._threads):
            if not self.closing and not thread.is_alive():
                for place in (_passing(number), number):
                    self.end_batch(place, UnfinishedError())
                self._threads[number] = self._thread(number)
                self._threads[number].start()

    def give_up(self, batch: Batch) -> None:
        """End the search of a batch at the next decoding step, and its requests with an error.

        If several keys had a part in it, one of them may have held up the others: their requests are searched again,
        each key's apart, and fail the second time.
        """
        with self._changed:
            if batch.is_searched:  # it has ended in this moment, and its results count
                return
            if len(batch.owners) > 1:
                for ticket in list(batch.tickets):
                    if not ticket.cancellation.cancelled and self._search_again(ticket, batch):
                        batch.tickets.remove(ticket)
            batch.is_given_up = True
        self._fail(batch, UnfinishedError())

    def _search_again(self, ticket: Ticket, batch: Batch) -> bool:
        """Put a request's sentences of a batch before all others in the queue; False if that was done before."""
        jobs = [job for job in batch.jobs if job.ticket is ticket]
        if not ticket.search_again(jobs):
            return False
        self._count_waiting(ticket, 1, *jobs)
        if ticket not in self._tickets:
            self._tickets.appendleft(ticket)
        self._changed.notify_all()
        return True

    def _fail(self, batch: Batch, error: BaseException) -> None:
        """End the requests of a batch with an error; their other sentences are searched for nobody."""
        for ticket in batch.tickets:
            self.forget(ticket)
        batch.fail(error)

    def fail_waiting(self, error: BaseException) -> int:
        """End all requests in the queue with an error; return their number."""
        with self._changed:
            tickets = list(self._tickets)
            for ticket in tickets:
                self.forget(ticket)
        for ticket in tickets:
            ticket.fail(error)
        return len(tickets)

    # --- in the search threads ----------------------------------------------------------------------------------------

    def search_batches(self, number: int) -> None:
        """Search batches until the server shuts down; search thread ``number`` does nothing else."""
        torch.set_num_threads(self.cores)  # of this thread
        is_open = True
        while is_open:
            try:
                is_open = self._search_next(number)
            except BaseException as error:
                self.outlive(number, error)

    def outlive(self, number: int, error: BaseException) -> None:
        """End the requests of a batch that failed, and log the error."""
        self.end_batch(number, error)
        with contextlib.suppress(BaseException):  # such as a second lack of memory
            logger.error("a batch failed in search thread %d", number, exc_info=error)

    def end_batch(self, number: int, error: BaseException | None = None) -> None:
        """Take the batch of a search thread, if it has one, for ended; with an error also its requests."""
        batch = self._running.get(number)
        if batch is not None:
            if error is not None:
                self._fail(batch, error)
            if error is None and batch.is_usual:
                self._longest_s = max(batch.seconds, 0.9 * self._longest_s)
            with self._changed:
                del self._running[number]
                self.n_running -= len(batch.jobs)

    def _search_next(self, number: int) -> bool:
        """Search one batch; return False once the server shuts down."""
        batch = self.take(number)
        if batch is None:
            return not self.closing or self.n_waiting > 0
        self._search(batch, partial(self._let_pass, number, batch))
        seconds = batch.seconds
        self.end_batch(number)
        self.count(batch.jobs, batch.others_wait, seconds, batch.is_searched)
        return True

    def _let_pass(self, number: int, batch: Batch) -> None:
        """Search requests of keys that have no part in a batch, between two steps of that batch.

        Short ones pass every batch. One that may take long, such as for forced words, is passed by long requests too,
        for as much time again: so the short ones need not wait until the long ones have made up for theirs.
        """
        if not self._tickets:
            return
        queued: list[Ticket] = []
        # No error of another request may end the batch that waits here.
        with self._changed:
            try:
                queued = list(self._tickets)
                passing = self.deal_passing(batch)
                if passing is None:
                    return
                self._running[_passing(number)] = passing
            except BaseException as error:
                self._fail_queue(error, {*queued, *self._tickets})
                return
        try:
            self._search(passing)
            self.end_batch(_passing(number))
            self.count(passing.jobs, False, passing.seconds, passing.is_searched)
        except BaseException as error:
            self.outlive(_passing(number), error)
        batch.let_pass(passing)

    def deal_passing(self, batch: Batch) -> Batch | None:
        """Remove sentences from the queue that may pass a batch now; if several, of ``LEAST_SHARE`` tokens at most."""
        short = self._short_owners()
        long = self._waiting.keys() - short if batch.is_apart else frozenset[str]()
        for owners, passed_s in ((short, batch.passed_s), (long, batch.passed_long_s)):
            others, is_short = owners - batch.owners, owners is short
            able = (ticket for ticket in self._tickets if ticket.owner in others and ticket.may_pass(is_short))
            if passed_s <= batch.seconds and (first := next(able, None)) is not None:
                jobs = self._deal(first.kind, LEAST_SHARE, others)
                return Batch(batch.thread, jobs, True, self._expected_s(jobs), time.monotonic(), is_short=is_short)
        return None

    def take(self, number: int) -> Batch | None:
        """Wait for the next batch of a search thread; None: there is none, or the server shuts down."""
        with self._changed:
            self._n_idle += 1
            queued: list[Ticket] = []
            try:
                while not self._tickets:
                    if self.closing:
                        return None
                    self._changed.wait()
                first = self._tickets[0]
                kind, limit = first.kind, first.plan.search.decode.batch_tokens
                limit = min(limit, self.batch_tokens or limit) // (SHORT_BATCH if self._expects_another_key() else 1)
                self._await_other_requests(kind, limit)
                # Idle search threads share what waits: two half batches on two cores end before one full batch on one.
                share = -(-self._tokens_of(kind) // self._n_idle)
                queued = list(self._tickets)
                jobs = self._deal(kind, min(limit, max(share, LEAST_SHARE)), self._alike(first.owner))
                if not jobs:  # while this thread waited, another one took them
                    return None
                self._last_together = len({id(job.ticket) for job in jobs})
                batch = Batch(f"server-{number}", jobs, bool(self._tickets), self._expected_s(jobs), time.monotonic())
                self._running[number] = batch
                return batch
            except BaseException as error:
                self._fail_queue(error, {*queued, *self._tickets})
                raise
            finally:
                self._n_idle -= 1

    def _alike(self, owner: str) -> Set[str]:
        """Return the keys with short requests if that of ``owner`` is short, otherwise those with long ones.

        They share no batch: a short request would wait for the end of the long ones, which it may pass.
        """
        short = self._short_owners()
        return short if owner in short else self._waiting.keys() - short

    def _short_owners(self) -> set[str]:
        """Return the keys that have so few tokens in the queue that they may pass a batch."""
        return {owner for owner, (_, tokens) in self._waiting.items() if tokens <= LEAST_SHARE}

    def _fail_queue(self, error: BaseException, tickets: Iterable[Ticket]) -> None:
        """End all requests of the queue after an error in the queue itself, which it would meet again."""
        self._tickets.clear()
        self.n_waiting = self._tokens_waiting = 0
        self._waiting.clear()
        self.n_running = sum(len(batch.jobs) for batch in self.running())
        for ticket in tickets:
            ticket.waiting.clear()
            ticket.fail(error)

    def _expected_s(self, jobs: Sequence[Job]) -> float:
        """Return the expected time of a batch in seconds: that of the longest recent one, if speed says no more."""
        tokens = sum(job.n_tokens for job in jobs)
        by_speed = tokens / self.tokens_per_s if self.tokens_per_s else 0.0
        return min(MOST_EXPECTED_S, max(by_speed, self._longest_s))

    def _await_other_requests(self, kind: Hashable, limit: int) -> None:
        """Wait until as many requests have come as the last batch had, or a batch is full; ``WINDOW_S`` at most."""
        # Clients that were just answered together send their next requests within milliseconds of each other. Without
        # this wait the first of them would be searched alone, and the others would wait for its end.
        end = time.monotonic() + WINDOW_S
        while not self.closing and len(self._tickets) < self._last_together and self._tokens_of(kind) < limit:
            if not self._changed.wait(end - time.monotonic()):
                break

    def _expects_another_key(self) -> bool:
        """Return True if a key that has nothing in the queue came in the last ``RECENT_S`` seconds."""
        since = time.monotonic() - RECENT_S
        self._last_came = {owner: last for owner, last in self._last_came.items() if last > since}
        return not self._last_came.keys() <= self._waiting.keys()

    def _tokens_of(self, kind: Hashable) -> int:
        same_kind = (ticket for ticket in self._tickets if ticket.kind == kind)
        return sum(job.n_tokens for ticket in same_kind for job in ticket.waiting)

    def _deal(self, kind: Hashable, limit: int, owners: Set[str] | None = None) -> list[Job]:
        """Remove up to ``limit`` tokens of one kind from the queue, one sentence of each key, and request, in turn.

        With ``owners`` only sentences of these keys.
        """
        # One sentence a turn keeps the queue fair: neither many requests of one key nor the many sentences of a long
        # request keep others waiting.
        turns: dict[str, deque[Ticket]] = {}  # tickets of this kind by key; the first key has the next turn
        others: list[Ticket] = []
        for ticket in self._tickets:
            if ticket.kind == kind and (owners is None or ticket.owner in owners):
                turns.setdefault(ticket.owner, deque()).append(ticket)
            else:
                others.append(ticket)
        jobs: list[Job] = []
        room, served = limit, set()
        most = limit if self.batch_tokens is None else BATCH_SENTENCES_ON_CPU
        while turns and len(jobs) < most:
            owner, own = next(iter(turns.items()))
            if jobs and own[0].waiting[0].n_tokens > room:
                break
            ticket = own.popleft()
            job = ticket.waiting.popleft()
            jobs.append(job)
            room -= job.n_tokens
            self._count_waiting(ticket, -1, job)
            served.add(owner)
            if ticket.waiting:
                own.append(ticket)  # its next turn is after all other requests of the key
            del turns[owner]
            if own:
                turns[owner] = own  # its next turn is after all other keys
        # Keys that had no turn come first, whatever the kind of their requests; of a key, requests of another kind.
        remaining = [*others, *(ticket for own in turns.values() for ticket in own)]
        self._tickets = deque(sorted(remaining, key=lambda ticket: ticket.owner in served))
        self.n_running += len(jobs)
        return jobs

    def _search(self, batch: Batch, between_steps: Callable[[], object] | None = None) -> None:
        """Translate a batch and give each ticket its results, unless the batch was given up meanwhile."""
        results = translate_segments(batch.segments(between_steps), batch.jobs[0].ticket.plan)
        with self._changed:
            batch.is_searched = not batch.is_given_up
        if batch.is_searched:
            for job, result in zip(batch.jobs, results, strict=True):
                job.ticket.take(job.number, result)

    def count(self, jobs: Sequence[Job], others_wait: bool, seconds: float, is_searched: bool = True) -> None:
        """Add a batch to the statistics, and if it was not given up, its speed to the estimate of ``tokens_per_s``."""
        tokens = sum(job.n_tokens for job in jobs)
        with self._changed:
            self.done.batches += 1
            self.done.sentences += len(jobs)
            self.done.dropped += sum(job.ticket.cancellation.cancelled for job in jobs)
            self.done.tokens += sum(job.n_src for job in jobs)
            self.done.busy_s += seconds
            # The estimate is for a long queue, which is searched in large batches. A small batch is slower and counts
            # only where no larger one could be made; otherwise it may raise the estimate, but not lower it.
            speed, estimate = tokens / max(seconds, 1e-9), self.tokens_per_s
            is_measurable = tokens >= MEASURABLE or others_wait
            if not is_searched:
                return
            if is_measurable and estimate:
                self.tokens_per_s = 0.8 * estimate + 0.2 * speed
            elif is_measurable or estimate:
                self.tokens_per_s = max(estimate, speed)


def _passing(number: int) -> int:
    """Return the place of requests which the batch of a search thread lets pass, in ``Batcher._running``."""
    return -1 - number
