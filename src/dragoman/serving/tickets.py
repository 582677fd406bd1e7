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
from dataclasses import dataclass, field, fields, replace
from functools import cached_property, partial

from dragoman.decoding.batches import CONSTRAINED_BEAM, MOST_CONSTRAINED_BEAM
from dragoman.decoding.cancellation import Cancellation
from dragoman.decoding.constraints import Rules
from dragoman.translation.keeping.placing import MOST_PLACED
from dragoman.translation.plan import Plan
from dragoman.translation.segments import SegmentResult, TextSegment

USUAL_BEAM = 4
"""Beam of most requests. Words to place need a wider one: each of their tokens counts for as much more."""

CHARACTERS_PER_TOKEN = 16
"""Number of characters of a sentence that count as one token at least; ordinary text has four."""

EXCLUDED_PER_TOKEN = 4
"""Number of words to exclude that cost a step of the search as much as a token of the source."""


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
        self.results: Future[list[SegmentResult]] = Future()
        """Results of all sentences, in order, or the exception that ended the request."""
        # A running future cannot be cancelled: a client that leaves cancels the search, and this class alone ends the
        # future.
        self.results.set_running_or_notify_cancel()
        self.cancellation = Cancellation()  # cancelled when the client has left
        self.waiting = deque(Job(i, segment, self) for i, segment in enumerate(segments))
        self.has_forced = any(job.forced is not None for job in self.waiting)
        """True if a prefix, words to include or terms of a glossary may hold up the search of a sentence."""
        self._kind, self.is_apart = kind_of(plan), self.has_forced
        self._by_number: dict[int, SegmentResult] = {}
        self._n_segments, self._ended = len(segments), False
        self._changing = threading.Lock()  # several search threads may finish sentences of one ticket at the same time
        if not segments:
            self._complete()

    @property
    def kind(self) -> tuple[object, ...]:
        """Properties that all sentences of a batch share; what is apart shares batches with its own key alone."""
        return self.owner if self.is_apart else None, *self._kind

    def may_pass(self, is_short: bool) -> bool:
        """True if it may be searched between two steps of a batch, which then waits for it.

        Forced words pass only if they are so few that the key is short; what a batch was given up with never passes.
        """
        return not self.is_apart or (is_short and self.has_forced)

    def search_again(self, jobs: Sequence[Job]) -> bool:
        """Put sentences back that a batch of several keys was given up with, apart this time; False if they were."""
        if self.is_apart:
            return False
        self.is_apart = True
        self.waiting.extendleft(reversed(jobs))
        return True

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
        deliverable = _deliverable(error)  # before it has ended: without memory for it, another call ends it
        if self._is_first_end():
            self.results.set_exception(deliverable)

    def _complete(self) -> None:
        results = [self._by_number[i] for i in range(self._n_segments)]
        if self._is_first_end():
            self.results.set_result(results)

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
    def n_src(self) -> int:
        """Number of source tokens, eos included."""
        return len(self.segment.search.ids) + 1

    @cached_property
    def n_tokens(self) -> int:
        """Number of tokens for which it counts in the queue: those of the source, and what words of the client cost."""
        rules = self.segment.search.rules
        # A tokenizer without bytes makes one token of any number of unknown characters.
        n_src = max(self.n_src, len(self.segment.text) // CHARACTERS_PER_TOKEN)
        n_src += len(rules.exclude) // EXCLUDED_PER_TOKEN if rules is not None else 0
        if self.forced is None:
            return n_src
        n_placed = sum(map(len, self.forced.include))
        beam = min(max(CONSTRAINED_BEAM, n_placed + 1), MOST_CONSTRAINED_BEAM)
        return n_src + self.forced.room + n_placed * beam // USUAL_BEAM

    @cached_property
    def forced(self) -> Rules | None:
        """Rules with tokens that its translation must have, also those of terms; None if there are no such tokens."""
        constraints, rules = self.segment.constraints, self.segment.search.rules
        if constraints is not None and constraints.terms and constraints.with_terms.room <= MOST_PLACED:
            rules = constraints.with_terms
        return rules if rules is not None and rules.room else None


@dataclass
class Batch:
    """Sentences that a search thread works on."""

    thread: str  # its name
    jobs: Sequence[Job]
    others_wait: bool  # True if other sentences stayed in the queue
    expected_s: float
    started: float  # by ``time.monotonic``
    is_short: bool = False  # True if it is of short requests that pass another batch
    passed_s: float = 0.0  # time that short requests took which it let pass
    passed_long_s: float = 0.0  # and long ones
    is_given_up: bool = False  # True if it ends at its next step, and its results do not count
    is_searched: bool = False  # True if its results are there, and count
    tickets: list[Ticket] = field(init=False)
    """Requests that fail with it; those that are searched again are taken out."""

    def __post_init__(self) -> None:
        self.tickets = list({id(job.ticket): job.ticket for job in self.jobs}.values())

    def segments(self, between_steps: Callable[[], object] | None = None) -> list[TextSegment]:
        """Return its sentences, whose search also ends when the batch is given up."""
        tickets = {id(job.ticket): job.ticket for job in self.jobs}
        cancellations = {key: Cancellation(partial(self._is_unwanted, ticket)) for key, ticket in tickets.items()}

        def prepared(job: Job) -> TextSegment:
            cancellation = cancellations[id(job.ticket)]
            search = replace(job.segment.search, cancellation=cancellation, between_steps=between_steps)
            return replace(job.segment, search=search)

        return [prepared(job) for job in self.jobs]

    def _is_unwanted(self, ticket: Ticket) -> bool:
        return self.is_given_up or ticket.cancellation.cancelled

    @property
    def seconds(self) -> float:
        """Time since its start in seconds, without that of requests which it let pass."""
        return time.monotonic() - self.started - self.passed_s - self.passed_long_s

    def let_pass(self, passing: Batch) -> None:
        """Count the time of a batch that has passed this one as none of its own."""
        if passing.is_short:
            self.passed_s += passing.seconds
        else:
            self.passed_long_s += passing.seconds

    @property
    def owners(self) -> set[str]:
        """Names of the API keys that its sentences are of."""
        return {job.ticket.owner for job in self.jobs}

    @property
    def is_apart(self) -> bool:
        """True if it may take long, for what one key alone has in it."""
        return any(ticket.is_apart for ticket in self.tickets)

    @property
    def is_usual(self) -> bool:
        """True if its time says how long others may take: it was searched to its end, and no client has left."""
        return self.is_searched and not any(ticket.cancellation.cancelled for ticket in self.tickets)

    def fail(self, error: BaseException) -> None:
        """End its requests with an error, unless they have ended."""
        for ticket in self.tickets:
            ticket.fail(error)


OF_SEGMENTS = ("prefix", "include", "exclude", "sentence_split", "alignments")
"""Options that sentences of one batch need not share: each sentence, or the search settings, have what they say."""


def kind_of(plan: Plan) -> tuple[object, ...]:
    """Return what sentences of one batch share: all that may change a translation and is no part of a sentence.

    ``translate_segments`` has one plan for all, so its glossary would be put into the texts of others.
    """
    options = (getattr(plan.options, each.name) for each in fields(plan.options) if each.name not in OF_SEGMENTS)
    return id(plan.engine), plan.search, plan.direction, *options
