"""Clients that leave at random: against single tickets, and through a batcher whose engine is a stub.

    race(20_000)       # one thread finishes each request while another gives it up
    crowd(20_000)      # requests of an event loop, half of which leave while search threads work on them

Both count what must be zero: search threads that have died, and requests that never end.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any
from unittest import mock

from dragoman.decoding.request import Segment
from dragoman.serving import batcher as module
from dragoman.serving.batcher import Batcher
from dragoman.serving.tickets import Ticket
from dragoman.translation.segments import SegmentResult, TextSegment

SWITCH_S = 0.0005
"""As in ``dragoman.serving.server``."""

SENTENCE = TextSegment(owner=0, start=0, text="a dog", search=Segment(ids=[5, 6]))
WAVE = 500
"""Number of requests that are made at once."""


@dataclass(frozen=True)
class Decode:
    """Settings of a stub plan's search."""

    batch_tokens: int = 64


@dataclass(frozen=True)
class Search:
    """Search settings of a stub plan."""

    decode: Decode = Decode()


@dataclass(frozen=True)
class Options:
    """Options of a stub plan."""

    guard: bool = False


def answer(segments: Sequence[TextSegment]) -> list[SegmentResult]:
    """Return a result for each sentence."""
    return [SegmentResult() for _ in segments]


@dataclass(frozen=True)
class StubPlan:
    """Plan whose engine is a function from sentences to results."""

    engine: Callable[[Sequence[TextSegment]], list[SegmentResult]] = answer
    search: Any = field(default_factory=Search)
    options: Options = Options()
    direction: str = "en-de"

    def ticket(self, n_sentences: int = 1, **more: Any) -> Ticket:
        """Return a request of some sentences."""
        return Ticket(self, [SENTENCE] * n_sentences, **more)  # type: ignore[arg-type]


@contextlib.contextmanager
def stub_engines() -> Iterator[None]:
    """Let the batcher call the engine of a ``StubPlan``."""
    with mock.patch.object(module, "translate_segments", lambda segments, plan: plan.engine(segments)):
        yield


@contextlib.contextmanager
def search_threads(n_threads: int, **more: Any) -> Iterator[tuple[Batcher, Callable[[], int]]]:
    """Start a batcher; yield it and a function that counts its dead search threads."""
    before = set(threading.enumerate())
    batcher = Batcher(threads=n_threads, **more)
    name = "server-"

    def n_dead() -> int:
        return n_threads - sum(thread.name.startswith(name) for thread in set(threading.enumerate()) - before)

    with stub_engines():
        yield batcher, n_dead
        batcher.close(10)


@contextlib.contextmanager
def switching() -> Iterator[None]:
    """Let threads take turns as they do in a server."""
    usual = sys.getswitchinterval()
    sys.setswitchinterval(SWITCH_S)
    try:
        yield
    finally:
        sys.setswitchinterval(usual)


def race(n: int) -> dict[str, int]:
    """Finish ``n`` requests while another thread gives each up at the same moment."""
    plan = StubPlan()
    tickets: list[Ticket] = []
    turn = -1  # number of the ticket that is being finished
    both = threading.Barrier(2)

    def leave() -> None:
        while True:
            both.wait()
            if not tickets:
                return
            last = -1
            while last < len(tickets) - 1:
                if turn > last:
                    last = turn
                    tickets[last].results.cancel()
                    tickets[last].cancellation.cancel()
                    if last % 2:
                        tickets[last].fail(TimeoutError())
            both.wait()

    leaver = threading.Thread(target=leave, daemon=True)
    leaver.start()
    errors = endless = 0
    with switching():
        for _ in range(0, n, WAVE):
            turn = -1
            tickets = [plan.ticket() for _ in range(WAVE)]
            both.wait()
            for turn, ticket in enumerate(tickets):  # noqa: B007  (the other thread reads ``turn``)
                try:
                    ticket.take(0, SegmentResult())
                except Exception:
                    errors += 1  # in a search thread it would end the thread
            both.wait()
            endless += sum(not ticket.results.done() for ticket in tickets)
    tickets = []
    both.wait()
    leaver.join()
    return {"requests": n, "dead_search_threads": errors, "requests_without_end": endless}


def crowd(n: int, seed: int = 1) -> dict[str, int]:
    """Send ``n`` requests through batchers of two search threads; half of their clients leave at random."""
    chance = random.Random(seed)
    dead = endless = 0
    sent = 0
    with switching():
        while sent < n:
            with search_threads(2, longest_wait_s=1e9, most_waiting=10**9) as (batcher, n_dead):
                while sent < n and not n_dead():
                    endless += asyncio.run(_wave(batcher, n_dead, chance))
                    sent += WAVE
                dead += n_dead()
    return {"requests": sent, "dead_search_threads": dead, "requests_without_end": endless}


async def _wave(batcher: Batcher, n_dead: Callable[[], int], chance: random.Random) -> int:
    """Send a wave of requests; return the number of those that stayed and never got an answer."""
    plan = StubPlan()
    staying: list[asyncio.Future[Any]] = []
    leaving: list[tuple[Ticket, asyncio.Future[Any]]] = []
    for _ in range(WAVE):
        ticket = plan.ticket(chance.choice((1, 1, 1, 2, 5)))
        batcher.submit(ticket)
        future = asyncio.wrap_future(ticket.results)
        if chance.random() < 0.5:
            leaving.append((ticket, future))
        else:
            staying.append(future)
        while leaving and chance.random() < 0.5:
            _leave(batcher, *leaving.pop(chance.randrange(len(leaving))))
        if chance.random() < 0.05:
            await asyncio.sleep(0)
    for ticket, future in leaving:
        _leave(batcher, ticket, future)
    while not all(future.done() for future in staying):
        await asyncio.wait(staying, timeout=1)
        if n_dead():
            await asyncio.wait(staying, timeout=1)
            break
    return sum(not future.done() for future in staying)


def _leave(batcher: Batcher, ticket: Ticket, future: asyncio.Future[Any]) -> None:
    """Leave as ``Service`` does when a client has closed its connection."""
    future.cancel()
    if not ticket.results.done() or ticket.results.cancelled():
        batcher.forget(ticket)


def ended(future: Future[Any], n_dead: Callable[[], int]) -> bool:
    """Wait until a request has ended, or nobody is left to end it; return True if it has."""
    while not future.done() and not n_dead():
        time.sleep(0.002)
    return future.done()
