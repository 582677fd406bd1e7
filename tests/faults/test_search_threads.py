"""Row R1: search threads outlive every error, and every request ends."""

from __future__ import annotations

import asyncio
import concurrent.futures
import json
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from amounts import amounts
from leaving_clients import StubPlan, answer, crowd, ended, race, search_threads

from dragoman.serving.batcher import Batcher
from dragoman.serving.tickets import Ticket
from dragoman.translation.segments import SegmentResult, TextSegment

Figure = Callable[[str, str], None]

KINDS = (
    RuntimeError, MemoryError, OSError, SystemExit, KeyboardInterrupt, GeneratorExit, StopIteration,
    asyncio.CancelledError, concurrent.futures.CancelledError, concurrent.futures.InvalidStateError, BaseException,
)  # fmt: skip
QUIETLY = pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
"""A dead thread fails these tests by what they assert."""


@QUIETLY
@amounts(4_000, 1_000_000)
def test_R1_no_search_thread_dies_of_clients_that_leave(
    n: int, figure: Figure, caplog: pytest.LogCaptureFixture
) -> None:
    seen = {"direct race": race(n), "through a batcher": crowd(n // 2 if n < 10_000 else n)}
    figure("R1", f"clients that leave: {json.dumps(seen)}")
    for counts in seen.values():
        assert counts["dead_search_threads"] == counts["requests_without_end"] == 0, seen
    assert not caplog.records  # nor had it anything to outlive


@dataclass(frozen=True)
class Fault:
    """A way in which a batch fails."""

    place: str
    kind: type[BaseException]

    def engine(self, segments: Sequence[TextSegment]) -> list[SegmentResult]:
        """Search, or fail."""
        if self.place == "engine":
            raise self.kind
        return answer(segments)[: -1 if self.place == "too few results" else None]

    def on_result(self, number: int, result: SegmentResult) -> None:
        """Receive a result, or fail."""
        if self.place == "on_result":
            raise self.kind

    def __eq__(self, other: object) -> bool:
        """Compare as search settings, or fail."""
        for fault in (self, other) if self is not other else ():
            if isinstance(fault, Fault) and fault.place == "queue":
                raise fault.kind
        return self is other

    __hash__ = object.__hash__


@dataclass(frozen=True, eq=False)
class Settings:
    """Search settings whose comparison may fail."""

    fault: Fault
    decode: Any

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Settings) and self.fault == other.fault

    __hash__ = object.__hash__


def faults() -> list[Any]:
    places = ("engine", "on_result", "count", "queue")
    every = [Fault(place, kind) for place in places for kind in KINDS]
    every += [Fault("too few results", ValueError), Fault("cancelled", ValueError)]
    return [pytest.param(fault, id=f"{fault.place}-{fault.kind.__name__}") for fault in every]


@QUIETLY
@pytest.mark.parametrize("fault", faults())
def test_R1_a_search_thread_outlives_a_fault_and_each_request_ends(
    fault: Fault, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = threading.Event()
    holding = StubPlan(engine=lambda segments: answer(segments) if held.wait() else [])
    usual: Callable[..., None] = Batcher.count

    def count(self: Batcher, jobs: Any, *more: Any) -> None:
        if fault.place == "count" and jobs[0].ticket in tickets:
            raise fault.kind
        usual(self, jobs, *more)

    monkeypatch.setattr(Batcher, "count", count)
    tickets: list[Ticket] = []
    with search_threads(1) as (batcher, n_dead):
        first = holding.ticket()
        batcher.submit(first)  # so that the next ones share a batch
        while batcher.n_waiting:
            pass
        for own in (fault, Fault("", ValueError)) if fault.place == "queue" else (fault,) * 2:
            search = Settings(own, StubPlan().search.decode)
            plan = StubPlan(engine=answer if fault.place == "queue" else fault.engine, search=search)
            # the second request of a batch is innocent: only an error of the engine is its error too
            more = {"on_result": fault.on_result} if not tickets else {}
            tickets.append(plan.ticket(2, **more))
            if fault.place == "cancelled":
                leave_at_the_end(tickets[-1])
        for ticket in tickets:
            batcher.submit(ticket)
        held.set()
        assert ended(first.results, n_dead)
        assert all(ended(ticket.results, n_dead) for ticket in tickets)
        for ticket in tickets:
            asyncio.run(awaited(ticket))
        if fault.place == "on_result":
            assert tickets[1].results.exception() is None
        last = StubPlan().ticket(3)
        batcher.submit(last)
        assert ended(last.results, n_dead)
        assert len(last.results.result()) == 3
        assert not n_dead()
    assert (batcher.n_waiting, batcher.n_running) == (0, 0)


def leave_at_the_end(ticket: Ticket) -> None:
    """Let the client leave between the last look at a request and its result."""
    usual = ticket.results.set_result

    def late(results: Any) -> None:
        ticket.results.cancel()
        usual(results)

    ticket.results.set_result = late  # type: ignore[method-assign]


async def awaited(ticket: Ticket) -> None:
    """Check that an event loop receives the end of a request, and is not ended by it."""
    future = asyncio.wrap_future(ticket.results)
    for _ in range(10):
        await asyncio.sleep(0)
    assert future.done()
    assert not future.cancelled()  # nobody has left
    error = future.exception()
    assert error is None or isinstance(error, Exception)
